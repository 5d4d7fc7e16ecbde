"""What cyxla comes with: the modules that declare ops, kernels and gradients.

They are imported when a registry is first asked, never by ``import cyxla``; a module counts by its name, ``*_ops``.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def load_ops() -> None:
    """Declare every op."""
    _load("cyxla.core.ops")


def load_kernels() -> None:
    """Register every kernel."""
    _load("cyxla.core.kernels")


def load_gradients() -> None:
    """Register every gradient function."""
    _load("cyxla.core.gradients")


def load_catalogue() -> None:
    """Load all of it."""
    load_ops()
    load_kernels()
    load_gradients()


def _load(package: str) -> None:
    names = sorted(module.name for module in iter_modules(import_module(package).__path__))
    for name in names:
        if name.endswith("_ops"):
            import_module(f"{package}.{name}")
