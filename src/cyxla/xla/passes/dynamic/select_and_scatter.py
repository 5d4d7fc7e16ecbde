"""select-and-scatter, as a window reduction that chooses among present elements, and a scatter."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.dynamic.packing import SIZE, Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, Sizes, pads, refuse
from cyxla.xla.passes.engine.clone import copy_body

_PRED = Shape.array(ElementType.PRED)
_MAX_S32 = 2**31 - 1


@pads("select-and-scatter")
def select_and_scatter(pad: Padder, ins: Instruction, operand: Value, source: Value, init: Value) -> Value:
    """Choose an element of each window by its number, and scatter the source to these."""
    x, updates, shape = pad.array(operand), pad.array(source), ins.shape.static
    if shape.size > _MAX_S32:
        refuse(ins, f"its operand has more than {_MAX_S32} elements")
    flat, count = shape.with_dims([shape.size]), updates.padded.shape.size
    target = pad.reshape(_chosen(pad, ins, x, updates), [count, 1])
    scattered = pad.computation.add(
        "scatter",
        (pad.broadcast(pad.anchor(init), flat), target, pad.reshape(updates.padded, [count])),
        {
            "update_window_dims": (),
            "inserted_window_dims": (0,),
            "scatter_dims_to_operand_dims": (0,),
            "index_vector_dim": 1,
        },
        shape=flat,
        called=(ins.called[1],),
    )
    return Bounded(pad.reshape(scattered, shape.dims), x.sizes)


def _chosen(pad: Padder, ins: Instruction, x: Bounded, updates: Bounded) -> Instruction:
    """Return for each window the number of the chosen element; -1, which is out of bounds, where there is none."""
    shape, window = x.padded.shape, ins.attrs["window"]
    numbers = pad.reshape(pad.iota(Shape.array(ElementType.S32, [shape.size]), 0), shape.dims)
    mask = pad.full(True, shape.static.with_dtype(ElementType.PRED))
    for d, size in x.sizes.items():
        mask = pad.op("and", mask, pad.inside(shape, d, size))
    lanes = (shape.dtype, ElementType.S32, ElementType.PRED)
    windows = updates.padded.shape.static
    both = pad.computation.add(
        "reduce-window",
        (x.padded, numbers, mask, *(pad.constant(0, lane) for lane in lanes)),
        {"window": window},
        shape=Shape.tuple([windows.with_dtype(lane) for lane in lanes]),
        called=(_chooser(pad, ins.called[0], lanes),),
    )
    _, number, is_any = pad.elements(both)
    sizes = {d: pad.window_count(size, window[d]) if window else size for d, size in x.sizes.items()}
    present: Sizes = pad.common_sizes([updates, Bounded(updates.padded, sizes)])
    nowhere = pad.number(-1)
    chosen = pad.select(pad.anchor(is_any), pad.anchor(number), pad.full(-1, windows.with_dtype(ElementType.S32)))
    return pad.masked(Bounded(chosen, present), tuple(present), nowhere)


def _chooser(pad: Padder, select: Computation, lanes: Sequence[ElementType]) -> Computation:
    """Return the computation that keeps one of two elements: values, their numbers, and whether there is one."""
    shapes = [Shape.array(lane) for lane in (*lanes, *lanes)]

    def body(c: Computation) -> Instruction:
        parts = [c.add("parameter", (), {"parameter_number": n}, shape=s) for n, s in enumerate(shapes)]
        (old, old_number, had), (new, new_number, has) = parts[:3], parts[3:]
        better = copy_body(select, c, [old, new])
        absent = c.add("not", (has,), shape=_PRED)
        keep = c.add("and", (had, c.add("or", (absent, better), shape=_PRED)), shape=_PRED)
        value = c.add("select", (keep, old, new), shape=old.shape)
        number = c.add("select", (keep, old_number, new_number), shape=SIZE)
        some = c.add("or", (had, has), shape=_PRED)
        return c.add("tuple", (value, number, some), shape=Shape.tuple(shapes[:3]))

    return pad.function(f"choice_{select.name}", body)
