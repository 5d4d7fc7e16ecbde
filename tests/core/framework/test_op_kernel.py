"""Kernels: their construction, their contract, and how they fail."""

import threading

import numpy as np
import pytest
from support.graphs.probes import Registries, context

from cyxla.core.framework import AsyncOpKernel, DeviceBase, OpKernel, array_kernel, kernel, op_requires
from cyxla.core.framework.op_kernel import op_requires_async, run_kernel
from cyxla.core.framework.types import DataType
from cyxla.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)


@pytest.fixture
def world():
    made = Registries()
    made.op("Probe", "x: T -> y: T", "T: {float, int32} = DT_FLOAT", "n: int = 3", "f: float = 0.5")
    made.op("Cut", "axis: int32, value: T -> parts: N * T", "N: int", "T: {float, int32} = DT_FLOAT")
    made.op("Many", "first: float, rest: N * float, last: float -> head: float, tail: N * float", "N: int >= 0")
    return made


def registered(world, cls, op="Probe", **attrs):
    kernel(op, registry=world.kernels)(cls)
    return world.make(op, **attrs)


X = np.arange(3, dtype=np.float32)


def test_accessors(world):
    """A kernel knows the facts of its node, for an op with a list output."""
    device = DeviceBase()
    made = registered(world, type("Cut", (OpKernel,), {}), "Cut", N=3)
    assert (made.name, made.type_string) == ("probe", "Cut")
    assert made.input_types == (DataType.DT_INT32, DataType.DT_FLOAT)
    assert made.output_types == (DataType.DT_FLOAT,) * 3
    assert (made.input_range("value"), made.output_range("parts")) == (range(1, 2), range(3))
    assert made.requested_inputs == ["x0", "x1"]
    assert made.requested_device == ""
    assert (made.node_def.op, made.device.device_type) == ("Cut", device.device_type)
    assert len(made.input_memory_types) == 2
    with pytest.raises(InvalidArgumentError, match="unknown input name 'nothing': Cut has axis, value"):
        made.input_range("nothing")


def test_node_facts_are_resolved_once(world):
    """Names map to ranges, also around an empty list."""
    made = registered(world, type("Many", (OpKernel,), {}), "Many", N=2)
    assert made.props.input_ranges == {"first": range(1), "rest": range(1, 3), "last": range(3, 4)}
    none = world.make("Many", N=0)
    assert none.props.input_ranges == {"first": range(1), "rest": range(1, 1), "last": range(1, 2)}
    assert none.props is none.props


class Looks(OpKernel):
    """Keeps the arguments of its constructor."""

    def __init__(self, construction):
        super().__init__(construction)
        self.seen = construction
        self.scratch = construction.allocate_temp(np.float32, (4,))


def test_the_context_of_constructors(world):
    seen = registered(world, Looks).seen
    assert (seen.device_type, seen.props.node_def.name, seen.graph_def_version) == ("CPU", "probe", 0)
    assert seen.resource_manager is seen.device.resource_manager
    assert seen.function_library is None
    assert seen.persistent_bytes == 16
    assert world.make("Probe").scratch.shape == (4,)


def test_attributes_in_construction(world):
    """Missing is code 5, another kind code 3; either fails the creation."""
    seen = registered(world, Looks).seen
    assert (seen.get_attr("n"), seen.get_attr("f", "float"), seen.has_attr("m")) == (3, 0.5, False)
    with pytest.raises(NotFoundError, match="'m'"):
        seen.get_attr("m")
    with pytest.raises(InvalidArgumentError, match="of kind int, not float"):
        seen.get_attr("n", "float")


def test_match_signature(world):
    """Both signatures are told."""
    made = registered(world, Looks)
    made.seen.match_signature(["float"], [np.float32])
    with pytest.raises(InvalidArgumentError, match="is float->float, the kernel is for int32->float"):
        made.seen.match_signature(["int32"], ["float"])
    with pytest.raises(InvalidArgumentError, match="the kernel is for"):
        context(made, X).match_signature(["float"], [])


