"""Lists and dicts with several names: what loops and branches write by one name is seen by the others."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
import pytest

import cyxla

LENGTH = 60  # iterations, too many to be unrolled


def written_after(x):
    a = [0.0, 0.0]
    b = a
    i = 0
    while i < len(x) and x[i] > 0:
        b = [b[0] + x[i], a[1]]
        i += 1
    b[0] = 9.0
    return a, b


def made_by_both_names(x):
    a = [0.0, 0.0]
    b = a
    for v in x:
        b = [b[0] + v, a[1]]
        a = b
    b[0] = 9.0
    return a, b


def first_one_written(x):
    a = [0.0, 0.0]
    b = a
    for v in x:
        a[0] = a[0] + v
        a = [a[0], a[1]]
    return a, b


def rows_written_in_turn(x, rows):
    a, b = rows
    for v in x:
        a[0] = a[0] + v
        a, b = b, a
    return b[1]


def arguments_written_in_turn(x, u):
    before, now = [0.0, 1.0], u
    for v in x:
        now[0] = before[1] + v
        before, now = now, before
    return before


def local_lists_in_turn(x):
    before, now = [0.0] * 4, [0.0] * 4
    for v in x:
        for j in range(1, 4):
            now[j] = before[j - 1] + v
        before, now = now, before
    return before[3], now[2]


def row_replaced(x, rows):
    a = rows[0]
    i = 0
    while i < len(x) and x[i] > 0:
        a = [a[1], x[i]]
        i += 1
    rows[0][0] = 5.0
    return a[0]


def other_row(x, rows):
    a, b = rows
    c = a
    i = 0
    while i < len(x) and x[i] > 0:
        c = b
        i += 1
    c[0] = 5.0
    return a[0]


def row_in_tuple(x, rows):
    state = rows[0], 0.0
    for v in x:
        state = state[0], state[1] + v
    state[0][0] = 5.0
    return state


def argument_in_dict(x, u):
    d = {"u": u, "n": 0.0}
    for v in x:
        d = {**d, "n": d["n"] + v}
    d["u"][0] = 4.0
    return d


def argument_in_each_dict(x, u):
    d = {"u": [0.0, 0.0], "n": 0.0}
    for v in x:
        d = {"u": u, "n": d["n"] + v}
    d["u"][0] = 4.0
    return d


def dict_replaced(x, d):
    found = d
    i = 0
    while i < len(x) and x[i] > 0:
        found = {"k": x[i]}
        i += 1
    found["k"] += 1
    return found


def dict_returned(x, d):
    i = 0
    while i < len(x) and x[i] > 0:
        d = {"k": d["k"] + x[i]}
        i += 1
    return d


def twice_in_a_list(x):
    a = [0.0, 1.0]
    c = [a, a]
    for _ in x:
        c = [c[1], c[0]]
    c[0][1] = 8.0
    return c


def made_twice(x):
    for v in x:
        a = [v, 1.0]
        c = [a, a]
    c[0][1] = 8.0
    return c


def dict_with_two_names(x):
    for v in x:
        a = {"k": v}
        b = a
    b["k"] = 8.0
    return a


def part_with_a_name(x):
    s = [x[0], [1.0, 2.0]]
    for v in x:
        s = [s[0] + v, s[1]]
        r = s[1]
    r[0] = 8.0
    return s


def appended_then_changed(x):
    now = [x[0], x[1]]
    found = []
    for v in x:
        now = [now[0] + v, now[1]]
        found.append(now)
    now[0] = x[2]
    return found[-1][0]


def appended_elements_changed(x):
    now = [x[0], x[1]]
    found = []
    for v in x:
        now = [now[0] + v, now[1]]
        found.append(now)
    found[-1][0] = x[2]
    return now


def changed_after_it_was_appended(x):
    found = []
    for v in x:
        r = [v, v]
        found.append(r)
        r[0] += x[1]
    return found[3]


def one_list_appended(x):
    a = [x[0], x[1]]
    found = []
    for _ in x:
        found.append(a)
    found[0][0] = x[2]
    return found[1]


def one_list_in_all_elements(x):
    a = [x[0], x[1]]
    found = [[v, a] for v in x]
    found[0][1][0] = x[2]
    return found[1][1]


def rows_appended(x, rows):
    found = []
    for _ in x:
        found.append(rows[0])
    return found[0], rows[0]


def made_on_a_side(x):
    if x[0] > 0:
        a = [x[1], x[2]]
        b = a
    else:
        a = [x[2], x[1]]
        b = [x[3], x[1]]
    a[0] = x[4]
    return b


def made_on_both_sides(x):
    if x[0] > 0:
        a = [x[1], x[2]]
        b = a
    else:
        a = [x[2], x[1]]
        b = a
    a[0] = x[4]
    return b


def twice_on_a_side(x):
    if x[0] > 0:
        a = [x[1], x[2]]
        c = [a, a]
    else:
        a = [x[3], x[2]]
        c = [a, a]
    c[0][0] = x[4]
    return c


def kept_if_a_side_fails(x, rows):
    a = rows[1]
    a[0] = 0.5
    if x[0] > 100:
        a = rows[5]
    a[1] = x[1]
    return a


def elements_written(x, u):
    rows = [[v, u[0]] for v in x]
    for r in rows:
        r[0] = r[0] + 1.0
    return rows[2][0], rows[3]


def elements_written_by_number(x, u):
    rows = [[v, u[0]] for v in x]
    for i, r in enumerate(rows):
        r[1] = r[0] + i
    return [r[1] for r in rows]


def element_at_traced_index(x, u):
    rows = [[v, u[0]] for v in x]
    k = int(abs(x[0]))
    r = rows[k]
    r[0] = 9.0
    return rows[k][0]


def list_in_a_tuple(x, u):
    rows = [(v, [u[0], v]) for v in x]
    k = int(abs(x[0]))
    rows[k][1][0] = 4.0
    return rows[k][1][0]


def dicts_written(x, u):
    rows = [{"a": v, "b": u[0]} for v in x]
    for r in rows:
        r["b"] += r["a"]
    return sum(r["b"] for r in rows)


def elements_of_two_lists(x, u):
    rows = [[v, u[0]] for v in x]
    found = [r for r in rows if r[0] > -3]
    found[0][1] = 3.0
    return [r[1] for r in rows]


def elements_in_turn(x, u):
    rows = [[v, u[0]] for v in x]
    for one, other in zip(rows, rows[1:], strict=False):  # noqa: RUF007 - as many programs write it
        other[1] = one[1] + other[0]
    return [r[1] for r in rows]


def last_element_written(x, u):
    rows = [[v, u[0]] for v in x]
    for r in rows:
        s = r[0]
    r[1] = s
    return rows[-1][1]


def best_element(x, u):
    rows = [[v, u[0]] for v in x]
    best = rows[0]
    for r in rows:
        if r[0] > best[0]:
            best = r
    return best[0] + best[1]


def best_element_written(x, u):
    rows = [[v, u[0]] for v in x]
    best = rows[0]
    for r in rows:
        if r[0] > best[0]:
            best = r
    best[1] = 100.0
    return [r[1] for r in rows]


def array_in_a_dict(x):
    a = np.zeros(3)
    d = {"a": a, "n": 0.0}
    for v in x:
        d = {"a": d["a"], "n": d["n"] + v}
    d["a"][0] = 3.0
    return list(a)


def arrays_exchanged_in_a_list(x):
    a, b = np.zeros(2), np.ones(2)
    c = [a, b]
    i = 0
    while i < len(x) and x[i] > 0:
        if x[3] > 0:
            c = [c[1], c[0]]
        i += 1
    for _ in x:
        c = [c[1], c[0]]
    b[:] = x[1]
    return [list(v) for v in c]


def row_of_a_table(x):
    table = [[0.0, 1.0] for _ in x]
    row = table[0] if x[0] > 0 else table[1]
    row[0] = 5.0
    return table


def last_row_of_a_table(x):
    table = [[0.0, 1.0] for _ in x]
    for i in range(len(x)):
        table[i][0] = x[i]
    for row in table:
        s = row[0]
    row[1] = s + 1
    return table[-1]


def row_of_a_known_table(x):
    table = [[0.0, 1.0] for _ in range(LENGTH)]
    s = x[4]
    for row in table:
        s = s + row[1]
        row = table[1]
    row[0] = x[5]
    for v in x:
        s = s + v
    return table, s


def best_row_of_a_table(x):
    table = [[0.0, 1.0] for _ in x]
    for i in range(len(x)):
        table[i][0] = x[i]
    best = table[0]
    for row in table:
        if row[0] > best[0]:
            best = row
    return best[0] + best[1]


def row_of_a_table_before_it_changes(x):
    table = [[0.0, 1.0] for _ in x]
    for i in range(len(x)):
        table[i][0] = x[i]
    row = table[0] if x[0] > 0 else table[1]
    table[0][0] = table[1][0] = 7.0
    return row[0]


def static_list(x):
    a = []
    b = a
    for _ in x:
        a = []
    a.append(x[0])
    return b


CASES = [value for value in list(vars().values()) if inspect.isfunction(value) and value.__module__ == __name__]
COMPILED = (  # which need not run plainly
    local_lists_in_turn, row_in_tuple, argument_in_dict, argument_in_each_dict, part_with_a_name, made_on_both_sides,
    dict_returned, kept_if_a_side_fails, best_element,
    best_row_of_a_table,
)  # fmt: skip
NUMBERS = np.linspace(-1, 2, LENGTH)
INPUTS = {"mixed": -NUMBERS, "negative": -abs(NUMBERS) - 0.5, "positive": abs(NUMBERS) + 0.5}


def arguments_of(function: Any, x: Any) -> list[Any]:
    known = {"x": x, "rows": [[1.0, 2.0], [3.0, 4.0]], "u": [3.0, 1.0], "d": {"k": 2.0}}
    return copy.deepcopy([known[name] for name in inspect.signature(function).parameters])


def shape_of(value: Any, seen: dict[int, int]) -> Any:
    """Return a value with numbers in place of the objects that have occurred before."""
    if not isinstance(value, (list, tuple, dict)):
        return value.tolist() if isinstance(value, np.ndarray) else float(value)
    if id(value) in seen:
        return f"object {seen[id(value)]}"
    if not isinstance(value, tuple):
        seen[id(value)] = len(seen)
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return type(value).__name__, [(k, shape_of(part, seen)) for k, part in items]


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning", "ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("function", CASES)
def test_container_names(function: Any, backend: str) -> None:
    compiled = cyxla.jit(function, fallback="numpy", platform=backend)
    for x in INPUTS.values():
        given, expected = arguments_of(function, x), arguments_of(function, x)
        found, wanted = compiled(*given), function(*expected)
        assert shape_of([given, found], {}) == shape_of([expected, wanted], {})


@pytest.mark.parametrize("function", COMPILED)
def test_containers_of_known_identity(function: Any) -> None:
    compiled = cyxla.jit(function, fallback="error")
    given, expected = arguments_of(function, INPUTS["positive"]), arguments_of(function, INPUTS["positive"])
    found, wanted = compiled(*given), function(*expected)
    assert shape_of([given, found], {}) == shape_of([expected, wanted], {})


def test_message() -> None:
    with pytest.raises(cyxla.errors.TraceError, match=r"b is another list or a new one(.|\n)*make a copy of it"):
        cyxla.jit(made_by_both_names, fallback="error")(INPUTS["positive"])


def swapped_numbers(x, h):
    a = [0.5, x[2]]
    b = a
    for _ in x:
        b = a[::-1]
    i = 0
    while i < len(x) and x[i] > h:
        a, b = b, a
        i += 1
    return a


def last_row(x):
    r = [x[0], 1.0]
    rows = [[v, v + 1] for v in x]
    for r in rows:
        s = r[0]
    return [*r, s]


def test_classes_of_a_loop_variable() -> None:
    x = np.arange(24.0)
    found, wanted = cyxla.jit(last_row, fallback="error")(x), last_row(x)
    assert [(type(v), v) for v in found] == [(type(v), v) for v in wanted]


@pytest.mark.parametrize("count", [0, 1, 6, 7])
def test_classes_of_swapped_numbers(count: int) -> None:
    x = np.arange(24.0) + 1
    x[count] = -1
    found, wanted = cyxla.jit(swapped_numbers, fallback="numpy")(x, 0.0), swapped_numbers(x, 0.0)
    assert [(type(v), v) for v in found] == [(type(v), v) for v in wanted]


def test_message_for_elements() -> None:
    with pytest.raises(cyxla.errors.TraceError, match=r"an element of a list(.|\n)*values\[i\]\[j\]"):
        cyxla.jit(element_at_traced_index, fallback="error")(*arguments_of(element_at_traced_index, INPUTS["positive"]))
