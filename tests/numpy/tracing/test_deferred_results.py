"""Results of dtypes without an element type that depend on arguments: NumPy computes them after each run."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import UnimplementedError

X, N = np.array([1.5, 2.25, -3.0, np.nan]), np.array([3, 0, -5, 2**40])
LONG = np.array([1, 2, 3, 4], np.longdouble)
F = np.asfortranarray(np.arange(6.0).reshape(2, 3))

RESULTS = {
    "concatenate to bytes": lambda x, n: np.concatenate((x, x), dtype="S4", casting="unsafe"),
    "concatenate, dtypes of their own": lambda x, n: np.concatenate((x, n, ["x"]), axis=None, dtype="U"),
    "concatenate with text": lambda x, n: np.concatenate((x, np.array(["p", "qr"]))),
    "concatenate to another byte order": lambda x, n: np.concatenate((x, n), dtype=">f8"),
    "concatenate with long doubles": lambda x, n: np.concatenate((n, np.ones(2, np.longdouble) / 3)),
    "append": lambda x, n: (np.append(x, "text"), np.append([["a"]], n)),
    "stack": lambda x, n: np.stack((x, n), 1, dtype=">f4", casting="same_kind"),
    "hstack and vstack": lambda x, n: (np.hstack((x, n), dtype="g"), np.vstack((x, n), dtype="O", casting="unsafe")),
    "ufunc": lambda x, n: np.divide(n, 7, dtype=np.longdouble),
    "ufunc, complex": lambda x, n: np.multiply(n, 2, dtype=np.clongdouble),
    "ufunc, signature": lambda x, n: np.add(n, n, signature=("g", "g", None)),
    "ufunc to objects": lambda x, n: np.multiply(n, n, dtype=object),
    "ufunc to bool": lambda x, n: np.equal(n, [3, 0, 1, 1], dtype=object),
    "reduce and outer": lambda x, n: (np.multiply.reduce(x[:3], dtype="g"), np.add.outer(n, x, dtype="g")),
    "operator": lambda x, n: x + np.longdouble(2) / 3,
    "reflected operator": lambda x, n: np.array([1, 2, 3, 4], np.longdouble) / x,
    "comparison": lambda x, n: x < np.longdouble(2),
    "spans of time": lambda x, n: n * np.timedelta64(3, "s"),
    "sum": lambda x, n: (np.sum(x[:3], dtype=np.longdouble), x[:3].sum(0, "G"), np.sum(n, 0, object)),
    "mean and others": lambda x, n: (np.mean(x[:3], dtype="g"), x[:3].std(dtype="g"), np.cumsum(n, dtype="g")),
    "astype": lambda x, n: (x.astype(str), n.astype("S2"), x.astype(object), n.astype(">i2"), n.astype("m8[s]")),
    "astype of a scalar": lambda x, n: (x[0].astype("g"), np.astype(n, ">f8")),
    "astype, column-major": lambda x, n: np.ones((2, 3), order="F") * x[0],
    "array": lambda x, n: (np.array(x, ">f4"), np.asarray(n, str), np.array([x[0], n[1]], "U9")),
    "full": lambda x, n: (np.full(3, x[0], "S7"), np.full((2, 0), n[0], object)),
    "full_like": lambda x, n: np.full_like(n, x[0], "U8"),
    "histogram": lambda x, n: [np.histogram(x[1:3], rule) for rule in ("auto", "fd", "doane", "scott", "stone")],
    "histogram, of a range": lambda x, n: np.histogram(n, "sqrt", (0, n[0]), density=True),
    "edges": lambda x, n: np.histogram_bin_edges(np.concatenate((x[1:3], n)), bins="rice"),
    "poly": lambda x, n: (np.poly(x[1:3] * 1j), np.poly(np.array([2 + x[1] * 1j, 2 - x[1] * 1j]))),
    "poly of a matrix": lambda x, n: np.poly(n.reshape(2, 2)),
    "returned twice": lambda x, n: [x.astype(str)] * 2,
    "beside others": lambda x, n: {"a": x.astype("S3"), "b": (x + 1, n)},
}


def assert_same(got, wanted):
    if isinstance(wanted, (tuple, list)):
        assert type(got) is type(wanted)
        for part, other in zip(got, wanted, strict=True):
            assert_same(part, other)
    elif isinstance(wanted, dict):
        assert_same(list(got.items()), list(wanted.items()))
    elif not isinstance(wanted, (np.ndarray, np.generic)):
        assert type(got) is type(wanted)
        assert got == wanted
    else:
        assert (type(got), got.dtype) == (type(wanted), wanted.dtype)
        assert (got.shape, got.strides) == (wanted.shape, wanted.strides)
        assert repr(got.tolist()) == repr(wanted.tolist())


@pytest.mark.parametrize("name", RESULTS)
def test_results(name):
    jitted = cyxla.jit(RESULTS[name], fallback="error", platform="interpreter")
    for x, n in ((X, N), (X[::-1], N + 1)):
        assert_same(jitted(x, n), RESULTS[name](x, n))


@pytest.mark.parametrize("values", [3, -2.5, np.float32(0.1), True, np.zeros((0, 2)), F, F[:, ::2]])
@pytest.mark.parametrize("dtype", ["S5", "U", ">f8", "g", "O"])
def test_conversions_of_arguments(values, dtype):
    def convert(x):
        return np.array(x, dtype), np.add(x, x, dtype="g" if dtype != "O" else "O")

    jitted = cyxla.jit(convert, fallback="error", platform="interpreter")
    assert_same(jitted(values), convert(values))


def test_values_are_those_of_the_call():
    def write_after(x):
        text = x.astype(str)
        x[:] = 0
        return text

    x = X.copy()
    assert list(cyxla.jit(write_after, fallback="error", platform="interpreter")(x)) == list(X.astype(str))
    assert not x.any()


def test_shape_and_dtype():
    def describe(x):
        text = np.concatenate((x, x), dtype="S4", casting="unsafe")
        return x.sum() * text.ndim, text.shape, text.dtype, text.size

    wanted = (*describe(X[:2])[1:],)
    assert cyxla.jit(describe, fallback="error", platform="interpreter")(X[:2])[1:] == wanted


USES = {
    "operator": lambda x: x.astype("g") + 1,
    "reflected": lambda x: 1 + x.astype("g"),
    "with a traced array": lambda x: x * x.astype("g"),
    "comparison": lambda x: x.astype(str) == x.astype(str),
    "function": lambda x: np.sin(x.astype("g")),
    "joined": lambda x: np.concatenate([x, x.astype("g")]),
    "method": lambda x: x.astype("g").sum(),
    "index": lambda x: x.astype(str)[0],
    "condition": lambda x: 1 if x.sum().astype("g") else 2,
    "loop": lambda x: list(x.astype(str)),
    "conversion": lambda x: np.asarray(x.astype("g"), float),
    "write": lambda x: x.__setitem__(slice(None), x.astype(object)),
    "branch": lambda x: cyxla.cond(x[0] > 0, lambda: x.astype("g"), lambda: x.astype("g")),
    "size": lambda x: np.histogram(x, "auto")[0].size,
    "shape": lambda x: np.histogram_bin_edges(x, "auto").shape,
    "dtype": lambda x: np.poly(x * 1j).dtype,
    "objects of the call": lambda x: np.array([x[0], []], object),
}


@pytest.mark.parametrize("name", USES)
def test_the_program_cannot_use_them(name):
    with pytest.raises(UnimplementedError, match=r"cannot (use|be traced)"):
        cyxla.jit(USES[name], fallback="error", platform="interpreter")(X)


def test_failures_that_the_function_may_catch():
    def count(x):
        try:
            return np.histogram(x, "auto")[0]
        except ValueError:
            return x

    with pytest.raises(UnimplementedError, match="inside of try"):
        cyxla.jit(count, fallback="error", platform="interpreter")(X)
    with pytest.warns(cyxla.errors.FallbackWarning, match="inside of try"):
        assert cyxla.jit(count, fallback="numpy")(X) is X


def test_fallback():
    with pytest.warns(cyxla.errors.FallbackWarning, match="the program cannot use it"):
        assert_same(cyxla.jit(lambda x: x.astype("g") + 1, fallback="numpy")(X), X.astype("g") + 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.concatenate((x, x), dtype="i4,f4", casting="safe"), lambda x: x.astype("g", casting="no"),
        lambda x: np.add(x, x, dtype="S3"), lambda x: np.concatenate((x, np.ones((2, 2))), dtype="g"),
        lambda x: x + np.datetime64("2020-01-01"), lambda x: x + np.ones(3, np.longdouble),
    ],
)  # fmt: skip
def test_errors(call):
    with pytest.raises((TypeError, ValueError)) as wanted:
        call(X)
    with pytest.raises(wanted.type, match=r"\w") as got:
        cyxla.jit(call, fallback="error", platform="interpreter")(X)
    assert str(got.value).split("\n")[0] == str(wanted.value)


def test_a_known_array_of_another_byte_order_cannot_become_traced():
    def write(x):
        made = np.zeros(3, ">f8")
        made[0] = x
        return made

    with pytest.raises(UnimplementedError, match="byte order"):
        cyxla.jit(write, fallback="error", platform="interpreter")(2.0)
