"""Python's loops and branches on traced values: each function, as it is written, against itself without `cyxla.jit`."""

import math
import traceback

import numpy as np
import pytest
from support.asserting import sum_of_small

import cyxla

X = np.random.default_rng(0).standard_normal(30)
M = np.random.default_rng(1).standard_normal((12, 9))
SPD = M @ M.T + 12 * np.eye(12)
BYTES = np.random.default_rng(2).integers(0, 256, 50, dtype=np.uint8)


def _weighted_sum(x):
    total = 0
    for i in range(x.shape[0]):
        total += x[i] * i
    return total


def _filter(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] + x[i]
    return y


def _return_in_branch(x):
    if x.sum() > 0:
        return x * 2
    return -x


def _sweep(n, x):
    y = x.copy()
    for _ in range(n):
        for i in range(1, y.shape[0] - 1):
            for j in range(1, y.shape[1] - 1):
                y[i, j] = (y[i - 1, j] + y[i, j - 1] + y[i + 1, j] + y[i, j + 1]) / 4
    return y


def _newton(x, tolerance):
    count, error = 0, 1.0
    while error > tolerance:
        x = (x + 2 / x) / 2
        error = np.abs(x * x - 2).max()
        count += 1
        if count > 50:
            break
    return x, count


def _cholesky(a):
    a = a.copy()
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return a


def _crc(data, polynomial=0x8408):
    crc = 0xFFFF
    for b in data:
        byte = 0xFF & b
        for _ in range(8):
            if (crc & 1) ^ (byte & 1):
                crc = (crc >> 1) ^ polynomial
            else:
                crc >>= 1
            byte >>= 1
    return ~crc & 0xFFFF


def _swap(n, a):
    b, a = a.copy(), a.copy()
    for _ in range(n):
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a, b = b, a
    return a, b


def _rotate(n, a):
    b, c, a = a + 1, a + 2, a.copy()
    for k in range(n):
        a[0] = k
        a, b, c = b, c, a
    return a, b, c


def _find(x, value):
    for i in range(len(x)):
        if x[i] == value:
            return i
    return -1


def _for_else(x):
    for v in x:
        if v > 2:
            found = 1.0
            break
    else:
        found = 0.0
    return found


def _insertion_sort(a):
    a = a.copy()
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


def _continue(x):
    total = 0.0
    for v in x:
        if v < 0:
            continue
        total += np.sqrt(v)
    return total


def _helper(x):
    return 1 if x > 0 else -1


def _calls_helper(x):
    total = 0
    for v in x:
        total = total + _helper(v)
    return total


def _conditional_expression(x):
    return x if x.sum() > 0 else -x


def _boolean_operators(x):
    a, b = x[0] > 0 and x[1] > 0, x[0] > 0 or x[1] > 0
    return (1 if a else 0), (1 if b else 0), (1 if not a else 0), (1 if 0 < x[2] < 1 else 0)


def _extrema(x):
    low, high = x[0], x[0]
    for v in x[1:]:
        low, high = min(low, v), max(high, v)
    return low, high


def _last_value(x):
    for i in range(len(x)):
        last = x[i] * i
    return last, i


def _enumerate_and_zip(x, y):
    total = 0.0
    for i, (a, b) in enumerate(zip(x, y, strict=False)):
        total += i * a * b
    return total


def _mathematics(x):
    total = 0.0
    for v in x:
        total += math.sin(v) + math.sqrt(abs(v)) + math.floor(v) + int(v)
    return total


def _list_grows(x):
    made = []
    for i in range(len(x)):
        made.append(x[i] + 1)
    return np.array(made)


def _tuple_state(x):
    state = (0.0, 1.0)
    for v in x:
        state = (state[1], state[0] + v)
    return state


def _views(x):
    x = x.copy()
    part = x[2:20]
    for i in range(len(part)):
        part[i] = part[i] * 2 + x[0]
    return x, part.sum()


def _backwards(x):
    y = x.copy()
    for i in range(len(x) - 2, -1, -1):
        y[i] += y[i + 1]
    for i in range(20, 1, -3):
        y[i] = 0
    return y


