"""Arrays that a traced function creates, by functions of NumPy that do not dispatch."""

import threading

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from numpy import asarray, zeros

import cyxla
from cyxla.numpy import jit

OUTSIDE = np.arange(3.0)


def check(function, *arrays):
    """Assert that the compiled function returns what the function itself returns."""
    want = function(*[np.array(a) for a in arrays])
    got = jit(function, platform="interpreter")(*arrays)
    want, got = (w if isinstance(w, tuple) else (w,) for w in (want, got))
    assert len(want) == len(got)
    for g, w in zip(got, want, strict=True):
        assert (np.asarray(g).dtype, np.shape(g)) == (np.asarray(w).dtype, np.shape(w))
        np.testing.assert_array_equal(g, w)


def fill_by_slices(x):
    out = np.zeros(4)
    out[0] = x.sum()
    out[1:3] += x[:2]
    out[-1] = 7
    return out


def fill_through_views(x):
    out = np.zeros((3, 4))
    out[0][1] = x[0]
    out[:, 2] = x
    out.T[3] = x * 2
    row = out[1]
    row += 1
    flat = out.reshape(-1)
    flat[-1] = x[1]
    return out, row, flat


def views_before_the_first_write(x):
    out = np.ones((2, 3))
    low, turned = out[1:], out.T
    deep = turned[0]
    out[1] = x
    low[0, 0] = 5
    deep[0] = x[2]
    return out, low, turned, deep


def use_concrete_values(x):
    n = np.zeros(3, int)
    n[1] = 2
    total = x * 0
    for k in np.arange(3):
        total = total + x[k] * int(n[k])
    mask = np.ones(3, bool)
    mask[0] = False
    if n.sum() > 1 and (n == 2).any() and not np.all(mask):
        total = total + 1
    return total, x[mask], x[np.array([2, 0])], x[: n[1]], np.asarray(n), np.array([1.5, n[1]])


def in_place(x):
    out = np.full(3, 2)
    out += 1
    out *= out
    both = out + x
    fine = np.zeros(3, np.float32)
    fine += x
    np.add(x, 1, out=fine, casting="same_kind")
    other = np.empty_like(x)
    np.multiply(x, 3, out=other)
    return out, both, fine, other


def stack_rows(x):
    parts = np.array([x[0], 1, x[2]])
    square = np.array([[x[0], x[1]], [0.0, 1.0]])
    grid = np.eye(3)
    grid[0, 1] = x[1]
    ramp = np.linspace(0, 1, 3)
    ramp[1] = x[1]
    letters = np.asarray([x, x])
    return parts, square, grid, ramp, letters, np.array(x, ndmin=3), np.array([1, 2])


def build_from_lists(x):
    from numpy.linalg import solve

    matrix = [[x[0], 1.0], [0.5, x[1]]]
    solved = np.linalg.inv(matrix), solve(matrix, [x[0], 2.0]), np.linalg.matrix_rank(matrix)
    joined = np.convolve([x[0], 1], [1, x[1]]), np.correlate([x[0], 1, 2], [x[1]]), np.linalg.norm([x[0], x[1]])
    return *solved, *joined, np.interp(0.5, [0, 1], [x[0], x[1]]), np.polyval([x[0], 1], 2), np.trapezoid([x[0], 1.0])


def pass_through_functions(x):
    same = np.asarray(x)
    copied = np.array(x)
    same[0] = 9
    more = np.ascontiguousarray(x[::-1])
    more[1] = 4
    return x, same, copied, more, np.asanyarray(x, dtype=np.float32), np.asfortranarray(x), np.require(x, float, "C")


def copy_outer_array(x):
    own = np.array(OUTSIDE)
    own[1] = x[1]
    like = np.zeros_like(OUTSIDE)
    like[0] = x[0]
    again = np.copy(OUTSIDE)
    again[2] = x[2]
    return own, like, again


