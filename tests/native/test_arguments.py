"""Arguments and `out=` that are not plain arrays of the declared type: refused with a reason, or right."""

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import cyxla
from cyxla.errors import DTypeError
from cyxla.xla.evaluator.targets import c_calls

PLATFORMS = ("interpreter", "cpu")
X = np.arange(6.0)


def one(x):
    return x + 1


def two(x):
    return x + 1, x * 2


def checked(x):
    return x[np.argmax(x)] * x, x * 2


DOORS = {
    "jit": lambda function, platform: cyxla.jit(function, platform=platform),
    "executable": lambda function, platform: cyxla.compile(function, cyxla.spec(6), platform=platform),
}


@pytest.fixture(params=[(door, platform) for door in DOORS for platform in PLATFORMS], ids="-".join)
def made(request) -> Callable[..., Callable[..., object]]:
    door, platform = request.param
    return lambda function: DOORS[door](function, platform)


def _overlapping():
    z = np.zeros(12)
    return {
        "the same memory": (z[:6], z[:6]), "a part": (z[:6], z[3:9]), "one element": (z[:6], z[5:11]),
        "strided": (z[:12:2], z[2:8]), "backwards": (z[:6], z[5::-1]),
    }  # fmt: skip


@pytest.mark.parametrize("function", [two, checked])
@pytest.mark.parametrize("name", list(_overlapping()))
def test_results_that_share_memory_are_refused(made, function, name):
    out = _overlapping()[name]
    with pytest.raises(ValueError, match=r"out\[1\] shares memory with the array of result 0"):
        made(function)(X, out=out)
    assert not out[0].any()
    assert not out[1].any()


def test_results_between_each_other_are_all_right(made):
    z = np.zeros(12)
    made(two)(X, out=(z[::2], z[1::2]))
    np.testing.assert_array_equal(z.reshape(6, 2).T, two(X))


SELF_OVERLAPPING = {
    "stride 0": lambda: as_strided(np.zeros(1), (6,), (0,)),
    "half an element": lambda: as_strided(np.zeros(6), (6,), (4,)),
}  # fmt: skip


@pytest.mark.parametrize("name", SELF_OVERLAPPING)
@pytest.mark.parametrize("function", [one, two])
def test_arrays_whose_elements_share_memory_are_refused(made, function, name):
    array = SELF_OVERLAPPING[name]()
    with pytest.raises(ValueError, match="elements of the array share memory"):
        made(function)(X, out=array if function is one else (None, array))


STRIDED = {
    "backwards": lambda: np.zeros(6)[::-1], "every second": lambda: np.zeros(12)[::2],
    "a column": lambda: np.zeros((6, 3))[:, 1],
}  # fmt: skip


@pytest.mark.parametrize("name", STRIDED)
def test_strided_arrays_are_written(made, name):
    out = STRIDED[name]()
    assert made(one)(X, out=out) is out
    np.testing.assert_array_equal(out, X + 1)


def test_windows_over_memory_are_refused_and_transposed_arrays_are_not(backend):
    run = cyxla.compile(lambda x: x + 1, cyxla.spec((2, 3)), platform=backend)
    x = X.reshape(2, 3)
    with pytest.raises(ValueError, match="share memory"):
        run(x, out=as_strided(np.zeros(4), (2, 3), (8, 8)))
    for out in (np.zeros((3, 2)).T, as_strided(np.zeros(9), (2, 3), (16, 24))):
        np.testing.assert_array_equal(run(x, out=out), x + 1)


@pytest.mark.parametrize("shift", range(-3, 4))
def test_results_over_arguments_are_right(made, shift):
    for strided in (1, 2):
        z = np.zeros(40)
        x = z[8 : 8 + 6 * strided : strided]
        x[...] = X
        out = z[8 + shift : 8 + shift + 6]
        want = two(x.copy())
        got = made(two)(x, out=(out, None))
        np.testing.assert_array_equal(out, want[0])
        np.testing.assert_array_equal(got[1], want[1])


class Table:
    """Labelled numbers, as data frames are."""

    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return self.values

    def __array__(self, dtype=None, copy=None):
        return self.values


class Exchanged:
    """An array by DLPack alone."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **how):
        return self.values.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


REFUSED = {
    "masked": (lambda: np.ma.array(X, mask=[0, 1, 0, 0, 0, 0]), r"MaskedArray.*\n  mend: .*x\.filled\(0\)"),
    "labelled": (lambda: Table(X), r"is a Table, whose labels.*\n  mend: .*x\.to_numpy\(\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_masks_and_labels_are_not_dropped(made, name):
    value, message = REFUSED[name]
    with pytest.raises(DTypeError, match=f"(?s)argument (x|0) .*{message}"):
        made(one)(value())


def test_bound_masked_arrays_are_refused(backend):
    with pytest.raises(DTypeError, match=r"bound argument 0 \(x\) is a MaskedArray"):
        cyxla.compile(one, cyxla.spec(6), platform=backend).bind({0: np.ma.array(X)})


def test_dlpack_alone_is_enough(made):
    values = X.copy()
    run = made(one)
    np.testing.assert_array_equal(run(Exchanged(values)), X + 1)
    values += 1
    np.testing.assert_array_equal(run(Exchanged(values)), X + 2)


class Described:
    """An array by its interface alone."""

    def __init__(self, values):
        self.values, self.__array_interface__ = values, values.__array_interface__


FORMS = {"an array": lambda x: x, "a buffer": memoryview, "an interface": Described, "DLPack": Exchanged}


@pytest.mark.parametrize("form", FORMS)
def test_arguments_are_not_copied(made, form):
    """A function in C that the program calls gets the memory of the caller."""
    values, places = X.copy(), []

    def increase(out, arrays, info):
        places.append(arrays[0])
        size = info.contents.input[0].size
        source, target = ((ctypes.c_double * size).from_address(place) for place in (arrays[0], out[0]))
        target[:] = [x + 1 for x in source]

    function = c_calls.SIGNATURE(increase)
    increased = cyxla.register_c_call("tests.increase", function, result=lambda x: x, replace=True)
    result = made(lambda x: increased(x))(FORMS[form](values))
    np.testing.assert_array_equal(np.from_dlpack(result), X + 1)
    assert places == [values.ctypes.data]
