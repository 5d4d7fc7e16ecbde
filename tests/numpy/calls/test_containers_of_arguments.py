"""Lists, dicts and dataclasses among the arguments: those that a call changes, moves to other places, and returns."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, fields, is_dataclass

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning


@dataclass
class Node:
    name: str
    count: int
    parent: Node | None = None
    children: dict[str, Node] = field(default_factory=dict)


def swap_in_dict(d):
    d["a"], d["b"] = d["b"], d["a"]


def swap_rows_and_write(m):
    m[0], m[1] = m[1], m[0]
    m[0][0] = 10
    m[1][0] = m[0][1] + 20


def swap_in_dict_and_write(d):
    d["a"], d["b"] = d["b"], d["a"]
    d["a"][0] = 10
    d["b"][0] = 20


def write_and_replace(m):
    m[0][0] = 5
    m[0] = [7]


def pop_and_write(m):
    m.pop(0)
    m[0][0] = 5


def move_inwards(d):
    d["c"] = {"x": d["a"]}
    d["a"].append(3)
    del d["a"]


def eliminate(m):
    for i in range(len(m)):
        m[i], m[-1] = m[-1], m[i]
        for r in range(i + 1, len(m)):
            factor = m[r][i] / m[i][i]
            for c in range(i, len(m)):
                m[r][c] -= factor * m[i][c]
    return m


def add_child(root, name):
    root.children[name] = Node(name, root.count, root)
    root.count += 1


def link(one, other):
    one.parent = other
    other.children = {"x": one}


def itself(values):
    return values


def changed(values):
    values.append(values[0] + 1)
    return values


def parts_of_both(values, others):
    values.append(len(others))
    return {"changed": values, "same": (others, [1]), "count": len(values)}


def element(values):
    return values[1]


def array_and_list(x, values):
    x += 1
    return values, x.sum()


def add_to_tree_and_table(root, table):
    node = Node("new", 1, root)
    root.children["new"] = node
    table["new"][1] = node
    table["new"][0] += 1


def returns_what_it_stores(d, x):
    new = [x + 1]
    d["new"] = (new, {"again": new})
    return new, d


def same_list_twice(x):
    new = [x]
    return new, (new, [new])


def list_in_itself(d):
    new = [1]
    new.append(new)
    d["new"] = new


FUNCTIONS = {  # function and arguments
    "swap in a dict": (swap_in_dict, {"a": [1], "b": [2]}),
    "rows": (swap_rows_and_write, [[1, 3], [2, 4]]),
    "write after a swap in a dict": (swap_in_dict_and_write, {"a": [1], "b": [2]}),
    "write before a replacement": (write_and_replace, [[1], [2]]),
    "removal": (pop_and_write, [[1], [2]]),
    "move inwards": (move_inwards, {"a": [1], "b": [2]}),
    "elimination": (eliminate, [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0], [7.0, 8.0, 8.5]]),
    "new object with its owner": (add_child, Node("root", 1), "a"),
    "objects that hold each other": (link, Node("a", 1), Node("b", 2)),
    "new object in two places": (add_to_tree_and_table, Node("root", 1), {"new": [1, None]}),
    "stored and returned": (returns_what_it_stores, {}, 2.0),
    "twice in the result": (same_list_twice, 2.0),
    "list in itself": (list_in_itself, {}),
    "result": (itself, [1, [2.5]]),
    "changed result": (changed, [1, 2]),
    "parts of a result": (parts_of_both, [1], [2]),
    "element": (element, [1, [2]]),
    "written array": (array_and_list, np.arange(3.0), [1, 2]),
}


def _values_inside(value):
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    return [getattr(value, f.name) for f in fields(value)] if is_dataclass(value) else []


def _with_identities(value, numbers):
    """Return a value as text, with a number for each list, dict and object, the same where it occurs again."""
    inner = _values_inside(value)
    if isinstance(value, tuple) or (not inner and not isinstance(value, (list, dict))):
        return repr(value) if not inner else f"({', '.join(_with_identities(v, numbers) for v in inner)})"
    if id(value) in numbers:
        return f"#{numbers[id(value)]}"
    numbers[id(value)] = len(numbers)
    keys = f"{list(value)}" if isinstance(value, dict) else ""
    return f"#{numbers[id(value)]}={keys}{[_with_identities(v, numbers) for v in inner]}"


def _outcome(function, args):
    held = [(a, _values_inside(a)) for a in args]  # the containers as they were, with their first contents
    result = function(*args)
    return _with_identities((args, held, result), {})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_containers_are_those_that_python_leaves(name, backend):
    function, *args = FUNCTIONS[name]
    compiled = cyxla.jit(function, platform=backend, fallback="error")
    for _ in range(2):
        given, expected = copy.deepcopy(args), copy.deepcopy(args)
        assert _outcome(compiled, given) == _outcome(function, expected)


LISTS = []


def test_lists_kept_outside_are_those_of_the_caller(backend):
    def keep(values):
        LISTS.append(values)
        return len(LISTS)

    compiled = cyxla.jit(keep, platform=backend)
    LISTS.clear()
    given = [[1], [2]]
    assert [compiled(v) for v in given] == [1, 2]
    assert all(kept is v for kept, v in zip(LISTS, given, strict=True))


def append_to_first(values, others):
    values.append(1)
    return len(others)


def write_to_first(rows):
    rows[0][0] = 5
    return rows[1][0]


SHARED = {
    "twice": (append_to_first, lambda: [[1, 2]] * 2),
    "in a list": (write_to_first, lambda: [[[1]] * 2]),
    "object": (link, lambda: [Node("a", 1)] * 2),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_container_that_is_passed_twice_is_changed_once(name):
    function, arguments = SHARED[name]
    compiled = cyxla.jit(function, platform="interpreter", fallback="numpy")
    given, expected = arguments(), arguments()
    with pytest.warns(FallbackWarning, match="a list or dict twice"):
        outcome = _outcome(compiled, given)
    assert outcome == _outcome(function, expected)
