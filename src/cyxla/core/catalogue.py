"""The built-in ops, kernels and gradients: the modules that declare and register them.

The modules are imported with the first look-up in a registry, never by ``import cyxla``. They are all modules named
``*_ops`` in the packages below, including subpackages, and `function_gradients`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages


def load_ops() -> None:
    """Declare all ops."""
    _load("cyxla.core.ops")


def load_kernels() -> None:
    """Register all kernels."""
    _load("cyxla.core.kernels")


def load_gradients() -> None:
    """Register all gradient functions."""
    _load("cyxla.core.gradients")
    import_module("cyxla.core.graph.function_gradients")


def load_catalogue() -> None:
    """Load all ops, kernels and gradients."""
    load_ops()
    load_kernels()
    load_gradients()


def _load(package: str) -> None:
    modules = walk_packages(import_module(package).__path__, f"{package}.")
    for name in sorted(module.name for module in modules):
        if name.endswith("_ops"):
            import_module(name)
