"""What cyxla comes with: the modules that declare ops, kernels and gradients.

They are imported when a registry is first asked, never by ``import cyxla``; a module counts by its name, ``*_ops``, in
folders of these packages too.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages


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
    modules = walk_packages(import_module(package).__path__, f"{package}.")
    for name in sorted(module.name for module in modules):
        if name.endswith("_ops"):
            import_module(name)
