"""Lists, dicts and dataclasses of which a traced condition chooses one: writes to it are not lost."""

import copy
from dataclasses import dataclass

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning


@dataclass
class Pair:
    left: float
    right: float


def write_to_chosen(t, x):
    best = t[0]
    for k in range(len(t)):
        if x[k] > 0:
            best = t[k]
    best[0] = -1
    return best


def append_to_chosen(t, x):
    row = t[0] if x[0] > 0 else t[1]
    row.append(5)
    return row


def write_to_other_name(t, x):
    if x[0] > 0:  # noqa: SIM108 - a statement
        row = t[0]
    else:
        row = t[1]
    t[0][1] = 9
    return row[1]


def write_to_another_row(t, x):
    row = t[0]
    if x[0] > 0:
        row = t[1]
    row[0] = 9
    return x


def exchange(t, x):
    if x[0] > 0:
        t[0], t[1] = t[1], t[0]
    return t[0]


def write_to_part(t, x):
    if x[0] > 0:  # noqa: SIM108 - a statement
        found = (t[0], 1)
    else:
        found = (t[1], 2)
    found[0][0] += 1
    return found[1]


def write_to_copies(t, x):
    if x[0] > 0:  # noqa: SIM108 - a statement
        row = list(t[0])
    else:
        row = list(t[1])
    row[0] += 1
    return row


def read_chosen(t, x):
    row = t[0] if x[0] > 0 else t[1]
    other = [0.0, 0.0]
    if x[1] > 0:
        other = t[2]
    return row[0] + row[1] * other[0], other[1]


def write_to_local(t, x):
    best = [0, 0]
    if x[0] > 0:
        best = [t[0][1], 5]
    best[0] += 1
    return best


def best_of_loop(t, x):
    best = [t[0][0], 0]
    for k in range(40):
        if x[k % 3] > best[0]:
            best = [t[1][1], k]
    best[0] += 1
    return best


ROWS = [[1, 2], [3, 4], [2, 2]]
#: Functions, their arguments beside an array, and whether NumPy runs them.
CASES = {
    "a list is written": (write_to_chosen, ROWS, True),
    "a list grows": (append_to_chosen, ROWS, True),
    "a list is written by another name": (write_to_other_name, ROWS, True),
    "a list of two": (write_to_another_row, ROWS, True),
    "a list of floats": (write_to_another_row, [[1.0, 2.0], [3.0, 4.0]], True),
    "lists are exchanged": (exchange, [[1.0, 2.0], [3.0, 4.0]], True),
    "a list in a tuple": (write_to_part, ROWS, True),
    "dicts": (write_to_part, [{0: 1.0}, {0: 2.0}], True),
    "copies": (write_to_copies, ROWS, False),
    "lists are read": (read_chosen, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], False),
    "a list without another name": (write_to_local, ROWS, False),
    "a list without another name in a loop": (best_of_loop, [[-5, 7], [1, 2]], False),
}


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_chosen_containers(name, sign):
    function, rows, _ = CASES[name]
    x = np.array([sign, -sign, sign])
    given, expected = copy.deepcopy(rows), copy.deepcopy(rows)
    np.testing.assert_equal(cyxla.jit(function, fallback="numpy")(given, x), function(expected, x))
    assert given == expected


@pytest.mark.parametrize("name", CASES)
def test_reasons_to_run_the_plain_function(name, recwarn):
    function, rows, is_refused = CASES[name]
    cyxla.jit(function, fallback="numpy")(copy.deepcopy(rows), np.array([1.0, -1.0, 1.0]))
    texts = [str(w.message) for w in recwarn if issubclass(w.category, FallbackWarning)]
    assert len(texts) == is_refused
    reasons = "chooses which", "a row of a list of lists", "is another list or a new one"
    assert all(any(reason in text for reason in reasons) for text in texts)


def test_chosen_attributes():
    def swap(p, q, x):
        if x[0] > 0:
            p, q = q, p
        p.left = 7.0
        return q.right

    pairs, expected = (Pair(1.0, 2.0), Pair(3.0, 4.0)), (Pair(1.0, 2.0), Pair(3.0, 4.0))
    with pytest.warns(FallbackWarning, match="chooses which Pair"):
        assert cyxla.jit(swap, fallback="numpy")(*pairs, np.ones(1)) == swap(*expected, np.ones(1))
    assert pairs == expected
