"""Views, errors, and unsupported calls, which rows of the table cannot express."""

import warnings

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from support.functions.function_rows import alike, outcome, rows

import cyxla
from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy import jit


def run(function, *arrays):
    return jit(function, platform="interpreter")(*arrays)


X = np.arange(24.0).reshape(2, 3, 4)
VIEWS = {
    "reshape": lambda x: x.reshape(6, 4),
    "reshape of a part": lambda x: x[:, 1].reshape(2, 2, 2),
    "reshape, more ones": lambda x: x[:, ::2].reshape(2, 1, 2, 4, 1),
    "ravel": lambda x: np.ravel(x),
    "transpose": lambda x: x.T,
    "transpose, axes": lambda x: np.transpose(x, (1, 0, 2)),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "rollaxis": lambda x: np.rollaxis(x, 2),
    "matrix_transpose": lambda x: x.mT,
    "squeeze": lambda x: np.squeeze(x[:1]),
    "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
    "flip": lambda x: np.flip(x, 1),
    "flipud": lambda x: np.flipud(x),
    "fliplr": lambda x: np.fliplr(x),
    "rot90": lambda x: np.rot90(x, 3),
    "split": lambda x: np.split(x, 3, axis=1)[1],
    "array_split": lambda x: np.array_split(x, 3, axis=-1)[0],
    "dsplit": lambda x: np.dsplit(x, 2)[1],
    "unstack": lambda x: np.unstack(x, axis=1)[2],
    "atleast_3d": lambda x: np.atleast_3d(x[0, 0]),
    "atleast_2d": lambda x: np.atleast_2d(x[0, 0]),
    "broadcast_arrays, alike": lambda x: np.broadcast_arrays(x, x)[0],
    "of a view of a view": lambda x: x.T[1:].swapaxes(0, 1)[::-1].reshape(3, 3, 2),
    "meshgrid without copies": lambda x: np.meshgrid(x[0, 0], copy=False)[0],
    "view as other bits": lambda x: x.view(np.float32).view(complex).view(float),
    "flat": lambda x: x.reshape(6, 4)[1:].reshape(-1),
    "asarray": lambda x: np.asarray(x),
    "real": lambda x: np.real(x),
}
COPIES = {
    "elements of flat": lambda x: x.flat[2:9],
    "all of flat": lambda x: x.flat[...],
    "reshape of turned": lambda x: x.T.reshape(-1),
    "ravel of turned": lambda x: np.ravel(x.T),
    "ravel of a part": lambda x: np.ravel(x[:, 1]),
    "column-major": lambda x: x.reshape(-1, order="F"),
    "flatten": lambda x: x.flatten(),
    "copy": lambda x: x.copy(),
    "array": lambda x: np.array(x),
    "concatenate": lambda x: np.concatenate([x]),
    "roll": lambda x: np.roll(x, 0),
    "roll by no shifts": lambda x: np.roll(x, []),
    "repeat": lambda x: np.repeat(x, 1, 0),
    "tile": lambda x: np.tile(x, 1),
    "tile once, by floats": lambda x: np.tile(x, [1.0, 1.0]),
    "ascontiguousarray of turned": lambda x: np.ascontiguousarray(x.T),
}


def write_to(part):
    def function(x):
        y = x.copy()
        p = part(y)
        p[...] = p * 2 + 1
        p[-1] += 5
        y[0] += 1
        return y, p

    return function


@pytest.mark.parametrize("name", [*VIEWS, *COPIES])
def test_views_share_memory_like_numpys(name):
    function = write_to((VIEWS | COPIES)[name])
    want = function(X)
    assert np.may_share_memory((VIEWS | COPIES)[name](X), X) == (name in VIEWS)
    for got, expected in zip(run(function, X), want, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "part",
    [
        lambda x: np.broadcast_to(x, (2, 2, 3, 4)),
        lambda x: x.diagonal(),
        lambda x: np.diag(x[0]),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0),
    ],
)
def test_read_only_views(part):
    def function(x):
        part(x)[...] = 1
        return x

    with pytest.raises(ValueError, match="read-only"):
        function(X.copy())
    with pytest.raises(ValueError, match="read-only"):
        run(function, X)


