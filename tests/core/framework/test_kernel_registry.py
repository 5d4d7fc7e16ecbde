"""Registering kernels, and choosing one for a node."""

import logging
import subprocess
import sys

import numpy as np
import pytest
from support.graphs.probes import Registries, context

from cyxla.core.framework import DeviceBase, KernelDef, MemoryType, Name, NodeDef, OpKernel, create_op_kernel, kernel
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.kernel_registry import (
    KernelRegistry,
    kernel_attrs_match,
    register_kernel_builder,
    validate_kernel_registrations,
)
from cyxla.core.framework.op_kernel import run_kernel
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, NotFoundError, OpError, UnimplementedError

F32, F64, I32 = DataType.DT_FLOAT, DataType.DT_DOUBLE, DataType.DT_INT32


class Probe(OpKernel):
    """Does nothing; its class is looked at."""


class OtherProbe(OpKernel):
    """The same by another name."""


@pytest.fixture
def world():
    made = Registries()
    made.op("Probe", "x: T -> y: T", "T: {float, double, int32}", "S: type = DT_FLOAT", "n: int = 0")
    made.op("Mixed", "xs: Ts -> y: float", "Ts: list({float, double, int32})")
    return made


def chosen(world, node, device="CPU"):
    return world.kernels.find_kernel_def(device, node)[1]


def test_zero_out_the_classic_example():
    """An op and its kernel, declared and run."""
    world = Registries()
    world.op("ZeroOut", "to_zero: int32 -> zeroed: int32")

    @kernel("ZeroOut", registry=world.kernels)
    def zero_out(ctx):
        flat = ctx.input(0).reshape(-1)
        out = ctx.allocate_output(0, ctx.input(0).shape)
        out[...] = 0
        out.reshape(-1)[:1] = flat[:1]

    made = world.make("ZeroOut")
    (result,) = run_kernel(made, context(made, np.array([5, 4, 3], np.int32)))
    assert result.tolist() == [5, 0, 0]


def test_a_chain_is_a_value_that_becomes_a_description():
    """Every setter returns the chain, and `build` makes the KernelDef."""
    chain = Name("Probe")
    steps = [
        chain.device("CPU"), chain.type_constraint("T", (np.float32, "double")), chain.host_memory("x"),
        chain.label("fast"), chain.priority(3),
    ]  # fmt: skip
    assert all(step is chain for step in steps)
    assert chain.build() == KernelDef("Probe", "CPU", {"T": (F32, F64)}, ("x",), "fast", 3)
    assert str(chain.build()) == (
        "device='CPU'; T in [DT_FLOAT, DT_DOUBLE]; host_memory=['x']; label='fast'; priority=3"
    )


@pytest.mark.parametrize("chain", [Name("Probe"), Name("").device("CPU")], ids=["no device", "no op"])
def test_a_chain_without_op_or_device_is_refused(chain):
    with pytest.raises(InvalidArgumentError, match="is named"):
        register_kernel_builder(chain, Probe, KernelRegistry())


def test_a_constraint_or_a_label_is_given_once():
    with pytest.raises(InvalidArgumentError, match="two constraints"):
        Name("A").type_constraint("T", np.int32).type_constraint("T", np.int8)
    with pytest.raises(InvalidArgumentError, match="labels"):
        Name("A").label("a").label("b")


def test_types_divide_the_kernels_of_an_op(world):
    """The float kernel is not chosen for int32; both are classes of their own."""
    kernel("Probe", types={"T": np.float32}, registry=world.kernels)(Probe)
    kernel("Probe", types={"T": (np.int32,)}, registry=world.kernels)(OtherProbe)
    assert chosen(world, world.node("Probe", T="float")) == "Probe"
    assert chosen(world, world.node("Probe", T="int32")) == "OtherProbe"
    assert type(world.make("Probe", T="int32")) is OtherProbe
    with pytest.raises(NotFoundError):
        chosen(world, world.node("Probe", T="double"))


