"""XLA kernels, which emit the HLO of ops; in folders and modules named as in `core.ops`."""

from importlib import import_module
from pkgutil import walk_packages


def load_kernels() -> None:
    """Register all kernels: those of the modules named ``*_ops``."""
    for name in sorted(module.name for module in walk_packages(__path__, f"{__name__}.")):
        if name.endswith("_ops"):
            import_module(name)
