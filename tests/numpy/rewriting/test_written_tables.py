"""Lists of lists of numbers of which loops write elements, such as the tables of dynamic programming."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import cyxla

RNG = np.random.default_rng(0)
MATRIX = RNG.random((30, 30)).tolist()
FIRST, SECOND = RNG.integers(0, 5, 40).tolist(), RNG.integers(0, 5, 50).tolist()


def longest_common_subsequence(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                table[i][j] = table[i - 1][j - 1] + 1
            else:
                table[i][j] = max(table[i - 1][j], table[i][j - 1])
    return table[len(a)][len(b)], table


def edit_distance(a, b):
    costs = [[0 for _ in range(len(b) + 1)] for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        costs[i][0] = i
    for j in range(len(b) + 1):
        costs[0][j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            costs[i][j] = min(costs[i - 1][j] + 1, costs[i][j - 1] + 1, costs[i - 1][j - 1] + cost)
    return costs[-1][-1]


def product(a, b):
    n = len(a)
    c = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i][j] += a[i][k] * b[k][j]
    return c


def product_over_integers(a, b):
    n = len(a)
    c = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            total = 0
            for k in range(n):
                total += a[i][k] * b[k][j]
            c[i][j] = total
    return c, np.array(c)


def shortest_paths(lengths):
    n = len(lengths)
    d = [[lengths[i][j] for j in range(n)] for i in range(n)]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i][k] + d[k][j] < d[i][j]:
                    d[i][j] = d[i][k] + d[k][j]
    return d


def relaxed(rows):
    grid = [[1.0] * 3 for _ in range(5)]
    for _ in range(20):
        for i in range(1, 4):
            grid[i][1] = (grid[i - 1][1] + grid[i + 1][1]) / 2 + rows[0][0]
    return grid


def some_written_over_integers(rows):
    table = [[0] * 3 for _ in range(20)]
    for i in range(20):
        for j in range(3):
            if rows[i][j] > 0.5:
                table[i][j] = rows[i][j]
    return table, np.array(table)


def uses(rows):
    table = [[0.0] * 3 for _ in range(20)]
    for i in range(20):
        for j in range(3):
            table[i][j] = rows[i][j] + i
    total = 0.0
    for row in table:
        for x in row:
            total += x
    sums = [sum(row) for row in table]
    return total, sums, max(table[2]), sorted(table[3]), table[1][1:], len(table), len(table[0]), np.array(table).sum()


def row_with_a_name(rows):
    table = [[0.0] * 3 for _ in range(20)]
    row = table[1]
    for i in range(20):
        for j in range(3):
            table[i][j] = rows[i][j]
    row[0] = -5.0
    return table[1][0], row[1]


def changed_as_a_list(rows):
    table = [[0.0] * 3 for _ in range(20)]
    for i in range(20):
        for j in range(3):
            table[i][j] = rows[i][j]
    table[0] = [1.0, 2.0, 3.0]
    table.append([4.0, 5.0, 6.0])
    return table


def exchanged_rows(rows):
    table = [[0.0] * 3 for _ in range(6)]
    for i in range(6):
        for j in range(3):
            table[i][j] = rows[i][j]
    table[0], table[5] = table[5], table[0]
    return table


def one_row_many_times(rows):
    table = [[0.0] * 3] * 20
    for i in range(20):
        for j in range(3):
            table[i][j] += rows[i][j]
    return table


def known_values(rows):
    table = [[1] * 4 for _ in range(3)]
    for i in range(3):
        for j in range(4):
            table[i][j] = i * j
    return np.zeros(table[2][3]).size + rows[0][0]


CASES = {
    "longest common subsequence": (longest_common_subsequence, (FIRST, SECOND)),
    "longest common subsequence of short lists": (longest_common_subsequence, (FIRST[:6], SECOND[:5])),
    "edit distance": (edit_distance, (FIRST, SECOND)), "product": (product, (MATRIX, MATRIX)),
    "product of arrays": (product, (np.array(MATRIX), np.array(MATRIX))),
    "product over integers": (product_over_integers, (MATRIX, MATRIX)),
    "shortest paths": (shortest_paths, (MATRIX[:12],)),
    **{
        f.__name__.replace("_", " "): (f, (MATRIX,))
        for f in (
            relaxed, some_written_over_integers, uses, row_with_a_name, changed_as_a_list, exchanged_rows,
            one_row_many_times, known_values,
        )
    },
}  # fmt: skip
CASES["shortest paths"] = shortest_paths, ([row[:12] for row in MATRIX[:12]],)


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            assert_same(*pair)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning", "ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("name", CASES)
def test_tables_written_by_loops(name):
    function, args = CASES[name]
    compiled = cyxla.jit(function, fallback="numpy")
    for _ in range(2):
        given = copy.deepcopy(args)
        assert_same(compiled(*given), function(*copy.deepcopy(args)))
        assert_same(list(given), list(args))


@pytest.mark.parametrize("name", [
    "longest common subsequence", "edit distance", "product", "product of arrays", "product over integers",
    "shortest paths", "relaxed",
])  # fmt: skip
def test_they_are_loops_of_the_program(name):
    function, args = CASES[name]
    compiled = cyxla.jit(function, fallback="error")
    compiled(*copy.deepcopy(args))
    entry = next(iter(compiled.programs.entries.values()))
    instructions = [i for c in entry.lowered.module.post_order() for i in c.instructions]
    assert "while" in {i.opcode for i in instructions}
    assert len(instructions) < 1000


def doubled(rows):
    for i in range(len(rows)):
        for j in range(len(rows[0])):
            rows[i][j] *= 2
    return rows


def first_rows(rows):
    return rows, rows[1], rows[0][1]


def last_row(rows):
    for row in rows:  # noqa: B007
        pass
    return row


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning", "ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("function", [doubled, first_rows, last_row], ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [4, 12, 40])
def test_lists_of_lists_among_the_arguments(function, count):
    compiled = cyxla.jit(function, fallback="numpy")
    for _ in range(2):
        rows = [[0.25 * (i * j % 7) for j in range(5)] for i in range(count)]
        expected = copy.deepcopy(rows)
        same_rows = list(rows)
        found = compiled(rows)
        assert found == function(expected)
        assert rows == expected
        assert all(a is b for a, b in zip(rows, same_rows, strict=True))
        assert found is rows or found[0] is rows or found is rows[-1]
        assert not isinstance(found, tuple) or found[1] is rows[1]


def table_and_row(rows):
    table = [[0.0] * 3 for _ in range(20)]
    row = table[1]
    for i in range(20):
        for j in range(3):
            table[i][j] = rows[i][j]
    return table, row


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning", "ignore::cyxla.errors.LongTraceWarning")
def test_rows_that_are_returned_stay_rows_of_their_table():
    table, row = cyxla.jit(table_and_row, fallback="numpy")(MATRIX)
    assert table[1] is row


def eliminated(rows):
    for k in range(len(rows)):
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            for j in range(k, len(rows[0])):
                rows[i][j] -= factor * rows[k][j]
    return rows


def shortest_in_place(rows):
    for k in range(len(rows)):
        for i in range(len(rows)):
            for j in range(len(rows)):
                if rows[i][k] + rows[k][j] < rows[i][j]:
                    rows[i][j] = rows[i][k] + rows[k][j]


def next_generation(board):
    before = [[board[i][j] for j in range(len(board[0]))] for i in range(len(board))]
    for i in range(1, len(board) - 1):
        for j in range(1, len(board[0]) - 1):
            count = before[i - 1][j] + before[i + 1][j] + before[i][j - 1] + before[i][j + 1]
            if count > 2.0:
                board[i][j] = 0.0
            elif count > 1.5:
                board[i][j] = 1.0


def scaled_rows(rows):
    for row in rows:
        for j in range(len(row)):
            row[j] *= 0.5
    return rows[1]


def of_other_class(rows):
    for i in range(len(rows)):
        rows[i][i] = 1
    return rows


def held_rows(rows):
    held = []
    for row in rows:
        held.append(row)
    rows[0][0] = 9.0
    return held


def failing(rows):
    for i in range(len(rows)):
        rows[i][i] = 1.0 / (rows[i][i] - rows[3][3])


def greatest_row(rows):
    best, most = rows[0], sum(rows[0])
    for row in rows:
        total = sum(row)
        if total > most:
            best, most = row, total
    best[0] = -1.0
    return best, rows[0][0]


ON_ARGUMENTS = [
    eliminated, shortest_in_place, next_generation, scaled_rows, of_other_class, held_rows, failing,
]  # fmt: skip
KINDS = {
    "rows": lambda rows: rows,
    "one row": lambda rows: [rows[0]] * len(rows),
    "ragged": lambda rows: [*rows[:-1], rows[-1] + [1.0]],
    "other class": lambda rows: [*rows[:-1], [2, *rows[-1][1:]]],
}


def result_of(function, rows):
    try:
        return repr(function(rows))
    except ZeroDivisionError as error:
        return type(error), str(error)


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning", "ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", ON_ARGUMENTS, ids=lambda f: f.__name__)
def test_written_lists_of_lists_among_the_arguments(function, kind):
    compiled = cyxla.jit(function, fallback="numpy")
    for count in (4, 8, 12):
        numbers = (RNG.random((count, count)) + 0.5).tolist()
        given, expected = [KINDS[kind](copy.deepcopy(numbers)) for _ in range(2)]
        lists, others = list(given), list(expected)
        if function is failing and count < 4:
            continue
        assert result_of(compiled, given) == result_of(function, expected)
        assert repr(lists) == repr(others)
        assert all(a is b for a, b in zip(given, lists, strict=True))


@pytest.mark.parametrize("function", [eliminated, shortest_in_place, next_generation, scaled_rows])
def test_arguments_are_written_in_loops_of_the_program(function):
    compiled = cyxla.jit(function, fallback="error")
    compiled((RNG.random((40, 40)) + 0.5).tolist())
    entry = next(iter(compiled.programs.entries.values()))
    assert "while" in {i.opcode for c in entry.lowered.module.post_order() for i in c.instructions}


@pytest.mark.parametrize("kind", ["rows", "one row"])
@pytest.mark.parametrize("function", [greatest_row, held_rows], ids=lambda f: f.__name__)
def test_rows_with_two_names_are_a_reason_to_run_plainly(function, kind):
    given = KINDS[kind]((RNG.random((40, 40)) + 0.5).tolist())
    expected = copy.deepcopy(given)
    with pytest.warns(cyxla.errors.FallbackWarning):
        found = cyxla.jit(function, fallback="numpy")(given)
    assert repr(found) == repr(function(expected))
    assert repr(given) == repr(expected)
