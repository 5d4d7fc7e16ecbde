"""Arrays of objects that one side of a branch replaces by new ones and the other side writes to in place."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError


class Holder:
    """An object with an attribute."""


HOLDER, ITEMS, LIST, GLOBAL = Holder(), {}, [], None


def reset():
    """Give all names arrays of their own, and return these."""
    global GLOBAL
    HOLDER.array, ITEMS["array"], LIST[:], GLOBAL = np.arange(4.0), np.arange(4.0), [np.arange(4.0)], np.arange(4.0)
    HOLDER.table = np.arange(12.0).reshape(3, 4)
    return held()


def held():
    return [HOLDER.array, ITEMS["array"], LIST[0], GLOBAL, HOLDER.table]


def attribute(v):
    if v[0] < 0:
        HOLDER.array = HOLDER.array * 0.5
    else:
        HOLDER.array[0] = v[0]


def item_of_dict(v):
    if v[0] < 0:
        ITEMS["array"][1:] += v[0]
    else:
        ITEMS["array"] = v * 2


def item_of_list(v):
    if v[0] < 0:
        LIST[0] = LIST[0] * 0.5
    else:
        np.add(LIST[0], v, out=LIST[0])


def global_name(v):
    global GLOBAL
    if v[0] < 0:
        GLOBAL = GLOBAL * 0.5
    else:
        GLOBAL[0] = v[0]


def another_name(v):
    array = HOLDER.array
    if v[0] < 0:
        HOLDER.array = array * 0.5
    else:
        array[0] = v[0]
    return array


def in_loops(v):
    if v[0] < 0:
        for _ in v:
            HOLDER.array = HOLDER.array * 0.5
    else:
        for k in range(20):
            HOLDER.array[0] += np.dot(v, v) * k


def in_nested_branches(v):
    if v[0] < 0:
        HOLDER.array = HOLDER.array * 0.5
    elif v[1] > 1:
        HOLDER.array[0] = v[0]
    else:
        HOLDER.array[1] = v[0]


def made_inside(v):
    made = {"array": np.zeros(4)}
    if v[0] < 0:
        made["array"] = made["array"] + 1
    else:
        made["array"][0] = v[0]
    return made["array"]


def view(v):
    made = {"row": HOLDER.table[1]}
    if v[0] < 0:
        made["row"] = made["row"] * 0.5
    else:
        HOLDER.table[1, 2] = v[0]
    return made["row"] + 0


FUNCTIONS = [
    attribute, item_of_dict, item_of_list, global_name, another_name, in_loops, in_nested_branches, made_inside, view,
]  # fmt: skip


@pytest.mark.parametrize("v", [np.ones(4), -np.ones(4), np.array([2.0, 3.0, 4.0, 5.0])])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_both_sides(function, v, backend):
    first = reset()
    want = [function(v), *held()]
    jitted = cyxla.jit(function, platform=backend, fallback="error")
    for _ in range(2):
        second = reset()
        got = [jitted(v), *held()]
        np.testing.assert_equal([*got, *second], [*want, *first])


def in_each_iteration(v):
    for k in range(4):
        if v[k] < 0:
            HOLDER.array = HOLDER.array * 0.5
        else:
            HOLDER.array[k] = v[k]


def test_writes_to_either_array_are_refused(backend):
    reset()
    with pytest.raises(TraceError, match="array is another array or a new one"):
        cyxla.jit(in_each_iteration, platform=backend, fallback="error")(np.ones(4))
