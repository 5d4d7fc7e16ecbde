"""Calls of functions of wheels: arguments of every kind, containers, ``out=``, errors, threads."""

import os
import subprocess
import sys
import threading
import time
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from support.builds.wheels import module

import cyxla
from cyxla import aot

RNG = np.random.default_rng(3)
Point = namedtuple("Point", "x y")


@dataclass
class State:
    w: object
    b: object


def weighted(x, y, scale):
    return x * scale + y, x[0].sum()


def nested(p, xs):
    return {"w": p["w"] + xs[0], "list": [p["b"], (xs[1], None)], "n": 2}


def records(state, point):
    return State(state.w + point.x, point.y), Point(state.b, [state.b * 2])


def selected(x):
    return x[x > 0], np.count_nonzero(x > 0)


def written(x, y):
    x += y
    y[0] = 5
    return x.sum()


def row(x, k, divisor):
    return x[k] // divisor


def numbers(x, n, flag):
    return x * n, n + 1, not flag, x + 1j


def spin(x):
    while x[0] < 1:
        x = x + 1e-8
    return x


def many(x):
    return np.exp(np.sin(x) @ np.cos(x))


def styled(x, style):
    return np.tanh(x) if style["kind"] == "tanh" else x


F = ((2, 3), np.float32)
PROGRAMS = {
    "weighted": (weighted, F, F, ((), np.float64)),
    "nested": (nested, {"w": ((3,), float), "b": ((2,), int)}, [((3,), float), ((), float)]),
    "records": (records, State(((3,), float), ((), float)), Point(((3,), float), ((), int))),
    "selected": (selected, ((6,), float)),
    "written": (written, ((3,), float), ((3,), float)),
    "row": (row, ((3, 2), int), ((), int), ((), int)),
    "numbers": (numbers, 2.0, 3, True),
    "spin": (spin, ((1,), float)),
    "many": (many, ((300, 300), float)),
    "empty": (lambda x: (x * 2, x.sum(0)), ((0, 4), float)),
    "no_arguments": (lambda: np.arange(3),),
    "styled": (styled, ((3,), float), {"kind": "tanh", "rate": 0.5}),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    programs = [aot.program(f, *specs, name=name) for name, (f, *specs) in PROGRAMS.items()]
    return module(tmp_path_factory.mktemp("wheel"), programs)


def same(actual, expected):
    """Compare containers and their arrays, bit by bit."""
    if isinstance(expected, dict):
        assert type(actual) is dict
        assert list(actual) == list(expected)
        actual, expected = list(actual.values()), list(expected.values())
    if isinstance(expected, (tuple, list)):
        assert type(actual).__name__ == type(expected).__name__
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            same(a, e)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert type(actual) is type(expected)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert actual.tobytes() == expected.tobytes()
    elif hasattr(expected, "__dataclass_fields__"):
        same([getattr(actual, n) for n in expected.__dataclass_fields__], list(vars(expected).values()))
    else:
        assert type(actual) is type(expected)
        assert actual == expected


X, Y = RNG.standard_normal((2, 3)).astype("f4"), RNG.standard_normal((2, 3)).astype("f4")
WEIGHTED = cyxla.jit(weighted)(X, Y, np.float64(0.5))
FORMS = {
    "as declared": lambda x: x,
    "Fortran order": np.asfortranarray,
    "transposed": lambda x: x.T.copy().T,
    "strided": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda x: x.astype(">f4"),
    "unaligned": lambda x: np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view("f4").reshape(x.shape),
    "read-only": lambda x: np.frombuffer(x.tobytes(), "f4").reshape(x.shape),
    "a list": lambda x: x.astype(float).tolist(),
    "a tuple of lists": lambda x: tuple(x.astype(float).tolist()),
    "a subclass": lambda x: x.view(type("Sub", (np.ndarray,), {})),
    "a memoryview": memoryview,
    "an object with __array__": lambda x: SimpleArray(x),
    "an object with __dlpack__": lambda x: OnlyDlpack(x),
}


class SimpleArray:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("form", FORMS)
def test_arrays_in_any_form(wheel, form):
    given = FORMS[form](X)
    same(wheel.weighted(given, Y, 0.5), WEIGHTED)
    same(wheel.weighted(X, FORMS[form](Y), scale=0.5), WEIGHTED)


@pytest.mark.parametrize("scale", [0.5, np.float64(0.5), np.array(0.5), np.array(0.5, ">f8")])
def test_numbers_in_any_form(wheel, scale):
    same(wheel.weighted(X, Y, scale), WEIGHTED)
    same(wheel.weighted(scale=scale, y=Y, x=X), WEIGHTED)


@pytest.mark.parametrize("scale, value", [(3, 3.0), (True, 1.0), (-(2**40), -(2.0**40))])
def test_python_numbers_of_other_kinds(wheel, scale, value):
    same(wheel.weighted(X, Y, scale), wheel.weighted(X, Y, value))


def test_results_are_new_arrays(wheel):
    first, second = wheel.weighted(X, Y, 0.5)[0], wheel.weighted(X, Y, 0.5)[0]
    first[:] = 0
    same(second, WEIGHTED[0])
    assert second.flags.carray
    assert second.flags.owndata


@pytest.mark.parametrize("name, arguments", [
    ("empty", (np.zeros((0, 4)),)),
    ("no_arguments", ()),
    ("selected", (np.array([1, -1, 2, np.nan, 0, 5.0]),)),
    ("selected", (np.full(6, -1.0),)),
    ("selected", (np.arange(6.0) + 1,)),
    ("numbers", (2.5, 3, False)),
    ("row", (np.arange(6).reshape(3, 2), -3, 2)),
    ("many", (RNG.standard_normal((300, 300)),)),
    ("weighted", (np.array([[np.nan, np.inf, -0.0]] * 2, np.float32), X, np.float64(-np.inf))),
])  # fmt: skip
def test_the_same_as_jit(wheel, name, arguments):
    function = PROGRAMS[name][0]
    same(getattr(wheel, name)(*arguments), cyxla.jit(function)(*arguments))


def test_lists_and_numbers_in_containers(wheel):
    p, xs = {"w": np.array([1.0, 2, 3]), "b": np.array([1, 2])}, [np.arange(3.0), np.array(4.0)]
    want = cyxla.jit(nested)(p, xs)
    for given in (
        (p, xs),
        ({"b": [1, 2], "w": [1, 2, 3]}, (xs[0], 4)),
        ({"w": (1, 2, 3), "b": p["b"]}, [xs[0][:], 4.0]),
    ):
        same(wheel.nested(*given), want)


def test_named_tuples_and_dataclasses(wheel):
    state, point = State(np.ones(3), 2.0), Point(np.arange(3.0), 7)
    made, pair = wheel.records(state, point)
    assert (type(made).__name__, type(pair).__name__, pair._fields) == ("State", "Point", ("x", "y"))
    assert type(made) is wheel.State
    assert type(pair) is wheel.Point
    np.testing.assert_array_equal(made.w, np.ones(3) + np.arange(3))
    assert (made.b, pair.x, pair.y) == (7, 2.0, [4.0])
    again, _ = wheel.records(SimpleNamespace(w=[1, 1, 1], b=2), tuple(point))
    np.testing.assert_array_equal(again.w, made.w)
    with pytest.raises(TypeError, match=r"records\(\): state has a .*dict.* where the program has an object with w, b"):
        wheel.records({"w": 1, "b": 2}, point)


def test_static_values_must_be_those_of_the_program(wheel):
    same(wheel.styled(np.ones(3), {"kind": "tanh", "rate": 0.5}), cyxla.jit(np.tanh)(np.ones(3)))
    with pytest.raises(ValueError, match="style has 'relu' where the program was compiled for 'tanh'"):
        wheel.styled(np.ones(3), {"kind": "relu", "rate": 0.5})


# --- arrays to write to -----------------------------------------------------------------------------------------------


def test_written_arguments(wheel):
    x, y = np.arange(3.0), np.zeros((3, 2))[:, 0]
    y[:] = [1, 2, 3]
    assert wheel.written(x, y) == 9
    np.testing.assert_array_equal(x, [1, 3, 5])
    np.testing.assert_array_equal(y, [5, 2, 3])


@pytest.mark.parametrize("x, y, error, words", [
    ([1, 2, 3], np.ones(3), TypeError, "argument x is written, and: got .* want an array"),
    (np.ones(3, "f4"), np.ones(3), TypeError, "got float32"),
    (np.ones(2), np.ones(3), ValueError, r"got float64\[2\]"),
    (np.broadcast_to(1.0, 3), np.ones(3), ValueError, "read-only"),
    (np.ones(3), None, ValueError, "shares memory"),
])  # fmt: skip
def test_arguments_that_cannot_be_written(wheel, x, y, error, words):
    before = np.array(x)
    with pytest.raises(error, match=words):
        wheel.written(x, x if y is None else y)
    np.testing.assert_array_equal(x, before)


def test_out(wheel):
    total = np.zeros((), "f4")
    for out in ((np.zeros((2, 3)), total), [np.zeros((2, 6))[:, ::2], None], (np.zeros((3, 2)).T, total)):
        assert wheel.weighted(X, Y, 0.5, out=out) is out
        np.testing.assert_array_equal(out[0], WEIGHTED[0])
    assert total == WEIGHTED[1]
    x = RNG.standard_normal((300, 300))
    want = wheel.many(x)
    assert wheel.many(x, out=x) is x
    np.testing.assert_array_equal(x, want)
    out = {"w": np.zeros(3), "list": None, "n": None}
    wheel.nested({"w": np.ones(3), "b": np.arange(2)}, [np.arange(3.0), 4.0], out=out)
    np.testing.assert_array_equal(out["w"], [1, 2, 3])
    same(wheel.weighted(X, Y, 0.5, out=None), WEIGHTED)


@pytest.mark.parametrize("out, error, words", [
    ((np.zeros((3, 2)), None), ValueError, r"out\[0\]: got float64\[3,2\], want float64\[2,3\]"),
    ((np.zeros((2, 3), "f4"), None), TypeError, r"out\[0\]: got float32"),
    (([[0] * 3] * 2, None), TypeError, "want an array"),
    ((np.broadcast_to(0.0, (2, 3)), None), ValueError, "read-only"),
    ((None,), ValueError, "want a tuple of 2"),
    ([np.zeros((2, 3))] * 3, ValueError, "want a tuple of 2"),
    (np.zeros((2, 3)), ValueError, "want a tuple of 2"),
])  # fmt: skip
def test_bad_out(wheel, out, error, words):
    with pytest.raises(error, match=words):
        wheel.weighted(X, Y, 0.5, out=out)


def test_out_of_run_time_size(wheel):
    out = np.zeros(3)
    with pytest.raises(ValueError, match="only known when"):
        wheel.selected(np.ones(6), out=(out, None))


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, error, words", [
    (lambda w: w.weighted(X, Y), TypeError, "missing required argument: 'scale'"),
    (lambda w: w.weighted(X, Y, 1, 2), TypeError, "takes 3 positional arguments but 4 were given"),
    (lambda w: w.weighted(X, Y, 1, x=X), TypeError, "multiple values for argument 'x'"),
    (lambda w: w.weighted(X, Y, 1, z=X), TypeError, "unexpected keyword argument 'z'"),
    (lambda w: w.no_arguments(1), TypeError, "takes 0 positional arguments but 1"),
    (lambda w: w.weighted(X.astype(float), Y, 1), TypeError, r"argument x: got float64\[2,3\], want float32\[2,3\]"),
    (lambda w: w.weighted(X, Y, np.float32(1)), TypeError, r"argument scale: got float32\[\], want float64\[\]"),
    (lambda w: w.weighted(X[0], Y, 1), ValueError, r"argument x: got float32\[3\], want float32\[2,3\]"),
    (lambda w: w.weighted([[1, 2]], Y, 1), ValueError, r"argument x: got float32\[1,2\]"),
    (lambda w: w.weighted([[1], [1, 2]], Y, 1), ValueError, "argument x"),
    (lambda w: w.weighted(X, Y, "1"), TypeError, "argument scale: got a str"),
    (lambda w: w.weighted(None, Y, 1), TypeError, "argument x: got a NoneType"),
    (lambda w: w.weighted(X, Y, 1j), TypeError, "argument scale: got 1j"),
    (lambda w: w.weighted(np.ma.masked_array(X), Y, 1), TypeError, "masked array"),
    (lambda w: w.row(np.zeros((3, 2), int), 2**70, 1), (TypeError, ValueError), "argument k"),
    (lambda w: w.row(np.zeros((3, 2), int), 1.5, 1), TypeError, "argument k"),
    (lambda w: w.nested({"w": np.ones(3)}, [1, 2]), TypeError, "p has a .*dict.* where the program has a dict with"),
    (lambda w: w.nested({"w": np.ones(3), "c": 1}, [1, 2]), TypeError, "p has a"),
    (lambda w: w.nested(3, [1, 2]), TypeError, "p has a .*int"),
    (lambda w: w.nested({"w": np.ones(3), "b": [1, 2]}, [1]), TypeError, "xs has a .*list.* a list of 2"),
    (lambda w: w.row(np.zeros((3, 2), int), 3, 1), IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    (lambda w: w.row(np.zeros((3, 2), int), -4, 1), IndexError, "index -4 is out of bounds"),
    (lambda w: w.set_threads(-1), ValueError, "negative"),
])  # fmt: skip
def test_errors(wheel, call, error, words):
    for _ in range(3):
        with pytest.raises(error, match=words) as caught:
            call(wheel)
        assert "cyxla" not in type(caught.value).__module__


