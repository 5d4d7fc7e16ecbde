"""scan: steps beyond the size keep the carries; the sizes of carries, slices and outs are carried beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.dynamic.packing import SIZE, Bounded, Value, dynamic_dims
from cyxla.xla.passes.dynamic.padder import Padder, Sizes, pads, refuse
from cyxla.xla.passes.engine.clone import copy_body

_PRED = Shape.array(ElementType.PRED)


@pads("scan")
def scan(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Scan a mask of the present steps beside the arrays."""
    return _Scan(pad, ins, [pad.array(o) for o in operands]).results()


class _Scan:
    """A scan of padded arrays.

    Its step takes the slice of a mask, if the number of steps is dynamic, then slices, carries, and s32 scalars: the
    sizes of carries and of slices, and the least sizes of outs so far.
    """

    def __init__(self, pad: Padder, ins: Instruction, arrays: Sequence[Bounded]) -> None:
        self.pad, self.ins = pad, ins
        (self.along,), carried = ins.attrs["dimensions"], ins.attrs["num_carries"]
        self.step = ins.called[0]
        split = len(arrays) - carried
        parameters = [p.shape.logical for p in self.step.parameters]
        self.slice_shapes, self.carry_shapes = parameters[:split], parameters[split:]
        root = self.step.root.shape.logical
        shapes = root.elements if root.is_tuple else (root,)
        self.out_shapes = shapes[: len(shapes) - carried]
        self.length = pad.common_size([(x, self.along) for x in arrays[:split]])
        self.scanned = [self._sliced(x, s) for x, s in zip(arrays[:split], self.slice_shapes, strict=True)]
        carries = zip(arrays[split:], self.carry_shapes, strict=True)
        self.carries = [pad.array(pad.conform(x, s, ins)) for x, s in carries]
        self.padded = [x.padded for x in arrays]

    def _sliced(self, x: Bounded, shape: Shape) -> Bounded:
        """Return an array with the sizes of its slices, which have a shape."""
        sizes = {d - (d > self.along): n for d, n in x.sizes.items() if d != self.along}
        if not sizes.keys() <= set(dynamic_dims(shape)):
            refuse(self.ins, f"its step takes {shape}, where the slices have a dynamic size")
        return Bounded(
            x.padded,
            {d: sizes[d] if d in sizes else self.pad.number(shape.dims[d]) for d in dynamic_dims(shape)},
        )

    def results(self) -> Value:
        """Add the scan, and return its results with their sizes."""
        pad, ins = self.pad, self.ins
        starts = [n for x in (*self.carries, *self.scanned) for _, n in sorted(x.sizes.items())]
        starts += [pad.number(s.dims[d]) for s in self.out_shapes for d in dynamic_dims(s)]
        leaves = ins.shape.static.leaves()
        shape = Shape.tuple([*leaves, *[SIZE] * len(starts)]) if starts else ins.shape.static
        attrs: dict[str, Any] = {**ins.attrs, "num_carries": len(self.carries) + len(starts)}
        operands = [*self.padded, *starts]
        if self.length is not None:
            attrs["is_associative"] = False
            operands = [self._mask(self.length), *operands]
        both = pad.computation.add("scan", operands, attrs, shape=shape, called=(self._present_step(),))
        results = list(pad.elements(both)) if shape.is_tuple else [both]
        sizes = iter([pad.anchor(r) for r in results[len(leaves) :]])
        outs, carries = results[: len(self.out_shapes)], results[len(self.out_shapes) : len(leaves)]
        values: list[Value] = [
            Bounded(pad.anchor(r), _named(s, sizes)) for r, s in zip(carries, self.carry_shapes, strict=True)
        ]
        for x in self.scanned:
            _named_dims(x.sizes, sizes)
        values = [
            Bounded(pad.anchor(r), self._stacked(_named(s, sizes))) for r, s in zip(outs, self.out_shapes, strict=True)
        ] + values
        return tuple(values) if ins.shape.is_tuple else values[0]

    def _stacked(self, sizes: Sizes) -> Sizes:
        """Return the sizes of an out with the dimension that is scanned."""
        stacked = {d + (d >= self.along): n for d, n in sizes.items()}
        return stacked if self.length is None else {**stacked, self.along: self.length}

    def _mask(self, length: Instruction) -> Instruction:
        dims = self.padded[0].shape.dims[: self.along + 1]
        sizes = [n if d == self.along else 1 for d, n in enumerate(dims)]
        return self.pad.inside(Shape.array(ElementType.PRED, sizes), self.along, length)

    def _present_step(self) -> Computation:
        shapes = [Shape.array(ElementType.PRED, [1] * self.along)] if self.length is not None else []
        shapes += [p.static for p in (*self.slice_shapes, *self.carry_shapes)]
        count = sum(len(x.sizes) for x in (*self.carries, *self.scanned))
        count += sum(len(dynamic_dims(s)) for s in self.out_shapes)

        def body(c: Computation) -> Instruction:
            every = [*shapes, *[SIZE] * count]
            parts = [c.add("parameter", (), {"parameter_number": n}, shape=s) for n, s in enumerate(every)]
            return self._body(Padder(c, self.pad.rewritten, self.pad.custom_calls), parts)

        return self.pad.function(f"present_{self.step.name}", body)

    def _body(self, pad: Padder, parts: list[Instruction]) -> Instruction:
        present = None
        if self.length is not None:
            present = pad.op("reshape", parts[0], shape=_PRED) if self.along else parts[0]
            parts = parts[1:]
        arrays = len(self.scanned) + len(self.carries)
        values, numbers = parts[:arrays], parts[arrays:]
        sizes = iter(numbers)
        carries = [
            Bounded(v, _named_dims(x.sizes, sizes))
            for v, x in zip(values[len(self.scanned) :], self.carries, strict=True)
        ]
        slices = [
            Bounded(v, _named_dims(x.sizes, sizes))
            for v, x in zip(values[: len(self.scanned)], self.scanned, strict=True)
        ]
        least = [_named(s, sizes) for s in self.out_shapes]
        results = self._results_of_step(pad, [*slices, *carries])
        outs, after = results[: len(self.out_shapes)], results[len(self.out_shapes) :]
        new_sizes = [x.sizes[d] for x in after for d in sorted(x.sizes)]
        new_sizes += [x.sizes[d] for x in slices for d in sorted(x.sizes)]
        new_sizes += [
            pad.integer("minimum", n, x.sizes[d]) for x, old in zip(outs, least, strict=True) for d, n in old.items()
        ]
        kept = [*[x.padded for x in after], *new_sizes]
        if present is not None:
            kept = [
                _chosen(pad, present, new, old)
                for new, old in zip(kept, [*values[len(slices) :], *numbers], strict=True)
            ]
        both = [*[x.padded for x in outs], *kept]
        if len(both) == 1 and not self.step.root.shape.is_tuple:
            return both[0]
        return pad.op("tuple", *both, shape=Shape.tuple([b.shape.logical for b in both]))

    def _results_of_step(self, pad: Padder, values: Sequence[Bounded]) -> list[Bounded]:
        """Call the step in its rewritten form, by a copy of its body."""
        shapes = [*self.slice_shapes, *self.carry_shapes]
        conformed = [pad.conform(v, s, self.ins) for v, s in zip(values, shapes, strict=True)]
        root = copy_body(pad.rewritten.get(self.step, self.step), pad.computation, [pad.pack(v) for v in conformed])
        shape = self.step.root.shape.logical
        value = pad.unpack(root, shape)
        if not shape.is_tuple:
            return [pad.array(value)]
        elements = pad.elements(value)
        if isinstance(value, Instruction) and root.opcode == "tuple":
            elements = root.operands
        return [pad.array(e) for e in elements]


def _named(shape: Shape, sizes: Iterator[Instruction]) -> Sizes:
    """Take as many sizes as a shape has dynamic dimensions."""
    return {d: next(sizes) for d in dynamic_dims(shape)}


def _named_dims(dims: Mapping[int, Any], sizes: Iterator[Instruction]) -> Sizes:
    return {d: next(sizes) for d in sorted(dims)}


def _chosen(pad: Padder, present: Instruction, new: Instruction, old: Instruction) -> Instruction:
    """Return the new value of a carry in a present step, else the old one."""
    mask = pad.broadcast(present, new.shape.with_dtype(ElementType.PRED)) if new.shape.rank else present
    return pad.select(mask, new, old)
