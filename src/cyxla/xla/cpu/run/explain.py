"""Explanation of a planned program: kernels with their reasons, memory, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from cyxla import config
from cyxla.xla.cpu.entry.module import Source
from cyxla.xla.cpu.kernel import prebuilt_numbers
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.kernel.prebuilt_calls import MIN_PREBUILT_NS
from cyxla.xla.cpu.kernel.temporaries import is_temporary
from cyxla.xla.cpu.kernel.values import leaves
from cyxla.xla.cpu.memory import reuse_refusals
from cyxla.xla.cpu.memory.buffers import Buffers
from cyxla.xla.cpu.plan.fusion import article
from cyxla.xla.cpu.plan.nodes import Plan
from cyxla.xla.cpu.reduce.rows.row_shape import rows_of
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.service import CompileOptions
from cyxla.xla.service.donation import donated, resolve_donation
from cyxla.xla.service.explanation import Explanation, KernelReport
from cyxla.xla.service.operation_count import operations
from cyxla.xla.service.refusal import Refusal

#: Kinds of kernels of which the library has functions.
_PREBUILT_KINDS = frozenset({
    KernelKind.DOT, KernelKind.CONVOLUTION, KernelKind.FFT, KernelKind.SORT, KernelKind.TOPK,
})  # fmt: skip


def explain(
    plan: Plan,
    buffers: Buffers,
    source: Source,
    module: HloModule,
    options: CompileOptions,
    not_prebuilt: str = "",
    tuning: Mapping[str, str] | None = None,
) -> Explanation:
    """Return the explanation of a program.

    Parameters
    ----------
    plan, buffers, source
        Results of `lowering.emit`.
    module : HloModule
        Program as given.
    options : CompileOptions
        Options of its compilation.
    not_prebuilt : str
        Reason for which prebuilt functions cannot run the program without compilation; empty if they can.
    tuning : mapping of str to str, optional
        Results of the measurements of kernels by `Kernel.tuned`.
    """
    tuning = tuning or {}
    calls: dict[str, list[Step]] = {name: [] for name, _ in source.kernels}
    names = {kernel.code: name for name, kernel in source.kernels}
    for step in plan.steps():
        calls[names[step.kernel.code]].append(step)
    not_in_place = reuse_refusals.refusals(plan, buffers)
    kernels = tuple(_report(name, kernel, calls[name], not_in_place, tuning) for name, kernel in source.kernels)
    count = sum(map(len, calls.values()))
    copies = sum(c.nbytes for group in buffers.copies.values() for c in group)
    summary = (
        f"{len(kernels)} kernels, {count} calls, {buffers.arena_bytes} bytes of temporaries, {copies} bytes copied"
    )
    kernel_refusals = [r for k in kernels for r in (*k.stored, *k.refusals)]
    plan_refusals = [reason for inner in plan.nested_plans() for reason in inner.reasons]
    program_refusals = [*_sibling_refusals(plan), *_donation_refusals(module, options, buffers)]
    if not_prebuilt:
        program_refusals.append(Refusal("prebuilt", "the program", f"not for prebuilt functions alone: {not_prebuilt}"))
    return Explanation(
        "cpu", "native", summary, kernels, tuple(dict.fromkeys([*kernel_refusals, *plan_refusals, *program_refusals]))
    )


def _report(
    name: str,
    kernel: Kernel,
    steps: Sequence[Step],
    not_in_place: Mapping[Value, Refusal],
    tuning: Mapping[str, str],
) -> KernelReport:
    first = steps[0]
    groups = dict.fromkeys(g for s in steps for g in s.groups)
    instructions = [i for g in first.groups for i in g.instructions]
    refusals = [*kernel.refusals, *(r for g in groups for r in g.reasons)]
    refusals += [not_in_place[w] for s in steps for w in s.writes if w in not_in_place]
    refusals += [*_prebuilt_refusals(kernel, first), *_vector_refusals(kernel, first)]
    return KernelReport(
        name,
        kernel.kind.value,
        "prebuilt" if _is_prebuilt(kernel) else "compiled",
        len(steps),
        kernel.tasks,
        kernel.cost,
        sum(v.shape.nbytes for v in first.reads),
        sum(v.shape.nbytes for v in first.writes),
        _operations(first, instructions),
        tuple(map(_describe, instructions)),
        _why(kernel, first),
        tuple(dict.fromkeys(r for g in groups for r in g.stored)) if not _temporaries(first.writes) else (),
        tuple(dict.fromkeys(refusals)),
        tuning.get(kernel.tuned, ""),
    )


def _describe(ins: Instruction) -> str:
    return f"{ins.opcode} {ins.shape.static}"


def _operations(step: Step, instructions: Sequence[Instruction]) -> int:
    """Return the operations of a call; of a group in two parts, the last combines the results of the first."""
    between = _temporaries(step.reads)
    return sum(v.shape.size for v in between) if between else sum(map(operations, instructions))


def _temporaries(values: Sequence[Value]) -> list[Value]:
    """Return the arrays between the parts of one group."""
    return [v for v in values if is_temporary(v)]


def _is_prebuilt(kernel: Kernel) -> bool:
    return kernel.call is not None or ")cyx_prebuilt[" in kernel.text


# ------------------------------------------------------------------------------------------------------------- reasons
def _why(kernel: Kernel, step: Step) -> str:
    """Return the reason for which the instructions of a step are one kernel."""
    if kernel.kind is KernelKind.BUNDLE:
        return f"{len(step.groups)} small kernels that do not depend on each other are one call"
    if kernel.kind is KernelKind.PRODUCTS:
        return f"{len(step.groups)} products of one matrix, which is read from memory once"
    (group,) = step.groups
    reason = _LOOPS[kernel.kind] if kernel.kind in _LOOPS else _WORDS[group.kind](group)
    reason += "".join(_bounds(group))
    if _temporaries(step.reads):
        return f"last part of: {reason}"
    return f"first part of: {reason}" if _temporaries(step.writes) else reason


def _bounds(group: Group) -> Iterator[str]:
    """Yield the sizes at run time that bound the work of a group."""
    for parts, words in ((group.live, "is computed below"), (group.stops, "is combined below")):
        for d, sizes in parts.items():
            names = " or ".join(f"%{v.instruction.name}" for v in sizes)
            yield f"; dimension {d} {words} {names} alone"


def _own_kernel(group: Group) -> str:
    return f"{article(group.root.opcode)} has a kernel of its own"


def _loop(group: Group) -> str:
    shape, count = group.outputs[0].shape.static, len(group.instructions)
    if count == 1:
        return f"{article(group.root.opcode)} is one loop over {shape}"
    several = len(group.outputs) > 1
    stored = f"the loop stores {len(group.outputs)} of the results" if several else "only the last is stored"
    return f"{count} instructions are computed element by element in one loop over {shape}; {stored}"


def _update(group: Group) -> str:
    inner = len(group.instructions) - 1
    new = f"; {_count(inner)} computed as the elements are stored" if inner else ""
    return f"the elements of the update are stored into the array{new}"


def _reduction(group: Group) -> str:
    before, after = _around(group)
    reason = f"{article(group.root.opcode)} combines elements as they are loaded"
    if before:
        reason = f"{_count(before)} computed as the {group.root.opcode} combines their elements"
    return f"{reason}; {_count(after)} computed from its results before they are stored" if after else reason


def _contraction(group: Group) -> str:
    _, after = _around(group)
    if not after:
        return _own_kernel(group)
    return f"{_count(after)} the epilogue of the {group.kind}: computed from its results before they are stored"


def _row(group: Group) -> str:
    rows = rows_of(next(i for i in group.instructions if i.opcode == "reduce"))
    over = f"{rows[0]} rows of {rows[1]} elements" if rows is not None else "the same rows"
    return f"{len(group.parts)} groups iterate over {over}, which stay in the L1 cache between them"


def _count(number: int) -> str:
    return f"{number} instructions are" if number > 1 else "1 instruction is"


def _around(group: Group) -> tuple[int, int]:
    """Return the number of instructions before and after the root of a group."""
    after: set[Instruction] = {group.root}
    for ins in group.instructions:
        if any(v.instruction in after for o in ins.operands for v in leaves(o)):
            after.add(ins)
    return len(group.instructions) - len(after), len(after) - 1


_WORDS: dict[GroupKind, Callable[[Group], str]] = {
    GroupKind.LOOP: _loop,
    GroupKind.UPDATE: _update,
    GroupKind.ROW: _row,
    GroupKind.REDUCE: _reduction,
    GroupKind.REDUCE_WINDOW: _reduction,
    GroupKind.WINDOW_SCATTER: _reduction,
    GroupKind.DOT: _contraction,
    GroupKind.CONVOLUTION: _contraction,
    GroupKind.SINGLE: _own_kernel,
}
_LOOPS = {
    KernelKind.SMALL_LOOP: "all iterations of the while run in one kernel, with the state in locals",
    KernelKind.LOOP_NEST: "all iterations of the while run in one kernel, with its arrays updated in place",
    KernelKind.LANE_LOOP: "each block of elements runs through all iterations of the while, in the L1 cache",
}


# ------------------------------------------------------------------------------------------------------------ refusals
def _prebuilt_refusals(kernel: Kernel, step: Step) -> Iterator[Refusal]:
    """Yield the reason for which a kernel is compiled although the library has functions of its kind."""
    if kernel.kind not in _PREBUILT_KINDS or _is_prebuilt(kernel):
        return
    (group,) = step.groups
    if config.get("SANITIZE"):
        reason = "CYXLA_SANITIZE is set"
    elif prebuilt_numbers.suffix() is None:
        reason = "CYXLA_PREBUILT=0"
    elif kernel.cost < MIN_PREBUILT_NS:
        reason = f"with less than {MIN_PREBUILT_NS:.0f} ns of work, sizes known at compile time make it faster"
    elif len(group.instructions) > 1:
        reason = "the library has no function that takes its epilogue"
    else:
        reason = "the library has no function for its types and sizes"
    yield Refusal("prebuilt", _describe(group.root), reason)


def _vector_refusals(kernel: Kernel, step: Step) -> Iterator[Refusal]:
    if kernel.kind is KernelKind.SMALL_LOOP:
        yield Refusal.of("vectorisation", step.groups[0].root, "each iteration depends on the one before")
    else:
        for loop in kernel.loops:
            yield from loop.refusals()


def _sibling_refusals(plan: Plan) -> Iterator[Refusal]:
    """Yield the pairs of loops over the same elements that read the same array, and are not one."""
    readers: dict[Value, list[Group]] = {}
    for step in plan.steps():
        for value in step.reads:
            for group in step.groups:
                if group.kind is GroupKind.LOOP and group.root.shape.size == value.shape.size > 1:
                    readers.setdefault(value, []).append(group)
    for value, groups in readers.items():
        for one, other in pairwise(dict.fromkeys(groups)):
            subject = f"{_describe(one.root)} and {_describe(other.root)}"
            shared = f"{value.instruction.opcode} {value.shape}"
            yield Refusal("fusion", subject, f"they share no value that is computed, only an array in memory: {shared}")


def _donation_refusals(module: HloModule, options: CompileOptions, buffers: Buffers) -> Iterator[Refusal]:
    for number in sorted(donated(module, resolve_donation(options, module).donate).keys() - buffers.donations.keys()):
        yield Refusal("donation", f"array {number} of the arguments", "no result is left that has its size")
