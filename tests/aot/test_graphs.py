"""Graphs and SavedModels ahead of time: the same HLO as jit, the same results, variables inside or as arguments."""

import numpy as np
import pytest
from support.builds.ahead_of_time import assert_same_bits, shared
from support.graphs.saved_models import WEIGHTS, write_model

import cyxla
from cyxla import aot
from cyxla.aot.config import Config, Feed, Fetch, Variable
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.checkpoint.tensor_bundle import write_bundle
from cyxla.core.framework.protos import messages as proto
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Var
from cyxla.errors import InvalidArgumentError, NotFoundError

RNG = np.random.default_rng(0)
W, X = RNG.standard_normal((3, 2), np.float32), RNG.standard_normal((4, 3), np.float32)


def make_graph():
    """z = tanh(x @ w); u is z after the counter is increased by the sum of z."""
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", [None, 3], name="x")
        w = apply_op("VarHandleOp", dtype="float", shape=[3, 2], shared_name="weights", name="w")
        z = apply_op("Tanh", apply_op("MatMul", x, apply_op("ReadVariableOp", w, dtype="float")), name="z")
        counter = apply_op("VarHandleOp", dtype="float", shape=[], shared_name="counter", name="counter")
        added = apply_op("AssignAddVariableOp", counter, apply_op("Sum", z, [0, 1], keep_dims=False))
        with graph.control_dependencies([added]):
            apply_op("Identity", z, name="u")
        for handle, value in ((w, W), (counter, np.float32(0))):
            apply_op("AssignVariableOp", handle, value, name=f"{handle.node.name}/start")
    return graph


CONFIG = Config([Feed("x", (4, 3))], [Fetch("z", "product")])
COUNTING = Config([Feed("x", (4, 3), "input")], [Fetch("u")], [Variable("counter", "n"), Variable("w", readonly=True)])


def started(graph):
    session = cyxla.Session(graph, jit="on")
    session.run(["w/start", "counter/start"])
    return session


def test_variables_inside_the_library(tmp_path):
    library = shared(tmp_path, make_graph(), config=CONFIG, variables={"w": W})
    assert (library.arg_names, library.result_names) == (["x"], ["product"])
    assert_same_bits(library(X), started(make_graph()).run("z:0", {"x:0": X}))


@pytest.mark.parametrize("key", ["w", "weights"])
def test_variables_by_the_name_of_node_or_resource(tmp_path, key):
    assert aot.program(make_graph(), config=CONFIG, variables={key: W}, name="f").bound
    write_bundle(tmp_path / "model", {key: W, "other": W})
    [value] = aot.program(make_graph(), config=CONFIG, checkpoint=tmp_path / "model", name="f").bound.values()
    np.testing.assert_array_equal(value, W)


def test_variables_without_values_are_arguments(tmp_path):
    library, session = shared(tmp_path, make_graph(), config=COUNTING), started(make_graph())
    assert (library.arg_names, library.result_names) == (["input", "w", "n"], ["u", "new n"])
    count = np.float32(0)
    for _ in range(3):
        result, count = library(X, W, count)
        assert_same_bits([result], session.run("u:0", {"x:0": X}))
    assert_same_bits([count], session.engine.resource_manager.lookup("", "counter", Var).read())


def test_the_same_hlo_as_jit():
    session = started(make_graph())
    session.run("u:0", {"x:0": X})
    [runner] = [r for (_, fetches, _), r in session._runners.items() if fetches == ("u:0",)]
    [compiled] = runner.compiled._programs.values()
    program = aot.program(make_graph(), config=COUNTING, name="f")
    assert program.module.to_text() == compiled.result.computation.module().to_text()


@pytest.mark.parametrize("form", ["binary", "text"])
def test_graph_defs_in_files(tmp_path, form):
    graph_def = make_graph().to_graph_def()
    path = tmp_path / ("graph.pb" if form == "binary" else "graph.pbtxt")
    path.write_bytes(graph_def.SerializeToString() if form == "binary" else proto.to_text(graph_def).encode())
    program = aot.program(path, config=CONFIG.to_text(), variables={"w": W}, name="f")
    assert [a.name for a in program.arguments] == ["x"]


def test_reference_variables(tmp_path):
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", [4, 3], name="x")
        w = apply_op("VariableV2", dtype="float", shape=[3, 2], name="w")
        apply_op("MatMul", x, apply_op("Identity", w), name="z")
    library = shared(tmp_path, graph, config=CONFIG, variables={"w": W})
    assert library.arg_names == ["x"]
    assert_same_bits(library(X), cyxla.compile(lambda x, w: x @ w, X, W)(X, W))
    assert shared(tmp_path, graph, config=CONFIG).arg_names == ["x", "w"]


