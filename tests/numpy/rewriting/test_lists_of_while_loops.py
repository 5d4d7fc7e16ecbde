"""Lists that a loop grows until a condition on values holds: their lengths are known at run time only."""
# ruff: noqa: B007, N803, N806 - programs as users write them

import re
import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning, TraceError, UnimplementedError
from cyxla.numpy.rewriting.loops import growing


def collatz(N):
    n = N[0] + 1
    path = [n]
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        path.append(n)
    return path, len(path), max(path)


def fibonacci(N):
    found = []
    a, b = 0, 1
    while a <= N[0]:
        found.append(a)
        a, b = b, a + b
    return found


def newton(N):
    x, history = N[0] + 1.0, []
    while abs(x * x - 2) > 1e-9:
        history.append(x)
        x -= (x * x - 2) / (2 * x)
    return x, np.array(history), len(history)


def power_method(N):
    A = np.eye(4) * 0.5 + 0.1
    x, errors, e = np.arange(4.0) + N[0], [], 1.0
    while e > 1e-6:
        y = A @ x
        y /= np.linalg.norm(y)
        e = np.abs(y - x).max()
        errors.append(e)
        x = y
    return x, errors


def ends_by_break(N):
    found, k = [], 1
    while True:
        found.append(k)
        k *= 3
        if k > N[0]:
            break
    return found


def of_some_iterations(N):
    found, i = [0.5], 0
    while i < N[0]:
        if i % 3 == 0:
            found.append(i * i * 0.5)
        i += 1
    return found, sum(found), found[-1]


def several_lists(N):
    a, b, i = [], [], 0
    while i * i <= N[0]:
        a.append(i)
        b.append(i * 0.5)
        b.append(-0.5)
        i += 1
    return np.array(a), np.array(b)


def of_vectors(N):
    found, v, i = [], np.zeros(3), 0
    while v.sum() <= N[0]:
        v = v + np.array([1.0, i, 2.0])
        found.append(v)
        i += 1
    return np.array(found)


def of_pairs(N):
    path, x, y = [(0, 0)], 0, 0
    while x + y < N[0]:
        x += 1
        y += x % 2
        path.append((x, y))
    return np.array(path)


def inside_of_a_for(N):
    found = [-1]
    for k in range(3):
        i = k
        while i < N[0]:
            found.append(i)
            i = i * 2 + 1
    return np.array(found)


def around_a_for(N):
    found, i = [], 0
    while i <= N[0]:
        for k in range(i % 3 + 1):
            found.append(i * 10 + k)
        i += 1
    return np.array(found)


def last_element(N):
    found = [1]
    while found[-1] < N[0]:
        found.append(found[-1] * 2)
    return np.array(found)


def two_last_elements(N):
    a = [0.0, 1.0]
    while a[-1] < N[0]:
        a.append(a[-1] + a[-2])
    a.append(a[0] - 1)
    return a, a[2:], a[::2], len(a)


def length(N):
    found, k = [], 2
    while len(found) < N[0] % 7 + 1:
        if k % 2 or k == 2:
            found.append(k)
        k += 1
    return found


def primes(N):
    found, k = [2], 3
    while len(found) < N[0] % 9 + 2:
        is_prime, j = True, 0
        while j < len(found) and found[j] * found[j] <= k:
            if k % found[j] == 0:
                is_prime = False
                break
            j += 1
        if is_prime:
            found.append(k)
        k += 2
    return found


def walk(N):
    places = [np.zeros(2)]
    while np.abs(places[-1]).sum() < N[0]:
        places.append(places[-1] + np.array([1.0, len(places) * 0.5]))
    return np.array(places)


def written_element(N):
    found, i = [np.zeros(2)], 0
    while i < N[0]:
        i += 1
        v = found[-1]
        v[0] += 1
        found.append(v + i)
    return np.array(found)


def two_names(N):
    found = [0.0]
    same = found
    while found[-1] < N[0]:
        found.append(found[-1] + 1)
    return len(same), same[-1]


def again_in_each_iteration(N):
    total = 0
    for r in range(4):
        a = [r]
        while a[-1] < N[0]:
            a.append(a[-1] * 2 + 1)
        total += len(a) + a[-1]
    return total


