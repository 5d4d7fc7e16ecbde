"""Lists of numbers of which loops write elements: `out = [0.0] * n`, `out[i] = x`."""

from __future__ import annotations

import numpy as np
import pytest

import cyxla

N = 50
X = np.random.default_rng(0).standard_normal(N)
NUMBERS = [float(x) for x in X]
INTEGERS = [(7 * k) % 13 for k in range(N)]


def all_written(xs):
    out = [0.0] * len(xs)
    for i in range(len(xs)):
        out[i] = xs[i] * 2
    return out


def all_written_over_integers(xs):
    out = [0] * len(xs)
    for i in range(len(xs)):
        out[i] = xs[i] * 2.5
    return out


def some_written(xs):
    out = [0.0] * len(xs)
    for i in range(len(xs)):
        if xs[i] > 0.5:
            out[i] = -xs[i]
    return out


def some_written_over_integers(xs):
    out = [0] * len(xs)
    for i, x in enumerate(xs):
        if x > 0.5:
            out[i] = x * 1.5
    return out, np.array(out), sum(out)


def none_written_over_integers(xs):
    out = [0] * len(xs)
    for i, x in enumerate(xs):
        if x > 1e9:
            out[i] = x * 1.5
    return np.array(out), out[3]


def reduced(xs):
    out = [0] * len(xs)
    for i, x in enumerate(xs):
        if x > 1e9:
            out[i] = x * 1.5
    return sum(out), max(out), min(out)


def sums(xs):
    out = [0.0] * (len(xs) + 1)
    for i in range(len(xs)):
        out[i + 1] = out[i] + xs[i]
    return out, out[-1], out[1:3], len(out)


def fibonacci(xs):
    out = [0, 1] + [0] * len(xs)
    for i in range(2, len(out)):
        out[i] = (out[i - 1] + out[i - 2]) % 1000
    return out


def counted(xs):
    counts = [0 for _ in range(5)]
    for x in xs:
        counts[int(abs(x)) % 5] += 1
    return counts, max(counts), sorted(counts)


def bubble_sort(xs):
    for i in range(len(xs)):
        for j in range(len(xs) - 1 - i):
            if xs[j] > xs[j + 1]:
                xs[j], xs[j + 1] = xs[j + 1], xs[j]


def insertion_sort(xs):
    for i in range(1, len(xs)):
        key, j = xs[i], i - 1
        while j >= 0 and xs[j] > key:
            xs[j + 1] = xs[j]
            j -= 1
        xs[j + 1] = key
    return xs


def sieve(xs):
    is_prime = [True] * len(xs)
    for i in range(2, len(xs)):
        if is_prime[i]:
            for j in range(2 * i, len(xs), i):
                is_prime[j] = False
    return is_prime, [i for i in range(2, len(xs)) if is_prime[i]]


def two_names(xs):
    first = [0.0] * len(xs)
    second = first
    for i in range(len(xs)):
        second[i] = xs[i] + first[i - 1]
    return first, second is first


def copies(xs):
    out = [0.0] * len(xs)
    for i in range(len(xs)):
        out[i] = xs[i]
    before, part = out.copy(), out[:5]
    for i in range(len(xs)):
        out[i] += 1.0
    return before, part, out


def used_and_changed(xs):
    out = [0.0] * len(xs)
    for i in range(len(xs)):
        out[i] = xs[i]
    out.append(3.0)
    out[0] = -1.0
    del out[2]
    return out, out.pop()


def in_while(xs):
    out, i = [0.0] * len(xs), 0
    while i < len(xs) and xs[i] < 2:
        out[i] = xs[i] ** 2
        i += 1
    return out, i


def numbers_of_the_other_class(xs):
    out = [1.0] * len(xs)
    for i in range(len(xs)):
        out[i] = xs[i] * 0.5
        if xs[i] > 1:
            out[i] = 0
    return out


def doubtful(xs):
    out = [1.0] * len(xs)
    for i in range(len(xs)):
        out[i] = max(xs[i], 0)
    return out


def in_branch(xs):
    out = [0.0] * len(xs)
    if xs[0] > -1e9:
        for i in range(len(xs)):
            out[i] = xs[i]
    return out


def known_sizes(xs):
    sizes = [1] * 3
    for i in range(3):
        sizes[i] = i + 1
    return np.zeros(sizes).shape, np.zeros(sizes[2]).size


