"""Which nodes go into clusters."""

import logging

import numpy as np
import pytest
from support.graphs.jitting import auto, chain, clusters, nodes_that_run, ones

import cyxla
from cyxla.autojit.analysis.op_groups import expand, members
from cyxla.autojit.flags import flags
from cyxla.autojit.passes import mark_for_compilation
from cyxla.autojit.regions import jit_scope
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError

F = DataType.DT_FLOAT
GLOBAL = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"


def says(node, value):
    node.attrs["_XlaCompile"] = AttrValue("bool", value)


@pytest.mark.parametrize("length, count", [(1, 0), (3, 0), (4, 1), (9, 1)])
def test_four_nodes_make_a_cluster(length, count):
    graph, x, y = chain(length)
    for session in (auto(graph), cyxla.Session(graph, platform="interpreter")):
        with flags(GLOBAL):
            session.run(y, {x: ones(2)})
        assert [len(nodes) for nodes in clusters(session).values()] == [length] * count


def test_nodes_without_computation_do_not_count():
    """Const and Identity count 0."""
    graph = Graph()
    x = graph.placeholder("float", name="x")
    with graph.as_default():
        y = apply_op("Identity", apply_op("AddV2", apply_op("Exp", x), graph.constant(1.0)))
        z = apply_op("Identity", apply_op("Neg", apply_op("Identity", y)))
    session = auto(graph)
    session.run(z, {x: ones(2)})
    assert not clusters(session)
    assert "3 of at least 4" in session.clusters()["Neg"].reason


@pytest.mark.parametrize("text, count", [("", 0), (GLOBAL, 1), ("--tf_xla_auto_jit=-1", 0), ("--tf_xla_auto_jit=1", 0)])
def test_levels(text, count):
    """The default is off, and the flag overrides it; processors need one flag more."""
    graph, x, y = chain(5)
    session = cyxla.Session(graph, platform="interpreter")
    with flags(text):
        assert len(nodes_that_run(session, y, {x: ones(2)})) == (8 if count else 7)
    assert len(clusters(session)) == count


def test_the_flag_turns_clustering_off():
    graph, x, y = chain(5)
    session = auto(graph)
    with flags("--tf_xla_auto_jit=-1"):
        session.run(y, {x: ones(2)})
    assert not clusters(session)


def test_clustering_for_cpus_needs_a_flag_and_warns_once(caplog, monkeypatch):
    monkeypatch.setattr(mark_for_compilation, "_warned", False)
    with flags("--tf_xla_auto_jit=1"), caplog.at_level(logging.WARNING, "cyxla.autojit"):
        for _ in range(2):
            graph, x, y = chain(5)
            session = cyxla.Session(graph, platform="interpreter")
            session.run(y, {x: ones(2)})
    assert "tf_xla_cpu_global_jit" in session.clusters()["Exp"].reason
    assert len(caplog.records) == 1


def test_a_node_may_ask_and_refuse():
    graph, x, y = chain(1)
    says(y.node, True)
    session = cyxla.Session(graph, platform="interpreter")
    assert "cluster_0_1/xla_run" in nodes_that_run(session, y, {x: ones(2)})
    graph, x, y = chain(9)
    says(graph.node("Cos"), False)
    session = auto(graph)
    session.run(y, {x: ones(2)})
    assert "forbids" in session.clusters()["Cos"].reason
    assert sorted(map(len, clusters(session).values())) == [4, 4]


@pytest.mark.parametrize("size, count", [(3, 3), (5, 2), (100, 1)])
def test_largest_size(size, count):
    graph, x, y = chain(9)
    with flags(tf_xla_max_cluster_size=size, tf_xla_min_cluster_size=1):
        session = auto(graph)
        session.run(y, {x: ones(2)})
    assert len(clusters(session)) >= count
    assert all(len(nodes) <= size for nodes in clusters(session).values())


