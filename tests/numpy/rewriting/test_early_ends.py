"""Loops that end early, iterators that they leave behind, and functions that read variables of loops later."""

import warnings

import numpy as np
import pytest

import cyxla

# ruff: noqa: B007, B023 - what these functions do is what is tested


def target_after_break(x):
    for i in range(len(x)):
        if x[i] > 2:
            break
    return i


def target_after_break_or_else(x):
    for i in range(len(x)):
        if x[i] > 2:
            break
    else:
        i = -1
    return i


def targets_after_break(x):
    for i, (a, b) in enumerate(zip(x, x[1:])):  # noqa: B905, RUF007
        if a > b:
            break
    return i, a, b


def nested_breaks(x):
    for i in range(6):
        for j in range(6):
            if x[i] * x[j] > 4:
                break
        else:
            continue
        break
    return i, j


def target_of_an_attribute(x):
    class Counter:
        pass

    counter = Counter()
    for counter.i in range(4):
        if x[counter.i] > 2:
            break
    return counter.i


def break_of_many_iterations(x):
    for i in range(60):
        if x[i % 6] > 2:
            break
    return i


def functions_of_a_loop(x):
    functions = []
    for k in range(4):
        functions.append(lambda v: v * k)
    return sum(f(x) for f in functions)


def functions_of_a_comprehension(x):
    functions = [lambda v: v * k for k in range(4)]
    return sum(f(x) for f in functions)


def functions_with_defaults(x):
    functions = [lambda v, k=k: v * k for k in range(40)]
    return sum(f(x) for f in functions)


def generators_of_a_comprehension(x):
    generators = [(v * k for v in x) for k in range(3)]
    return [sum(g) for g in generators]


def sums_of_a_comprehension(x):
    return [sum(v * k for v in x) for k in range(30)]


def known_break_of_an_iterator(x):
    values = iter([1, 2, 3, 4])
    for v in values:
        if v == 2:
            break
    return list(values), x


def known_break_of_a_generator(x):
    made = []

    def numbers():
        for k in range(5):
            made.append(k)
            yield k

    for k in numbers():
        if k == 2:
            break
    return made, x


def iterator_in_a_loop(x):
    values, total = iter(x), x[0] * 0
    for i in range(40):
        for v in values:
            total = total + v * i
    return total


def condition_that_binds_and_else(x):
    n = 0
    while (n := n + 1) < 10 and x[n % 6] < 3:
        pass
    else:
        n += 100
    return n


def condition_that_binds_an_element(x):
    n = 0
    while (v := x[n]) < 3 and n < 5:
        n += 1
    return n, v


def condition_that_binds_an_array(x):
    while (x := x / 2).sum() > 1:
        pass
    return x


def condition_that_counts_down(x):
    n = 40
    while (n := n - 1) and x[n % 6] < 3:
        pass
    return n


def condition_that_fails_after_a_break(x):
    i = 0
    while x[i] < 9:
        i += 1
        if i >= len(x):
            break
    return i


def condition_that_fails_after_a_return(x):
    i = 0
    for _ in range(len(x)):
        while not x[i] > 9:
            i = (3 * i + 9) % 17
            if i:
                return i
    return -1


def condition_that_divides_by_zero_after_a_break(x):
    n = float(x[0])
    while 1.0 / n < 9:
        n -= float(x[0])
        if n == 0:
            break
    else:
        n = 5.0
    return n


def text_of_a_loop(x):
    for i in range(1000):
        x[i % 6] += 1
        kind = "counted"
    return [kind, x]


def text_with_a_number(x):
    while x[0] < 9:
        x += 1
        if x[1] > 4:
            return "found", x[1]
    return "found", x[2]


def return_without_a_value(x):
    seen = []

    def visit(k):
        if k in seen:
            return
        if k < 4:
            seen.append(k)

    for k in (1, 1, 9, 2):
        visit(k)
    return [x[k] for k in seen], visit(9)


def nothing_is_returned(x):
    """Ends early, in three places."""
    while x[0] < 10:
        x += 1
        if x[1] > 3:
            return
    for i in range(6):
        if x[i] > 12:
            return
        x[i] += x.sum()
    if x[2] > 3:
        x *= 2


def nothing_is_returned_from_a_loop(x):
    previous = np.inf
    for _ in range(1000):
        loss = np.sum((x - 1) ** 2)
        if previous - loss < 1e-3:
            return
        previous = loss
        x -= 0.1 * (x - 1)


