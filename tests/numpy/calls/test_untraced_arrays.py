"""Functions that write to arrays that are not traced: static arguments, and arrays that SciPy or NumPy computed."""

import warnings

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy import linalg
from scipy.signal import windows

import cyxla
from cyxla.errors import FallbackWarning, UnimplementedError

Y = np.array([3.0, 1.0, 2.0])


class Holder:
    """An object with an array."""


def loop(y):
    w = windows.hann(4)
    v = w
    for _ in range(100):
        w += y[0]
    return v * 1


def loop_of_known_numbers(y):
    w, z = leggauss(3)
    v = w
    for _ in range(100):
        w += 1
    return v * y[0], z


def loop_of_a_generator(y):
    w = np.random.default_rng(0).random(3)
    v = w
    for _ in range(100):
        w += y[0]
    return v * 1


def rows_in_a_loop(y):
    w = linalg.hilbert(3)
    for _ in range(100):
        r = w[0]
        r += y[0]
    return w * 1


def while_loop(y):
    w = windows.hann(4)
    v = w
    while w[0] < y[0] * 20:
        w += 1
    return v * 1


def assignment(y):
    w = windows.hann(4)
    v = w
    w += y[0]
    return v * 1


def assignment_in_a_branch(y):
    w = windows.hann(4)
    v = w
    if y[0] > 1:
        w += y[0]
    return v * 1


def assignment_to_a_view(y):
    w = windows.hann(4)
    r = w[1:]
    r += y[0]
    return w


def add(w, y):
    w += y[0]


def assignment_in_a_helper(y):
    w = windows.hann(4)
    add(w, y)
    return w * 1


def element_of_a_list(y):
    w = [windows.hann(4)]
    v = w[0]
    for _ in range(5):
        w[0] += y[0]
    return v * 1


def attribute(y):
    holder = Holder()
    holder.w = windows.hann(4)
    v = holder.w
    holder.w += y[0]
    return v * 1


def item(y):
    w = windows.hann(4)
    v = w
    w[1] = y[0]
    return v * 1


def rows(y):
    w = np.random.default_rng(0).random((30, 3))
    for r in w:
        r += y[0]
    return w * 1


def pairs_of_rows(y):
    w = np.random.default_rng(0).random((30, 3))
    for a, b in zip(w, w, strict=True):
        a[0] = b[1] * y[0]
    return w * y[0]


def chosen(y):
    w = windows.hann(4)
    v = w if y[0] > 2 else w * 2
    v += 1
    return w * 1, v


def chosen_and_written_in_a_loop(y):
    w = windows.hann(4)
    v = w * 2
    if y[0] > 2:
        v = w
    for _ in range(100):
        v[0] += 1
    return w * 1, v


def bound_in_a_loop(y):
    w = windows.hann(4)
    v = np.zeros(4)
    for i in range(100):
        v = w
        if i == 3:
            y[0] += 1
    v[0] = 9
    return w * y[0]


def bound_in_an_iteration(y):
    w = windows.hann(4)
    v = y[0] * np.ones(4)
    for i in range(100):
        v[0] += 1
        if i == 3:
            v = w
    return w * y[0], v


def exchanged(y):
    w = windows.hann(4)
    t, u = w * 1, w
    for _ in range(100):
        w, t = t, w
        y[0] += 1
    w += 1
    return u * y[0], w


def handed_on(y):
    w = windows.hann(4)
    a, b, c = y[0] * np.ones((3, 4))
    for _ in range(50):
        c = b
        b = a
        a = w
    c += 1
    return w * y[0], c


def maybe_bound_in_a_loop(y):
    x = np.random.default_rng(0).random(3)
    i = 0
    while i < y[0] - 3:
        x = x * 2
        i += 1
    v = x
    x += 1
    return x, v


