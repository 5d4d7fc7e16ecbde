"""The context of kernels while they compute."""

import numpy as np
import pytest
from support.graphs.probes import Registries, context

from cyxla.core.framework import (
    CancellationManager,
    MemoryType,
    OpKernel,
    Ref,
    ResourceBase,
    StepContext,
    TensorShape,
    Var,
    kernel,
)
from cyxla.core.framework.op_kernel import run_kernel
from cyxla.core.framework.types import DataType
from cyxla.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    ShapeError,
)

F32 = DataType.DT_FLOAT
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Probe(OpKernel):
    """Computes nothing."""

    def compute(self, ctx):
        """Do nothing."""


@pytest.fixture(scope="module")
def world():
    made = Registries()
    made.op("Two", "a: T, b: T -> c: T, d: T", "T: {float, double, int32} = DT_FLOAT", "n: int = 3")
    made.op("Joined", "xs: N * T -> y: T, zs: N * T", "N: int", "T: {float, int32} = DT_FLOAT")
    made.op("Refs", "r: Ref(float), x: float -> s: Ref(float), y: float")
    made.op("RefList", "rs: Ref(N * float) -> y: float", "N: int")
    made.op("Handle", "h: resource -> y: float")
    kernel(("Two", "Joined", "Refs", "RefList", "Handle"), registry=made.kernels)(Probe)
    return made


def two(world, *inputs, dtype="float", **facts):
    made = world.make("Two", T=dtype)
    return context(made, *(inputs or (X.copy(), X.copy())), **facts)


def test_the_signature_at_run_time(world):
    ctx = two(world, dtype="float")
    assert (ctx.num_inputs, ctx.num_outputs) == (2, 2)
    assert [ctx.input_dtype(k) for k in (0, "b")] == [F32, F32]
    assert [ctx.expected_output_dtype(k) for k in ("c", 1)] == [F32, F32]
    assert (ctx.input_memory_type(0), ctx.output_memory_type("d")) == (MemoryType.DEVICE, MemoryType.DEVICE)
    assert ctx.attr("n") == 3
    with pytest.raises(NotFoundError, match="'m'"):
        ctx.attr("m")


def test_execution_facts(world):
    ctx = two(world, frame_iter=("loop", 4), is_input_dead=True, call_frame="frame")
    assert (ctx.op_kernel.name, ctx.device.device_type) == ("probe", "CPU")
    assert (ctx.frame_iter, ctx.is_input_dead, ctx.call_frame) == (("loop", 4), True, "frame")


def test_inputs_by_place_and_name(world):
    a, b = X.copy(), X + 1
    ctx = two(world, a, b)
    assert ctx.input(0) is a
    assert ctx.input("b") is b
    for key in (2, -1, "z"):
        with pytest.raises(InvalidArgumentError):
            ctx.input(key)


def test_lists_are_not_single(world):
    made = world.make("Joined", N=2)
    ctx = context(made, X, X + 1)
    assert [x[0, 0] for x in ctx.input_list("xs")] == [0, 1]
    with pytest.raises(InvalidArgumentError, match="list-valued input name 'xs'"):
        ctx.input("xs")
    ctx.set_output("y", X)
    ctx.set_output_list("zs", [X, X])
    assert len(ctx.output_list("zs")) == 2
    with pytest.raises(InvalidArgumentError, match="list-valued output name 'zs'"):
        ctx.set_output("zs", X)
    with pytest.raises(InternalError, match="3 values for output 'zs', which has 2"):
        ctx.set_output_list("zs", [X] * 3)
    assert len(two(world).input_list("a")) == 1
    with pytest.raises(InvalidArgumentError, match="list-valued"):
        context(world.make("Joined", N=1), X).input("xs")


def test_absent_inputs(world):
    ctx = two(world, None, X)
    assert [ctx.has_input(i) for i in (0, "b")] == [False, True]


def test_all_inputs_of_one_shape(world):
    two(world).validate_inputs_are_same_shape()
    with pytest.raises(ShapeError, match=r"input 0 is \[2, 3\], input 1 is \[3\]"):
        two(world, X, X[0]).validate_inputs_are_same_shape()


# Outputs


def test_outputs(world):
    ctx = two(world)
    array = ctx.allocate_output("c", (4,))
    assert (array.shape, array.dtype) == ((4,), np.float32)
    temp = ctx.allocate_temp("float", (2, 2))
    ctx.set_output(1, temp)
    assert ctx.take_outputs()[0] is array
    assert ctx.take_outputs()[1] is temp
    assert ctx.mutable_output(0) is array
    assert ctx.release_output(0) is array
    assert ctx.mutable_output(0) is None