def create_with_like(x):
    return np.zeros(3, like=x) + x, np.array([1.0, 2.0, x[0]], like=x), np.arange(3, like=x)


def scalars_and_text(x):
    n = np.array(3)
    assert f"{n}" == "3"
    assert n.item() == 3
    assert [0, 1, 2, 3][n] == 3
    assert np.arange(3).tolist() == [0, 1, 2]
    assert len(np.zeros(4)) == 4
    assert 2 in np.arange(3)
    return x + float(n)


def nested(x):
    parts = [np.zeros(2) for _ in range(3)]
    for k, p in enumerate(parts):
        p[k % 2] = x[k]
    return np.stack(parts), np.concatenate(parts), np.split(np.zeros(4), 2)[0] + x[0]


def use_numpy_names(x):
    out = zeros(3)
    out[1] = asarray(x)[0]
    return out


def obscure_calls(x):
    make, pair = np.zeros, (2, 2)
    grid = make(pair if x.ndim else 3)
    grid[0, 0] = x[0]
    other = np.full(
        shape=(2,
               3),
        fill_value=np.ones(1)[0],
    ).reshape(3, 2)  # fmt: skip
    other[0, 0] = x[1]
    rows = [np.zeros(2) for _ in range(2)]
    rows[0][1] = x[2]
    more = (lambda: np.array([*pair, 3.0]))()
    more[2] = x[0]
    return grid, other, rows[0], more


def compiled_libraries_make_arrays(x):
    numbers = np.random.default_rng(0).normal(size=3) + np.random.RandomState(0).normal(size=3)
    return x + numbers, np.zeros(3) + scipy.special.expit(np.zeros(3)), scipy.linalg.toeplitz(np.arange(3.0)) @ x


