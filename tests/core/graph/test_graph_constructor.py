"""GraphDefs become graphs, in both formats; faults have TensorFlow's error codes."""

import random

import numpy as np
import pytest

from cyxla import Graph, Session, load_graph, load_saved_model
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.declarations.op import OpRegistry, op
from cyxla.core.framework.protos import messages as proto
from cyxla.core.framework.shape_fns.common import scalar_shape
from cyxla.core.graph.algorithm import consumers, post_order, prune, reachable_forward, topological_order
from cyxla.core.graph.graph import GRAPH_DEF_VERSION
from cyxla.core.graph.graph_constructor import import_graph_def
from cyxla.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
    UnknownAttributeWarning,
)

X = 'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'


def unary(name, op, *inputs, dtype="DT_FLOAT", more=""):
    lines = " ".join(f'input: "{i}"' for i in inputs)
    return f'node {{ name: "{name}" op: "{op}" {lines} attr {{ key: "T" value {{ type: {dtype} }} }} {more} }}'


BAD = [
    ("unknown op", unary("y", "NoSuchOp", "x"), NotFoundError, "NoSuchOp"),
    ("missing input", unary("y", "Neg", "nope"), InvalidArgumentError, "nope"),
    ("missing control input", unary("y", "Neg", "x", "^nope"), InvalidArgumentError, "nope"),
    ("control before data", unary("y", "Neg", "^x", "x"), InvalidArgumentError, "control"),
    ("duplicate name", unary("x", "Neg", "x"), InvalidArgumentError, "two nodes"),
    ("bad name", unary("a b", "Neg", "x"), InvalidArgumentError, "a b"),
    ("no name", unary("", "Neg", "x"), InvalidArgumentError, "name"),
    ("output that is not there", unary("y", "Neg", "x:1"), InvalidArgumentError, "output 1"),
    ("no output number", unary("y", "Neg", "x:a"), InvalidArgumentError, "x:a"),
    ("too many inputs", unary("y", "Neg", "x", "x"), InvalidArgumentError, "2 data inputs"),
    ("too few inputs", unary("y", "Neg"), InvalidArgumentError, "0 data inputs"),
    ("wrong input type", unary("y", "Neg", "x", dtype="DT_INT32"), InvalidArgumentError, "int32"),
    ("type that is not allowed", unary("y", "Neg", "x", dtype="DT_STRING"), InvalidArgumentError, "allowed"),
    ("missing attr", 'node { name: "y" op: "Neg" input: "x" }', InvalidArgumentError, "'T'"),
    ("attr of another kind", 'node { name: "y" op: "Neg" input: "x" attr { key: "T" value { i: 1 } } }',
     InvalidArgumentError, "int"),
    ("cycle", unary("a", "Neg", "b") + unary("b", "Neg", "a"), InvalidArgumentError, "cycle"),
    ("cycle through control", unary("a", "Neg", "x", "^b") + unary("b", "Neg", "a"), InvalidArgumentError, "cycle"),
    ("itself", unary("a", "Neg", "a"), InvalidArgumentError, "cycle"),
    ("unknown colocation", unary("y", "Neg", "x", more='attr { key: "_class" value { list { s: "loc:@z" } } }'),
     InvalidArgumentError, "'z'"),
    ("too new", f"versions {{ min_consumer: {GRAPH_DEF_VERSION + 1} }}", InvalidArgumentError, "version"),
    ("forbidden", f"versions {{ bad_consumers: {GRAPH_DEF_VERSION} }}", InvalidArgumentError, "forbids"),
    ("gradient given twice", 'library { gradient { function_name: "f" gradient_func: "g" } '
     'gradient { function_name: "f" gradient_func: "h" } }', InvalidArgumentError, "gradient"),
    ("constant of another type", 'node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } '
     'attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }',
     InvalidArgumentError, "int32"),
    ("shapes that do not fit", unary("m", "MatMul", "u", "v")
     + 'node { name: "u" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } '
       'attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }'
     + 'node { name: "v" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } '
       'attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }', InvalidArgumentError, "3 and 2"),
]  # fmt: skip


