"""StableHLO text: a reader into HLO, and a writer.

`lexer`, `types`, `dense_elements`, `attributes`, `pretty_forms` and `parser` read MLIR into the operations of `syntax`;
`context` lowers them to HLO, each by the function that `registry` has for its name. `writer` does the reverse, by the
table of `write_ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyxla.lazy_attributes import lazy_attributes
from cyxla.xla.stablehlo.detect import is_stablehlo

if TYPE_CHECKING:
    from cyxla.xla.stablehlo.reader import read_stablehlo
    from cyxla.xla.stablehlo.write_ops import write_stablehlo

__all__ = ["is_stablehlo", "read_stablehlo", "write_stablehlo"]
# programs in HLO need neither
__getattr__ = lazy_attributes(__name__, {"read_stablehlo": ".reader", "write_stablehlo": ".write_ops"})
