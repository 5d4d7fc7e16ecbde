"""The config of a graph: TensorFlow's text and binary forms, Python, and what is wrong with it."""

import pytest

from cyxla.aot.config import Config, Feed, Fetch, TensorId, Variable
from cyxla.core.framework.protos import messages
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, UnimplementedError

TEXT = """
feed { id { node_name: "x" } shape { dim { size: 2 } dim { size: 3 } } }
feed { id { node_name: "y" output_index: 1 } shape { } name: "scale" type: DT_FLOAT }
fetch { id { node_name: "z" } name: "product" }
variable { node_name: "w" name: "weights" shape { dim { size: 3 } } type: DT_FLOAT readonly: true }
"""
CONFIG = Config(
    feed=(Feed(TensorId("x"), (2, 3)), Feed(TensorId("y", 1), (), "scale", DataType.DT_FLOAT)),
    fetch=(Fetch(TensorId("z"), "product"),),
    variable=(Variable("w", "weights", (3,), DataType.DT_FLOAT, readonly=True),),
)


def test_text_and_binary_forms():
    binary = messages.to_bytes(messages.parse_text("tf2xla.Config", TEXT))
    assert Config.parse(TEXT) == Config.parse(TEXT.encode()) == Config.parse(binary) == CONFIG
    assert Config.parse(CONFIG.to_text()) == CONFIG


def test_names_of_tensors_in_python():
    assert (
        Config([Feed("x:2", ())], [Fetch("z")]).to_text()
        == Config([Feed(TensorId("x", 2), ())], [Fetch(TensorId("z"))]).to_text()
    )
    with pytest.raises(InvalidArgumentError, match="'x:y' is not the name of a tensor"):
        TensorId.of("x:y")


@pytest.mark.parametrize("text, message", [
    ('feed { id { node_name: "x" } }', "the feed x:0 has no shape"),
    ('feed { id { node_name: "x" } shape { unknown_rank: true } }', "the feed x:0 has the shape"),
    ('feed { id { node_name: "x" } shape { dim { size: -1 } } }', r"the feed x:0 has the shape \[-1\]"),
    ('feed { id { node_name: "x" } shape { } } feed { id { node_name: "x" } shape { } }', "the feed id x:0 twice"),
    ('feed { id { node_name: "x" } shape {} name: "a" } feed { id { node_name: "y" } shape {} name: "a" }', "a twice"),
    ('feed { id { node_name: "x" } shape { } name: "a b" }', "'a b' is not an identifier"),
    ("feed { shape { } }", "the config has the tensor id"),
    ('feed { id { node_name: "x" output_index: -1 } shape { } }', "the config has the tensor id"),
    ('variable { node_name: "v" } variable { node_name: "v" }', "the variable v twice"),
    ("feed { nothing: 1 }", "not a valid Config|not a valid tf2xla.Config"),
])  # fmt: skip
def test_wrong_configs(text, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Config.parse(f'{text} fetch {{ id {{ node_name: "z" }} }}').check()


def test_a_config_without_fetches():
    with pytest.raises(InvalidArgumentError, match="no fetches"):
        Config.parse('feed { id { node_name: "x" } shape { } }').check()


def test_the_line_of_a_mistake_is_told():
    with pytest.raises(InvalidArgumentError, match="line 3"):
        Config.parse('feed {\n id { node_name: "x" }\n shade { }\n}')


def test_fake_quantisation_calls_are_refused():
    with pytest.raises(UnimplementedError, match="custom_fake_quant_op_calls"):
        Config.parse("conversion_options { custom_fake_quant_op_calls: true }")