FUNCTIONS = [
    fill_by_slices, fill_through_views, views_before_the_first_write, use_concrete_values, in_place, stack_rows,
    build_from_lists, pass_through_functions, copy_outer_array, create_with_like, scalars_and_text, nested,
    use_numpy_names, obscure_calls, compiled_libraries_make_arrays,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_traced_equals_numpy(function):
    check(function, np.array([1.0, 2.0, 3.0]))


def test_ascontiguousarray_of_a_transpose():
    check(lambda x: np.ascontiguousarray(x.T), np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("write", [
    lambda a, x: a.__setitem__(0, x[0]), lambda a, x: a.__setitem__(slice(1), x[:1]), lambda a, x: np.copyto(a, x),
    lambda a, x: np.add(x, 1, out=a),
])  # fmt: skip
def test_traced_values_are_written_to_outer_numpy_arrays(write):
    outside = np.arange(3.0)

    def function(x):
        write(outside, x)
        return x + outside

    compiled = jit(function, platform="interpreter")
    for x in (np.full(3, 4.0), np.full(3, 9.0)):  # a trace, and a call of the compiled function
        want = np.arange(3.0)
        write(want, x)
        outside[:] = np.arange(3.0)
        np.testing.assert_array_equal(compiled(x), x + want)
        np.testing.assert_array_equal(outside, want)


def test_asarray_of_an_outer_array_is_the_array():
    outside = np.arange(3.0)

    def function(x, i):
        table = np.asarray(outside)
        found = table[i]
        table[i] = x
        return found, table

    found, table = jit(function, platform="interpreter")(7.5, 1)
    assert found == 1
    assert table is outside
    np.testing.assert_array_equal(outside, [0, 7.5, 2])


@pytest.mark.parametrize("make", [
    lambda n: np.zeros(n), lambda n: np.ones([2, n]), lambda n: np.full((n,), 2.0), lambda n: np.empty(shape=n),
    lambda n: np.zeros(4).reshape(n), lambda n: np.broadcast_to(n, n), lambda n: np.broadcast_to(n, (2, n)),
])  # fmt: skip
def test_sizes_that_depend_on_an_array_raise(make):
    with pytest.raises(cyxla.errors.TraceError, match=r"traced int64\[\].*cannot be used as an index or a size"):
        jit(lambda x: make(x[0].astype(int)), platform="interpreter")(np.array([2.0]))


def test_numpy_is_not_patched_outside_of_traces():
    before = np.zeros, np.asarray, np.array, zeros
    jit(lambda x: np.zeros(3) + x, platform="interpreter")(1.0)
    assert (np.zeros, np.asarray, np.array, zeros) == before

    def broken(x):
        raise KeyError("mine")

    with pytest.raises(KeyError):
        jit(broken, platform="interpreter")(1.0)
    assert (np.zeros, np.asarray, np.array, zeros) == before


def test_other_threads_see_original_numpy_while_tracing():
    seen = []

    def other():
        seen.extend([type(np.zeros(2)), type(np.array([1, 2])), type(np.asarray([1.0]))])

    def function(x):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x + np.zeros(2)

    jit(function, platform="interpreter")(1.0)
    assert seen == [np.ndarray] * 3


def test_traces_in_many_threads():
    def work(k):
        def function(x):
            out = np.zeros(5)
            out[k] = x
            return out

        np.testing.assert_array_equal(jit(function, platform="interpreter")(2.0), 2 * np.eye(5)[k])

    failures = []

    def guarded(k):
        try:
            work(k)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(k % 5,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert type(np.zeros(3)) is np.ndarray


def test_known_arrays_convert_to_ndarrays():
    def function(x):
        weights = np.array([1.0, 2.0])
        classes.append(type(np.asarray(weights).sum()))
        return x * sum(memoryview(weights.__array__()).tolist())

    classes = []
    assert jit(function, platform="interpreter", fallback="numpy")(2.0) == 6
    assert classes[0] is np.float64


def test_loops_and_branches_do_not_write_to_arrays_of_the_function():
    def function(x):
        out = np.zeros(3)

        def body(k, s):
            out[0] = 1
            return s

        return cyxla.fori_loop(0, 3, body, x) + out

    with pytest.raises(cyxla.errors.TraceError, match="loop or branch"):
        jit(function, platform="interpreter")(1.0)


@pytest.mark.parametrize("seed", [(), (None,)])
def test_generators_without_a_seed_raise(seed):
    with pytest.raises(cyxla.errors.UnimplementedError, match=r"numpy\.random\.default_rng"):
        jit(lambda x: x + np.random.default_rng(*seed).normal(), platform="interpreter")(np.ones(3))


def test_ndenumerate():
    def function(x):
        total = 0.0
        for (i, j), value in np.ndenumerate(x):
            total += value * (i - 2 * j)
        return total, next(iter(np.ndenumerate([5])))[1]

    x = np.arange(6.0).reshape(2, 3)
    for got, want in zip(jit(function, platform="interpreter")(x), function(x), strict=True):
        np.testing.assert_array_equal(got, want)
    assert isinstance(np.ndenumerate, type)


def test_nditer_raises():
    with pytest.raises(cyxla.errors.UnimplementedError, match=r"numpy.nditer cannot be traced(.|\n)*np.ndenumerate"):
        jit(lambda x: list(np.nditer(x)), platform="interpreter")(np.ones(3))
    assert jit(lambda x: x + sum(int(v) for v in np.nditer(np.arange(3))), platform="interpreter")(1.0) == 4


def test_compiled_modules_can_be_loaded_by_a_traced_function():
    """Compiled modules check NumPy's types and their sizes when they are loaded."""

    names = ("broadcast", "dtype", "flatiter", "ndarray", "ufunc", "generic")
    kept = []

    def program(x):
        kept.extend(getattr(np, name) for name in names)
        return x

    jit(program, platform="interpreter", fallback="numpy")(np.ones(2))
    assert all(isinstance(cls, type) for cls in kept)


@pytest.mark.parametrize("function", [
    lambda x, y: np.nancumsum([x, y]), lambda x, y: np.vander([x[0], y[0]]), lambda x, y: np.roots([x[0], y[0], 2.0]),
    lambda x, y: np.meshgrid([x[0], y[0]], [y[1], x[1]])[0], lambda x, y: np.select([x > 2, y > 2], [x, y]),
    lambda x, y: np.choose([0, 1, 0], [x, y]), lambda x, y: np.histogramdd([x, y], 2, [(0, 6), (0, 6)])[0],
])  # fmt: skip
def test_lists_of_traced_arrays_are_arrays_to_functions(function):
    x, y = np.array([3.0, 1.0, 2.0]), np.array([1.0, 5.0, 4.0])
    result, wanted = jit(function, platform="interpreter")(x, y), function(x, y)
    np.testing.assert_allclose(result, wanted, rtol=1e-12)


MASK = np.array([True, False, True])


@pytest.mark.filterwarnings("ignore:'where' used without 'out'")
@pytest.mark.parametrize("function, want", [
    (lambda: np.empty(3), [0, 0, 0]),
    (lambda: np.empty((3,), np.float32, order="F"), [0, 0, 0]),
    (lambda: np.empty(3, bool), [0, 0, 0]),
    (lambda: np.empty_like(OUTSIDE), [0, 0, 0]),
    (lambda: np.empty_like(np.ones((3, 2)).T[0]), [0, 0, 0]),
    (lambda: np.ndarray((3,)), [0, 0, 0]),
    (lambda: np.pad(np.ones(1), 1, mode="empty"), [0, 1, 0]),
    (lambda: np.pad(OUTSIDE[1:2], 1, "empty"), [0, 1, 0]),
    (lambda: np.add(OUTSIDE, 2, where=MASK), [2, 0, 4]),
    (lambda: np.add(np.ones(3), 2, where=MASK), [3, 0, 3]),
    (lambda: np.add(np.ones(3), 2, where=[True, False, True]), [3, 0, 3]),
    (lambda: np.add(np.float64(3), OUTSIDE[1], where=False), 0),
    (lambda: np.divmod(np.full(3, 5.0), 2, where=MASK), ([2, 0, 2], [1, 0, 1])),
    (lambda: np.divmod(np.full(3, 5.0), 2, np.full(3, 8.0), None, where=MASK), ([2, 8, 2], [1, 0, 1])),
    (lambda: np.add(np.ones(3), 2, out=np.full(3, 8.0), where=MASK), [3, 8, 3]),
    (lambda: np.add.outer(OUTSIDE, OUTSIDE, where=MASK)[1], [1, 0, 3]),
    (lambda: np.add.reduce(np.ones((2, 3)), where=MASK), [2, 0, 2]),
    (lambda: np.clip(OUTSIDE, 5, 7, where=MASK), [5, 0, 5]),
    (lambda: np.ones(3).clip(5, 7, where=MASK), [5, 0, 5]),
])  # fmt: skip
def test_elements_that_numpy_leaves_uninitialised_are_zeros(function, want):
    def traced(x):
        results = function()
        return [
            np.asarray(r) + 0 * x[0].astype(np.float32) for r in (results if isinstance(results, tuple) else (results,))
        ]

    stale = [np.full(n, 9.0) for n in (1, 2, 3, 9) for _ in range(20)]
    del stale  # NumPy takes the memory of new small arrays from what it keeps of these
    for got, expected in zip(
        jit(traced, platform="interpreter")(np.ones(3)), want if isinstance(want, tuple) else (want,), strict=True
    ):
        np.testing.assert_array_equal(got, expected)


def test_a_border_without_values_takes_none():
    with pytest.raises(ValueError, match="constant_values"):
        jit(lambda x: x + np.pad(OUTSIDE, 1, mode="empty", constant_values=3)[:1])(np.ones(1))


def test_arrays_of_objects_hold_none_where_they_are_new():
    assert jit(lambda x: (x, np.empty(2, object)[0] is None))(np.ones(1))[1]
