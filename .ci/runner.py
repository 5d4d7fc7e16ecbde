"""The scripts beside corpora of recorded cases, as modules."""

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


@cache
def load(path: Path) -> ModuleType:
    """Import a script from where it lies, once in each process."""
    spec = spec_from_file_location("runner", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
