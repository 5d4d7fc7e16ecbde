"""`x.tolist()` of arrays of any length: an array stands for the numbers of a long list."""

import numpy as np
import pytest

import cyxla

RNG = np.random.default_rng(0)
X, MATRIX = RNG.standard_normal(200), RNG.standard_normal((40, 30))
INTEGERS = RNG.integers(-9, 9, 300)


def later_writes_to_the_array(x):
    values = x.tolist()
    x[0] = 99
    return values[0], values, x


def later_writes_to_the_list(x):
    values = x.tolist()
    other = values
    for i in range(1, len(values)):
        values[i] = values[i - 1] * 0.5 + values[i]
    return other, other is values, x


def later_writes_to_a_table(m):
    rows = m.tolist()
    rows[1][2] = 5.0
    m[0] = 7
    return rows, rows[0][0]


def a_loop(x):
    total = 0.0
    for v in x.tolist():
        if v > 0.5:
            total += v
    return total


def nested_loops(m):
    total = 0.0
    for row in m.tolist():
        for v in row:
            total += v if v > 0.2 else 1.0
    return total


def selected(x):
    values = x[x > 0].tolist()
    total = 0.0
    for v in values:
        if v > 0.7:
            total += v
    return values, total, len(values), sum(values), [v * 2 for v in values], np.array(values)


#: Functions and their arguments.
CASES = {
    "result": (lambda x: x.tolist(), X),
    "result of rank 2": (lambda m: m.tolist(), MATRIX),
    "result of rank 3": (lambda m: m.reshape(3, -1, 4).tolist(), MATRIX),
    "strides": (lambda m: (m.T.tolist(), m[::-2].tolist(), m[:, 1].tolist()), MATRIX),
    "dtypes": (lambda x: [x.astype(t).tolist() for t in ("f2", "f4", "i1", "u4", "c8", "?")], INTEGERS),
    "functions": (lambda x: (sum(x.tolist()), len(x.tolist()), max(x.tolist()), sorted(x.tolist())[:3]), X),
    "comprehensions": (lambda x: ([v * 2 for v in x.tolist()], [v for v in x.tolist() if v > 3]), INTEGERS),
    "rows": (lambda m: [sum(row) for row in m.tolist()], MATRIX),
    "pairs": (lambda x: [a * b for a, b in zip(x.tolist(), x[::-1].tolist(), strict=True)], X),
    "array": (lambda x: np.array(x.tolist()), X.astype(np.float32)),
    "selected": (selected, X),
    "none selected": (lambda x: (x[x > 99].tolist(), len(x[x > 99].tolist())), X),
    "unique": (lambda x: (np.unique(x).tolist(), np.unique(x).tolist()[-1]), INTEGERS),
    "selected bools": (lambda x: (x[x > 2] > 3).tolist(), INTEGERS),
    **{f.__name__: (f, X) for f in (later_writes_to_the_array, later_writes_to_the_list, a_loop)},
    **{f.__name__: (f, MATRIX) for f in (later_writes_to_a_table, nested_loops)},
}


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
@pytest.mark.parametrize("case", CASES)
def test_lists_of_arrays(case, platform):
    function, x = CASES[case]
    given, expected = x.copy(), x.copy()
    got, want = cyxla.jit(function, platform=platform)(given), function(expected)
    assert_same(got, want)
    np.testing.assert_array_equal(given, expected)


def assert_same(got, want):
    """Compare values and classes, also of what lists hold."""
    assert type(got) is type(want)
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for pair in zip(got, want, strict=True):
            assert_same(*pair)
    elif isinstance(want, np.ndarray):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-12)
    else:
        assert got == pytest.approx(want, rel=1e-12)


def has_loop(compiled):
    """Return whether the first program of a compiled function has a loop."""
    entry = next(iter(compiled.programs.entries.values()))
    return "while" in {i.opcode for c in entry.lowered.module.post_order() for i in c.instructions}


def products(x, y):
    total = 0.0
    for i, (a, b) in enumerate(zip(x, y, strict=True)):
        total += i * a * b
    return total


@pytest.mark.parametrize("function", [a_loop, nested_loops, later_writes_to_the_list], ids=lambda f: f.__name__)
def test_loops_over_lists_of_arrays_are_loops_of_the_program(function):
    compiled = cyxla.jit(function)
    compiled((MATRIX if function is nested_loops else X).copy())
    assert has_loop(compiled)


@pytest.mark.parametrize(
    "function, x",
    [
        (lambda x: x.tolist(), INTEGERS.astype(np.uint64)),
        (lambda x: x[x > 2].tolist(), INTEGERS.astype(np.uint64)),
        (lambda m: m.reshape(-1, 3, 4).tolist(), MATRIX),
        (lambda m: m[m[:, 0] > 0].tolist(), MATRIX),
    ],
    ids=["uint64", "selected uint64", "rank 3", "rows"],
)
def test_lists_that_programs_do_not_have(function, x):
    with pytest.raises(cyxla.errors.TraceError, match="be converted to a list"):
        cyxla.jit(function)(x)


@pytest.mark.parametrize("use", [lambda v: v.append(1.0), lambda v: v.reverse(), lambda v: v.sort()])
def test_other_uses_of_long_lists_run_plainly(use):
    def function(x):
        values = x.tolist()
        use(values)
        return values

    with pytest.warns(cyxla.errors.FallbackWarning):
        assert cyxla.jit(function, fallback="numpy")(X) == function(X)


@pytest.mark.parametrize("y", [X[::-1], range(200)], ids=["array", "range"])
def test_strict_zip_of_equal_lengths_is_a_loop_of_the_program(y):
    compiled = cyxla.jit(products)
    assert compiled(X, y) == pytest.approx(products(X, y), rel=1e-12)
    assert has_loop(compiled)


def test_strict_zip_of_other_lengths_raises_as_python_does():
    for function in (products, cyxla.jit(products)):
        with pytest.raises(ValueError, match=r"zip\(\) argument 2 is shorter"):
            function(X, X[1:])
