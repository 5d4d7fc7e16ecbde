"""Index maps and loop bodies that know the ranges of scalars, and conditions that are assumed to hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cyxla.types import ElementType
from cyxla.types.dtype import Kind
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.loops.index_map import Affine, Condition, Index, Loop, Runtime, Space
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.nodes import Apply, Constant, External, Guard, IndexValue, Node
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.simplify.index_ranges import IndexRanges, Range, constant, limits, linear

_FAR = 1 << 62  # elements, beyond all arrays
_MAX_DEPTH = 12  # operations followed from an index to its scalars
_MAX_RANGE = 1 << 40  # scalars of a wider range are no parts of an index


class ScalarAtom(Runtime):
    """Scalar of known range, in a local; it needs no clamp."""

    __slots__ = ()


class NestSpace(Space):
    """Iteration space of a statement, under conditions that are assumed to hold."""

    def __init__(self, extents: Sequence[int]) -> None:
        super().__init__(extents)
        self.assumed: list[Condition] = []

    def scalar_of(self, node: Node, found: Range) -> Affine:
        """Return the form of a scalar with a range."""
        if found[0] == found[1]:
            return Affine(found[0])
        key = (ScalarAtom, node)
        atom = self._derived.get(key) or self._derive(key, ScalarAtom(self._next(), found[0], found[1], node))
        return Affine(0, ((atom, 1),))

    def decided(self, condition: Condition) -> bool | None:
        """Return True or False if a condition is known to hold, or not to, else None."""
        known = condition.decided
        if known is not None or not self.assumed:
            return known
        low, high = condition.form.low, condition.form.high
        for assumed in self.assumed:
            for sign in (1, -1):
                gap = self.combine(((condition.form, 1), (assumed.form, -sign)))
                ends = sorted((sign * assumed.low, sign * assumed.high))
                low, high = max(low, ends[0] + gap.low), min(high, ends[1] + gap.high)
        if condition.low <= low and high <= condition.high:
            return True
        return False if high < condition.low or low > condition.high else None


class NestBody(Body):
    """Loop body whose indices know the ranges of scalars; comparisons that these decide are constants.

    Parameters
    ----------
    space, fused, reads, externals
        See `Body`.
    ranges : IndexRanges
        Ranges of scalars.
    """

    space: NestSpace

    def __init__(
        self,
        space: NestSpace,
        fused: Mapping[Instruction, int],
        reads: Reads,
        externals: dict[Value, Callable[[Index], Node]],
        ranges: IndexRanges,
    ) -> None:
        super().__init__(space, fused, reads, externals)
        self._ranges = ranges
        self._values: dict[Node, Any] = {}

    def know(self, known: Mapping[Value, Callable[[Index], Node]], instructions: set[Instruction]) -> None:
        """Set the values that are computed elsewhere, and the instructions that they belong to; both may grow."""
        self._externals, self._external_instructions = known, instructions  # type: ignore[assignment]

    def constant(self, dtype: ElementType, value: Any) -> Node:
        """Return the constant of a value, which is remembered."""
        node = super().constant(dtype, value)
        self._values[node] = value
        return node

    def value_of(self, node: Node) -> Any:
        """Return the value of a constant; None for other nodes."""
        return self._values.get(node)

    def assume(self, conditions: Sequence[Condition]) -> None:
        """Assume conditions in all that is lowered from now on."""
        self.space.assumed += conditions
        self._lowered.clear()

    # ------------------------------------------------------------------------------------------------ indices
    def clamp_start(self, node: Node, high: int) -> Affine:
        """Return the form of a start index, without a clamp if it is known to be in bounds."""
        form = self.affine(node)
        if form is not None and form.low >= 0 and form.high <= high:
            return form
        if form is not None and self.space.decided(Condition(form, 0, high)):
            return form
        return super().clamp_start(node, high)

    def affine(self, node: Node, depth: int = _MAX_DEPTH) -> Affine | None:
        """Return the form of an integer; None if it is not affine in loops and scalars of known range."""
        if isinstance(node, IndexValue):
            return node.form if _fits(node.form, node.dtype) else None
        if isinstance(node, Constant):
            value = self._integers.get(node)
            return None if value is None else Affine(value)
        if isinstance(node, External) and isinstance(node.key, Value):
            return self._scalar(node.key)
        if not isinstance(node, Apply) or depth == 0 or not node.dtype.is_integer:
            return None
        return self._combined(node, depth - 1)

    def _scalar(self, value: Value) -> Affine | None:
        """Return the form of a scalar, in terms of those that it is a sum of."""
        if not value.index:
            sum_ = linear(value.instruction, self._ranges)
            parts = [(Affine(sum_.constant), 1)]
            for ins, factor in sum_.terms:
                part = self._base(resolve(ins))
                if part is None:
                    break
                parts.append((part, factor))
            else:
                return self.space.combine(parts)
        return self._base(value)

    def _range(self, value: Value) -> Range | None:
        if value.index:
            return self._ranges.element(value.instruction, value.index[0]) if len(value.index) == 1 else None
        return self._ranges.of(value.instruction)

    def _base(self, value: Value) -> Affine | None:
        found = self._range(value)
        if found is None or found[1] - found[0] > _MAX_RANGE or value not in self._externals:
            return None
        return self.space.scalar_of(self.external(value.shape.dtype, value), found)

    def _combined(self, node: Apply, depth: int) -> Affine | None:
        if node.opcode not in ("add", "subtract", "multiply", "negate", "convert"):
            return None
        if not node.operands[0].dtype.is_integer:
            return None
        forms = [self.affine(o, depth) for o in node.operands]
        if any(f is None for f in forms):
            return None
        form = self._sum(node.opcode, forms)  # type: ignore[arg-type]
        return form if form is not None and _fits(form, node.dtype) else None

    def _sum(self, opcode: str, forms: Sequence[Affine]) -> Affine | None:
        if opcode == "multiply":
            first, second = forms if forms[1].is_constant else forms[::-1]
            return self.space.combine(((first, second.constant),)) if second.is_constant else None
        if opcode == "negate":
            return forms[0].scale(-1)
        if opcode == "convert":
            return forms[0]
        return self.space.combine(((forms[0], 1), (forms[1], 1 if opcode == "add" else -1)))

    # ------------------------------------------------------------------------------------------------ choices
    def apply(self, ins: Instruction, operands: tuple[Node, ...]) -> Node:
        """Return an element-wise opcode of some operands, or what it is known to be."""
        if ins.opcode == "compare":
            return self._compare(ins, operands)
        if ins.opcode == "select":
            chosen = self._select(*operands)
            if chosen is not None:
                return chosen
        if ins.opcode in ("and", "or") and ins.shape.dtype.kind is Kind.PRED:
            neutral = ins.opcode == "and"
            for node, other in (operands, operands[::-1]):
                value = self.value_of(node)
                if value is not None:
                    return other if bool(value) is neutral else node
        if ins.opcode == "not" and ins.shape.dtype.kind is Kind.PRED and self.value_of(operands[0]) is not None:
            return self.constant(ElementType.PRED, not self.value_of(operands[0]))
        return super().apply(ins, operands)

    def _compare(self, ins: Instruction, operands: tuple[Node, ...]) -> Node:
        node = super().apply(ins, operands)
        condition = self.condition(node)
        decided = None if condition is None else self.space.decided(condition)
        return node if decided is None else self.constant(ElementType.PRED, decided)

    def _select(self, predicate: Node, inside: Node, outside: Node) -> Node | None:
        value = self.value_of(predicate)
        if value is not None:
            return inside if value else outside
        if inside is outside:
            return inside
        if isinstance(predicate, Guard):  # of constants, as the padding of a constant mask is
            first, second = (self.value_of(o) for o in predicate.operands)
            if first is not None and second is not None and bool(first) != bool(second):
                chosen = (inside, outside) if first else (outside, inside)
                return self.guard(predicate.conditions, *chosen)
        return None

    def guard(self, conditions: tuple[Condition, ...], inside: Node, outside: Node) -> Node:
        """Return one node where the conditions hold, and the other elsewhere."""
        decided = [self.space.decided(c) for c in conditions]
        if any(d is False for d in decided):
            return outside
        open_ = tuple(c for c, d in zip(conditions, decided, strict=True) if d is None)
        return super().guard(open_, inside, outside) if open_ and inside is not outside else inside

    def condition(self, node: Node) -> Condition | None:
        """Return the condition on indices that a comparison of integers is; None for other nodes."""
        if not isinstance(node, Apply) or node.opcode != "compare" or not node.operands[0].dtype.is_integer:
            return None
        left, right = (self.affine(o) for o in node.operands)
        if left is None or right is None:
            return None
        if str(node.instruction.attrs["direction"]) == "LT" and left.low >= 0:
            right = self._above_zero(node.operands[1]) or right  # k < max(n, 0) is k < n
        form = self.space.combine(((left, 1), (right, -1)))
        low, high = {
            "LT": (-_FAR, -1), "LE": (-_FAR, 0), "GT": (1, _FAR), "GE": (0, _FAR), "EQ": (0, 0), "NE": (1, 0),
        }[str(node.instruction.attrs["direction"])]  # fmt: skip
        return Condition(form, low, high) if low <= high else None

    def _above_zero(self, node: Node) -> Affine | None:
        """Return the form of which a scalar is the maximum with zero; None for other scalars."""
        if not isinstance(node, External) or not isinstance(node.key, Value) or node.key.index:
            return None
        ins = node.key.instruction
        if ins.opcode != "maximum":
            return None
        for value, other in (ins.operands, ins.operands[::-1]):
            if constant(other) == 0 and value in self._ranges.ranges:
                return self._scalar(resolve(value))
        return None

    def conditions(self, node: Node) -> tuple[list[Condition], bool]:
        """Return the conditions on indices that a predicate implies, and whether it holds wherever they do."""
        value = self.value_of(node)
        if value is not None:
            return [], bool(value)
        if isinstance(node, Apply) and node.opcode == "and":
            parts = [self.conditions(o) for o in node.operands]
            return [c for found, _ in parts for c in found], all(complete for _, complete in parts)
        if isinstance(node, Guard) and self.value_of(node.operands[0]) and self.value_of(node.operands[1]) is not None:
            return (list(node.conditions), True) if not self.value_of(node.operands[1]) else ([], False)
        single = self.condition(node)
        return ([], False) if single is None else ([single], True)


def loop_atoms(form: Affine) -> list[tuple[Loop, int]]:
    """Return the loops of a form, with their coefficients."""
    return [(a, c) for a, c in form.terms if isinstance(a, Loop)]


def _fits(form: Affine, dtype: ElementType) -> bool:
    bounds = limits(dtype)
    return bounds is not None and bounds[0] <= form.low and form.high <= bounds[1]
