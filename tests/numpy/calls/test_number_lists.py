"""Lists of Python's numbers among the arguments: long ones, and those of many lengths, are arrays of the program."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning

TABLE = np.random.default_rng(0).random((50, 3))


def rows_of_table(xs):
    return TABLE[xs] + TABLE[range(len(xs))]


def statistics(xs):
    return np.mean(xs), np.std(xs), np.array(xs) * 2, np.asarray(xs).sum()


def total_of_loop(xs):
    total = 0
    for x in xs:
        total += x * 2
    return total


def neighbours(xs):
    total = 0.0
    for i in range(len(xs)):
        total += xs[i] * xs[i - 1]
    return total


def place_of_greatest(xs):
    best, place = xs[0], 0
    for i, x in enumerate(xs):
        if x > best:
            best, place = x, i
    return best, place


def elements(xs):
    return len(xs), xs[3], xs[-1], xs[1]


def doubled(xs):
    return [x * 2 for x in xs]


def selected(xs):
    return [x for x in xs if x > 3]


def none_selected(xs):
    return [x for x in xs if x > 1e9]


def appended(xs):
    found = []
    for x in xs:
        if x > 3:
            found.append(x + 1)
    return found


def products_of_neighbours(xs):
    return [a * b for a, b in zip(xs, xs[1:])]  # noqa: B905, RUF007


def searched(xs):
    return 7 in xs, 7 not in xs, xs.count(2), -1 in xs


def reduced(xs):
    return sum(xs), max(xs), min(xs), any(x > 5 for x in xs), all(x > -5 for x in xs)


def in_order(xs):
    return sorted(xs), sorted(xs, reverse=True), xs[::-1], xs[2:4]


def joined(xs):
    return xs + xs[:2], xs * 2, [xs[0]] + xs  # noqa: RUF005


def classes(xs):
    return type(xs) is list, isinstance(xs, list), type(xs[0]) is int, isinstance(xs[0], float), bool(xs)


FUNCTIONS = [
    rows_of_table, statistics, total_of_loop, neighbours, place_of_greatest, elements, doubled, selected, none_selected,
    appended, products_of_neighbours, searched, reduced, in_order, joined, classes,
]  # fmt: skip
OF_INDICES = (rows_of_table,)
LENGTHS = (5, 6, 7, 8, 9, 40, 7, 300, 4000)


def numbers(kind, count):
    return [kind((7 * k) % 11) for k in range(count)]


def assert_same(found, expected):
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            assert_same(*pair)
    else:
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("kind", [int, float], ids=["int", "float"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_lists_of_any_length(function, kind):
    if kind is float and function in OF_INDICES:
        pytest.skip("floats are no indices")
    jitted = cyxla.jit(function)
    for count in (n for n in LENGTHS if function not in OF_INDICES or n <= len(TABLE)):
        values = numbers(kind, count)
        given = list(values)
        for _ in range(2):
            assert_same(jitted(given), function(values))
        assert given == values


@pytest.mark.parametrize("first, programs", [(6, 2), (9, 1), (33, 1)])
@pytest.mark.parametrize("function", [rows_of_table, statistics, total_of_loop, doubled, in_order, searched])
def test_programs_serve_all_lengths(function, first, programs):
    """Lists of few integers that grow are compiled twice, for the first length, then for any; others once, for any."""
    jitted = cyxla.jit(function)
    for count in range(first, 45):
        assert_same(jitted(numbers(int, count)), function(numbers(int, count)))
    assert jitted.cache_info().misses <= programs


def test_a_list_that_grows_between_calls():
    @cyxla.jit
    def following(table, tokens):
        return int((table[tokens] @ table.T).sum(axis=0).argmax())

    table = np.random.default_rng(1).random((20, 8))
    tokens, expected = [1, 2, 3], [1, 2, 3]
    for _ in range(30):
        tokens.append(following(table, tokens))
        expected.append(following.function(table, expected))
    assert tokens == expected
    assert following.cache_info().misses == 2


@pytest.mark.parametrize("kind", [int, float, bool, complex])
@pytest.mark.parametrize("count", [3, 100])
def test_classes_of_numbers(kind, count):
    @cyxla.jit
    def first_and_array(xs):
        return xs[0], np.array(xs), [x for x in xs][-1]  # noqa: C416

    values = [kind(k % 3) for k in range(count)]
    assert repr(first_and_array(values)) == repr(first_and_array.function(values))


@pytest.mark.parametrize(
    "values", [[1, 2.5] * 30, [True, 2] * 30, [2**70] * 40, [1] * 39 + [2**63], [np.float64(1), 2.0] * 30],
    ids=["int and float", "bool and int", "large", "one large", "scalar of NumPy"],
)  # fmt: skip
def test_lists_that_are_not_arrays_of_one_class(values):
    @cyxla.jit
    def ends(xs):
        return xs[0], xs[-1], len(xs)

    for _ in range(2):
        assert repr(ends(list(values))) == repr(ends.function(values))


def write_element(xs):
    xs[3] = 7


def append_element(xs):
    xs.append(sum(xs))


def append_by_class(xs):
    list.append(xs, 1.0)
    return list.index(xs, 1.0) + list.__len__(xs)


def write_by_class(xs):
    list.__setitem__(xs, 1, 2.5)
    list.extend(xs, list.__getitem__(xs, slice(2)))
    return list.pop(xs)


def sort_in_place(xs):
    xs.reverse()
    xs[0] += 1


def double_in_loop(xs):
    for k in range(len(xs)):
        xs[k] *= 2


def return_it(xs):
    return xs


def return_copy(xs):
    return xs.copy(), xs[:], [xs, xs]


@pytest.mark.parametrize("function", [
    write_element, append_element, append_by_class, write_by_class, sort_in_place, double_in_loop, return_it,
    return_copy,
], ids=lambda f: f.__name__)  # fmt: skip
def test_changed_and_returned_lists(function, recwarn):
    jitted = cyxla.jit(function)
    for count in (40, 41, 42, 43, 5, 6, 7, 8):
        given, expected = [0.5 * k for k in range(count)], [0.5 * k for k in range(count)]
        result, wanted = jitted(given), function(expected)
        assert result == wanted
        assert given == expected
        assert (result is given) is (wanted is expected)
        if isinstance(result, tuple):
            assert result[0] is not given
            assert result[1] is not given
            assert result[2][0] is given


def test_parts_of_containers():
    def norms(rows, named):
        return [sum(x * x for x in row) for row in rows], np.array(rows).sum(axis=0), named["weights"][2]

    jitted = cyxla.jit(norms)
    for count in (40, 41, 42, 43):
        rows = [[float(i * j % 7) for j in range(count)] for i in range(3)]
        named = {"weights": [1.0 * k for k in range(count)]}
        assert_same(jitted(copy.deepcopy(rows), dict(named)), norms(rows, named))


def test_values_that_python_needs():
    """Sizes and axes in lists of several lengths are static, as they are in lists of one."""

    @cyxla.jit
    def shaped(x, sizes):
        return np.broadcast_to(x, sizes).sum()

    for sizes in ([2], [2, 3], [2, 3, 4], [1, 2, 3, 4], [5, 1, 1, 1, 1]):
        assert shaped(1.5, sizes) == shaped.function(1.5, sizes)


def test_nan_has_the_place_that_python_gives_it():
    @cyxla.jit(fallback="numpy")
    def ordered(xs):
        return sorted(xs)

    values = [3.0, float("nan"), 1.0] * 20
    for _ in range(2):
        assert repr(ordered(values)) == repr(sorted(values))
    zeros = [0.0, -0.0] * 20
    assert repr(ordered(zeros)) == repr(sorted(zeros))


def test_long_lists_that_cannot_be_arrays_run_plainly():
    @cyxla.jit(fallback="numpy")
    def text(xs):
        return ",".join(map(str, xs))

    values = list(range(2000))
    with pytest.warns(FallbackWarning, match="a list of 2000 numbers is used otherwise"):
        assert text(values) == text.function(values)
    assert text(values) == text.function(values)


def test_conditions_of_comprehensions_are_those_of_python():
    """A condition of Python's numbers that no loop of the program can test is not taken for true."""

    @cyxla.jit(fallback="numpy")
    def selected_rows(rows):
        return [x for x in rows[0] if x > 2], rows

    rows = [[float(k % 5) for k in range(40)], [1.0]]
    for _ in range(2):
        assert selected_rows(rows) == selected_rows.function(rows)


@pytest.mark.parametrize("middle", [np.float32(2), 3, None, (1, 2), np.ones(2)])
def test_other_values_between_lists(middle):
    values = [[], middle, [1, 2]]
    result = cyxla.jit(lambda values: values[2] + [len(values)], fallback="numpy")(values)
    assert result == [1, 2, 3]
