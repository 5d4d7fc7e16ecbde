"""cyxla: an array compiler for CPUs that reads like XLA.

`compile` turns an HLO program into something to call with NumPy arrays; `XlaBuilder` writes programs; `hlo` reads,
prints and checks them. Names are imported when first used, so that ``import cyxla`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyxla import errors
    from cyxla.api import compile
    from cyxla.errors import Error, OpError
    from cyxla.include_dir import get_include
    from cyxla.types import ElementType, Literal, Shape
    from cyxla.xla import hlo
    from cyxla.xla.client import LocalClient, LocalExecutable
    from cyxla.xla.cpu.native import threads
    from cyxla.xla.evaluator import register_custom_call
    from cyxla.xla.hlo import XlaBuilder, XlaComputation, XlaOp
    from cyxla.xla.service import Executable

__version__ = "0.1.0"

__all__ = [
    "ElementType", "Error", "Executable", "Literal", "LocalClient", "LocalExecutable", "OpError", "Shape", "XlaBuilder",
    "XlaComputation", "XlaOp", "__version__", "compile", "errors", "get_include", "hlo", "register_custom_call",
    "threads",
]  # fmt: skip

_HOME = {
    "ElementType": "cyxla.types", "Error": "cyxla.errors", "Executable": "cyxla.xla.service", "Literal": "cyxla.types",
    "LocalClient": "cyxla.xla.client", "LocalExecutable": "cyxla.xla.client", "OpError": "cyxla.errors",
    "Shape": "cyxla.types", "XlaBuilder": "cyxla.xla.hlo", "XlaComputation": "cyxla.xla.hlo", "XlaOp": "cyxla.xla.hlo",
    "compile": "cyxla.api", "get_include": "cyxla.include_dir", "register_custom_call": "cyxla.xla.evaluator",
    "threads": "cyxla.xla.cpu.native",
}  # fmt: skip
_MODULES = {"errors": "cyxla.errors", "hlo": "cyxla.xla.hlo"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(_MODULES[name])
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'cyxla' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
