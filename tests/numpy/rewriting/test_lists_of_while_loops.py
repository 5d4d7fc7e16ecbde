"""Lists that a loop grows until a condition on values holds: their lengths are known at run time only."""
# ruff: noqa: N803, N806 - programs as users write them

import re
import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning, TraceError, UnimplementedError
from cyxla.numpy.rewriting.loops import stacks


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


FUNCTIONS = [
    collatz, fibonacci, newton, power_method, ends_by_break, of_some_iterations, several_lists, of_vectors, of_pairs,
    inside_of_a_for, around_a_for, last_element, two_last_elements, length, primes, walk, written_element, two_names,
    again_in_each_iteration,
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
    most = stacks.LIMITED_BYTES // 8
    compiled = cyxla.jit(many, fallback="error")
    assert compiled(np.array([most])) == many(np.array([most]))
    with pytest.raises(
        UnimplementedError, match=f"a list that a loop appends to has more than {most} elements\n  at: "
    ):
        compiled(np.array([most + 1]))
    with pytest.warns(FallbackWarning, match="has more than"):
        assert cyxla.jit(many, fallback="numpy")(np.array([most + 5])) == many(np.array([most + 5]))


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
