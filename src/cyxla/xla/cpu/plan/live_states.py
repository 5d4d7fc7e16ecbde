"""States of loops of which a leading part matters, up to sizes that are part of the state.

A loop carries an array and its size, or an array and a size that the loop leaves as it is. The elements beyond the size
matter neither to the next iteration nor after the loop, if neither the body nor the condition nor the users of the
loop read them. The parts of a state are found by sweeping the body until they change no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import leaf_indices, resolve
from cyxla.xla.cpu.plan.live_rules import ALL, MAX_SIZES, Parts
from cyxla.xla.hlo import Computation, Instruction

ShapeIndex: TypeAlias = tuple[int, ...]
#: Live parts of the leaves of a state; sizes are leaves of the state too. A leaf without a part is never read.
LoopState: TypeAlias = Mapping[ShapeIndex, Mapping[int, frozenset[ShapeIndex]]]
#: Function from a computation and the parts of its result that are read to the parts of all its instructions.
Sweep: TypeAlias = Callable[[Computation, Parts], Mapping[Instruction, Parts]]

_MAX_SWEEPS = 8  # sweeps of a body after which every element of its state matters


def loop_state(ins: Instruction, read: Parts, sweep: Sweep) -> LoopState:
    """Return the live part of the state of a loop at the start of every iteration.

    Parameters
    ----------
    ins : Instruction
        Loop.
    read : Parts
        Parts of its result that are read.
    sweep : Sweep
        Sweep over a computation.
    """
    body, condition = ins.called
    indices = list(leaf_indices(ins.shape))
    outside = {resolve(ins.operands[0], i): i for i in indices if _is_kept(body, i)}
    state = _in_leaves(read, outside | {Value(ins, i): i for i in indices})
    everything: Parts = dict.fromkeys(leaf_indices(condition.root.shape), ALL)
    state = _joined(state, _in_state(condition, sweep(condition, everything), indices))
    for _ in range(_MAX_SWEEPS):
        wider = _joined(state, _in_state(body, sweep(body, next_parts(ins, state)), indices))
        if wider == state:
            return state
        state = wider
    return {i: {} for i in indices}


def initial_parts(ins: Instruction, state: LoopState) -> Parts:
    """Return the parts of the initial state that a loop reads."""
    return _parts(ins.operands[0], state)


def next_parts(ins: Instruction, state: LoopState) -> Parts:
    """Return the parts of the result of a loop's body that are read."""
    return _parts(ins.called[0].root, state)


def live_results_of(ins: Instruction, state: LoopState) -> list[tuple[int, int, int]]:
    """Return the results of a loop's body of which a part is read: numbers of leaf, dimension and size."""
    numbers = {index: n for n, index in enumerate(leaf_indices(ins.shape))}
    return [
        (numbers[index], d, numbers[size])
        for index, part in state.items()
        for d, sizes in part.items()
        for size in sorted(sizes)
    ]


def _is_kept(body: Computation, index: ShapeIndex) -> bool:
    """Return whether a body leaves a leaf of the state as it is."""
    return resolve(body.root, index) == Value(body.parameters[0], index)


def _in_state(computation: Computation, parts: Mapping[Instruction, Parts], indices: Sequence[ShapeIndex]) -> LoopState:
    """Return the parts of the parameter of a body or condition as those of a state."""
    (parameter,) = computation.parameters
    return _in_leaves(parts.get(parameter, {}), {Value(parameter, i): i for i in indices})


def _in_leaves(parts: Parts, leaves: Mapping[Value, ShapeIndex]) -> LoopState:
    """Return parts whose sizes are leaves of a state; a dimension with another size matters as a whole."""
    state = {
        index: {d: frozenset(leaves[v] for v in sizes) for d, sizes in part.items() if all(v in leaves for v in sizes)}
        for index, part in parts.items()
    }
    return _with_sizes(state)


def _with_sizes(state: LoopState) -> LoopState:
    """Return a state whose sizes are read too."""
    sizes: LoopState = {size: {} for part in state.values() for found in part.values() for size in found}
    return {**state, **sizes}


def _joined(one: LoopState, other: LoopState) -> LoopState:
    """Return the least state that contains two."""
    state = {**one, **other}
    for index in one.keys() & other.keys():
        joint = {d: one[index][d] | other[index][d] for d in one[index] if d in other[index]}
        state[index] = {d: sizes for d, sizes in joint.items() if len(sizes) <= MAX_SIZES}
    return _with_sizes(state)


def _parts(ins: Instruction, state: LoopState) -> Parts:
    """Return the parts of a tuple that has a state."""
    return {
        index: {d: frozenset(resolve(ins, size) for size in sizes) for d, sizes in part.items()}
        for index, part in state.items()
    }
