"""Indexing of traced arrays: drawn index expressions against NumPy, known while tracing and as arguments."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.numpy import jit

DTYPES = "bhilBHIL"


@st.composite
def blocks(draw):
    """Sizes that broadcast together."""
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


def axes_taken(item):
    return 0 if item is None or item is Ellipsis or isinstance(item, bool) else item.ndim if _is_mask(item) else 1


@st.composite
def items_for(draw, sizes, shape, beyond, masked):
    """What may index the first of these axes."""
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
    """An array's sizes and an index expression for it."""
    sizes = tuple(draw(st.lists(st.integers(1, 4) | st.integers(0, 1), max_size=4)))
    shapes = draw(blocks())
    beyond = draw(st.sampled_from([0] * 7 + [1]))
    items, axis, end = [], 0, draw(st.integers(0, len(sizes)))
    while axis < end:
        if draw(st.integers(0, 4)) == 0 and not any(i is Ellipsis for i in items):
            items.append(Ellipsis)
            axis, end = axis + len(sizes) - end, len(sizes)  # the last axes come after it
            continue
        free = 0 not in sizes and not any(isinstance(i, np.ndarray) for i in items)
        items.append(draw(items_for(sizes[axis:end], shapes[len(items) % 2], beyond, free)))
        axis += axes_taken(items[-1])
    if draw(st.integers(0, 20)) == 0:
        items.append(0)
    key = items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)
    return sizes, key


def outcome(function, *arrays):
    try:
        return function(*[a.copy() if isinstance(a, np.ndarray) else a for a in arrays]), None
    except Exception as error:
        return None, error


def same(function, *arrays, platform="interpreter"):
    """Assert that a function gives, traced, what NumPy gives, or fails as NumPy fails."""
    want, failure = outcome(function, *arrays)
    got, ours = outcome(jit(function, platform=platform), *arrays)
    if failure is not None:
        kinds = (IndexError, ValueError, TypeError)
        assert isinstance(ours, next(k for k in kinds if isinstance(failure, k))), (failure, ours, got)
        return failure, ours
    if ours is not None:
        raise AssertionError(f"NumPy gives {want!r}") from ours
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)
    return None, None


def traced_in(key, which):
    """A key with parts taken out, and how it is put together again."""
    items = key if isinstance(key, tuple) else (key,)
    loose = [
        k for k, i in enumerate(items) if which[k % len(which)] and isinstance(i, (np.ndarray, int)) and not _is_mask(i)
    ]

    def join(parts):
        given = dict(zip(loose, parts, strict=True))
        made = tuple(given.get(k, i) for k, i in enumerate(items))
        return made if isinstance(key, tuple) else made[0]

    return [items[k] for k in loose], join


def _is_mask(item):
    return isinstance(item, bool) or (isinstance(item, np.ndarray) and item.dtype == bool)


def numbered(sizes):
    return np.arange(1, int(np.prod(sizes)) + 1, dtype=np.int32).reshape(sizes)


@settings(max_examples=120)
@given(keys(), st.lists(st.booleans(), min_size=3, max_size=3))
def test_get(case, which):
    sizes, key = case
    parts, join = traced_in(key, which)
    same(lambda x, *p: x[join(p)], numbered(sizes), *parts)


@settings(max_examples=120)
@given(
    keys(), st.lists(st.booleans(), min_size=3, max_size=3), st.sampled_from(["number", "row", "whole", "extra", "bad"])
)
def test_assign(case, which, form):
    sizes, key = case
    parts, join = traced_in(key, which)
    shape = outcome(lambda: np.zeros(sizes)[key].shape)[0] or ()
    value = {
        "number": np.float64(-3.7), "row": -numbered(shape[-1:]).astype(np.int8), "whole": -numbered(shape) * 1.5,
        "extra": -numbered((1, 1, *shape)), "bad": np.zeros((*shape, 7)),
    }[form]  # fmt: skip

    def write(x, v, *p):
        x[join(p)] = v
        return x

    same(write, numbered(sizes), value, *parts)
