"""Translation of graphs to HLO: graphs are executed symbolically, and kernels emit HLO instructions."""

from cyxla.core.framework.loaders import register_loaders


def _load_kernels() -> None:
    from cyxla.tf2xla.kernels import load_kernels

    load_kernels()


def _load_plugin_kernels() -> None:
    from cyxla.tf2xla.plugin_kernels import load_plugin_kernels

    load_plugin_kernels()


register_loaders(xla_kernels=_load_kernels, plugin_xla_kernels=_load_plugin_kernels)
