"""Functions generated from ops, with and without overrides."""

import inspect
import logging

import numpy as np
import pytest

import cyxla
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op import OpRegistry, op
from cyxla.core.framework.declarations.op_overrides import OpGenOverrideMap
from cyxla.core.framework.op_gen import OpNamespace
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError, NotFoundError, UnimplementedError


def overrides(text):
    made = OpGenOverrideMap()
    made.load_text(text)
    return made


def namespace(text):
    return OpNamespace(overrides=overrides(text))


@pytest.fixture
def overridden():
    """cyxla.raw_ops under overrides, which are taken away again."""
    yield lambda text: cyxla.raw_ops.use_overrides(overrides(text))
    cyxla.raw_ops.use_overrides(None)


X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


@pytest.mark.parametrize("module", [cyxla.raw_ops, cyxla.raw_ops.internal])
def test_names_of_ops_are_functions_of_ops(module):
    """No name that a module imports stands for an op, as `typing.Any` would for the op Any."""
    names = [name for name in dir(module) if name not in ("internal", "use_overrides")]
    assert [name for name in names if not inspect.isfunction(getattr(module, name))] == []


def test_any():
    assert cyxla.raw_ops.Any(input=np.array([False, True]), reduction_indices=np.int32([0])) == np.True_


def test_functions_compute_on_arrays():
    product = cyxla.raw_ops.MatMul(a=X, b=X, transpose_b=True)
    np.testing.assert_array_equal(product, X @ X.T)
    values, indices = cyxla.raw_ops.TopKV2(X, k=1)
    assert (values.tolist(), indices.tolist()) == ([[2.0], [4.0]], [[1], [1]])


def test_several_results_have_names():
    result = cyxla.raw_ops.Unique(np.array([3, 1, 3]))
    assert (result.y.tolist(), result.idx.tolist()) == ([3, 1], [0, 1, 0])


def test_functions_add_nodes_to_a_graph():
    graph = Graph()
    with graph.as_default():
        cyxla.raw_ops.Neg(x=cyxla.raw_ops.Placeholder(dtype="float32", shape=[2], name="here"), name="there")
    assert {node.op for node in graph.nodes.values()} == {"Placeholder", "Neg"}
    assert graph.nodes["there"].inputs[0].name == "here:0"


def test_signature_shows_defaults():
    signature = inspect.signature(cyxla.raw_ops.MatMul)
    assert list(signature.parameters) == ["a", "b", "transpose_a", "transpose_b", "T", "grad_a", "grad_b", "name"]
    assert signature.parameters["transpose_a"].default is False
    assert inspect.signature(cyxla.raw_ops.Conv2D).parameters["strides"].default is inspect.Parameter.empty


@pytest.mark.parametrize("call", [
    lambda: cyxla.raw_ops.MatMul(X),
    lambda: cyxla.raw_ops.MatMul(a=X, b=X, c=X),
    lambda: cyxla.raw_ops.MatMul(X, X, transpose_a="yes"),
    lambda: cyxla.raw_ops.MatMul(X, X, X),
])  # fmt: skip
def test_wrong_calls(call):
    with pytest.raises(InvalidArgumentError, match="MatMul"):
        call()


def test_unknown_functions():
    with pytest.raises(AttributeError, match="NoSuchOp"):
        _ = cyxla.raw_ops.NoSuchOp
    with pytest.raises(AttributeError, match="NoSuchOp"):
        _ = cyxla.raw_ops.internal.NoSuchOp


def test_internal_ops_stand_apart():
    import cyxla.raw_ops.internal

    assert "_Arg" not in dir(cyxla.raw_ops)
    assert "_Arg" in dir(cyxla.raw_ops.internal)
    assert callable(cyxla.raw_ops.internal._Arg)


def test_every_function_can_be_made():
    public = OpNamespace()
    for names in (public, public.internal):
        for name in names:
            assert "Returns" in getattr(names, name).__doc__ or not names._table()[name].op_def.output_arg


def test_ops_declared_later_appear():
    registry = OpRegistry()
    names = OpNamespace(registry)
    assert "Late" not in names
    op("Late", "->", shape=None, registry=registry)
    assert "Late" in names


