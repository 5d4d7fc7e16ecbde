"""Memory orders of arguments and results."""

import itertools

import numpy as np
import pytest

import cyxla
from cyxla._native.dispatch import axes_of
from cyxla.numpy import jit

SIZES = (4, 5, 6)
ORDERS = [
    ((0, 1, 2), (2, 1, 0)), ((2, 1, 0), (2, 1, 0)), ((2, 1, 0), (0, 1, 2)), ((1, 0, 2), (1, 0, 2)),
    ((0, 2, 1), (0, 2, 1)), ((2, 0, 1), (1, 2, 0)),
]  # fmt: skip


def array(axes, sizes=SIZES, seed=0):
    """Return an array whose dimensions have an order in memory, outermost first."""
    data = np.random.default_rng(seed).standard_normal([sizes[d] for d in axes])
    return data.transpose(np.argsort(axes))


def with_order(x, order):
    x = x.copy(order=order)
    x[x > 0] = 0
    return x


CASES = {
    "ufunc": lambda x, y: np.exp(x),
    "operator": lambda x, y: x * 2 + y,
    "transposed": lambda x, y: x.T,
    "of transposed": lambda x, y: x.T + 1,
    "moved": lambda x, y: np.moveaxis(x, 0, 2) * 2,
    "turned": lambda x, y: np.rot90(x),
    "flipped": lambda x, y: np.flip(x, 1),
    "slice": lambda x, y: x[1:, ::2],
    "repeated operand": lambda x, y: x + y[0],
    "repeated row": lambda x, y: x + np.ones(x.shape[2]),
    "repeated": lambda x, y: np.broadcast_to(x[0], (2, *x.shape[1:])),
    "new dimension": lambda x, y: x[:, None] * y,
    "outer": lambda x, y: np.multiply.outer(x[0], y[0]),
    "accumulate": lambda x, y: np.minimum.accumulate(x, 1),
    "comparison": lambda x, y: x > y,
    "order F": lambda x, y: np.add(x, y, order="F"),
    "order C": lambda x, y: np.add(x, y, order="C"),
    "order A": lambda x, y: np.add(x, y, order="A"),
    "sum": lambda x, y: x.sum(0),
    "sum, kept": lambda x, y: x.sum(1, keepdims=True),
    "max": lambda x, y: x.max((0,)),
    "any": lambda x, y: np.any(x > 0, 0),
    "mean": lambda x, y: np.mean(x, 0),
    "std": lambda x, y: x.std(axis=2),
    "nansum": lambda x, y: np.nansum(x, 0),
    "median": lambda x, y: np.median(x, 0),
    "argmax": lambda x, y: x.argmax(0),
    "cumsum": lambda x, y: np.cumsum(x, 1),
    "sort": lambda x, y: np.sort(x, 1),
    "argsort": lambda x, y: np.argsort(x, 1),
    "partition": lambda x, y: np.partition(x, 1, 1),
    "where": lambda x, y: np.where(x > 0, x, y),
    "clip": lambda x, y: np.clip(x, -1, 1),
    "round": lambda x, y: np.round(x, 1),
    "select": lambda x, y: np.select([x > 0, y > 0], [x, y], 0.0),
    "isclose": lambda x, y: np.isclose(x, y),
    "sinc": lambda x, y: np.sinc(x),
    "gradient": lambda x, y: np.gradient(x)[1],
    "diff": lambda x, y: np.diff(x, axis=1),
    "fft": lambda x, y: np.fft.fft(x, axis=0),
    "roll": lambda x, y: np.roll(x, 1, 1),
    "tril": lambda x, y: np.tril(x),
    "pad": lambda x, y: np.pad(x, 1, "edge"),
    "delete": lambda x, y: np.delete(x, 1, 1),
    "insert": lambda x, y: np.insert(x, 1, 5, 1),
    "concatenate": lambda x, y: np.concatenate([x, y], 1),
    "stack": lambda x, y: np.stack([x, y]),
    "stack last": lambda x, y: np.stack([x, y], 2),
    "vstack": lambda x, y: np.vstack([x, y]),
    "block": lambda x, y: np.block([[x], [y]]),
    "tile": lambda x, y: np.tile(x, 2),
    "take": lambda x, y: np.take(x, [0, 1], 1),
    "matmul": lambda x, y: x @ np.swapaxes(y, 1, 2),
    "einsum": lambda x, y: np.einsum("ijk,ijk->ijk", x, y),
    "einsum of sums": lambda x, y: np.einsum("ijk->ij", x),
    "einsum, order F": lambda x, y: np.einsum("ijk,ijk->ik", x, y, order="F"),
    "copy": lambda x, y: np.copy(x),
    "method copy": lambda x, y: x.copy(),
    "copy, order F": lambda x, y: x.copy("F"),
    "copy, order A": lambda x, y: x.copy("A"),
    "array, order F": lambda x, y: np.array(x, order="F"),
    "asarray, order C": lambda x, y: np.asarray(x, order="C"),
    "asfortranarray": lambda x, y: np.asfortranarray(x + 1),
    "astype": lambda x, y: x.astype(np.float32),
    "astype, order C": lambda x, y: x.astype(np.float32, order="C"),
    "zeros_like": lambda x, y: np.zeros_like(x) + 0,
    "full_like, order A": lambda x, y: np.full_like(x, 3.0, order="A"),
    "full, order F": lambda x, y: np.full(x.shape, x[0, 0, 0], order="F"),
    "reshape": lambda x, y: x.reshape(-1, x.shape[2]),
    "reshape, order F": lambda x, y: x.reshape(-1, x.shape[2], order="F"),
    "written in place": lambda x, y: with_order(x, "K"),
    "written in place, order F": lambda x, y: with_order(x, "F"),
    "constant from outside": lambda x, y: np.broadcast_to(x[0, 0, 0], (2, 2)) * np.array([[1.0, 2], [3, 4]], order="F"),
    "in a container": lambda x, y: {"a": [x + 1, (y * 2, x[0, 0, 0])], "b": x.sum()},
    "nested call": lambda x, y: jit(lambda z: z + 1)(x),
}


