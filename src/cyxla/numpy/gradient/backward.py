"""Reverse mode: a body is inlined with its residuals, then cotangents are propagated backwards through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cyxla.errors import UnimplementedError
from cyxla.numpy.gradient.table import Cotangents, Node, find, zeros
from cyxla.numpy.tracing.bodies import Body, Values, body_results, instruction_of, replay
from cyxla.numpy.tracing.trace import Pullback, Rule, require_current, user_line
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.instruction import Instruction


def is_inexact(shape: Shape) -> bool:
    """Return True if values of a shape are differentiable: arrays of floats or complex numbers."""
    return shape.is_array and (shape.dtype.is_float or shape.dtype.is_complex)


class Linearised:
    """Body that is inlined in the current trace so that its results can be differentiated.

    Parameters
    ----------
    body : Body
        Function to differentiate.
    operands : sequence of XlaOp
        Values of the parameters.
    active : sequence of bool
        True for each parameter to differentiate with respect to.
    precomputed : mapping, optional
        Instructions of the body whose values exist already.
    effects : bool
        Whether the body runs for the first time, with its side effects.

    Attributes
    ----------
    values : dict of Instruction to XlaOp
        Values of the body's instructions.
    """

    def __init__(
        self, body: Body, operands: Sequence[XlaOp], active: Sequence[bool],
        precomputed: Mapping[Instruction, XlaOp] | None = None, *, effects: bool = False,
    ) -> None:  # fmt: skip
        self.body = body
        self.active = activity(body, active)
        self.requested = list(active)
        self._pullbacks: dict[Rule, Pullback] = {}
        precomputed_operands = [
            XlaOp(body.trace.builder, o) for ins in precomputed or () if ins in self.active for o in ins.operands
        ]
        self.values: Values = replay(
            body, operands, precomputed, self._forward_rules(), precomputed_operands, effects=effects
        )

    def _forward_rules(self) -> dict[Rule, Callable[[list[XlaOp]], list[XlaOp]]]:
        rules = dict.fromkeys(r for r in self.body.trace.rules.values() if r.forward is not None)
        return {r: self._forward(r) for r in rules if any(instruction_of(x) in self.active for x in r.inputs)}

    def _forward(self, rule: Rule) -> Callable[[list[XlaOp]], list[XlaOp]]:
        assert rule.forward is not None
        forward, flags = rule.forward, [instruction_of(x) in self.active for x in rule.inputs]

        def run_forward(inputs: list[XlaOp]) -> list[XlaOp]:
            outputs, self._pullbacks[rule] = forward(inputs, flags)
            return outputs

        return run_forward

    def results(self) -> list[XlaOp]:
        """Return the results of the body; its failures join those of the current trace."""
        return body_results(self.body, self.values)

    def pull(self, cotangents: Cotangents) -> list[XlaOp | None]:
        """Pull cotangents of the results back to the parameters; None where they are zero or not wanted."""
        return _ReversePass(self, cotangents).run()


def activity(body: Body, active: Sequence[bool]) -> set[Instruction]:
    """Return the instructions that depend on active parameters."""
    active_instructions = {instruction_of(p) for p, a in zip(body.parameters, active, strict=True) if a}
    rules = body.trace.rules
    for ins in body.instructions:
        if not (is_inexact(ins.shape) or ins.shape.is_tuple):
            continue
        rule = rules.get(ins)
        sources = ins.operands if rule is None else map(instruction_of, rule.inputs)
        if any(o in active_instructions for o in sources):
            active_instructions.add(ins)
    return active_instructions


class _ReversePass:
    """Reverse pass through a body."""

    def __init__(self, linear: Linearised, cotangents: Cotangents) -> None:
        self.linear = linear
        self.rules = linear.body.trace.rules
        self.trace = require_current()
        self.cotangents: dict[Instruction, list[XlaOp | None]] = {}
        self.visited_outputs: dict[Rule, int] = {}
        for result, c in zip(linear.body.results, cotangents, strict=True):
            self.add(instruction_of(result), c)

    def run(self) -> list[XlaOp | None]:
        """Visit all instructions that a cotangent reaches, and return the cotangents of the parameters."""
        for ins in reversed(self.linear.body.instructions):
            rule = self.rules.get(ins)
            if rule is not None:
                self.visit_output(rule)
            elif ins in self.cotangents and ins.opcode != "parameter":
                self.visit(ins)
        parameters = zip(self.linear.body.parameters, self.linear.requested, strict=True)
        return [self.cotangents.get(instruction_of(p), [None])[0] if w else None for p, w in parameters]

    def visit(self, ins: Instruction) -> None:
        """Propagate the cotangent of an instruction to its operands."""
        if ins.opcode == "get-tuple-element":
            self.add(ins.operands[0], self.cotangents[ins][0], int(ins.attrs["index"]))
        elif ins.opcode == "tuple":
            for operand, c in zip(ins.operands, self.cotangents[ins], strict=True):
                self.add(operand, c)
        elif ins.opcode == "opt-barrier":
            for k, c in enumerate(self.cotangents[ins]):
                self.add(ins.operands[0], c, k)
        else:
            self.visit_node(ins)

    def visit_node(self, ins: Instruction) -> None:
        """Propagate the cotangent by the rule of the opcode."""
        pull = find(ins.opcode)
        if pull is None:
            raise no_derivative(ins)
        node = Node(ins, self.value, self.cotangents[ins], tuple(o in self.linear.active for o in ins.operands))
        for operand, c in zip(ins.operands, pull(node), strict=True):
            self.add(operand, c)

    def visit_output(self, rule: Rule) -> None:
        """Count an output of a rule; visit the rule at its first output in program order, after all of its uses."""
        self.visited_outputs[rule] = self.visited_outputs.get(rule, 0) + 1
        if self.visited_outputs[rule] == len(rule.outputs) and any(
            instruction_of(o) in self.cotangents for o in rule.outputs
        ):
            self.visit_rule(rule)

    def visit_rule(self, rule: Rule) -> None:
        """Propagate the cotangents of the outputs of a rule to its inputs."""
        output_cotangents = [self.cotangents.get(instruction_of(o), [None])[0] for o in rule.outputs]
        if rule in self.linear._pullbacks:
            input_cotangents = self.linear._pullbacks[rule](output_cotangents)
        else:
            assert rule.vjp is not None
            inputs, outputs = ([self.value(instruction_of(v)) for v in side] for side in (rule.inputs, rule.outputs))
            input_cotangents = rule.vjp(inputs, outputs, output_cotangents)
        for x, c in zip(rule.inputs, input_cotangents, strict=True):
            self.add(instruction_of(x), c)

    def value(self, ins: Instruction) -> XlaOp:
        """Return the value of an instruction in the current trace."""
        return self.trace.capture(self.linear.values[ins])

    def add(self, ins: Instruction, cotangent: XlaOp | None, index: int = 0) -> None:
        """Accumulate a cotangent of an instruction."""
        if cotangent is None or ins not in self.linear.active:
            return
        parts = self.cotangents.get(ins)
        if parts is None:
            parts = self.cotangents[ins] = [None] * (len(ins.shape.elements) if ins.shape.is_tuple else 1)
        previous = parts[index]
        parts[index] = cotangent if previous is None else xla.add(previous, cotangent)


def no_derivative(ins: Instruction, context: str = "") -> UnimplementedError:
    """Return the error for an instruction without a derivative."""
    metadata = dict(ins.metadata)
    location = (
        f"{metadata['source_file']}:{metadata.get('source_line', '')}" if "source_file" in metadata else user_line()
    )
    name = f"{ins.opcode} {ins.attrs['custom_call_target']}" if ins.opcode == "custom-call" else ins.opcode
    return UnimplementedError(
        f"the derivative of {name}{context} is not implemented", where=location,
        hint="define it by cyxla.custom_vjp, or exclude the value by cyxla.stop_gradient",
    )  # fmt: skip


def or_zeros(cotangents: Cotangents, shapes: Sequence[Shape]) -> list[XlaOp]:
    """Replace missing cotangents by zeros."""
    return [zeros(s) if c is None else c for c, s in zip(cotangents, shapes, strict=True)]
