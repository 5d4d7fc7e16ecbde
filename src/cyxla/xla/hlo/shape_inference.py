"""Result shapes: a pure function of opcode, operand shapes, attributes and called computations.

Opcodes whose operands do not determine the result (`parameter`, `reshape`, `broadcast`, `convert`, `custom-call` ..)
take the shape that the program states as `declared` and check it; the others ignore it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cyxla.errors import DTypeError
from cyxla.types import Shape
from cyxla.xla.hlo.opcode import ANY, Opcode, Site, complete_attrs, lookup

if TYPE_CHECKING:
    from cyxla.xla.hlo.computation import Computation
    from cyxla.xla.hlo.instruction import Instruction


def infer_shape(
    opcode: str,
    operands: Sequence[Instruction],
    attrs: Mapping[str, Any] | None = None,
    called: Sequence[Computation] = (),
    declared: Shape | None = None,
    extras: Mapping[str, Any] | None = None,
) -> Shape:
    """Return the result shape, without layouts, of an operation on instructions.

    Parameters
    ----------
    opcode : str
        HLO spelling.
    operands : sequence of Instruction
        The operands in order.
    attrs : mapping, optional
        Attributes; defaults are filled in.
    called : sequence of Computation
        Called computations in the order of the opcode's `calls`.
    declared : Shape, optional
        The result shape that the program states.
    extras : mapping, optional
        Attributes that any instruction may carry, such as backend_config.

    Returns
    -------
    Shape
        Without layouts.

    Raises
    ------
    ShapeError, DTypeError
        A constraint of the opcode does not hold; `rule` names it.
    NotFoundError
        The opcode is unknown.
    """
    return infer_from_shapes(opcode, [o.shape for o in operands], attrs, called, declared, extras)


def infer_from_shapes(
    opcode: str,
    operands: Sequence[Shape],
    attrs: Mapping[str, Any] | None = None,
    called: Sequence[Computation] = (),
    declared: Shape | None = None,
    extras: Mapping[str, Any] | None = None,
) -> Shape:
    """Return the result shape of an operation from the shapes of its operands; see `infer_shape`."""
    row = lookup(opcode)
    shapes = tuple(s.logical for s in operands)
    stated = declared.logical if declared is not None else None
    complete = complete_attrs(row, attrs or {}, shapes)
    return _apply(row, Site(row.name, shapes, complete, tuple(called), stated, extras))


def infer_instruction(ins: Instruction) -> Shape:
    """Return the shape that an instruction should have."""
    row = lookup(ins.opcode)
    shapes = tuple([o.shape.logical for o in ins.operands])
    site = Site(ins.opcode, shapes, ins.attrs, ins.called, ins.shape.logical, ins.extras)
    return _apply(row, site)


def _apply(row: Opcode, site: Site) -> Shape:
    operands, (least, most) = site.operands, row.arity
    n = len(operands)
    if n < least or (most is not None and n > most):
        site.require(False, "arity", f"{n} operands, but it takes {_count(least, most)}")
    if len(site.called) != len(row.calls) and not row.many_calls:
        site.require(False, "calls", f"{len(site.called)} called computations instead of {len(row.calls)}")
    if n and row.accepts is not ANY and operands[0].dtype not in row.accepts:
        site.require(
            False, "types", f"operand 0 is {operands[0]}: element type {operands[0].dtype} is not accepted", DTypeError
        )
    return row.infer(site)


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least}"
    return str(least) if least == most else f"{least} to {most}"
