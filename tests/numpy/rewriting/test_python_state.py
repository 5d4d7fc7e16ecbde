"""Python objects that branches and loops change, and exceptions on one side of a branch, as NumPy has them."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError

X = np.linspace(-1.0, 2.0, 40)
pytestmark = pytest.mark.filterwarnings("ignore::cyxla.errors.LongTraceWarning")
COUNT, LEVEL, TOTALS, SEEN = 0, 0.5, {"a": 0.0}, []


class Box:
    def __init__(self):
        self.n, self.total = 0, 0.0


BOX = Box()


def _object_in_loop(x):
    box = Box()
    for v in x:
        box.n += 1
        box.total += v
    return box.n, box.total


def _object_in_branch(x):
    box = Box()
    if x[0] > 0:
        box.n = 5
    return box.n


def _item_in_branch(x):
    made, named = [0.0, 1.0], {"a": 0.0}
    if x[0] > 0:
        made[0], named["a"] = x[1], 2.0
    return made[0], named["a"], len(made)


def _append_on_both_sides(x):
    made = []
    if x[0] > 0:
        made.append(x[0])
    else:
        made.append(-x[1])
    return made[0]


def _global_in_loop(x):
    global COUNT
    for _ in x:
        COUNT += 1
    return COUNT


def _global_in_branch(x):
    global LEVEL
    if x[0] > 0:
        LEVEL = x[0] * 2
    return LEVEL


def _attribute_in_loop(x):
    for v in x:
        BOX.n += 1
        BOX.total += v
    return BOX.n, BOX.total


def _attribute_in_branch(x):
    if x[0] > 0:
        BOX.n = 7
    return BOX.n


def _dict_in_branch_and_loop(x):
    for v in x:
        if v > 0:
            TOTALS["a"] += v
    return TOTALS["a"]


def _list_outside(x):
    for v in x:
        SEEN.append(v)
    return len(SEEN)


def _inner_function(x):
    held, count = [0.0], 0

    def add(v):
        nonlocal count
        held[0] += v
        count += 1

    for v in x:
        add(v)
    return held[0], count


def _inner_function_in_branch(x):
    count = 0

    def add():
        nonlocal count
        count += 1

    if x[0] > 0:
        add()
    return count


def _raises(x):
    if x.min() < -2:
        raise ValueError("too small")
    return np.sqrt(np.abs(x))


def _raises_in_loop(x):
    total = 0.0
    for v in x:
        if v < -2:
            raise KeyError("too small")
        total += v
    return total


def _index_on_a_side(x):
    y = x.copy()
    if x[0] > 50:
        y[40] = 1
    return y


def _index_in_expression(x):
    return x[40] if x[0] > 50 else x[0]


def _shape_on_a_side(x):
    if x[0] > 50:
        return x.reshape(7, 7)
    return x


def _first_iteration_breaks(x):
    count = 0
    while True:
        count += 1
        if count >= 7 or x.sum() < 1e6:
            break
    return count


def _number_becomes_numpys(x):
    total = 0.0
    for v in x:
        total += v
    return np.ones(3, np.float32) * total


def _integer_becomes_numpys(x):
    total = 0
    for v in (x * 10).astype(np.int64):
        total += v
    return total, np.ones(3, np.float32) * total


FUNCTIONS = [
    _object_in_loop, _object_in_branch, _item_in_branch, _append_on_both_sides, _global_in_loop, _global_in_branch,
    _attribute_in_loop, _attribute_in_branch, _dict_in_branch_and_loop, _list_outside, _inner_function,
    _inner_function_in_branch, _raises, _raises_in_loop, _index_on_a_side, _index_in_expression, _shape_on_a_side,
    _first_iteration_breaks, _number_becomes_numpys, _integer_becomes_numpys,
]  # fmt: skip


def _reset():
    global COUNT, LEVEL
    COUNT, LEVEL = 0, 0.5
    TOTALS["a"] = 0.0
    SEEN.clear()
    BOX.__init__()


def _outcomes(function, inputs):
    _reset()
    made = []
    for x in inputs:
        try:
            result = function(x.copy())
        except Exception as error:
            made.append(type(error).__mro__)
            continue
        made.append((result, COUNT, LEVEL, TOTALS["a"], len(SEEN), BOX.n, BOX.total))
    return made


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function(function):
    inputs = (X, X, X + 3, X - 5)
    want = _outcomes(function, inputs)
    got = _outcomes(cyxla.jit(function, platform="interpreter", fallback="error"), inputs)
    for ours, theirs in zip(got, want, strict=True):
        if theirs[-1] is object:
            assert theirs[0] in ours
        else:
            for one, other in zip(_leaves(ours), _leaves(theirs), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)
                assert np.asarray(one).dtype == np.asarray(other).dtype


def _leaves(value):
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def test_errors_of_sides_are_those_of_numpy():
    def bad(x):
        if x[0] < 0:
            raise ValueError(f"{x[0]} is negative")
        return x

    f = cyxla.jit(bad, platform="interpreter", fallback="numpy")
    assert f(np.array([2.0])) == 2
    with pytest.raises(ValueError, match=r"-1.5 is negative"):
        f(np.array([-1.5]))


def _appends_on_one_side(x):
    made = []
    if x[0] > 0:
        made.append(1.0)
    return len(made)


def _removes_from_a_set(x):
    made = {1, 2}
    if x[0] > 0:
        made.discard(1)
    return len(made)


@pytest.mark.parametrize("function", [_appends_on_one_side, _removes_from_a_set])
def test_containers_of_another_size_on_one_side_are_refused(function):
    with pytest.raises(TraceError, match="a branch on a traced condition adds items"):
        cyxla.jit(function, platform="interpreter", fallback="error")(X)


def _exchanged(x, y):
    for _ in range((x > 0).sum()):
        x, y = y, x
    x[0] = 9
    return x


def _rebound(x, y):
    while x.sum() > 1e6:
        x = x / 2
    x[0] = 9
    return y


def _one_of_two(x, y):
    z = x.copy()
    for _ in range(30):
        if x[0] > 0:
            z = y
    y[0] = 9
    return z


def _copied_in_a_branch(x, y):
    for _ in range(30):
        if x[0] > 0:
            y = y.copy()
    y[0] = 9
    return x


@pytest.mark.parametrize("function", [_exchanged, _rebound, _one_of_two, _copied_in_a_branch])
def test_writes_to_one_of_several_arrays_are_refused(function):
    with pytest.raises(TraceError, match="is another array or a new one, by the number of iterations"):
        cyxla.jit(function, platform="interpreter", fallback="error")(X[:5].copy(), X[5:10].copy())


def _parts_of_a_known_array(x):
    y = np.ones(4)
    for _ in range(3):
        if x[0] > 1:
            y[1:2] *= 0.5
            y[3:2] *= 0.5
    return y


@pytest.mark.parametrize("first", [0.0, 2.0])
def test_branches_write_to_parts_of_known_arrays(first):
    x = np.array([first])
    found = cyxla.jit(_parts_of_a_known_array, platform="interpreter", fallback="error")(x)
    np.testing.assert_array_equal(found, _parts_of_a_known_array(x))


def _queens(x):
    def places(row, taken):
        if row == 4:
            return 1
        free = [c for c in range(4) if all(c != d and abs(c - d) != row - r for r, d in enumerate(taken))]
        return sum(places(row + 1, (*taken, c)) for c in free if c >= 0)

    return places(0, ()) + x


def test_functions_may_reach_themselves():
    np.testing.assert_array_equal(cyxla.jit(_queens, platform="interpreter")(X), X + 2)


def _unbound(x, n):
    for i in range(n):
        last = i
    return last, x


def test_results_without_a_value_are_unbound():
    with pytest.raises(UnboundLocalError, match="last"):
        cyxla.jit(_unbound, platform="interpreter", fallback="error", static=1)(X, 0)


def _bound_in_some_iterations(x, y, a, k):
    m = a.shape[1]
    s = float(k)
    c = k
    for _ in y:
        s = x.mean()
        for _ in range(int(abs(y[m])) % 6):
            for j in range(1, 3 - 1):  # noqa: B007 - it is read after the loop
                c = m % 1000
            c = j
    return s + c


def test_variables_that_are_not_read_may_be_unbound():
    arguments = np.ones(3), np.array([-1.25, -2.0, 0.5]), np.ones((3, 2)), 2
    found = cyxla.jit(_bound_in_some_iterations, platform="interpreter", fallback="numpy")
    assert found(*arguments) == _bound_in_some_iterations(*arguments)
