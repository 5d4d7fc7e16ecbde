"""Variables that may name one array, by a branch or a loop, one of which is written: as in NumPy, or refused."""

import copy

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError

CASES = []


def case(reason=""):
    """Add a function; `reason` is a part of the message if it is refused."""

    def add(function):
        CASES.append(pytest.param(function, reason, id=function.__name__))
        return function

    return add


@case()
def new_on_one_side(v, x):
    g = x * 2
    if g.sum() > 1:
        g = g / g.sum()
    g *= 3
    return g


@case("g is another array")
def new_on_one_side_beside_its_old_name(v, x):
    g = x * 2
    h = g
    if g.sum() > 1:
        g = g / g.sum()
    g[0] = 3
    return g, h


@case("x is another array")
def new_in_place_of_an_argument(v, x):
    if v[0] < 0:
        x = x * 2
    x += 1
    return x


@case()
def view_of_a_written_array_on_both_sides(v, x):
    part = v[1:]
    v[...] = 5
    if x.sum() > 1:
        y = v * 2
    else:
        y = np.append(part, 3.0)
        part = y[1:]
    return y, part


@case("is another array")
def one_new_array_under_two_names(v, x):
    a, b = x + 1, x + 2
    if v[0] < 0:
        a = b = a + b
    a += 1
    return b


@case()
def one_new_array_under_two_names_on_both_sides(v, x):
    if v[0] < 0:
        a = b = x * 2
    else:
        a = b = x * 3
    a += 1
    return b


@case("is another array")
def views_of_new_arrays(v, x):
    if v[0] < 0:
        a = x + 1
        b = a[1:]
    else:
        a = x - 1
        b = a[1:]
    a += 1
    return b


@case("is another array")
def items_of_a_list(v, x):
    c = [x + 0, x + 1]
    if v[0] < 0:
        c[0] = c[1] = x * 2
    c[0] += 1
    return c[1]


@case("is another array")
def nested_branches(v, x):
    a, b = x * 2, x + 1
    if v[0] < 2:
        if v[0] < 0:
            a = b = x * 3
        else:
            a = x + 5
    b[0] = 9
    return a, b


@case("is another array")
def results_of_a_function(v, x):
    def pair(z):
        if z < 0:
            return a, a
        return a, b

    a, b = x + 1, x + 2
    c, d = pair(v[0])
    c += 1
    return d


@case("is another array")
def one_new_array_in_each_iteration(v, x):
    a, b = x, x + 1
    for k in range(30):
        a = b = a * 0.5 + v[k % 3]
    a += 1
    return b


@case()
def written_at_the_begin_of_iterations(v, x):
    a, b, t = x * 2, x * 3, 0.0
    for k in range(30):
        b[0] += v[k % 3]
        t += a[0]
        a = a + 1
        b = a
    return a, b, t


@case("a loop on a traced condition cannot be compiled")
def one_new_array_while_a_condition_holds(v, x):
    a, k = x * 2, 0
    while k < 3 and v[k] < 0.75:
        k += 1
        np.add(a, a, out=a)
        x = a = x + 1.0
    return a, x


@case()
def views_in_iterations(v, x):
    a, b, t = x * 2, x * 3, 0.0
    for k in range(30):
        b[0] += v[k % 3]
        t += a[0]
        a = a + 1
        b = a[::-1]
    return a, b, t


@case("a loop on a traced condition cannot be compiled")
def written_and_replaced_while_a_condition_holds(v, x):
    k = 0
    while k < 3 and v[k] < 0:
        x[0] += 1
        x = x * 0.5
        k += 1
    return x


@case("is another array")
def loop_without_iterations(v, x):
    k = 0
    a = b = x + 1
    while k < 3 and v[k] < 0:
        a = b + 1
        k += 1
    a += 1
    return b


@case("is another array")
def old_name_written_after_a_loop(v, x):
    a = x * 2
    b, k = a, 0
    while k < 3 and v[k] < 0:
        a = a * 0.5
        k += 1
    b[0] += 5
    return a, b


@case("is another array")
def best_so_far(v, x):
    current = x.copy()
    best = current
    for k in range(30):
        current[k % 3] += v[k % 3]
        if current.sum() < best.sum():
            best = current.copy()
    return best


