"""Ops and kernels in C: tests/data/plugins/kernels.c."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from shutil import copy
from threading import Barrier, Thread

import numpy as np
import pytest
from support.builds.plugins import line_of, loaded
from support.garbage import collect
from support.graphs.probes import Registries, context

import cyxla
from cyxla.core.framework import StepContext, apply_op
from cyxla.core.framework.attr_value import AttrValue, TensorValue
from cyxla.core.framework.load_library import load_op_library
from cyxla.core.framework.op_kernel import run_kernel
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Var
from cyxla.core.runtime.eager import EagerContext, eager_context, use_context
from cyxla.errors import (
    AbortedError,
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ShapeError,
    UnavailableError,
    UnimplementedError,
)


@pytest.fixture(scope="module", autouse=True)
def library():
    return loaded("kernels.c")


@pytest.fixture(autouse=True)
def eager():
    """A context of its own for every test: its kernels and resources end with it."""
    with use_context(EagerContext()) as current:
        yield current
    current.close()


@pytest.fixture
def world(library):
    made = Registries()
    load_op_library(library.path, ops=made.ops, kernels=made.kernels)
    return made


def floats(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


# Shape functions

SHAPES = [
    ([2, 3], [2], 0, "[2,3]"),
    ([None, 3], [2], 0, "[2,3]"),
    ([2, None], [5], -1, "[2,5]"),
    ([None, 3], [None], 0, "[?,3]"),
    ([2, None], None, 0, "[2,?]"),
    (None, [2], 0, "<unknown>"),
    ([0, 3], [0], 0, "[0,3]"),
]


@pytest.mark.parametrize("x, s, axis, expected", SHAPES)
def test_shapes_in_graphs(x, s, axis, expected):
    graph = cyxla.Graph()
    with graph.as_default():
        y = apply_op("CScaleRows", graph.placeholder("float", x), graph.placeholder("float", s), axis=axis)
    assert str(y.shape) == expected


BAD_SHAPES = [
    ([2, 3], [2, 1], 0, "s must be a vector, but its rank is 2", "CYXLA_REQUIRES(c, s->rank < 0"),
    ([2, 3], [3], 0, "3 scales for 2 slices", "CYXLA_REQUIRES(c, n < 0"),
    ([2, 3], [3], 2, "axis 2 of rank 2", "CYXLA_REQUIRES(c, axis >= -x->rank"),
    ([], [1], 0, "axis 0 of rank 0", "CYXLA_REQUIRES(c, axis >= -x->rank"),
]


@pytest.mark.parametrize("x, s, axis, message, line", BAD_SHAPES)
def test_errors_of_shape_functions(x, s, axis, message, line):
    """A graph refuses the node, an eager call the arrays; both name the line in C."""
    graph = cyxla.Graph()
    with graph.as_default():
        inputs = graph.placeholder("float", x), graph.placeholder("float", s)
        with pytest.raises(ShapeError, match=message) as in_graph:
            apply_op("CScaleRows", *inputs, axis=axis, name="rows")
    with pytest.raises(ShapeError, match=message) as at_once:
        apply_op("CScaleRows", floats(*x), floats(*s), axis=axis)
    place = line_of("kernels.c", line)
    for caught in (in_graph, at_once):
        assert place in str(caught.value)
        assert caught.value.op == "CScaleRows"
    assert in_graph.value.node == "rows"


@pytest.mark.parametrize(
    "dims, expected",
    [([2, 3], "[2,3]"), (["shape", 3], "[4,3]"), (["fed", 3], "[?,3]"), ([], "[]")],
    ids=["constant", "from a shape", "partly known", "scalar"],
)
def test_shapes_that_depend_on_values(dims, expected):
    graph = cyxla.Graph()
    with graph.as_default():
        known = {"fed": graph.placeholder("int32", []), "shape": apply_op("Shape", graph.placeholder("float", [4]))[0]}
        parts = [known.get(n, n) for n in dims]
        vector = apply_op("Pack", parts, T="int32") if parts else np.zeros(0, np.int32)
        y = apply_op("CFill", vector, np.float32(1))
    assert str(y.shape) == expected


def test_eager_calls_with_shapes_that_depend_on_values():
    """The shape function is asked again for other values of one shape."""
    for dims in ([2, 3], [4, 1], [0, 5]):
        y = apply_op("CFill", np.array(dims, np.int32), np.float32(7))
        np.testing.assert_array_equal(y, np.full(dims, 7, np.float32))
    for n in (3, 5, 0):
        np.testing.assert_array_equal(apply_op("CRepeat", np.float32(2), np.int32(n)), np.full(n, 2, np.float32))


# Values

ARRAYS = [
    floats(3, 4),
    floats(3, 4).T.copy().T,
    floats(6, 8)[::2, ::2],
    floats(0, 4),
    floats(1),
    np.array([np.nan, np.inf, -np.inf, -0.0], np.float32),
    np.frombuffer(b"x" + floats(3).tobytes(), np.uint8)[1:].view(np.float32),
]


@pytest.mark.parametrize("x", ARRAYS, ids=["C", "Fortran", "strided", "empty", "one", "special", "unaligned"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays(x, dtype):
    x = x if x.dtype == dtype else x.astype(dtype)
    s = np.arange(1, x.shape[-1] + 1, dtype=dtype)
    before = x.copy()
    np.testing.assert_array_equal(apply_op("CScaleRows", x, s, axis=-1), before * s)
    np.testing.assert_array_equal(x, before)


PLAIN_TYPES = [t for t in DataType if 0 < t < 100 and not t.numpy.hasobject]


@pytest.mark.parametrize("dtype", PLAIN_TYPES, ids=lambda t: t.text)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)], ids=str)
def test_plain_types(dtype, shape):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype.numpy)
    y = apply_op("CCopy", x, T=dtype)
    assert (y.dtype, y.shape, y.tobytes()) == (x.dtype, x.shape, x.tobytes())


LISTS = [
    ([floats(3), floats(2, 2)], [np.int32(1), np.array(b"s", object), np.float64(2)], [3.0, 6.0], [3, 7, 2]),
    ([], [np.int64(1)], [], [9]),
    ([floats(1)], [], [0.0], []),
]


@pytest.mark.parametrize("xs, ys, sums, types", LISTS, ids=["both", "no xs", "no ys"])
def test_arguments_that_are_lists(xs, ys, sums, types):
    found_sums, found_types = apply_op("CLists", xs, ys)
    assert ([float(v) for v in found_sums], found_types.tolist()) == (sums, types)


STRINGS = [
    np.array([b"a", b"", b"\0b\xff"], object),
    np.array([[b"x"], [b"yy"]], object),
    np.zeros((0, 3), object),
    np.array(b"scalar", object),
    np.array([[b"1", b"2"], [b"3", b"4"]], object).T,
]


@pytest.mark.parametrize("a", STRINGS, ids=["bytes", "matrix", "empty", "scalar", "strided"])
def test_strings(a):
    y = apply_op("CJoin", a, a)
    assert y.shape == a.shape
    assert y.tolist() == np.asarray(a + a, object).tolist()


def test_variants_are_refused(world):
    world.op("TakesVariant", "x: variant -> y: string")
    made = world.make("CJoin")
    made.input_types = (DataType.DT_VARIANT,) * 2
    with pytest.raises(UnimplementedError, match="variant"):
        run_kernel(made, context(made, np.array(object(), object), np.array(object(), object)))


# Attributes

TENSOR = TensorValue(DataType.DT_STRING, np.array([b"p", b"q"], object))
DESCRIPTIONS = {
    "i": (2**62, "4611686018427387904"),
    "f": (-1.5, "-1.5"),
    "b": (False, "0"),
    "s": ("é\0;", "é/4"),
    "t": (DataType.DT_BOOL, "10"),
    "h": (TensorShape([2, None]), "2:2,-1,"),
    "v": (TENSOR, "7/1:2,p,q,"),
    "li": ([1, -2, 3], "[1; -2; 3]"),
    "lf": ([], "[]"),
    "lb": ([True], "[1]"),
    "ls": (["", "a;b"], "[/0; a;b/3]"),
    "lt": (["float", "int32"], "[1; 3]"),
    "lh": ([[3], None, []], "[1:3,; -1:; 0:]"),
    "lv": ([TENSOR, TENSOR], "[7/1:2,p,q,; 7/1:2,p,q,]"),
}
DEFAULTS = """i=-7
f=0.5
b=1
s=a;b/3
t=9
h=-1:
v=1/1:2,1,2,
li=[]
lf=[1.5; -2]
lb=[1; 0]
ls=[/0; xyz/3]
lt=[1; 7]
lh=[]
lv=[]
CDescribe described"""


def test_defaults_of_attributes_of_all_kinds():
    assert apply_op("CDescribe", name="described").item().decode() == DEFAULTS


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_values_of_attributes_of_all_kinds(name):
    value, text = DESCRIPTIONS[name]
    if name == "lh":
        value = AttrValue("list(shape)", tuple(TensorShape(v) for v in value))
    described = apply_op("CDescribe", name="described", **{name: value}).item().decode()
    assert f"{name}={text}".encode().replace(b"\0;", b"") in described.encode().replace(b"\0;", b"")


GETTERS = [
    ("int", "i", 3), ("float", "f", 0.5), ("bool", "b", 1), ("string", "s", 4), ("type", "t", 9), ("shape", "h", 2),
    ("tensor", "v", 5), ("ints", "li", 3), ("floats", "lf", -0.5), ("bools", "lb", 2), ("strings", "ls", 3),
    ("types", "lt", 8), ("shapes", "lh", 0), ("tensors", "lv", 0),
]  # fmt: skip


@pytest.mark.parametrize("kind, name, expected", GETTERS)
def test_getters_of_attributes(kind, name, expected):
    assert apply_op("CGet", kind=kind, which=name) == expected


# State


def test_state_is_that_of_a_node():
    graph = cyxla.Graph()
    with graph.as_default():
        one, ten = apply_op("CTally", name="one"), apply_op("CTally", step=10, name="ten")
    before = int(apply_op("CDestroyed"))
    with cyxla.Session(graph) as session:
        assert [[int(v) for v in session.run([one, ten])] for _ in range(3)] == [[1, 10], [2, 20], [3, 30]]
        assert int(apply_op("CDestroyed")) == before
    del session
    collect()
    assert int(apply_op("CDestroyed")) == before + 2


def test_errors_of_constructors():
    """With the node, the op and the line in C; a state that was set nevertheless is destroyed."""
    graph = cyxla.Graph()
    with graph.as_default():
        bad = apply_op("CTally", step=0, name="bad")
    with cyxla.Session(graph) as session, pytest.raises(InvalidArgumentError, match="step is 0") as caught:
        session.run(bad)
    assert (caught.value.node, caught.value.op) == ("bad", "CTally")
    assert line_of("kernels.c", "CYXLA_REQUIRES(c, step > 0") in str(caught.value)
    assert "node 'bad' (CTally)" in str(caught.value)


# Errors

MISUSES = [
    (0, InternalError, r"is \[3\], but its shape function gives \[\]", "line of case 0"),
    (1, InvalidArgumentError, "has 1 outputs, none at 7", "line of case 1"),
    (2, AbortedError, "returned the code 10", ""),
    (3, InternalError, "failed without an error", ""),
    (4, FailedPreconditionError, "cyxla_set_shape cannot be called in a kernel", "line of case 4"),
    (5, InvalidArgumentError, "the attribute 'mode' is int, not float", "line of case 5"),
    (6, NotFoundError, "no attribute 'unheard'", "line of case 6"),
    (7, InternalError, "its kernel did not set it", ""),
    (8, DataLossError, "lost 8", "line of case 8"),
    (9, InvalidArgumentError, r"negative size: \[-2\]", "line of case 9"),
    (10, InternalError, "'?0'? got a value of object|declared", "line of case 10"),
    (11, InvalidArgumentError, "no temporary memory of string", "line of case 11"),
]


@pytest.mark.parametrize("mode, error, message, line", MISUSES, ids=[str(m[0]) for m in MISUSES])
def test_errors_of_kernels(mode, error, message, line):
    with pytest.raises(error, match=message) as caught:
        apply_op("CMisuse", mode=mode, name="misused")
    assert caught.value.node == "misused"
    assert (line_of("kernels.c", f"{line} */") if line else "(CMisuse)") in str(caught.value)
    assert line or "kernels.c" not in str(caught.value)
    assert ".py" not in str(caught.value)


# Forwarding


def test_inputs_are_forwarded_in_place_only_if_nobody_else_needs_them():
    graph = cyxla.Graph()
    with graph.as_default():
        fed = graph.placeholder("float", [None], name="fed")
        temporary = fed * np.float32(2)
        shared = fed * np.float32(3)
        first = apply_op("CForward", temporary)
        of_fed, of_shared = apply_op("CForward", fed), apply_op("CForward", shared)
    x = floats(1000)
    with cyxla.Session(graph, jit="off") as session:
        y, alone, _, fed_y, of_fed, _, shared_y, of_shared, _, kept = session.run(
            [*first, *of_fed, *of_shared, shared], {fed: x}
        )
    assert (int(alone), int(of_fed), int(of_shared)) == (1, 0, 0)
    np.testing.assert_array_equal(x, floats(1000))
    np.testing.assert_array_equal(y, x * 2 + 1)
    np.testing.assert_array_equal(fed_y, x + 1)
    np.testing.assert_array_equal(shared_y, x * 3 + 1)
    np.testing.assert_array_equal(kept, x * 3)


def test_arrays_of_eager_calls_are_not_forwarded():
    x = floats(10)
    _, reused, _ = apply_op("CForward", x)
    assert not reused
    np.testing.assert_array_equal(x, floats(10))


# Asynchronous kernels

DELAYED = [(0, None), (1, UnavailableError), (2, AbortedError), (3, None), (4, None)]


@pytest.mark.parametrize("mode, error", DELAYED)
def test_asynchronous_kernels(mode, error):
    """On another thread or at once, in graphs and in eager calls."""
    x = np.arange(5)
    graph = cyxla.Graph()
    with graph.as_default():
        fed = graph.placeholder("int64", [None])
        nodes = [apply_op("CDelayed", fed, mode=mode, name=f"later{k}") for k in range(8)]
        total = apply_op("AddN", nodes)
    with cyxla.Session(graph, jit="off") as session:
        if error is None:
            np.testing.assert_array_equal(session.run(total, {fed: x}), 8 * (x + 1))
            np.testing.assert_array_equal(apply_op("CDelayed", x, mode=mode), x + 1)
            return
        with pytest.raises(error) as caught:
            session.run(total, {fed: x})
        assert caught.value.node.startswith("later")
        with pytest.raises(error) as caught:
            apply_op("CDelayed", x, mode=mode)
    if mode == 1:
        assert line_of("kernels.c", "CYXLA_REQUIRES(c, mode != 1") in str(caught.value)


def test_asynchronous_kernels_see_that_their_step_is_cancelled(world):
    step = StepContext()
    made = world.make("CDelayed", mode=5)
    ctx = context(made, np.arange(3), step=step)
    ended = Barrier(2)
    made.start(ctx, ended.wait)
    assert ctx.status is None
    step.cancellation_manager.start_cancel()
    ended.wait(60)
    assert ctx.status.code == "CANCELLED"


# Resources


def accumulate(x, mode="add", **attrs):
    return int(apply_op("CAccumulate", np.int64(x), mode=mode, **attrs))


def alive():
    return accumulate(0, "none")


def test_resources_live_as_long_as_their_session(eager):
    before = alive()
    assert [accumulate(n) for n in (5, 6, 7)] == [5, 11, 18]
    assert accumulate(1, "lookup") == 19
    assert [accumulate(1, shared_name="b"), accumulate(1, container="c")] == [1, 1]
    assert alive() == before + 3
    accumulate(0, "delete")
    assert alive() == before + 2
    with pytest.raises(NotFoundError, match=r"localhost/acc/tests\.Accumulator"):
        accumulate(0, "lookup")
    eager.close()
    with use_context(EagerContext()):
        assert alive() == before


RESOURCE_ERRORS = [
    ("lookup", 0, NotFoundError, "there is no resource"),
    ("delete", 0, NotFoundError, "there is no resource"),
    ("add", -1, OutOfRangeError, "cannot begin with a negative number"),
    ("create", -1, OutOfRangeError, "cannot begin with a negative number"),
]


@pytest.mark.parametrize("mode, x, error, message", RESOURCE_ERRORS)
def test_errors_of_resources(mode, x, error, message):
    before = alive()
    with pytest.raises(error, match=message) as caught:
        accumulate(x, mode)
    assert "kernels.c:" in str(caught.value)
    assert alive() == before


def test_a_resource_is_created_once():
    before = alive()
    assert accumulate(3, "create") == 3
    with pytest.raises(AlreadyExistsError):
        accumulate(4, "create")
    assert accumulate(4) == 7
    assert alive() == before + 1


def test_types_of_resources_of_python_are_refused(eager):
    eager.engine.resource_manager.create("", "acc", Var(DataType.DT_FLOAT, TensorShape()))
    with pytest.raises(InvalidArgumentError, match="resource of Python"):
        accumulate(0, "variable")


def test_handles_of_resources():
    handle = apply_op("CAccumulatorHandle")
    assert handle.item().type_name == "tests.Accumulator"
    assert apply_op("CNameOfHandle", handle).tolist() == [b"handled", b"tests.Accumulator"]


def test_a_resource_that_is_in_use_is_not_destroyed():
    """A kernel looks it up and deletes it: it is destroyed when the call has ended."""
    collect()  # resources of other tests, which are counted, too
    before = alive()
    accumulate(5)
    assert accumulate(0, "outlive") == before + 1
    assert alive() == before


# Threads

THREADS, RUNS = 6, 300


def in_threads(function):
    """Call a function with the numbers of threads and runs, in threads that begin together."""
    ready, current = Barrier(THREADS), eager_context()

    def work(thread):
        ready.wait()
        with use_context(current):
            return [function(thread, run) for run in range(RUNS)]

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


def test_kernels_in_threads():
    s = np.arange(1, 4, dtype=np.float32)

    def call(thread, run):
        x = np.full((1 + run % 5, 3), thread + run, np.float32)
        np.testing.assert_array_equal(apply_op("CScaleRows", x, s, axis=1), x * s)
        texts = np.array([f"{thread}", f"{run}"], object)
        assert apply_op("CJoin", texts, texts).tolist() == [f"{thread}{thread}".encode(), f"{run}{run}".encode()]
        return accumulate(1, shared_name="threads")

    results = in_threads(call)
    assert sorted(n for row in results for n in row) == list(range(1, THREADS * RUNS + 1))


def test_graphs_with_asynchronous_kernels_in_threads():
    graph = cyxla.Graph()
    with graph.as_default():
        fed = graph.placeholder("int64", [None])
        y = apply_op("CDelayed", apply_op("CDelayed", fed, mode=4), mode=3)
    with cyxla.Session(graph, jit="off") as session:

        def call(thread, run):
            x = np.arange(run % 7) + thread
            np.testing.assert_array_equal(session.run(y, {fed: x}), x + 2)

        in_threads(call)


def test_a_library_of_version_2_is_loaded_once(library):
    results = []
    threads = [Thread(target=lambda: results.append(load_op_library(library.path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result is library for result in results)
    assert library.kernels == 19
    assert [op_def.name for op_def in library.ops][:3] == ["CScaleRows", "CDescribe", "CGet"]


def test_libraries_are_found_by_their_folder(library, tmp_path):
    """With nothing but the variable set, for compiled graphs too."""
    copy(library.path, tmp_path / "libcyxlakernel_found.so")
    use = """
import numpy as np
import cyxla
from cyxla.core.framework import apply_op
graph = cyxla.Graph()
with graph.as_default():
    x = graph.placeholder("float", [2])
    y = apply_op("CPower", x)
for jit in ("on", "auto", "off"):
    print(cyxla.Session(graph, jit=jit).run(y, {x: np.float32([2, 3])}))
"""
    env = {**os.environ, "CYXLA_KERNEL_PATH": str(tmp_path)}
    words = [sys.executable, "-c", use]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=env, check=False)
    assert (done.stdout, done.stderr) == ("[ 8. 27.]\n" * 3, "")
