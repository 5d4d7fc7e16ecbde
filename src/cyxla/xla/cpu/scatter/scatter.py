"""Scatter: update windows in the order of the indices, combined into the operand in place.

Elements that are neighbours both in a window and in the operand are one loop without checks. A single window is cut
into tasks; several may overlap, so they are one task.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.array_types import memory_type
from cyxla.xla.cpu.kernel.carried_products import barrier_if, combiner_carries_product
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe, linear_index, strides
from cyxla.xla.cpu.kernel.values import own_leaves, resolve
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.service.refusal import Refusal

# ns of an update: 0.5 to 0.7 into 100,000 elements, 0.13 to 0.16 in runs of 256 of f32 (SPR, see `kernel.machine`).
_UPDATE_NS = 1.0
_RUN_NS = 0.15  # an element of a run
MIN_RUN = 8  # neighbours that are worth a loop of their own
BLOCK = 1024  # elements of a run in a loop of constant length
_KEEPS = {"maximum": ">", "minimum": "<"}  # comparison of an element with updates that do not change it


def _check(ins: Instruction) -> str | None:
    return scalar_computation.unsupported_reason(ins.called[0])


@dataclass(frozen=True)
class _Places:
    """Offsets by the counters of loops: ``i..`` over index vectors, ``w..`` over the elements of a window."""

    batch: list[int]  # sizes of the index vectors' dimensions
    window: list[int]  # sizes of the windows' dimensions
    update: str  # offset into the updates
    target: str  # offset of a window's element from its first one
    reach: list[int]  # window size along each operand dimension
    run: int  # elements of the last window dimension if they are neighbours in both arrays, or 1

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
        run = 1
        if window_dims and steps[window_dims[-1]] == target_steps[moved[-1]] == 1:
            run = updates.dims[window_dims[-1]]
        return _Places(
            [updates.dims[d] for d in batch_dims],
            [updates.dims[d] for d in window_dims],
            linear_index([names[d] for d in range(updates.rank)], steps),
            linear_index([f"w{n}" for n in range(len(moved))], [target_steps[d] for d in moved]),
            reach,
            run if run >= MIN_RUN else 1,
        )


@emits("scatter", check=_check)
def scatter(ins: Instruction) -> Step:
    """Emit a scatter."""
    count = (len(ins.operands) - 1) // 2
    reads, writes = [resolve(o) for o in ins.operands], own_leaves(ins)
    places = _Places.of(ins, count)
    each = _RUN_NS if places.run > 1 else _UPDATE_NS
    ns = prod(ins.operands[count + 1].shape.dims) * count * each + prod(places.batch)
    # Tasks share the first dimension of a single window.
    units = places.window[0] if prod(places.batch) == 1 and len(places.window) > 1 else 1
    tasks = cost.tasks(ns, units)
    c = KernelWriter(reads, writes)
    vectors = [f"i{n}" for n in range(len(places.batch))]
    shared = 1 if tasks > 1 else 0
    looped = len(places.window) - (places.run > 1)
    with (
        c.kernel(units if shared else 1, tasks, describe("scatter", ins.operands[0].shape)),
        c.loops(vectors, places.batch),
    ):
        _start(c, ins, count, places)
        if shared:
            c.line("const int64_t w0 = u;")
        with c.loops([f"w{n}" for n in range(shared, looped)], places.window[shared:looped]):
            if places.run > 1:
                _run(c, ins, count, places)
            else:
                c.line(f"const int64_t t = at + {places.target}, s = {places.update};")
                _combine(c, ins, count)
    pairs = tuple((n, n) for n in range(count))
    kernel = Kernel(c.text(), tasks, ns, 0, KernelKind.SCATTER, refusals=() if places.run > 1 else (_scalar(ins),))
    return Step(kernel, tuple(reads), tuple(writes), must_alias=pairs)


def _scalar(ins: Instruction) -> Refusal:
    reason = "updates are combined one at a time, since several may have the same index"
    return Refusal.of("vectorisation", ins, reason)


def _run(c: KernelWriter, ins: Instruction, count: int, places: _Places) -> None:
    """Write the combination of a run of neighbours, in blocks of constant length."""
    last = f"w{len(places.window) - 1}"
    c.line(f"const int64_t {last} = 0;")
    c.line(f"const int64_t to = at + {places.target}, from = {places.update};")
    whole = places.run // BLOCK if places.run > BLOCK else 0
    if whole:
        with c.block(f"for (int64_t b = 0; b < {whole * BLOCK}; b += {BLOCK})"):
            _block(c, ins, count, BLOCK, " + b")
    if places.run % BLOCK or not whole:
        _block(c, ins, count, places.run - whole * BLOCK, f" + {whole * BLOCK}")


def _block(c: KernelWriter, ins: Instruction, count: int, size: int, offset: str) -> None:
    with c.block(""):
        for n in range(count):
            mem = memory_type(ins.operands[n].shape.dtype)
            c.line(f"{mem} *const restrict a{n} = r{n} + to{offset};")
            c.line(f"const {mem} *const restrict b{n} = p{count + 1 + n} + from{offset};")
        c.line("#pragma GCC ivdep")
        with c.block(f"for (int k = 0; k < {size}; ++k)"):
            types = [o.shape.dtype for o in ins.operands[:count]]
            sides = [c.element(t, f"{side}{n}[k]") for side in "ab" for n, t in enumerate(types)]
            for n, value in enumerate(scalar_computation.inline(ins.called[0], sides, c)):
                c.line(f"a{n}[k] = {scalar.store(types[n], value)};")


def _lone_opcode(combiner: Computation) -> str:
    """Return the opcode of a computation that is one instruction of its two parameters; empty for others."""
    root = combiner.root
    both = len(root.operands) == 2 and all(o.opcode == "parameter" for o in root.operands)
    return root.opcode if both and root.operands[0] is not root.operands[1] else ""


def _start(c: KernelWriter, ins: Instruction, count: int, places: _Places) -> None:
    """Write `at`, the offset of the window's first element; a window that does not fit whole is skipped."""
    a, operand, indices = ins.attrs, ins.operands[0].shape, ins.operands[count].shape
    vector = a["index_vector_dim"]
    batch = [f"i{n}" for n in range(len(places.batch))]
    steps, target = strides(indices.dims), strides(operand.dims)
    outer = [s for d, s in enumerate(steps) if d != vector]
    step = steps[vector] if vector < indices.rank else 0
    c.line(f"const int64_t v = {linear_index(batch, outer)};")
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
    keeps = _KEEPS.get(_lone_opcode(ins.called[0]))
    if keeps and types[0].is_float:
        # Most updates lose, and say so by one comparison; a NaN and equal zeros go the long way.
        c.line(f"if ({old[0]} {keeps} {new[0]}) continue;")
    c.lines(barrier_if(combiner_carries_product(ins.called[0])))
    for n, value in enumerate(scalar_computation.inline(ins.called[0], [*old, *new], c)):
        c.line(f"r{n}[t] = {scalar.store(types[n], value)};")
