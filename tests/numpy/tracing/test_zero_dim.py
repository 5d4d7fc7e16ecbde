"""Results of rank 0: arrays, scalars and Python numbers as NumPy returns them."""

import numpy as np
import pytest

import cyxla
from cyxla.numpy import jit

A, S, V, M = np.array(2.5), np.float64(2.5), np.arange(1.0, 4), np.eye(3)
CASES = {
    "an array": (lambda x: x, A), "a scalar": (lambda x: x, S), "an int": (lambda x: x, 3),
    "a bool": (lambda x: x, True), "a complex": (lambda x: x, 1j), "a constant": (lambda x: 3, A),
    "a constant scalar": (lambda x: np.float32(3), A), "a constant array": (lambda x: np.zeros(()), A),
    "sizes": (lambda x: (x.size, x.ndim, x.shape[0], x.itemsize), V), "sum of array": (lambda x: x + 1, A),
    "sum of int": (lambda x: x + 1, 3), "of int and scalar": (lambda x: x + S, 3),
    "comparison": (lambda x: x > 2, 2.5), "ufunc of float": (np.sqrt, 2.5), "negative": (lambda x: -x, 3),
    "reduction": (lambda x: x.sum(), V), "element": (lambda x: x[0], V), "element and rest": (lambda x: x[0, ...], V),
    "all": (lambda x: x[...], A), "nothing": (lambda x: x[()], A), "parts": (lambda x: tuple(x), V),
    "squeeze": (np.squeeze, A), "squeeze of scalar": (np.squeeze, S), "squeeze of one": (np.squeeze, V[:1]),
    "zeros_like": (np.zeros_like, S), "full_like": (lambda x: np.full_like(x, 3), A),
    "where": (lambda x: np.where(x > 1, x, 0), A), "astype": (lambda x: x.astype("f4"), A),
    "astype of scalar": (lambda x: x.astype("f4"), S), "copy": (lambda x: x.copy(), A),
    "copy of scalar": (lambda x: x.copy(), S), "asarray": (lambda x: np.asarray(x), S),
    "view": (lambda x: x.view("i8"), A), "view of scalar": (lambda x: x.view("i8"), S),
    "byteswap": (lambda x: x.byteswap(), A), "real": (lambda x: x.real, A),
    "real of scalar": (lambda x: np.real(x), S), "real of int": (lambda x: np.real(x), 3),
    "imag of complex": (lambda x: np.imag(x), 2j), "reshape of int": (lambda x: np.reshape(x, ()), 3),
    "ufunc in an array": (lambda x: np.add(x, 1, out=...), A),
    "sum in an array": (lambda x: np.add.reduce(x, out=...), V),
    "transposed": (lambda x: x.T, A),
    "reshape": (lambda x: x.reshape(()), V[:1]), "roll": (lambda x: np.roll(x, 1), A),
    "pad": (lambda x: np.pad(x, 0), A), "isin": (lambda x: np.isin(x, [1, 2.5]), A), "cov": (np.cov, V),
    "i0": (np.i0, A), "tensordot": (lambda x: np.tensordot(x, x, 1), V), "matmul": (lambda x: x @ x, V),
    "einsum": (lambda x: np.einsum("i,i", x, x), V),
    "einsum in steps": (lambda x: np.einsum("i,i", x, x, optimize=True), V),
    "einsum of one": (lambda x: np.einsum("i->", x, optimize=True), V), "fftn": (lambda x: np.fft.fftn(x), A),
    "broadcast": (lambda x: np.broadcast_arrays(x, x), A), "take": (lambda x: np.take(x, np.array(0)), V),
    "allclose": (lambda x: np.allclose(x, 1), V), "array_equal": (lambda x: np.array_equal(x, x), V),
    "array_equal of other sizes": (lambda x: np.array_equal(x, x[1:]), V), "median": (np.median, V),
    "quantile": (lambda x: np.quantile(x, 0.5), V), "matrix_rank": (np.linalg.matrix_rank, M),
    "weighted quantile": (lambda x: np.quantile(x, 0.5, weights=x, method="inverted_cdf"), V),
    "matrix_rank of a vector": (np.linalg.matrix_rank, V), "slogdet": (np.linalg.slogdet, M),
    "apply_along_axis": (lambda x: np.apply_along_axis(np.sum, 0, x), V),
    "interp": (lambda x: np.interp(x, [1, 2], [3, 4]), A),
    "in containers": (lambda x: {"a": x, "b": [x * 2, (x.copy(), x[()])]}, A),
    "nested call": (lambda x: jit(lambda y: y)(x), A),
}  # fmt: skip


def kinds(value):
    """Return the types of a container's leaves, in a container of the same structure."""
    if isinstance(value, (tuple, list)):
        return type(value), [kinds(v) for v in value]
    return {k: kinds(v) for k, v in value.items()} if isinstance(value, dict) else type(value)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", CASES)
def test_results_are_of_the_types_that_numpy_gives(name, backend):
    function, x = CASES[name]
    f = jit(function, platform=backend)
    want = function(x)
    for _ in range(2):  # the second call takes the fast path in C
        got = f(x)
        assert kinds(got) == kinds(want)
        if not isinstance(want, dict):
            np.testing.assert_array_equal(got, want)


def test_arrays_scalars_and_numbers_take_turns(backend):
    f = jit(lambda x: x, platform=backend)
    for x in (A, S, 2.5, A, 2.5, S, np.array(1.0), np.float64(1.0)):
        assert (type(f(x)), f(x)) == (type(x), x)


def test_results_are_apart_from_arguments_and_from_each_other(backend):
    x = np.array(2.5)
    f = jit(lambda x: (x[...], np.asarray(x), x), platform=backend)
    one, other, same = f(x)
    one[...] = 7
    assert (x, other) == (2.5, 2.5)
    assert one.flags.writeable
    assert same is x


def _in_place(x):
    y = x
    y += 1
    return x, y


def _through_parts(x):
    np.expand_dims(x, 0)[0] = 7
    x[...] += 1
    return x


def _of_scalars(x):
    s = x.sum()
    t = s
    t += 1
    np.expand_dims(s, 0)[0] = 9
    return s, t


@pytest.mark.parametrize("function, x", [(_in_place, A), (_in_place, S), (_through_parts, A), (_of_scalars, A)])
def test_arrays_change_in_place_and_scalars_do_not(function, x):
    np.testing.assert_array_equal(jit(function, platform="interpreter")(x.copy()), function(x.copy()))


def test_out_is_the_array_that_was_given():
    x, out = np.array(2.5), np.empty(())
    assert jit(lambda x: x * 2, platform="interpreter")(x, out=out) is out
    assert out == 5
    got = jit(lambda x, o: np.sum(x, out=o), platform="interpreter")(V, np.empty(()))
    assert type(got) is np.ndarray


def test_compiled_functions_give_arrays():
    executable = cyxla.jit(lambda x: x.sum(), platform="interpreter").compile(V)
    assert type(executable(V)) is np.ndarray
