"""The passes of clustering, one by one."""

import subprocess
import sys

import numpy as np
import pytest
from support.graphs.jitting import auto, cache, chain, clusters, nodes_that_run, ones

import cyxla
from cyxla.autojit.flags import flags
from cyxla.autojit.options import CLUSTER, INTERNAL_SCOPE, JitOptions
from cyxla.autojit.pass_table import register
from cyxla.autojit.regions import compile_region
from cyxla.autojit.report import add_listener, remove_listener
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.optimization_registry import Grouping, OptimizationPassOptions, OptimizationPassRegistry
from cyxla.errors import InvalidArgumentError

F, I = DataType.DT_FLOAT, DataType.DT_INT32  # noqa: E741
ORDER = [
    ("PRE_PLACEMENT", 35, "IntroduceFloatingPointJitterPass"), ("PRE_PLACEMENT", 36, "EncapsulateXlaComputationsPass"),
    ("POST_REWRITE_FOR_EXEC", 5, "CloneConstantsForBetterClusteringPass"),
    ("POST_REWRITE_FOR_EXEC", 9, "ClusterScopingPass"), ("POST_REWRITE_FOR_EXEC", 10, "MarkForCompilationPass"),
    ("POST_REWRITE_FOR_EXEC", 12, "ForceXlaConstantsOnHostPass"),
    ("POST_REWRITE_FOR_EXEC", 20, "IncreaseDynamismForAutoJitPass"),
    ("POST_REWRITE_FOR_EXEC", 30, "PartiallyDeclusterPass"), ("POST_REWRITE_FOR_EXEC", 40, "ReportClusteringInfoPass"),
    ("POST_REWRITE_FOR_EXEC", 50, "EncapsulateSubgraphsPass"), ("POST_REWRITE_FOR_EXEC", 60, "BuildXlaOpsPass"),
]  # fmt: skip


def test_order():
    """Group, phase and name."""
    registry = OptimizationPassRegistry()
    register(registry)
    found = [(e.grouping.name, e.phase, e.name) for e in registry.passes()]
    assert [row for row in found if row in ORDER] == ORDER
    register(registry)
    assert len(registry.passes()) == len(found)


def test_the_command_lists_them():
    run = subprocess.run(
        [sys.executable, "-m", "cyxla.tools.main", "passes"], capture_output=True, text=True, check=True
    )
    rows = [tuple(line.split()) for line in run.stdout.splitlines()]
    assert [row for row in rows if (row[0], int(row[1]), row[2]) in ORDER] == [(a, str(b), c) for a, b, c in ORDER]


def after(graph, fetch, feeds, phase, first=()):
    """A graph as it is behind the passes of a phase."""
    registry, seen = OptimizationPassRegistry(), []
    register(registry)
    registry.register(Grouping.POST_REWRITE_FOR_EXEC, phase, lambda o: seen.append(o.graph.copy()), "look")
    session = auto(graph, passes=registry)
    session.run(list(first))
    session.run(fetch, feeds)
    return seen[-1]


def test_small_constants_are_cloned():
    """Those of fewer than 16 elements, one for each user."""
    graph, x, y = chain(4, shape=[16])
    with graph.as_default():
        for size in (1, 15, 16):
            c = graph.constant(ones(size), name=f"c{size}")
            y = apply_op("AddV2", y, apply_op("Sum", apply_op("Mul", c, c), graph.constant(0)))
    found = after(graph, y, {x: ones(16)}, 5)
    clones = [n.name.partition("/")[0] for n in found.nodes.values() if "clone" in n.name]
    assert {"c1", "c15"} <= set(clones)
    assert "c16" not in clones


def test_stages_of_a_pipeline_stay_apart():
    graph, _, y = chain(4, shape=[2])
    _, a, b = chain(1)
    graph.library.add(graph_to_function("Stage", [a], [b]))  # what counts is the name
    graph.library.add(graph_to_function("Unstage", [a], [b]))
    with graph.as_default():
        staged = apply_op("Stage", y)
        _, _, last = chain(4, graph, apply_op("Unstage", graph.placeholder("float", [2])))
    assert staged.op.op == "Stage"
    from cyxla.autojit.passes.cluster_scoping import cluster_scoping

    session = auto(graph)
    cluster_scoping(JitOptions(OptimizationPassOptions(graph, session.engine, settings=session.engine.settings)))
    before, behind = (t.node.attr(INTERNAL_SCOPE) for t in (staged, last))
    assert before != behind
    assert graph.node("Exp").attr(INTERNAL_SCOPE) == before


def calling(graph, x, y, **attrs):
    """A function of a graph's part, and a call of it."""
    outer = Graph()
    function = graph_to_function("f", [x], [y])
    function.attr.update(attrs)
    outer.library.add(function)
    z = outer.placeholder("float", [2], name="z")
    with outer.as_default():
        call = apply_op("PartitionedCall", [z], Tin=[F], Tout=[F], f=AttrValue("func", NameAttrList("f")))[0]
        result = apply_op("Identity", call)
    return outer, z, call, result