@pytest.mark.parametrize("fuel", [0, 2, 5, 9])
def test_fuel(fuel):
    """So many nodes are marked, the same ones every time."""
    found = []
    for _ in range(2):
        graph, x, y = chain(8)
        with flags(tf_xla_clustering_fuel=fuel, tf_xla_min_cluster_size=1):
            session = auto(graph)
            session.run(y, {x: ones(2)})
        found.append(clusters(session))
    assert found[0] == found[1]
    assert sum(map(len, found[0].values())) == min(fuel, 8)


def test_scopes():
    """Where clustering is off, scopes do not merge; one op in a scope is compiled."""
    graph = Graph()
    x = graph.placeholder("float", name="x")
    with graph.as_default():
        with jit_scope(graph):
            y = apply_op("Neg", apply_op("Exp", x))
        with jit_scope(graph):
            z = apply_op("Tanh", y)
            with jit_scope(graph, compile_ops=False):
                w = apply_op("Sin", z)
    session = cyxla.Session(graph, platform="interpreter")
    session.run(w, {x: ones(2)})
    assert sorted(map(sorted, clusters(session).values())) == [["Exp", "Neg"], ["Tanh"]]
    session = auto(graph)
    session.run(w, {x: ones(2)})
    assert sorted(map(sorted, clusters(session).values())) == [["Exp", "Neg", "Tanh"]]


def test_clusters_are_not_clustered_again():
    """Nodes in the fallback function of a cluster are not clustered again."""
    graph, x, y = chain(6)
    with flags(tf_xla_always_defer_compilation=True):
        session = auto(graph)
        session.run(y, {x: ones(2)})
    assert list(clusters(session)) == ["cluster_0"]
    body = graph.library.find("cluster_0")
    assert len(graph.library) == 0
    assert {node.attr["_XlaAlreadyClustered"].value for node in body.node_def} == {"cluster_0"}


def called(graph, op):
    body = Graph()
    with body.as_default():
        a = body.placeholder("float", name="a")
        b = apply_op(op, a, message="")
    graph.library.add(graph_to_function("f", [a], [b]))
    return apply_op("PartitionedCall", [graph.tensor("x")], Tin=[F], Tout=[F], f=AttrValue("func", NameAttrList("f")))[
        0
    ]


def unary(op, **attrs):
    return lambda g: apply_op(op, g.tensor("x"), **attrs)


REASONS = [
    ("a kernel", unary("AsString"), "has no XLA_INTERPRETER_JIT kernel"),
    ("hidden state", lambda g: apply_op("RandomUniform", g.constant(np.array([2], np.int32)), dtype=F), "hidden state"),
    ("checks", unary("CheckNumerics", message="m"), "omit the check"),
    ("slow", lambda g: apply_op("MatrixInverse", apply_op("Diag", g.tensor("x"))), "slower"),
    ("dynamic", lambda g: apply_op("Unique", g.tensor("x"))[0], "depends on data"),
    ("stacks", lambda g: apply_op("StackV2", g.constant(3), elem_type=F), "stacks"),
    ("arrays", lambda g: apply_op("TensorArrayV3", g.constant(3), dtype=F)[1], "tensor arrays"),
    ("handles", lambda g: apply_op("VarHandleOp", dtype=F, shape=[]), "handle"),
    ("branches", lambda g: apply_op("Switch", g.tensor("x"), g.constant(True))[1], "branches and loops"),
    ("variants", lambda g: apply_op("EmptyTensorList", g.constant(-1), g.constant(3), element_dtype=F), "variant"),
    ("a callee", lambda g: called(g, "CheckNumerics"), "function 'f' contains 'CheckNumerics'"),
]  # fmt: skip


@pytest.mark.parametrize("make, word", [pytest.param(m, w, id=n) for n, m, w in REASONS])
def test_reasons(make, word):
    """Why a node is in no cluster can be asked."""
    graph = Graph()
    graph.placeholder("float", [2], name="x")
    with graph.as_default():
        result = make(graph)
        done = apply_op("Identity", result)
    session = auto(graph)
    session.run([done.node], {"x:0": ones(2)})
    assert word in session.clusters()[result.node.name].reason