def test_objects_are_not_leaked(wheel):
    x, y = X.copy(), np.asfortranarray(Y)
    counts = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(200):
        wheel.weighted(x, y, 0.5)
        with pytest.raises(TypeError):
            wheel.weighted(x, y, "a")
        wheel.nested({"w": np.ones(3), "b": [1, 2]}, [x[0].astype(float), 2.0])
    assert (sys.getrefcount(x), sys.getrefcount(y)) == counts


# --- element types ----------------------------------------------------------------------------------------------------


def read(x):
    return x.reshape(1)


NUMBERS = {
    "?": [True, False], "i1": [5, True, 127, -128], "i4": [7, -(2**31), 2**31 - 1, True], "i8": [2**63 - 1, -3, False],
    "u4": [2**32 - 1], "u8": [2**64 - 1, 0], "f2": [0.1, 3],
    "f4": [0.1, 1e300, 3, 2**31 - 1, -(2**40), True, float("nan")],
    "f8": [0.1, 2**53 + 1, -(2**31), True, float("-inf")], "c8": [0.1, 3, 1 + 2j], "c16": [True, 2**40, 0.1j],
}  # fmt: skip
UNFIT = {
    "?": [1, 0.5, 1j], "i1": [128, 1.0], "i4": [2**31, -(2**31) - 1, 2.0], "i8": [2**63, 1.5],
    "u4": [-1, 2**32], "u8": [-1, 2**64], "f4": [1j, "1"], "f8": [1j, None],
}  # fmt: skip