def test_writes_after_a_view_was_created():
    def function(x):
        y = x.copy()
        t = y.T
        y[0, 0, 0] = 50
        t[1, 1, 1] = 70
        return y, t, t.sum()

    for got, want in zip(run(function, X), function(X), strict=True):
        np.testing.assert_array_equal(got, want)


ERRORS = [
    lambda x: x.reshape(5, 5),
    lambda x: x.reshape(-1, -1),
    lambda x: x.reshape(7, -1),
    lambda x: np.transpose(x, (0, 1)),
    lambda x: np.transpose(x, (0, 0, 1)),
    lambda x: np.swapaxes(x, 0, 3),
    lambda x: np.moveaxis(x, 0, 5),
    lambda x: np.moveaxis(x, [0, 1], [0]),
    lambda x: np.rollaxis(x, 0, 9),
    lambda x: np.squeeze(x, 0),
    lambda x: np.expand_dims(x, 9),
    lambda x: np.expand_dims(x, (0, 0)),
    lambda x: np.broadcast_to(x, (3, 4)),
    lambda x: np.broadcast_arrays(x, np.ones(7)),
    lambda x: np.concatenate([x, x[0]]),
    lambda x: np.concatenate([]),
    lambda x: np.concatenate([x, x[:, :2]]),
    lambda x: np.concatenate([x, x], 3),
    lambda x: np.concatenate([x[0, 0, 0]]),
    lambda x: np.stack([x, x[0]]),
    lambda x: np.stack([x, x], 5),
    lambda x: np.split(x, 5),
    lambda x: np.split(x, 0),
    lambda x: np.hsplit(x[0, 0, 0], 1),
    lambda x: np.dsplit(x[0], 1),
    lambda x: np.flip(x, 3),
    lambda x: np.rot90(x[0, 0]),
    lambda x: np.rot90(x, 1, (0, 0)),
    lambda x: np.diag(x),
    lambda x: np.diagonal(x[0, 0]),
    lambda x: np.diagonal(x, 0, 1, 1),
    lambda x: np.repeat(x, -1),
    lambda x: np.repeat(x, [1, 2], 2),
    lambda x: np.repeat(x, [[1]]),
    lambda x: np.tile(x, -1),
    lambda x: np.tile(x, 2.0),
    lambda x: np.tile(x, np.zeros(2)),
    lambda x: np.vander(x[0, 0], -1),
    lambda x: np.delete(x, 99, 0),
    lambda x: np.insert(x, 99, 0, 1),
    lambda x: np.pad(x, -1),
    lambda x: np.pad(x, 1.5),
    lambda x: np.pad(x, 1, mode="other"),
    lambda x: np.pad(x, 1, mode="edge", constant_values=1),
    lambda x: np.pad(x, (1, 2, 3)),
    lambda x: np.pad(x[:0], 1, mode="edge"),
    lambda x: np.tril(x[0, 0, 0]),
    lambda x: np.block([[x], x]),
    lambda x: np.block([]),
    lambda x: np.block((x, x)),
    lambda x: np.vander(x),
    lambda x: np.meshgrid(x, indexing="no"),
    lambda x: np.ravel(x, "Q"),
    lambda x: np.full_like(x, 3, dtype=np.uint8, shape=-2),
    lambda x: np.linspace(x, 1, -3),
    lambda x: np.atleast_1d(x).reshape("a"),
    lambda x: np.concatenate([x, x], dtype=int, casting="safe"),
    lambda x: np.copyto(np.zeros_like(x, dtype=int), x),
    lambda x: np.roll(x, 1, 7),
    lambda x: np.roll(x, (1, 2, 3), (0, 1)),
    lambda x: np.column_stack(x[0, 0, 0]),
    lambda x: np.matrix_transpose(x[0, 0]),
    lambda x: np.array(x, copy=False, dtype=np.float32),
    lambda x: x.reshape(3, -1, order="Z"),
]