def test_registrations_of_tensorflow():
    """Those of Save, Sub and Reshape, as its documentation shows them."""
    kernels = KernelRegistry()
    host_shape = Name("Reshape").device("GPU").host_memory("shape").type_constraint("Tshape", np.int32)
    for chain, cls in (
        (Name("Save").device("CPU"), Probe), (Name("Sub").device("CPU").type_constraint("T", np.float32), Probe),
        (Name("Sub").device("CPU").type_constraint("T", np.int32), OtherProbe), (host_shape, Probe),
    ):  # fmt: skip
        register_kernel_builder(chain, cls, kernels)

    def made(op, inputs, device="CPU", **types):
        attrs = {name: AttrValue("list(type)" if isinstance(t, tuple) else "type", t) for name, t in types.items()}
        node = NodeDef("n", op, [f"x{k}" for k in range(inputs)], "", attrs)
        return create_op_kernel(DeviceBase(f"/device:{device}:0", device), node, kernels=kernels)

    assert type(made("Save", 4, T=(F32, I32))) is Probe
    assert [type(made("Sub", 2, T=t)) for t in (F32, I32)] == [Probe, OtherProbe]
    reshape = made("Reshape", 2, "GPU", T=F64, Tshape=I32)
    assert reshape.input_memory_types == (MemoryType.DEVICE, MemoryType.HOST)
    for op, types in (("Sub", {"T": F64}), ("Reshape", {"T": F64, "Tshape": I32})):
        with pytest.raises(NotFoundError):
            made(op, 2, **types)


def test_every_element_of_a_list_must_be_allowed(world):
    kernel("Mixed", types={"Ts": (F32, F64)}, registry=world.kernels)(Probe)
    assert chosen(world, world.node("Mixed", Ts=("float", "double"))) == "Probe"
    assert not world.kernels.kernel_def_available("CPU", world.node("Mixed", Ts=("float", "int32")))


MATCHES = [
    # constraints, attributes of the node, what comes of it
    pytest.param({}, {}, True, id="no constraint"),
    pytest.param({"T": (F32,)}, {"T": AttrValue("type", F32)}, True, id="match"),
    pytest.param({"T": (F32,)}, {"T": AttrValue("type", I32)}, False, id="mismatch"),
    pytest.param({"T": (F32, I32)}, {"T": AttrValue("list(type)", (I32, F32))}, True, id="list"),
    pytest.param({"T": (F32,)}, {"T": AttrValue("list(type)", (F32, I32))}, False, id="list with one other"),
    pytest.param({"T": (F32,)}, {"T": AttrValue("list", ())}, True, id="empty list"),
    pytest.param({"T": (F32,)}, {}, InvalidArgumentError, id="absent attribute"),
    pytest.param({"T": (F32,)}, {"T": AttrValue("int", 1)}, InvalidArgumentError, id="not a type"),
    pytest.param({"T": ()}, {"T": AttrValue("type", F32)}, UnimplementedError, id="empty constraint"),
]


@pytest.mark.parametrize("constraints, attrs, outcome", MATCHES)
def test_how_attributes_meet_constraints(constraints, attrs, outcome):
    kernel_def = KernelDef("Probe", "CPU", constraints)
    if isinstance(outcome, bool):
        assert kernel_attrs_match(kernel_def, attrs) is outcome
    else:
        with pytest.raises(outcome):
            kernel_attrs_match(kernel_def, attrs)


def test_priority_decides_between_matches(world):
    """The higher one wins; two equal ones are an error."""
    kernel("Probe", priority=1, registry=world.kernels)(Probe)
    kernel("Probe", types={"T": F32}, priority=2, registry=world.kernels)(OtherProbe)
    assert chosen(world, world.node("Probe", T="float")) == "OtherProbe"
    assert chosen(world, world.node("Probe", T="int32")) == "Probe"
    kernel("Probe", priority=2, registry=world.kernels)(Probe)
    with pytest.raises(InvalidArgumentError, match="two kernels of the same priority"):
        chosen(world, world.node("Probe", T="float"))


def test_labels_are_chosen_by_the_node(world):
    kernel("Probe", registry=world.kernels)(Probe)
    kernel("Probe", label="fast", registry=world.kernels)(OtherProbe)
    assert chosen(world, world.node("Probe", T="float")) == "Probe"
    assert chosen(world, world.node("Probe", T="float", _kernel="fast")) == "OtherProbe"
    with pytest.raises(NotFoundError, match=r"(?s)label 'slow'.*Registered:.*label='fast'"):
        chosen(world, world.node("Probe", T="float", _kernel="slow"))


def test_default_kernels_stand_in_except_for_the_compiler(world):
    kernel("Probe", device="DEFAULT", registry=world.kernels)(Probe)
    node = world.node("Probe", T="float")
    assert chosen(world, node) == "Probe"
    assert world.kernels.kernel_def_available("GPU", node)
    assert not world.kernels.kernel_def_available("XLA_CPU_JIT", node)
    kernel("Probe", types={"T": F32}, registry=world.kernels)(OtherProbe)
    assert chosen(world, node) == "OtherProbe"
    assert chosen(world, world.node("Probe", T="int32")) == "Probe"


