"""Arguments and results with bounds: any sizes up to the bounds, in arrays of any memory order."""

import pickle

import numpy as np
import pytest

import cyxla
from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError
from cyxla.types import ElementType

ROWS = """ENTRY e {
  x = f32[<=6,4] parameter(0)
  y = f32[4] parameter(1)
  w = f32[<=6,4] broadcast(y), dimensions={1}
  ROOT r = f32[<=6,4] add(x, w)
}"""
TREE = """ENTRY e {
  t = (f32[<=3], (s32[], f32[2,<=3])) parameter(0)
  a = f32[<=3] get-tuple-element(t), index=0
  b = (s32[], f32[2,<=3]) get-tuple-element(t), index=1
  ROOT r = ((s32[], f32[2,<=3]), f32[<=3]) tuple(b, a)
}"""
DTYPES = [t for t in ElementType if t.is_array and t.numpy_dtype is not None]


def rows(*dims):
    return np.arange(np.prod(dims), dtype="f4").reshape(dims)


@pytest.mark.parametrize("x", [
    rows(0, 4), rows(1, 4), rows(6, 4), rows(4, 3).T, rows(6, 8)[::2, ::-2], rows(2, 4).astype(">f4"),
    np.array([[np.nan, np.inf, -0.0, 1]], "f4"),
])  # fmt: skip
def test_arguments_of_any_size_and_memory_order(x):
    y = np.arange(4, dtype="f4")
    got = cyxla.compile(ROWS)(x, y)
    assert (got.flags.c_contiguous, got.dtype) == (True, np.float32)
    np.testing.assert_array_equal(got, cyxla.compile(ROWS, platform="interpreter")(x, y))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_type(dtype):
    text = f"ENTRY e {{ x = {dtype}[<=5] parameter(0) ROOT r = {dtype}[<=5] reverse(x), dimensions={{0}} }}"
    x = np.array([1, 2, 1]).astype(dtype.numpy_dtype)
    np.testing.assert_array_equal(cyxla.compile(text)(x), x[::-1])


@pytest.mark.parametrize("x, error", [
    (rows(7, 4), "argument 0: got float32"), (rows(6, 3), "argument 0"), (rows(24), "argument 0"),
    (rows(2, 4).astype("f8"), "argument 0"),
])  # fmt: skip
def test_arguments_that_do_not_fit(x, error):
    with pytest.raises(InvalidArgumentError, match=error):
        cyxla.compile(ROWS)(x, rows(4))


def test_nested_tuples():
    given = (rows(2), (np.int32(5), rows(2, 1)))
    (number, matrix), vector = cyxla.compile(TREE)(given)
    assert (int(number), matrix.tolist(), vector.tolist()) == (5, [[0], [1]], [0, 1])


def test_a_bounded_scalar_dimension_of_rank_one_may_be_empty():
    got = cyxla.compile("ENTRY e { x = f32[<=1] parameter(0) ROOT r = f32[<=1] negate(x) }")(rows(0))
    assert got.shape == (0,)


@pytest.mark.parametrize("size", [6, 2, 0])
@pytest.mark.parametrize("make", [np.empty, lambda dims, dtype: np.empty(dims[::-1], dtype).T])
def test_the_place_of_a_result_has_the_size_of_this_call(size, make, backend):
    run, x, out = cyxla.compile(ROWS, platform=backend), rows(size, 4), make((size, 4), np.float32)
    assert run(x, rows(4), out=out) is out
    np.testing.assert_array_equal(out, x + rows(4))


@pytest.mark.parametrize("out, error, match", [
    (rows(6, 4), ShapeError, r"out: got float32\[6,4\], but the result of this call is float32\[2,4\]"),
    (rows(1, 4), ShapeError, r"out: got float32\[1,4\], but the result of this call is float32\[2,4\]"),
    (rows(7, 4), ShapeError, r"out: got float32\[7,4\], want float32\[<=6,4\]"),
    (rows(2, 3), ShapeError, r"out: got float32\[2,3\], want float32\[<=6,4\]"),
    (rows(8), ShapeError, r"out: got float32\[8\], want float32\[<=6,4\]"),
    (rows(2, 4).astype("f8"), DTypeError, r"out: got float64\[2,4\], want float32\[<=6,4\]"),
    ([[0] * 4] * 2, InvalidArgumentError, r"want float32\[<=6,4\]"),
])  # fmt: skip
def test_places_of_other_sizes_are_refused(out, error, match, backend):
    before = np.array(out)
    with pytest.raises(error, match=match):
        cyxla.compile(ROWS, platform=backend)(rows(2, 4), rows(4), out=out)
    np.testing.assert_array_equal(out, before)


