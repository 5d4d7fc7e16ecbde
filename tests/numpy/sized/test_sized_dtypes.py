"""Element types, layouts, errors and executables of arrays of run-time size."""

import ml_dtypes
import numpy as np
import pytest

import cyxla

DTYPES = [*"?bBhHiIlLefdFD", ml_dtypes.bfloat16]
FUNCTIONS = {
    "select": lambda x, m: x[m], "sort": lambda x, m: np.sort(x[m]), "unique": lambda x, m: np.unique(x[m]),
    "maximum": lambda x, m: np.append(x[m], x[:1]).max(), "sum": lambda x, m: x[m].sum(),
    "mean": lambda x, m: x[m].mean(),
    "equal": lambda x, m: x[m] == x[m][::-1], "joined": lambda x, m: np.concatenate([x[m], x[~m]]),
    "counts": lambda x, m: np.unique(x, return_counts=True), "argmin": lambda x, m: np.append(x[m], x[:1]).argmin(),
    "nonzero": lambda x, m: np.nonzero(x), "cumsum": lambda x, m: np.cumsum(x[m]),
}  # fmt: skip


@pytest.mark.slow_but_every(10)
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes(name, dtype, backend):
    x = np.array([3, 0, 1, 3, 2, 0, 5]).astype(dtype)
    function = FUNCTIONS[name]
    if np.dtype(dtype).kind == "V" and name in ("unique", "counts", "cumsum", "joined"):
        pytest.skip("NumPy has no such function of bfloat16")
    compiled = cyxla.jit(function, platform=backend)
    for m in (np.zeros(7, bool), np.array([1, 0, 1, 1, 0, 1, 0], bool), np.ones(7, bool)):
        with np.errstate(all="ignore"):
            want = function(x, m)
        got = compiled(x, m)
        for g, w in zip(*([v] if not isinstance(v, tuple) else v for v in (got, want)), strict=True):
            assert (g.dtype, g.shape) == (w.dtype, w.shape)
            np.testing.assert_allclose(g.astype(complex), w.astype(complex), rtol=1e-2)


def test_arguments_that_are_not_contiguous(backend):
    wide = np.arange(48.0).reshape(8, 6)
    for a in (wide.T, wide[::2, ::-1], np.asfortranarray(wide), wide[:, :0], np.float64(3).reshape(1, 1)):
        for function in (lambda a: a[a > 9], lambda a: a[a[:, :1].sum(axis=1) > 9], lambda a: np.nonzero(a)[0]):
            want, got = function(a), cyxla.jit(function, platform=backend)(a)
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype
            assert got.flags.writeable


