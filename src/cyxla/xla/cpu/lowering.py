"""Lowering of an HLO module to C: passes, plan, buffers, text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cyxla import config
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.types import ElementType
from cyxla.xla.cpu.dump import Dump
from cyxla.xla.cpu.emitters import can_emit
from cyxla.xla.cpu.entry.module import Source, emit_module
from cyxla.xla.cpu.kernel.values import CONTROL_FLOW, is_forwarding
from cyxla.xla.cpu.memory.buffers import Buffers, assign
from cyxla.xla.cpu.plan import mask_sorts, own_fills, sink_masks
from cyxla.xla.cpu.plan.live_rows import check_live_results
from cyxla.xla.cpu.plan.nodes import Plan
from cyxla.xla.cpu.plan.planner import MAX_NESTING, plan
from cyxla.xla.hlo import Computation, HloModule, Instruction, verify
from cyxla.xla.hlo.devices import check_devices
from cyxla.xla.passes import Pass
from cyxla.xla.passes.dynamic import pad_dynamic
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.engine.observer import current, observed
from cyxla.xla.passes.engine.on_demand import OnDemand
from cyxla.xla.passes.engine.pipeline import Settings
from cyxla.xla.passes.expand import constant as expand_constant
from cyxla.xla.passes.expand import dot as expand_dot
from cyxla.xla.passes.expand import empty as expand_empty
from cyxla.xla.passes.expand import topk as expand_topk
from cyxla.xla.passes.simplify import (
    dce,
    equal_elements,
    flatten_call_graph,
    inline,
    loop_updates,
    range_simplifier,
    simplification,
)
from cyxla.xla.service import CompileOptions
from cyxla.xla.service.donation import donated, resolve_donation

_COLLECTIVES = (
    "all-gather", "all-gather-done", "all-reduce", "all-reduce-done", "all-to-all", "collective-broadcast",
    "collective-permute", "collective-permute-done", "partition-id", "ragged-all-to-all", "reduce-scatter",
    "replica-id",
)  # fmt: skip
_BATCH_NORMS = ("batch-norm-grad", "batch-norm-inference", "batch-norm-training")
PASSES: tuple[tuple[str, Pass], ...] = (
    ("pad_dynamic", pad_dynamic.run),
    ("inline", inline.run),
    ("expand_constant", expand_constant.run),
    ("expand_empty", expand_empty.run),
    ("expand_collectives", OnDemand("expand.collectives", *_COLLECTIVES)),
    ("expand_batch_norm", OnDemand("expand.batch_norm", *_BATCH_NORMS)),
    ("expand_layout", OnDemand("expand.layout", "bitcast", "get-dimension-size")),
    ("expand_bitcast_convert", OnDemand("expand.bitcast_convert", "bitcast-convert")),
    ("expand_narrow", OnDemand("expand.narrow", "cholesky", "triangular-solve")),
    ("expand_scan", OnDemand("expand.scan", "scan")),
    ("expand_ragged_dot", OnDemand("expand.ragged_dot", "ragged-dot")),
    ("expand_scaled_dot", OnDemand("expand.scaled_dot", "scaled-dot")),
    ("expand_convolution", OnDemand("expand.convolution", "convolution")),
    ("sparse_dot", OnDemand("simplify.sparse_dot", "dot")),
    ("expand_complex_dot", OnDemand("expand.complex_dot", "dot")),
    ("expand_dot", expand_dot.run),
    ("expand_topk", expand_topk.expand_unless(lambda ins: can_emit(ins) is None)),
    ("expand_window", OnDemand("expand.window", "reduce-window")),
    ("simplify", simplification.run),
    ("flatten_call_graph", flatten_call_graph.run),
    ("equal_elements", equal_elements.run),
    ("range_simplifier", range_simplifier.run),
    ("loop_updates", loop_updates.run),
    ("dce", dce.run),
    ("mask_sorts", mask_sorts.run),
    ("sink_masks", sink_masks.run),
    ("own_fills", own_fills.run),
)
MAX_ROUNDS = 4  # of a pass and the simplification of what it leaves
#: Opcodes that the planner handles without a kernel.
_NO_KERNEL = frozenset({"parameter", "constant", *CONTROL_FLOW})


def check_names(disabled: Sequence[str]) -> None:
    """Raise `InvalidArgumentError` unless every pass that is to be left out exists."""
    passes = {name: None for name, _ in (*PASSES, *simplification.SIMPLIFY)}
    for name in disabled:
        if name not in passes:
            raise InvalidArgumentError(f"there is no pass {name!r} to disable", hint=config.nearest(name, passes))


def run_passes(module: HloModule, options: CompileOptions, dump: Dump) -> HloModule:
    """Run the passes on a copy of a module; every opcode of the result has a kernel."""
    check_names(options.disabled_passes)
    _check_interface(module)
    _check_nesting(module)
    check_devices(module)
    copy, checked = clone(module), config.get("VERIFY")
    with observed(dump.passes, copy):
        for name, run in PASSES:
            if name not in options.disabled_passes:
                with dump.timed(name):
                    _run_pass(name, run, copy, options, checked)
    return copy


def _pad_dynamic(module: HloModule, options: CompileOptions) -> bool:
    """Run `pad_dynamic`; its refusal names a custom call that no platform runs, which is to be mended first."""
    try:
        return pad_dynamic.run(module, options.custom_calls)
    except UnimplementedError as error:
        unknown = _unknown_call(module, options)
        if unknown is not None:
            error.hint = f"{unknown.message}: {unknown.hint}; then {error.hint}"
        raise


def _run_pass(name: str, run: Pass, module: HloModule, options: CompileOptions, checked: bool) -> None:
    if run is simplification.run:  # the passes inside it are checked and observed one by one
        simplification.run(module, Settings(options.disabled_passes, checked))
        return
    if run in (equal_elements.run, range_simplifier.run):
        _simplify_after(name, run, module, Settings(options.disabled_passes, checked))
        return
    if _pad_dynamic(module, options) if run is pad_dynamic.run else run(module):
        observer = current()
        if observer is not None:
            observer.after(name, module)
        if checked:
            verify(module)


def _simplify_after(name: str, run: Pass, module: HloModule, settings: Settings) -> None:
    """Run a pass, and simplify what it leaves, as long as it changes anything."""
    for _ in range(MAX_ROUNDS):
        if not run(module):
            return
        observer = current()
        if observer is not None:
            observer.after(name, module)
        simplification.run(module, settings)


def emit(module: HloModule, options: CompileOptions | None = None) -> tuple[Plan, Buffers, Source]:
    """Plan a module that went through `run_passes` and write its C.

    Raises
    ------
    UnimplementedError
        Names every opcode without native code.
    """
    options = options or CompileOptions()
    check_supported(module, options)
    check_live_results(module.entry, options.live_results)
    planned = plan(module.entry, options.live_results)
    buffers = assign(planned, {**donated(module, resolve_donation(options, module).donate), **dict(options.in_place)})
    return planned, buffers, emit_module(planned, buffers, options.seed, profile=options.profile)


def with_live_results(module: HloModule, options: CompileOptions) -> CompileOptions:
    """Return the options with the results of bounded size, which come as padded arrays followed by their sizes."""
    shapes = list(module.entry.root.shape.leaves())
    if options.live_results or not any(s.is_dynamic for s in shapes) or not all(s.is_array for s in shapes):
        return options
    found: list[tuple[int, int, int]] = []
    number = 0
    for shape in shapes:
        dims = [d for d, is_dynamic in enumerate(shape.dynamic) if is_dynamic]
        found += [(number, d, number + 1 + k) for k, d in enumerate(dims)]
        number += 1 + len(dims)
    return replace(options, live_results=tuple(found))


def check_supported(module: HloModule, options: CompileOptions) -> None:
    """Check that every instruction has native code.

    Raises
    ------
    UnimplementedError
        Names all that do not: opcode, types, reason; or a custom call that no platform runs.
    """
    missing: dict[str, Instruction] = {}
    for computation in _scheduled(module):
        for ins in computation.instructions:
            if not ins.shape.is_dynamic and (ins.opcode in _NO_KERNEL or is_forwarding(ins)):
                continue
            reason = "has a dynamic dimension" if ins.shape.is_dynamic else can_emit(ins)
            if ins.opcode == "custom-call":
                from cyxla.xla.cpu.calls.custom_call import native_refusal  # most programs have none

                reason = reason or native_refusal(ins, options.custom_calls)
            if reason is not None:
                missing.setdefault(f"{ins.opcode} of {_types(ins)} ({reason})", ins)
    unknown = _unknown_call(module, options)
    if unknown is not None and all(ins.opcode == "custom-call" for ins in missing.values()):
        raise unknown
    if missing:
        hint = 'run it with platform="interpreter"'
        raise UnimplementedError(
            f"no native code for {len(missing)} of the program's operations: {'; '.join(missing)}",
            where=repr(next(iter(missing.values()))) if unknown is None else unknown.where,
            hint=hint if unknown is None else f"{unknown.message}: {unknown.hint}; then {hint}",
        )


def _unknown_call(module: HloModule, options: CompileOptions) -> UnimplementedError | None:
    """Return the error of a custom call that no platform runs; None without one."""
    if any(ins.opcode == "custom-call" for computation in module.post_order() for ins in computation.instructions):
        from cyxla.xla.evaluator import check_custom_calls  # most programs have none

        try:
            check_custom_calls(module, options.custom_calls)
        except UnimplementedError as error:
            return error
    return None


def _types(ins: Instruction) -> str:
    leaves = [leaf.dtype.text for o in ins.operands for leaf in o.shape.leaves()]
    return ", ".join(dict.fromkeys(leaves)) or str(ins.shape)


def _scheduled(module: HloModule) -> Iterator[Computation]:
    """Yield the entry and the computations of loops and branches."""
    stack, seen = [module.entry], {module.entry}
    while stack:
        computation = stack.pop()
        yield computation
        for ins in computation.instructions:
            if ins.opcode in CONTROL_FLOW:
                new = [c for c in ins.called if c not in seen]
                seen.update(new)
                stack += new


def _check_nesting(module: HloModule) -> None:
    """Raise for loops nested too deep for the planner, before any pass spends time on them."""
    depth: dict[Computation, int] = {}
    for computation in module.post_order():
        inner = [depth[c] + (i.opcode in CONTROL_FLOW) for i in computation.instructions for c in i.called]
        depth[computation] = max(inner, default=0)
    if depth[module.entry] > MAX_NESTING:
        raise UnimplementedError(f"native code for loops and branches nested deeper than {MAX_NESTING}")


def _check_interface(module: HloModule) -> None:
    """Raise unless arguments and results are arrays, or tokens."""
    for ins in (*module.entry.parameters, module.entry.root):
        wrong = [leaf for leaf in ins.shape.leaves() if not (leaf.is_array or leaf.dtype is ElementType.TOKEN)]
        if wrong:
            raise UnimplementedError(f"{wrong[0]} as argument or result of native code", where=repr(ins))
