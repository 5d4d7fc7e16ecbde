"""Programs of wheels: a function with a loop, a network with its weights, a graph with variables.

Each function returns a program whose name is ``f``, arguments, and the same function as it is called without a wheel.
"""

import numpy as np

import cyxla
from cyxla import aot
from cyxla.aot.config import Config, Feed, Fetch
from cyxla.core.framework.apply import apply_op
from support.hlo.residual_network import ResidualNetwork

RNG = np.random.default_rng(7)


def newton(x):
    """Return square roots by Newton's method, and the number of steps.

    It stops after 50.
    """
    y, k = x + 1, 0
    while np.max(np.abs(y * y - x)) > 1e-6 and k < 50:
        y = (y + x / y) / 2
        k += 1
    return y, k


def loop_program():
    x = RNG.random((5, 7))
    return aot.program(newton, x, name="f"), [x], cyxla.jit(newton)


def network_program():
    network = ResidualNetwork()
    return aot.program(network.text, name="f"), [network.images], cyxla.compile(network.text)


def graph_program():
    """z = tanh(x @ w), with w a variable."""
    w, x = RNG.standard_normal((3, 2), np.float32), RNG.standard_normal((4, 3), np.float32)
    graph = cyxla.Graph()
    with graph.as_default():
        node = graph.placeholder("float", [None, 3], name="x")
        handle = apply_op("VarHandleOp", dtype="float", shape=[3, 2], shared_name="weights", name="w")
        apply_op("Tanh", apply_op("MatMul", node, apply_op("ReadVariableOp", handle, dtype="float")), name="z")
        apply_op("AssignVariableOp", handle, w, name="start")
    session = cyxla.Session(graph, jit="on")
    session.run("start")
    config = Config([Feed("x", (4, 3))], [Fetch("z")])
    program = aot.program(graph, config=config, variables={"w": w}, name="f")
    return program, [x], lambda x: session.run("z:0", {"x:0": x})


PROGRAMS = {"loop": loop_program, "network": network_program, "graph": graph_program}
