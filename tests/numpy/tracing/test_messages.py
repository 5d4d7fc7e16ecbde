"""What is said about programs that cannot be traced: the argument, the line, and the mend."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import InvalidArgumentError, OpError

X = np.arange(6.0)


class Model:
    def __init__(self):
        self.w = np.arange(3.0)

    @property
    @cyxla.jit
    def total(self):
        return self.w.sum() * 2


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


# program, its arguments
RUNS = {
    "np.arange of an argument": (lambda n: np.arange(n), (4,)),
    "np.ogrid of an argument": (lambda n: np.ogrid[0:n], (4,)),
    "np.mgrid of an argument": (lambda n: np.mgrid[0:n, 0:2], (4,)),
    "np.histogram of an argument": (lambda x, n: np.histogram(x, n), (X, 4)),
    "np.ndarray of an argument": (lambda n: np.zeros_like(np.ndarray(n)), (4,)),
    "slice by an argument": (lambda x, n: x[:n], (X, 4)),
    "condition on an argument": (lambda flag, x: x if flag else -x, (True, X)),
    "max of arguments": (lambda a, b: max(a, b), (3.0, 4.0)),
    "recursion": (lambda n: fib(n), (8,)),
    "mask": (lambda x: x[x > 2], (X,)),
    "np.unique": (lambda x: np.unique(x % 2), (X,)),
    "np.setdiff1d": (lambda x: np.setdiff1d(x, x[:2]), (X,)),
    "np.intersect1d": (lambda x: np.intersect1d(x, x[:2]), (X,)),
    "x.device": (lambda x: x + (x.device == "cpu"), (X,)),
    "x.flags": (lambda x: x + x.flags.c_contiguous, (X,)),
    "np.partition": (lambda x, k: np.partition(x, k), (X, 2)),
    "np.array_split": (lambda x, n: np.array_split(x, n), (X, 4)),
    "axis": (lambda x, axis: x.reshape(2, 3).sum(axis=axis), (X, 1)),
    "np.round": (lambda x, d: np.round(x / 7, d), (X, 2)),
    "np.tile": (lambda x, n: np.tile(x, n), (X, 2)),
    "np.eye": (lambda n: np.eye(n), (3,)),
    "np.fft.fft": (lambda x, n: np.fft.fft(x, n), (X, 4)),
    "np.diag": (lambda x, k: np.diag(x, k), (X, 1)),
    "reshape": (lambda x, n: x.reshape(n, -1), (X, 2)),
}


@pytest.mark.parametrize("program", RUNS)
def test_programs_that_run(program):
    function, args = RUNS[program]
    jitted = cyxla.jit(function)
    for _ in range(2):
        got, expected = jitted(*args), function(*args)
        assert type(got) is type(expected) or np.ndim(expected) == 0
        for one, other in zip(*((v if isinstance(v, (tuple, list)) else [v]) for v in (got, expected)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_properties_get_self():
    model = Model()
    for _ in range(2):
        assert model.total == 6
    assert Model.total.fget(model) == 6


# program, arguments, parts of the message
SAID = {
    "key of a dict": (lambda n: {n: 1}, (np.float64(3),), ('@cyxla.jit(static=("n",))',)),
    "np.save": (lambda x: np.save("file", x), (X,), ("numpy.save cannot be traced", "return the array")),
    "np.nditer": (lambda x: np.nditer(x), (X,), ("use np.ndenumerate",)),
    "item": (lambda x: x.astype(np.uint64)[0].item(), (X,), ("index it instead",)),
    "tolist": (lambda x: x.tolist(), (np.ones(100, np.uint64),), ("return it from the function first",)),
}


@pytest.mark.parametrize("program", SAID)
def test_messages_have_a_line_and_a_mend(program):
    function, args, parts = SAID[program]
    with pytest.raises(OpError) as caught:
        cyxla.jit(function)(*args)
    text = str(caught.value)
    for part in (*parts, f"at:   {__file__}:{function.__code__.co_firstlineno}", "mend:"):
        assert part in text


OPTIONS = {
    "nopython": "not needed", "parallel": "not needed", "nogil": "not needed", "fastmath": "keep NumPy's rounding",
    "static_argnums": "use static=(0,)", "static_argnames": 'use static=("n",)', "donate_argnums": "use donate=(0,)",
    "statics": "did you mean",
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_other_compilers(name):
    with pytest.raises(InvalidArgumentError) as caught:
        cyxla.jit(**{name: True})(lambda x: x)
    assert name in str(caught.value)
    assert OPTIONS[name] in str(caught.value) or name == "statics"


class Labelled:
    """Array with labels, as of pandas, xarray and polars, whose only common method is this."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values

    def to_numpy(self):
        return self.values


PROGRAM = "ENTRY e { x = f64[6] parameter(0) ROOT y = f64[6] add(x, x) }"
LABELLED = {
    "jit": lambda v: cyxla.jit(lambda x: x + 1)(v),
    "jit, in a container": lambda v: cyxla.jit(lambda d: d["a"] + 1)({"a": v}),
    "executable": lambda v: cyxla.compile(lambda x: x + 1, X)(v),
    "executable of a program": lambda v: cyxla.compile("ENTRY e { x = f64[6] parameter(0) ROOT y = f64[6] add(x, x) }")(
        v
    ),
}


@pytest.mark.parametrize("way", LABELLED)
def test_arrays_with_labels(way):
    with pytest.raises(OpError) as caught:
        LABELLED[way](Labelled(X))
    assert "Labelled" in str(caught.value)
    assert "to_numpy()" in str(caught.value)
    LABELLED[way](Labelled(X).to_numpy())
