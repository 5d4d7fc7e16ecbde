"""map, reduce and scan with bodies that are recognised and bodies that are not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.types import Literal, Shape
from cyxla.xla.evaluator import Evaluation, evaluate_computation
from cyxla.xla.evaluator.ops import functional
from cyxla.xla.hlo import Computation

S32, F32, PRED = (Shape.array(t) for t in ("s32", "f32", "pred"))
inf, nan = np.inf, np.nan


def reduce(run, opcode, x, init, dims):
    body = run.function(opcode, Shape.of(x).dtype)
    kept = [n for d, n in enumerate(x.shape) if d not in dims]
    return run("reduce", x, np.array(init, x.dtype), dims=kept, called=[body], dimensions=dims)


# fmt: off
REDUCTIONS = [
    # opcode     dtype   values                     init  dims   want
    ("add",      "s8",   [[100, 100], [1, 2]],      0,    (1,),  [-56, 3]),
    ("add",      "s4",   [[7, 7], [1, 2]],          1,    (0,),  [-7, -6]),
    ("subtract", "s32",  [1, 2, 3],                 100,  (0,),  94),
    ("add",      "f32",  [-0.0, -0.0],              0,    (0,),  0.0),
    ("add",      "f32",  [-0.0, -0.0],              -0.0, (0,),  -0.0),
    ("add",      "bf16", [256, 1, 1, 1, 1],         0,    (0,),  260),
    ("add",      "f16",  [60000, 60000, -60000],    0,    (0,),  60000),
    ("add",      "bf16", [1] * 4096,                1,    (0,),  4096),
    ("add",      "f8e5m2", [1] * 40,                0,    (0,),  40),
    ("multiply", "bf16", [1.0078125] * 64,          1,    (0,),  1.6484375),
    ("maximum",  "f32",  [1, nan, 2],               -inf, (0,),  nan),
    ("maximum",  "f32",  [-0.0, 0.0, -1],           -inf, (0,),  0.0),
    ("maximum",  "f32",  [-0.0, -0.0, -1],          -inf, (0,),  -0.0),
    ("minimum",  "bf16", [-0.0, 0.0, 1],            inf,  (0,),  -0.0),
    ("maximum",  "u64",  [2**63, 5],                0,    (0,),  2**63),
    ("multiply", "c64",  [1j, 1j],                  2,    (0,),  -2),
    ("add",      "pred", [False, True],             False, (0,), True),
    ("multiply", "pred", [False, True],             True, (0,),  False),
    ("xor",      "pred", [True, True, True],        False, (0,), True),
    ("or",       "u8",   [1, 4],                    2,    (0,),  7),
    ("and",      "s2",   [-1, 1],                   -1,   (0,),  1),
    ("add",      "f32",  [[], []],                  7,    (1,),  [7, 7]),
    ("add",      "f32",  [1, 2],                    7,    (),    [1, 2]),
    ("divide",   "f32",  [2, 4],                    16,   (0,),  2),
]
# fmt: on


@pytest.mark.parametrize("opcode, dtype, values, init, dims, want", REDUCTIONS)
def test_reduce(run, opcode, dtype, values, init, dims, want):
    got = reduce(run, opcode, run.array(dtype, values), init, dims)
    want = run.array(dtype, want)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    np.testing.assert_array_equal(got.astype(wide), want.astype(wide))
    if got.dtype.kind == "f":
        assert (np.signbit(got) == np.signbit(want)).all() or np.isnan(want).any()


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(0, 2), min_size=1), st.integers(0, 2**32))
def test_integer_sums_fold_any_dimensions(dims, seed):
    x = np.random.default_rng(seed).integers(-(2**63), 2**63, (2, 3, 4), np.int64)
    comp = Computation("add")
    scalar = Shape.array("s64")
    comp.root = comp.add(
        "add", [comp.add("parameter", attrs={"parameter_number": n}, shape=scalar) for n in (0, 1)], shape=scalar
    )
    (got,) = functional.reduce_arrays(Evaluation(), comp, [x], [np.array(1)], sorted(dims, reverse=True))
    np.testing.assert_array_equal(got, x.sum(tuple(dims)) + 1)


def argmax():
    """(max, index) pairs: the greater value wins, the lower index among equals."""
    comp = Computation("argmax")
    v0, i0, v1, i1 = (
        comp.add("parameter", attrs={"parameter_number": n}, shape=s) for n, s in enumerate([F32, S32] * 2)
    )
    greater = comp.add("compare", [v0, v1], {"direction": "GE"}, shape=PRED)
    value = comp.add("select", [greater, v0, v1], shape=F32)
    index = comp.add("select", [greater, i0, i1], shape=S32)
    comp.root = comp.add("tuple", [value, index], shape=Shape.tuple([F32, S32]))
    return comp


@pytest.mark.parametrize("length", [3, 4097])
def test_variadic_reduce(run, length):
    x = np.random.default_rng(0).integers(0, 9, (length, 2)).astype(np.float32)
    places = np.broadcast_to(np.arange(length, dtype=np.int32)[:, None], x.shape)
    shape = Shape.tuple([Shape.array("f32", (2,)), Shape.array("s32", (2,))])
    value, index = run("reduce", x, places, np.float32(-inf).reshape(()), np.array(-1, np.int32),
                       shape=shape, called=[argmax()], dimensions=(0,))  # fmt: skip
    assert value.tolist() == x.max(0).tolist()
    assert index.tolist() == x.argmax(0).tolist()


def test_long_reduction_pairs_neighbours_in_order(run, monkeypatch):
    """`b` in `(a, b) -> b` is associative but does not commute."""
    monkeypatch.setattr(functional, "_MAX_SEQUENTIAL", 4)
    comp = Computation("second")
    comp.root = run.parameters(comp, [F32, F32])[1]
    x = np.arange(37, dtype=np.float32)
    assert run("reduce", x, np.array(-1, np.float32), dims=(), called=[comp], dimensions=(0,)) == 36


def test_map_applies_a_computation(run):
    comp = Computation("f")
    a, b = run.parameters(comp, [F32, F32])
    two = comp.add("constant", attrs={"literal": Literal(np.float32(2))}, shape=F32)
    comp.root = comp.add("multiply", [comp.add("subtract", [a, b], shape=F32), two], shape=F32)
    x = np.float32([[1, 2], [3, 4]])
    assert run("map", x, x[::-1].copy(), called=[comp], dimensions=(0, 1)).tolist() == [[-4, -4], [4, 4]]


def test_bodies_that_numpy_cannot_batch_run_element_by_element(run):
    """A body with a loop: doubles its argument until it is at least 100."""
    more = Computation("more")
    (p,) = run.parameters(more, [S32])
    hundred = more.add("constant", attrs={"literal": Literal(np.int32(100))}, shape=S32)
    more.root = more.add("compare", [p, hundred], {"direction": "LT"}, shape=PRED)
    double = Computation("double")
    (p,) = run.parameters(double, [S32])
    double.root = double.add("add", [p, p], shape=S32)
    body = Computation("body")
    (p,) = run.parameters(body, [S32])
    body.root = body.add("while", [p], shape=S32, called=[double, more])
    assert run("map", np.int32([3, 100, 99]), called=[body], dimensions=(0,)).tolist() == [192, 100, 198]


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(run, reverse):
    row = Shape.array("f32", (2,))
    step = Computation("step")
    a, c = run.parameters(step, [row, row])
    total = step.add("add", [a, c], shape=row)
    step.root = step.add("tuple", [total, total], shape=Shape.tuple([row, row]))
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    shape = Shape.tuple([Shape.of(x), row])
    outs, last = run(
        "scan", x, np.float32([10, 20]), shape=shape, called=[step], dimensions=(0,), num_carries=1, is_reverse=reverse
    )
    want = np.cumsum(x[::-1], 0)[::-1] if reverse else np.cumsum(x, 0)
    np.testing.assert_array_equal(outs, want + np.float32([10, 20]))
    np.testing.assert_array_equal(last, outs[0] if reverse else outs[-1])


@pytest.mark.parametrize("opcode", ["add", "maximum", "xor", "subtract"])
def test_scalar_function_knows_plain_bodies(run, opcode):
    assert Evaluation().scalar_function(run.function(opcode, "s32")) == opcode


def test_scalar_function_minds_the_order(run):
    for opcode, want in (("subtract", None), ("add", "add")):
        comp = Computation("swapped")
        a, b = run.parameters(comp, [S32, S32])
        comp.root = comp.add(opcode, [b, a], shape=S32)
        assert Evaluation().scalar_function(comp) == want
    assert evaluate_computation(comp, [np.int32(1), np.int32(2)]) == 3