@pytest.mark.parametrize("on_node", [True, False])
def test_functions_that_must_be_compiled(on_node):
    """A cluster that must be compiled has no fallback."""
    must = {"_XlaMustCompile": AttrValue("bool", True)}
    graph, z, call, result = calling(*chain(2, shape=[2]), **({} if on_node else must))
    if on_node:
        call.node.attrs.update(must)
    session = cyxla.Session(graph, platform="interpreter")
    ran = nodes_that_run(session, result, {z: ones(2)})
    assert sorted(op for op in ran.values() if op.startswith("_Xla")) == ["_XlaCompile", "_XlaRun"]
    bad = Graph()
    x = bad.placeholder("float", [2], name="x")
    with bad.as_default():
        y = apply_op("MatrixLogarithm", apply_op("Cast", apply_op("Diag", x), DstT=DataType.DT_COMPLEX64))
        y = apply_op("Real", y)
    graph, z, call, result = calling(bad, x, y, **must)
    with pytest.raises(InvalidArgumentError, match="MatrixLogarithm"):
        cyxla.Session(graph, platform="interpreter").run(result, {z: ones(2)})


def test_constants_of_such_functions_are_on_the_host():
    from cyxla.autojit.passes.force_constants import HOST_INPUTS, force_xla_constants_on_host

    body = Graph()
    a, sizes = body.placeholder("float", [4], name="a"), body.placeholder("int32", [2], name="sizes")
    with body.as_default():
        b = apply_op("Reshape", a, sizes)
    graph = Graph()
    graph.library.add(graph_to_function("f", [a, sizes], [b]))
    x, s = graph.placeholder("float", [4], name="x"), graph.placeholder("int32", [2], name="s")
    with graph.as_default():
        call = apply_op("PartitionedCall", [x, s], Tin=[F, I], Tout=[F], f=AttrValue("func", NameAttrList("f")))[0]
    call.node.attrs["_XlaMustCompile"] = AttrValue("bool", True)
    session = auto(graph)
    force_xla_constants_on_host(JitOptions(OptimizationPassOptions(graph, session.engine)))
    assert call.node.attr(HOST_INPUTS) == (1,)


@pytest.mark.parametrize("size", [[2], [-1]])
def test_slices_from_anywhere(size):
    """With given sizes three slices from different places are compiled once."""
    graph = Graph()
    x, begin = graph.placeholder("float", [6], name="x"), graph.placeholder("int32", [1], name="begin")
    with graph.as_default():
        part = apply_op("Slice", x, begin, graph.constant(np.array(size, np.int32)))
        _, _, y = chain(4, graph, part)
    session, plain = auto(graph), cyxla.Session(graph)
    for start in (0, 2, 3):
        feeds = {x: np.arange(6).astype("f") / 8, begin: np.array([start], np.int32)}
        np.testing.assert_allclose(session.run(y, feeds), plain.run(y, feeds), rtol=1e-5)
    assert cache(session).compile_count == 1
    assert len(cache(session)) == (1 if size == [2] else 3)


def test_only_sizes_of_open_slices_are_constants():
    """Where a slice begins is data."""
    graph = Graph()
    x, begin = graph.placeholder("float", [None, 4], name="x"), graph.placeholder("int32", [2], name="begin")
    with graph.as_default():
        part = apply_op("Slice", x, begin, graph.constant(np.array([2, -1], np.int32)))
        _, _, y = chain(4, graph, part)
    found = after(graph, y, {x: ones(5, 4), begin: np.array([1, 1], np.int32)}, 20)
    slices = [n for n in found.nodes.values() if n.op == "Slice"]
    assert [n.attr("_XlaCompileTimeConstantInputs") for n in slices] == [("size",)]
    assert slices[0].inputs[2].node.op == "SelectV2"


def test_compile_time_constants_are_computed_outside():
    """A shape that depends on data from outside leaves its cluster."""
    graph, x, y = chain(4, shape=[None])
    n = graph.placeholder("int32", [1], name="n")
    with graph.as_default():
        shape = apply_op("Mul", n, graph.constant(np.array([2], np.int32)), name="shape")
        z = apply_op("AddV2", apply_op("Reshape", y, shape), apply_op("Fill", shape, graph.constant(1.0)))
    session = auto(graph)
    feeds = {x: ones(4), n: np.array([2], np.int32)}
    np.testing.assert_allclose(session.run(z, feeds), cyxla.Session(graph).run(z, feeds), rtol=1e-5)
    assert "a compile-time constant" in session.clusters()["shape"].reason