def layouts(value):
    """Return the memory orders of the arrays of a container."""
    if isinstance(value, dict):
        return {k: layouts(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [layouts(v) for v in value]
    return (axes_of(value), value.flags.writeable) if np.ndim(value) else None


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("name", CASES)
def test_result_layouts_equal_numpys(name, backend):
    traced = jit(CASES[name], platform=backend)
    for first, second in ORDERS:
        x, y = array(first), array(second, seed=1)
        made, wanted = traced(x, y), CASES[name](x, y)
        assert layouts(made) == layouts(wanted), (first, second)
        for m, w in zip(*([v] if isinstance(v, np.ndarray) else [v["a"][0]] for v in (made, wanted)), strict=True):
            np.testing.assert_allclose(m, w, rtol=1e-6, atol=1e-12)


def test_results_of_views_are_dense():
    made = jit(lambda x: (x[::2, ::-1], x.T[1:]))(np.ones((6, 5)))
    assert made[0].flags.c_contiguous
    assert made[1].flags.f_contiguous


def test_read_only_results(backend):
    def parts(x):
        window = np.lib.stride_tricks.sliding_window_view(x, 2, axis=0)
        return np.diagonal(x), np.diagonal(x)[1:], np.broadcast_to(x, (2, 3, 3)), window, np.diagonal(x) + 0, x[1:]

    made = jit(parts, platform=backend)(np.ones((3, 3)))
    assert [m.flags.writeable for m in made] == [False, False, False, False, True, True]


def test_signatures_include_the_memory_order():
    traced = jit(lambda x: x * 2)
    for axes in [*itertools.permutations(range(3))] * 3:
        x = array(axes)
        np.testing.assert_array_equal(traced(x), x * 2)
        assert axes_of(traced(x)) == axes_of(x)
    assert traced.cache_info().entries == 6


@pytest.mark.parametrize(
    "given, axes",
    [
        (np.ones((4, 5)), None),
        (np.ones((4, 10))[:, ::2], None),
        (np.ones((4, 5))[::-1, ::-1], None),
        (np.ones((4, 5)).T, (1, 0)),
        (np.ones((8, 5))[::2].T[::-1], (1, 0)),
        (np.ones((5, 1)).T, None),
        (np.ones((3, 1, 4)).transpose(2, 1, 0), (1, 2, 0)),
        (np.ones((4, 6))[:, None, ::2], None),
        (np.broadcast_to(np.ones(5), (4, 5)), None),
        (np.broadcast_to(np.ones((4, 1)), (4, 5)).T, None),
        (np.ones((0, 5)).T, None),
        (np.ones(3), None),
        (np.float64(3), None),
    ],
)
def test_order_of_dimensions(given, axes):
    assert axes_of(np.asanyarray(given)) == axes
    made = jit(lambda x: x + 1)(given)
    np.testing.assert_array_equal(made, given + 1)


def test_arguments_of_other_orders_are_not_copied():
    """A program reads a transposed array without a copy: its parameter has the sizes in memory order."""
    traced = jit(lambda x, y: (x @ y).T + 1)
    x, y = array((1, 0), (300, 200)), array((0, 1), (200, 100))
    np.testing.assert_allclose(traced(x, y), (x @ y).T + 1)
    (entry,) = traced.programs.entries.values()
    assert [p.shape.dims for p in entry.lowered.module.entry.parameters] == [(200, 300), (200, 100)]


@pytest.mark.parametrize("order", ["C", "F"])
def test_out_arrays_of_any_order(order, backend):
    traced = jit(lambda x: (x.T * 2, x + 1), platform=backend)
    for x in (array((0, 1), (3, 4)), array((1, 0), (3, 4))):
        out = np.zeros((4, 3), order=order), np.zeros((6, 8), order=order)[::2, ::2]
        made = traced(x, out=out)
        assert all(m is o for m, o in zip(made, out, strict=True))
        np.testing.assert_array_equal(out[0], x.T * 2)
        np.testing.assert_array_equal(out[1], x + 1)
        with pytest.raises(cyxla.errors.OpError):
            traced(x, out=(np.zeros((3, 4), order=order), out[1]))


def test_arguments_are_written_in_any_order():
    def f(x):
        x[0] = 7
        return x

    given = array((1, 0), (3, 4))
    want = f(given.copy("K"))
    assert jit(f)(given) is given
    np.testing.assert_array_equal(given, want)
    assert given.flags.f_contiguous


def test_donated_arrays_of_other_orders():
    traced = jit(lambda x: x + 1, donate=[0])
    given = array((1, 0), (64, 32))
    wanted = given + 1
    made = traced(given)
    np.testing.assert_array_equal(made, wanted)
    assert made.flags.f_contiguous


def test_executables_use_row_major_order():
    executable = jit(lambda x: x.T + 1).compile(cyxla.spec((3, 4)))
    for x in (np.ones((3, 4)), np.ones((3, 4), order="F")):
        made = executable(x)
        assert made.flags.c_contiguous
        np.testing.assert_array_equal(made, x.T + 1)
    assert jit(lambda x: x.T + 1).compile(np.ones((3, 4), order="F")).outputs.dims == (4, 3)


def test_unknown_order_raises():
    for call in (lambda x: x.copy("W"), lambda x: np.add(x, 1, order="W"), lambda x: np.zeros_like(x, order="W")):
        with pytest.raises(ValueError, match="order must be one of 'C', 'F', 'A', or 'K'"):
            jit(call)(np.ones((2, 2)))
