"""HLO: the program representation, its text and proto forms, and its builder."""

from typing import TYPE_CHECKING, Any

from cyxla.xla.hlo import module_functions
from cyxla.xla.hlo import ops as _ops  # registers every opcode
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule, ModuleConfig, computations_post_order, implement_methods
from cyxla.xla.hlo.opcode import OPCODES, Opcode, Site, complete_attrs, lookup
from cyxla.xla.hlo.shape_inference import infer_from_shapes, infer_shape
from cyxla.xla.hlo.verifier import verify
from cyxla.xla.hlo.visitor import Visitor

if TYPE_CHECKING:
    from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
    from cyxla.xla.hlo.text import parse_module, parse_shape, to_text

__all__ = [
    "OPCODES", "Computation", "HloModule", "Instruction", "ModuleConfig", "Opcode", "Site", "Visitor", "XlaBuilder",
    "XlaComputation", "XlaOp", "complete_attrs", "computations_post_order", "infer_from_shapes", "infer_shape",
    "lookup", "parse_module", "parse_shape", "to_text", "verify",
]  # fmt: skip

_ = _ops
implement_methods(module_functions)
_BUILDER = ("XlaBuilder", "XlaComputation", "XlaOp")
_TEXT = ("parse_module", "parse_shape", "to_text")


def __getattr__(name: str) -> Any:
    # The text form and the builder are imported on first use: most programs need only one of them.
    from importlib import import_module

    if name in _TEXT or name == "text":
        text = import_module("cyxla.xla.hlo.text")
        return text if name == "text" else getattr(text, name)
    if name in _BUILDER or name == "builder":
        builder = import_module("cyxla.xla.hlo.builder")
        return builder if name == "builder" else getattr(builder, name)
    raise AttributeError(f"module 'cyxla.hlo' has no attribute {name!r}")