def test_skip_takes_the_function_away(overridden):
    """The other fields are ignored."""
    overridden('op { name: "MatMul" skip: true rename_to: "matmul" }')
    assert not hasattr(cyxla.raw_ops, "MatMul")
    assert not hasattr(cyxla.raw_ops, "matmul")
    assert hasattr(cyxla.raw_ops, "BatchMatMul")


def test_hide_moves_the_function(overridden):
    """To the internal names alone."""
    import cyxla.raw_ops.internal

    overridden('op { name: "MatMul" hide: true }')
    assert not hasattr(cyxla.raw_ops, "MatMul")
    np.testing.assert_array_equal(cyxla.raw_ops.internal.MatMul(X, X), X @ X)


def test_rename_and_references(overridden):
    """Docs follow."""
    registry = OpRegistry()
    op(
        "Twice",
        "x: float -> y: float",
        shape=None,
        doc="Twice `x`.\n\nSee `Thrice`, and `Twice` again.",
        registry=registry,
    )
    op("Thrice", "x: float -> y: float", shape=None, registry=registry)
    names = OpNamespace(
        registry, overrides('op { name: "Twice" rename_to: "twofold" } op { name: "Thrice" rename_to: "threefold" }')
    )
    assert list(names) == ["threefold", "twofold"]
    assert "See `threefold`, and `twofold` again." in names.twofold.__doc__
    assert names.twofold.__name__ == "twofold"
    overridden('op { name: "MatMul" rename_to: "matmul" }')
    np.testing.assert_array_equal(cyxla.raw_ops.matmul(a=X, b=X), X @ X)


def test_aliases_are_one_function():
    names = namespace('op { name: "MatMul" alias: "mm" alias: "matmul" }')
    assert names.mm is names.matmul is names.MatMul


def test_new_default_counts_for_new_graphs_only():
    """An imported node keeps its attributes as declared."""
    names = namespace('op { name: "MatMul" attr_default { name: "transpose_b" value { b: true } } }')
    np.testing.assert_array_equal(names.MatMul(X, X), X @ X.T)
    np.testing.assert_array_equal(names.MatMul(X, X, transpose_b=False), X @ X)
    graph = Graph()
    with graph.as_default():
        names.MatMul(X, X, name="made")
    assert graph.nodes["made"].attr("transpose_b") is True
    text = """node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "old" op: "MatMul" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }"""
    assert cyxla.load_graph(text.encode()).nodes["old"].attr("transpose_b") is False


def test_renamed_parameters_and_results():
    """Other keywords, the same graph."""
    names = namespace("""
    op { name: "MatMul" attr_rename { from: "transpose_a" to: "flip" } input_rename { from: "a" to: "left" } }
    op { name: "Unique" output_rename { from: "y" to: "values" } }
    """)
    graph = Graph()
    with graph.as_default():
        names.MatMul(left=X, b=X, flip=True, name="made")
    assert graph.nodes["made"].attr("transpose_a") is True
    assert "left : T" in names.MatMul.__doc__
    with pytest.raises(InvalidArgumentError):
        names.MatMul(a=X, b=X)
    assert names.Unique(np.array([1, 1])).values.tolist() == [1]


EVERYTHING = """
op {
  name: "MatMul" hide: true rename_to: "mm" alias: "m"
  attr_default { name: "transpose_a" value { b: true } }
  attr_rename { from: "transpose_b" to: "tb" } input_rename { from: "a" to: "l" }
  output_rename { from: "product" to: "p" }
}
op { name: "Add" skip: true }
"""


def test_files_with_every_field(tmp_path, caplog):
    """A comma list; later entries take the place of earlier ones; unknown ops are reported."""
    first, second = tmp_path / "a.pbtxt", tmp_path / "b.pbtxt"
    first.write_text(EVERYTHING)
    second.write_text('op { name: "Add" rename_to: "plus" } op { name: "NoSuchOp" }')
    made = OpGenOverrideMap()
    made.load_file(f"{first}, {second}")
    api = made.apply_override(OpRegistry.global_().look_up_op_def("MatMul"))
    assert (api.names, api.hidden) == (("mm", "m"), True)
    assert api.renamed == {"transpose_b": "tb", "a": "l", "product": "p"}
    assert api.defaults == {"transpose_a": AttrValue("bool", True)}
    assert made.apply_override(OpRegistry.global_().look_up_op_def("Add")).names == ("plus",)
    with caplog.at_level(logging.WARNING):
        assert made.unknown() == ["NoSuchOp"]
    assert "NoSuchOp" in caplog.text


