"""Damaged graphs, loaded and run: an error of ours or a result, never anything else."""

import random

import numpy as np
import pytest
from support.graphs.running import cond, constant_like, while_loop

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph
from cyxla.core.graph.graph_constructor import load_graph
from cyxla.core.runtime.session import RunOptions, Session
from cyxla.errors import InvalidArgumentError, OpError


def plain():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2, 2], name="x")
        y = apply_op("MatMul", x, np.float32([[1, 2], [3, 4]]))
        apply_op("ConcatV2", [y, apply_op("Relu", x)], 0, name="y")
    return graph


def looped():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2, 2], name="x")
        total = apply_op("Sum", x, [0, 1])
        small = apply_op("Less", total, np.float32(10))
        [start] = cond(small, lambda v: [v + constant_like(v, 1)], lambda v: [v], [total])
        _, v = while_loop(
            graph,
            lambda i, v: apply_op("Less", i, constant_like(i, 4)),
            lambda i, v: (i + constant_like(i, 1), v + v),
            [graph.constant(0), start],
        )
        apply_op("Identity", v, name="y")
    return graph


def functional():
    graph = Graph()
    for name, make in (("more", lambda v: apply_op("Less", v, np.float32(50))), ("twice", lambda v: v + v)):
        body = Graph()
        with body.as_default():
            v = body.placeholder("float", [], name="v")
            graph.library.add(graph_to_function(name, [v], [make(v)]))
    with graph.as_default():
        x = graph.placeholder("float", [2, 2], name="x")
        total = apply_op("Sum", x, [0, 1])
        out = apply_op("While", [total], cond=NameAttrList("more"), body=NameAttrList("twice"))
        apply_op("Identity", out[0], name="y")
    return graph


def damaged(data, rng):
    """The bytes with a few of them changed, flipped or gone."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        k = rng.randrange(len(data))
        kind = rng.randrange(3)
        if kind == 0:
            data[k] = rng.randrange(256)
        elif kind == 1:
            data[k] ^= 1 << rng.randrange(8)
        else:
            del data[k : k + rng.randrange(1, 8)]
    return bytes(data)


@pytest.mark.parametrize("build", [plain, looped, functional])
@pytest.mark.filterwarnings("ignore::cyxla.errors.UnknownAttributeWarning")
def test_damaged_graphs(build):
    data, feeds = build().to_graph_def().SerializeToString(), {"x:0": np.eye(2, dtype=np.float32)}
    right = Session(load_graph(data)).run("y:0", feeds)
    assert right.size
    rng, codes = random.Random(7), []
    for _ in range(400):
        try:
            Session(load_graph(damaged(data, rng))).run("y:0", feeds, options=RunOptions(timeout=5))
        except OpError as error:
            codes.append(error.code)
    assert len(codes) > 100
    assert "INTERNAL" not in codes


def test_attributes_of_functions_have_no_place_outside_of_one():
    dtype, value = "key: 'dtype' value { type: DT_FLOAT }", "key: 'value' value { placeholder: 'v' }"
    text = f"node {{ name: 'c' op: 'Const' attr {{ {dtype} }} attr {{ {value} }} }}"
    with pytest.raises(InvalidArgumentError, match="refers to an attribute of a function"):
        load_graph(text.encode())
