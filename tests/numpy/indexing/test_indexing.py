"""Indexing of traced arrays by random index expressions, known while tracing or traced, against NumPy."""

import contextlib
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cyxla
from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy import jit
from cyxla.numpy.control import fori_loop

DTYPES = "bhilBHIL"


@st.composite
def blocks(draw):
    """Draw sizes that broadcast together."""
    return draw(
        st.sampled_from([((3,), (3,)), ((2, 1), (3,)), ((1,), (2,)), ((2, 2), ()), ((0,), (1,)), ((2,), (2, 1))])
    )


@st.composite
def slices(draw, size):
    bound = st.none() | st.integers(-size - 2, size + 2)
    return slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))


@st.composite
def index_arrays(draw, size, shape, beyond):
    letter = draw(st.sampled_from(DTYPES))
    low = 0 if letter.isupper() else -size
    top = size - 1 + beyond
    values = draw(st.lists(st.integers(min(low, top), max(low, top)), min_size=int(np.prod(shape)), max_size=100))
    return np.array(values[: int(np.prod(shape))], letter).reshape(shape)


@st.composite
def masks(draw, sizes):
    n = int(np.prod(sizes))
    return np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool).reshape(sizes)


def axes_used(item):
    return 0 if item is None or item is Ellipsis or isinstance(item, bool) else item.ndim if _is_mask(item) else 1


@st.composite
def items_for(draw, sizes, shape, beyond, masked):
    """Return items that may index the first of these axes."""
    size = sizes[0]
    if not size:
        return draw(slices(size) | st.none())
    rank = draw(st.integers(1, min(2, len(sizes))))
    kinds = [
        st.integers(-size, size - 1 + beyond), slices(size), slices(size), index_arrays(size, shape, beyond), st.none(),
        index_arrays(size, shape, beyond),
    ]  # fmt: skip
    if masked:
        kinds += [masks(sizes[:rank]), st.booleans()]
    return draw(draw(st.sampled_from(kinds)))


@st.composite
def keys(draw):
    """Draw sizes of an array, and an index expression for it."""
    sizes = tuple(draw(st.lists(st.integers(1, 4) | st.integers(0, 1), max_size=4)))
    shapes = draw(blocks())
    beyond = draw(st.sampled_from([0] * 7 + [1]))
    items, axis, end = [], 0, draw(st.integers(0, len(sizes)))
    while axis < end:
        if draw(st.integers(0, 4)) == 0 and not any(i is Ellipsis for i in items):
            items.append(Ellipsis)
            axis, end = axis + len(sizes) - end, len(sizes)  # the last axes follow the ellipsis
            continue
        free = 0 not in sizes and not any(isinstance(i, np.ndarray) for i in items)
        items.append(draw(items_for(sizes[axis:end], shapes[len(items) % 2], beyond, free)))
        axis += axes_used(items[-1])
    if draw(st.integers(0, 20)) == 0:
        items.append(0)
    key = items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)
    return sizes, key


def result_or_error(function, *arrays):
    try:
        return function(*[a.copy() if isinstance(a, np.ndarray) else a for a in arrays]), None
    except Exception as error:
        return None, error


def check(function, *arrays, platform="interpreter", several=False):
    """Assert that a traced function returns what NumPy returns, or raises one of NumPy's errors."""
    want, failure = result_or_error(function, *arrays)
    got, ours = result_or_error(jit(function, platform=platform), *arrays)
    if failure is not None:
        kinds = (IndexError, ValueError, TypeError, OverflowError)
        alike = kinds if several else next(k for k in kinds if isinstance(failure, k))
        assert isinstance(ours, alike), (failure, ours, got)
        return failure, ours
    if ours is not None:
        raise AssertionError(f"NumPy gives {want!r}") from ours
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)
    return None, None