def differences_in_turn(N):
    n, found = N[0], []
    while n > 0 and (not found or found[-1] >= 0):
        v = n // 2
        if not found or found[-1] != v:
            found.append(v)
        found.append(found[-1] * 2 if found else n)
        n -= 1
    return found, sorted(found), sorted(found, reverse=True)


FUNCTIONS = [
    collatz, fibonacci, newton, power_method, ends_by_break, of_some_iterations, several_lists, of_vectors, of_pairs,
    inside_of_a_for, around_a_for, last_element, two_last_elements, length, primes, walk, written_element, two_names,
    again_in_each_iteration, differences_in_turn,
]  # fmt: skip


def leaves(value):
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_lists_that_grow_until_a_condition_holds(function):
    compiled = cyxla.jit(function, fallback="error")
    for n in (12, 15, 0, 27, 9, 97, 40, 3):
        got, wanted = leaves(compiled(np.array([n]))), leaves(function(np.array([n])))
        assert list(map(type, got)) == list(map(type, wanted))
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
            assert np.asarray(one).dtype == np.asarray(other).dtype
    assert compiled.cache_info().misses == 1


def test_many_arrays_before_the_loop():
    def f(N, x):
        found = []
        for k in range(15):
            found.append(x * k)
        for k in range(15):
            found.append(x + k)
        for k in range(15):
            found.append(x - k)
        for k in range(15):
            found.append(x * -k)
        while found[-1][0] < N[0]:
            found.append(found[-1] + 100)
        return np.array(found)

    compiled = cyxla.jit(f, fallback="error")
    for n in (500, 0, 50):
        np.testing.assert_array_equal(compiled(np.array([n]), np.ones(2)), f(np.array([n]), np.ones(2)))


def test_an_empty_list_has_no_dtype():
    """NumPy runs, whose result is an empty array of float64."""

    def f(N):
        found, i = [], 3
        while i < N[0]:
            found.append(i)
            i += 1
        return np.array(found)

    compiled = cyxla.jit(f, fallback="numpy")
    for n in (7, 2, 5):
        got = compiled(np.array([n]))
        np.testing.assert_array_equal(got, f(np.array([n])))
        assert got.dtype == f(np.array([n])).dtype


def many(N):
    found, i = [], 0
    while i < N[0]:
        i += 1
        found.append(i * 0.5)
    return len(found), found[-1], sum(found)


def test_lists_with_more_elements_than_there_is_room_for():
    most = growing.LIMITED_BYTES // 8
    compiled = cyxla.jit(many, fallback="error")
    assert compiled(np.array([most])) == many(np.array([most]))
    with pytest.raises(
        UnimplementedError, match=f"a list that a loop appends to has more than {most} elements\n  at: "
    ):
        compiled(np.array([most + 1]))
    with pytest.warns(FallbackWarning, match="has more than"):
        assert cyxla.jit(many, fallback="numpy")(np.array([most + 5])) == many(np.array([most + 5]))


def long_rows(N):
    rows, x = [], np.ones(1000)
    while len(rows) < N[0]:
        x = x * 1.0005
        rows.append(x)
    return np.array(rows)


def long_recurrence(N):
    a = [0.0, 1.0]
    while a[-1] < N[0]:
        a.append(a[-1] + (1 if a[-2] >= 0 else 0))
    return len(a)


def long_in_loops(N):
    found = []
    for r in range(3):
        while len(found) < N[0] * (r + 1):
            found.append(r)
    return len(found), found[-1]


@pytest.mark.parametrize("function, most", [(long_rows, 150), (long_recurrence, 150_000), (long_in_loops, 140_000)])
def test_loops_end_where_there_is_no_more_room(function, most):
    """Their conditions read the lists, which would never be long enough."""
    compiled = cyxla.jit(function, fallback="numpy")
    for n in (3, 100):
        np.testing.assert_array_equal(compiled(np.array([n])), function(np.array([n])))
    with pytest.warns(FallbackWarning, match="has more than"):
        got = compiled(np.array([most]))
    np.testing.assert_array_equal(got, function(np.array([most])))


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u2", "f4", "f8"])
def test_sums_of_scalars_have_their_class(dtype):
    def f(N):
        n, found = N[0], []
        while n > 0:
            found.append(n)
            n = n - N.dtype.type(1)
        return sum(found)

    compiled = cyxla.jit(f, fallback="error")
    for n in (3, 100, 20):
        with np.errstate(over="ignore"):
            got, wanted = compiled(np.array([n], dtype)), f(np.array([n], dtype))
        assert (got, type(got)) == (wanted, type(wanted))


