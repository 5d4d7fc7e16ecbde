"""Ways to evaluate one opcode, and to build the computations that opcodes apply."""

import numpy as np
import pytest

from cyxla.types import Shape, element_type
from cyxla.xla.evaluator import evaluate, evaluate_instruction
from cyxla.xla.hlo import Computation, HloModule


def shape_of(value):
    return Shape.tuple([shape_of(v) for v in value]) if isinstance(value, tuple) else Shape.of(value)


def parameters(computation, shapes):
    return [computation.add("parameter", attrs={"parameter_number": n}, shape=s) for n, s in enumerate(shapes)]


def scalar_function(opcode, dtype, arity=2, result=None, **attrs):
    """The computation that applies one opcode to scalars."""
    comp = Computation(opcode)
    operands = parameters(comp, [Shape.array(dtype)] * arity)
    comp.root = comp.add(opcode, operands, attrs, shape=Shape.array(result or dtype))
    return comp


class Runner:
    """run(opcode, *operands, shape="f32[2]", called=(), **attrs) evaluates one instruction."""

    def __call__(self, opcode, *operands, to=None, dims=None, shape=None, called=(), **attrs):
        comp = Computation("main")
        params = parameters(comp, [shape_of(o) for o in operands])
        if shape is None:
            like = params[0].shape
            shape = Shape.array(to or like.dtype, like.dims if dims is None else dims)
        return evaluate_instruction(comp.add(opcode, params, attrs, shape=shape, called=called), *operands)

    @staticmethod
    def array(dtype, values):
        return np.array(values, element_type(dtype).numpy_dtype)

    function = staticmethod(scalar_function)
    parameters = staticmethod(parameters)


@pytest.fixture
def run():
    return Runner()


def evaluate_text(text, *operands, options=None):
    """Evaluate HLO text: a module, or one instruction on operands p0, p1, .."""
    if "ENTRY" not in text:
        lines = [f"  p{n} = {shape_of(o).to_text(layout=False)} parameter({n})" for n, o in enumerate(operands)]
        text = "ENTRY main {\n" + "\n".join([*lines, "  ROOT r = " + text]) + "\n}"
    return evaluate(HloModule.from_text(text), operands, options=options)


@pytest.fixture
def hlo():
    return evaluate_text
