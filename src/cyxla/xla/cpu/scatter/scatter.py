"""Scatter: update windows in the order of the indices, combined into the operand in place.

Elements that are neighbours both in a window and in the operand are one loop without checks. A single window is cut
into tasks; several may overlap, so they are one task.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from cyxla.records import dataclass
from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.c.independence import independence
from cyxla.xla.cpu.emitters import emits, emits_live
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.array_types import memory_type
from cyxla.xla.cpu.kernel.carried_products import barrier_if, combiner_carries_product
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe, linear_index, strides
from cyxla.xla.cpu.kernel.values import constant_of, is_read, own_leaves, resolve
from cyxla.xla.cpu.loops.live_loops import SizeReads, live_count
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.service.refusal import Refusal

# ns of an update: 0.5 to 0.7 into 100,000 elements, 0.13 to 0.16 in runs of 256 of f32 (SPR, see `kernel.machine`).
_UPDATE_NS = 1.0
_RUN_NS = 0.15  # ns of an element of a run
MIN_RUN = 8  # adjacent elements from which a loop over them pays off
BLOCK = 1024  # elements of a run in a loop of constant length
_UNCHANGED_IF = {"maximum": ">", "minimum": "<"}  # comparison that holds if an update does not change an element


def _check(ins: Instruction) -> str | None:
    return scalar_computation.unsupported_reason(ins.called[0])


@dataclass(frozen=True)
class _Offsets:
    """Offsets by the counters of loops: ``i..`` over index vectors, ``w..`` over the elements of a window."""

    batch: list[int]  # sizes of the index vectors' dimensions
    window: list[int]  # sizes of the windows' dimensions
    update: str  # offset into the updates
    target: str  # offset of a window's element from its first one
    extents: list[int]  # window size along each operand dimension
    count: int  # arrays
    run: int  # elements of the last window dimension if they are neighbours in both arrays, or 1

    @staticmethod
    def of(ins: Instruction, count: int) -> _Offsets:
        a, operand, updates = ins.attrs, ins.operands[0].shape, ins.operands[count + 1].shape
        window_dims = [d for d in range(updates.rank) if d in a["update_window_dims"]]
        batch_dims = [d for d in range(updates.rank) if d not in a["update_window_dims"]]
        outside_window = {*a["inserted_window_dims"], *a["input_batching_dims"]}
        operand_dims = [d for d in range(operand.rank) if d not in outside_window]
        counters = {**{d: f"i{n}" for n, d in enumerate(batch_dims)}, **{d: f"w{n}" for n, d in enumerate(window_dims)}}
        steps, target_steps = strides(updates.dims), strides(operand.dims)
        extents = [1] * operand.rank
        for n, d in zip(window_dims, operand_dims, strict=True):
            extents[d] = updates.dims[n]
        run = 1
        if window_dims and steps[window_dims[-1]] == target_steps[operand_dims[-1]] == 1:
            run = updates.dims[window_dims[-1]]
        return _Offsets(
            [updates.dims[d] for d in batch_dims],
            [updates.dims[d] for d in window_dims],
            linear_index([counters[d] for d in range(updates.rank)], steps),
            linear_index([f"w{n}" for n in range(len(operand_dims))], [target_steps[d] for d in operand_dims]),
            extents,
            count,
            run if run >= MIN_RUN else 1,
        )


@emits("scatter", check=_check)
def scatter(ins: Instruction) -> Step:
    """Emit a scatter."""
    count = (len(ins.operands) - 1) // 2
    return _step(ins, _Offsets.of(ins, count), {}, ())


@emits_live("scatter")
def live_scatter(group: Group) -> Step:
    """Emit a scatter that stops where no window fits into the operand."""
    ins, reads = group.root, SizeReads(len(group.root.operands))
    offsets = _Offsets.of(ins, (len(ins.operands) - 1) // 2)
    vectors = [d for d in range(ins.operands[offsets.count].shape.rank) if d != ins.attrs["index_vector_dim"]]
    ends = {
        n: live_count(group.stops[d], reads, offsets.batch[n])
        for n, d in enumerate(vectors)
        if d in group.stops and offsets.batch[n] > 1
    }
    return _step(ins, offsets, ends, reads.values)


def _step(ins: Instruction, offsets: _Offsets, ends: Mapping[int, str], sizes: tuple[Value, ...]) -> Step:
    """Return the step of a scatter; the numbers of index vectors in `ends` are C."""
    count = offsets.count
    # The indices stand in for operands that are not read, so that each buffer has the number of its operand.
    read = [o if is_read(ins, n) else ins.operands[count] for n, o in enumerate(ins.operands)]
    reads, writes = [*map(resolve, read), *sizes], own_leaves(ins)
    element_ns = _RUN_NS if offsets.run > 1 else _UPDATE_NS
    ns = prod(ins.operands[count + 1].shape.dims) * count * element_ns + prod(offsets.batch)
    # Tasks split the first dimension of a single window.
    units = offsets.window[0] if prod(offsets.batch) == 1 and len(offsets.window) > 1 else 1
    tasks = cost.tasks(ns, units)
    c = KernelWriter(reads, writes)
    vectors = [f"i{n}" for n in range(len(offsets.batch))]
    parallel_dims = 1 if tasks > 1 else 0
    loop_dims = len(offsets.window) - (offsets.run > 1)
    with (
        c.kernel(units if parallel_dims else 1, tasks, describe("scatter", ins.operands[0].shape)),
        c.loops(vectors, [ends.get(n, size) for n, size in enumerate(offsets.batch)]),
    ):
        _start(c, ins, count, offsets)
        if parallel_dims:
            c.line("const int64_t w0 = u;")
        with c.loops([f"w{n}" for n in range(parallel_dims, loop_dims)], offsets.window[parallel_dims:loop_dims]):
            if offsets.run > 1:
                _run(c, ins, count, offsets)
            else:
                c.line(f"const int64_t t = at + {offsets.target}, s = {offsets.update};")
                _combine(c, ins, count)
    pairs = tuple((n, n) for n in range(count))
    kernel = Kernel(c.text(), tasks, ns, 0, KernelKind.SCATTER, refusals=() if offsets.run > 1 else (_scalar(ins),))
    return Step(kernel, tuple(reads), tuple(writes), must_alias=pairs)


def _scalar(ins: Instruction) -> Refusal:
    reason = "updates are combined one at a time, since several may have the same index"
    return Refusal.of("vectorisation", ins, reason)


def _run(c: KernelWriter, ins: Instruction, count: int, offsets: _Offsets) -> None:
    """Write the combination of a run of neighbours, in blocks of constant length."""
    last = f"w{len(offsets.window) - 1}"
    c.line(f"const int64_t {last} = 0;")
    c.line(f"const int64_t to = at + {offsets.target}, from = {offsets.update};")
    blocks = offsets.run // BLOCK if offsets.run > BLOCK else 0
    if blocks:
        with c.block(f"for (int64_t b = 0; b < {blocks * BLOCK}; b += {BLOCK})"):
            _block(c, ins, count, BLOCK, " + b")
    if offsets.run % BLOCK or not blocks:
        _block(c, ins, count, offsets.run - blocks * BLOCK, f" + {blocks * BLOCK}")


def _block(c: KernelWriter, ins: Instruction, count: int, size: int, offset: str) -> None:
    with c.block(""):
        for n in range(count):
            mem = memory_type(ins.operands[n].shape.dtype)
            c.line(f"{mem} *const restrict a{n} = r{n} + to{offset};")
            if is_read(ins, count + 1 + n):
                c.line(f"const {mem} *const restrict b{n} = p{count + 1 + n} + from{offset};")
        types = [o.shape.dtype for o in ins.operands[:count]]
        c.lines(independence(size, types))
        with c.block(f"for (int k = 0; k < {size}; ++k)"):
            sides = [c.element(t, f"a{n}[k]") for n, t in enumerate(types)]
            sides += [_update(c, ins, count + 1 + n, f"b{n}[k]") for n in range(count)]
            for n, value in enumerate(scalar_computation.inline(ins.called[0], sides, c)):
                c.line(f"a{n}[k] = {scalar.store(types[n], value)};")


def _update(c: KernelWriter, ins: Instruction, position: int, text: str) -> str:
    """Return the C of an element of the updates: a constant, or one that lies in memory."""
    operand = ins.operands[position]
    if is_read(ins, position):
        return c.element(operand.shape.dtype, text)
    return c.local(scalar.register_type(operand.shape.dtype), scalar.literal(operand.shape.dtype, constant_of(operand)))


def _single_opcode(combiner: Computation) -> str:
    """Return the opcode of a computation that is one instruction of its two parameters; empty for others."""
    root = combiner.root
    is_binary = len(root.operands) == 2 and all(o.opcode == "parameter" for o in root.operands)
    return root.opcode if is_binary and root.operands[0] is not root.operands[1] else ""


def _start(c: KernelWriter, ins: Instruction, count: int, offsets: _Offsets) -> None:
    """Write `at`, the offset of the window's first element; a window that does not fit whole is skipped."""
    a, operand, indices = ins.attrs, ins.operands[0].shape, ins.operands[count].shape
    vector = a["index_vector_dim"]
    batch = [f"i{n}" for n in range(len(offsets.batch))]
    steps, target = strides(indices.dims), strides(operand.dims)
    outer = [s for d, s in enumerate(steps) if d != vector]
    step = steps[vector] if vector < indices.rank else 0
    c.line(f"const int64_t v = {linear_index(batch, outer)};")
    c.line("int64_t at = 0;")
    for n, d in enumerate(a["scatter_dims_to_operand_dims"]):
        high = operand.dims[d] - offsets.extents[d]
        # Converted to unsigned, a negative index is above every size.
        c.line(f"const uint64_t d{n} = (uint64_t)(int64_t){scalar.load(indices.dtype, f'p{count}[v + {n * step}]')};")
        c.line("continue;" if high < 0 else f"if (d{n} > {high}) continue;")
        c.line(f"at += (int64_t)d{n} * {target[d]};")
    batch_dims = [d for d in range(indices.rank) if d != vector]
    for d, indices_dim in zip(a["input_batching_dims"], a["scatter_indices_batching_dims"], strict=True):
        c.line(f"at += {batch[batch_dims.index(indices_dim)]} * {target[d]};")


def _combine(c: KernelWriter, ins: Instruction, count: int) -> None:
    types = [o.shape.dtype for o in ins.operands[:count]]
    old = [c.element(t, f"r{n}[t]") for n, t in enumerate(types)]
    new = [_update(c, ins, count + 1 + n, f"p{count + 1 + n}[s]") for n in range(count)]
    comparison = _UNCHANGED_IF.get(_single_opcode(ins.called[0]))
    if comparison and types[0].is_float:
        # Most updates change nothing, which one comparison shows; NaNs and equal zeros are combined.
        c.line(f"if ({old[0]} {comparison} {new[0]}) continue;")
    c.lines(barrier_if(combiner_carries_product(ins.called[0])))
    for n, value in enumerate(scalar_computation.inline(ins.called[0], [*old, *new], c)):
        c.line(f"r{n}[t] = {scalar.store(types[n], value)};")
