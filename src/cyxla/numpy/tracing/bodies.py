"""Functions that are called inside a traced function: bodies of loops, branches, and what is differentiated.

Each is traced once, in a trace of its own, and kept as a `Body`: instructions that can be written again wherever they
are needed, in the body of a loop, in the same place once more, or in a way that a gradient can go back through.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.trace import Rule, Trace, require_current, tracing
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.instruction import Instruction

Values = dict[Instruction, XlaOp]


@dataclass(frozen=True)
class Body:
    """A function as the instructions that it consists of.

    Attributes
    ----------
    trace : Trace
        Where they are.
    arguments : list of XlaOp
        Its first parameters; those that follow stand for what it captured.
    results : list of XlaOp
        Its results.
    """

    trace: Trace
    arguments: list[XlaOp]
    results: list[XlaOp]

    @property
    def captures(self) -> list[XlaOp]:
        """Values of the trace around it, one for each parameter after the arguments."""
        return [outer for outer, _ in self.trace.captures]

    @property
    def parameters(self) -> list[XlaOp]:
        """Arguments, then what stands for the captures."""
        return [*self.arguments, *[inner for _, inner in self.trace.captures]]

    @property
    def shapes(self) -> list[Shape]:
        """Of the parameters."""
        return [p.shape for p in self.parameters]

    @cached_property
    def instructions(self) -> list[Instruction]:
        """All of them, in order."""
        return self.trace.builder.instructions

    @property
    def fails(self) -> bool:
        """Whether it checks anything."""
        return bool(self.trace.failures)


@dataclass(frozen=True)
class Traced:
    """A Python function as a body.

    Attributes
    ----------
    body : Body
        Its instructions.
    tree : Tree
        The container that it returned.
    results : list of TracedArray
        The leaves of that container, as arrays of the body's trace.
    """

    body: Body
    tree: Tree
    results: list[TracedArray]


def record(
    name: str, function: Callable[..., Any], arguments: Sequence[TracedArray], build: Callable[[list[Any]], Any]
) -> Traced:
    """Run a Python function in a trace of its own inside the current one.

    Parameters
    ----------
    name : str
        Of the trace.
    function : callable
        What to trace.
    arguments : sequence of TracedArray
        What the arguments look like; parameters of the new trace stand for them.
    build : callable
        From those parameters to the arguments of `function`, as a list.
    """
    trace = Trace(name, require_current())
    with tracing(trace):
        given = [TracedArray(trace.parameter(a.aval.static), a.weak, origin=a.origin) for a in arguments]
        first = [g.op for g in given]  # the function may write to its arguments
        leaves, tree = flatten(function(*build(given)))
        results = [as_traced(leaf) for leaf in leaves]
        values = [value_of(r) for r in results]
    return Traced(Body(trace, first, values), tree, results)


def record_values(name: str, shapes: Sequence[Shape], write: Callable[..., Sequence[XlaOp]]) -> Body:
    """A function of values that uses nothing but its arguments, as a body."""
    trace = Trace(name)
    with tracing(trace):
        given = [trace.parameter(s) for s in shapes]
        results = list(write(*given))
    return Body(trace, given, results)


def replay(
    body: Body,
    operands: Sequence[XlaOp | None],
    known: Mapping[Instruction, XlaOp] | None = None,
    rewrite: Mapping[Rule, Callable[[list[XlaOp]], list[XlaOp]]] | None = None,
    extra: Iterable[XlaOp] = (),
) -> Values:
    """Write the instructions of a body in the current trace, as far as the results and failures need them.

    Parameters
    ----------
    body : Body
        What to write.
    operands : sequence of XlaOp
        Values for its parameters; None for one that nothing depends on.
    known : mapping, optional
        Instructions whose values are there already.
    rewrite : mapping, optional
        Rules whose outputs are to be written in another way: functions from the inputs to them.
    extra : iterable of XlaOp, optional
        Further values of the body that are wanted.

    Returns
    -------
    dict of Instruction to XlaOp
        The new values.
    """
    trace = require_current()
    given = zip(body.parameters, operands, strict=True)
    values: Values = {made(p): trace.inner(o) for p, o in given if o is not None}
    values.update(known or {})
    roots = [made(v) for v in (*body.results, *extra, *[v for f in body.trace.failures for v in f])]
    rules, otherwise = body.trace.rules, rewrite or {}
    wanted = reached(roots, values, rules, otherwise)
    for ins in body.instructions:
        if ins not in wanted or ins in values:
            continue
        rule = rules.get(ins)
        if rule is not None and rule in otherwise:
            outputs = otherwise[rule]([values[made(x)] for x in rule.inputs])
            values.update(zip(map(made, rule.outputs), outputs, strict=True))
            continue
        values[ins] = trace.builder.repeat(ins, [values[o] for o in ins.operands])
        if rule is not None and all(made(o) in values for o in rule.outputs):
            repeat_rule(trace, rule, values)
    return values


def repeat_rule(trace: Trace, rule: Rule, values: Values) -> None:
    """Let a rule hold for the values that its instructions have become."""
    inputs, outputs = ([values[made(v)] for v in side] for side in (rule.inputs, rule.outputs))
    again = Rule(inputs, outputs, rule.vjp, rule.again)
    trace.rules.update((made(o), again) for o in outputs)


def reached(
    roots: Iterable[Instruction], known: Values, rules: Mapping[Instruction, Rule], closed: Container[Rule]
) -> set[Instruction]:
    """What values depend on, short of what is known and of the inside of closed rules.

    A rule needs all of its inputs and outputs.
    """
    found: set[Instruction] = set()
    stack = list(roots)
    while stack:
        ins = stack.pop()
        if ins in found or ins in known:
            continue
        found.add(ins)
        rule = rules.get(ins)
        if rule is None or rule not in closed:
            stack.extend(ins.operands)
        if rule is not None:
            stack.extend(map(made, (*rule.inputs, *rule.outputs)))
    return found


def write(body: Body, operands: Sequence[XlaOp | None]) -> list[XlaOp]:
    """The results of a body for these values of its parameters; its failures are those of the current trace."""
    return results_of(body, replay(body, operands))


def results_of(body: Body, values: Values) -> list[XlaOp]:
    """The results of a body that has been written; its failures become those of the current trace."""
    keep_failures(body, values)
    return [values[made(r)] for r in body.results]


def keep_failures(body: Body, values: Values) -> None:
    """Make the failures of a body that has been written those of the current trace."""
    require_current().failures.extend((values[made(c)], values[made(n)]) for c, n in body.trace.failures)


def made(op: XlaOp) -> Instruction:
    """The instruction of a value that exists."""
    assert op.instruction is not None
    return op.instruction
