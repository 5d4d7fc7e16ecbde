"""Claims: a node of a chain of 10,000 takes at most 2 us, one of a loop 8 us; a run of one node takes at most 20 us."""

import sys
from pathlib import Path

import numpy as np

from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import Session

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.graphs.running import constant_like, while_loop

LENGTH, TRIPS = 10_000, 1_000
X = np.ones(4, np.float32)


def chain(op, length):
    """Return a session and the last tensor of a chain of one op on four floats."""
    graph = Graph()
    with graph.as_default():
        t = graph.placeholder("float", [4], name="x")
        for _ in range(length):
            t = apply_op(op, t)
    return Session(graph), t


def per_node(best_time, session, last):
    """Return the microseconds per node of a chain."""
    return best_time(lambda: session.run(last, {"x:0": X})) / LENGTH * 1e6


def test_chain(benchmark, claim, best_time):
    session, last = chain("Neg", LENGTH)
    np.testing.assert_array_equal(session.run(last, {"x:0": X}), X)
    claim(
        "chain of 10,000 Neg: a node", best_time(lambda: session.run(last, {"x:0": X})) / LENGTH * 1e6, "us", at_most=2
    )
    claim("  np.negative alone", best_time(lambda: np.negative(X)) * 1e6, "us")
    plain, end = chain("Identity", LENGTH)
    claim(
        "chain of 10,000 Identity: a node",
        best_time(lambda: plain.run(end, {"x:0": X})) / LENGTH * 1e6,
        "us",
        at_most=0.5,
    )
    benchmark(session.run, last, {"x:0": X})


def test_run(benchmark, claim, best_time):
    session, last = chain("Neg", 1)
    claim("a run of one node", best_time(lambda: session.run(last, {"x:0": X})) * 1e6, "us", at_most=20)
    benchmark(session.run, last, {"x:0": X})


def test_loop(benchmark, claim, best_time):
    """A loop of control-flow nodes, which computes its constants in every iteration."""
    graph = Graph()
    with graph.as_default():
        [out] = while_loop(
            graph,
            lambda i: apply_op("Less", i, constant_like(i, TRIPS)),
            lambda i: [i + constant_like(i, 1)],
            [graph.constant(0.0)],
        )
    session = Session(graph)
    assert session.run(out) == TRIPS
    nodes = 10  # of an iteration: Merge, Const, Less, LoopCond, Switch, Identity, Const, AddV2, NextIteration, Exit
    claim("loop of frames: a node", best_time(lambda: session.run(out)) / TRIPS / nodes * 1e6, "us", at_most=8)
    benchmark(session.run, out)