def test_scalars_of_numpy_become_arrays(world):
    ctx = two(world)
    ctx.set_output(0, np.float32(2))
    assert isinstance(ctx.mutable_output(0), np.ndarray)
    assert ctx.mutable_output(0).shape == ()


@pytest.mark.parametrize("value", [np.zeros(2), np.float64(1), 1.0, [1.0], None], ids=repr)
def test_outputs_of_another_type(world, value):
    """Code 13."""
    with pytest.raises(InternalError, match="float is declared"):
        two(world).set_output(0, value)


def test_memory_has_limits(world):
    """Code 8 above the limit of the step."""
    step = StepContext(memory_limit=100)
    ctx = two(world, step=step)
    ctx.allocate_output(0, (20,))
    with pytest.raises(ResourceExhaustedError, match="OOM"):
        ctx.allocate_output(1, (20,))
    with pytest.raises(ResourceExhaustedError):
        two(world).allocate_output(0, (1 << 60,))
    with pytest.raises(InvalidArgumentError):
        two(world).allocate_output(0, (-1,))


def test_allocations_are_recorded(world):
    ctx = two(world, step=StepContext(track_allocations=True))
    ctx.allocate_output(0, (2,))
    ctx.allocate_temp(np.int32, (3,))
    ctx.allocate_persistent("double", ())
    assert [(a.use, a.size) for a in ctx.allocations] == [("output", 8), ("temp", 12), ("persistent", 8)]
    assert two(world).allocations is None


def test_needed_outputs_must_be_set(world):
    ctx = two(world, required=(True, False))
    assert [ctx.output_required(i) for i in ("c", 1)] == [True, False]
    with pytest.raises(InternalError, match="Missing 0-th output"):
        ctx.take_outputs()
    ctx.set_output(0, X)
    assert ctx.take_outputs()[1] is None
    full = two(world)
    full.set_output(0, X)
    assert full.output_required(1)
    with pytest.raises(InternalError, match="Missing 1-th output"):
        run_kernel(full.op_kernel, full)


def test_the_first_error_stays(world):
    ctx = two(world)
    assert ctx.status is None
    ctx.set_status(InvalidArgumentError("first"))
    ctx.set_status(InternalError("second"))
    with pytest.raises(InvalidArgumentError, match="first"):
        ctx.take_outputs()


def test_requirements(world):
    ctx = two(world)
    ctx.require(True, "fine")
    with pytest.raises(NotFoundError, match=r"gone[\s\S]*look again"):
        ctx.require(False, "gone", NotFoundError, hint="look again")


# References


def test_references(world):
    made = world.make("Refs")
    ref = Ref(F32, X.copy())
    ctx = context(made, ref, X)
    assert ctx.input(0) is ref.value
    assert [ctx.input_is_ref(i) for i in (0, 1)] == [True, False]
    assert ctx.mutable_input("r") is ref
    with pytest.raises(InvalidArgumentError, match="not a reference"):
        ctx.mutable_input(1)
    ctx.forward_ref_input_to_ref_output(0, "s")
    assert ctx.mutable_output(0) is ref
    ctx.replace_ref_input(0, np.zeros(9, np.float32))
    assert ref.value.shape == (9,)
    with pytest.raises(InternalError):
        ctx.replace_ref_input(0, np.zeros(9))
    ctx.delete_ref_input(0)
    assert not ref.is_initialized


def test_reference_outputs_are_of_their_own_kind(world):
    ctx = context(world.make("Refs"), Ref(F32, X), X)
    with pytest.raises(InternalError, match="set_output_ref"):
        ctx.set_output("s", X)
    with pytest.raises(InternalError, match="cannot be allocated"):
        ctx.allocate_output(0, (1,))
    with pytest.raises(InternalError, match="use set_output"):
        ctx.set_output_ref("y", Ref(F32))


def test_lists_of_references(world):
    refs = [Ref(F32, X), Ref(F32, X)]
    assert context(world.make("RefList", N=2), *refs).mutable_input_list("rs") == refs


def test_readers_keep_their_values():
    variable = Var(F32)
    variable.assign(np.ones(3, np.float32), owned=True)
    variable.writable()[0] = 5  # nobody has seen it yet: in place
    seen = variable.read()
    variable.writable()[1] = 6
    assert seen.tolist() == [5, 1, 1]
    assert variable.read().tolist() == [5, 6, 1]


# Forwarding


def forwarded(world, *, last=True, out="float", view=False, shape=None, readonly=False, held=False):
    """Whether an input becomes an output, in a kernel called as the executor calls it."""
    world.op("Forward", f"a: float -> b: {out}")
    results = []

    class Forwards(OpKernel):
        def compute(self, ctx):
            results.append(ctx.forward_input(0, 0, shape))

    kernel("Forward", registry=world.kernels)(Forwards)
    made = world.make("Forward")
    values = [X.copy()[:, ::-1] if view else X.copy()]
    values[0].flags.writeable = not readonly
    keep = values[0][:1] if held else None
    made.compute(context(made, values.pop(), last_use=(last,)))
    assert keep is None or keep.base is not None
    return results[0] is not None


