"""Builder of padded arrays, and the table of rules by opcode."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeAlias

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.attributes import WindowDim
from cyxla.xla.passes.dynamic.packing import SIZE, Bounded, Value, dynamic_dims, packed_shape
from cyxla.xla.passes.engine.clone import copy_instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer

_S32: Final = ElementType.S32
Sizes: TypeAlias = dict[int, Instruction]


class Padder(Writer):
    """Builder of one computation without dynamic dimensions.

    Parameters
    ----------
    computation : Computation
        Computation to fill.
    rewritten : mapping of Computation to Computation
        Rewritten forms of called computations.
    custom_calls : container of str
        Targets of custom calls that are the caller's own.
    """

    def __init__(
        self,
        computation: Computation,
        rewritten: Mapping[Computation, Computation],
        custom_calls: Container[str] = (),
    ) -> None:
        super().__init__(computation)
        self.rewritten = rewritten
        self.custom_calls = custom_calls
        self._bounds: dict[Instruction, int] = {}
        self._clamped: dict[tuple[Instruction, int], Instruction] = {}

    def copy(
        self,
        ins: Instruction,
        operands: Sequence[Instruction],
        shape: Shape | None = None,
        called: Sequence[Computation] | None = None,
    ) -> Instruction:
        """Copy an instruction, by default with its bounds as static sizes."""
        called = [self.rewritten.get(c, c) for c in ins.called] if called is None else called
        return copy_instruction(
            ins, self.computation, operands, called=called, shape=ins.shape.static if shape is None else shape
        )

    # --- values ---

    def pack(self, value: Value) -> Instruction:
        """Return a value as one instruction."""
        if isinstance(value, Instruction):
            return value
        if isinstance(value, Bounded):
            parts = [value.padded, *(value.sizes[d] for d in sorted(value.sizes))]
        else:
            parts = [self.pack(v) for v in value]
        return self.op("tuple", *parts, shape=Shape.tuple([p.shape.logical for p in parts]))

    def unpack(self, packed: Instruction, shape: Shape) -> Value:
        """Return the value that `pack` has made one instruction; `shape` is the one with dynamic dimensions."""
        if not shape.is_dynamic:
            return packed
        parts = packed_shape(shape).elements
        elements = [self.op("get-tuple-element", packed, shape=part, index=k) for k, part in enumerate(parts)]
        if shape.is_tuple:
            return tuple([self.unpack(e, s) for e, s in zip(elements, shape.elements, strict=True)])
        sizes = dict(zip(dynamic_dims(shape), elements[1:], strict=True))
        self._bounds.update((size, shape.dims[d]) for d, size in sizes.items())
        return Bounded(elements[0], sizes)

    def conform(self, value: Value, shape: Shape, ins: Instruction) -> Value:
        """Return a value with a size for each dimension that `shape` states as dynamic; `ins` is for errors."""
        if shape.is_tuple:
            if not shape.is_dynamic and isinstance(value, Instruction):
                return value
            return tuple([self.conform(v, s, ins) for v, s in zip(self.elements(value), shape.elements, strict=True)])
        if not shape.is_array:
            return value
        array = self.array(value)
        stated = dynamic_dims(shape)
        for d in array.sizes:
            if d not in stated:
                refuse(ins, f"its stated result {shape} has a static dimension {d}, whose size is dynamic")
        if not stated:
            return array.padded
        return Bounded(array.padded, {d: self.size(array, d) for d in stated}, array.written)

    def elements(self, value: Value) -> tuple[Value, ...]:
        """Return the elements of a tuple."""
        if isinstance(value, tuple):
            return value
        assert isinstance(value, Instruction)
        return tuple(
            self.op("get-tuple-element", value, shape=s, index=k) for k, s in enumerate(value.shape.logical.elements)
        )

    def array(self, value: Value) -> Bounded:
        """Return an array as one that may be bounded."""
        assert not isinstance(value, tuple)
        return value if isinstance(value, Bounded) else Bounded(value, {})

    def anchor(self, value: Value) -> Instruction:
        """Return an instruction that must run for a value to exist."""
        if isinstance(value, Instruction):
            return value
        return value.padded if isinstance(value, Bounded) else self.pack(value)

    # --- sizes ---

    def number(self, value: int) -> Instruction:
        """Add an s32 constant."""
        return self.constant(value, _S32)

    def integer(self, opcode: str, x: Instruction, y: Instruction | int) -> Instruction:
        """Add an operation of two s32 values; a number is broadcast to the first."""
        if isinstance(y, int):
            y = self.full(y, x.shape)
        return self.op(opcode, x, self.broadcast(y, x.shape))

    def size(self, x: Bounded, d: int) -> Instruction:
        """Return the present size of a dimension."""
        return x.sizes[d] if d in x.sizes else self.number(x.padded.shape.dims[d])

    def common_size(self, arrays: Sequence[tuple[Bounded, int]]) -> Instruction | None:
        """Return the least present size of dimensions with one bound; None if all are static."""
        least: Instruction | None = None
        for x, d in arrays:
            size = x.sizes.get(d)
            if size is not None and size is not least:
                least = size if least is None else self.integer("minimum", least, size)
        return least

    def common_sizes(self, arrays: Sequence[Bounded]) -> Sizes:
        """Return the least present sizes of arrays of equal bounds."""
        rank = arrays[0].padded.shape.rank if arrays else 0
        least = {d: self.common_size([(x, d) for x in arrays]) for d in range(rank)}
        return {d: size for d, size in least.items() if size is not None}

    def clamped(self, size: Instruction, bound: int) -> Instruction:
        """Clamp a size to 0..bound; one that is known to be in this range stays the same instruction."""
        if self._bounds.get(size, bound + 1) <= bound:
            return size
        if (size, bound) not in self._clamped:
            clamped = self.op("clamp", self.number(0), size, self.number(bound), shape=SIZE)
            self._bounds[clamped], self._clamped[size, bound] = bound, clamped
        return self._clamped[size, bound]

    def dilated(self, size: Instruction, dilation: int) -> Instruction:
        """Return a size with `dilation` - 1 holes between elements."""
        if dilation == 1:
            return size
        reach = self.integer("multiply", self.integer("subtract", size, 1), dilation)
        return self.integer("maximum", self.integer("add", reach, 1), 0)

    def window_count(self, size: Instruction, window: WindowDim) -> Instruction:
        """Return the number of positions of a window along a dimension."""
        reach = (window.size - 1) * window.window_dilation + 1
        surplus = window.padding_low + window.padding_high - reach + window.stride
        room = self.integer("add", self.dilated(size, window.base_dilation), surplus)
        return self.integer("divide", self.integer("maximum", room, 0), window.stride)

    # --- masks ---

    def inside(self, shape: Shape, d: int, size: Instruction) -> Instruction:
        """Return the mask of the elements below a size of one dimension."""
        index = self.iota(shape.static.with_dtype(_S32), d)
        return self.compare("LT", index, self.broadcast(size, index.shape))

    def masked(self, x: Bounded, dims: Sequence[int], filler: Instruction) -> Instruction:
        """Replace elements beyond the sizes of some dimensions by a scalar."""
        padded = x.padded
        for d in dims:
            if d in x.sizes:
                inside = self.inside(padded.shape, d, x.sizes[d])
                padded = self.select(inside, padded, self.broadcast(filler, padded.shape))
        return padded

    def zero_extended(self, x: Bounded, dims: Sequence[int]) -> Bounded:
        """Make some dimensions static, with zeros beyond their sizes."""
        if not any(d in x.sizes for d in dims):
            return x
        zero = self.constant(0, x.padded.shape.dtype)
        return Bounded(self.masked(x, dims, zero), {d: n for d, n in x.sizes.items() if d not in dims})


def refuse(ins: Instruction, reason: str) -> NoReturn:
    """Raise for an instruction that cannot have dynamic dimensions here."""
    raise UnimplementedError(
        f"no native code for {ins.opcode} with dynamic dimensions: {reason}",
        where=f"{ins!r} of computation {ins.computation.name}",
        hint='run it with platform="interpreter"',
    )


Rule: TypeAlias = Callable[..., Value]  # (padder, instruction, *operands) -> Value
RULES: Final[dict[str, Rule]] = {}


def pads(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register the rule of opcodes: a function of padder, instruction and values of operands."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(opcodes, rule))
        return rule

    return register


def moved(sizes: Mapping[int, Any], dims: Sequence[int]) -> dict[int, Any]:
    """Return the sizes of the dimensions `dims`, numbered by their positions in `dims`."""
    return {k: sizes[d] for k, d in enumerate(dims) if d in sizes}
