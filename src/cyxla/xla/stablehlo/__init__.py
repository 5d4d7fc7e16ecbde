"""StableHLO text: a reader into HLO, and a writer.

`lexer`, `types`, `dense_elements`, `attributes`, `pretty_forms` and `parser` read MLIR into the operations of `syntax`;
`context` lowers them to HLO, each by the function that `registry` has for its name. `writer` does the reverse, by the
table of `write_ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyxla.xla.stablehlo.detect import is_stablehlo

if TYPE_CHECKING:
    from cyxla.xla.stablehlo.reader import read_stablehlo
    from cyxla.xla.stablehlo.write_ops import write_stablehlo

__all__ = ["is_stablehlo", "read_stablehlo", "write_stablehlo"]
_MODULES = {"read_stablehlo": "reader", "write_stablehlo": "write_ops"}


def __getattr__(name: str) -> Any:
    """Import reader and writer on first use: programs in HLO do not need them."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
