"""Programs of any size whose loops end at the sizes of the call."""

import re

import numpy as np
import pytest

import cyxla

LEAST = 10_000  # elements from which a loop that runs over all of its array shows in the time


def repeated(k, v, m):
    i = np.repeat(np.arange(k.size), np.minimum(k, 4))
    return v[i]


def interpolated(k, v, m):
    t = np.arange(len(v))
    v[~m] = np.interp(t[~m], t[m], v[m])
    return v


def difference(k, v, m):
    return np.setdiff1d(np.arange(k.size), k)


def taken_twice(k, v, m):
    st = np.flatnonzero(k != 9)
    return v[st[np.searchsorted(v[st], v) - 1]]


def weighed(k, v, m):
    return np.bincount(k, weights=v, minlength=5)


def inverse(k, v, m):
    return np.unique(k, return_inverse=True)[1]


def early(k, v, m):
    y = v[m]
    if y.size == 1:
        return y
    for j in range(1, y.size):
        if y[j] > 0.5:
            return y[:j]
    return y


def arguments(n):
    rng = np.random.default_rng(n)
    return np.sort(rng.integers(0, 5, n)), np.sort(rng.normal(size=n)), rng.random(n) < 0.5


def whole_loops(explanation: str) -> int:
    """Return the number of kernels that run over all elements of a long array, up to its bound."""
    kernels = re.split(r"\n(?=k\d+: )", explanation.partition("\nrefused:")[0])[1:]
    long = [k for k in kernels if any(int(n) > LEAST for n in re.findall(r"\[(\d+)", k))]
    return sum("below" not in k.partition("\n")[0] for k in long)


#: Functions, and the greatest number of kernels that are not cut: those that fill what is read at any index.
CASES = [(repeated, 3), (interpolated, 2), (difference, 3), (taken_twice, 2), (weighed, 1), (inverse, 1)]


@pytest.mark.parametrize("function, most", CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_loops_end_at_the_sizes_of_the_call(function, most):
    compiled = cyxla.jit(function, sizes="any", fallback="error")
    for n in (20_000, 19_000, 300, 1, 20_001, 7):
        if function is interpolated and n == 1:
            continue
        got, want = (f(*[a.copy() for a in arguments(n)]) for f in (compiled, function))
        np.testing.assert_allclose(got, want, rtol=1e-12)
    (program,) = compiled._any_size.entries
    assert whole_loops(program.executable.explain()) <= most


def transposed(x):
    return np.ascontiguousarray(x.T)


def whole_copies(c_source: str) -> list[str]:
    """Return the copies of so many elements that they show in the time."""
    return re.findall(r"__builtin_memcpy\([^;]*, \d{5,}\);", c_source)


def test_branches_and_loops_copy_the_elements_of_the_call():
    compiled = cyxla.jit(early, sizes="any", fallback="error")
    for n in (20_000, 19_000, 300, 20_001, 7):
        np.testing.assert_array_equal(compiled(*arguments(n)), early(*arguments(n)))
    (program,) = compiled._any_size.entries
    assert not whole_copies(program.executable.c_source)
    assert whole_loops(program.executable.explain()) == 0


def test_arguments_that_are_results_are_copied_in_part():
    compiled = cyxla.jit(transposed, sizes="any", fallback="error")
    for n in (200, 201, 9, 150):
        x = np.random.default_rng(n).normal(size=(n, n))
        np.testing.assert_array_equal(compiled(x), x.T)
    (program,) = compiled._any_size.entries
    assert not whole_copies(program.executable.c_source)


@pytest.mark.parametrize("transform", [np.fft.rfft, np.fft.fft])
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_of_the_call_are_transformed(transform, axis):
    def spectrum(x):
        return transform(x, axis=axis)

    compiled = cyxla.jit(spectrum, sizes="any", fallback="error")
    for n in (60, 61, 9, 3, 64):
        x = np.random.default_rng(n).normal(size=(n, n))
        np.testing.assert_allclose(compiled(x), spectrum(x), atol=1e-9)
    *_, program = compiled._any_size.entries
    assert str(program.executable.explain()).count("a fft has a kernel of its own; dimension 0 is computed below") == 2
