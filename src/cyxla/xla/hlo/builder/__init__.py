"""Construction of HLO from Python: `XlaBuilder`, `XlaOp`, `XlaComputation`, and a function for each opcode."""

from cyxla.xla.hlo.builder import functions
from cyxla.xla.hlo.builder.computation import ProgramShape, XlaComputation, copy_computations, copy_module
from cyxla.xla.hlo.builder.functional import scalar_computation
from cyxla.xla.hlo.builder.xla_builder import XlaBuilder, XlaOp

__all__ = [
    "ProgramShape", "XlaBuilder", "XlaComputation", "XlaOp", "copy_computations", "copy_module", "functions",
    "scalar_computation",
]  # fmt: skip