WRITES = [
    loop, loop_of_known_numbers, loop_of_a_generator, rows_in_a_loop, while_loop, assignment, assignment_in_a_branch,
    assignment_to_a_view, assignment_in_a_helper, element_of_a_list, attribute, item, rows, pairs_of_rows, chosen,
    chosen_and_written_in_a_loop, bound_in_a_loop, bound_in_an_iteration, exchanged, handed_on, maybe_bound_in_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("function", WRITES)
def test_numpy_runs_functions_that_write_to_arrays_with_several_names(function, monkeypatch):
    monkeypatch.setenv("CYXLA_FALLBACK", "numpy")
    jitted = cyxla.jit(function)
    with pytest.warns(FallbackWarning, match="NumPy"):
        first = jitted(Y.copy())
    np.testing.assert_equal(first, function(Y.copy()))
    np.testing.assert_equal(jitted(Y + 1), function(Y + 1))


def scaled(y):
    w = windows.hann(4)
    w *= y[0]
    w += 1
    w -= y[:1]
    return w


def scaled_by_an_array(y):
    z = np.zeros(4)
    z[0] = y[0]
    w = windows.hann(4)
    w += z
    return w


def scaled_in_a_list(y):
    w = [windows.hann(4)]
    w[0] += y[0]
    return w[0] * 1


def scaled_view(y):
    r = windows.hann(4)[1:]
    r /= y[0]
    return r


def bound_again_in_a_loop(y):
    w = windows.hann(4)
    v = w
    for _ in range(100):
        w = w + y[0]
    return v, w


def power_iteration(y):
    a = np.outer(y, y) + 1
    x = np.random.default_rng(0).random(len(y))
    for _ in range(50):
        x = a @ x
        x /= np.sqrt(x @ x)
    x /= x.sum()
    return x


def read_in_a_loop(y):
    w = windows.hann(4)
    v = y[0] * np.ones(4)
    for i in range(100):
        if i == 3:
            v = w
        y[0] += v[1]
    return w * y[0], v


def copied(y):
    w = np.array(windows.hann(4))
    v = w
    for _ in range(100):
        w += y[0]
    return v * 1


@pytest.mark.parametrize(
    "function",
    [
        scaled, scaled_by_an_array, scaled_in_a_list, scaled_view, bound_again_in_a_loop, power_iteration,
        read_in_a_loop, copied,
    ],
)  # fmt: skip
def test_programs_change_arrays_with_one_name(function):
    jitted = cyxla.jit(function, fallback="error")
    for y in (Y, Y + 1):
        for got, expected in zip(np.atleast_2d(jitted(y.copy())), np.atleast_2d(function(y.copy())), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-14)


def counts_by_a_sum(x, k):
    c = 0
    for _ in range(30):
        x += 1
        c += k
    for _ in range(c + 1):
        for _ in range(k):
            x[1] += 1


def test_integers_that_a_size_depends_on_are_written(monkeypatch):
    monkeypatch.setenv("CYXLA_FALLBACK", "numpy")
    jitted, given, expected = cyxla.jit(counts_by_a_sum), np.array([-1, -2]), np.array([-1, -2])
    for k in (1, 1, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            jitted(given, k)
        counts_by_a_sum(expected, k)
        np.testing.assert_array_equal(given, expected)


def writes_an_item(x, y):
    x[0] += 1
    return y * x.sum()


def writes_in_a_loop(x, y):
    for _ in range(30):
        x += 1
    return y * x.sum()


@pytest.mark.parametrize("function", [writes_an_item, writes_in_a_loop])
def test_static_arrays_are_written_by_the_function_alone(function, monkeypatch):
    monkeypatch.setenv("CYXLA_FALLBACK", "numpy")
    jitted, given, expected = cyxla.jit(function, static="x"), np.array([1, 2]), np.array([1, 2])
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            got = jitted(given, Y)
        np.testing.assert_array_equal(got, function(expected, Y))
        np.testing.assert_array_equal(given, expected)


def test_static_arrays_may_change_between_calls():
    jitted, x = cyxla.jit(lambda x, y: y * x.sum(), static="x"), np.array([1, 2])
    for number in (1, 5, 1):
        x[0] = number
        np.testing.assert_array_equal(jitted(x, Y), Y * (number + 2))


def test_errors_name_line_and_mend():
    line = assignment.__code__.co_firstlineno + 3
    with pytest.raises(UnimplementedError, match=r"that\s+has other names") as caught:
        cyxla.jit(assignment, fallback="error")(Y)
    assert f"{__file__}:{line}" in str(caught.value)
    assert "np.array(x)" in str(caught.value)