@pytest.mark.parametrize("call", ERRORS, ids=range(len(ERRORS)))
def test_errors_equal_numpys(call):
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever NumPy raises
        call(X.copy())
    with pytest.raises(Exception) as found:  # noqa: PT011
        run(call, X)
    assert not isinstance(found.value, cyxla.errors.InternalError)
    theirs = next(
        c
        for c in (np.exceptions.AxisError, IndexError, TypeError, ArithmeticError, ValueError)
        if isinstance(expected.value, c)
    )
    assert isinstance(found.value, theirs), repr(found.value)


UNSUPPORTED = {
    "repeat": lambda x: np.repeat(x, x.astype(int).ravel()),
    "insert": lambda x: np.insert(x, [x.astype(int)[0, 0, 0]], 1),
    "pad": lambda x: np.pad(x, 1, mode=print),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_functions_name_alternatives(name):
    with pytest.raises((UnimplementedError, TraceError), match=name) as found:
        run(UNSUPPORTED[name], X)
    assert "mend:" in str(found.value)


def test_out_of_joins():
    def function(x):
        out = np.empty((4, 3, 4))
        same = np.concatenate([x, x], out=out)
        np.stack([x, x + 1], out=out.reshape(2, 2, 3, 4))
        return same, out

    for got, want in zip(run(function, X), function(X), strict=True):
        np.testing.assert_array_equal(got, want)


def test_shift_by_a_traced_number():
    for k in (-30, -1, 0, 3, 24, 99):
        np.testing.assert_array_equal(run(lambda x, k: np.roll(x, k), X, np.int32(k)), np.roll(X, k))
        np.testing.assert_array_equal(run(lambda x, k: np.roll(x, (k, 1), (1, 2)), X, k), np.roll(X, (k, 1), (1, 2)))


def test_sizes_are_python_numbers():
    def function(x):
        assert np.shape(x) == x.shape == (2, 3, 4)
        assert (np.size(x), np.size(x, 1), np.ndim(x), len(x)) == (24, 3, 3, 2)
        return x.reshape(np.size(x) // 2, -1)

    assert run(function, X).shape == (12, 2)


def test_flat_writes_to_the_array():
    def function(x):
        y = x.copy()
        y.T.flat[3] = 50
        y[0].flat = [1, 2]
        return y, y.flat[5]

    want = X.copy()
    want.T.flat[3] = 50
    want[0].flat = [1, 2]
    got, one = run(function, X)
    np.testing.assert_array_equal(got, want)
    assert one == want.flat[5]


WRITTEN_TO_FLAT = {
    "repeats": (slice(None, None, 2), [1, 2]), "is cut off": (slice(1, 3), np.arange(9.0)), "all": (Ellipsis, [1, 2]),
    "nothing": (slice(1, 1), [1, 2]), "of nothing": ([0, 1], []), "mask": (np.arange(24) % 3 == 0, [7, 8, 9]),
    "of two dimensions": (slice(1, None, 2), [[1.0], [2]]), "indices of two": ([[0, 1], [5, -1]], [1, 2, 3]),
    "number": (-1, 3.5), "number everywhere": (slice(None), 7), "tuple": ((slice(0, 3),), [1]),
    "sequence into one": (2, [5]), "out of range": (24, 1), "two dimensions": ((1, 2), 5),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN_TO_FLAT)
def test_assignment_to_flat(name):
    key, value = WRITTEN_TO_FLAT[name]

    def function(x):
        y = x.copy()
        y.transpose(1, 0, 2).flat[key] = value
        return y

    try:
        want = function(X)
    except (IndexError, ValueError) as failure:
        with pytest.raises(type(failure)):
            run(function, X)
    else:
        np.testing.assert_array_equal(run(function, X), want)


@pytest.mark.parametrize("dtype", ["?", "i8", "f4", "c16"])
@pytest.mark.parametrize("value", [7, [5], [1, 2], [[1, 2], [3, 4]], np.arange(30), []], ids=str)
def test_assignment_to_flat_by_a_traced_mask(value, dtype):
    integers = np.arange(24).reshape(4, 6)

    def program(x, limit):
        y = x.copy()
        y.T.flat[integers.T.ravel() % 5 > limit] = value
        return y

    array = (integers + 2**60 if dtype == "i8" else integers).astype(dtype)
    for limit in (-1, 2, 4):
        np.testing.assert_array_equal(run(program, array, limit), program(array, limit), strict=True)


def test_masks_of_other_sizes_of_flat():
    def function(x):
        x.flat[x[0, 0] > 0] = [1, 2]

    with pytest.raises(IndexError):
        function(X.copy())
    with pytest.raises(IndexError):
        run(function, X.copy())


def test_windows_see_later_writes():
    def function(x):
        y = x.copy()
        windows = np.lib.stride_tricks.sliding_window_view(y.T, (2, 3), (0, 1))
        y[0, 1] = -1
        return windows, windows.reshape(-1, 6).sum(axis=1)

    for got, want in zip(run(function, X), function(X), strict=True):
        np.testing.assert_array_equal(got, want)


def _written_base(x):
    y = x.copy()
    windows = as_strided(y, (2, 2), (8, 8))
    y[0, 1] = -1
    return windows, windows * 2


def _new_array(x):
    y = np.zeros(4)
    windows = as_strided(y, (3, 2), (8, 8))
    y[:] = x.ravel()[:4]
    return windows.sum(axis=1)


STRIDED = {
    "windows": lambda x: as_strided(x[0], (2, 3, 2, 2), x[0].strides * 2),
    "diagonal": lambda x: as_strided(x, (3,), (40,)),
    "moving mean": lambda x: as_strided(x[0], shape=(3, 2), strides=(8, 8)).mean(axis=1),
    "repeated": lambda x: as_strided(x, (2, *x.shape), (0, *x.strides)), "number": lambda x: as_strided(x, (), ()),
    "defaults": lambda x: (as_strided(x), as_strided(x, (2, 4))), "read-only": lambda x: as_strided(x, writeable=False),
    "part": lambda x: as_strided(x[1:], (2, 2), (8, 8)), "written base": _written_base, "new array": _new_array,
    "known": lambda x: x * as_strided(np.arange(4.0), (3, 1), (8, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", STRIDED)
def test_strided_views(name):
    got, want = run(STRIDED[name], X), STRIDED[name](X)
    for one, other in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        np.testing.assert_array_equal(one, other)
        assert one.flags.writeable == other.flags.writeable


def _written_view(x):
    y = np.zeros(4)
    windows = as_strided(y, (2, 2), (8, 8))
    windows += x[0, 0, :2]
    return y


REFUSED_STRIDES = {
    "write": (_written_view, "a write to a result of as_strided"),
    "order": (lambda x: as_strided(x.T, (2,), (8,)), "row-major"),
    "outside": (lambda x: as_strided(x, (3,), (800,)), "reads beyond"),
    "half an element": (lambda x: as_strided(x, (3,), (4,)), "reads beyond"),
}


@pytest.mark.parametrize("name", REFUSED_STRIDES)
def test_strided_views_that_are_refused(name):
    function, text = REFUSED_STRIDES[name]
    with pytest.raises(UnimplementedError, match=text):
        run(function, X)


def test_bytes_swapped_in_place():
    np.testing.assert_array_equal(run(lambda x: x.copy().byteswap(inplace=True), X), X.byteswap())
    with pytest.raises(UnimplementedError, match=r"ndarray\.resize"):
        run(lambda x: x.resize(3), X)


def test_may_share_memory():
    def function(x):
        assert np.may_share_memory(x.T[1:], x)
        assert not np.may_share_memory(x.copy(), x)
        return x

    run(function, X)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "shapes, letter", [(((3, 4),), "d"), (((2, 3, 4),), "h"), (((3, 4), (3, 4)), "F"), (((5,),), "?")]
)
def test_native_code_agrees_on_the_whole_table(shapes, letter):
    rng = np.random.default_rng(0)
    chosen = [row for row in rows("movement") + rows("creation") if shapes in row.shapes and letter in row.dtypes]
    arrays = chosen[0].arrays(rng, shapes, letter)
    pairs = [(row, call) for row in chosen for call in row.calls if outcome(call, arrays)[1] is None]
    assert len(pairs) > 9
    made = jit(lambda *given: [call(*given) for _, call in pairs])(*arrays)
    for got, (row, call) in zip(made, pairs, strict=True):
        alike(got, call(*[a.copy() for a in arrays]), row, row.name)


def test_assignment_to_shape():
    def function(x):
        y = x.copy()
        t, part = y.T, y[1]
        y.shape = (4, 6)
        part.shape = (12,)
        y[0] = 7
        part[3] = 70
        t[0, 0, 1] = 90
        made = np.zeros(6)
        view = made[1:]
        made.shape = (2, 3)
        made[1] = y[3, :3]
        view[0] = 4
        return y, t, part, made, view

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy deprecates it
        for got, want in zip(run(function, X), function(X), strict=True):
            np.testing.assert_array_equal(got, want)
    with pytest.raises((AttributeError, ValueError)):
        run(lambda x: setattr(x.T, "shape", (24,)), X)


SWAPPED = np.dtype("f8").newbyteorder()
OTHER_BYTE_ORDERS = {
    "concatenate": lambda x: np.concatenate([x, x], dtype=SWAPPED), "stack": lambda x: np.stack([x, x], dtype=SWAPPED),
    "astype": lambda x: x.astype(SWAPPED), "array": lambda x: np.array(x, SWAPPED),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_BYTE_ORDERS)
def test_results_of_non_native_byte_order(name):
    """They are results, which NumPy makes; nothing is computed with them."""
    function, x = OTHER_BYTE_ORDERS[name], np.array([1, 2.5], "f4")
    got, wanted = cyxla.jit(function, platform="interpreter")(x), function(x)
    np.testing.assert_array_equal(got, wanted)
    assert got.dtype == wanted.dtype == SWAPPED
    with pytest.raises(cyxla.errors.UnimplementedError, match=">f8"):
        cyxla.jit(lambda x: function(x) + x[0], platform="interpreter")(x)


def test_unknown_casting_rules_raise():
    with pytest.raises(ValueError, match="casting must be one of 'no', 'equiv', 'safe', 'same_kind', 'unsafe' "):
        cyxla.jit(lambda x: np.concatenate([x], casting="same_value"), platform="interpreter")(np.ones(2))


@pytest.mark.parametrize("mode", ["minimum", "maximum"])
def test_pad_with_stat_length_zero_raises(mode):
    for width in (0, 1):
        with pytest.raises(ValueError, match="stat_length of 0"):
            run(lambda x, w=width: np.pad(x, w, mode, stat_length=0), np.ones(2))


IN_MEMORY = {
    "row-major": lambda x: x, "column-major": np.asfortranarray, "permuted": lambda x: x.transpose(1, 0, 2),
    "cycled": lambda x: x.transpose(1, 2, 0), "with gaps": lambda x: x[:, ::2], "part of columns": lambda x: x.T[1:],
    "reversed": lambda x: x[::-1, :, ::-1],
}  # fmt: skip


@pytest.mark.parametrize("order", ["C", "F", "K"])
@pytest.mark.parametrize("layout", IN_MEMORY)
def test_orders_of_flat_arrays(layout, order):
    x = IN_MEMORY[layout](X)
    compiled = cyxla.jit(lambda x: (x.ravel(order), x.flatten(order), x[:, ::-1].ravel(order), x[1:].T.ravel(order)))
    for got, wanted in zip(compiled(x), compiled.__wrapped__(x), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("layout", IN_MEMORY)
def test_flat_arrays_in_order_of_memory_share_it_if_they_can(layout):
    def write(x):
        x.ravel("K")[1:3] = -1
        return x.sum()

    x, y = (IN_MEMORY[layout](X.copy()) for _ in range(2))
    compiled = cyxla.jit(write, fallback="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cyxla.errors.FallbackWarning)  # NumPy runs where gaps decide about sharing
        assert compiled(x) == write(y)
    np.testing.assert_array_equal(x, y)


def test_gaps_decide_about_the_order_of_flat_arrays():
    """Packed, the array would be column-major."""
    compiled = cyxla.jit(lambda x: x.ravel("A"))
    x = np.asfortranarray(X[0])
    np.testing.assert_array_equal(compiled(x), x.ravel("A"))
    with pytest.raises(UnimplementedError, match="depends on the memory of an array"):
        compiled(x[:, ::2])