def test_chosen_ops():
    graph, x, y = chain(8)
    for wanted, count in (("FUSIBLE,MatMul", 1), ("MatMul", 0), ("PW", 1)):
        with flags(f"--tf_xla_ops_to_cluster={wanted}"):
            session = auto(graph)
            session.run(y, {x: ones(2)})
        assert len(clusters(session)) == count
    with flags("--tf_xla_ops_to_cluster=MatMull"), pytest.raises(InvalidArgumentError, match="MatMul"):
        auto(graph).run(y, {x: ones(2)})
    assert expand(["FUSIBLE"]) >= expand(["PW"]) | expand(["RED"]) | members("MISC")
    assert {"Softsign", "AddV2", "SelectV2", "Equal", "ReluGrad"} <= members("PW")
    assert not {"MatMul", "Softmax", "Cumsum", "Sum"} & members("PW")
    with flags("--tf_xla_cluster_exclude_ops=Cos"):
        session = auto(graph)
        session.run(y, {x: ones(2)})
    assert "excludes its op" in session.clusters()["Cos"].reason


def test_no_path_leaves_a_cluster_and_comes_back():
    """Nodes that only check values on the host split the graph in two."""
    graph, x, y = chain(5)
    with graph.as_default():
        z = apply_op("AddV2", apply_op("CheckNumerics", y, message=""), y)
    _, _, w = chain(5, graph, z)
    session = auto(graph)
    plain = cyxla.Session(graph).run(w, {x: ones(2)})
    np.testing.assert_allclose(session.run(w, {x: ones(2)}), plain, rtol=1e-5)
    assert len(clusters(session)) == 2


def test_structured_control_flow_is_always_worth_it():
    """A cluster with an If or a While may be small."""
    graph = Graph()
    x = graph.placeholder("float", name="x")
    with graph.as_default():
        func = {}
        for name in ("then_branch", "else_branch"):
            _, a, b = chain(2, Graph())
            graph.library.add(graph_to_function(name, [a], [b]))
            func[name] = AttrValue("func", NameAttrList(name))
        y = apply_op("StatelessIf", graph.constant(True), [x], Tin=[F], Tout=[F], **func)[0]
    session = auto(graph)
    session.run(y, {x: ones(2)})
    assert len(clusters(session)) == 1


def test_graphs_are_written_down(tmp_path):
    """Before and after, every node's name behind its cluster's."""
    graph, x, y = chain(4)
    with flags(tf_xla_clustering_debug=True, tf_dump_graph_prefix=str(tmp_path)):
        auto(graph).run(y, {x: ones(2)})
    names = sorted(path.name.rpartition("_")[0] for path in tmp_path.iterdir())
    assert names == ["before_mark_for_compilation", "mark_for_compilation"]
    after = next(path for path in tmp_path.iterdir() if path.name.startswith("mark"))
    assert "cluster_0/Exp" in after.read_text()


def test_nodes_that_cannot_be_compiled_are_named():
    """The node and why, where everything must be compiled and where not."""
    graph = Graph()
    x = graph.placeholder("complex64", [2, 2], name="x")
    with graph.as_default():
        y = apply_op("Real", apply_op("MatrixLogarithm", x, name="logarithm"))
    with pytest.raises(InvalidArgumentError, match=r"'logarithm' .*no kernel of MatrixLogarithm"):
        cyxla.Session(graph, jit="on").run(y, {x: np.eye(2, dtype=np.complex64)})
    session = auto(graph)
    session.run(y, {x: np.eye(2, dtype=np.complex64)})
    assert session.clusters()["logarithm"].reason == "MatrixLogarithm has no XLA_INTERPRETER_JIT kernel"


def test_a_graph_compiled_as_a_whole():
    """All but handles is in it."""
    graph = Graph()
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype=F, shape=[2], name="v")
        init = apply_op("AssignVariableOp", handle, graph.constant(ones(2)), dtype=F, name="init")
    session = cyxla.Session(graph, jit="on", platform="interpreter")
    session.run(init)
    assert session.clusters()["init"].cluster == "graph"
    assert "handle" in session.clusters()["v"].reason