def test_available_is_a_yes_or_no(world):
    kernel("Probe", types={"T": F32}, registry=world.kernels)(Probe)
    assert world.kernels.kernel_def_available("CPU", world.node("Probe", T="float"))
    assert not world.kernels.kernel_def_available("CPU", world.node("Probe", T="int32"))
    assert not world.kernels.kernel_def_available("GPU", world.node("Probe", T="float"))


def test_a_miss_names_the_reason_and_the_existing_kernels(world):
    """Attributes as the reason, the kernels there are; no list for devices of the compiler."""
    kernel("Probe", types={"T": F32}, registry=world.kernels)(Probe)
    with pytest.raises(NotFoundError) as attrs:
        chosen(world, world.node("Probe", T="int32"))
    assert "compatible with the attributes" in attrs.value.message
    assert "T in [DT_FLOAT]" in attrs.value.message
    assert attrs.value.node == "probe"
    with pytest.raises(NotFoundError) as device:
        chosen(world, world.node("Probe", T="float"), "GPU")
    assert "compatible" not in device.value.message
    assert "device='CPU'" in device.value.message
    with pytest.raises(NotFoundError) as compiler:
        chosen(world, world.node("Probe", T="float"), "XLA_CPU_JIT")
    assert "Registered" not in compiler.value.message
    kernel_def, class_name = world.kernels.find_kernel_def("CPU", world.node("Probe", T="float"))
    assert (kernel_def.constraints, class_name) == ({"T": (F32,)}, "Probe")


def test_devices_are_sorted_by_priority_of_their_kernels(world):
    """Highest first, equal ones in the order given."""
    for device, priority in (("CPU", 0), ("GPU", 2), ("TPU", 0)):
        kernel("Probe", device=device, priority=priority, registry=world.kernels)(Probe)
    node = world.node("Probe", T="float")
    assert world.kernels.supported_device_types_for_node(["TPU", "NPU", "CPU", "GPU"], node) == [
        ("GPU", 2), ("TPU", 0), ("CPU", 0),
    ]  # fmt: skip


def test_queries(world, caplog):
    """All kernels, those a predicate accepts, those of an op; the log has a line for each."""
    for op, device in (("Probe", "CPU"), ("Probe", "XLA_CPU_JIT"), ("Mixed", "CPU")):
        kernel(op, device=device, registry=world.kernels)(Probe)
    every = world.kernels.get_all_registered_kernels()
    assert [(k.op, k.device_type) for k in every] == [("Mixed", "CPU"), ("Probe", "CPU"), ("Probe", "XLA_CPU_JIT")]
    jit = world.kernels.get_filtered_registered_kernels(lambda k: k.device_type.endswith("_JIT"))
    assert [k.op for k in jit] == ["Probe"]
    assert [k.device_type for k in world.kernels.get_registered_kernels_for_op("Probe")] == ["CPU", "XLA_CPU_JIT"]
    assert world.kernels.get_registered_kernels_for_op("Unheard") == []
    with caplog.at_level(logging.INFO, "cyxla.kernels"):
        world.kernels.log_all_registered_kernels()
    assert next(r.getMessage() for r in caplog.records) == "OpKernel ('Mixed'): device='CPU'"


def test_a_plain_function_makes_kernels(world):
    made = []

    def factory(construction):
        made.append(construction.get_attr("n"))
        return Probe(construction)

    register_kernel_builder(Name("Probe").device("CPU"), factory, world.kernels)
    assert type(world.make("Probe", T="float", n=7)) is Probe
    assert made == [7]
    assert world.kernels.registrations("Probe")[0].class_name == "factory"


def test_host_memory(world):
    """Named arguments live on the host; a name that the op lacks is refused."""
    kernel("Probe", device="GPU", host_memory=("x",), registry=world.kernels)(Probe)
    made = world.make("Probe", DeviceBase("/device:GPU:0", "GPU"), T="float")
    assert made.input_memory_types == (MemoryType.HOST,)
    assert made.output_memory_types == (MemoryType.DEVICE,)
    kernel("Probe", host_memory=("z",), registry=world.kernels)(Probe)
    with pytest.raises(InvalidArgumentError, match="host memory"):
        world.make("Probe", T="float")