def trace_parts(key, which):
    """Return the parts of a key that become traced, and a function that builds the key from them."""
    items = key if isinstance(key, tuple) else (key,)
    loose = [
        k for k, i in enumerate(items) if which[k % len(which)] and isinstance(i, (np.ndarray, int)) and not _is_mask(i)
    ]

    is_tuple = isinstance(key, tuple)
    known = tuple((i.tolist(), i.dtype.str, i.shape) if isinstance(i, np.ndarray) else i for i in items)

    def join(parts):  # arrays of an enclosing function would be traced, those of numbers are known
        given = dict(zip(loose, parts, strict=True))
        made = [np.array(i[0], i[1]).reshape(i[2]) if isinstance(i, tuple) else i for i in known]
        result = tuple(given.get(k, i) for k, i in enumerate(made))
        return result if is_tuple else result[0]

    return [items[k] for k in loose], join


def _is_mask(item):
    return isinstance(item, bool) or (isinstance(item, np.ndarray) and item.dtype == bool)


def arange_of(sizes):
    return np.arange(1, int(np.prod(sizes)) + 1, dtype=np.int32).reshape(sizes)


@settings(max_examples=120)
@given(keys(), st.lists(st.booleans(), min_size=3, max_size=3))
def test_get(case, which):
    sizes, key = case
    parts, join = trace_parts(key, which)
    check(lambda x, *p: x[join(p)], arange_of(sizes), *parts)


@settings(max_examples=120)
@given(
    keys(), st.lists(st.booleans(), min_size=3, max_size=3), st.sampled_from(["number", "row", "whole", "extra", "bad"])
)
def test_assign(case, which, form):
    sizes, key = case
    parts, join = trace_parts(key, which)
    shape, error = result_or_error(lambda: np.zeros(sizes)[key].shape)
    if error is not None:  # NumPy checks the value first or last, depending on the key; a number is always valid
        shape, form = (), "number"
    value = {
        "number": np.float64(-3.7), "row": -arange_of(shape[-1:]).astype(np.int8), "whole": -arange_of(shape) * 1.5,
        "extra": -arange_of((1, 1, *shape)), "bad": np.zeros((*shape, 7)),
    }[form]  # fmt: skip

    def write(x, v, *p):
        x[join(p)] = v
        return x

    check(write, arange_of(sizes), value, *parts, several=bool(parts))


MASKS = [
    ((1, 1, 1), (Ellipsis, 0, False, np.array([False]), 0)),
    ((2, 3), (True, np.array([True, False]), 1)),
    ((2, 3), (np.array([False, True]), False)),
    ((2, 3, 1), (0, np.array([True, False, True]), Ellipsis, np.array([0, 0]))),
    ((1, 1, 1, 1), (0, np.array([False]), Ellipsis, np.array([0, 0, 0], np.int8), 0)),
    ((3, 4), (np.array([True, True, False]), np.array([1, 2, 3]))),
]


@pytest.mark.parametrize("sizes, key", MASKS)
def test_masks_of_arguments_beside_other_indices(sizes, key):
    def write(x, *parts):
        x[join(parts)] = -3
        return x

    x, masks = arange_of(sizes), [i for i in key if isinstance(i, np.ndarray)]

    def join(parts):
        remaining = iter(parts)
        return tuple(next(remaining) if p else i for i, p in zip(others, is_part, strict=True))

    is_part = tuple(isinstance(i, np.ndarray) for i in key)
    others = tuple(None if isinstance(i, np.ndarray) else i for i in key)
    for function in (lambda x, *parts: x[join(parts)], write):
        check(function, x, *masks)


# ------------------------------------------------------------------------------------------------------ traced bounds
def test_slices_with_traced_bounds():
    x = arange_of((10, 3))
    check(lambda x, i: x[i : i + 4], x, np.int64(3))
    check(lambda x, i: x[i - 2 : i + 1, ::-1], x, 5)
    check(lambda x, i: x[2 * i : 2 * (i + 1)], x, np.int8(4))
    check(lambda x, i: x[i : i + 4 : 2], x, np.uint8(6))
    check(lambda x, i: x[i : i - 3 : -1], x, 7)
    check(lambda x, i: x[i : i - 4 : -2, i - 7 : i - 6], x, 8)
    check(lambda x, i: x[i : i + 3], x, -6)
    check(lambda x, i: x[i : i - 3 : -1], x, -2)
    check(lambda x, i: x[i + 1 : i + 1], x, 3)