def _triangle(a):
    n, total = a.shape[0], 0.0
    for i in range(n):
        for j in range(i, n):
            total += a[i, j]
    return total


def _flags_of_two_loops(a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 1.5:
                return i, j
    return -1, -1


def _no_iterations(n, x):
    total = x.sum()
    for i in range(n):
        total = total + x[i]
    return total


def _collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def _collatz_of_array(x):
    n, steps = x[0], 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def _writes_in_branch(x):
    x = x.copy()
    if x[0] > 0:
        x[1:] += 1
    else:
        x[:] = 0
    return x


def _nested_function(x):
    def step(v, k):
        if v > 0:
            return v / k
        return v

    y = x.copy()
    for i in range(len(x)):
        y[i] = step(x[i], i + 1)
    return y


def _matrix_state(x):
    a = np.eye(3)
    for v in x[:20]:
        a = a @ np.array([[0, 1, 0], [0, 0, 1], [v, 0, 0]]) + 1
    return a


def _relax(p, source, rounds):
    for _ in range(rounds):
        q = p.copy()
        p[1:-1, 1:-1] = (q[:-2, 1:-1] + q[2:, 1:-1] + q[1:-1, :-2] + q[1:-1, 2:]) / 4 - source[1:-1, 1:-1]
        p[0] = p[1]


def _step(u, p, source):
    source[1:-1] = 0.01 * (u[2:] - u[:-2]) + 0.1 * p[1:-1]


def _helpers_write_arrays(u, steps):
    u, p, source = u.copy(), np.zeros_like(u), np.zeros(u.shape)
    for _ in range(steps):
        old = u.copy()
        _step(u, p, source)
        _relax(p, source, 40)
        u[1:] = old[1:] - 0.1 * (p[1:] - p[:-1])
    return u, p, source


def _shapes_of_iterations(k, n, x):
    for i in range(k):
        y = np.reshape(x, (2**i, 2, 2 ** (k - i - 1)))
        x = np.reshape(np.transpose(y, (1, 0, 2)), (n,)) * 2
    return x


def _points_that_stay(c, most):
    z, place, found = np.zeros_like(c), np.arange(len(c)), np.zeros(c.shape, np.int64)
    for i in range(most):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        gone = abs(z) > 2
        found[place[gone]] = i + 1
        np.logical_not(gone, gone)
        z, c, place = z[gone], c[gone], place[gone]
    return found


def _until_still(u):
    u, count = u.copy(), 0
    while True:
        change = 0.0
        for i in range(1, len(u) - 1):
            old = u[i]
            u[i] = (u[i - 1] + u[i + 1]) / 2
            change = max(change, abs(u[i] - old))
        count += 1
        if change < 1e-3 or count >= 500:
            return u, count


PROGRAMS = {
    "sum": (_weighted_sum, X), "empty sum": (_no_iterations, 0, X), "filter": (_filter, X),
    "return": (_return_in_branch, X), "other return": (_return_in_branch, -np.abs(X)), "sweep": (_sweep, 3, M),
    "newton": (_newton, np.abs(X) + 0.1, 1e-9), "cholesky": (_cholesky, SPD), "crc": (_crc, BYTES),
    "swap odd": (_swap, 7, X), "swap even": (_swap, 30, X), "swap rest": (_swap, 31, X), "rotate": (_rotate, 35, X),
    "find": (_find, np.arange(40.0), 17.0), "find nothing": (_find, np.arange(40.0), 77.0),
    "for else": (_for_else, np.arange(40.0)), "else": (_for_else, -np.arange(40.0)), "insertion": (_insertion_sort, X),
    "continue": (_continue, X), "helper": (_calls_helper, X),
    "until still": (_until_still, X), "shapes of iterations": (_shapes_of_iterations, 5, 32, np.arange(32.0)),
    "points that stay": (_points_that_stay, X[:, None].ravel() + 1j * X[::-1], 40),
    "helpers that write": (_helpers_write_arrays, M, 25), "if expression": (_conditional_expression, X),
    "and or not": (_boolean_operators, X), "min max": (_extrema, X), "last": (_last_value, X),
    "enumerate zip": (_enumerate_and_zip, X, X + 1), "math": (_mathematics, X), "list": (_list_grows, X),
    "tuple": (_tuple_state, X), "views": (_views, X), "backwards": (_backwards, X), "triangle": (_triangle, SPD),
    "two loops": (_flags_of_two_loops, M), "no hit": (_flags_of_two_loops, M * 0), "collatz": (_collatz, 27),
    "collatz of array": (_collatz_of_array, np.array([27])), "branch writes": (_writes_in_branch, X),
    "other branch writes": (_writes_in_branch, -X), "nested": (_nested_function, X), "matrix": (_matrix_state, X),
}  # fmt: skip


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, backend):
    function, *arguments = PROGRAMS[name]
    expected = function(*arguments)
    found = cyxla.jit(function, platform=backend)
    for _ in range(2):
        result = found(*arguments)
        parts = zip(result, expected, strict=True) if isinstance(expected, tuple) else [(result, expected)]
        for one, other in parts:
            np.testing.assert_allclose(one, other, rtol=1e-12)
            assert np.asarray(one).dtype == np.asarray(other).dtype


