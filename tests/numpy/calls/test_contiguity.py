"""Arguments that are not contiguous: what shares memory with them is what shares it in NumPy."""

import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning, InvalidArgumentError, UnimplementedError

BASE = np.arange(96.0).reshape(8, 12)
LAYOUTS = {
    "contiguous": lambda: BASE[:4, :6].copy(), "column-major": lambda: np.asfortranarray(BASE[:4, :6]),
    "rows backwards": lambda: BASE[:4, :6].copy()[::-1], "columns backwards": lambda: BASE[:4, :6].copy()[:, ::-1],
    "every other column": lambda: BASE[:4].copy()[:, ::2], "every other row": lambda: BASE.copy()[::2, :6],
    "part": lambda: BASE.copy()[1:5, 2:8], "transposed part": lambda: BASE.copy()[:6, :4].T,
    "all backwards": lambda: BASE[:4, :6].copy()[::-1, ::-1], "one row": lambda: BASE[:1, :6].copy(),
    "three dimensions": lambda: BASE.copy().reshape(4, 2, 12)[:, :, ::-1],
    "moved dimensions": lambda: BASE.copy().reshape(4, 2, 12).transpose(2, 1, 0),
}  # fmt: skip


def writes_to_reshaped(a):
    a.reshape(-1)[1] += 10


def writes_to_a_flat_array(a):
    a.ravel()[1] += 10


def reads_a_view_after_a_write(a):
    b = a.reshape(-1)
    a[0] = 7.0
    return b.sum()


def writes_to_reshaped_rows(a):
    b = a[1:].reshape(-1) if len(a) > 1 else a
    b[0] += 10


def writes_in_column_major_order(a):
    a.reshape(-1, order="F")[1] += 10


def writes_to_a_contiguous_array(a):
    np.ascontiguousarray(a)[0] += 10
    np.require(a, requirements=["C"])[-1] += 5


def writes_to_an_array_in_column_major_order(a):
    np.asfortranarray(a)[0] += 10


def writes_to_split_dimensions(a):
    a.reshape(*a.shape, 1)[0] += 10
    a[:, None].reshape(a.shape[0], 1, *a.shape[1:])[0] += 3


def flags_and_strides(a):
    return a.flags.c_contiguous, a.flags["F"], a.strides, a[0] * 2


def shape_that_is_assigned(a):
    b = a.view()
    b.shape = (-1,)
    return b * 2


FUNCTIONS = [
    writes_to_reshaped, writes_to_a_flat_array, reads_a_view_after_a_write, writes_to_reshaped_rows,
    writes_in_column_major_order, writes_to_a_contiguous_array, writes_to_an_array_in_column_major_order,
    writes_to_split_dimensions, flags_and_strides, shape_that_is_assigned,
]  # fmt: skip


def _outcome(function, array):
    try:
        return function(array)
    except AttributeError as error:
        return type(error)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_layouts(function, backend):
    run = cyxla.jit(function, platform=backend, fallback="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for name, make in LAYOUTS.items():
            for _ in range(2):
                given, plain = make(), make()
                got, want = _outcome(run, given), _outcome(function, plain)
                np.testing.assert_array_equal(given, plain, err_msg=name)
                for g, w in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)], strict=True):
                    np.testing.assert_array_equal(g, w, err_msg=name)


def test_programs_run_on_contiguous_arguments_and_others_are_named():
    run = cyxla.jit(writes_to_reshaped, fallback="error")
    for name in ("contiguous", "column-major", "one row"):
        run(LAYOUTS[name]())
    with pytest.raises(UnimplementedError, match="depends on the memory of an array that is not contiguous"):
        run(LAYOUTS["part"]())
    assert cyxla.jit(writes_to_split_dimensions, fallback="error")(LAYOUTS["part"]()) is None


def unique_before_a_write(a):
    found = np.unique(a)
    a[0] = 0.3
    return found


def appended_before_a_write(a):
    longer = np.append(a, 1.0)
    a -= 1
    return longer


def flattened_before_a_write(a):
    flat = a.flatten()
    a += 1
    return flat


def joined_before_a_write(a):
    joined = np.concatenate((a, a), axis=None)
    a[0] = 2.0
    return joined


@pytest.mark.parametrize(
    "function", [unique_before_a_write, appended_before_a_write, flattened_before_a_write, joined_before_a_write]
)
@pytest.mark.parametrize("name", LAYOUTS)
def test_copies_need_no_contiguous_argument(function, name):
    given, plain = LAYOUTS[name](), LAYOUTS[name]()
    np.testing.assert_array_equal(cyxla.jit(function, fallback="error")(given), function(plain))
    np.testing.assert_array_equal(given, plain)


TABLE = BASE.copy()[::2, ::3]


def writes_to_an_array_from_outside(x):
    TABLE.ravel()[1] += x[0]
    return TABLE[0, :2] * x[0]


def test_arrays_from_outside():
    with pytest.raises(UnimplementedError, match="depends on the memory of an array that is not contiguous"):
        cyxla.jit(writes_to_an_array_from_outside, fallback="error")(np.ones(3))
    run = cyxla.jit(writes_to_an_array_from_outside, fallback="numpy")
    with pytest.warns(FallbackWarning, match="not contiguous"):
        np.testing.assert_array_equal(run(np.ones(3)), BASE[0, [0, 3]])
    np.testing.assert_array_equal(TABLE, BASE[::2, ::3])


@pytest.mark.parametrize("function", [writes_to_reshaped, flags_and_strides])
def test_executables_refuse_arguments_that_are_not_contiguous(function):
    run = cyxla.jit(function).compile(BASE[:4, :6].copy())
    run(BASE[:4, :6].copy())
    for name in ("column-major", "part"):
        with pytest.raises(InvalidArgumentError, match="argument 0 must be contiguous"):
            run(LAYOUTS[name]())


def scaled_strides(scale, x):
    return x.strides[0] * scale


def test_bound_arguments():
    part = BASE[:4, :6]
    run = cyxla.jit(scaled_strides).compile(np.ones(3), part.copy())
    bound = run.bind({0: np.ones(3)})
    np.testing.assert_array_equal(bound(part.copy()), 48 * np.ones(3))
    for fails in (lambda: run.bind({1: part}), lambda: run.bind({"x": part}), lambda: bound(part)):
        with pytest.raises(InvalidArgumentError, match="argument 1 must be contiguous"):
            fails()


def test_reading_alone_depends_on_no_layout():
    run = cyxla.jit(lambda a: a.reshape(-1) * 2, fallback="error")
    for make in LAYOUTS.values():
        np.testing.assert_array_equal(run(make()), make().reshape(-1) * 2)
