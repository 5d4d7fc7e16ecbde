"""Arrays whose values are known while tracing, written through rows of loops and by functions of C in branches."""

import numpy as np
import pytest

import cyxla

X = np.arange(9.0)


def rows(y, k):
    b = np.ones((9, 2))
    for e in b:
        k += 1
        e[0] = y.max()
    return b, k


def rows_added_to(y, k):
    b = np.ones((9, 1))
    for e in b:
        for _ in range(1, 9):
            k += 1
        e += y.max()
    return b, k


def rows_of_two(y, k):
    b, c = np.ones((9, 2)), np.zeros((9, 3))
    for e, f in zip(b, c, strict=True):
        k += 1
        e[0] = y.max()
        f += e[0]
    return b, c, k


def numbered_rows(y, k):
    b = np.ones((9, 2))
    for i, e in enumerate(b):
        k += 1
        e[0] = y[i]
    return b, k


def rows_backwards(y, k):
    b = np.ones((9, 2))
    for e in reversed(b):
        k += 1
        e[0] = y[k % 9]
    return b, k


def rows_of_a_view(y, k):
    b = np.ones((9, 2))
    for e in b[::2].T:
        k += 1
        e[0] = y[k % 9]
    return b, k


def matrices(y, k):
    b = np.ones((9, 2, 2))
    for e in b:
        for f in e:
            k += 1
            f[0] = y[k % 9]
    return b, k


def rows_read_by_another_name(y, k):
    b = np.ones((9, 2))
    c = b
    for e in b:
        k += 1
        e[0] = c.sum() + y[0]
    return b, k, c is b


def rows_under_a_condition(y, k):
    b = np.ones((9, 2))
    for e in b:
        k += 1
        if y[k % 9] > 4:
            e += 3
    return b, k


def elements(y, k):
    b = np.arange(9.0)
    for e in b:
        e += y[0]
        k += e
    return b, k


def exchanged_views(y, k):
    b = np.arange(9.0)[:]
    for _ in range(5):
        b[0] += 0.125
        y, b = b, y
    return y, b


def exchanged_views_in_nested_loops(y, k):
    b = np.arange(9.0).reshape((9,))
    v = y[::-1]
    for i in range(2):
        for _ in range(k, 20):
            for _ in range(3):
                b[i] += 0.125
                y, b = b, y
            np.copyto(v, np.where(y > 2.0, y, 0.0))
    return y, b, v


def exchanged_tables(y, k):
    b, c = np.zeros(9).reshape(3, 3), np.ones(9).reshape(3, 3)
    for _ in range(5):
        b[1:] = 0.5 * c[:-1] + y[:3]
        b, c = c, b
    return b, c


@pytest.mark.filterwarnings("ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("function", [
    exchanged_views, exchanged_views_in_nested_loops, exchanged_tables,
    rows, rows_added_to, rows_of_two, numbered_rows, rows_backwards, rows_of_a_view, matrices,
    rows_read_by_another_name, rows_under_a_condition, elements,
])  # fmt: skip
def test_rows_and_views_of_known_arrays(function, backend):
    want, got = function(X.copy(), 1), cyxla.jit(function, platform=backend)(X.copy(), 1)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


def at(v):
    np.add.at(v, [0, 0, 1], 2.0)


def at_of_a_view(v):
    np.multiply.at(v[1:], [0], 5.0)


def iterator(v):
    for e in np.nditer(v, op_flags=["readwrite"]):
        e[...] = 2 * e


def data(v):
    v.data[0] = 3.0


def masked(v):
    m = np.ma.masked_array(v, [False, True], copy=False)
    m += 1


@pytest.mark.parametrize("write", [at, at_of_a_view, iterator, data, masked])
@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
def test_functions_of_c_write_where_the_branch_is_taken(write):
    def in_branch(c):
        v = np.array([4.0, 7.0])
        if c.sum() > 0:
            write(v)
        return v

    jitted = cyxla.jit(in_branch, fallback="numpy")
    for c in (np.ones(2), -np.ones(2), np.ones(2)):
        np.testing.assert_array_equal(jitted(c), in_branch(c))


def size_and_at(x):
    n = int(x.sum())
    np.add.at(x, [0], 1)
    return np.zeros(n)


def size_and_iterator(x):
    n = int(x.sum())
    iterator(x)
    return np.zeros(n)


def size_and_branch(x):
    n = int(x.sum())
    if x[0] > 0:
        x[:1] //= 2
    return np.zeros(n)


OUTER = np.array([1, 2])


def size_of_an_outer_array(x):
    n = int(OUTER.sum())
    np.add.at(OUTER, [0], 1)
    return np.zeros(n) + x[0]


@pytest.mark.parametrize("function", [size_and_at, size_and_iterator, size_and_branch, size_of_an_outer_array])
@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
def test_arrays_whose_values_are_needed_are_written(function, monkeypatch):
    jitted = cyxla.jit(function, fallback="numpy")
    ours, theirs = np.array([1, 2]), np.array([1, 2])
    for _ in range(2):
        before = OUTER.copy()
        want, outer = function(theirs), OUTER.copy()
        OUTER[:] = before
        np.testing.assert_array_equal(jitted(ours), want)
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(OUTER, outer)


def needs_and_writes(x, c):
    n = int(x.sum())
    if c.sum() > 0:
        x[:1] //= 2
    return np.zeros(n)


def needs_and_writes_under_a_known_condition(x, k):
    n = int(x.sum())
    if k > 2:
        x[0] = k
    return np.zeros((n, k))


def test_write_of_an_array_needed_by_an_earlier_call_is_refused_without_a_fallback():
    run = cyxla.jit(needs_and_writes_under_a_known_condition, fallback="error")
    assert run(np.array([1, 2]), 1).shape == (3, 1)
    with pytest.raises(cyxla.errors.TraceError, match="may not be written"):
        run(np.array([1, 2]), 5)


def test_write_of_a_needed_array_is_refused_without_a_fallback():
    with pytest.raises(cyxla.errors.TraceError, match="may not be written"):
        cyxla.jit(needs_and_writes, fallback="error")(np.array([1, 2]), np.ones(2))