def test_no_place_is_written_unless_all_have_the_sizes(backend):
    run, given = cyxla.compile(TREE, platform=backend), (rows(2), (np.int32(5), rows(2, 1)))
    number, matrix, vector = np.array(0, "i4"), rows(2, 1) - 9, rows(2) - 9
    for wrong in (((number, matrix), rows(3)), ((number, rows(2, 2)), vector)):
        with pytest.raises(ShapeError, match="but the result of this call is"):
            run(given, out=wrong)
    assert (int(number), matrix.tolist(), vector.tolist()) == (0, [[-9], [-8]], [-9, -8])
    (a, b), c = run(given, out=((None, matrix), vector))
    assert (b is matrix, c is vector, int(a), matrix.tolist(), vector.tolist()) == (True, True, 5, [[0], [1]], [0, 1])


def test_shapes_names_and_text_are_those_of_the_program():
    run = cyxla.compile(ROWS)
    assert ([str(s) for s in run.inputs], str(run.outputs), run.names) == (
        ["f32[<=6,4]", "f32[4]"],
        "f32[<=6,4]",
        ("x", "y"),
    )
    assert "f32[<=6,4]" in run.hlo("input")
    assert "<=" not in run.hlo()
    assert run.explain()


@pytest.mark.parametrize("fixed", [{0: rows(3, 4)}, {"y": rows(4)}, {0: rows(3, 4), 1: rows(4)}])
def test_bound_arguments(fixed):
    run, whole = cyxla.compile(ROWS), [rows(3, 4), rows(4)]
    rest = [a for k, a in enumerate(whole) if k not in fixed and run.names[k] not in fixed]
    bound = run.bind(fixed)
    np.testing.assert_array_equal(bound(*rest), run(*whole))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(bound))(*rest), run(*whole))


def test_programs_from_the_disk_cache():
    text = ROWS.replace("add(", "subtract(")
    first, second = cyxla.compile(text), cyxla.compile(text)
    np.testing.assert_array_equal(first(rows(2, 4), rows(4)), second(rows(2, 4), rows(4)))


def test_donated_arguments_are_copied():
    run, x = cyxla.compile(ROWS, donate=(0,)), rows(3, 4)
    np.testing.assert_array_equal(run(x, rows(4)), rows(3, 4) + rows(4))
    np.testing.assert_array_equal(x, rows(3, 4))


GROWING = """ENTRY e {
  x = f32[<=6,<=3] parameter(0)
  u = f32[1,3] parameter(1)
  n = s32[] get-dimension-size(x), dimensions={0}
  k = s32[] constant(0)
  y = f32[<=6,<=3] dynamic-update-slice(x, u, n, k)
  six = s32[] constant(6)
  three = s32[] constant(3)
  z = f32[<=6,<=3] set-dimension-size(y, six), dimensions={0}
  ROOT r = f32[<=6,<=3] set-dimension-size(z, three), dimensions={1}
}"""


@pytest.mark.parametrize("first", [(6, 3), (5, 2), (2, 3), (1, 1)])
@pytest.mark.parametrize("second", [(6, 3), (4, 1), (1, 2), (0, 3)])
def test_nothing_of_a_call_is_seen_by_the_next_one(first, second):
    run, oracle, u = cyxla.compile(GROWING), cyxla.compile(GROWING, platform="interpreter"), -np.ones((1, 3), "f4")
    for dims in (first, second, first):
        np.testing.assert_array_equal(run(rows(*dims) + 1, u), oracle(rows(*dims) + 1, u))


@pytest.mark.parametrize("dims", [(6, 4), (3, 4)])
@pytest.mark.parametrize("root", ["add(x, x)", "copy(x)", "reverse(x), dimensions={0}"])
def test_results_have_memory_of_their_own(dims, root):
    run = cyxla.compile(f"ENTRY e {{ x = f32[<=6,4] parameter(0) ROOT r = f32[<=6,4] {root} }}")
    x, y = rows(*dims), rows(*dims) * 3 + 1
    first = run(x)
    kept = first.copy()
    second = run(y)
    np.testing.assert_array_equal(first, kept)
    assert not any(np.shares_memory(a, b) for a, b in ((first, x), (second, y), (first, second)))
    np.testing.assert_array_equal((x, y), (rows(*dims), rows(*dims) * 3 + 1))
