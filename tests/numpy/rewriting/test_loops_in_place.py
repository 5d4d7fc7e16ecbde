"""Loops that write arrays element by element, row by row or as a whole, and agree with NumPy."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cyxla
from cyxla import cond, fori_loop, while_loop

N = 7
A = np.arange(N * N, dtype=np.float64).reshape(N, N) / 3 + 1
V = np.arange(N, dtype=np.float64) - 2.5


def _element(i, j, v):
    def write(a):
        a[i, j] = v(a)
        return a

    return write


def _prefix_sums(v):
    def step(i, v):
        v[i] += v[i - 1]
        return v

    return fori_loop(1, v.shape[0], step, v)


def _backwards(v):
    def step(t, v):
        i = v.shape[0] - 2 - t
        v[i] = v[i] - 2 * v[i + 1]
        return v

    return fori_loop(0, v.shape[0] - 1, step, v)


def _old_value_after_write(v):
    def step(i, v):
        old = v[i]
        v[i] = v[i - 1] * 2
        v[i - 1] = old
        return v

    return fori_loop(1, v.shape[0], step, v)


def _whole_old_array(v):
    def step(i, v):
        before = v.copy()
        v[i] = 100
        v[0] += before[i] + before.sum()
        return v

    return fori_loop(1, v.shape[0], step, v)


def _swap(a, b):
    return fori_loop(0, 3, lambda i, s: (s[1], s[0]), (a, b))


def _swap_with_writes(a, b):
    def step(i, s):
        x, y = s
        x[i] = y[i + 1] + 1
        return y, x

    return fori_loop(0, 5, step, (a, b))


def _rotate(a, b, c):
    def step(i, s):
        x, y, z = s
        x[i] += 1
        return z, x, y

    return fori_loop(0, 4, step, (a, b, c))


def _same_array_twice(v):
    def step(i, s):
        x, y = s
        x[i] = y[i] + 1
        y[i + 1] = x[i] * 2
        return x, y

    return fori_loop(0, 5, step, (v, v))


def _nested(a):
    def outer(i, a):
        def inner(j, a):
            a[i, j] = a[i - 1, j] + a[i, j - 1]
            return a

        return fori_loop(1, a.shape[1], inner, a)

    return fori_loop(1, a.shape[0], outer, a)


def _triangle(a):
    def outer(i, a):
        def inner(j, a):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
            return a

        return fori_loop(0, i, inner, a)

    return fori_loop(0, a.shape[0], outer, a)


def _upper_part(a):
    def step(i, a):
        a[i, i:] = a[i, i:] * 2 + i
        return a

    return fori_loop(0, a.shape[0], step, a)


def _columns(a):
    def step(j, a):
        a[:, j] = a[:, j - 1] * 0.5 + a[:, j]
        return a

    return fori_loop(1, a.shape[1], step, a)


def _reversed_prefix(v):
    def step(k, v):
        v[:k] += 0.5 * np.flip(v[:k])
        v[k] = v[:k].sum()
        return v

    return fori_loop(1, v.shape[0], step, v)


def _shifted_rows(a):
    def step(t, a):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        return a

    return fori_loop(0, 3, step, a)


def _two_grids(a, b):
    def step(t, s):
        a, b = s
        b[1:-1] = 0.3 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.3 * (b[:-2] + b[1:-1] + b[2:])
        return a, b

    return fori_loop(0, 4, step, (a, b))


def _borders(a):
    def step(t, a):
        a[1:-1, 1:-1] += 1
        a[:, -1] = a[:, -2]
        a[0, :] = a[1, :]
        a[-1, :] = 0
        return a

    return fori_loop(0, 3, step, a)


def _ahead(v):
    def step(t, v):
        v[:-1] = v[1:] + 1
        return v

    return fori_loop(0, 3, step, v)


def _behind(v):
    def step(t, v):
        v[1:] = v[:-1] + 1
        return v

    return fori_loop(0, 3, step, v)


def _one_branch_writes(a):
    def step(i, a):
        return cond(i % 2 == 0, _element(i, 0, lambda a: a[i, 1] + 1), lambda a: a, a)

    return fori_loop(0, a.shape[0], step, a)


def _both_branches_write(a):
    def step(i, a):
        first = _element(i, 0, lambda a: a[i, 1] + 1)
        return cond(a[i, 0] > 5, first, _element(0, i, lambda a: a[i, 0] - 1), a)

    return fori_loop(0, a.shape[0], step, a)


def _branch_returns_another(a, b):
    def step(i, s):
        a, b = s
        c = cond(i % 3 == 0, lambda a, b: a, lambda a, b: b + 1, a, b)
        a[i, i] = c[i, 0]
        return a, c

    return fori_loop(0, 5, step, (a, b))


def _branch_swaps(a, b):
    def step(i, s):
        a, b = s
        a[i, 0] += 1
        return cond(i % 2 == 0, lambda a, b: (b, a), lambda a, b: (a, b), a, b)

    return fori_loop(0, 5, step, (a, b))


def _branch_reads_what_it_writes(a):
    def step(i, a):
        before = a[i, 0]
        a = cond(a[i, i] > 3, _element(i, 0, lambda a: a[i, 0] * 2), _element(i, 0, lambda a: -a[i, 0]), a)
        a[0, i] = before + a[i, 0]
        return a

    return fori_loop(0, a.shape[0], step, a)


def _while_with_array(v):
    def body(s):
        i, v = s
        v[i] = v[i] * 2 + v[i - 1]
        return i + 1, v

    return while_loop(lambda s: (s[0] < s[1].shape[0]) & (s[1][s[0] - 1] < 3), body, (1, v))


def _no_iterations(a, n):
    def step(i, a):
        a[i, 0] = 5
        return a

    return fori_loop(0, n, step, a)


def _runtime_bounds(a, low, high):
    def step(i, a):
        a[i, :] = a[i, :] + i
        return a

    return fori_loop(low, high, step, a)


def _row_maxima(a):
    def step(i, out):
        out[i] = a[i, : i + 1].max() - a[:, i].min()
        return out

    return fori_loop(0, a.shape[0], step, np.zeros(a.shape[0]))


def _argmax_rows(a):
    def step(i, out):
        out[i] = np.argmax(a[i] * (i - 3))
        return out

    return fori_loop(0, a.shape[0], step, np.zeros(a.shape[0], np.int64))


def _small_products(a, b):
    def step(i, b):
        b[:3, :3] += a[:3, :3] @ b[2:5, 1:4]
        return b

    return fori_loop(0, 3, step, b)


def _matrix_vector(a, v):
    def step(i, v):
        v[:] = a @ v * 0.01
        return v

    return fori_loop(0, 3, step, v)


def _bits(v):
    def step(i, v):
        v[i] = (v[i - 1] << 1) ^ (v[i] >> 1) & 0x5A
        return v

    return fori_loop(1, v.shape[0], step, v)


def _gather(v, k):
    def step(i, v):
        v[k[i]] += v[k[i] - 1]
        return v

    return fori_loop(0, k.shape[0], step, v)


def _minimum_plus(a):
    def step(k, a):
        a[:] = np.minimum(a[:], np.add.outer(a[:, k], a[k, :]))
        return a

    return fori_loop(0, a.shape[0], step, a)


def _beside_empty(v, e):
    def step(i, s):
        v, e = s
        v[i] += v[i - 1]
        return v, e * 2

    return fori_loop(1, v.shape[0], step, (v, e))


EXACT = {
    "prefix sums": (_prefix_sums, V),
    "backwards": (_backwards, V),
    "old value after a write": (_old_value_after_write, V),
    "whole old array after a write": (_whole_old_array, np.arange(9.0)),
    "swap": (_swap, V, -V),
    "swap with writes": (_swap_with_writes, V, -V),
    "rotate": (_rotate, V, -V, V * 2),
    "same array twice": (_same_array_twice, V),
    "nested": (_nested, A),
    "upper part": (_upper_part, A),
    "columns": (_columns, A),
    "shifted rows": (_shifted_rows, A),
    "shifted rows, many": (_shifted_rows, np.arange(70.0 * 90).reshape(70, 90)),
    "two grids": (_two_grids, V, -V),
    "borders": (_borders, A),
    "elements ahead": (_ahead, V),
    "elements behind": (_behind, V),
    "one branch writes": (_one_branch_writes, A),
    "both branches write": (_both_branches_write, A),
    "a branch returns another array": (_branch_returns_another, A, -A),
    "a branch swaps": (_branch_swaps, A, -A),
    "a branch reads what it writes": (_branch_reads_what_it_writes, A),
    "while with an array": (_while_with_array, V),
    "no iterations": (_no_iterations, A, np.int64(0)),
    "fewer than no iterations": (_no_iterations, A, np.int64(-3)),
    "bounds at run time": (_runtime_bounds, A, np.int64(2), np.int64(5)),
    "maxima of rows": (_row_maxima, A),
    "argmax of rows": (_argmax_rows, A),
    "bits": (_bits, np.arange(40, dtype=np.int32)),
    "bytes": (_bits, np.arange(40, dtype=np.uint8)),
    "gather": (_gather, V, np.array([1, 3, 3, 6, 1])),
    "minimum plus": (_minimum_plus, A),
    "f32": (_nested, A.astype(np.float32)),
    "complex": (_nested, (A + 1j * A.T).astype(np.complex128)),
    "integers": (_nested, A.astype(np.int64)),
    "f32 columns": (_columns, A.astype(np.float32)),
    "one element": (_prefix_sums, np.array([3.0])),
    "an empty array beside": (_beside_empty, V, np.zeros((0, 4))),
    "not contiguous": (_nested, np.asfortranarray(A)[::-1]),
    "nan and inf": (_columns, np.where(A > 12, np.nan, np.where(A > 8, np.inf, A))),
}
CLOSE = {
    "triangle": (_triangle, A + 9 * np.eye(N)),
    "reversed prefix": (_reversed_prefix, V),
    "reversed prefix, long": (_reversed_prefix, np.linspace(-1, 1, 60) / 60),
    "small products": (_small_products, A / 40, A / 50),
    "matrix times vector": (_matrix_vector, A, V),
    "f16": (_prefix_sums, V.astype(np.float16)),
}


def run(function, arguments):
    """Return the results of the compiled function and of NumPy, each as a list of arrays."""
    compiled = cyxla.jit(function)
    copies = [np.array(x, order="K") for x in arguments]
    compiled(*copies)
    compiled.wait()
    found, expected = compiled(*copies), function(*[np.array(x) for x in arguments])
    for copy, x in zip(copies, arguments, strict=True):
        np.testing.assert_array_equal(copy, x)
    return [list(r) if isinstance(r, tuple) else [r] for r in (found, expected)]


@pytest.mark.parametrize("case", EXACT.values(), ids=EXACT)
def test_loops_write_what_numpy_writes(case):
    for found, expected in zip(*run(case[0], case[1:]), strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("case", CLOSE.values(), ids=CLOSE)
def test_sums_in_loops_are_close_to_numpy(case):
    for found, expected in zip(*run(case[0], case[1:]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-3 if found.dtype == np.float16 else 1e-12)


def test_an_index_out_of_bounds_is_reported_by_the_first_iteration_that_has_it():
    compiled = cyxla.jit(lambda v, n: fori_loop(0, n, lambda i, v: _set(v, i + 3), v))
    np.testing.assert_array_equal(compiled(V, 4), _set_many(V.copy(), 4))
    with pytest.raises(IndexError, match="7"):
        compiled(V, 6)


def _set(v, i):
    v[i] = 1
    return v


def _set_many(v, n):
    v[3 : 3 + n] = 1
    return v


def _inner(s, i, j):
    s[i][1:-1] = s[j][1:-1] * 0.5 + 1


def _all(s, i, j):
    s[i][:] = s[j]


def _constant(s, i, j):
    s[i][:] = j


def _add(s, i, j):
    s[i][:] += s[j][::-1] * 0.5


def _mask(s, i, j):
    s[i][:] = np.where(s[j] > 0.5, s[j], -s[i])


_STATEMENTS = st.tuples(
    st.sampled_from([_inner, _all, _constant, _add, _mask]), st.integers(0, 2), st.integers(0, 2)
)  # fmt: skip


@settings(max_examples=12, deadline=None)
@given(st.lists(_STATEMENTS, min_size=2, max_size=5))
@example([(_inner, 1, 0), (_all, 0, 1), (_constant, 1, 0)])  # the old place of an update is filled
def test_arrays_of_a_loop_take_the_places_of_others(statements):
    def function(a, b, c):
        s = (a, b, c)
        for _ in range(20):
            for statement, i, j in statements:
                statement(s, i, j)

    want = [np.linspace(0, k + 1, 3000) for k in range(3)]
    got = [x.copy() for x in want]
    function(*want)
    cyxla.jit(function)(*got)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def _rebound_in_no_iteration(a, k):
    for _ in range(20, k, -1):
        if k > 100:
            a = a * 2.0
    a[1] = 5.0


def _rebound_under_a_constant(a, k):
    while k < 40:
        if False:
            a = np.zeros(4)
        k += a.size
    a[1] = 5.0


def _rebound_before_a_break(a, k):
    for _ in range(20, k, -1):
        if k > 100:
            if a[0] == 3.0:
                break
            a = a * 2.0
    a[1] += 5.0


@pytest.mark.parametrize("function", [_rebound_in_no_iteration, _rebound_under_a_constant, _rebound_before_a_break])
def test_writes_after_a_loop_that_never_rebinds_the_array(function, backend):
    compiled = cyxla.jit(function, platform=backend, fallback="error")
    for k in (2, 2, 19):
        got, want = np.ones(4), np.ones(4)
        compiled(got, k)
        function(want, k)
        np.testing.assert_array_equal(got, want)
        assert want[1] > 1


@pytest.mark.parametrize("count", [18, 19, 20, 21])
def test_arrays_that_are_exchanged_beside_a_number_that_becomes_an_array(count, backend):
    def function(x, y, total, t):
        for _ in range(count):
            total += 0.25 * np.sort(total)
            x, y = y, x
            t = np.sin(t)
        x[0] = t

    compiled = cyxla.jit(function, platform=backend, fallback="error")
    for _ in range(2):
        got, want = ((np.ones(3), np.zeros(3), np.arange(1.0, 4.0), 1.0) for _ in range(2))
        compiled(*got)
        function(*want)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-12)
