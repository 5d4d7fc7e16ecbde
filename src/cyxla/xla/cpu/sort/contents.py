"""Contents of the results of a sort: elements of operands, or indices."""

from __future__ import annotations

from enum import StrEnum

from cyxla.types import ElementType
from cyxla.xla.cpu.sort.order import Order
from cyxla.xla.hlo import Instruction

_INDEX_TYPES = frozenset({ElementType.S32, ElementType.S64})


class Content(StrEnum):
    """Contents of a result of a sort that moves elements by their indices."""

    ELEMENTS = "elements"
    """Elements of an operand."""
    INDICES = "indices"
    """The indices themselves, since the operand counts the elements of each row."""
    UNUSED = "unused"
    """None: nothing reads the result."""


def contents(ins: Instruction) -> list[Content]:
    """Return the content of each result of a sort."""
    is_read = {u.attrs["index"] for u in ins.users if u.opcode == "get-tuple-element" and (u.users or u.is_root)}
    if ins.is_root or not ins.shape.is_tuple or any(u.opcode != "get-tuple-element" for u in ins.users):
        is_read = set(range(len(ins.operands)))
    return [
        Content.UNUSED if n not in is_read else Content.INDICES if _counts(operand, ins) else Content.ELEMENTS
        for n, operand in enumerate(ins.operands)
    ]


def _counts(operand: Instruction, ins: Instruction) -> bool:
    """Return whether an operand of a sort holds the index of each element in its row."""
    if operand.opcode != "iota" or operand.shape.dtype not in _INDEX_TYPES:
        return False
    return bool(operand.attrs["iota_dimension"] == ins.attrs["dimensions"][0])


def reads_operand(ins: Instruction, position: int) -> bool:
    """Return whether a sort reads an operand: not one that holds indices, if another one has the keys."""
    if not _counts(ins.operands[position], ins) or ins.operands[0].shape.dims[ins.attrs["dimensions"][0]] >= 2**31:
        return True
    order = Order.of(ins.called[0])
    return order is None or order.operand == position
