"""Lists, dicts, attributes and names that loops and branches on traced values change, against plain Python."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError

LIST, DICT, COUNT = [], {}, 0


class Holder:
    """An object with attributes."""


OBJECT = Holder()


def state():
    return list(LIST), dict(DICT), COUNT, OBJECT.value, list(OBJECT.items)


def reset():
    global COUNT
    LIST[:], COUNT, OBJECT.value, OBJECT.items = [1.5], 0, 1, []
    DICT.clear()
    DICT["n"] = 0


def _add(found, value):
    found.append(value)


def _item_of_list(x):
    found = [1, 2]
    if x[0] > 0:
        found[0] = 7
    return found


def _items_of_dict(x):
    found = {"a": x[0], "b": x[1]}
    if x[0] > 0:
        found["b"] = x[1] * 2
        found["a"] += 1
    else:
        found["a"] = -found["a"]
    return found


def _appended_on_both_sides(x):
    found = []
    found.append(4) if x[0] > 0 else found.append(5)
    return found


def _list_of_enclosing_function(x):
    found = []

    def note(v):
        if v > 0:
            found.append(1.0)
        else:
            found.append(2.0)

    note(x[0])
    note(x[1])
    return found


def _variable_of_enclosing_function(x):
    total = 0.0

    def add(v):
        nonlocal total
        total += v

    for v in x:
        add(v)
    if x[0] > 0:
        add(x[1])
    return total


def _counted_calls(x):
    calls = [0]

    def scaled(v):
        calls[0] += 1
        return v * calls[0]

    return scaled(x) + scaled(x), calls[0]


def _counter(start):
    count = start

    def step(v):
        nonlocal count
        count = count + v
        return count

    return step


def _variable_of_ended_function(x):
    step = _counter(1.0)
    return step(x[0]), step(x[1])


def _appended_in_loop(x):
    found = []
    for _ in range(30):
        _add(found, 7)
    return len(found)


def _own_object(x):
    own = Holder()
    own.value = 1
    if x[0] > 0:
        own.value = 2
    return own.value


def _own_object_in_loop(x):
    own = Holder()
    own.value = 0
    for k in range(30):
        if x[k % 2] > 0:
            own.value += k
    return own.value


def _new_object_on_a_side(x):
    y = x.sum()
    if x[0] > 0:
        own = Holder()
        own.value = y * 2
        y = own.value + 1
    return y


def _item_of_outside_dict(x):
    if x[0] > 0:
        DICT["n"] += 1
    return x.sum()


def _global(x):
    global COUNT
    if x[0] > 0:
        COUNT += 1
    return x.sum()


def _global_in_loop(x):
    global COUNT
    for k in range(30):
        if x[k % 2] > 0:
            COUNT += k
    return x.sum()


def _attribute(x):
    if x[0] > 0:
        OBJECT.value = 3
    return x.sum()


def _attribute_in_loop(x):
    for k in range(30):
        if x[k % 2] > 0:
            OBJECT.value += 1
    return x.sum()


def _attribute_with_array(x):
    for _ in range(30):
        OBJECT.value = OBJECT.value + x
    return x.sum()


def _outside_list_in_loop(x):
    for _ in range(30):
        LIST.append(7)
    return x.sum()


def _outside_list_on_both_sides(x):
    if x[0] > 0:
        LIST.append(x[1])
    else:
        LIST.append(x[0])
    return x.sum()


RIGHT = [
    _item_of_list, _items_of_dict, _appended_on_both_sides, _list_of_enclosing_function, _appended_in_loop, _own_object,
    _variable_of_enclosing_function, _counted_calls, _variable_of_ended_function,
    _own_object_in_loop, _new_object_on_a_side, _item_of_outside_dict, _global, _global_in_loop, _attribute,
    _attribute_in_loop, _attribute_with_array, _outside_list_in_loop, _outside_list_on_both_sides,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("x", [np.array([1.0, 2.0]), np.array([-1.0, 2.0])], ids=["taken", "not taken"])
@pytest.mark.parametrize("function", RIGHT)
def test_changes_are_those_of_python(function, x):
    reset()
    wanted = function(x), state()
    reset()
    jitted = cyxla.jit(function, fallback="error")
    np.testing.assert_equal((jitted(x), state()), wanted)
    reset()
    np.testing.assert_equal((jitted(x), state()), wanted)


def _appended_on_one_side(x):
    found = []
    if x[0] > 0:
        found.append(7)
    return len(found)


def _appended_by_helper(x):
    found = []
    if x[0] > 0:
        _add(found, 7)
    return len(found)


def _set_on_one_side(x):
    found = {"a"}
    if x[0] > 0:
        found.add("b")
    return len(found)


def _new_key(x):
    found = {}
    if x[0] > 0:
        found["a"] = 3
    return len(found)


def _outside_list_on_one_side(x):
    if x[0] > 0:
        LIST.append(7)
    return x.sum()


def _new_attribute(x):
    own = Holder()
    if x[0] > 0:
        own.value = 3
    return getattr(own, "value", 0)


def _work_list(x):
    pending, count = [0], 0
    while pending:
        k = pending.pop()
        count += 1
        if x[k] > 0:
            pending += [1]
    return count


REFUSED = {
    _appended_on_one_side: "list",
    _appended_by_helper: "list",
    _set_on_one_side: "set",
    _new_key: "dict",
    _outside_list_on_one_side: "list",
    _new_attribute: "Holder",
    _work_list: "list",
}


@pytest.mark.parametrize("function", REFUSED)
def test_changes_that_need_the_condition_are_refused(function):
    reset()
    before = state()
    with pytest.raises(TraceError, match=f"adds items to a {REFUSED[function]} or removes some"):
        cyxla.jit(function, fallback="error")(np.array([1.0, -2.0]))
    assert state() == before
    with pytest.warns(cyxla.errors.FallbackWarning):
        assert cyxla.jit(function, fallback="numpy")(np.array([1.0, -2.0])) == function(np.array([1.0, -2.0]))


def _keep(value):
    kept = value

    def read(x):
        return x * kept

    return read


def _with_own_kept(x):
    return _keep(3.0)(x)


def test_functions_made_outside_keep_their_outside_state():
    """Code that was rewritten with an enclosing function is told from the same code of functions made elsewhere."""
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(cyxla.jit(_with_own_kept, fallback="error")(x), x * 3)
    kept = np.array([5.0, 6.0])
    jitted = cyxla.jit(_keep(kept), fallback="error")
    np.testing.assert_array_equal(jitted(x), x * kept)
    kept[:] = 7  # an array from outside is read at every call
    np.testing.assert_array_equal(jitted(x), x * 7)


def _branch_beside(x, held):
    y = x if x[0] > 0 else -x
    return y.sum(), len(held)


def test_too_many_objects_are_refused():
    with pytest.raises(TraceError, match="more than 10000 lists and objects"):
        cyxla.jit(_branch_beside, fallback="error")(np.ones(3), [[] for _ in range(20_000)])


def _kept_argument(values, kept):
    LIST.append(values)
    DICT["all"] = {"of": (values, kept)}
    OBJECT.items.append([values, values[0] * 2])
    return values[0] + 1


def _kept_outside(values, kept):
    kept.append(LIST)
    kept.append((DICT, values))
    return values[0] + 1


@pytest.mark.parametrize("function", [_kept_argument, _kept_outside])
def test_containers_are_kept_as_themselves(function):
    """Lists among the arguments and from outside, which the function keeps in one another, are no copies."""
    reset()
    compiled = cyxla.jit(function, fallback="error")
    for k in range(3):
        values, kept = [np.full(2, float(k))], []
        reset()
        np.testing.assert_array_equal(compiled(values, kept), values[0] + 1)
        if function is _kept_argument:
            assert [LIST[1] is values, OBJECT.items[0][0] is values] == [True, True]
            assert [part is known for part, known in zip(DICT["all"]["of"], (values, kept), strict=True)] == [
                True,
                True,
            ]
            assert kept == []
            np.testing.assert_array_equal(OBJECT.items[0][1], values[0] * 2)
        else:
            assert [kept[0] is LIST, kept[1][0] is DICT, kept[1][1] is values] == [True, True, True]
