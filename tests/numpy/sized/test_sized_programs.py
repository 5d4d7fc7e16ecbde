"""Programs in which arrays of run-time size go through branches, loops, comparisons of shapes and tables."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError

INPUTS = [
    np.array([1.0, 5, -1, 2, 9, 3, 3]), np.array([-1.0, -2]), np.array([2.0]), np.zeros(0), np.arange(12.0) - 3,
    np.array([4.0, 3, -2, 1]),
]  # fmt: skip


def size_after_a_branch(x):
    """The size of an array that a branch leaves has a bound, which was lost."""
    y = x[x > 0]
    if y.size > 2:
        y = y[1:]
    return np.zeros(len(y)), np.arange(y.size), np.full((len(y), 2), 1), np.ones(y.shape)


def size_after_a_loop(x):
    while x.size > 2:
        keep = np.abs(x) <= 2
        if keep.all():
            break
        x = x[keep]
    return np.ones(x.size)


def repeated_numbers(x):
    y = x[x > 0]
    n = y.size
    return np.repeat(7, n), np.repeat([1.5, 2], n), np.repeat(repeats=n, a=True), np.repeat(x[:1], n)


def repeated_by_counts(x):
    n = np.flatnonzero(x > 0)
    counts = np.array([1, 2, 3])[n % 3]
    return np.repeat(np.arange(len(n)), counts), np.repeat(x, (x > 0).astype(int)), np.repeat([4, 5], [n.size, 2])


def repeated_known_array(x):
    return np.repeat(np.array([5, 6, 7]), np.array([2, 0, 1])[np.flatnonzero(x[:3] > 0)])


def found_through_a_sorter(x):
    y = x[x > 0]
    order = np.argsort(y)
    return np.searchsorted(y, [1.5, 3, 99], sorter=order), np.searchsorted(y, y, "right", sorter=order)


def dtypes_of_sized(x):
    y = x[x > 0]
    kind = np.result_type(y, np.int8)
    return np.zeros(2, kind), np.can_cast(y, np.float32), np.iscomplexobj(y), np.zeros(1, np.common_type(y, x))


def compared_shapes(x):
    y, z = x[x > 0], x[x < 2]
    same = y.shape == z.shape, y.shape != z.shape, (y.size, 3) == (z.size, 3), [y.size] == [z.size, 1]
    return same, y.shape == (3,), y.shape[:1] == z.shape[:1] != x.shape, (y.sum(), 1) == (z.sum(), 2)


def compared_shapes_in_conditions(x):
    y, z = x[x > 0], x[x < 2]
    if y.shape != z.shape:
        return y - 1
    return y - z if y.shape == (len(z),) else z


def popped(x):
    """A loop on a condition takes elements off an array."""
    y, total = np.sort(x[x > 0]), 0.0
    while y.size > 0:
        total += y[-1]
        y = y[:-1]
    return total, y


def popped_while_another_condition_holds(x):
    y = np.sort(x[x > 0])
    while y.size > 2 and y[-1] > 2 * y[0]:
        y = y[:-1]
    return y


def halved(x):
    y, low = np.sort(x[x > -5]), 0
    while y.size > 1:
        h = y.size // 2
        if y[h] > 1:
            y = y[:h]
        else:
            y, low = y[h:], low + h
    return low, y


def merged(x):
    y, z = x[x > 0], x[x < 1]
    while y.size and z.size:
        if y[0] < z[0]:
            y = y[1:]
        else:
            z = z[1:]
    return y, z


def rows_dropped(x):
    table = np.stack([x, x + 1], 1)
    table = table[table[:, 0] > 0]
    while len(table) > 1:
        table = table[:-1]
    return table


def greatest_or_zero(x):
    """The dtype is that of the array, whether the number is one of NumPy or of Python."""
    x = x.astype(np.float32)
    y = x[x > 4]
    return x - (y.max() if y.size else 0), x * (x.std() if y.size else 1.0)


def written_in_a_loop_seen_by_a_view(x):
    """An operator in place did not reach the other names of an array of run-time size."""
    u = x[x > 0]
    v, w = u[1:], u
    for _ in range(20):
        u += 1
    return u, v, w


def written_in_a_loop_through_a_view(x):
    u = x[x > 0]
    v = u[:1]
    for _ in range(20):
        v *= 0.5
    return u


def written_in_a_loop_on_a_condition(x):
    u = x[x > 0]
    w = u
    while 0 < u.sum() < 200:
        u *= 2
    return u, w


def relax(y, n):
    for _ in range(n):
        y *= 0.5
        y += 1
    return len(y)


def written_by_a_helper(x):
    y = x[x > 0]
    return relax(y, 20), y


def written_and_read_by_a_view_in_a_loop(x):
    u, total = x[x > 0], 0.0
    v = u[::-1]
    for _ in range(20):
        u += 1
        total += v[:2].sum()
    return total, v


def operators_in_place(x):
    y, z, m = np.zeros(len(x)), x * 1, x > 1
    z += x[x > -9]
    y[1:] -= x[x > -9][:-1]
    m &= x[x > -9] > 0
    return y, z, m


def parts_of_complex_numbers(x):
    y = (x[x > 0] * 1j).astype(complex)
    y.real = 3
    y.imag *= 2
    return y


def sliced_by_a_step(x):
    y = x[x > 0]
    return y[:: len("ab")], y[1::2].mean() if y.size > 1 else 0.0


def methods_of_known_arrays(x):
    i = np.flatnonzero(x > 0)
    return x.take(i), x.repeat(x > 0), np.arange(20.0).take(i)


PROGRAMS = [
    size_after_a_branch, size_after_a_loop, repeated_numbers, repeated_by_counts, repeated_known_array,
    found_through_a_sorter, dtypes_of_sized, compared_shapes, compared_shapes_in_conditions, popped,
    popped_while_another_condition_holds, halved, merged, rows_dropped, greatest_or_zero,
    written_in_a_loop_seen_by_a_view, written_in_a_loop_through_a_view, written_in_a_loop_on_a_condition,
    written_by_a_helper, written_and_read_by_a_view_in_a_loop, operators_in_place, parts_of_complex_numbers,
    sliced_by_a_step, methods_of_known_arrays,
]  # fmt: skip


def outcome(function, x):
    try:
        with np.errstate(all="ignore"):
            return function(x.copy())
    except Exception as error:
        return error


def alike(got, want, place):
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want), place
        assert len(got) == len(want), place
        for g, w in zip(got, want, strict=True):
            alike(g, w, place)
    elif isinstance(want, Exception):
        assert isinstance(got, type(want)), (place, got)
    else:
        assert not isinstance(got, Exception), (place, got)
        assert (np.shape(got), np.asarray(got).dtype) == (np.shape(want), np.asarray(want).dtype), place
        rtol = 1e-6 if np.asarray(want).dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got, want, rtol=rtol, err_msg=str(place))


@pytest.mark.parametrize("sizes", ["exact", "any"])
@pytest.mark.parametrize("platform", ["cpu", "interpreter"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore:Degrees of freedom", "ignore:Mean of empty", "ignore::cyxla.RecompileWarning")
def test_programs(program, platform, sizes):
    compiled = cyxla.jit(program, platform=platform, sizes=sizes)
    for x in INPUTS:
        alike(outcome(compiled, x), outcome(program, x), (program.__name__, x))


def replaced_by_a_view_and_written(x):
    y = x[x > 0]
    z, k = y, 0
    while k < y.size:
        y = y[::-1]
        y[0] = 7.0
        k += 2
    return y, z


def cut_and_written(x):
    y = x[x > 0]
    z = y
    while y.size > 2:
        y = y[1:]
        y[0] = 7.0
    return y, z


def written_and_cut(x):
    y = x[x > 0]
    while y.size > 2:
        y[0] = 7.0
        y = y[1:]
    return y


@pytest.mark.parametrize("program", [replaced_by_a_view_and_written, cut_and_written, written_and_cut])
def test_arrays_with_other_names_that_a_loop_writes_and_replaces(program):
    """The array by its other name had its old elements."""
    with pytest.raises(TraceError, match=r"written|wrote"):
        cyxla.jit(program)(INPUTS[0])


def table_of(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    table[:, 0] = np.arange(len(a) + 1)
    table[0, :] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + cost)
    return table


def test_a_table_of_one_more_than_two_sizes():
    """Its bounds were too large, and each pair of sizes was compiled."""
    compiled, rng = cyxla.jit(table_of, sizes="any"), np.random.default_rng(0)
    for n, m in ((5, 7), (9, 4), (12, 20), (3, 0), (0, 0), (1, 1), (30, 31)):
        a, b = rng.integers(0, 4, n), rng.integers(0, 4, m)
        np.testing.assert_array_equal(compiled(a, b), table_of(a, b))
    assert compiled.cache_info().misses <= 3


def test_the_text_of_a_reshape_names_the_size():
    with pytest.raises(ValueError, match="cannot reshape array of size 3 into"):
        cyxla.jit(lambda x: x[x > 0].reshape(-1, 2))(np.array([1.0, 2, 3, -1]))


INTEGERS = {
    "full": lambda n: np.full(3, n, np.uint8), "array": lambda n: np.array([n, 1], np.int8),
    "asarray": lambda n: np.asarray(n, np.uint8), "list in place": lambda n: _written(slice(0, 2), (n, 3)),
    "indices": lambda n: _written([0, 1], [n, 3]), "r_": lambda n: np.r_[np.zeros(2, np.uint8), n],
}  # fmt: skip


def _written(key, values):
    x = np.zeros(3, np.uint8)
    x[key] = values
    return x


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_that_a_dtype_cannot_hold(name):
    """They wrapped around."""
    function = INTEGERS[name]
    compiled = cyxla.jit(lambda n: function(n))
    for n in (3, 100):
        np.testing.assert_array_equal(compiled(n), function(n))
    for n in (300, -200):
        with pytest.raises(OverflowError, match=f"Python integer {n} out of bounds"):
            compiled(n)


WRITES = {
    "copyto": np.copyto, "put": lambda x, n: np.put(x, [0], n), "putmask": lambda x, n: np.putmask(x, x < 9, n),
    "list": lambda x, n: x.__setitem__(slice(0, 2), (n, 3)), "insert": lambda x, n: np.insert(x, 0, n),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_integers_that_an_array_of_any_size_cannot_hold(name):
    function = WRITES[name]

    def program(x):
        made = function(x, len(x))
        return x if made is None else made

    compiled = cyxla.jit(program, sizes="any")
    for n in (4, 6, 9):
        np.testing.assert_array_equal(compiled(np.zeros(n, np.uint8)), program(np.zeros(n, np.uint8)))
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for uint8"):
        compiled(np.zeros(300, np.uint8))


def test_numpy_counts_what_is_beyond_the_least_length():
    x = np.array([0, 2, 2, 5])
    compiled = cyxla.jit(lambda x: np.bincount(x, minlength=3), fallback="numpy")
    np.testing.assert_array_equal(compiled(x), np.bincount(x, minlength=3))