def test_assignment_to_slices_with_traced_bounds():
    def write(x, i):
        x[i : i + 3] = x[i - 1 : i + 2] * 2
        x[i : i + 4 : 2, 1] += 5
        part = x[i + 1 : i - 2 : -1]
        part[0] = 7
        return x

    for platform in ("interpreter", "cpu"):
        check(write, arange_of((9, 2)), np.int64(4), platform=platform)


@pytest.mark.parametrize("start", [7, -2, -20, 50])
def test_slices_of_traced_bounds_are_cut(start):
    check(lambda x, i: x[i : i + 4], np.arange(10.0), start)
    check(lambda x, i: x[i : i - 3 : -1], np.arange(10.0), start - 5)


@pytest.mark.parametrize(
    "read",
    [lambda x, i: x[i:], lambda x, i: x[:i], lambda x, i: x[i : 2 * i], lambda x, i: x[2:i], lambda x, i: x[i:2:-1]],
)
def test_slices_of_unknown_length(read):
    for i in (-20, -3, 0, 1, 2, 4, 7, 10, 30):
        check(read, np.arange(10.0), i)


def test_step_of_a_slice_is_static():
    check(lambda x, i: x[::i], np.arange(10.0), 2)


def test_slice_of_a_computed_step_raises():
    with pytest.raises(TraceError, match="cannot be the step of a slice") as caught:
        jit(lambda x: x[:: x[0].astype(int)], platform="interpreter")(np.ones(10))
    assert "test_indexing.py" in caught.value.where


def test_slice_longer_than_its_axis():
    check(lambda x, i: x[i : i + 4], np.arange(3.0), 0)


# ---------------------------------------------------------------------------------------------------- indices too big
def test_traced_index_out_of_range_raises_at_run_time(backend):
    function = jit(lambda x, i: x[i], platform=backend)
    x = np.arange(5.0)
    np.testing.assert_array_equal(function(x, np.array([-5, 4])), [0, 4])
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5") as caught:
        function(x, np.array([1, 2, 7, -9]))
    assert "test_indexing.py:" in str(caught.value)
    with pytest.raises(IndexError, match="index -6 "):
        function(x, np.array([1, -6]))


@pytest.mark.parametrize("letter", DTYPES)
def test_indices_of_every_type_are_checked(letter):
    function = jit(lambda x, i: x[:, i], platform="interpreter")
    x = arange_of((2, 300))
    error = pytest.raises(IndexError, match="out of bounds for axis 1 with size 300")
    with error if letter not in "bBLQ" else contextlib.nullcontext():  # of 8 bits, or -1 of int64
        function(x, np.array([3, np.iinfo(letter).max], letter))


def test_uint64_index_in_error_message():
    with pytest.raises(IndexError, match="index 18446744073709551615 is out"):
        jit(lambda x, i: x[i], platform="interpreter")(np.zeros(3), np.uint64(2**64 - 1))


def test_assignment_out_of_range_raises():
    def write(x, i):
        x[i] = 1
        return x

    for index in (np.int64(5), np.array([0, 5])):
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            jit(write, platform="interpreter")(np.zeros(5), index)


@pytest.mark.parametrize("key", [[2**64 - 1, 1], [2**64 - 4], [2**63], [4]])
def test_indices_of_uint64_are_read_as_int64(key, backend):
    key = np.array(key, np.uint64)
    check(lambda x, i: x[i], arange_of((4,)), key, platform=backend)
    check(lambda x: x[key], arange_of((4,)), platform=backend)

    def write(x, i):
        x[i] = -1
        return x

    check(write, arange_of((4,)), key, platform=backend)


