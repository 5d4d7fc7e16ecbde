"""Rewrite arrays with bounded dynamic dimensions as padded arrays with their sizes beside them.

Before::

    p = f32[<=6] parameter(0)
    e = f32[<=6] exponential(p)
    ROOT s = f32[] reduce(e, zero), dimensions={0}, to_apply=add

After::

    t = (f32[6], s32[]) parameter(0)
    p = f32[6] get-tuple-element(t), index=0
    n = s32[] get-tuple-element(t), index=1
    e = f32[6] exponential(p)
    m = f32[6] select(iota < n, e, zero)
    ROOT s = f32[] reduce(m, zero), dimensions={0}, to_apply=add

Elements beyond the sizes are arbitrary, and replaced where they would be read. The rules stand in `RULES`, by opcode.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import TYPE_CHECKING

from cyxla.errors import UnimplementedError
from cyxla.types import UNBOUNDED, Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.dynamic.stated_sizes import has_dynamic, state_sizes

if TYPE_CHECKING:
    from cyxla.xla.passes.dynamic.packing import Value
    from cyxla.xla.passes.dynamic.padder import Padder


_MAX_SIZE = 2**31 - 1  # sizes are s32


def run(module: HloModule, custom_calls: Container[str] = ()) -> bool:
    """Rewrite all computations with dynamic dimensions; a program without them is only scanned.

    Parameters
    ----------
    module : HloModule
        Module to rewrite.
    custom_calls : container of str
        Targets of custom calls that are the caller's own, which take arrays of static sizes.
    """
    computations = module.post_order()
    if not any(map(has_dynamic, computations)):
        return False
    changed, results = state_sizes(module), _stated_results(computations)
    affected = [c for c in computations if has_dynamic(c) or (c in results and results[c].is_dynamic)]
    if not affected:
        return changed
    for computation in affected:
        _check_bounds(computation)
    rewritten: dict[Computation, Computation] = {}
    for computation in computations:
        calls = any(c in rewritten for ins in computation.instructions for c in ins.called)
        if calls or computation in affected:
            shape = results.get(computation, computation.root.shape)
            rewritten[computation] = _rewrite(module, computation, shape, rewritten, custom_calls)
    if module.entry in rewritten:
        module.entry = rewritten[module.entry]
        _drop_interface(module)
    module.computations = {c.name: c for c in module.post_order()}
    return True


def _is_dynamic(ins: Instruction) -> bool:
    return ins.shape.is_dynamic or ins.opcode == "set-dimension-size"


def _check_bounds(computation: Computation) -> None:
    for ins in computation.instructions:
        reason = _wrong_bound(ins.shape) if ins.shape.is_dynamic else ""
        if reason:
            raise UnimplementedError(
                f"no native code for {ins.shape}: a dimension has {reason}",
                where=repr(ins),
                hint='state a bound, as in f32[<=8], or run it with platform="interpreter"',
            )


def _wrong_bound(shape: Shape) -> str:
    dims = [(n, m) for leaf in shape.leaves() for n, m in zip(leaf.dims, leaf.dynamic, strict=True)]
    if any(n == UNBOUNDED for n, _ in dims):
        return "no bound"
    return "a bound that is no s32 number" if any(n > _MAX_SIZE and m for n, m in dims) else ""


def _stated_results(computations: list[Computation]) -> dict[Computation, Shape]:
    """Return the shapes in which callers expect the results of computations."""
    shapes: dict[Computation, Shape] = {}
    for computation in computations:
        for ins in computation.instructions:
            if ins.opcode == "while":
                shapes[ins.called[0]] = ins.shape.logical
            elif ins.opcode in ("call", "conditional", "fusion"):
                shapes.update(dict.fromkeys(ins.called, ins.shape.logical))
    return shapes


def _drop_interface(module: HloModule) -> None:
    """Drop layouts and aliases of parameters and results, which are tuples now; both are only permissions."""
    module.config = replace(module.config, entry_layout=None, input_output_alias=(), buffer_donor=())


def _rewrite(
    module: HloModule,
    source: Computation,
    result: Shape,
    rewritten: dict[Computation, Computation],
    custom_calls: Container[str],
) -> Computation:
    from cyxla.xla.passes.dynamic.padder import Padder  # most programs have no dynamic dimensions

    target = Computation(source.name, module)
    target.execution_thread, target.is_fusion = source.execution_thread, source.is_fusion
    padder = Padder(target, rewritten, custom_calls)
    values: dict[Instruction, Value] = {}
    for ins in source.post_order():
        value = _rewrite_instruction(padder, ins, [values[o] for o in ins.operands])
        values[ins] = value
        if ins.control_predecessors:
            before = [padder.anchor(values[p]) for p in ins.control_predecessors]
            padder.anchor(value).control_predecessors = tuple(before)
    target.root = padder.pack(padder.conform(values[source.root], result, source.root))
    return target


def _rewrite_instruction(padder: Padder, ins: Instruction, operands: list[Value]) -> Value:
    from cyxla.xla.passes.dynamic.padder import refuse
    from cyxla.xla.passes.dynamic.rules import RULES

    static = [o for o in operands if isinstance(o, Instruction)]
    is_static = len(static) == len(operands) and not _is_dynamic(ins)
    if is_static and not any(c in padder.rewritten for c in ins.called):
        return padder.copy(ins, static, shape=ins.shape)
    rule = RULES.get("elementwise" if ins.row.elementwise else ins.opcode)
    if rule is None:
        refuse(ins, "it takes and gives arrays of static sizes")
    return padder.conform(rule(padder, ins, *operands), ins.shape, ins)
