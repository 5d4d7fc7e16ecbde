"""Attributes of traced arrays that concern memory and devices, and ``np.ndarray`` in traced functions."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import UnimplementedError

X = np.arange(6.0)
A = X.reshape(2, 3).copy()
FLAGS = ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY", "FNC", "FORC", "BEHAVED", "CARRAY",
         "FARRAY", "C", "F", "W", "A", "X", "B", "CA", "FA", "CONTIGUOUS", "FORTRAN")  # fmt: skip
NAMES = ("c_contiguous", "f_contiguous", "writeable", "aligned", "writebackifcopy", "fnc", "forc", "behaved", "carray",
         "farray", "contiguous", "num")  # fmt: skip
LAYOUTS = {
    "argument": lambda a: a,
    "transpose": lambda a: a.T,
    "column": lambda a: a[:, 0],
    "slice": lambda a: a[1:],
    "reversed": lambda a: a[::-1],
    "diagonal": lambda a: np.diagonal(a),
    "result": lambda a: a * 2,
    "column-major result": lambda a: np.asfortranarray(a),
    "0-d": lambda a: np.array(a[0, 0]),
    "empty": lambda a: a[:0],
}


def read(array):
    return {n: array.flags[n] for n in FLAGS} | {n: getattr(array.flags, n) for n in NAMES if n != "num"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_flags(layout):
    seen = []
    function = cyxla.jit(lambda a: seen.append(read(LAYOUTS[layout](a))))
    function(A)
    assert seen == [read(LAYOUTS[layout](A))]


def test_flags_of_views_and_unknown_names():
    @cyxla.jit
    def f(x):
        assert x.flags.owndata
        assert not x[1:].flags.owndata
        assert "WRITEABLE : True" in repr(x.flags)
        for read in (lambda: x.flags["NO"], lambda: x.flags["writeable"]):
            with pytest.raises(KeyError, match="Unknown flag"):
                read()
        with pytest.raises(AttributeError):
            _ = x.flags.no
        return x

    f(X)


@pytest.mark.parametrize("write", [lambda x: setattr(x.flags, "writeable", False),
                                   lambda x: x.flags.__setitem__("WRITEABLE", False)])  # fmt: skip
def test_flags_cannot_be_set(write):
    with pytest.raises(UnimplementedError, match=r"flags\.writeable of a traced array cannot be set"):
        cyxla.jit(write)(X)


def test_device():
    function = cyxla.jit(lambda x: x.to_device("cpu") + (x.device == "cpu"))
    np.testing.assert_array_equal(function(X), X + 1)
    with pytest.raises(ValueError, match='Only "cpu" is allowed'):
        cyxla.jit(lambda x: x.to_device("gpu"))(X)


def filled(new):
    """Return a function that makes an array of three elements and writes to it."""

    def function(x, n):
        array = new(n)
        array[:] = x[:3]
        array[0] = x.sum()
        return array * 2

    return function


NEW = {
    "size": lambda n: np.ndarray(3),
    "shape": lambda n: np.ndarray((3,), np.float64),
    "dtype": lambda n: np.ndarray(3, dtype=np.float32),
    "keywords": lambda n: np.ndarray(shape=[3], dtype="i8", order="F"),
    "size from an argument": lambda n: np.ndarray(n),
    "size from an argument and a dtype": lambda n: np.ndarray(n + 0, dtype=np.float64),
}


@pytest.mark.parametrize("new", NEW)
def test_new_arrays(new):
    function = filled(NEW[new])
    with np.errstate(all="ignore"):
        expected = function(X, 3)
    for _ in range(2):
        got = cyxla.jit(function)(X, 3)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_new_array_of_a_buffer_is_numpys():
    function = cyxla.jit(lambda x: x + np.ndarray(2, np.uint8, buffer=b"\x01\x02"))
    np.testing.assert_array_equal(function(X[:2]), X[:2] + np.array([1, 2]))


def test_isinstance_and_the_class():
    def f(x):
        values = (x, x[1:], x[0], x.sum(), np.zeros(2), 1.0, np.array(x[0]), x[x > 0])
        equal = np.ndarray == type(OUTSIDE)  # noqa: E721  it is equal, and not the same
        facts = [issubclass(type(OUTSIDE), np.ndarray), equal, np.ndarray[int] == np.ndarray[int]]
        return [isinstance(v, np.ndarray) for v in values], facts

    arrays = [True, True, False, False, True, False, True, True]
    assert cyxla.jit(f)(X) == f(X) == (arrays, [True, True, True])
    assert type(np.zeros(2)) is np.ndarray


def test_methods_of_the_class_of_arrays_in_code_without_source():
    def f(x):
        assert np.ndarray.sum(OUTSIDE) == 0  # pytest rewrites this, so that the source is another one
        return x * 2

    np.testing.assert_array_equal(cyxla.jit(f)(X), X * 2)


OUTSIDE = np.zeros(1)


def test_the_array_namespace_is_numpy():
    """Functions written for the array API standard can be compiled."""

    def normalised(x):
        xp = x.__array_namespace__()
        shifted = x - xp.mean(x, axis=-1, keepdims=True)
        return xp.where(xp.isfinite(x), xp.divide(shifted, xp.linalg.vector_norm(shifted)), xp.asarray(0.0))

    np.testing.assert_allclose(cyxla.jit(normalised)(A), normalised(A), rtol=1e-15)


#: Names that arrays of NumPy have, some of them without a value while tracing, and names that traced ones have alone.
NAMES_OF_ARRAYS = sorted(set(dir(np.ndarray)) - {"mT"})  # of which one of 1-d arrays raises in `hasattr`
OTHER_NAMES = ["kind", "weak", "op", "counts", "data_", "bound", "known", "__dict__", "__name__", "mro", "is_integer"]


def names_of(x):
    values = (x, x[x > 0], x[0], x.sum())
    return [[hasattr(v, name) for name in (*NAMES_OF_ARRAYS, *OTHER_NAMES)] for v in values]


def defaults_of(x):
    return [getattr(v, name, "none") == "none" for v in (x, x[x > 0], x[0]) for name in OTHER_NAMES]


def missing(x):
    try:
        return x.kind
    except AttributeError as error:
        return str(error)


def hashes(x):
    return getattr(x, "__hash__", 5), type(x).__hash__ is None, type(x[0]).__hash__ is None


@pytest.mark.parametrize("function", [names_of, defaults_of, missing, hashes])
def test_names_of_attributes(function):
    assert cyxla.jit(function)(X) == function(X)


def test_numbers_have_the_attributes_of_their_class():
    def f(n):
        return [hasattr(n, name) for name in (*OTHER_NAMES, "real", "dtype", "shape", "bit_length")]

    for number in (3, 2.5, 1j, True):
        assert cyxla.jit(f)(number) == f(number)


@pytest.mark.parametrize("name", ["data", "ctypes", "__array_interface__", "__dlpack__"])
def test_attributes_without_a_value_are_refused(name):
    with pytest.raises(UnimplementedError, match=f"ndarray.{name} cannot be traced"):
        cyxla.jit(lambda x: getattr(x, name, None) is None)(X)


@pytest.mark.parametrize("function", [lambda x: np.dtype(x), lambda x: np.dtype(x[x > 0]), lambda x: np.dtype(2.5 * 2)])
def test_no_dtype_of_an_array(function):
    with pytest.raises(TypeError):
        cyxla.jit(function)(X)


def test_dtype_of_a_number():
    jitted = cyxla.jit(lambda x: np.zeros(2, np.dtype(x[0])) + np.ones(2, np.dtype("f")))
    assert jitted(X.astype(np.float32)).dtype == np.float32