ERRORS = {
    "index": (lambda x: x[x > 0][5], IndexError, "index 5 is out of bounds for axis 0 with size 2"),
    "index array": (
        lambda x: x[x > 0][np.array([0, -3])],
        IndexError,
        "index -3 is out of bounds for axis 0 with size 2",
    ),
    "sizes": (lambda x: x[x > 0] + x[x < 2], ValueError, r"could not be broadcast together with shapes \(2,\) \(3,\)"),
    "known size": (lambda x: x[x > 0] + x, ValueError, r"could not be broadcast together with shapes \(2,\) \(4,\)"),
    "in place": (lambda x: np.add(x[:1], x[x > 0], out=x[x > 1]), ValueError, "output operand"),
    "no maximum": (lambda x: x[x > 9].max(), ValueError, "zero-size array to reduction operation maximum"),
    "no argmax": (lambda x: x[x > 9].argmax(), ValueError, "attempt to get argmax of an empty sequence"),
    "reshape": (lambda x: x[x > 0].reshape(3), ValueError, "cannot reshape array of size 2 into shape"),
    "assigned": (lambda x: x.__setitem__(x > 0, x[x < 2]), ValueError, "cannot assign 3 input values"),
    "dot": (lambda x: x[x > 0] @ x[x < 2], ValueError, "dimension that is shared are 2 and 3"),
    "mask": (lambda x: x[x > 0][x < 2], IndexError, "boolean index did not match"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_runs(name, backend):
    function, kind, message = ERRORS[name]
    x = np.array([1.0, -2, 0, 3])
    with pytest.raises(kind):
        function(x.copy())
    with pytest.raises(kind, match=message) as caught:
        cyxla.jit(function, platform=backend)(x)
    assert "test_sized_dtypes.py" in str(caught.value)


def test_executables():
    x = np.array([1.0, -2, 3])
    executable = cyxla.compile(lambda x: x[x > 0], ((3,), "float64"))
    assert str(executable.outputs) == "f64[<=3]"
    np.testing.assert_array_equal(executable(x), [1, 3])
    several = cyxla.compile(lambda x: (x[x > 0], x.sum(), [x[x > 0][0]]), ((3,), "float64"))
    got = several(x)
    assert [g.shape for g in got] == [(2,), (), ()]
    with pytest.raises(IndexError):
        several(-np.abs(x))
    for call in (lambda: executable(x, out=np.zeros(2)), lambda: cyxla.jit(lambda x: x[x > 0])(x, out=np.zeros(2))):
        with pytest.raises(cyxla.errors.InvalidArgumentError, match="out= cannot be given"):
            call()


def test_indices_are_clamped_to_the_size():
    function = cyxla.jit(lambda x, i: x[x > 0][i], bounds="clamp", platform="interpreter")
    assert function(np.array([1.0, -2, 3]), 7) == 3


@pytest.mark.parametrize("size", [lambda n: np.zeros(n), lambda n: np.arange(n * 0.5), lambda n: np.repeat(n, n)])
def test_sizes_without_a_bound_raise(size):
    with pytest.raises((cyxla.errors.TraceError, cyxla.errors.UnimplementedError), match="mend:"):
        cyxla.jit(lambda x: size(x.sum()), platform="interpreter")(np.arange(300))


RANGES = {
    "length": (lambda k: 2.0 ** np.arange(np.ceil(k)), [(2.5,), (4.5,)]),
    "limits": (lambda a, b: np.arange(a, b, 0.5), [(1.0, 3.0), (0.0, 2.2)]),
    "step": (lambda a, k: np.arange(0, a, k), [(4, 1.5), (4, 0.7)]),
    "of a step": (lambda n: np.arange(0, 1, 1 / n), [(4,), (7,)]),
    "float32": (lambda a: np.arange(0, a, dtype=np.float32), [(np.float32(2.5),), (np.float32(3),)]),
    "downwards": (lambda a: np.arange(a, 0, -0.5), [(1.2,), (-1.0,)]),
}


@pytest.mark.parametrize("function, calls", RANGES.values(), ids=RANGES)
def test_ranges_between_floats_are_compiled_for_each(function, calls):
    jitted = cyxla.jit(function)
    for arguments in calls:
        got, want = jitted(*arguments), function(*arguments)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    assert jitted.cache_info().misses == len(calls)


def extremes(x, n):
    y = x[:n]
    return y.max() + (y * 2).min(), np.argmax(y), np.exp(y - y.max())


def extremes_in_a_try_block(x, n):
    y = x[:n]
    try:
        return y.min() + y.max()
    except ValueError:
        return x[0]


def extremes_in_loops(x, n):
    """Conditions of one size in bodies of their own, and in the function around them."""
    total = 0.0
    for k in range(3):
        y = x[:n] * k
        total += y.max() - y.min()
    return total + x[:n].max() + x[:n].min()


@pytest.mark.parametrize("function", [extremes, extremes_in_a_try_block, extremes_in_loops])
@pytest.mark.parametrize("n", [0, 3, 5])
def test_conditions_of_failure_that_repeat(function, n, backend):
    x, compiled = np.array([1.0, -2, 0, 3, 2]), cyxla.jit(function, platform=backend, fallback="numpy")
    failure = None
    try:
        want = function(x, n)
    except ValueError as error:
        failure = error
    if failure is not None:
        with pytest.raises(ValueError, match=str(failure)) as caught:
            compiled(x, n)
        assert f"test_sized_dtypes.py:{failure.__traceback__.tb_next.tb_lineno}" in str(caught.value)
    else:
        got = compiled(x, n)
        for g, w in zip(*(v if isinstance(v, tuple) else [v] for v in (got, want)), strict=True):
            np.testing.assert_allclose(g, w)


def test_masks_and_conditions_are_made_once():
    entry = cyxla.jit(extremes).trace(np.ones(5), 3).module.entry
    opcodes = [ins.opcode for ins in entry.post_order()]
    assert opcodes.count("iota") == 2  # of the mask, and of the index of the maximum
    selected = [str(ins.shape) for ins in entry.post_order() if ins.opcode == "select"]
    assert selected.count("s64[]") == 2  # the end of the slice, and the code of a failure
