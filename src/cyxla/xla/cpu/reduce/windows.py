"""Emitter of sliding windows: scans, small windows, and reductions of each window."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.xla.cpu.c import scalar_computation
from cyxla.xla.cpu.emitters import emits_group, fusible
from cyxla.xla.cpu.kernel.cumulative_windows import prefix
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import Step
from cyxla.xla.cpu.kernel.values import own_leaves
from cyxla.xla.cpu.loops.index_map import Affine, Condition
from cyxla.xla.cpu.loops.loop_ir import Body
from cyxla.xla.cpu.loops.nodes import Node
from cyxla.xla.cpu.reduce.emit import accumulator_of, check, steps_of
from cyxla.xla.cpu.reduce.problem import Problem
from cyxla.xla.cpu.reduce.scans import scan_step
from cyxla.xla.cpu.reduce.small_windows import is_small, window_step


@emits_group(GroupKind.REDUCE_WINDOW)
def reduce_window(group: Group) -> list[Step]:
    """Emit sliding windows: a reduction over the window's dims for every element of the result."""
    root = group.root
    scan, acc = prefix(root), accumulator_of(root)
    is_supported = acc is not None or scalar_computation.unsupported_reason(root.called[0]) is None
    if scan is not None and is_supported and all(o.shape.size == root.shape.size for o in group.outputs):
        return [scan_step(group, scan, acc)]
    if acc is not None and is_small(group, acc):
        return [window_step(group, acc)]
    count = len(root.operands) // 2
    arrays, inits = root.operands[:count], root.operands[count:]
    dims, window = arrays[0].shape.dims, root.attrs["window"] or ()

    def elements(
        body: Body, kept_index: Sequence[Affine], reduced_index: Sequence[Affine]
    ) -> tuple[list[Node], tuple[Condition, ...]]:
        space = body.space
        conditions: list[Condition] = []
        coordinates: list[Affine] = []
        for o, w, n, spec in zip(kept_index, reduced_index, dims, window, strict=True):
            coordinate = space.combine(((o, spec.stride), (w, spec.window_dilation))).shift(-spec.padding_low)
            own = [Condition(coordinate, 0, (n - 1) * spec.base_dilation)]
            if spec.base_dilation > 1:
                own.append(Condition(space.remainder(coordinate, spec.base_dilation), 0, 0))
                coordinate = space.quotient(coordinate, spec.base_dilation)
            undecided = tuple(c for c in own if c.decided is not True)
            coordinates.append(space.choice(undecided, coordinate, n - 1) if undecided else coordinate)
            conditions += undecided
        index = space.index(dims, tuple(coordinates))
        return [body.value(a, index) for a in arrays], tuple(conditions)

    kept = root.shape.leaves()[0].dims
    sizes = tuple(w.size for w in window) if arrays[0].shape.size else (0,) * len(dims)
    problem = Problem(group, root, kept, sizes, elements, inits, own_leaves(root))
    problem.writes = tuple(v for o in group.outputs for v in own_leaves(o))
    problem.acc = accumulator_of(root)
    return steps_of(problem)


fusible("reduce-window", check=check)
