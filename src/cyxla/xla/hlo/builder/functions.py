"""One function for each opcode, under its own name and XLA's.

A function has the name of its opcode with underscores for dashes, and a trailing one if the name is a keyword or
builtin of Python (`not_`, `while_`, `tuple_`). XLA's names (`Add`, `ConvGeneralDilated`) are attributes too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cyxla.xla.hlo.builder import contraction, data_movement, effects, elementwise, functional
from cyxla.xla.hlo.builder.contraction import *  # noqa: F403
from cyxla.xla.hlo.builder.data_movement import *  # noqa: F403
from cyxla.xla.hlo.builder.effects import *  # noqa: F403
from cyxla.xla.hlo.builder.elementwise import *  # noqa: F403
from cyxla.xla.hlo.builder.elementwise import python_name
from cyxla.xla.hlo.builder.functional import *  # noqa: F403
from cyxla.xla.hlo.builder.operators import FUNCTIONS
from cyxla.xla.hlo.builder.xla_builder import XlaOp, deferred
from cyxla.xla.hlo.opcode import OPCODES, Opcode

_MODULES = (elementwise, data_movement, contraction, functional, effects)
_GENERATED: Final[dict[str, Callable[..., XlaOp]]] = {}

# fmt: off
_ALIASES: Final = {  # XLA's functions without an opcode, and further names of one
    "BroadcastInDim": "broadcast_in_dim", "Collapse": "collapse", "Conv": "conv", "ConvGeneral": "conv",
    "ConvWithGeneralPadding": "conv", "ConvGeneralDilated": "conv_general_dilated", "CreateToken": "after_all",
    "CrossReplicaSum": "cross_replica_sum", "DotGeneral": "dot_general", "Eq": "eq", "EqTotalOrder": "eq_total_order",
    "Ge": "ge", "GeTotalOrder": "ge_total_order", "Gt": "gt", "GtTotalOrder": "gt_total_order", "Le": "le",
    "LeTotalOrder": "le_total_order", "Lt": "lt", "LtTotalOrder": "lt_total_order", "Ne": "ne",
    "NeTotalOrder": "ne_total_order", "PadInDim": "pad_in_dim", "ReduceAll": "reduce_all",
    "ReduceWindowWithGeneralPadding": "reduce_window", "RngNormal": "rng_normal", "RngUniform": "rng_uniform",
    "SelectAndScatterWithGeneralPadding": "select_and_scatter", "SliceInDim": "slice_in_dim",
}
# fmt: on


def function_of(opcode: str) -> Callable[..., XlaOp]:
    """Return the function that creates an opcode's instructions.

    Raises
    ------
    AttributeError
        The opcode has no function.
    """
    name = python_name(opcode)
    return _find_function(name) or __getattr__(name)


def _find_function(name: str) -> Callable[..., XlaOp] | None:
    function: Callable[..., XlaOp] | None = next((getattr(m, name) for m in _MODULES if hasattr(m, name)), None)
    return function or _GENERATED.get(name)


def _from_row(row: Opcode) -> Callable[..., XlaOp]:
    """Return a function of operands, and of attributes by name, for an opcode without a function of its own."""

    def build_op(operand: XlaOp, *operands: XlaOp, **attrs: Any) -> XlaOp:
        return operand.builder.add(row.name, [operand, *operands], attrs)

    build_op.__name__ = build_op.__qualname__ = python_name(row.name)
    build_op.__doc__ = f"`{row.name}` of operands, with its attributes by name."
    return deferred(build_op)


def __getattr__(name: str) -> Callable[..., XlaOp]:
    function = _GENERATED.get(name) or _find_function(XLA_NAMES.get(name, ""))
    if function is None:
        raise AttributeError(f"no builder function {name!r}")
    return function


for _row in OPCODES.values():
    if _find_function(python_name(_row.name)) is None and _row.arity[0] and not _row.calls:
        _GENERATED[python_name(_row.name)] = _from_row(_row)
#: Functions by XLA's names for them.
XLA_NAMES: Final = {
    row.xla: python_name(row.name) for row in OPCODES.values() if _find_function(python_name(row.name)) is not None
} | _ALIASES
FUNCTIONS.update(_GENERATED, **{name: value for name, value in globals().items() if callable(value)})