class Checks(OpKernel):
    """Its constructor refuses."""

    def __init__(self, construction):
        super().__init__(construction)
        construction.require(False, "n is odd", UnimplementedError, hint="take another n")


def test_a_failing_constructor_names_the_node(world):
    with pytest.raises(UnimplementedError, match=r"n is odd[\s\S]*node 'probe'") as error:
        registered(world, Checks)
    assert error.value.hint == "take another n"


def test_an_error_carries_the_line_of_the_check(world):

    @kernel("Probe", registry=world.kernels)
    def checks(ctx):
        ctx.require(False, "never")

    made = world.make("Probe")
    with pytest.raises(
        InvalidArgumentError, match=r"never[\s\S]*node 'probe' \(Probe\), test_op_kernel.py:\d+"
    ) as error:
        run_kernel(made, context(made, X))
    assert (error.value.node, error.value.op) == ("probe", "Probe")


ESCAPES = [
    (InvalidArgumentError("as it is"), InvalidArgumentError, "as it is"),
    (ZeroDivisionError("over"), InternalError, "Probe failed with ZeroDivisionError: over"),
    (MemoryError("all gone"), ResourceExhaustedError, "out of memory"),
]


@pytest.mark.parametrize("raised, error, text", ESCAPES, ids=lambda v: type(v).__name__)
def test_exceptions_of_kernels(world, raised, error, text):
    """One check stops the kernel, whose error is that of the step."""

    @kernel("Probe", registry=world.kernels)
    def fails(ctx):
        op_requires(True, InternalError("not reached"))
        op_requires(False, raised)
        raise AssertionError

    made = world.make("Probe")
    with pytest.raises(error, match=text):
        run_kernel(made, context(made, X))


def test_functions_and_classes_are_the_same(world):
    @kernel("Probe", types={"T": "float"}, registry=world.kernels, expensive=True)
    def negative(ctx):
        ctx.set_output("y", -ctx.input("x"))

    @kernel("Probe", types={"T": "int32"}, registry=world.kernels)
    class Negative(OpKernel):
        def compute(self, ctx):
            ctx.set_output("y", -ctx.input("x"))

    for dtype in ("float", "int32"):
        made = world.make("Probe", T=dtype)
        x = np.array([1, 2], made.input_types[0].numpy)
        assert run_kernel(made, context(made, x))[0].tolist() == [-1, -2]
        assert made.is_expensive is (dtype == "float")
        assert made.array_fn is None
        assert made.as_async() is None


ARRAY_FUNCTIONS = [
    # op, attributes, function, attributes passed, inputs, outputs
    ("Probe", {}, np.negative, (), [1.0], [-1.0]),
    ("Probe", {"n": 5}, lambda x, *, n, f: x * n + f, ("n", "f"), [2.0], [10.5]),
    ("Cut", {"N": 2}, lambda axis, value: [value, value + 1], (), [0, 1.0], [1.0, 2.0]),
    ("Cut", {"N": 1}, lambda axis, value: [value], (), [0, 1.0], [1.0]),
    ("Many", {"N": 2}, lambda a, rest, b: (a + b, [r * 2 for r in rest]), (), [1.0, 2.0, 3.0, 4.0], [5.0, 4.0, 6.0]),
    ("Many", {"N": 0}, lambda a, rest, b: (a - b, rest), (), [1.0, 4.0], [-3.0]),
]


@pytest.mark.parametrize("op, attrs, fn, passed, inputs, outputs", ARRAY_FUNCTIONS)
def test_array_kernels(world, op, attrs, fn, passed, inputs, outputs):
    """List arguments come and go as lists; `array_fn` takes and gives them one by one."""
    array_kernel(op, fn, attrs=passed, registry=world.kernels)
    made = world.make(op, **attrs)
    arrays = [np.array(v, t.numpy) for v, t in zip(inputs, made.input_types, strict=True)]
    results = run_kernel(made, context(made, *arrays))
    assert [r.tolist() for r in results] == outputs
    assert all(isinstance(r, np.ndarray) for r in results)
    flat = made.array_fn(*arrays)
    assert [float(r) for r in ([flat] if len(outputs) == 1 else flat)] == outputs


