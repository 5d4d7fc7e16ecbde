"""Live rows: leading parts of arrays, of sizes known at run time, beyond which no element matters.

Programs of sizes known at run time have arrays of a bound, padded beyond the size, and mask the padding::

    select(compare(iota(d) < broadcast(size)), x, filler)

Elements of ``x`` at ``size`` and beyond along dimension ``d`` have no influence on the result, nor have the elements
that only these are computed from. A sweep from the results to the parameters finds the leading part of every array
that matters; the kernels compute that part alone, rounded up to their units of work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TypeAlias

from cyxla.errors import InvalidArgumentError
from cyxla.records import dataclass
from cyxla.xla.cpu.kernel.groups import Live
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import leaf_indices, resolve
from cyxla.xla.cpu.plan import live_branches
from cyxla.xla.cpu.plan.live_rules import ALL, Parts, join, operand_parts
from cyxla.xla.cpu.plan.live_states import LoopState, initial_parts, loop_state
from cyxla.xla.cpu.plan.masks import SIZE_TYPES, has_sizes, stops_of
from cyxla.xla.hlo import Computation, Instruction

#: Result leaf, dimension of it, and the result leaf that holds the number of its live elements along that dimension; ~p
#: stands for parameter p in place of that leaf. Of several such leaves, the greatest counts.
LiveResult: TypeAlias = tuple[int, int, int]

_MAX_NESTING = 3  # loops inside each other whose states are looked into: each level takes several sweeps of the next


@dataclass
class LiveRows:
    """Live parts of the arrays of a computation.

    Attributes
    ----------
    parts : dict of Instruction to Parts
        Parts of the results of instructions that any result depends on.
    states : dict of Instruction to LoopState
        Live parts of the states of loops.
    branches : dict of Instruction to sequence of LiveResult
        Results of conditionals of which the live elements alone are read.
    """

    parts: dict[Instruction, dict[tuple[int, ...], Live]] = field(default_factory=dict)
    states: dict[Instruction, LoopState] = field(default_factory=dict)
    branches: dict[Instruction, Sequence[LiveResult]] = field(default_factory=dict)

    def demand(self, ins: Instruction, part: Live, index: tuple[int, ...] = ()) -> None:
        """Add a part of a leaf to those that matter."""
        parts = self.parts.setdefault(ins, {})
        parts[index] = join(parts[index], part) if index in parts else part

    def demand_all(self, ins: Instruction) -> None:
        """Add all elements of a result; of a token, that it is computed."""
        self.parts.setdefault(ins, {})
        for index in leaf_indices(ins.shape):
            self.demand(ins, ALL, index)

    def sizes(self) -> set[Instruction]:
        """Return the instructions that compute sizes of parts, or those at which reductions stop."""
        parts = [part for leaves in self.parts.values() for part in leaves.values()]
        parts += [stops_of(ins) for ins in self.parts if ins.opcode == "reduce"]
        sizes = {v.instruction for part in parts for sizes in part.values() for v in sizes}
        return {ins for ins in sizes if ins.opcode != "constant"}


def live_rows(computation: Computation, results: Sequence[LiveResult] = ()) -> LiveRows | None:
    """Return the live part of every array of a computation that any result depends on; None without sizes.

    Parameters
    ----------
    computation : Computation
        Computation after all passes.
    results : sequence of LiveResult
        Results of which the caller reads the live elements alone.
    """
    if not results and not has_sizes(computation):
        return None
    return _sweep(computation, _read_parts(computation, results), _MAX_NESTING)


def _sweep(computation: Computation, read: Parts, nesting: int) -> LiveRows:
    """Sweep over a computation of whose result some parts are read."""
    live = LiveRows()
    for index, part in read.items():
        live.demand(computation.root, part, index)
    for ins in reversed(computation.post_order()):
        if ins.has_side_effect or (ins is computation.root and not read):
            live.demand_all(ins)
        if ins in live.parts:
            _demand_operands(live, ins, nesting)
    return live


def _demand_operands(live: LiveRows, ins: Instruction, nesting: int) -> None:
    """Add the parts of the operands of an instruction that its own parts depend on."""
    parts = live.parts[ins]
    if ins.shape.is_array and not parts:  # never read
        return
    if ins.opcode in ("tuple", "get-tuple-element"):
        _forward(live, ins, parts)
    elif ins.opcode == "while" and nesting and (any(parts.values()) or any(map(has_sizes, ins.called))):
        state = loop_state(ins, parts, lambda computation, read: _sweep(computation, read, nesting - 1).parts)
        live.states[ins] = state
        live.parts.setdefault(ins.operands[0], {})
        for index, part in initial_parts(ins, state).items():
            live.demand(ins.operands[0], part, index)
    elif ins.opcode == "conditional" and nesting:
        _demand_arguments(live, ins, nesting - 1)
    elif all(o.shape.is_array for o in ins.operands):
        for operand, part in zip(ins.operands, operand_parts(ins, parts), strict=True):
            live.demand(operand, part)
    else:
        for operand in ins.operands:
            live.demand_all(operand)


def _demand_arguments(live: LiveRows, ins: Instruction, nesting: int) -> None:
    """Add the parts of the operands that the branches of a conditional read."""
    selector, *operands = ins.operands
    live.branches[ins] = live_branches.live_results_of(ins, live.parts[ins])
    live.demand_all(selector)
    for branch, operand in zip(ins.called, operands, strict=True):
        (parameter,) = branch.parameters
        live.parts.setdefault(operand, {})
        read = live_branches.result_parts(ins, live.parts[ins], branch.root)
        parts = _sweep(branch, read, nesting).parts.get(parameter, {})
        for index, part in live_branches.argument_parts(parameter, parts, operand).items():
            live.demand(operand, part, index)


def _forward(live: LiveRows, ins: Instruction, parts: Parts) -> None:
    """Add the parts of a tuple's elements, or of the tuple that an element is taken from."""
    for operand in ins.operands:
        live.parts.setdefault(operand, {})
    for index, part in parts.items():
        if ins.opcode == "tuple":
            live.demand(ins.operands[index[0]], part, index[1:])
        else:
            live.demand(ins.operands[0], part, (ins.attrs["index"], *index))