def test_sums_of_integers_of_more_than_64_bits():
    def f(N):
        n, found = N[0], []
        while n > 0:
            found.append(2**62)
            n -= 1
        return sum(found)

    compiled = cyxla.jit(f, fallback="numpy")
    for n in (1, 2, 5):
        assert compiled(np.array([n])) == f(np.array([n]))


def test_lists_beside_arrays_on_their_left():
    def f(N):
        n, found = N[0], []
        while n > 0:
            found.append(n * 0.5)
            n -= 1
        return N * found, np.array([[2.0], [3]]) + found, 3 - np.array(found)

    compiled = cyxla.jit(f, fallback="error")
    for n in (3, 1, 7):
        for got, wanted in zip(compiled(np.array([n])), f(np.array([n])), strict=True):
            np.testing.assert_array_equal(got, wanted)


#: Functions that join the vectors of a list.
JOINS = {
    "stack": lambda a: np.stack(a), "stack, second axis": lambda a: np.stack(a, 1),
    "stack, last axis": lambda a: np.stack(a, axis=-1), "concatenate": lambda a: np.concatenate(a),
    "concatenate, flat": lambda a: np.concatenate(a, axis=None), "vstack": lambda a: np.vstack(a),
    "concatenate, last axis": lambda a: np.concatenate(a, -1), "hstack": lambda a: np.hstack(a),
    "column_stack": lambda a: np.column_stack(a), "dstack": lambda a: np.dstack(a),
}  # fmt: skip


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
@pytest.mark.parametrize("name", JOINS)
def test_joins_of_elements(name, shape):
    def f(N, x):
        n, found = N[0], []
        while n > 0:
            found.append(x * n)
            n -= 1
        return JOINS[name](found)

    compiled, x = cyxla.jit(f, fallback="error"), np.arange(6.0)[-np.prod(shape) :].reshape(shape)
    for n in (3, 5, 1, 8):
        np.testing.assert_array_equal(compiled(np.array([n]), x), f(np.array([n]), x))
    assert compiled.cache_info().misses == 1
    with pytest.raises(ValueError, match="need at least one array to"):
        compiled(np.array([0]), x)


def test_joins_of_numbers():
    def f(N):
        n, found = N[0], []
        while n > 0:
            found.append(n * 2.5)
            n -= 1
        return np.stack(found), np.hstack(found), np.vstack(found), np.column_stack(found), np.dstack(found)

    compiled = cyxla.jit(f, fallback="error")
    for n in (3, 5, 1):
        for got, wanted in zip(compiled(np.array([n])), f(np.array([n])), strict=True):
            np.testing.assert_array_equal(got, wanted)


def variable_is_written(N, X):
    n = N[0]
    x = np.zeros(2)
    out = []
    while n > 0:
        x = x + n
        out.append(x)
        n -= 1
    x += 100
    return out


def element_is_written(N, X):
    n = N[0]
    x = np.zeros(2)
    out = []
    while n > 0:
        x = x + n
        out.append(x)
        n -= 1
    out[-1][0] = 9
    return x


def written_after_a_for(N, X):
    n = N[0]
    x = np.zeros(2)
    out = []
    for i in range(5):
        x = x + n
        out.append(x)
    x[0] = 9
    return np.array(out), x


def argument_in_the_list(N, X):
    n = N[0]
    out = [X]
    while n > 0:
        out.append(out[-1] + 1)
        n -= 1
    out[0][0] = 44
    return len(out)


def argument_is_written(N, X):
    n = N[0]
    out = [X]
    while n > 0:
        out.append(out[-1] + 1)
        n -= 1
    X[0] = 44
    return out


