"""Nodes of a plan: kernels, loops and branches in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel.kernel import Step, Value
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.service.refusal import Refusal


@dataclass(frozen=True, eq=False)
class KernelNode:
    """Call of one kernel."""

    step: Step

    @property
    def cost(self) -> float:
        """Estimated time in ns."""
        return self.step.kernel.cost


@dataclass(frozen=True, eq=False)
class WhileNode:
    """While loop over a state of arrays.

    Attributes
    ----------
    initial : list of Value
        State before the first iteration.
    state : list of Value
        State after the last iteration.
    condition, body : Plan
        Plans with the state as parameters; they result in a predicate and in the next state.
    """

    initial: list[Value]
    state: list[Value]
    condition: Plan
    body: Plan

    @property
    def cost(self) -> float:
        """Estimated time of one iteration in ns."""
        return self.condition.cost + self.body.cost


@dataclass(frozen=True, eq=False)
class ConditionalNode:
    """Conditional: runs one of several branches; a selector out of range picks the last.

    Attributes
    ----------
    selector : Value
        Predicate (true picks branch 0, false branch 1) or index of the branch.
    branches : list of Plan
        Plans to choose from.
    arguments : list of list of Value
        Arguments of each branch.
    results : list of Value
        Results of the conditional.
    """

    selector: Value
    branches: list[Plan]
    arguments: list[list[Value]]
    results: list[Value]

    @property
    def cost(self) -> float:
        """Estimated time of the longest branch in ns."""
        return max(b.cost for b in self.branches)


Node: TypeAlias = KernelNode | WhileNode | ConditionalNode


@dataclass(frozen=True, eq=False)
class Plan:
    """Sequence of nodes that runs a computation.

    Attributes
    ----------
    computation : Computation
        Computation that was planned.
    nodes : list of Node
        Nodes in the order in which they run.
    parameters : list of Value
        Array leaves of all parameters, in order.
    results : list of Value
        Array leaves of the root, in order; a leaf may be a parameter or a constant, and may occur twice.
    reasons : list of Refusal
        Instructions that were not fused, loops that are not one kernel.
    live : sequence of LiveResult
        Results whose live elements alone are read (see `plan.live_rows`).
    """

    computation: Computation
    nodes: list[Node]
    parameters: list[Value]
    results: list[Value]
    reasons: list[Refusal] = field(default_factory=list)
    live: Sequence[tuple[int, int, int]] = ()

    @property
    def cost(self) -> float:
        """Estimated time in ns, each loop counted as one iteration."""
        return sum(n.cost for n in self.nodes) + 1.0

    @property
    def longest(self) -> float:
        """Estimated time in ns of the longest stretch without a check for cancellation.

        The checks are between the tasks of a kernel and between the iterations of a loop.
        """
        longest = stretch = 0.0
        for node in self.nodes:
            if isinstance(node, WhileNode):
                stretch, part = 0.0, node.condition.longest + node.body.longest
            elif isinstance(node, ConditionalNode):
                stretch = part = stretch + max(b.longest for b in node.branches)
            elif node.step.kernel.tasks > 1 or node.step.context:
                stretch, part = 0.0, node.cost / node.step.kernel.tasks / node.step.kernel.phases
            else:
                stretch = part = stretch + node.cost
            longest = max(longest, part)
        return longest

    def nested_plans(self) -> Iterator[Plan]:
        """Yield the plan and those of loops and branches inside it."""
        yield self
        for node in self.nodes:
            if isinstance(node, WhileNode):
                yield from node.condition.nested_plans()
                yield from node.body.nested_plans()
            elif isinstance(node, ConditionalNode):
                for branch in node.branches:
                    yield from branch.nested_plans()

    def functions(self) -> dict[str | Instruction, int]:
        """Return the functions that the kernels call, with their indices."""
        return {f: n for n, f in enumerate(dict.fromkeys(f for step in self.steps() for f in step.functions))}

    @property
    def has_state(self) -> bool:
        """True if a call keeps a state of random numbers."""
        return any(step.state for step in self.steps())

    def steps(self) -> Iterator[Step]:
        """Yield all calls of kernels, those inside loops and branches included."""
        for node in self.nodes:
            if isinstance(node, KernelNode):
                yield node.step
            elif isinstance(node, WhileNode):
                yield from node.condition.steps()
                yield from node.body.steps()
            else:
                for branch in node.branches:
                    yield from branch.steps()
