"""TensorFlow's framework: ops, kernels, graphs and their execution, independent of HLO."""

from cyxla.core.framework.loaders import register_loaders


def _load_ops() -> None:
    from cyxla.core.catalogue import load_ops

    load_ops()


def _load_kernels() -> None:
    from cyxla.core.catalogue import load_kernels

    load_kernels()


def _load_gradients() -> None:
    from cyxla.core.catalogue import load_gradients

    load_gradients()


def _load_eager_runtime() -> None:
    from cyxla.core.runtime import eager  # which registers itself

    _ = eager


def _load_packages() -> None:
    from cyxla.core.framework.load_library import load_packages

    load_packages()


def _load_dynamic_kernels() -> None:
    from cyxla.core.framework.load_library import load_dynamic_kernels

    load_dynamic_kernels()


register_loaders(
    ops=_load_ops,
    kernels=_load_kernels,
    gradients=_load_gradients,
    eager_runtime=_load_eager_runtime,
    packages=_load_packages,
    dynamic_kernels=_load_dynamic_kernels,
)