FORWARDING = [
    ({}, True),
    ({"last": False}, False),  # somebody needs the value afterwards
    ({"out": "int32"}, False),  # another type
    ({"shape": (3, 2)}, True),
    ({"shape": (7,)}, False),  # another number of elements
    ({"view": True}, False),  # memory that belongs to another array
    ({"held": True}, False),  # memory that another array shares
    ({"readonly": True}, False),  # a constant
]


@pytest.mark.parametrize("facts, outcome", FORWARDING, ids=str)
def test_when_an_input_may_become_an_output(facts, outcome):
    assert forwarded(Registries(), **facts) is outcome


def test_references_are_never_forwarded(world):
    assert context(world.make("Refs"), Ref(F32, X.copy()), X, last_use=(True, True)).forward_input(0, 1) is None


def test_forwarding_in_another_shape(world):
    a = X.copy()
    ctx = two(world, a, X)
    assert ctx.forward_input_to_output_with_shape(0, "c", (3, 2))
    assert np.shares_memory(ctx.mutable_output(0), a)
    assert not ctx.forward_input_to_output_with_shape(0, 1, (7,))


def test_forward_or_allocate(world):
    """In place where the input is not needed otherwise; -1 and fresh memory where it is."""
    made = world.make("Two")
    held = X.copy()
    ctx = context(made, held, X.copy(), last_use=(True, True))
    array, index = ctx.forward_input_or_allocate_output((0, "b"), "c", (2, 3))
    assert index == 1
    assert array is ctx.mutable_output(0)
    assert array is not held
    fresh, index = ctx.forward_input_or_allocate_output((0,), 1, (2, 3))
    assert index == -1
    assert not np.shares_memory(fresh, held)


# The step


def test_a_step():
    """Identities differ; a deadline and a cancellation stop it."""
    one, two_ = StepContext(), StepContext()
    assert one.step_id != two_.step_id
    assert one.start_time <= two_.start_time
    one.check_running()
    with pytest.raises(DeadlineExceededError):
        StepContext(deadline=0.0).check_running()
    manager = CancellationManager()
    step = StepContext(cancellation_manager=manager)
    manager.start_cancel()
    with pytest.raises(CancelledError):
        step.check_running()


def test_contexts_share_the_step(world):
    step = StepContext(rendezvous="meet", function_library="functions")
    ctx = two(world, step=step)
    assert (ctx.step_id, ctx.rendezvous, ctx.function_library) == (step.step_id, "meet", "functions")
    assert ctx.cancellation_manager is step.cancellation_manager
    assert ctx.resource_manager is step.resource_manager
    assert ctx.thread_pool is ctx.device.thread_pool
    ran = []
    step.runner(lambda: ran.append(1))
    assert ran == [1]


class Thing(ResourceBase):
    """A resource."""

    closed = 0

    def close(self):
        """Count."""
        self.closed += 1


class Other(ResourceBase):
    """Another."""


def handle_context(world, handle, step):
    return context(world.make("Handle"), handle, step=step)


def test_resources_by_handle(world):
    step = StepContext()
    ctx = two(world, step=step)
    handle = ctx.make_handle("", "thing", Thing, ((F32, TensorShape([2])),))
    assert handle.item().dtypes_and_shapes[0][0] == F32
    with pytest.raises(NotFoundError, match="there is no resource localhost/thing/Thing"):
        handle_context(world, handle, step).lookup_resource(0, Thing)
    made = handle_context(world, handle, step).lookup_or_create_resource("h", Thing, Thing)
    assert handle_context(world, handle, step).lookup_resource("h", Thing) is made
    with pytest.raises(InvalidArgumentError, match="is a "):
        handle_context(world, handle, step).lookup_resource(0, Other)
    handle_context(world, handle, step).delete_resource(0)
    assert made.closed == 1
    with pytest.raises(NotFoundError):
        handle_context(world, handle, step).delete_resource(0)
    with pytest.raises(InvalidArgumentError, match="does not hold the handle"):
        handle_context(world, np.empty((), object), step).lookup_resource(0, Thing)


def test_the_container_of_a_step(world):
    """Resources of the step end with it."""
    step = StepContext()
    ctx = two(world, step=step)
    thing = Thing()
    ctx.resource_manager.create(ctx.step_container.name, "t", thing)
    assert len(step.resource_manager) == 1
    step.close()
    assert len(step.resource_manager) == 0
    assert thing.closed == 1
