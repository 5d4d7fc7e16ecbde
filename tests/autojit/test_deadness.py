"""When values are dead."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.graphs.jitting import auto, clusters, ones

import cyxla
from cyxla.autojit.analysis.deadness import DeadnessAnalysis
from cyxla.autojit.analysis.predicates import FALSE, TRUE, Predicates
from cyxla.autojit.flags import flags
from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph

FORMULAS = st.recursive(
    st.sampled_from("abcd"),
    lambda inner: st.one_of(st.tuples(st.just("not"), inner), st.tuples(st.sampled_from(("and", "or")), inner, inner)),
    max_leaves=8,
)


def built(known, f):
    if isinstance(f, str):
        return known.variable(f)
    parts = [built(known, part) for part in f[1:]]
    return {"not": lambda: known.negation(parts[0]), "and": lambda: known.conjunction(parts),
            "or": lambda: known.disjunction(parts)}[f[0]]()  # fmt: skip


def truth(f, values):
    if isinstance(f, str):
        return values[f]
    parts = [truth(part, values) for part in f[1:]]
    return {"not": not parts[0], "and": all(parts), "or": any(parts)}[f[0]]


@given(FORMULAS, FORMULAS)
def test_equal_conditions_have_equal_numbers(f, g):
    known = Predicates()
    rows = [{name: bool(k >> i & 1) for i, name in enumerate("abcd")} for k in range(16)]
    same = all(truth(f, row) == truth(g, row) for row in rows)
    assert (built(known, f) == built(known, g)) == same
    assert built(known, ("or", f, ("not", f))) == TRUE
    assert built(known, ("and", f, ("not", f))) == FALSE


@pytest.fixture
def switches():
    """Two switches on different predicates, and a sum of one output of each."""
    graph = Graph()
    x = graph.placeholder("float", [2], name="x")
    with graph.as_default():
        flags = [graph.placeholder("bool", [], name=n) for n in ("p", "q")]
        a, b = (apply_op("Switch", x, flag) for flag in flags)
        left = apply_op("Neg", apply_op("Exp", a[1], name="left_exp"), name="left")
        right = apply_op("Neg", apply_op("Exp", b[1], name="right_exp"), name="right")
        total = apply_op("AddV2", left, right, name="total")
        apply_op("Sin", apply_op("Tanh", total, name="after"), name="last")
        apply_op("Merge", [a[0], left], name="merged")
    return graph


def test_two_switches(switches):
    """The sum is under both conditions, and in a cluster with neither side."""
    found = DeadnessAnalysis(switches)
    node = switches.node
    sides = [found.control(node(n)) for n in ("left", "right", "total", "last")]
    assert len(set(sides)) == 3
    assert sides[2] == sides[3]
    assert found.has_mismatching_inputs(node("total"))
    assert not found.has_mismatching_inputs(node("after"))
    assert found.control(node("merged")) == TRUE
    session = auto(switches)
    feeds = {"x:0": ones(2), "p:0": np.array(True), "q:0": np.array(True)}
    with flags(tf_xla_min_cluster_size=1):
        result = session.run("last:0", feeds)
    np.testing.assert_allclose(result, cyxla.Session(switches).run("last:0", feeds), rtol=1e-5)
    assert sorted(map(sorted, clusters(session).values())) == [
        ["after", "last", "total"], ["left", "left_exp"], ["right", "right_exp"]
    ]  # fmt: skip


def test_dead_clusters_do_not_run(switches):
    with flags(tf_xla_min_cluster_size=1):
        session = auto(switches)
        feeds = {"x:0": ones(2), "p:0": np.array(False)}
        np.testing.assert_allclose(session.run("merged:0", feeds), ones(2))


def loop(extra=False):
    """A loop over two values; with `extra`, one of them is sometimes dead."""
    graph = Graph()
    with graph.as_default():
        start = [graph.constant(0), graph.constant(1.0)]
        merges = [apply_op("Merge", [e, e])[0] for e in (apply_op("Enter", s, frame_name="f") for s in start)]
        limit = apply_op("Enter", graph.constant(3), frame_name="f", is_constant=True)
        going = apply_op("LoopCond", apply_op("Less", merges[0], limit))
        split = [apply_op("Switch", m, going) for m in merges]
        with graph.control_dependencies([split[0][1].node]):
            one = graph.constant(1)
        values = [apply_op("AddV2", split[0][1], one, name="count"), apply_op("Neg", split[1][1], name="value")]
        if extra:
            asked = apply_op("Less", values[0], one)
            values[1] = apply_op("Switch", values[1], asked)[1]
        for merge, value in zip(merges, values, strict=True):
            graph.set_input(merge.node, 1, apply_op("NextIteration", value))
        exits = [apply_op("Exit", s[0]) for s in split]
    return graph, exits


def test_loop_variables_live_together():
    """The back edge of the loop may change its condition."""
    graph, exits = loop()
    found = DeadnessAnalysis(graph)
    assert found.control(graph.node("count")) == found.control(graph.node("value")) != TRUE
    assert found.control(exits[0].node) == found.control(exits[1].node)
    graph, _ = loop(extra=True)
    found = DeadnessAnalysis(graph)
    assert found.control(graph.node("count")) != found.control(graph.node("value"))


def test_graphs_without_branches_are_always_alive():
    graph = Graph()
    x = graph.placeholder("float", name="x")
    assert DeadnessAnalysis(graph).output(x) == TRUE
