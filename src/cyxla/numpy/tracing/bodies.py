"""Bodies: functions called inside a traced function, such as those of loops, branches and gradients.

Each is traced once, in a trace of its own, and kept as a `Body`: instructions that can be inlined in the body of a
loop, in the enclosing computation, or in a form that can be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.trace import Rule, Trace, require_current, tracing
from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.instruction import Instruction

Values = dict[Instruction, XlaOp]


@dataclass(frozen=True)
class Body:
    """Instructions of a traced function.

    Attributes
    ----------
    trace : Trace
        Trace that holds them.
    arguments : list of XlaOp
        First parameters; further ones stand for captured values.
    results : list of XlaOp
        Results of the function.
    """

    trace: Trace
    arguments: list[XlaOp]
    results: list[XlaOp]

    @property
    def captures(self) -> list[XlaOp]:
        """Captured values of the enclosing trace, one for each parameter after the arguments."""
        return [outer for outer, _ in self.trace.captures]

    @property
    def parameters(self) -> list[XlaOp]:
        """Arguments, then the parameters of captured values."""
        return [*self.arguments, *[inner for _, inner in self.trace.captures]]

    @property
    def shapes(self) -> list[Shape]:
        """Shapes of the parameters."""
        return [p.shape for p in self.parameters]

    @cached_property
    def instructions(self) -> list[Instruction]:
        """All instructions in program order."""
        return self.trace.builder.instructions

    @property
    def fails(self) -> bool:
        """True if the body contains checks at run time."""
        return bool(self.trace.failures)


@dataclass(frozen=True)
class TracedFunction:
    """Python function as a body.

    Attributes
    ----------
    body : Body
        Instructions of the function.
    tree : Tree
        Structure of the container that the function returned.
    results : list of TracedArray
        Leaves of that container, as arrays of the body's trace.
    """

    body: Body
    tree: Tree
    results: list[TracedArray]


def record(
    name: str, function: Callable[..., Any], arguments: Sequence[TracedArray], build: Callable[[list[Any]], Any]
) -> TracedFunction:
    """Trace a Python function in a new trace inside the current one.

    Parameters
    ----------
    name : str
        Name of the trace.
    function : callable
        Function to trace.
    arguments : sequence of TracedArray
        Prototypes of the parameters of the new trace.
    build : callable
        Function from those parameters to the list of arguments of `function`.
    """
    trace = Trace(name, require_current())
    with tracing(trace):
        traced_arguments = [TracedArray(trace.parameter(a.aval.static), a.weak, origin=a.origin) for a in arguments]
        parameters = [a.op for a in traced_arguments]  # kept, since the function may write to its arguments
        leaves, tree = flatten(function(*build(traced_arguments)))
        results = [as_traced(leaf) for leaf in leaves]
        values = [value_of(r) for r in results]
    return TracedFunction(Body(trace, parameters, values), tree, results)


def record_body(name: str, shapes: Sequence[Shape], emit: Callable[..., Sequence[XlaOp]]) -> Body:
    """Trace a function of values that captures nothing."""
    trace = Trace(name)
    with tracing(trace):
        parameters = [trace.parameter(s) for s in shapes]
        results = list(emit(*parameters))
    return Body(trace, parameters, results)


def replay(
    body: Body,
    operands: Sequence[XlaOp | None],
    precomputed: Mapping[Instruction, XlaOp] | None = None,
    rewrite: Mapping[Rule, Callable[[list[XlaOp]], list[XlaOp]]] | None = None,
    extra: Iterable[XlaOp] = (),
    *,
    effects: bool = True,
) -> Values:
    """Inline the instructions of a body in the current trace, as far as results and failures depend on them.

    Parameters
    ----------
    body : Body
        Body to inline.
    operands : sequence of XlaOp
        Values of the parameters; None for one that nothing depends on.
    precomputed : mapping, optional
        Instructions whose values exist already.
    rewrite : mapping, optional
        Functions from the inputs of a rule to its outputs, by rule, instead of the rule's instructions.
    extra : iterable of XlaOp, optional
        Further values of the body to inline.
    effects : bool
        Whether to inline instructions with side effects, too.

    Returns
    -------
    dict of Instruction to XlaOp
        New value of each instruction.
    """
    trace = require_current()
    pairs = zip(body.parameters, operands, strict=True)
    values: Values = {instruction_of(p): trace.capture(o) for p, o in pairs if o is not None}
    values.update(precomputed or {})
    roots = [instruction_of(v) for v in (*body.results, *extra, *[v for f in body.trace.failures for v in f])]
    rules, rewrites = body.trace.rules, rewrite or {}
    if effects:
        roots += _effects(body, rewrites)
    needed = reachable(roots, values, rules, rewrites)
    for ins in body.instructions:
        if ins not in needed or ins in values:
            continue
        rule = rules.get(ins)
        if rule is not None and rule in rewrites:
            outputs = rewrites[rule]([values[instruction_of(x)] for x in rule.inputs])
            values.update(zip(map(instruction_of, rule.outputs), outputs, strict=True))
            continue
        values[ins] = trace.builder.clone(ins, [values[o] for o in ins.operands])
        if rule is not None and all(instruction_of(o) in values for o in rule.outputs):
            repeat_rule(trace, rule, values)
    return values


def _effects(body: Body, rewrites: Iterable[Rule]) -> list[Instruction]:
    """Return the instructions with side effects, without those inside rules that are rewritten."""
    found = [ins for ins in body.instructions if ins.has_side_effect]
    if not found:
        return found
    inside: set[Instruction] = set()
    for rule in rewrites:
        inputs = set(map(instruction_of, rule.inputs))
        inside |= reachable(map(instruction_of, rule.outputs), dict.fromkeys(inputs, rule.inputs[0]), {}, ())
    return [ins for ins in found if ins not in inside]


def repeat_rule(trace: Trace, rule: Rule, values: Values) -> None:
    """Attach a rule to the inlined copies of its instructions."""
    inputs, outputs = ([values[instruction_of(v)] for v in side] for side in (rule.inputs, rule.outputs))
    copied = Rule(inputs, outputs, rule.vjp, rule.forward)
    trace.rules.update((instruction_of(o), copied) for o in outputs)


def reachable(
    roots: Iterable[Instruction], known: Values, rules: Mapping[Instruction, Rule], opaque: Container[Rule]
) -> set[Instruction]:
    """Return the instructions that values depend on, excluding known ones and the insides of opaque rules.

    All inputs and outputs of a rule count as its dependencies.
    """
    reached: set[Instruction] = set()
    stack = list(roots)
    while stack:
        ins = stack.pop()
        if ins in reached or ins in known:
            continue
        reached.add(ins)
        rule = rules.get(ins)
        if rule is None or rule not in opaque:
            stack.extend(ins.operands)
        if rule is not None:
            stack.extend(map(instruction_of, (*rule.inputs, *rule.outputs)))
    return reached


def inline(body: Body, operands: Sequence[XlaOp | None]) -> list[XlaOp]:
    """Inline a body with these operands and return its results; its failures join those of the current trace."""
    return body_results(body, replay(body, operands))


def body_results(body: Body, values: Values) -> list[XlaOp]:
    """Return the results of an inlined body; its failures join those of the current trace."""
    merge_failures(body, values)
    return [values[instruction_of(r)] for r in body.results]


def merge_failures(body: Body, values: Values) -> None:
    """Add the failures of an inlined body to those of the current trace."""
    pairs = [(instruction_of(code), instruction_of(number)) for code, number in body.trace.failures]
    require_current().failures.extend((values[code], values[number]) for code, number in pairs)


def instruction_of(op: XlaOp) -> Instruction:
    """Return the instruction of a value, which must exist."""
    assert op.instruction is not None
    return op.instruction