def _read_parts(computation: Computation, results: Sequence[LiveResult]) -> Parts:
    """Return the part of each result that the caller reads."""
    root, indices = computation.root, list(leaf_indices(computation.root.shape))
    parts: dict[tuple[int, ...], dict[int, frozenset[Value]]] = {index: {} for index in indices}
    constant: set[tuple[int, int]] = set()
    for leaf, dimension, size in results:
        value = resolve(root, indices[size]) if size >= 0 else Value(computation.parameters[~size])
        part = parts[indices[leaf]]
        part[dimension] = part.get(dimension, frozenset()) | {value}
        if value.instruction.opcode == "constant":
            constant.add((leaf, dimension))
    for leaf, dimension in constant:
        del parts[indices[leaf]][dimension]
    return {**parts}


def check_live_results(computation: Computation, results: Sequence[LiveResult]) -> None:
    """Check that results and their sizes exist.

    Raises
    ------
    InvalidArgumentError
        A result has no such dimension, or a size is no integer scalar.
    """
    shapes, parameters = list(computation.root.shape.leaves()), [p.shape for p in computation.parameters]
    for leaf, dimension, size in results:
        sizes = shapes[size : size + 1] if size >= 0 else parameters[~size : ~size + 1]
        if not (0 <= leaf < len(shapes) and sizes and 0 <= dimension < shapes[leaf].rank):
            raise InvalidArgumentError(f"live_results: no dimension {dimension} of result {leaf}, or no size {size}")
        if not sizes[0].is_array or sizes[0].size != 1 or sizes[0].dtype not in SIZE_TYPES:
            raise InvalidArgumentError(f"live_results: size {size} is {sizes[0]}, not an s32, s64 or u32 scalar")