def test_array_kernels_are_checked(world):
    array_kernel("Probe", lambda x: x.astype(np.float64), registry=world.kernels)
    made = world.make("Probe")
    with pytest.raises(InternalError, match="float64, but float is declared"):
        run_kernel(made, context(made, X))
    array_kernel("Cut", lambda axis, value: [value] * 3, registry=world.kernels)
    cut = world.make("Cut", N=2)
    with pytest.raises(InternalError, match="3 results for 2 outputs"):
        run_kernel(cut, context(cut, np.array(0, np.int32), X))


def test_trace_string(world):
    made = registered(world, type("Cut", (OpKernel,), {}), "Cut", N=1)
    assert made.trace_string() == "probe:Cut"
    ctx = context(made, np.array(0, np.int32), np.zeros((2, 3), np.float32))
    assert made.trace_string(ctx) == "probe:Cut#shape=(scalar;2x3)#"


# Kernels that wait


class Later(AsyncOpKernel):
    """Ends in another thread."""

    def compute_async(self, ctx, done):
        def work():
            ctx.set_output(0, ctx.input(0) + 1)
            done()

        threading.Thread(target=work).start()


def test_an_asynchronous_kernel(world):
    """Computing it waits; it is its own asynchronous side."""
    made = registered(world, Later)
    assert made.as_async() is made
    assert run_kernel(made, context(made, X))[0].tolist() == [1, 2, 3]
    ended = threading.Event()
    ctx = context(made, X)
    made.start(ctx, ended.set)
    assert ended.wait(600)
    assert ctx.take_outputs()[0].tolist() == [1, 2, 3]


def test_done_is_called_once(world):
    """The second call is code 13."""
    errors, calls = [], []

    class Twice(AsyncOpKernel):
        def compute_async(self, ctx, done):
            done()
            try:
                done()
            except OpError as error:
                errors.append(error)

    made = registered(world, Twice)
    made.start(context(made, X), lambda: calls.append(1))
    assert len(calls) == 1
    assert isinstance(errors[0], InternalError)
    assert errors[0].node == "probe"


@pytest.mark.parametrize("first_done", [False, True])
def test_exceptions_of_asynchronous_kernels(world, first_done):
    """The exception becomes the status, and done is called exactly once."""
    calls = []

    class Fails(AsyncOpKernel):
        def compute_async(self, ctx, done):
            if first_done:
                done()
            raise ValueError("oh")

    made = registered(world, Fails)
    ctx = context(made, X)
    made.start(ctx, lambda: calls.append(1))
    assert len(calls) == 1
    assert isinstance(ctx.status, InternalError)
    with pytest.raises(InternalError, match="oh"):
        run_kernel(made, context(made, X))


def test_the_asynchronous_check(world):
    """It sets the status and calls done."""
    calls = []

    class Checked(AsyncOpKernel):
        def compute_async(self, ctx, done):
            if op_requires_async(ctx, ctx.input(0).size > 5, InvalidArgumentError("too small"), done):
                raise AssertionError

    made = registered(world, Checked)
    ctx = context(made, X)
    made.start(ctx, lambda: calls.append(1))
    assert len(calls) == 1
    assert isinstance(ctx.status, InvalidArgumentError)


def test_one_kernel_serves_many_threads(world):
    array_kernel("Probe", lambda x: x * 2, registry=world.kernels)
    made = world.make("Probe")
    wrong = []

    def work(k):
        for _ in range(200):
            x = np.full(10, k, np.float32)
            if not (run_kernel(made, context(made, x))[0] == 2 * k).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