@pytest.mark.parametrize("index", [np.array([9, -9, 2]), np.int64(9)])
def test_clamped_indices(index):
    def both(x, i):
        x[i] += 10
        return x, x[i]

    near = np.clip(index, -5, 4)
    got = jit(both, platform="interpreter", bounds="clamp")(np.arange(5.0), index)
    for g, w in zip(got, both(np.arange(5.0), near), strict=True):
        np.testing.assert_array_equal(g, w)


def test_unchecked_indices_have_no_checks():
    function = jit(lambda x, i: x[i], platform="interpreter", bounds="unchecked")
    assert function(np.arange(5.0), np.array([-1, 9])).shape == (2,)
    assert not lowered(function).fails


def lowered(function):
    (entry,) = function.programs.entries.values()
    return entry.lowered


@pytest.mark.parametrize(
    "read",
    [
        lambda x, i: x[np.argmax(x, 0)], lambda x, i: x[np.argsort(x[:, 0])], lambda x, i: x[i % 4],
        lambda x, i: x[i & 3],
        lambda x, i: x[np.clip(i, 0, 3)], lambda x, i: x[(x[0] > 2).astype(int)], lambda x, i: x[i % 2 + i % 3],
        lambda x, i: x[(x[0, 1:] > 1).sum() // 2],
        lambda x, i: x[-(i % 4)], lambda x, i: x[abs(i) // 8 % 4], lambda x, i: x[np.where(i > 1, 0, 3)],
        lambda x, i: x[np.argsort(x, 0)[::-1][:2].T.reshape(-1)], lambda x, i: fori_loop(0, 4,
        lambda k, s: s + x[k], x[0]),
        lambda x, i: fori_loop(1, 3, lambda k, s: s + x[k + 1] - x[k - 1], x[0]),
    ],
)  # fmt: skip
def test_indices_known_to_be_in_range_have_no_checks(read):
    function = jit(read, platform="interpreter")
    x, i = np.arange(20.0).reshape(4, 5), np.int64(6)  # arithmetic of a Python int would be checked for overflow
    np.testing.assert_array_equal(function(x, i), jit_free(read, x, i))
    assert not lowered(function).fails


def jit_free(function, *arrays):
    return function(*arrays)


@pytest.mark.parametrize(
    "index", [lambda i: np.where(i > 0, np.fmod(i, 4) + 4, np.fmod(i, 4)), lambda i: i % 4 + 1, lambda i: i % -4 - 2]
)
def test_indices_that_may_be_out_of_range_have_checks(index):
    function = jit(lambda x, i: x[index(i)], platform="interpreter")
    with pytest.raises(IndexError):
        function(np.zeros(4), 3 if index(3) >= 4 or index(3) < -4 else 1)


def test_index_errors_in_loops():
    function = jit(lambda x: fori_loop(0, 7, lambda k, s: s + x[k], 0.0), platform="interpreter")
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        function(np.zeros(5))


# ---------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    "key, message",
    [
        (7, "index 7 is out of bounds for axis 0 with size 3"),
        ((0, -5), "index -5 is out of bounds for axis 1 with size 4"),
        ((0, 0, 0), "too many indices for array: array is 2-dimensional, but 3 were indexed"),
        ((..., ...), "an index can only have a single ellipsis"), (1.0, "only integers, slices"),
        ("a", "only integers, slices"),
        (np.array([1.0]), "arrays used as indices must be of integer"), ([[0, 9]], "index 9 is out of bounds"),
        (([0, 1], [0, 1, 2]), "shape mismatch: indexing arrays could not be broadcast together with shapes"),
        (np.array([True, False]), "boolean index did not match indexed array along axis 0; size of axis is 3 but"),
    ],
)  # fmt: skip
def test_errors_are_those_of_numpy(key, message):
    with pytest.raises(IndexError, match=re.escape(message)):
        np.zeros((3, 4))[key]
    with pytest.raises(IndexError, match=re.escape(message)) as caught:
        jit(lambda x: x[key], platform="interpreter")(np.zeros((3, 4)))
    assert "test_indexing.py" in str(caught.value)


def test_values_that_do_not_broadcast_raise():
    def write(x, key, v):
        x[key] = v
        return x

    x = np.zeros((3, 4), np.int8)
    for key, value in [
        ((0, 0), [1]),
        (0, [1, 2]),
        ([0, 1], np.zeros(3)),
        (x == 0, np.zeros((2, 2))),
        (0, 300),
        (0, np.nan),
    ]:
        failure, ours = check(lambda x, key=key, value=value: write(x, key, value), x)
        assert failure is not None, key
        assert isinstance(ours, type(failure))


# ---------------------------------------------------------------------------------------------------------- masks
def test_masks_of_arguments():
    x, m, v = arange_of((3, 4)), arange_of((3, 4)) % 3 == 0, np.arange(4, dtype=np.int32)

    def write(x, m, v):
        x[m] = 1
        x[m] += 2
        x[x > 9] = x[x > 9] * 2 - v[0]
        x[m] = v
        x[:, m[0]] -= 1
        x[m[:, 0], 1:] *= v[1:]
        x[0, m[1]] = x[1, m[1]]
        x[~m] = -x[~m]
        np.minimum(x[m], 2, out=x[m]) if isinstance(x, np.ndarray) else None
        return x

    for platform in ("interpreter", "cpu"):
        check(write, x, m, v, platform=platform)


def test_sums_over_masks():
    x = arange_of((3, 4)) * 1.5
    check(
        lambda x: np.stack([x[x > 4].sum(), x[x > 4].mean(), np.max(x[x > 4]), np.min(x[x < 9]), x[x > 99].prod()]), x
    )
    check(lambda x: np.stack([(x[x > 4] ** 2 > 50).any(), np.all(x[x > 4] > 5)]), x)
    check(lambda x: x[x > 4].astype(np.int8).sum(), x)
    check(
        lambda x: np.stack([x[x > 4].sum() / x[x > 4].size, x[x[:, 0] > 4].size, np.nanmean(x[x > 2]), np.amax(x)]), x
    )
    check(
        lambda x: np.stack([np.count_nonzero(x[x < 3]), np.count_nonzero(x[x[:, 0] > 4], axis=0)[1], x[x < 3].size]), x
    )
    check(lambda x: np.nansum(np.where(x > 3, np.nan, x)[x < 9]) + np.amin(x[x > 2]), x)


def test_wrong_number_of_values_for_a_mask_raises_at_run_time():
    def write(x, v):
        x[x > 2] = v
        return x

    function = jit(write, platform="interpreter")
    np.testing.assert_array_equal(function(np.arange(5), np.array([7, 8])), [0, 1, 2, 7, 8])
    with pytest.raises(ValueError, match="cannot assign 2 values to the 3 elements where the mask is true"):
        function(np.arange(6), np.array([7, 8]))


def test_maximum_of_no_elements_raises_at_run_time():
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum which has no identity"):
        jit(lambda x: x[x > 9].max(), platform="interpreter")(np.arange(5))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, m: x[m].mean(axis=0), lambda x, m: x[m].max(0), lambda x, m: x[m].sum((0, 2)),
        lambda x, m: x[m].mean(0, keepdims=True), lambda x, m: x[:, m[:3]].prod(axis=1),
        lambda x, m: x[:, m[:3]].min(axis=(1, 0)), lambda x, m: x[x > 0].sum(axis=0), lambda x, m: x[m].std(axis=-3),
        lambda x, m: x[x[..., 0] > 0].sum(0), lambda x, m: x[1, :, m[:2]].mean(axis=0), lambda x, m: x[m].sum(axis=5),
        lambda x, m: np.stack([x[m == k].mean(axis=0) for k in (True, False)]),
    ],
)  # fmt: skip
def test_masked_elements_are_reduced_along_axes(function):
    x, m = np.random.default_rng(0).normal(size=(4, 3, 2)), np.array([True, False, True, True])
    try:
        want = function(x, m)
    except np.exceptions.AxisError:
        with pytest.raises(np.exceptions.AxisError):
            jit(function, platform="interpreter")(x, m)
        return
    got = jit(function, platform="interpreter")(x, m)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: list(x[x > 0]), lambda x: float(x[x > 0]),
        lambda x: x[x > 0][:, None].tolist(), lambda x: np.roots(x[x > 0]),
        lambda x: x[x > 0].flat, lambda x: np.zeros(3) + np.asarray(list(x[x > 0])),
        lambda x: np.random.default_rng(0).normal(size=x[x > 0].shape), lambda x: np.poly(x[x > 0]),
        lambda x: np.interp(x, x, x[x > 0]),
    ],
)  # fmt: skip
def test_unsupported_operations_of_arrays_of_run_time_size(use):
    with pytest.raises((TraceError, TypeError), match=r"size|SizedArray|MaskedElements|cannot be traced") as caught:
        jit(use, platform="interpreter")(np.arange(5.0))
    assert not isinstance(caught.value, cyxla.errors.InternalError)


