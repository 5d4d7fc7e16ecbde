"""scatter: update windows one after the other, in the order of the indices, combined into the operand where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cyxla.xla.cpu import emit_scalar, scalar
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import Kernel, Step
from cyxla.xla.cpu.own_kernel import KernelWriter, describe, dotted, strides
from cyxla.xla.cpu.values import own_leaves, resolve
from cyxla.xla.hlo import Instruction

_UPDATE_NS = 1.0


def _check(ins: Instruction) -> str | None:
    return emit_scalar.reason(ins.called[0])


@dataclass(frozen=True)
class _Places:
    """Which counter moves along which dimension: ``i..`` count index vectors, ``w..`` the elements of a window."""

    batch: list[int]  # sizes of the index vectors' dimensions
    window: list[int]  # sizes of the windows' dimensions
    update: str  # offset into the updates
    target: str  # offset of a window's element from its first one
    reach: list[int]  # window size along each operand dimension

    @staticmethod
    def of(ins: Instruction, count: int) -> _Places:
        a, operand, updates = ins.attrs, ins.operands[0].shape, ins.operands[count + 1].shape
        window_dims = [d for d in range(updates.rank) if d in a["update_window_dims"]]
        batch_dims = [d for d in range(updates.rank) if d not in a["update_window_dims"]]
        gone = {*a["inserted_window_dims"], *a["input_batching_dims"]}
        moved = [d for d in range(operand.rank) if d not in gone]
        names = {**{d: f"i{n}" for n, d in enumerate(batch_dims)}, **{d: f"w{n}" for n, d in enumerate(window_dims)}}
        steps, target_steps = strides(updates.dims), strides(operand.dims)
        reach = [1] * operand.rank
        for n, d in zip(window_dims, moved, strict=True):
            reach[d] = updates.dims[n]
        return _Places(
            [updates.dims[d] for d in batch_dims],
            [updates.dims[d] for d in window_dims],
            dotted([names[d] for d in range(updates.rank)], steps),
            dotted([f"w{n}" for n in range(len(moved))], [target_steps[d] for d in moved]),
            reach,
        )


@emits("scatter", check=_check)
def scatter(ins: Instruction) -> Step:
    """The kernel of one scatter; one task, since windows may overlap."""
    count = (len(ins.operands) - 1) // 2
    reads, writes = [resolve(o) for o in ins.operands], own_leaves(ins)
    places = _Places.of(ins, count)
    ns = prod(ins.operands[count + 1].shape.dims) * count * _UPDATE_NS + prod(places.batch)
    c = KernelWriter(reads, writes)
    vectors = [f"i{n}" for n in range(len(places.batch))]
    with c.kernel(1, 1, describe("scatter", ins.operands[0].shape)), c.loops(vectors, places.batch):
        _start(c, ins, count, places)
        with c.loops([f"w{n}" for n in range(len(places.window))], places.window):
            c.line(f"const int64_t t = at + {places.target}, s = {places.update};")
            _combine(c, ins, count)
    pairs = tuple((n, n) for n in range(count))
    return Step(Kernel(c.text(), 1, ns, 0, "scatter"), tuple(reads), tuple(writes), must_alias=pairs)


def _start(c: KernelWriter, ins: Instruction, count: int, places: _Places) -> None:
    """Define `at`, the offset of the window's first element; a window that does not fit whole is left out."""
    a, operand, indices = ins.attrs, ins.operands[0].shape, ins.operands[count].shape
    vector = a["index_vector_dim"]
    batch = [f"i{n}" for n in range(len(places.batch))]
    steps, target = strides(indices.dims), strides(operand.dims)
    outer = [s for d, s in enumerate(steps) if d != vector]
    step = steps[vector] if vector < indices.rank else 0
    c.line(f"const int64_t v = {dotted(batch, outer)};")
    c.line("int64_t at = 0;")
    for n, d in enumerate(a["scatter_dims_to_operand_dims"]):
        room = operand.dims[d] - places.reach[d]
        # As an unsigned number a negative index is beyond every size.
        c.line(f"const uint64_t d{n} = (uint64_t)(int64_t){scalar.load(indices.dtype, f'p{count}[v + {n * step}]')};")
        c.line("continue;" if room < 0 else f"if (d{n} > {room}) continue;")
        c.line(f"at += (int64_t)d{n} * {target[d]};")
    counted = [d for d in range(indices.rank) if d != vector]
    for d, of in zip(a["input_batching_dims"], a["scatter_indices_batching_dims"], strict=True):
        c.line(f"at += {batch[counted.index(of)]} * {target[d]};")


def _combine(c: KernelWriter, ins: Instruction, count: int) -> None:
    types = [o.shape.dtype for o in ins.operands[:count]]
    old = [c.element(t, f"r{n}[t]") for n, t in enumerate(types)]
    new = [c.element(t, f"p{count + 1 + n}[s]") for n, t in enumerate(types)]
    for n, value in enumerate(emit_scalar.inline(ins.called[0], [*old, *new], c)):
        c.line(f"r{n}[t] = {scalar.store(types[n], value)};")
