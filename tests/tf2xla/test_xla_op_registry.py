"""XLA kernels by op, backends, and the kernels of compilation devices that are made of both."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest
from support.graphs import symbolic

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.op_kernel import AsyncOpKernel
from cyxla.core.framework.types import DataType
from cyxla.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from cyxla.tf2xla.xla_backends import (
    CPU_ALL_TYPES,
    EXEC_ALL_TYPES,
    GPU_ALL_TYPES,
    XLA_CPU_JIT,
    XLA_INTERPRETER_JIT,
    cpu_op_filter,
    exec_op_filter,
    gpu_op_filter,
)
from cyxla.tf2xla.xla_op_kernel import XlaOpKernel, lowering, xla_kernel
from cyxla.tf2xla.xla_op_registry import (
    CLASS_NAME,
    XlaOpRegistrationBuilder,
    XlaOpRegistry,
    register_xla_backend,
    register_xla_op,
)

F, D, H, I32, I64, BOOL = (
    DataType.DT_FLOAT, DataType.DT_DOUBLE, DataType.DT_HALF, DataType.DT_INT32, DataType.DT_INT64, DataType.DT_BOOL
)  # fmt: skip
Chain = XlaOpRegistrationBuilder


class Kernel(XlaOpKernel):
    def compile(self, ctx):
        ctx.set_output_expression(0, ctx.input_expression(0))


@pytest.fixture
def registry():
    """Return a registry with one backend and no built-in registrations."""
    made = XlaOpRegistry()
    register_xla_backend("XLA_A_JIT", (F, D, I32, BOOL), registry=made)
    return made


@pytest.fixture
def kernels():
    return KernelRegistry()


def constraints(registry, kernels, op, backend="XLA_A_JIT"):
    """Allowed types of the kernels of an op on a backend."""
    return [k.constraints for k in registry.device_kernels(backend, kernels) if k.op == op]


def test_a_registration_becomes_a_kernel_of_every_backend(registry, kernels):
    """As many kernels as registrations times backends, made once."""
    register_xla_backend("XLA_B_JIT", (F,), registry=registry)
    for op in ("Relu", "Tanh", "Neg"):
        register_xla_op(op, Kernel, registry)
    assert registry.register_compilation_kernels(kernels) == 6
    assert registry.register_compilation_kernels(kernels) == 0
    assert registry.get_all_registered_ops() == ["Neg", "Relu", "Tanh"]
    assert {row.class_name for row in kernels.registrations("Relu")} == {CLASS_NAME}
    assert [row.factory for row in kernels.registrations("Relu")] == [Kernel, Kernel]
    graph = symbolic.graph_of(lambda x: symbolic.apply_op("Relu", x), "float")
    (relu,) = (n for n in graph.nodes.values() if n.op == "Relu")
    assert kernels.find_kernel_def("XLA_B_JIT", relu.node_def)[1] == CLASS_NAME


def test_every_link_of_the_chain_is_kept(registry):
    chain = (
        Chain("Reshape").device("XLA_A_JIT").type_constraint("T", (F,)).compilation_only().allow_resource_types()
        .allow_variant_types().allow_string_type().compile_time_constant_input("shape").is_metadata_op().label("mine")
    )  # fmt: skip
    register_xla_op(chain, Kernel, registry)
    (row,) = registry.registrations("Reshape")
    assert (row.devices, row.constraints, row.label) == (("XLA_A_JIT",), {"T": (F,)}, "mine")
    assert row.compilation_only
    assert row.allow_resource_types
    assert row.allow_variant_types
    assert row.allow_string_type
    assert row.compile_time_constant_inputs == ("shape",)
    assert row.is_metadata_op
    assert row.factory is Kernel


def test_an_op_keeps_all_its_registrations(registry):
    register_xla_op(Chain("Relu").device("XLA_A_JIT"), Kernel, registry)
    register_xla_op(Chain("Relu").device("XLA_B_JIT"), Kernel, registry)
    register_xla_op(Chain("Relu").label("other"), Kernel, registry)
    assert [(r.devices, r.label) for r in registry.registrations("Relu")] == [
        (("XLA_A_JIT",), ""), (("XLA_B_JIT",), ""), (None, "other"),
    ]  # fmt: skip


CONFLICTS = {
    "compilation_only": (Chain("Relu").device("A"), Chain("Relu").device("B").compilation_only()),
    "allow_resource_types": (Chain("Relu").device("A"), Chain("Relu").device("B").allow_resource_types()),
    "allow_variant_types": (Chain("Relu").device("A"), Chain("Relu").device("B").allow_variant_types()),
    "compile_time_constant_inputs": (Chain("Sum").device("A"), Chain("Sum").compile_time_constant_input("axis")),
    "is_metadata_op": (Chain("Relu").device("A"), Chain("Relu").is_metadata_op()),
    "for every device": (Chain("Relu"), Chain("Relu")),
    "for B": (Chain("Relu").device("A", "B"), Chain("Relu").device("B", "C")),
}


@pytest.mark.parametrize("message", CONFLICTS)
def test_registrations_that_disagree_are_refused(message):
    registry = XlaOpRegistry()
    one, other = (chain.build(Kernel) for chain in CONFLICTS[message])
    registry.register(one)
    with pytest.raises(InvalidArgumentError, match=message):
        registry.register(other)
    assert registry.registrations(one.name) == [one]
    other.label = "labelled"
    registry.register(other)


class Own(Kernel):
    pass


@pytest.mark.parametrize("own_first", [True, False], ids=["own first", "generic first"])
@pytest.mark.parametrize("made_between", [True, False], ids=["made between", "made at the end"])
def test_a_kernel_for_a_backend_goes_before_the_generic_one(registry, kernels, own_first, made_between):
    """In whichever order they come."""
    register_xla_backend("XLA_B_JIT", (F,), registry=registry)
    steps = [(Chain("Relu"), Kernel), (Chain("Relu").device("XLA_A_JIT"), Own)]
    for chain, factory in reversed(steps) if own_first else steps:
        register_xla_op(chain, factory, registry)
        if made_between:
            registry.register_compilation_kernels(kernels)
    registry.register_compilation_kernels(kernels)
    found = {row.kernel_def.device_type: row.factory for row in kernels.registrations("Relu")}
    assert found == {"XLA_A_JIT": Own, "XLA_B_JIT": Kernel}
    assert len(kernels.registrations("Relu")) == 2


def test_backends_have_names_types_and_filters(registry, kernels):
    """A name is taken once; a filter leaves out kernels, and changes descriptions."""

    def op_filter(kernel_def):
        kernel_def.constraints["T"] = tuple(t for t in kernel_def.constraints["T"] if t is not D)
        return kernel_def.op != "Tanh"

    register_xla_backend("XLA_B_JIT", (F, D), op_filter, registry=registry)
    for op in ("Neg", "Tanh"):
        register_xla_op(op, Kernel, registry)
    assert constraints(registry, kernels, "Neg", "XLA_B_JIT") == [{"T": (F,)}]
    assert constraints(registry, kernels, "Tanh", "XLA_B_JIT") == []
    assert constraints(registry, kernels, "Tanh") == [{"T": (F, D)}]
    assert registry.backend_names() == ["XLA_A_JIT", "XLA_B_JIT"]
    assert (registry.is_backend_registered("XLA_B_JIT"), registry.is_backend_registered("XLA_C_JIT")) == (True, False)
    with pytest.raises(AlreadyExistsError, match="XLA_A_JIT"):
        register_xla_backend("XLA_A_JIT", (F,), registry=registry)
    with pytest.raises(NotFoundError, match="XLA_C_JIT"):
        registry.device_kernels("XLA_C_JIT", kernels)


def test_types_are_the_intersection_of_backend_op_and_constraint(registry, kernels):
    """In the order of the enumeration; a constraint beyond the backend does nothing."""
    register_xla_op(Chain("Relu").type_constraint("T", (I64, I32, H, F)), Kernel, registry)
    register_xla_op("Tanh", Kernel, registry)
    register_xla_op("Identity", Kernel, registry)
    assert constraints(registry, kernels, "Relu") == [{"T": (F, I32)}]
    assert constraints(registry, kernels, "Tanh") == [{"T": (F, D)}]
    assert constraints(registry, kernels, "Identity") == [{"T": (F, D, I32, BOOL)}]


def test_types_are_added_for_ops_that_ask(registry, kernels):
    register_xla_op(Chain("Identity").allow_string_type().allow_resource_types(), Kernel, registry)
    register_xla_op("StopGradient", Kernel, registry)
    (found,) = constraints(registry, kernels, "Identity")
    assert found["T"] == (F, D, I32, BOOL, DataType.DT_RESOURCE, DataType.DT_STRING)
    everything = [k for k in registry.device_kernels("XLA_A_JIT", kernels) if DataType.DT_STRING in k.constraints["T"]]
    assert [k.op for k in everything] == ["Identity"]


STRING = DataType.DT_STRING


@pytest.mark.parametrize("types, op_filter", [
    (CPU_ALL_TYPES, cpu_op_filter), (GPU_ALL_TYPES, gpu_op_filter), (EXEC_ALL_TYPES, exec_op_filter),
])  # fmt: skip
def test_the_types_and_filters_of_devices(registry, kernels, types, op_filter):
    """Filters add strings to ops that pass them on; without them no kernel takes strings."""
    register_xla_backend("XLA_B_JIT", types, op_filter, registry=registry)
    register_xla_backend("XLA_C_JIT", types, registry=registry)
    for op in ("Const", "Assert", "Neg"):
        register_xla_op(op, Kernel, registry)
    for op, attr in (("Const", "dtype"), ("Assert", "T")):
        assert constraints(registry, kernels, op, "XLA_B_JIT") == [{attr: (*sorted(types), STRING)}]
        assert constraints(registry, kernels, op, "XLA_C_JIT") == [{attr: tuple(sorted(types))}]
        assert constraints(registry, kernels, op) == [{attr: (F, D, I32, BOOL)}]
    assert constraints(registry, kernels, "Neg", "XLA_B_JIT") == constraints(registry, kernels, "Neg", "XLA_C_JIT")


def test_no_type_left_is_no_kernel(registry, kernels):
    register_xla_op(Chain("Relu").type_constraint("T", (H,)), Kernel, registry)
    assert constraints(registry, kernels, "Relu") == []
    assert kernels.get_registered_kernels_for_op("Relu") == []


def test_a_constraint_names_a_type_of_the_op(registry, kernels):
    register_xla_op(Chain("Relu").type_constraint("U", (F,)), Kernel, registry)
    with pytest.raises(InvalidArgumentError, match="Relu constrains U"):
        registry.register_compilation_kernels(kernels)


def test_asynchronous_kernels_are_refused(registry):

    class Waits(AsyncOpKernel):
        def compute_async(self, ctx, done):
            done()

    with pytest.raises(InvalidArgumentError, match="Relu is an AsyncOpKernel"):
        register_xla_op(Chain("Relu").device("XLA_A_JIT"), Waits, registry)


def test_a_backend_that_comes_late_gets_its_kernels(registry, kernels):
    register_xla_op("Tanh", Kernel, registry)
    registry.register_compilation_kernels(kernels)
    register_xla_backend("XLA_LATE_JIT", (F, H), registry=registry)
    register_xla_op("Neg", Kernel, registry)
    assert constraints(registry, kernels, "Tanh", "XLA_LATE_JIT") == [{"T": (F, H)}]
    assert len(constraints(registry, kernels, "Neg")) == len(constraints(registry, kernels, "Neg", "XLA_LATE_JIT")) == 1


def test_each_common_registry_gets_its_own_kernels(registry):
    """Even where one that is gone stood at the same address."""
    register_xla_op("Relu", Kernel, registry)
    for _ in range(6):
        assert registry.register_compilation_kernels(KernelRegistry()) == 1
        gc.collect()


def test_questions_about_constants_and_metadata():
    registry = XlaOpRegistry.global_()
    reshape = OpRegistry.global_().look_up_op_def("Reshape")
    ranges = {"tensor": range(1), "shape": range(1, 2)}
    assert registry.compile_time_constant_inputs(reshape, ranges) == [1]
    assert registry.compile_time_constant_inputs(reshape, ranges, ["tensor"]) == [0]
    assert (
        registry.compile_time_constant_inputs(OpRegistry.global_().look_up_op_def("Relu"), {"features": range(1)}) == []
    )
    assert [op for op in ("Shape", "Rank", "Size", "ShapeN", "Relu") if registry.is_metadata_op(op)] == [
        "Shape", "Rank", "Size", "ShapeN",
    ]  # fmt: skip
    assert registry.compile_time_constant_input_names("NoSuchOp") == ()


def test_the_decorators_are_the_chain(registry):
    @xla_kernel(("Relu", "Tanh"), types={"T": (F,)}, device="XLA_A_JIT", label="fast", registry=registry)
    def both(ctx):
        return ctx.input(0)

    lowering("Reshape", lambda x, shape: x, const=("shape",), registry=registry)
    (row,) = registry.registrations("Relu")
    assert (row.constraints, row.devices, row.label) == ({"T": (F,)}, ("XLA_A_JIT",), "fast")
    assert registry.get_all_registered_ops() == ["Relu", "Reshape", "Tanh"]
    assert registry.compile_time_constant_input_names("Reshape") == ("shape",)


# What comes with cyxla

THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
sys.path.insert(0, sys.argv[1])
from support.graphs.symbolic import *
graph = graph_of(lambda x: apply_op("Softmax", x), "float")
start = Barrier(8)
def make(_):
    start.wait()
    return compiled(graph, parameter("float", 2, 3)).computation.to_text()
with ThreadPoolExecutor(8) as pool:
    print(len(set(pool.map(make, range(8)))))
"""


