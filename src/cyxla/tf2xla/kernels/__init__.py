"""XLA kernels, which emit the HLO of ops; each module is named like that of the declarations in `core.ops`."""

from importlib import import_module
from pkgutil import iter_modules


def load_kernels() -> None:
    """Register all kernels: those of the modules named ``*_ops``."""
    for name in sorted(module.name for module in iter_modules(__path__)):
        if name.endswith("_ops"):
            import_module(f"{__name__}.{name}")
