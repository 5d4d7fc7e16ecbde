"""Branches and loops: compiled results equal those of plain Python, and so do gradients."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.numerical import slope

import cyxla
from cyxla.errors import DTypeError, InvalidArgumentError, OpError, ShapeError, TraceError, UnimplementedError
from cyxla.numpy import jit
from cyxla.numpy.control import associative_scan, cond, fori_loop, scan, switch, while_loop
from cyxla.numpy.control.carry import match_dict_order
from cyxla.numpy.gradient import checkpoint, grad
from cyxla.numpy.tracing.containers import flatten

X = np.arange(6.0).reshape(3, 2) / 4
A = np.array([[0.3, -0.2], [0.1, 0.4]])


def running(c, r):
    return c + r, c * 2


# fmt: off
CASES = {
    "cond": (lambda x: cond(np.sum(x) > 3, lambda y: {"a": y * 2, "b": 1}, lambda y: {"b": 2, "a": y - 1}, x), X),
    "cond-number": (lambda n: cond(n, lambda: 1.5, lambda: 2.0), 0),
    "cond-captures": (lambda x: cond(x[0, 0] > 1, lambda: x + 1, lambda: x[::-1] * x), X),
    "switch": (lambda i, x: switch(i, [lambda y: y, lambda y: x - y, lambda y: y * 0], x + 1), 1, X),
    "switch-below": (lambda i, x: switch(i, [lambda y: y, lambda y: -y], x), -3, X),
    "switch-above": (lambda i, x: switch(i, [lambda y: y, lambda y: -y], x), np.uint64(2**63), X),
    "switch-one": (lambda i, x: switch(i, [lambda y: y], x), 4, X),
    "while": (lambda n: while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5), (0, 1.0)), 7),
    "while-array": (lambda x: while_loop(lambda s: np.sum(s) < 1e3, lambda s: s * x + 1, x), X),
    "while-never": (lambda n: while_loop(lambda s: s < n, lambda s: s * 2, 50), 7),
    "fori-traced": (lambda n: fori_loop(0, n, lambda i, s: s + i, 0), 7),
    "fori-traced-both": (lambda m, n: fori_loop(m, n, lambda i, s: s * 2 + i, 0.5), np.int8(2), np.uint8(7)),
    "fori-plain": (lambda x: fori_loop(2, 5, lambda i, s: s * x + i, 0.0), 1.5),
    "fori-backwards": (lambda x: fori_loop(5, 2, lambda i, s: s * x + i, x), 1.5),
    "fori-in-place": (lambda x: fori_loop(0, 3, _double, x), X),
    "fori-number-becomes-float": (lambda x: fori_loop(0, 3, lambda i, s: s + x, 0), np.float32(1.5)),
    "fori-nested": (lambda x: fori_loop(0, 3, lambda i, s: fori_loop(0, i, lambda j, t: t + x[j], s), 0.0), X[:, 0]),
    "scan": (lambda x: scan(running, np.zeros(2), x), X),
    "scan-dict": (lambda x: scan(lambda c, r: ({"n": c["n"] + 1, "s": c["s"] + r.sum()}, {"y": c["s"] * r, "z": 3}),
                                 {"s": 0.0, "n": 0}, x, reverse=True), X),
    "scan-unroll": (lambda x: scan(running, np.zeros(2), x, unroll=2), X),
    "scan-unroll-much": (lambda x: scan(running, np.zeros(2), x, reverse=True, unroll=5), X),
    "scan-length": (lambda n: scan(lambda c, _: (c * n, c), 1, length=4), 3),
    "scan-nothing": (lambda x: scan(running, np.zeros(2), x[:0]), X),
    "scan-several": (lambda x: scan(lambda c, r: (c, r["a"] - r["b"][0]), None, {"a": x, "b": (x[::-1],)}), X),
    "scan-f32": (lambda x: scan(lambda c, r: (c * 0.5, c + r), np.float32(1), x), X[:, 0].astype(np.float32)),
    "map": (lambda x: cyxla.map(lambda r: np.sum(r * r), x), X),
    "map-pair": (lambda x: cyxla.map(lambda r: (r[0], [r[1] + 1]), x), X),
    "associative": (lambda x: associative_scan(np.add, x), X),
    "associative-back": (lambda x: associative_scan(np.matmul, x, reverse=True), np.stack([A, A + 1, A.T])),
    "associative-axis": (lambda x: associative_scan(np.maximum, x, axis=1), -X),
}
# fmt: on


def _double(i, s):
    s[i] = s[i] * 2
    return s


def assert_equal(got, want):
    # the dicts of two branches may differ in order
    got, want = flatten(match_dict_order(got, want)), flatten(want)
    assert got[1] == want[1]
    for g, w in zip(got[0], want[0], strict=True):
        assert (np.asarray(g).dtype, np.shape(g)) == (np.asarray(w).dtype, np.shape(w))
        np.testing.assert_allclose(g, w, rtol=1e-6 if np.asarray(w).dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("name", CASES)
def test_compiled_equals_eager(name):
    function, *args = CASES[name]
    want = function(*args)
    assert_equal(jit(function, platform="interpreter")(*args), want)


@pytest.mark.parametrize("name", ["cond", "switch", "while", "fori-traced", "scan-dict", "scan-unroll", "map"])
def test_compiled_for_the_cpu(name):
    function, *args = CASES[name]
    assert_equal(jit(function)(*args), function(*args))


def test_python_numbers_adopt_the_dtype_of_the_other_branch():
    got = jit(lambda p, x: cond(p, lambda: x, lambda: 2), platform="interpreter")(False, np.float32(3))
    assert (got, got.dtype) == (2, np.float32)
    got = jit(lambda p: cond(p, lambda: 1.5, lambda: 2), platform="interpreter")(False)
    assert (got, type(got)) == (2, float)


# -- failures come out of loops and branches


def pick(x, i):
    return x[i]


FAILING = {
    "cond": lambda x, i: cond(i > 2, lambda: x[i], lambda: x[0]),
    "switch": lambda x, i: switch(i - 3, [lambda: x[0], lambda: x[i] + x[i - 9]]),
    "fori": lambda x, i: fori_loop(0, 3, lambda k, s: s + x[i - k], 0.0),
    "while": lambda x, i: while_loop(lambda s: s < 9, lambda s: s + 1 + x[i + s] * 0, 0.0 * 0),
    "while-condition": lambda x, i: while_loop(lambda s: x[s] < 9, lambda s: s + 1, i),
    "scan": lambda x, i: scan(lambda c, v: (c, x[i] + v), 0, x),
    "map": lambda x, i: cyxla.map(lambda v: fori_loop(0, 2, lambda k, s: s + x[i], v), x),
}


@pytest.mark.parametrize("name", ["cond", "switch", "fori", "while-condition", "scan", "map"])
def test_index_out_of_range_in_a_body_raises(name):
    run = jit(FAILING[name], platform="interpreter")
    x = np.ones(4)
    with pytest.raises(IndexError, match="index"):
        run(x, 4)
    if name != "while-condition":
        run(x, 2)


def test_first_failure_raises():
    run = jit(lambda x, i: fori_loop(0, 5, lambda k, s: s + x[i + k], 0.0), platform="interpreter")
    assert run(np.ones(5), 0) == 5
    with pytest.raises(IndexError, match="index 5 "):
        run(np.ones(5), 3)


# -- refusals

REFUSALS = {
    "trees": (
        lambda x: cond(x[0, 0] > 0, lambda: (x, x), lambda: [x, x]),
        TraceError,
        r"true_fun returns \(\*, \*\), but",
    ),
    "types": (
        lambda x: cond(x[0, 0] > 0, lambda: x, lambda: x.astype(int)),
        TraceError,
        "float64.3,2. in true_fun but int64",
    ),
    "shapes": (lambda x: cond(x[0, 0] > 0, lambda: x, lambda: x[0]), TraceError, r"float64\[2\] in false_fun"),
    "predicate": (lambda x: cond(x > 0, lambda: x, lambda: x), TraceError, "pred must be a scalar"),
    "index": (lambda x: switch(x[0, 0], [lambda: x, lambda: x]), TraceError, "must be a scalar integer"),
    "carry": (
        lambda x: scan(lambda c, r: ({"a": c["a"].astype(int)}, r), {"a": x[0]}, x),
        TraceError,
        r"init\['a'\] is float64\[2\], but f returns int64",
    ),
    "grows": (
        lambda x: fori_loop(0, 2, lambda i, s: s + x, 0.0),
        TraceError,
        r"init is float\[\], but body_fun returns float64\[3,2\]",
    ),
    "no-pair": (lambda x: scan(lambda c, r: c, x[0], x), TraceError, "pair"),
    "length": (lambda x: scan(lambda c, r: (c, c), 0, length=-2), ShapeError, "but is -2"),
    "lengths": (lambda x: scan(lambda c, r: (c, c), 0, (x, x[0])), ShapeError, "number of iterations"),
    "no-length": (lambda x: scan(lambda c, r: (c, c), 0), ShapeError, "give xs or length="),
    "rank": (lambda x: scan(lambda c, r: (c, c), 0, x[0, 0]), ShapeError, "rank 0"),
    "bounds": (lambda x: fori_loop(0, x[0, 0], lambda i, s: s, 0), DTypeError, "must be scalar integers"),
    "condition": (lambda x: while_loop(lambda s: s > 0, lambda s: s, x), TraceError, "not one bool"),
    "writes": (
        lambda x: fori_loop(0, 2, lambda i, s: _double(0, x)[0, 0] + s, 0.0),
        TraceError,
        "loop or branch writes",
    ),
    "no-branch": (lambda x: switch(0, []), InvalidArgumentError, "must not be empty"),
    "slope-while": (
        grad(lambda x: while_loop(lambda s: np.sum(s) < 1, lambda s: s * 2, x)[0, 0]),
        UnimplementedError,
        "cyxla.scan, or cyxla.fori_loop",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_errors(name):
    function, error, words = REFUSALS[name]
    with pytest.raises(error, match=words) as caught:
        jit(function, platform="interpreter")(X)
    assert isinstance(caught.value, OpError)
    assert __file__ in str(caught.value)


# -- gradients

SMOOTH = {
    "cond": lambda x: np.sum(cond(x[0, 0] < 1, lambda y: np.sin(y) * x, lambda y: y, x)),
    "cond-one-side": lambda x: (
        np.sum(cond(x[0, 0] > 1, lambda y: np.sin(y) * x, lambda y: np.ones((3, 2)), x)) + x[0, 1]
    ),
    "switch": lambda x: np.sum(switch(np.sum(x > 1), [lambda: x, lambda: x * x, lambda: np.exp(x)])),
    "fori": lambda x: np.sum(fori_loop(0, 4, lambda i, s: np.sin(s) * x + i, x)),
    "fori-weak": lambda x: fori_loop(1, 4, lambda i, s: s * i + np.sum(x * s), 1.0),
    "scan": lambda x: _total(scan(lambda h, r: (np.tanh(A @ h + r), h * r), np.zeros(2), x)),
    "scan-back": lambda x: _total(scan(lambda h, r: (np.tanh(x @ (h * r))[:2], h), np.ones(2), x, reverse=True)),
    "scan-unroll": lambda x: _total(scan(lambda h, r: (h * r + 1, np.exp(h)), np.ones(2), x, unroll=2)),
    "scan-swap": lambda x: _total(scan(lambda c, r: ((c[1], c[0] * r), 0.0), (x[0], x[1]), x)),
    "scan-integers": lambda x: _total(scan(lambda c, r: ((c[0] + 1, c[1] * x[c[0]]), r), (0, x[0]), x)),
    "scan-of-ys-only": lambda x: np.sum(scan(lambda c, r: (c + r, c * r), np.zeros(2), x)[1] ** 2),
    "scan-of-carry-only": lambda x: np.sum(scan(lambda c, r: (c * r + r, c), np.ones(2), x)[0] ** 2),
    "scan-of-dots": lambda x: _total(scan(lambda c, r: (np.cos(c @ A) @ A.T, c @ A), x, np.zeros(3))),
    "nested": lambda x: np.sum(cyxla.map(lambda r: fori_loop(0, 3, lambda i, s: np.sin(s) * r[0] + r[1], 1.0), x)),
    "cond-in-scan": lambda x: _total(
        scan(lambda c, r: (cond(r[0] > 0.6, lambda: c * r, lambda: c + np.sin(r)), c), x[0], x)
    ),
    "scan-in-cond": lambda x: cond(
        x[0, 0] < 1, lambda: _total(scan(lambda c, r: (c * r + 1, c), x[0], x)), lambda: 0.0
    ),
    "checkpoint-in-scan": lambda x: _total(scan(checkpoint(lambda c, r: (np.sin(c) * r, np.cos(c))), x[0], x)),
    "map": lambda x: np.sum(cyxla.map(lambda r: np.exp(r[0]) * x, x)),
    "associative": lambda x: np.sum(associative_scan(np.multiply, x) ** 2),
    "empty": lambda x: _total(scan(lambda c, r: (c * r, c), x[0], x[:0])),
}


def _total(parts):
    return sum(np.sum(np.sin(p)) for p in flatten(parts)[0])


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name):
    f = SMOOTH[name]
    got = jit(grad(f), platform="interpreter")(X + 0.2)
    np.testing.assert_allclose(got, slope(f, X + 0.2), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", ["cond", "fori", "scan", "scan-swap", "nested", "cond-in-scan", "scan-in-cond", "map"])
def test_second_derivatives(name):
    first = jit(grad(SMOOTH[name]), platform="interpreter")
    second = jit(grad(lambda x: np.sum(np.sin(first(x)))), platform="interpreter")(X + 0.2)
    np.testing.assert_allclose(second, slope(lambda x: np.sum(np.sin(first(x))), X + 0.2), rtol=1e-6, atol=1e-7)


# -- random programs: a state of an array and a counter, changed by branches and loops in each other

LEAVES = {
    "sine": lambda s: {"x": np.sin(s["x"]) + s["n"], "n": s["n"]},
    "product": lambda s: {"x": s["x"] * s["x"][::-1] * 0.5, "n": s["n"] + 1},
    "outside": lambda s: {"n": s["n"] * 2 % 7, "x": s["x"] + A[0, 0]},
    "write": lambda s: _write(dict(s)),
}


def _write(s):
    s["x"][s["n"] % 3] = s["x"][0] * 0.5
    return s


def _chain(first, second):
    return lambda s: second(first(s))


def _branch(first, second):
    return lambda s: cond(s["n"] % 2 == 0, first, second, s)


def _switch(first, second):
    return lambda s: switch(s["n"] % 3, [first, second, lambda t: second(first(t))], s)


def _loop(body):
    return lambda s: fori_loop(1, 3, lambda i, t: {**body(t), "n": body(t)["n"] + i}, s)


def _scan(body):
    def run(s):
        def step(t, v):
            t = body({"x": t["x"] + v, "n": t["n"]})
            return t, (t["x"] * v, t["n"])

        last, (ys, ns) = scan(step, s, np.array([0.5, -0.25]), reverse=True)
        return {"x": last["x"] + ys[0], "n": last["n"] + ns[1] % 5}

    return run


def _while(body):
    def run(s):
        result = while_loop(
            lambda t: t["k"] < 2, lambda t: {"s": body(t["s"]), "k": t["k"] + 1}, {"s": s, "k": s["n"] % 2}
        )
        return result["s"]

    return run


def _map(body):
    return lambda s: {"x": cyxla.map(lambda v: body({"x": s["x"] * v, "n": s["n"]})["x"][1], s["x"]), "n": s["n"]}


def programs(loops):
    one = [_loop, _scan, _map, *loops]
    return st.recursive(
        st.sampled_from(list(LEAVES.values())),
        lambda inner: st.one_of(
            st.builds(lambda make, body: make(body), st.sampled_from(one), inner),
            st.builds(lambda make, f, g: make(f, g), st.sampled_from([_branch, _switch, _chain]), inner, inner),
        ),
        max_leaves=4,
    )


def started(x, n):
    return {"x": x * 1.0, "n": n}


@settings(max_examples=25, deadline=None)
@given(program=programs([_while]), n=st.integers(0, 5))
def test_random_programs(program, n):
    x = np.array([0.3, -0.7, 0.9])
    assert_equal(jit(lambda x, n: program(started(x, n)), platform="interpreter")(x, n), program(started(x, n)))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(program=programs([]), n=st.integers(0, 5))
def test_gradients_of_random_programs(program, n):
    x = np.array([0.3, -0.7, 0.9])

    def total(x):
        return np.sum(np.sin(program(started(x, n))["x"]))

    got = jit(grad(total), platform="interpreter")(x)
    scale = max(1.0, np.abs(got).max())
    wanted = slope(total, x, 1e-6 / np.sqrt(scale))  # a shorter step for steeper functions
    np.testing.assert_allclose(got / scale, wanted / scale, atol=1e-6)