IN, OUT = Feed("x", (4, 3)), Fetch("z")


@pytest.mark.parametrize("config, error, message", [
    (Config([Feed("nothing", ())], [OUT]), NotFoundError, "feed nothing"),
    (Config([IN], [Fetch("nothing")]), NotFoundError, "fetch nothing"),
    (Config([], [OUT]), InvalidArgumentError, "placeholder x, which the config does not feed"),
    (Config([Feed("x", (4, 5))], [OUT]), InvalidArgumentError, "x:0 has the shape"),
    (Config([Feed("x", (4, 3), type=DataType.DT_INT32)], [OUT]), InvalidArgumentError, "x:0 is of the type DT_FLOAT"),
    (Config([Feed("x")], [OUT]), InvalidArgumentError, "the feed x has no shape"),
    (Config([IN], [OUT], [Variable("nothing")]), NotFoundError, "nothing"),
    (Config([IN], [OUT], [Variable("w", shape=(9, 9))]), InvalidArgumentError, "variable w has the shape"),
    (Config([IN], [OUT], [Variable("w", type=DataType.DT_INT8)]), InvalidArgumentError, "variable w is of"),
    (Config([IN], [Fetch("u")], [Variable("counter", readonly=True)]), InvalidArgumentError, "is read-only"),
    ("feed {", InvalidArgumentError, "not a valid"),
])  # fmt: skip
def test_configs_that_do_not_fit(config, error, message):
    with pytest.raises(error, match=message):
        aot.program(make_graph(), config=config, name="f")


def test_a_graph_needs_a_config():
    with pytest.raises(InvalidArgumentError, match="needs config="):
        aot.program(make_graph())


def test_an_argument_whose_value_the_compiler_needs():
    graph = cyxla.Graph()
    with graph.as_default():
        x, sizes = graph.placeholder("float", [6], name="x"), graph.placeholder("int32", [2], name="sizes")
        apply_op("Reshape", x, sizes, name="y")
    with pytest.raises(InvalidArgumentError, match="the argument sizes has to be known"):
        aot.program(graph, config=Config([Feed("x", (6,)), Feed("sizes", (2,))], [Fetch("y")]), name="f")


def test_sizes_of_run_time_that_differ_are_a_result(tmp_path):
    graph = cyxla.Graph()
    with graph.as_default():
        x, y = (graph.placeholder("float", [4], name=name) for name in "xy")
        apply_op("AddV2", apply_op("Where", x), apply_op("Where", y), name="z")
    library = shared(tmp_path, graph, config=Config([Feed("x", (4,)), Feed("y", (4,))], [Fetch("z")]))
    assert library.result_names == ["z", "size 0 of z", "sizes that differ"]
    values, size, differ = library(np.float32([0, 1, 1, 0]), np.float32([0, 0, 1, 1]))
    np.testing.assert_array_equal(values[:size], [[3], [5]])
    assert not differ.any()
    assert library(np.float32([0, 1, 1, 0]), np.float32([0, 1, 1, 1]))[2].tolist() == [3, 4]


def test_results_that_are_constants(tmp_path):
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        apply_op("Identity", x, name="y")
        apply_op("Shape", x, name="size")
    config = Config([Feed("x", (2,))], [Fetch("y"), Fetch("size"), Fetch("x")])
    library = shared(tmp_path, graph, config=config)
    x = np.float32([1, 2])
    assert_same_bits(library(x), [x, np.int32([2]), x])


def test_signatures_of_saved_models(tmp_path):
    write_model(tmp_path / "model")
    x = RNG.standard_normal((5, 3), np.float32)
    program = aot.program(tmp_path / "model", signature="serving_default", shapes={"x": (5, 3)}, name="f")
    library = shared(tmp_path, program)
    assert (library.arg_names, library.result_names) == (["x"], ["product"])
    np.testing.assert_allclose(library(x)[0], x @ WEIGHTS, rtol=1e-6)
    with pytest.raises(InvalidArgumentError, match="the feed x:0 has no shape"):
        aot.program(tmp_path / "model", name="f")
    with pytest.raises(NotFoundError, match="no signature 'other'"):
        aot.program(tmp_path / "model", signature="other", name="f")
    with pytest.raises(InvalidArgumentError, match="has no input 'z'"):
        aot.program(tmp_path / "model", shapes={"z": ()}, name="f")
