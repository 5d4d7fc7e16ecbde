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


def replaced_behind_an_early_end(q):
    if q @ q < 1e-12:
        return np.identity(4)
    q = np.outer(q, q)
    return np.sin(q)


def replaced_on_the_other_side(q):
    if q @ q < 1e-12:
        result = np.identity(4)
    else:
        q = q[:, None] * q
        result = q + 1
    return result


def replaced_on_both_sides(q):
    if q @ q < 1e-12:
        q = q[:2]
        total = q.sum()
    else:
        q = np.array([[1.0, 2.0]]) + q[0]
        total = q.max()
    return total


def written_then_replaced(q):
    if q[0] > 0:
        q[1] = 7.0
        q = q.reshape(2, 2) * 2
        total = q[1, 0]
    else:
        total = q[1]
    return total


def replaced_in_a_loop(q):
    total = 0.0
    for k in range(40):
        part = q * k
        if part[0] > 3:
            part = part[:2]
            total += part.sum()
    return total


REPLACED = (
    replaced_behind_an_early_end, replaced_on_the_other_side, replaced_on_both_sides, written_then_replaced,
    replaced_in_a_loop,
)  # fmt: skip


@pytest.mark.parametrize("function", REPLACED, ids=lambda f: f.__name__)
def test_variables_that_nothing_reads_after_a_branch_have_any_shape(function):
    jitted = cyxla.jit(function, fallback="error")
    for values in ([1.0, 2.0, 3.0, 4.0], [0.0] * 4, [-1.0, 0.5, 0.0, 2.0]):
        want, got = np.array(values), np.array(values)
        np.testing.assert_allclose(jitted(got), function(want), rtol=1e-12)
        np.testing.assert_array_equal(got, want)
