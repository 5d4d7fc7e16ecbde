"""Views share memory: random programs of views, writes and reads, compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.errors import TraceError
from cyxla.numpy import jit
from cyxla.numpy.control import fori_loop

SIZES = (3, 4)
KEYS = [
    0, -1, slice(None, None, 2), slice(1, None), slice(None, None, -1), (..., 0), (slice(None), slice(1, 3)), None,
    (slice(None, None, -2), None), (..., slice(0, 0)), (), (slice(1, 2), ...), (..., slice(None, None, -3)),
]  # fmt: skip
NOTHING = st.none()
STEPS = [
    ("part", st.sampled_from(KEYS)), ("write", st.sampled_from(KEYS)), ("add", st.sampled_from(KEYS)),
    ("turn", NOTHING), ("double", NOTHING), ("read", NOTHING), ("swap", NOTHING), ("total", st.integers(0, 9)),
    ("pick", st.sampled_from([[0], [0, 0], [-1]])), ("at", st.integers(-2, 0)),
    ("resize", st.tuples(st.sampled_from([(-1,), (2, -1), (-1, 2), (1, -1), (2, -1, 1)]), st.sampled_from("CF"))),
]  # fmt: skip
PROGRAMS = st.lists(
    st.sampled_from(STEPS).flatmap(lambda s: st.tuples(st.just(s[0]), st.integers(0, 9), s[1])), max_size=14
)


class Program:
    """Program whose steps work on one of the existing arrays, and may add another one."""

    def __init__(self, x, place):
        self.arrays, self.seen, self.place = [x], [], place

    def run(self, steps):
        for k, (name, number, detail) in enumerate(steps):
            a = self.arrays[number % len(self.arrays)]
            if a.ndim and a.shape[0]:
                getattr(self, name)(a, detail, k + 10)
        return (*self.arrays, *self.seen)

    def part(self, a, key, _):
        if _fits(a, key):
            self.arrays.append(a[key])

    def write(self, a, key, value):
        if _fits(a, key):
            a[key] = value

    def add(self, a, key, value):
        if _fits(a, key):
            a[key] += value

    def turn(self, a, *_):
        self.arrays.append(a.T)

    def resize(self, a, how, _):
        sizes, order = how
        if a.size % abs(np.prod(sizes)) == 0:
            self.arrays.append(a.reshape(sizes, order=order))

    def double(self, a, *_):
        a *= 2

    def read(self, a, *_):
        self.seen.append(a + 1)

    def swap(self, a, _, value):
        a[...] = a[::-1].copy() if value % 2 else a[::-1]

    def pick(self, a, key, value):
        self.arrays.append(a[key])
        a[key] = value

    def at(self, a, detail, value):
        if a.shape[0] > 1:
            a[self.place + detail] = value  # place is an argument
            if a.ndim > 1:
                self.arrays.append(a[self.place])

    def total(self, a, number, _):
        a[...] = self.arrays[number % len(self.arrays)].sum()


def _fits(a, key):
    try:
        np.empty(a.shape)[key]
    except IndexError:
        return False
    return True


def same(x, steps, platform="interpreter"):
    """Assert that a program's arrays and reads equal those of NumPy."""
    want = Program(x.copy(), 1).run(steps)
    # The steps are a default, so that keys are known: arrays of an enclosing function would be traced.
    got = jit(lambda x, place, steps=steps: Program(x, place).run(steps), platform=platform)(x, np.int64(1))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)
        assert np.shape(g) == np.shape(w)


@settings(max_examples=30)
@given(PROGRAMS)
def test_programs_of_views(steps):
    same(np.arange(12).reshape(SIZES), steps)


def test_a_program_of_views_on_the_cpu():
    parts = [("part", k, KEYS[k]) for k in range(6)]
    writes = [("add", k, KEYS[k % 5]) for k in range(7)] + [("write", k, KEYS[k % 7]) for k in range(1, 7)]
    rest = [("turn", 2, None), ("at", 0, 0), ("swap", 3, None), ("pick", 2, [0, 0]), ("read", 4, None)]
    same(np.arange(12.0).reshape(SIZES), parts + writes + rest + writes, "cpu")