def test_shapes_at_the_border_leave():
    """An op that reads only shapes, and that nothing in its cluster reads."""
    graph, x, y = chain(5, shape=[None])
    with graph.as_default():
        shape = apply_op("Shape", y, out_type=I, name="shape")
    session = auto(graph)
    assert session.run([y, shape], {x: ones(3)})[1].tolist() == [3]
    assert "nothing in its cluster" in session.clusters()["shape"].reason


def test_listeners_are_called():
    """How many nodes of which ops are in each cluster."""
    told = []

    def listen(summary):
        told.append(summary)

    add_listener(listen)
    try:
        graph, x, y = chain(5)
        auto(graph).run(y, {x: ones(2)})
    finally:
        remove_listener(listen)
    (summary,) = told
    assert [(c.name, c.size, c.ops["Exp"]) for c in summary.clusters] == [("cluster_0", 5, 1)]
    assert summary.unclustered_ops["_Arg"] == 1


def test_functions_of_clusters():
    """Constants first, then others, then resources; the call says how many."""
    graph = Graph()
    x, sizes = graph.placeholder("float", [4], name="x"), graph.placeholder("int32", [2], name="sizes")
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype=F, shape=[4], name="v")
        init = apply_op("AssignVariableOp", handle, graph.constant(ones(4)), dtype=F)
        y = apply_op("AddV2", apply_op("ReadVariableOp", handle, dtype=F), apply_op("Neg", apply_op("Exp", x)))
        z = apply_op("Reshape", y, sizes)
    found = after(graph, z, {x: ones(4), sizes: np.array([2, 2], np.int32)}, 50, [init])
    (call,) = [n for n in found.nodes.values() if n.op.startswith("cluster_")]
    assert (call.attr("_XlaNumConstantArgs"), call.attr("_XlaNumResourceArgs")) == (1, 1)
    assert call.attr("_XlaCompiledKernel") is True
    assert [t.dtype for t in call.inputs] == [I, F, DataType.DT_RESOURCE]
    assert [a.type for a in graph.library.find(call.op).signature.input_arg] == [I, F, DataType.DT_RESOURCE]
    assert not any(n.has_attr(CLUSTER) for n in found.nodes.values())


def test_regions_become_one():
    """Parts that nothing connects, too."""
    graph = Graph()
    x = graph.placeholder("float", [2], name="x")
    with graph.as_default(), compile_region(graph):
        y, z = apply_op("Exp", x), apply_op("Neg", x)
    session = cyxla.Session(graph, platform="interpreter")
    ran = nodes_that_run(session, [y, z], {x: ones(2)})
    assert sorted(op for op in ran.values() if op[0] != "_" or op.startswith("_Xla")) == ["_XlaCompile", "_XlaRun"]
    assert cache(session).compile_count == 1


def test_regions_that_cannot_be_one():
    """Results of the region are returned."""
    graph = Graph()
    x = graph.placeholder("float", [2], name="x")
    with graph.as_default():
        with compile_region(graph, "r"):
            y = apply_op("Exp", x)
        between = apply_op("CheckNumerics", y, message="")
        with compile_region(graph, "r"):
            z = apply_op("AddV2", between, y)
    with pytest.raises(InvalidArgumentError, match="region 'r'"):
        cyxla.Session(graph, platform="interpreter").run(z, {x: ones(2)})


def test_jitter():
    graph, x, y = chain(2)
    session = cyxla.Session(graph)
    with flags(tf_introduce_floating_point_jitter_to_tensors=("Exp:0",), tf_introduce_floating_point_jitter_amount=0.5):
        found = session.run(y, {x: ones(1)})
    np.testing.assert_allclose(found, -(np.exp(ones(1)) + np.float32(0.5)), rtol=1e-6)
    assert len(clusters(session)) == 0


def test_loops_in_functions_that_must_be_compiled():
    """Switch and Merge become If and While on the way."""
    body = Graph()
    x = body.placeholder("float", [2], name="x")
    with body.as_default():
        enters = [apply_op("Enter", t, frame_name="f") for t in (body.constant(0), x)]
        merges = [apply_op("Merge", [e, e])[0] for e in enters]
        limit = apply_op("Enter", body.constant(3), frame_name="f", is_constant=True)
        going = apply_op("LoopCond", apply_op("Less", merges[0], limit))
        split = [apply_op("Switch", m, going) for m in merges]
        with body.control_dependencies([split[0][1].node]):
            one = body.constant(1)
        turned = [apply_op("AddV2", split[0][1], one), apply_op("Tanh", split[1][1])]
        for merge, value in zip(merges, turned, strict=True):
            body.set_input(merge.node, 1, apply_op("NextIteration", value))
        y = apply_op("Exit", split[1][0])
    graph, z, _, result = calling(body, x, y, _XlaMustCompile=AttrValue("bool", True))
    session = cyxla.Session(graph, platform="interpreter")
    found = session.run(result, {z: ones(2)})
    np.testing.assert_allclose(found, np.tanh(np.tanh(np.tanh(ones(2)))), rtol=1e-6)
    assert cache(session).compile_count == 1