def test_the_first_look_up_of_an_op_checks_the_kernels(caplog):
    """An unknown op is warned of, an unknown argument refused."""
    world = Registries()
    world.op("Known", "x: float -> y: float")
    kernel("Unknown", registry=world.kernels)(Probe)
    world.ops.add_validator(lambda ops: validate_kernel_registrations(ops, world.kernels))
    with caplog.at_level(logging.WARNING, "cyxla.kernels"):
        world.ops.look_up("Known")
    assert "for unknown op: Unknown" in caplog.text
    other = Registries()
    other.op("Known", "x: float -> y: float")
    kernel("Known", host_memory=("z",), registry=other.kernels)(Probe)
    other.ops.add_validator(lambda ops: validate_kernel_registrations(ops, other.kernels))
    with pytest.raises(InvalidArgumentError, match="'z'"):
        other.ops.look_up("Known")


class Refuses(OpKernel):
    """Its constructor fails."""

    def __init__(self, construction):
        super().__init__(construction)
        raise UnimplementedError("not on Sundays")


class SetsStatus(OpKernel):
    """Its constructor tells an error without raising."""

    def __init__(self, construction):
        super().__init__(construction)
        construction.set_status(InvalidArgumentError("first"))
        construction.set_status(InvalidArgumentError("second"))


def test_the_order_of_errors_in_creation(world):
    """Op, node, kernel, constructor."""
    bad = NodeDef("n", "Probe", [], "", {})

    def create(node):
        return create_op_kernel(DeviceBase(), node, ops=world.ops, kernels=world.kernels)

    with pytest.raises(NotFoundError, match="not registered"):
        create(NodeDef("n", "Unheard", [], "", {}))
    with pytest.raises(InvalidArgumentError):  # no kernel either, but the node comes first
        create(bad)
    with pytest.raises(NotFoundError, match="there is no kernel of Probe"):
        create(world.node("Probe", T="float"))
    kernel("Probe", types={"T": F32}, registry=world.kernels)(Refuses)
    with pytest.raises(UnimplementedError, match="Sundays") as error:
        create(world.node("Probe", T="float"))
    assert (error.value.node, error.value.op) == ("probe", "Probe")
    kernel("Probe", types={"T": F64}, registry=world.kernels)(SetsStatus)
    with pytest.raises(OpError, match="first"):
        create(world.node("Probe", T="double"))


def test_attributes_must_be_complete(world):
    """Defaults are filled in before; without them the node is bad."""
    kernel("Probe", registry=world.kernels)(Probe)
    node = world.node("Probe", complete=False, T="float")
    with pytest.raises(InvalidArgumentError):
        create_op_kernel(DeviceBase(), node, ops=world.ops, kernels=world.kernels)
    assert world.make("Probe", T="float").attrs["n"] == 0


def test_kernels_are_taken_back(world):
    kernel("Probe", registry=world.kernels)(Probe)
    kernel("Probe", label="late", registry=world.kernels)(Probe)
    world.kernels.keep_only(lambda kernel_def: kernel_def.label != "late")
    assert len(world.kernels.get_all_registered_kernels()) == 1


def test_the_catalogue_fits_its_ops(caplog):
    """No kernel of cyxla is for an op that is not declared."""
    with caplog.at_level(logging.WARNING, "cyxla.kernels"):
        kernels = KernelRegistry.global_().get_all_registered_kernels()
        from cyxla.core.framework import OpRegistry

        validate_kernel_registrations(OpRegistry.global_())
    assert caplog.text == ""
    assert {k.op for k in kernels} >= {"Switch", "VarHandleOp", "StackV2", "TensorListStack"}


SELECTION = """
import logging
from cyxla.core.framework import KernelRegistry, NodeDef, OpRegistry
from cyxla.core.framework.declarations.selective_registration import select_ops
logging.basicConfig(level="WARNING")
select_ops(["Neg"])
kernels = KernelRegistry.global_()
print([len(kernels.get_registered_kernels_for_op(op)) > 0 for op in ("Neg", "Abs", "NoOp", "_Arg")])
print("Abs" in OpRegistry.global_(), len(kernels.get_all_registered_kernels()) < 30)
"""


def test_kernels_of_ops_that_were_not_chosen_are_absent():
    """And those of system ops are there under any choice."""
    done = subprocess.run([sys.executable, "-c", SELECTION], capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.split("\n")[:2] == ["[True, False, True, True]", "False True"]
    assert done.stderr == ""


def test_array_kernels_register_like_others(world):
    array_kernel("Probe", np.negative, types={"T": F32}, priority=4, label="a", registry=world.kernels)
    (row,) = world.kernels.registrations("Probe")
    assert (row.kernel_def.priority, row.kernel_def.label, row.class_name) == (4, "a", "negative")