def instructions(function, *arrays):
    """Return the number of instructions of a traced function."""
    jitted = jit(function, platform="interpreter")
    jitted(*arrays)
    (entry,) = jitted.programs.entries.values()
    return len(entry.lowered.module.entry.instructions)


def test_views_are_read_again_only_after_writes():
    def many(x):
        row = x[1:]
        total = row
        for _ in range(50):
            total = total + row
        return total

    assert instructions(many, np.ones((3, 4))) <= 55


def test_writes_through_views_in_a_loop_are_linear():
    def writes(count):
        def function(x):
            first, last = x[0], x[-1]
            for _ in range(count):
                first += 1
                last -= 1
            return x

        return function

    short, long = (instructions(writes(n), np.ones((3, 4))) for n in (10, 40))
    assert long - short <= 30 * 20


def test_writing_to_a_view_of_another_function_raises():
    def function(x):
        row = x[0]

        def body(_, total):
            row[0] = 1
            return total

        return fori_loop(0, 3, body, x)

    with pytest.raises(TraceError, match="created outside"):
        jit(function, platform="interpreter")(np.ones((2, 2)))


def test_a_view_may_be_read_in_a_loop():
    def function(x):
        row, column = x[0], x[:, 1]
        x[0, 1] = 5
        return fori_loop(0, 3, lambda i, total: total + row + column[i % 2], np.zeros(2))

    np.testing.assert_array_equal(jit(function, platform="interpreter")(np.ones((2, 2))), [3 + 11, 15 + 11])


def _corner(x):
    y = x[0, ..., 1]
    y += 5
    z = np.squeeze(x[1:2, :1])
    z *= 2
    s = x.sum()
    t = s[...]
    t += 1
    return y, z, s, t


def _numbers(x):
    first = np.unstack(x[0])
    y = first[1]
    y += 5  # a scalar, which does not share memory with x
    return x[0, 1], y, np.flip(x.sum())


def _own(x):
    y = x.conj()
    y[0] = 7
    z = x.conjugate()
    z[1] += 1
    return y


@pytest.mark.parametrize("function", [_corner, _numbers, _own])
def test_rank_0_views_and_methods_that_return_the_array_itself(function):
    def run(x):
        return function(x), x

    x = np.arange(6.0).reshape(2, 3)
    want, left = run(x.copy())
    got, ours = jit(run, platform="interpreter")(x)
    np.testing.assert_array_equal(ours, left)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("write", [
    lambda x: x.fill([1]), lambda x: x[0, ...].__iadd__(2.5), lambda x: np.add.at(x, np.s_[:], np.ones((1, 2, 3), int)),
    lambda x: np.maximum.at(x, [0, 1], np.ones((1, 2, 3), int)), lambda x: x[x > 0].__iadd__(0.5),
    lambda x: x[0, ..., 0].__itruediv__(2),
])  # fmt: skip
def test_invalid_writes(write):
    x = np.arange(6).reshape(2, 3)
    with pytest.raises((TypeError, ValueError)) as theirs:
        write(x.copy())
    with pytest.raises(TypeError if isinstance(theirs.value, TypeError) else ValueError):
        jit(lambda x: write(x), platform="interpreter")(x)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.view(np.ndarray), lambda x: x.view(type=np.ndarray), lambda x: x.view(np.uint8, np.ndarray),
        lambda x: (x[::-1] * 2).view(np.ndarray),
    ],
)  # fmt: skip
def test_views_as_the_class_of_arrays(view):
    x = np.arange(6, dtype=np.int16)
    got = jit(view, fallback="error", platform="interpreter")(x)
    assert got.dtype == view(x).dtype
    np.testing.assert_array_equal(got, view(x))


@pytest.mark.parametrize("row, column", [(1, 2), (2, 1), (3, 0)])
def test_vectors_that_overlap_are_read_before_they_are_written(row, column, backend):
    def f(a):
        a[row] = a[:, column]
        a[:, row] = a[column]

    a = np.arange(16.0).reshape(4, 4)
    expected = a.copy()
    expected[row] = expected[:, column].copy()
    expected[:, row] = expected[column].copy()
    jit(f, platform=backend)(a)
    np.testing.assert_array_equal(a, expected)