def _while_loops(module):
    return sum(i.opcode == "while" for c in module.post_order() for i in c.instructions)


@pytest.mark.parametrize(
    "function, arguments, loops",
    [(_filter, (np.zeros(1000),), 1), (_sweep, (50, np.zeros((100, 90))), 3), (_cholesky, (np.eye(200),), 2)],
)
def test_long_loops_are_loops_of_the_program(function, arguments, loops):
    assert _while_loops(cyxla.jit(function, static=(0,) if loops == 3 else ()).lower(*arguments)) == loops


def test_short_loops_are_unrolled():
    assert _while_loops(cyxla.jit(_weighted_sum).lower(np.zeros(3))) == 0


def _wrong(x):
    total = 0.0
    for _ in range(len(x)):
        total += x.reshape(3, 7).sum()
    return total


def test_tracebacks_show_the_lines_of_the_function():
    with pytest.raises(ValueError, match="reshape") as caught:
        cyxla.jit(_wrong)(X)
    frames = traceback.extract_tb(caught.tb)
    assert [f.line for f in frames if f.name == "_wrong"] == ["total += x.reshape(3, 7).sum()"]


def test_assertions_are_checked_in_each_run():
    run = cyxla.jit(sum_of_small, fallback="error")
    assert run(np.arange(50.0)) == np.arange(50.0).sum()
    with pytest.raises(AssertionError, match="too large"):
        run(np.arange(50.0) * 10)


def _kinds_differ(x):
    y = x
    if x[0] > 0:
        y = np.zeros((3, 1))
    return y


def test_branches_of_different_ranks_are_refused_with_the_variable():
    with pytest.raises(cyxla.errors.TraceError, match="leaves y as"):
        cyxla.jit(_kinds_differ, fallback="error")(X)


def _gradient_of_loop(x):
    y = 1.0
    for i in range(40):
        y = y * np.cos(x[i % 5]) + x[i % 7]
    return y


def _added(x, start):
    for k in range(len(x)):
        start = start + x[k]
    return start


def _added_if(x, start):
    for k in range(len(x)):
        if x[k] > 0:
            start += x[k]
    return start


@pytest.mark.parametrize("start", [0, 0.0, True])
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8", "c16", "?"])
@pytest.mark.parametrize("function", [_added, _added_if])
def test_python_numbers_become_scalars_of_numpy(function, dtype, start):
    x = np.ones(40, dtype)
    got, wanted = cyxla.jit(function, fallback="error", static=("start",))(x, start), function(x, start)
    assert (type(got), got) == (type(wanted), wanted)


def test_loops_have_gradients():
    x = np.linspace(0.1, 0.9, 8)
    found = cyxla.grad(_gradient_of_loop)(x)
    steps = np.eye(8) * 1e-6
    expected = [(_gradient_of_loop(x + s) - _gradient_of_loop(x - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
