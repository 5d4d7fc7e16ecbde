"""Opcodes that make arrays or move elements."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.types import Layout, Shape
from cyxla.xla.evaluator import evaluate_instruction
from cyxla.xla.evaluator.ops.data_movement import pad_array
from cyxla.xla.hlo import Computation
from cyxla.xla.hlo.attributes import PaddingDim, SliceDim

X = np.arange(6, dtype=np.float32).reshape(2, 3)
EDGE = np.arange(5, dtype=np.int32)


def test_iota_converts_each_index(run):
    assert run("iota", shape=Shape.array("s8", (130,)), iota_dimension=0)[127:].tolist() == [127, -128, -127]
    bf16 = run("iota", shape=Shape.array("bf16", (258, 2)), iota_dimension=0)
    assert float(bf16[257, 1]) == 256


# fmt: off
MOVES = [
    # opcode        operands  result                      attrs                               want
    ("broadcast",   [X[0]],   np.stack([X[0]] * 4),       {"dimensions": (1,)}),
    ("broadcast",   [X[0]],   np.stack([X[0]] * 2, 1),    {"dimensions": (0,)}),
    ("broadcast",   [X],      X.T,                        {"dimensions": (1, 0)}),
    ("reshape",     [X],      X.reshape(3, 2),            {}),
    ("transpose",   [X],      X.T,                        {"dimensions": (1, 0)}),
    ("reverse",     [X],      X[:, ::-1],                 {"dimensions": (1,)}),
    ("slice",       [EDGE],   EDGE[1:5:2],                {"slice": (SliceDim(1, 5, 2),)}),
    ("slice",       [EDGE],   EDGE[5:],                   {"slice": (SliceDim(5, 5, 1),)}),
    ("slice",       [EDGE],   EDGE[2:2],                  {"slice": (SliceDim(2, 2, 1),)}),
    ("concatenate", [X, X],   np.concatenate([X, X], 1),  {"dimensions": (1,)}),
    ("dynamic-slice", [EDGE, np.int32(4)], EDGE[2:],      {"dynamic_slice_sizes": (3,)}),
    ("dynamic-slice", [EDGE, np.int32(-4)], EDGE[:3],     {"dynamic_slice_sizes": (3,)}),
    ("dynamic-slice", [EDGE, np.uint64(2**64 - 1)], EDGE[2:], {"dynamic_slice_sizes": (3,)}),
    ("dynamic-slice", [X, np.int32([1, 9])], X[1:, 2:],   {"dynamic_slice_sizes": (1, 1)}),
    ("dynamic-update-slice", [EDGE, EDGE[:2] + 7, np.int32(9)], np.int32([0, 1, 2, 7, 8]), {}),
    ("get-dimension-size", [X], np.array(3, np.int32),    {"dimensions": (1,)}),
]
# fmt: on


@pytest.mark.parametrize("opcode, operands, want, attrs", MOVES)
def test_moves(run, opcode, operands, want, attrs):
    got = run(opcode, *map(np.asarray, operands), shape=Shape.of(want), **attrs)
    np.testing.assert_array_equal(got, want)


def test_operands_are_not_written_to(run):
    x = np.arange(4, dtype=np.int32)
    run("dynamic-update-slice", x, np.int32([9]), np.array(0, np.int32), shape=Shape.of(x))
    assert x.tolist() == [0, 1, 2, 3]


def slow_pad(x, value, p):
    line = []
    for i, v in enumerate(x):
        line += [v] + [value] * (p.interior if i + 1 < len(x) else 0)
    line = [value] * max(p.low, 0) + line[max(-p.low, 0) :] if p.low < 0 or line else [value] * max(p.low, 0)
    return line[: len(line) + p.high] if p.high < 0 else line + [value] * p.high


@settings(max_examples=200, deadline=None)
@given(n=st.integers(0, 5), low=st.integers(-6, 4), high=st.integers(-6, 4), interior=st.integers(0, 3))
def test_pad_is_dilate_then_pad_or_crop(n, low, high, interior):
    total = n + max(n - 1, 0) * interior + low + high
    x, p = np.arange(1, n + 1), PaddingDim(low, high, interior)
    if total < 0:
        return
    assert pad_array(x, np.array(0), [p]).tolist() == slow_pad(x.tolist(), 0, p)[: max(total, 0)]


def bitcast(x, source, target):
    comp = Computation("main")
    return evaluate_instruction(
        comp.add("bitcast", [comp.add("parameter", attrs={"parameter_number": 0}, shape=source)], shape=target), x
    )


def test_bitcast_reads_memory_in_another_layout():
    row, column = Layout((1, 0)), Layout((0, 1))
    shape = Shape.array("f32", (2, 3), layout=row)
    np.testing.assert_array_equal(bitcast(X, shape, Shape.array("f32", (3, 2), layout=column)), X.T)
    np.testing.assert_array_equal(bitcast(X, shape, Shape.array("f32", (3, 2), layout=row)), X.reshape(3, 2))
    np.testing.assert_array_equal(bitcast(X, shape, Shape.array("s32", (6,))), X.reshape(6).view(np.int32))


def dynamic(run, x, size):
    shape = Shape.array("f32", x.shape, dynamic=[False] * (x.ndim - 1) + [True])
    return run("set-dimension-size", x, np.array(size, np.int32), shape=shape, dimensions=(x.ndim - 1,))


def test_a_dynamic_array_has_its_present_size(run):
    x = dynamic(run, X, 2)
    np.testing.assert_array_equal(x, X[:, :2])
    assert run("get-dimension-size", x, shape=Shape.array("s32"), dimensions=(1,)) == 2
    flat = run("reshape", x, shape=Shape.array("f32", (6,), dynamic=[True]))
    assert flat.tolist() == [0, 1, 3, 4]
    again = run("dynamic-reshape", flat, np.array(4, np.int32), np.array(1, np.int32),
                shape=Shape.array("f32", (6, 1), dynamic=[True, False]))  # fmt: skip
    assert again.shape == (4, 1)
