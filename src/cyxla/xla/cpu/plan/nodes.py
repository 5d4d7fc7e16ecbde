"""Nodes of a plan: kernels, loops and branches in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from cyxla.xla.cpu.kernel.kernel import Step, Value
from cyxla.xla.hlo import Computation, Instruction


@dataclass(frozen=True, eq=False)
class KernelNode:
    """One kernel, called once."""

    step: Step

    @property
    def cost(self) -> float:
        """Estimated ns."""
        return self.step.kernel.cost


@dataclass(frozen=True, eq=False)
class WhileNode:
    """A loop over a state of arrays.

    Attributes
    ----------
    initial : list of Value
        The state before the first turn.
    state : list of Value
        The state after the last.
    condition, body : Plan
        Both take the state; the one results in a predicate, the other in the next state.
    """

    initial: list[Value]
    state: list[Value]
    condition: Plan
    body: Plan

    @property
    def cost(self) -> float:
        """Estimated ns of one turn."""
        return self.condition.cost + self.body.cost


@dataclass(frozen=True, eq=False)
class ConditionalNode:
    """A choice between computations; a selector outside their range picks the last.

    Attributes
    ----------
    selector : Value
        A predicate (true picks branch 0, false branch 1) or a number.
    branches : list of Plan
        What there is to choose from.
    arguments : list of list of Value
        What each branch takes.
    results : list of Value
        What the chosen branch results in.
    """

    selector: Value
    branches: list[Plan]
    arguments: list[list[Value]]
    results: list[Value]

    @property
    def cost(self) -> float:
        """Estimated ns of the longest branch."""
        return max(b.cost for b in self.branches)


Node: TypeAlias = KernelNode | WhileNode | ConditionalNode


@dataclass(frozen=True, eq=False)
class Plan:
    """What runs a computation.

    Attributes
    ----------
    computation : Computation
        What it came from.
    nodes : list of Node
        In the order they run.
    parameters : list of Value
        The array leaves of all parameters, in order.
    results : list of Value
        The array leaves of the root, in order; a leaf may be a parameter, a constant, or stand there twice.
    reasons : list of str
        What was not computed together and why.
    """

    computation: Computation
    nodes: list[Node]
    parameters: list[Value]
    results: list[Value]
    reasons: list[str] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """Estimated ns, each loop counted as one turn."""
        return sum(n.cost for n in self.nodes) + 1.0

    @property
    def longest(self) -> float:
        """Estimated ns of the longest stretch in which nobody asks whether the caller wants to stop.

        That is asked between the tasks of a kernel, and between turns of a loop.
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

    def inner(self) -> Iterator[Plan]:
        """Go through the plan and those of loops and branches inside it."""
        yield self
        for node in self.nodes:
            if isinstance(node, WhileNode):
                yield from node.condition.inner()
                yield from node.body.inner()
            elif isinstance(node, ConditionalNode):
                for branch in node.branches:
                    yield from branch.inner()

    def functions(self) -> dict[str | Instruction, int]:
        """What the kernels call, numbered."""
        return {f: n for n, f in enumerate(dict.fromkeys(f for step in self.steps() for f in step.functions))}

    @property
    def has_state(self) -> bool:
        """Whether a call has random numbers of its own."""
        return any(step.state for step in self.steps())

    def steps(self) -> Iterator[Step]:
        """All calls of kernels, those inside loops and branches included."""
        for node in self.nodes:
            if isinstance(node, KernelNode):
                yield node.step
            elif isinstance(node, WhileNode):
                yield from node.condition.steps()
                yield from node.body.steps()
            else:
                for branch in node.branches:
                    yield from branch.steps()
