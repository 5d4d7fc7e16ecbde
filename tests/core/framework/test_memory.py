"""Allocators, attributes of memory, and the record of allocations."""

import numpy as np
import pytest
from support.graphs.probes import Registries, context

from cyxla.core.framework import (
    Allocator,
    AllocatorAttributes,
    AllocatorRegistry,
    DeviceBase,
    OpKernel,
    StepContext,
    kernel,
)
from cyxla.core.framework.op_kernel_context import NEVER_FORWARD, NO_RESERVATION
from cyxla.errors import AlreadyExistsError, NotFoundError, ResourceExhaustedError


@pytest.fixture(scope="module")
def world():
    made = Registries()
    made.op("Two", "a: T, b: T -> c: T, d: T", "T: {float, int32} = DT_FLOAT")
    kernel("Two", registry=made.kernels, host_memory=("b", "d"))(OpKernel)
    return made


def two(world, device=None, **facts):
    inputs = [np.ones(3, np.float32), np.ones(3, np.float32)]
    return context(world.make("Two", device), *inputs, **facts)


class Counting(Allocator):
    """Allocator that remembers what it was asked for."""

    def __init__(self):
        super().__init__("counting")
        self.shapes = []

    def make_array(self, dtype, shape):
        """Fill with sevens."""
        self.shapes.append(tuple(shape))
        return np.full(tuple(shape), 7, dtype)


@pytest.mark.parametrize("flags, value", [
    ({}, 0), ({"on_host": True}, 1), ({"nic_compatible": True}, 2), ({"gpu_compatible": True}, 4),
    ({"on_host": True, "gpu_compatible": True}, 5),
])  # fmt: skip
def test_flags_are_bits(flags, value):
    assert AllocatorAttributes(**flags).value == value


@pytest.mark.parametrize("a, b, merged, fits", [
    ({},                  {"on_host": True},        {"on_host": True},                            True),
    ({"on_host": True},   {},                       {"on_host": True},                            False),
    ({"on_host": True},   {"gpu_compatible": True}, {"on_host": True, "gpu_compatible": True},    False),
])  # fmt: skip
def test_attributes_are_merged_and_compared(a, b, merged, fits):
    one, other = AllocatorAttributes(**a), AllocatorAttributes(**b)
    assert one.merge(other) == AllocatorAttributes(**merged)
    assert one.is_equal_or_less_restrictive_than(other) == fits


def test_host_memory_is_an_attribute_of_inputs_and_outputs(world):
    ctx = two(world)
    assert [ctx.input_alloc_attr(k).on_host for k in ("a", "b")] == [False, True]
    assert [ctx.output_alloc_attr(k).on_host for k in (0, 1)] == [False, True]


def test_a_device_may_have_an_allocator_of_its_own(world):
    own = Counting()
    ctx = two(world, DeviceBase(allocator=own))
    assert ctx.allocate_output(0, [2]).tolist() == [7, 7]
    ctx.allocate_temp("int32", [5])
    ctx.allocate_output("d", [4])  # on the host
    ctx.allocate_temp("int32", [6], AllocatorAttributes(on_host=True))
    assert own.shapes == [(2,), (5,)]
    assert (own.allocations, own.bytes_allocated, own.largest) == (2, 28, 20)
    assert ctx.get_allocator() is own
    assert ctx.get_allocator(AllocatorAttributes(on_host=True)) is AllocatorRegistry.global_().get_allocator()


def test_constructors_allocate_memory_of_the_device():
    own, seen, made = Counting(), [], Registries()
    made.op("Keeps", "-> y: float")

    @kernel("Keeps", registry=made.kernels)
    class Keeps(OpKernel):
        def __init__(self, construction):
            super().__init__(construction)
            seen.append(construction)
            self.kept = construction.allocate_temp("float", [2])
            construction.allocate_temp("int32", [5], AllocatorAttributes(on_host=True))

    assert made.make("Keeps", DeviceBase(allocator=own)).kept.tolist() == [7, 7]
    assert own.shapes == [(2,)]
    assert seen[0].get_allocator() is own
    assert seen[0].get_allocator(AllocatorAttributes(on_host=True)) is AllocatorRegistry.global_().get_allocator()
    assert seen[0].persistent_bytes == 28


def test_the_allocator_of_the_highest_priority_serves():
    registry = AllocatorRegistry()
    with pytest.raises(NotFoundError, match="no allocator"):
        registry.get_allocator()
    registry.register("plain", Allocator, 100)
    registry.register("counting", Counting, 200)
    assert registry.names() == ["counting", "plain"]
    assert registry.get_allocator() is registry.get_allocator()
    assert registry.get_allocator().name == "counting"
    with pytest.raises(AlreadyExistsError, match="priority 200"):
        registry.register("counting", Counting, 200)
    registry.unregister("counting")
    assert registry.get_allocator().name == "cpu"


def test_a_failing_allocator(world):
    class Empty(Allocator):
        def make_array(self, dtype, shape):
            raise MemoryError

    with pytest.raises(ResourceExhaustedError, match=r"OOM when allocating tensor with shape \[2\]"):
        two(world, DeviceBase(allocator=Empty())).allocate_output(0, [2])


def test_a_kernel_records_memory_of_its_own(world):
    ctx = two(world, step=StepContext(track_allocations=True))
    ctx.allocate_temp("float", [2])
    ctx.record_temp_memory_allocation(100)
    ctx.record_persistent_memory_allocation(50, 7)
    ctx.record_persistent_memory_allocation(-20)
    ctx.record_persistent_memory_allocation(0, 3)
    assert (ctx.temp_memory_allocated, ctx.persistent_memory_allocated) == (108, 30)
    assert ctx.persistent_alloc_ids == (7, 3)
    ctx.clear_recorded_memory()
    assert (ctx.temp_memory_allocated, ctx.persistent_alloc_ids, ctx.track_allocations) == (0, (), True)
    ctx.set_record_memory_consumption(False)
    ctx.record_temp_memory_allocation(100)
    assert (ctx.temp_memory_allocated, ctx.track_allocations) == (0, False)


@pytest.mark.parametrize("reserved, forwards, expects", [
    ((),                                  True,  False),
    ((NO_RESERVATION, NO_RESERVATION),    True,  False),
    ((0, NO_RESERVATION),                 True,  True),
    ((NEVER_FORWARD, NO_RESERVATION),     False, False),
    ((NO_RESERVATION, 0),                 False, False),
    ((1, NO_RESERVATION),                 True,  True),
])  # fmt: skip
def test_reservations_of_inputs(world, reserved, forwards, expects):
    """Output 0 asks for input 0, which nobody else holds."""
    ctx = two(world, last_use=(True, False), forward_from=reserved)
    ctx._last_use = [True, False]
    assert (ctx.forward_input(0, 0) is not None) == forwards
    assert ctx.output_expects_forwarding(0) == expects