def test_length_of_arrays_of_run_time_size():
    for x in (np.arange(5.0), np.zeros(3), np.zeros(0)):
        length = jit(lambda x: len(x[x > 0]), platform="interpreter")(x)
        assert (type(length), length) == (int, len(x[x > 0]))
        check(lambda x: x * len(x[x > 0]), x)


# ------------------------------------------------------------------------------------------------------------- x.at
def test_at_updates():
    x, i = arange_of((4, 3)) * 1.0, np.array([0, 2, 0])
    for name, ufunc in [
        ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide),
        ("min", np.minimum),
        ("max", np.maximum), ("power", np.power),
    ]:  # fmt: skip
        for key, value in [(i, 2.0), (i, arange_of((3, 1))), ((slice(1, 3), 0), 3.0), (1, 2.0), (x > 5, 2.0)]:
            want = x.copy()
            ufunc.at(want, key, value)
            got, old = jit(lambda x, n=name, k=key, v=value: (getattr(x.at[k], n)(v), x), platform="interpreter")(x)
            np.testing.assert_array_equal(old, x)
            np.testing.assert_allclose(got, want, rtol=1e-15, err_msg=f"{name} {key}")


def test_at_sets_gets_and_applies():
    def function(x, i):
        return (
            x.at[i].get(mode="wrap"),
            x.at[i].get(mode="clip"),
            x.at[i].set(0, mode="clip"),
            x.at[1:].apply(np.sqrt),
            x,
        )

    x = np.array([1.0, 4.0, 9.0])
    got = jit(function, platform="interpreter")(x, np.array([4, -1]))
    for g, w in zip(got, [[4, 9], [9, 9], [1, 4, 0], [1, 2, 3], x], strict=True):
        np.testing.assert_array_equal(g, w)
    with pytest.raises(UnimplementedError):
        jit(lambda x: x.at[0].get(mode="fill"), platform="interpreter")(x)