@pytest.mark.parametrize("text, error, says", [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_errors_of_graphs(text, error, says):
    with pytest.raises(error, match=says):
        load_graph((X + text).encode())


def test_text_and_binary_give_the_same_graph():
    text = X + unary("y", "Neg", "x") + unary("z", "Square", "y", "^x")
    by_text = load_graph(text.encode())
    by_binary = load_graph(proto.parse_text("GraphDef", text).SerializeToString())
    assert by_text.to_graph_def() == by_binary.to_graph_def()
    assert [n.name for n in by_text.node("z").control_inputs] == ["x"]


def test_errors_in_text_name_the_line():
    with pytest.raises(InvalidArgumentError) as caught:
        load_graph(b'node { name: "x"\n  op: "Placeholder"\n  nope: 3 }')
    assert "line 3" in str(caught.value)


def test_nodes_may_come_in_any_order():
    graph = load_graph((unary("z", "Neg", "y") + unary("y", "Square", "x") + X).encode())
    assert list(graph.nodes) == ["x", "y", "z"]


NEW = 'attr { key: "from_the_future" value { i: 1 } }'


def test_remarks_are_kept_and_defaults_filled_in():
    more = 'attr { key: "_note" value { s: "kept" } }'
    node = load_graph((X + unary("y", "Softplus", "x", more=more)).encode()).node("y")
    assert node.attr("_note") == "kept"
    const = load_graph((X + unary("y", "MatMul", "x", "x")).encode()).node("y")
    assert const.attr("transpose_a") is False


def in_function(node):
    """A graph whose node calls a function of one node."""
    body = node.replace("node {", "node_def {", 1)
    return (
        'library { function { signature { name: "f" input_arg { name: "x" type: DT_FLOAT } '
        f'output_arg {{ name: "r" type: DT_FLOAT }} }} {body} ret {{ key: "r" value: "y:activations:0" }} }} }} '
        'node { name: "call" op: "f" input: "x" }'
    )


PLACES = pytest.mark.parametrize("place, fetch", [(str, "y:0"), (in_function, "call:0")], ids=["graph", "function"])


@PLACES
def test_undeclared_attributes_are_ignored_with_a_warning(place, fetch):
    """As TensorFlow does; of a function when it is called."""
    text = X + place(unary("y", "Softplus", "x", more=NEW))
    with pytest.warns(UnknownAttributeWarning, match="'from_the_future' of node 'y'"):
        value = Session(load_graph(text.encode())).run(fetch, {"x:0": 0.0})
    np.testing.assert_allclose(value, np.log(2), rtol=1e-6)


def test_a_warning_for_all_ignored_attributes():
    text = X + "".join(unary(f"y{i}", "Softplus", "x", more=NEW) for i in range(9))
    with pytest.warns(UnknownAttributeWarning, match="y0.*y4.* and 4 more") as caught:
        load_graph(text.encode())
    assert len(caught) == 1


DECLARED = """op { name: "Softplus" input_arg { name: "features" type_attr: "T" }
    output_arg { name: "activations" type_attr: "T" } attr { name: "T" type: "type" }
    attr { name: "from_the_future" type: "int" %s } }"""


@PLACES
@pytest.mark.parametrize(
    "default, is_dropped", [("default_value { i: 1 }", True), ("default_value { i: 2 }", False), ("", False)]
)
def test_new_attributes_are_dropped_if_they_hold_the_producers_default(place, fetch, default, is_dropped):
    """Otherwise the node has a meaning that this version does not know: code 3."""
    text = X + place(unary("y", "Softplus", "x", more=NEW))
    producer = proto.parse_text("OpList", DECLARED % default)
    if is_dropped:
        graph = import_graph_def(text, producer_op_list=producer)
        np.testing.assert_allclose(Session(graph).run(fetch, {"x:0": 0.0}), np.log(2), rtol=1e-6)
    else:
        with pytest.raises(InvalidArgumentError, match="'from_the_future'") as caught:
            import_graph_def(text, producer_op_list=producer)
        assert caught.value.node == "y"


def test_defaults_can_be_stripped_on_export():
    graph = load_graph((X + unary("y", "MatMul", "x", "x")).encode())
    assert "transpose_a" in graph.to_graph_def().node[1].attr
    assert set(graph.to_graph_def(strip_defaults=True).node[1].attr) == {"T"}


def test_deprecated_op_in_a_graph_that_is_too_new():
    node = unary("y", "BatchMatrixDiag", "x")
    assert load_graph((X + node + "versions { producer: 13 }").encode()).versions.producer == 13
    with pytest.raises(UnimplementedError, match="BatchMatrixDiag"):
        load_graph((X + node + "versions { producer: 14 }").encode())


def test_a_graph_without_kernels_loads_and_saves():
    """Building, inferring, saving and loading need no kernel."""
    registry = OpRegistry()
    op("Orphan", "-> y: T", "T: type", shape=scalar_shape, registry=registry)
    graph = Graph(registry)
    with graph.as_default():
        y = apply_op("Orphan", T="half", name="y")
    assert y.shape.as_list() == []
    again = import_graph_def(graph.to_graph_def().SerializeToString(), graph=Graph(registry))
    assert again.tensor("y").dtype == y.dtype


def loop_graph():
    return load_graph(
        (
            X
            + unary("enter", "Enter", "x", more='attr { key: "frame_name" value { s: "f" } }')
            + unary("merge", "Merge", "enter", "next", more='attr { key: "N" value { i: 2 } }')
            + unary("next", "NextIteration", "merge")
            + unary("exit", "Exit", "merge")
        ).encode()
    )


def test_loops_may_close_a_cycle():
    graph = loop_graph()
    assert [t.name for t in graph.node("merge").inputs] == ["enter:0", "next:0"]
    order = [n.name for n in topological_order(graph)]
    assert order.index("enter") < order.index("merge") < order.index("next")
    assert load_graph(graph.to_graph_def().SerializeToString()).to_graph_def() == graph.to_graph_def()
    assert graph.copy().to_graph_def() == graph.to_graph_def()


@pytest.mark.parametrize("path", ["x" * 300, "a/" * 3000, "a\0b"], ids=["name", "path", "zero byte"])
@pytest.mark.parametrize("load", [load_graph, load_saved_model])
def test_missing_paths(load, path):
    with pytest.raises(NotFoundError) as caught:
        load(path)
    assert len(str(caught.value)) < 1000


def test_missing_file_and_no_graph_at_all(tmp_path):
    with pytest.raises(NotFoundError, match=r"nope\.pb"):
        load_graph(tmp_path / "nope.pb")
    with pytest.raises(InvalidArgumentError):
        load_graph(b"\xff\xff\xff")
    assert len(load_graph(b"")) == 0
    file = tmp_path / "graph.pbtxt"
    file.write_text(X)
    assert list(load_graph(str(file)).nodes) == ["x"]


def chain(length):
    graph = Graph()
    with graph.as_default():
        y = graph.placeholder("float", [2], name="x")
        for _ in range(length):
            y = -y
    return graph, y


@pytest.mark.slow
def test_a_long_chain_is_nothing_special():
    graph, y = chain(20_000)
    assert len(post_order([y.node])) == 20_001
    assert len(topological_order(graph)) == 20_001
    data = graph.to_graph_def().SerializeToString()
    assert len(load_graph(data)) == 20_001
    assert len(graph.copy()) == 20_001


def test_pruning_and_reachability():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        y, z = apply_op("Neg", x, name="y"), apply_op("Exp", x, name="z")
        with graph.control_dependencies([z]):
            w = apply_op("Square", y, name="w")
    assert [n.name for n in reachable_forward([y.node], graph)] == ["y", "w"]
    assert consumers(graph)[z.node] == [(w.node, -1)]
    assert prune(graph, [y.node]) == 2
    assert list(graph.nodes) == ["x", "y"]


@pytest.mark.filterwarnings("ignore::cyxla.errors.UnknownAttributeWarning")
def test_mutated_graphs_give_an_error_or_a_graph():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2, 3], name="x")
        y = apply_op("MatMul", x, graph.constant(np.ones((3, 2), np.float32)))
        apply_op("Softmax", y[:, :1] + 1.0, name="out")
    data = graph.to_graph_def().SerializeToString()
    for seed in range(300):
        chance = random.Random(seed)
        mutant = bytearray(data)
        for _ in range(chance.randrange(1, 5)):
            place = chance.randrange(len(mutant))
            if chance.random() < 0.2:
                del mutant[place:]
            else:
                mutant[place] = chance.randrange(256)
            mutant = mutant or bytearray(b"\0")
        try:
            Session(load_graph(bytes(mutant))).run("out:0", {"x:0": np.ones((2, 3), np.float32)})
        except OpError:
            continue


def test_adding_a_node_of_a_name_that_is_taken():
    graph, _ = chain(1)
    with pytest.raises(AlreadyExistsError, match="'x'"):
        graph.add_node(graph.node("x").node_def)