def test_threads_may_be_the_first_to_ask():
    """The kernels are loaded and made once."""
    words = [sys.executable, "-c", THREADS, str(Path(__file__).parents[1])]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_built_in_backends():
    """Names are sorted, and every registration is a kernel of both platforms."""
    registry = XlaOpRegistry.global_()
    ops = registry.get_all_registered_ops()
    assert ops == sorted(ops)
    assert len(ops) >= 410
    for backend in (XLA_CPU_JIT, XLA_INTERPRETER_JIT):
        assert sorted({k.op for k in registry.device_kernels(backend)}) == ops
    inside = {k.op for k in registry.device_kernels(XLA_CPU_JIT)}
    outside = {k.op for k in registry.device_kernels(XLA_CPU_JIT, compilation_only=False)}
    assert inside - outside == {op for op in ops if registry.registrations(op)[0].compilation_only}


def test_names_of_constant_inputs_are_names_of_inputs():
    registry = XlaOpRegistry.global_()
    for op in registry.get_all_registered_ops():
        names = {arg.name for arg in OpRegistry.global_().look_up_op_def(op).input_arg}
        assert set(registry.compile_time_constant_input_names(op)) <= names, op


def test_arguments_may_be_resources_and_lists_but_no_strings():
    (arg,) = (k for k in XlaOpRegistry.global_().device_kernels(XLA_CPU_JIT) if k.op == "_Arg")
    assert arg.constraints["T"] == (*sorted(CPU_ALL_TYPES), DataType.DT_RESOURCE, DataType.DT_VARIANT)


@pytest.mark.parametrize("op", ["Conv2D", "Conv2DBackpropInput", "DepthwiseConv2dNative"])
def test_convolutions_are_of_floats(op):
    (row,) = (k for k in XlaOpRegistry.global_().device_kernels(XLA_CPU_JIT) if k.op == op)
    assert {F, H, D} <= set(row.constraints["T"])
    assert DataType.DT_INT8 not in row.constraints["T"]
