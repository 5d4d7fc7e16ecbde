"""StableHLO: the text form that other programs write, read into HLO.

`lexer`, `types`, `dense`, `attributes`, `pretty` and `parser` read MLIR into the operations of `syntax`; `context`
turns them into HLO, each by the function that `registry` has for its name.
"""

from cyxla.xla.stablehlo.reader import is_stablehlo, read_stablehlo

__all__ = ["is_stablehlo", "read_stablehlo"]