@pytest.fixture(scope="module")
def numeric(tmp_path_factory):
    programs = [aot.program(read, ((), d), name=f"read_{np.dtype(d).name}") for d in NUMBERS]
    return module(tmp_path_factory.mktemp("numeric"), programs)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_python_numbers(numeric, dtype):
    """As a program of `cyxla.compile` converts them."""
    f, compiled = getattr(numeric, f"read_{np.dtype(dtype).name}"), cyxla.compile(read, ((), dtype))
    for value in NUMBERS[dtype]:
        assert f(value).tobytes() == compiled(value).tobytes(), value
        assert f([[value]][0][0]).dtype == np.dtype(dtype)
    for value in UNFIT.get(dtype, ()):
        with pytest.raises((TypeError, ValueError)) as wanted:
            compiled(value)
        with pytest.raises(TypeError if isinstance(wanted.value, TypeError) else ValueError, match="argument x"):
            f(value)


DTYPES = [
    *map(np.dtype, ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")),
    *map(np.dtype, (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4)),
]


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    programs = [aot.program(lambda x, y: (np.maximum(x, y), y), ((3,), d), ((), d), name=f"f_{d.name}") for d in DTYPES]
    return module(tmp_path_factory.mktemp("typed"), programs)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_element_types(typed, dtype):
    f = getattr(typed, f"f_{dtype.name}")
    x, y = np.array([0, 1, 2]).astype(dtype), np.array(1).astype(dtype)
    for given in (x, np.repeat(x, 2)[::2], x.astype(dtype.newbyteorder()) if dtype.itemsize > 1 else x):
        for number in (y, y[()]):
            largest, same_number = f(given, number)
            assert (largest.dtype, same_number.dtype) == (np.maximum(x, x).dtype, dtype)
            np.testing.assert_array_equal(largest.astype(complex), np.maximum(x.astype(complex), y.astype(complex)))
            assert same_number == y
    with pytest.raises(TypeError, match="argument x"):
        f(np.ones(3, "f8" if dtype != np.dtype("f8") else "f4"), y)


# --- threads ----------------------------------------------------------------------------------------------------------


def test_calls_from_many_threads(wheel):
    x = RNG.standard_normal((300, 300))
    want, wrong = wheel.many(x), []

    def call():
        for _ in range(10):
            if wheel.many(x).tobytes() != want.tobytes():
                wrong.append(1)
            if wheel.weighted(X, Y, 0.5)[0].tobytes() != WEIGHTED[0].tobytes():
                wrong.append(2)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_meanwhile(wheel):
    """A loop of unknown length runs without Python's lock."""
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    wheel.spin(np.zeros(1))
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(begin < t < end for t in ticks) >= 3


INTERRUPT = """
import os, signal, sys, threading, time
import numpy as np
import PACKAGE as package

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job ignores

def press(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()

press(0.2)
begin = time.perf_counter()
try:
    package.spin(np.full(1, -1e30))
except KeyboardInterrupt:
    print("interrupted", time.perf_counter() - begin < 5)
presses = []
signal.signal(signal.SIGINT, lambda *_: presses.append(1))
press(0.05)
print(package.spin(np.zeros(1)) >= 1, len(presses))
signal.signal(signal.SIGINT, signal.default_int_handler)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
except KeyboardInterrupt:
    print("again")
"""


def test_an_interrupt_ends_a_call(wheel):
    """The second handler raises nothing, so that the call goes on."""
    folder = Path(wheel.__file__).parents[1]
    words = [sys.executable, "-c", INTERRUPT.replace("PACKAGE", wheel.__name__)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["interrupted True", "[ True] 1", "again"], done.stderr


@pytest.mark.parametrize("count", [1, 2, 5, 0])
def test_any_number_of_threads_gives_the_same_bits(wheel, count):
    x = RNG.standard_normal((300, 300))
    want = wheel.many(x)
    wheel.set_threads(count)
    try:
        assert wheel.many(x).tobytes() == want.tobytes()
    finally:
        wheel.set_threads(0)


def test_a_forked_process_calls_on(wheel):
    x = RNG.standard_normal((300, 300))
    want = wheel.many(x)
    child = os.fork()
    if not child:
        os._exit(0 if wheel.many(x).tobytes() == want.tobytes() else 1)
    assert os.waitpid(child, 0)[1] == 0