def best_of_them(N, X):
    n = N[0]
    out = []
    best = X * 0
    v = X
    while n > 0:
        v = v * 1.5
        out.append(v)
        if v.sum() > 3:
            best = v
        n -= 1
    best /= 2
    return out


def one_before_the_last(N, X):
    n = N[0]
    out = []
    prev, cur = X * 1, X * 2
    while n > 0:
        prev, cur = cur, prev + cur
        out.append(cur)
        n -= 1
    prev[0] = 77
    return np.array(out)


def in_tuples(N, X):
    n = N[0]
    out = []
    x = X * 1
    while n > 0:
        x = x + n
        out.append((n, x))
        n -= 1
    x *= 2
    return [o[1] for o in out]


def element_before_the_loop(N, X):
    n = N[0]
    out = [np.zeros(2)]
    z = out[0]
    while n > 0:
        out.append(out[-1] + n)
        n -= 1
    out[0][0] = 5
    return z


def loop_inside(N, X):
    x = X * 1
    out = []
    for e in range(3):
        for i in range(20):
            x = x * 0.5 + N[0]
            out.append(x)
        x[0] = e
    return np.array(out), x


def first_one_has_two_names(N, X):
    v = w = np.zeros(2)
    out = []
    n = N[0]
    while n > 0:
        out.append(v)
        v = v + 1
        n -= 1
    w[:] = 7
    return out


def views(N, X):
    n = N[0]
    x = X * 1
    out = []
    while n > 0:
        x = x + n
        out.append(x[0:1])
        n -= 1
    x[0] = 9
    return out


NAMED = [
    variable_is_written, element_is_written, written_after_a_for, argument_in_the_list, argument_is_written,
    best_of_them, one_before_the_last, in_tuples, element_before_the_loop, loop_inside, first_one_has_two_names, views,
]  # fmt: skip


@pytest.mark.parametrize("function", NAMED)
def test_arrays_in_lists_with_other_names(function):
    """A write is seen under all names: if need be, NumPy runs."""
    compiled = cyxla.jit(function, fallback="numpy")
    for n in (3, 4, 2):
        x, y = np.array([[1.0, 2], [1, 2]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            got, wanted = leaves(compiled(np.array([n]), x)), leaves(function(np.array([n]), y))
        for one, other in zip([*got, x], [*wanted, y], strict=True):
            np.testing.assert_array_equal(one, other)


def one_array(N):
    z, found, i = np.zeros(2), [], 0
    while i <= N[0]:
        found.append(z)
        i += 1
    z[0] = 5
    return found


def array_that_changes(N):
    z, found, i = np.zeros(2), [], 0
    while i <= N[0]:
        z += 1
        found.append(z)
        i += 1
    return found


def written_later(N):
    z, found, i = np.zeros(2), [], 0
    while i <= N[0]:
        z = z + 1
        found.append(z)
        z[0] = 7
        i += 1
    return found


def other_classes(N):
    found, i = [3, 1], 0
    while i <= N[0]:
        i += 1
        found.append(i / 2)
    return found


def used_otherwise(N):
    found, i = [1], 0
    while i <= N[0]:
        i += 1
        if i not in found:
            found.append(i * 2)
    return found


#: Functions that are not compiled, the reasons, and how to mend them.
REFUSED = {
    one_array: ("not all traced", "append new arrays and numbers"),
    array_that_changes: ("an element of the list shares memory with an array from outside", "give each variable"),
    written_later: ("writes to an array that it appends", "append a copy"),
    other_classes: ("elements differ from the appended ones", "give all elements one class, shape and dtype"),
    used_otherwise: ("adds items to a list", "add as many on both sides"),
}


@pytest.mark.parametrize("function", REFUSED)
def test_lists_that_are_refused(function):
    reason, mend = map(re.escape, REFUSED[function])
    with pytest.raises(TraceError, match=rf"{reason}.*\n  at: .*test_lists_of_while_loops.*\n  mend: {mend}"):
        cyxla.jit(function, fallback="error")(np.array([4]))
    compiled = cyxla.jit(function, fallback="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for n in (4, 0, 6):
            np.testing.assert_array_equal(compiled(np.array([n])), function(np.array([n])))