# --------------------------------------------------------------------------------------- functions that write or refuse
@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: np.take(x, i + 9), lambda x, i: np.take(x, x), lambda x, i: np.take(x, i, axis=5),
        lambda x, i: np.take(x, i, mode="none"), lambda x, i: np.take_along_axis(x, i, 0),
        lambda x, i: np.choose(i + 5, [x, x]),
        lambda x, i: np.ravel_multi_index((i, i), (2, 1)), lambda x, i: np.unravel_index(i, (1, 1)),
        lambda x, i: np.place(x, x > 0, []), lambda x, i: np.place(x, [True], 1), lambda x, i: np.putmask(x, [True], 1),
        lambda x, i: np.compress([[True]], x), lambda x, i: np.where(x, x), lambda x, i: np.take(x[:0], i),
        lambda x, i: np.put(x, [99], 1), lambda x, i: np.put_along_axis(x, i, 1, 0),
        lambda x, i: np.choose(x + 0.5, [i, i]), lambda x, i: np.insert(x, x[0], 1), lambda x, i: np.ix_(i > 0, x),
    ],
)  # fmt: skip
def test_errors_of_functions_equal_numpys(call):
    failure, _ = check(call, np.ones((2, 3)), np.array([1, 0]))
    assert failure is not None


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int8, np.bool_, np.complex64])
@pytest.mark.parametrize("choices", [[300, 0, -1], [1.5, 2.0, np.inf], [1 + 2j, 0, 3]])
def test_choose_writes_to_any_dtype(choices, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of imaginary parts and infinities that are dropped
        check(lambda i, x: np.choose(i, list(x), out=np.zeros(3, dtype)), np.arange(3), np.array(choices)[:, None])


def test_lists_that_hold_traced_values():
    def function(x):
        x[:, 0] = [x[0, 1], 2, x[1, 1]]
        x[[x[0, 0] % 3, 1]] += 5
        return x[range(2)], x[:, [x[2, 2] % 2]]

    x = arange_of((3, 3))
    own = x.copy()
    for got, want in zip(jit(function, platform="interpreter")(x), function(own), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(x, own)


@pytest.mark.parametrize(
    "key", [np.s_[:, np.zeros(0, bool)], np.zeros((2, 0), bool), np.zeros((0, 3), bool), np.zeros((0, 5), bool)]
)
def test_masks_without_elements(key):
    check(lambda x: x[key], arange_of((2, 3, 4)))
    if isinstance(key, tuple):
        check(lambda x, m: x[:, m], arange_of((2, 3, 4)), key[1])


def test_traced_index_of_a_numpy_array():
    table = np.array([1.5, 2.5, 4.0])
    for index in (np.int64(1), np.array([[2, -1]])):
        check(lambda i: np.take(table, i) + np.take(table, indices=[0, 1]).sum(), index)
        check(lambda i: table[i], index)
    failure, _ = check(lambda i: table[i], np.int64(3))
    assert isinstance(failure, IndexError)


def test_indices_created_while_tracing_are_known():
    def function(x):
        first = np.arange(3)
        return x[first[1] :], x[first], x[np.array([True, False, True])], x[np.zeros(2, int)], x[first[:2].tolist()]

    x = arange_of((3, 2))
    for got, want in zip(jit(function, platform="interpreter")(x), function(x), strict=True):
        np.testing.assert_array_equal(got, want)


def writing(write):
    def function(x):
        write(x)
        return x

    return function


@pytest.mark.parametrize("value", [300, [300, 1, 2], 2j, [2j, 1, 1], float("nan"), 2.5, [2.5, 1, 3], -200, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda v: writing(lambda x: np.fill_diagonal(x, v)), lambda v: writing(lambda x: np.put(x, [0, 4, 5], v)),
        lambda v: writing(lambda x: np.place(x, x == 0, v)), lambda v: writing(lambda x: np.putmask(x, x == 0, v)),
        lambda v: writing(lambda x: x.__setitem__(0, v)), lambda v: writing(lambda x: x.__setitem__(x[:, 0] == 0, v)),
        lambda v: writing(lambda x: setattr(x, "flat", v)), lambda v: lambda x: np.insert(x, 1, v),
        lambda v: lambda x: np.where(x > 0, x, v), lambda v: lambda x: np.choose(x + 1, [x, v]),
    ],
)  # fmt: skip
def test_python_integers_out_of_range_of_the_dtype(function, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of imaginary parts that are dropped
        check(function(value), np.zeros((3, 3), np.int8))


def _index_that_a_branch_makes_a_float(x, k):
    total, count = 0.0, 0
    while count < 20:
        total += x[k]
        if total > 1e9:
            k += 0.5
        count += 1
    return total


def test_an_index_that_may_be_a_float_is_refused():
    with pytest.raises(TraceError, match="a float, or by the values an int"):
        cyxla.jit(_index_that_a_branch_makes_a_float, fallback="error")(np.ones(4), 1)
