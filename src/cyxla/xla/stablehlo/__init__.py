"""StableHLO: the text form that other programs write, read into HLO; and HLO written as StableHLO.

`lexer`, `types`, `dense`, `attributes`, `pretty` and `parser` read MLIR into the operations of `syntax`; `context`
turns them into HLO, each by the function that `registry` has for its name. `writer` goes the other way, by the table of
`write_ops`.
"""

from cyxla.xla.stablehlo.reader import is_stablehlo, read_stablehlo
from cyxla.xla.stablehlo.writer import write_stablehlo

__all__ = ["is_stablehlo", "read_stablehlo", "write_stablehlo"]