COMPILED = [
    nothing_is_returned,
    nothing_is_returned_from_a_loop,
    return_without_a_value,
    target_after_break,
    target_after_break_or_else,
    targets_after_break,
    nested_breaks,
    target_of_an_attribute,
    break_of_many_iterations,
    functions_of_a_loop,
    functions_of_a_comprehension,
    functions_with_defaults,
    generators_of_a_comprehension,
    sums_of_a_comprehension,
    known_break_of_an_iterator,
    known_break_of_a_generator,
    iterator_in_a_loop,
    condition_that_binds_and_else,
    condition_that_binds_an_element,
    condition_that_binds_an_array,
    condition_that_counts_down,
    text_of_a_loop,
    text_with_a_number,
    condition_that_divides_by_zero_after_a_break,
    condition_that_fails_after_a_break,
    condition_that_fails_after_a_return,
]


def break_of_an_iterator(x):
    values = iter(x)
    for v in values:
        if v > 2:
            break
    return list(values)


def break_of_a_generator(x):
    made = []

    def elements():
        for k in range(5):
            made.append(k)
            yield x[k]

    for v in elements():
        if v > 2:
            break
    return made


def break_of_enumerate(x):
    values = enumerate(x)
    for _, v in values:
        if v > 2:
            break
    return [i for i, _ in values]


def zip_twice(x):
    pairs = zip(x, x, strict=False)
    first = [a * b for a, b in pairs]
    return first, [a * b for a, b in pairs]


def long_zip_twice(x):
    long = np.concatenate([x] * 10)
    pairs = zip(long, long)  # noqa: B905
    first = [a * b for a, b in pairs]
    return first, [a * b for a, b in pairs]


def part_of_a_zip(x):
    numbered = enumerate(x)
    first = [a * b for (_, a), b in zip(numbered, x)]  # noqa: B905
    return first, [a for _, a in numbered]


def next_in_a_branch(x):
    values = iter(x)
    for v in values:
        if v > 1:
            next(values, None)
    return v


def any_of_an_iterator(x):
    values = iter(x)
    return any(v > 2 for v in values), list(values)


def condition_that_writes(x):
    def step():
        x[0] -= 1
        return x[0]

    while step() > 0:
        pass
    return x


def index_or_none(x):
    i = 0
    while x[i] != 2.5:
        i += 1
        if i >= len(x):
            return None
    return i


def indices_or_nothing(x):
    i = 0
    while x[i] != 2.5:
        i += 1
        if i >= len(x):
            return None
    return i, 5


def index_or_text(x):
    while x[0] < 9:
        x += 1
        if x[0] > 4 and x[1] > 6:
            return "none"
    return x[0]


def none_or_an_index(x):
    i = 0
    while x[i] != 2.5:
        i += 1
        if i >= len(x):
            found = None
            break
    else:
        found = i
    return found


def text_of_some_iterations(x):
    kind = "none"
    while x[0] < 4:
        x += 1
        kind = "some"
    return [kind]


def selection_by_recursion(x):
    def select(a, k):
        pivot = a[len(a) // 2]
        low, high = a[a < pivot], a[a > pivot]
        if k < len(low):
            return select(low, k)
        if k < len(a) - len(high):
            return pivot
        return select(high, k - len(a) + len(high))

    return select(x, 2)


AN_ITERATOR = "an iterator"
PLAIN = [
    (break_of_an_iterator, AN_ITERATOR),
    (break_of_a_generator, AN_ITERATOR),
    (break_of_enumerate, AN_ITERATOR),
    (zip_twice, AN_ITERATOR),
    (long_zip_twice, AN_ITERATOR),
    (part_of_a_zip, AN_ITERATOR),
    (next_in_a_branch, AN_ITERATOR),
    (any_of_an_iterator, AN_ITERATOR),
    (condition_that_writes, "its condition writes to an array"),
    (index_or_none, "leaves the result as int[] or as NoneType"),
    (indices_or_nothing, ") or as NoneType"),
    (index_or_text, "leaves the result as float64[] or as str"),
    (none_or_an_index, "found is NoneType after it, or what it was before it"),
    (text_of_some_iterations, "kind changes its kind"),
    (selection_by_recursion, "recurses without end"),
]
ARRAYS = [np.array([0.5, 1.5, 2.5, 0.25, 3.5, 1.0]), np.array([4.0, 3.0, 2.0, 1.0, 0.0, -1.0]), np.ones(6)]


def _check(function, compiled):
    for x in (*ARRAYS, ARRAYS[0]):
        given, plain = x.copy(), x.copy()
        got, want = compiled(given), function(plain)
        assert type(got) is type(want)
        np.testing.assert_array_equal(given, plain)
        for g, w in zip(*[v if isinstance(v, (list, tuple)) else [v] for v in (got, want)], strict=True):
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("function", COMPILED)
def test_compiled(function):
    _check(function, cyxla.jit(function, platform="interpreter", fallback="error"))


@pytest.mark.parametrize("function, reason", PLAIN)
def test_states_that_depend_on_the_run_are_numpys(function, reason):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _check(function, cyxla.jit(function, platform="interpreter", fallback="numpy"))
    assert any(reason in str(w.message) for w in caught)
