"""Straight-line C of computations over scalars, which reduce, sort, scatter and map apply to elements."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.errors import UnimplementedError
from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.hlo import Computation, Instruction

_ALWAYS_SUPPORTED = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "iota"})
# Opcodes that return their first operand: data movement is the identity on scalars.
_IDENTITIES = frozenset({
    "copy", "opt-barrier", "bitcast", "reshape", "broadcast", "transpose", "reverse", "slice", "add-dependency",
    "domain", "copy-start", "copy-done",
})  # fmt: skip
# Opcodes whose result elements are elements of their operands, possibly converted to another integer type.
_FORWARDING = _IDENTITIES | {
    "convert", "select", "clamp", "maximum", "minimum", "concatenate", "pad", "dynamic-slice", "gather",
    "dynamic-update-slice",
}  # fmt: skip
_CALLS = frozenset({"call", "fusion", "map"})
_Value = str | tuple["_Value", ...]


def inline(computation: Computation, operands: Sequence[str], writer: CWriter) -> list[str]:
    """Emit the instructions of a scalar computation as locals.

    Parameters
    ----------
    computation : Computation
        Computation of element-wise opcodes on scalars, constants, tuples and calls of such computations.
    operands : sequence of str
        C expression of each parameter (of each leaf, where a parameter is a tuple), in register types.
    writer : CWriter
        Writer of the locals.

    Returns
    -------
    list of str
        C expression of each leaf of the result, in register types.
    """
    return _flatten(_Inliner(writer).run(computation, _parameters(computation, operands)))


def inline_subgraph(root: Instruction, operands: Sequence[str], writer: CWriter) -> list[str]:
    """Emit one instruction of a scalar computation with all it depends on; parameters are those of `inline`."""
    computation = root.computation
    return _flatten(_Inliner(writer).run(computation, _parameters(computation, operands), root))


def unsupported_reason(computation: Computation) -> str | None:
    """Return the reason why a computation cannot be inlined; None if it can."""
    stack, seen = [computation], {computation}
    while stack:
        for ins in stack.pop().post_order():
            reason = _reason(ins)
            if reason is not None:
                return reason
            new = [c for c in ins.called if c not in seen]
            seen.update(new)
            stack += new
    return None


def expression(ins: Instruction, result: ElementType, operands: Sequence[ElementType], values: Sequence[str]) -> str:
    """Return the C expression of an element of an instruction; parameters are those of `c.scalar.expression`.

    gcc folds a conversion of a float to an integer and back into one truncation, which keeps the sign of zero: -0.3
    would become -0 instead of 0.
    """
    if ins.opcode != "convert" or not operands[0].is_integer or not _may_come_from_float(ins.operands[0]):
        return scalar.expression(ins.opcode, result, operands, ins.attrs, values)
    part = result.real_part
    text = scalar.expression(ins.opcode, part, operands, ins.attrs, values)
    if part.is_float:
        text = f"cyx_unsigned_zero_{'f64' if part is ElementType.F64 else 'f32'}({text})"
    return f"cyx_{result}_of({text}, 0)" if result.is_complex else text


def _may_come_from_float(integer: Instruction) -> bool:
    """Return whether the elements of an integer may have been converted from a float."""
    seen, stack = {integer}, [integer]
    while stack:
        ins = stack.pop()
        if ins.opcode == "convert" and ins.operands[0].shape.dtype.real_part.is_float:
            return True
        if ins.opcode in _FORWARDING:
            new = [o for o in ins.operands if o not in seen and o.shape.is_array and o.shape.dtype.is_integer]
            seen.update(new)
            stack += new
    return False


def _reason(ins: Instruction) -> str | None:
    if ins.opcode in _ALWAYS_SUPPORTED or ins.opcode in _IDENTITIES or ins.opcode in _CALLS:
        scalars = all(s.size == 1 for s in ins.shape.leaves())
        return None if scalars else f"{ins.opcode} of {ins.shape} in a scalar computation"
    types = [o.shape.dtype for o in ins.operands]
    if (
        ins.shape.is_array
        and ins.shape.size == 1
        and scalar.is_supported(ins.opcode, ins.shape.dtype, types, ins.attrs)
    ):
        return None
    return f"{ins.opcode} to {ins.shape} in a scalar computation"


def _dependencies(root: Instruction) -> set[Instruction]:
    stack, seen = [root], {root}
    while stack:
        new = [o for o in stack.pop().operands if o not in seen]
        seen.update(new)
        stack += new
    return seen


def _parameters(computation: Computation, operands: Sequence[str]) -> list[_Value]:
    rest = list(operands)
    values = []
    for p in computation.parameters:
        count = len(p.shape.leaves())
        leaves, rest = rest[:count], rest[count:]
        values.append(leaves[0] if not p.shape.is_tuple else _nest(p, leaves))
    return values


def _nest(ins: Instruction, leaves: list[str]) -> _Value:
    if any(e.is_tuple for e in ins.shape.elements):
        raise UnimplementedError("a scalar computation cannot have a nested tuple as parameter", where=repr(ins))
    return tuple(leaves)


def _flatten(value: _Value) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [leaf for part in value for leaf in _flatten(part)]


@dataclass
class _Inliner:
    writer: CWriter

    def run(self, computation: Computation, parameters: Sequence[_Value], root: Instruction | None = None) -> _Value:
        values: dict[Instruction, _Value] = {}
        needed = _dependencies(root) if root is not None else None
        for ins in computation.post_order():
            if needed is None or ins in needed:
                values[ins] = self.value(ins, [values[o] for o in ins.operands], parameters)
        return values[root if root is not None else computation.root]

    def value(self, ins: Instruction, operands: list[_Value], parameters: Sequence[_Value]) -> _Value:
        opcode = ins.opcode
        if opcode == "parameter":
            return parameters[int(ins.attrs["parameter_number"])]
        if opcode == "tuple":
            return tuple(operands)
        if opcode == "get-tuple-element":
            return operands[0][ins.attrs["index"]]
        if opcode in _IDENTITIES:
            return operands[0]
        if opcode in _CALLS:
            return self.run(ins.called[0], operands)  # recursion as deep as calls nest
        return self.writer.local(scalar.local_type(ins.shape.dtype), self.expression(ins, operands))

    def expression(self, ins: Instruction, operands: list[_Value]) -> str:
        dtype: ElementType = ins.shape.dtype
        if ins.opcode == "constant":
            return scalar.literal(dtype, ins.attrs["literal"].array.reshape(())[()])
        if ins.opcode == "iota":
            return scalar.literal(dtype, dtype.numpy_dtype.type(0))  # type: ignore[union-attr]
        types = [o.shape.dtype for o in ins.operands]
        return expression(ins, dtype, types, [str(o) for o in operands])