FUNCTIONS = [
    all_written, all_written_over_integers, some_written, some_written_over_integers, none_written_over_integers,
    reduced, sums, fibonacci, counted, bubble_sort, insertion_sort, sieve, two_names, copies, used_and_changed,
    in_while, numbers_of_the_other_class, doubtful, in_branch, known_sizes,
]  # fmt: skip
ARGUMENTS = {"floats": NUMBERS, "integers": INTEGERS, "array": X, "integer array": np.array(INTEGERS)}


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            assert_same(*pair)
    elif expected is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning", "ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("kind", ARGUMENTS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_lists_written_by_loops(function, kind):
    compiled = cyxla.jit(function, fallback="numpy")
    for scale in (1, 3):
        given, expected = [ARGUMENTS[kind].copy() for _ in range(2)]
        given = given * scale if isinstance(given, np.ndarray) else [v * scale for v in given]
        expected = expected * scale if isinstance(expected, np.ndarray) else [v * scale for v in expected]
        assert_same(compiled(given), function(expected))
        assert_same(given, expected)


@pytest.mark.parametrize(
    "function",
    [all_written, all_written_over_integers, sums, counted, bubble_sort, insertion_sort, in_while],
    ids=lambda f: f.__name__,
)
def test_they_are_loops_of_the_program(function):
    compiled = cyxla.jit(function, fallback="error")
    compiled(list(NUMBERS))
    entry = next(iter(compiled.programs.entries.values()))
    opcodes = {i.opcode for c in entry.lowered.module.post_order() for i in c.instructions}
    assert "while" in opcodes


def test_indices_out_of_range():
    @cyxla.jit
    def shifted(xs):
        out = [0.0] * len(xs)
        for i in range(len(xs)):
            out[i + 1] = xs[i]
        return out

    with pytest.raises(IndexError):
        shifted(NUMBERS)


def rows_of_arrays(xs):
    out = [None] * len(xs)
    for i in range(len(xs)):
        out[i] = np.array([xs[i], 1.0])
    return out


def test_other_values_are_no_numbers():
    compiled = cyxla.jit(rows_of_arrays, fallback="numpy")
    np.testing.assert_array_equal(compiled(X[:20]), rows_of_arrays(X[:20]))


def array_of_doubtful(xs):
    return np.array([max(x, 2) for x in xs]), np.array([(max(x, 2), 1) for x in xs])


@pytest.mark.parametrize("values", [[0.5] * 40, [3.5] * 40, [0.5, 3.5] * 20], ids=["integers", "floats", "both"])
def test_arrays_have_the_dtype_of_the_numbers(values):
    compiled = cyxla.jit(array_of_doubtful, fallback="numpy")
    for found, expected in zip(compiled(values), array_of_doubtful(values), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def written_under_conditions(xs, least):
    """Write elements of a long list in loops that are given up, and in branches."""
    total = 0.0
    for i in range(len(xs)):
        if xs[i] > least:
            xs[i] = 0.0
        total += xs[i]
    for i in range(3):
        names = ["a"] * i
        total += xs[i] + len(names)
    if total > 0:
        total += xs[-1]
    return total, xs[0], sum(xs)


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning", "ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("count", [40, 1500])
def test_long_lists_keep_their_numbers(count):
    compiled = cyxla.jit(written_under_conditions, fallback="numpy")
    for least in (5.0, 100.0):
        given, expected = [[float(k % 11) for k in range(count)] for _ in range(2)]
        assert compiled(given, least) == written_under_conditions(expected, least)
        assert given == expected


def beside_a_side_that_fails(xs, c, y):
    if xs[0] > 0:
        t = xs[5]
    else:
        t = 2.0
        if y > 5:
            c = xs[0]
    return t, c


@pytest.mark.parametrize("y", [1.0, 6.0])
def test_classes_of_numbers_beside_a_side_that_fails(y):
    compiled = cyxla.jit(beside_a_side_that_fails, fallback="numpy")
    assert repr(compiled([-3.0, 3.75], 2, y)) == repr(beside_a_side_that_fails([-3.0, 3.75], 2, y))


def sieve(limit):
    """Return the primes below a limit; the list that the loop iterates over is written in it."""
    is_prime, primes = [True] * limit, []
    is_prime[0] = is_prime[1] = False
    for i, prime in enumerate(is_prime):
        if prime:
            primes.append(i)
            for n in range(i * i, limit, i):
                is_prime[n] = False
    return primes


def written_ahead(limit):
    values, total = [1] * limit, 0
    for value in values:
        total = (total * 3 + value) % 1009
        for n in range(0, limit, 2):
            values[n] = total
    return total, values


def written_behind(limit):
    values, total = [k % 7 for k in range(limit)], 0
    for value in reversed(values):
        total = (total * 3 + value) % 1009
        for n in range(0, limit, 3):
            values[n] = total
    return total, values


def beside_another_list(limit):
    values, others, total = [k % 7 for k in range(limit)], [2.5] * limit, 0.0
    for value, other in zip(values, others):  # noqa: B905
        total += value * other
        for n in range(limit):
            others[n] = others[n] / 2 + n
    return total, others


def by_an_iterator_made_before(limit):
    values, total = [1] * limit, 0
    iterator = iter(values)
    for n in range(limit):
        values[n] = n % 5
    for value in iterator:
        total = (total * 3 + value) % 1009
    return total


@pytest.mark.parametrize(
    "function", [sieve, written_ahead, written_behind, beside_another_list, by_an_iterator_made_before]
)
@pytest.mark.parametrize("limit", [2, 8, 40, 100])
def test_lists_are_written_while_a_loop_iterates_over_them(function, limit):
    assert repr(cyxla.jit(function, fallback="numpy")(limit)) == repr(function(limit))