API_DEFS = """
op {
  graph_op_name: "MatMul"
  endpoint { name: "linalg.mm" } endpoint { name: "m" deprecation_version: 2 } endpoint { name: "mm" }
  in_arg { name: "a" rename_to: "l" description: <<END
The "left" one,
of two.
END
  }
  in_arg { name: "b" description: "The right one." }
  out_arg { name: "product" rename_to: "p" }
  attr { name: "transpose_a" default_value { b: true } }
  attr { name: "transpose_b" rename_to: "tb" }
  summary: "Multiply matrices."
  arg_order: "a" arg_order: "b"
  visibility: HIDDEN
}
op { graph_op_name: "Add" visibility: SKIP }
op { graph_op_name: "Mul" visibility: VISIBLE description_suffix: "That is all." }
"""


def test_api_defs_are_overrides(tmp_path):
    file = tmp_path / "api_def.pbtxt"
    file.write_text(API_DEFS)
    made = OpGenOverrideMap()
    made.load_api_defs(str(file))
    api = made.apply_override(OpRegistry.global_().look_up_op_def("MatMul"))
    assert (api.names, api.hidden) == (("mm", "m"), True)
    assert api.renamed == {"transpose_b": "tb", "a": "l", "product": "p"}
    assert api.defaults == {"transpose_a": AttrValue("bool", True)}
    assert made.apply_override(OpRegistry.global_().look_up_op_def("Add")) is None
    assert made.apply_override(OpRegistry.global_().look_up_op_def("Mul")).names == ("Mul",)


def test_wrong_api_defs(tmp_path):
    """Lines are counted across blocks of text; another order of parameters is refused."""
    made = OpGenOverrideMap()
    with pytest.raises(InvalidArgumentError) as caught:
        made.load_api_defs_text("op {\n  summary: <<END\none\ntwo\nEND\n  colour: 3\n}")
    assert "line 6" in str(caught.value)
    with pytest.raises(UnimplementedError, match="MatMul has arg_order"):
        made.load_api_defs_text('op { graph_op_name: "MatMul" in_arg { name: "a" } arg_order: "b" arg_order: "a" }')


def test_syntax_errors_say_where(tmp_path):
    """Code 3 with the line."""
    file = tmp_path / "a.pbtxt"
    file.write_text('op {\n  name: "A"\n  colour: 3\n}')
    with pytest.raises(InvalidArgumentError) as caught:
        OpGenOverrideMap().load_file(str(file))
    assert "line 3" in str(caught.value)
    assert str(file) in str(caught.value)
    with pytest.raises(NotFoundError):
        OpGenOverrideMap().load_file(str(tmp_path / "missing"))


WRONG = [
    'attr_default { name: "nothing" value { b: true } }',
    'attr_default { name: "transpose_a" value { i: 1 } }',
    'attr_rename { from: "a" to: "b" }',
    'input_rename { from: "transpose_a" to: "b" }',
    'output_rename { from: "a" to: "b" }',
]


@pytest.mark.parametrize("fields", WRONG)
def test_overrides_of_missing_names(fields):
    """An unknown attr is code 3."""
    with pytest.raises(InvalidArgumentError, match="MatMul"):
        overrides(f'op {{ name: "MatMul" {fields} }}').apply_override(OpRegistry.global_().look_up_op_def("MatMul"))


def test_default_of_a_list():
    made = overrides('op { name: "Squeeze" attr_default { name: "squeeze_dims" value { list { } } } }')
    api = made.apply_override(OpRegistry.global_().look_up_op_def("Squeeze"))
    assert api.defaults["squeeze_dims"] == AttrValue("list(int)", ())