@case()
def best_of_new_arrays(v, x):
    best = x.copy()
    for k in range(30):
        candidate = best + v[k % 3]
        if candidate.sum() < best.sum():
            best = candidate
    best[0] += 0.5
    return best


@case("best is another array")
def best_of_new_arrays_and_an_argument(v, x):
    best = x
    for k in range(30):
        candidate = best + v[k % 3]
        if candidate.sum() < best.sum():
            best = candidate
    best[0] += 0.5
    return best


@case("is another array")
def argument_taken_later(v, x):
    a = np.zeros(3)
    for k in range(3):
        a += 1
        if v[k] < 0:
            a = x
    return a


@case()
def arrays_exchanged_in_each_iteration(v, x):
    a = x * 2
    b = a * 2
    for k in range(30):
        a[k % 3] += 1
        a, b = b, a
    return a, b


@case("is another array")
def arrays_exchanged_in_some_iterations(v, x):
    a = x * 2
    b = a * 2
    for k in range(30):
        a[k % 3] += 1
        if v[k % 3] < 0:
            a, b = b, a
    return a - b


@case("is another array")
def old_name_in_a_list(v, x):
    a, t = x * 2, 0.0
    c = [a]
    for k in range(30):
        t += a[1]
        c[0][1] += 1
        if v[k % 3] < 0:
            a = a * 0.5
    return a, c[0], t


@case("a is written and replaced, and has another name")
def zeros_under_two_names(v, x):
    a = np.zeros(3)
    b, t, k = a, 0.0, 0
    while k < 3 and v[k] < 0.75:
        a[0] += 1.0
        t += b[0]
        a = a * 0.5 + v
        k += 1
    return a, t


@case()
def zeros_written_and_replaced(v, x):
    a, k = np.zeros(3), 0
    while k < 3 and v[k] < 0.75:
        a[0] += v[0]
        a = a * 0.5 + v
        k += 1
    return a


@case()
def points_that_stay(v, x):
    z, steps, found = x * 1.0, x * 0.5, np.zeros(3)
    for _ in range(8):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, steps, z)
        gone = np.abs(z) > 4
        found[: len(z)] += gone
        z, steps = z[~gone], steps[~gone]
    return found


@case("is another array")
def many_arrays(v, x):
    a, b = x + 1, x + 2
    for k in range(70):
        a, b = (a + 1, a) if v[k % 3] < 0 else (b, b + 1)
        b[0] = a[1]
    return a, b


ARGUMENTS = [(-1, -1, 2), (1, 1, 1), (-1, -1, -1), (0.5, -0.25, -1)]


def called(function, v):
    x = np.arange(3.0)
    result = function(np.array(v, float), x)
    return [*(result if isinstance(result, tuple) else [result]), x]


@pytest.mark.filterwarnings("ignore::cyxla.errors.LongTraceWarning", "ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("function, reason", CASES)
def test_results(function, reason, backend):
    jitted = cyxla.jit(function, platform=backend, fallback="numpy")
    for v in ARGUMENTS[:3] if reason else ARGUMENTS:
        np.testing.assert_allclose(
            np.concatenate([np.ravel(r) for r in called(jitted, v)]),
            np.concatenate([np.ravel(r) for r in called(function, v)]),
            rtol=1e-9,
        )


@pytest.mark.filterwarnings("ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("function, reason", CASES)
def test_refusals(function, reason):
    jitted = cyxla.jit(function, platform="interpreter", fallback="error")
    if not reason:
        called(jitted, ARGUMENTS[0])
        return
    with pytest.raises(TraceError, match=reason):
        called(jitted, ARGUMENTS[0])


def by_copy(x):
    y = x + 1
    z = copy.copy(y)
    z[0] = 50
    return y, z


def by_deepcopy(x):
    y = [x + 1]
    z = copy.deepcopy(y)
    z[0][0] = 50
    return y, z


@pytest.mark.parametrize("function", [by_copy, by_deepcopy])
def test_copies_share_no_memory(function):
    found = cyxla.jit(function)(np.ones(3))
    for a, b in zip(found, function(np.ones(3)), strict=True):
        np.testing.assert_array_equal(a, b)
