"""Lists from outside that a function first reads by C code, which looks for the elements in their memory."""

import array
import bisect
import collections
import copy
import functools
import heapq
import itertools
import json
import math
import operator

import numpy as np
import pytest

import cyxla


class Network:
    """Object with a list, as those that name the widths of layers."""

    def __init__(self):
        self.widths = [3, 5, 4]
        self.sorted = [1.0, 2.0, 3.0]


NETWORK = Network()


def add_in_place():
    sizes = kept = [8]
    sizes += NETWORK.widths
    return kept


def extend():
    sizes = [8]
    sizes.extend(NETWORK.widths)
    return sizes


def set_slice():
    sizes = [8, 9]
    sizes[1:] = NETWORK.widths
    return sizes


def unpack():
    first, *others = NETWORK.widths
    return first, others


def shapes():
    sizes = [2] + NETWORK.widths + [1]  # noqa: RUF005 - as many programs write it
    return {f"w{k}": np.zeros((sizes[k], sizes[k + 1])) for k in range(len(sizes) - 1)}


def push():
    heapq.heappush(NETWORK.sorted, 0.5)


def insert():
    bisect.insort(NETWORK.sorted, 2.5)


READS = {
    "list + it": lambda: [8] + NETWORK.widths,  # noqa: RUF005
    "it + list": lambda: NETWORK.widths + [8],  # noqa: RUF005
    "it + it": lambda: NETWORK.widths + NETWORK.widths,
    "list + it * 2": lambda: [8] + NETWORK.widths * 2,
    "list += it": add_in_place, "extend": extend, "slice": set_slice, "unpack": unpack, "shapes": shapes,
    "concat": lambda: operator.concat([8], NETWORK.widths),
    "sum": lambda: sum([[8], NETWORK.widths], []),  # noqa: RUF017
    "reduce": lambda: functools.reduce(operator.add, [[8], NETWORK.widths]),
    "star": lambda: [8, *NETWORK.widths],
    "tuple": lambda: tuple(NETWORK.widths),
    "sorted": lambda: sorted(NETWORK.widths),
    "chain": lambda: list(itertools.chain([8], NETWORK.widths)),
    "deque": lambda: list(collections.deque(NETWORK.widths, 2)),
    "copy": lambda: copy.copy(NETWORK.widths),
    "json": lambda: json.dumps(NETWORK.widths),
    "array": lambda: array.array("d", NETWORK.widths).tolist(),
    "dist": lambda: math.dist(NETWORK.widths, NETWORK.sorted),
    "list == it": lambda: [3, 5, 4] == NETWORK.widths,  # noqa: SIM300
    "list < it": lambda: NETWORK.widths > [0],
    "np.array": lambda: np.array([8] + NETWORK.widths),  # noqa: RUF005
    "push": push, "insert": insert,
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_first_reads(name, monkeypatch):
    expected = _run(READS[name], monkeypatch)
    assert _run(cyxla.jit(READS[name], platform="interpreter"), monkeypatch) == expected


def _run(function, monkeypatch):
    monkeypatch.setitem(globals(), "NETWORK", Network())
    results = [function() for _ in range(2)]
    return repr(results), vars(NETWORK)


TABLE = [[1.0, 2.0], [3.0, 4.0]]


def test_returned_elements_of_a_changed_list():
    compiled = cyxla.jit(lambda x: (x + TABLE[0][1], TABLE[0]), fallback="error")
    x = np.ones(2)
    assert compiled(x)[1] is TABLE[0]
    first, TABLE[0] = TABLE[0], [1.0, 2.0]
    first[0] = 99.0
    assert compiled(x)[1] is TABLE[0]
