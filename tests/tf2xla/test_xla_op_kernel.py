"""Contexts of XLA kernels, and the expressions on the edges between them."""

import numpy as np
import pytest
from support.graphs.symbolic import compiled, constant, graph_of, opcodes, parameter, run, variable

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.types import DataType
from cyxla.errors import InternalError, InvalidArgumentError, PermissionDeniedError, UnimplementedError
from cyxla.tf2xla.lib.typed_values import full
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_backends import CPU_ALL_TYPES
from cyxla.tf2xla.xla_expression import ExpressionKind, XlaExpression
from cyxla.tf2xla.xla_op_kernel import XlaOpKernel, xla_kernel
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry, register_xla_backend, register_xla_op
from cyxla.types import ElementType
from cyxla.xla.client import LocalClient
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

op("BridgeTwo", "a: T, rest: N * T -> x: T, y: N * T", "T: {float, int32}", "N: int", "k: int = 3", shape=None)
op("BridgeWrong", "x: float -> y: float", shape=lambda c: c.set_output(0, c.vector(5)))


def emitted(kernel, *, name="BridgeTwo", args=(("float", 2), ("float", 2), ("float", 2)), **attrs):
    """A graph of one op under a kernel of its own, compiled."""
    registry = XlaOpRegistry()
    register_xla_backend("XLA_TEST_JIT", CPU_ALL_TYPES, registry=registry)
    for plain in ("_Arg", "_Retval"):
        registry.register(XlaOpRegistry.global_().registrations(plain)[0])
    if isinstance(kernel, type):
        register_xla_op(name, kernel, registry)
    else:
        xla_kernel(name, registry=registry)(kernel)

    def make(*inputs):
        inputs = inputs if name != "BridgeTwo" else (inputs[0], list(inputs[1:]))
        made = apply_op(name, *inputs, **attrs, name="mine")
        return [made[0], *made[1]] if name == "BridgeTwo" else made

    graph = graph_of(make, *(dtype for dtype, *_ in args))
    described = [parameter(dtype, *sizes) for dtype, *sizes in args]
    return compiled(graph, *described, device="XLA_TEST_JIT", registry=registry, kernels=KernelRegistry())


def test_compiling_runs_no_data():
    """There are shapes only, and inputs are instructions of the computation's builder."""
    seen = []

    def kernel(ctx):
        seen.append((ctx.input(0), ctx.builder))
        return [ctx.input(0) + ctx.input(1), *ctx.input_list("rest")]

    result = emitted(kernel, args=[("float", 1 << 17, 1 << 20)] * 3)  # half a TiB each
    ((x, builder),) = seen
    assert isinstance(x, XlaOp)
    assert x.builder is builder
    assert (str(x.shape), opcodes(result)) == ("f32[131072,1048576]", ["add"])


def test_a_class_has_compile_and_no_compute():

    class Plain(XlaOpKernel):
        def compile(self, ctx):
            ctx.set_output("x", ctx.input("a") * 2)
            for i, value in enumerate(ctx.input_list("rest")):
                ctx.set_output(1 + i, value)

    result = emitted(Plain)
    np.testing.assert_array_equal(run(result, np.ones((3, 2), np.float32))[0], [2, 2])
    with pytest.raises(InvalidArgumentError, match="Own has compute"):

        class Own(XlaOpKernel):
            def compute(self, ctx):
                raise AssertionError


def test_computing_a_compiled_kernel_is_refused():
    """Its compute is there, and final."""
    caught = []

    def kernel(ctx):
        with pytest.raises(UnimplementedError, match="BridgeTwo on XLA_TEST_JIT only compiles") as error:
            ctx.kernel.compute(None)
        caught.append(error.value.node)
        return [ctx.input(0), *ctx.input_list("rest")]

    emitted(kernel)
    assert caught == ["mine"]


def test_there_is_no_memory_to_allocate():
    for name in ("allocate_output", "allocate_temp"):

        def kernel(ctx, name=name):
            getattr(ctx, name)(0, (2,))

        with pytest.raises(InternalError, match="no memory") as caught:
            emitted(kernel)
        assert (caught.value.node, caught.value.op) == ("mine", "BridgeTwo")


def test_compilation_accesses_no_files(tmp_path):
    """Constructors know the clock of their environment, but no files."""
    (tmp_path / "file").write_text("words")

    class Reads(XlaOpKernel):
        def __init__(self, construction):
            super().__init__(construction)
            assert construction.env.now_micros() > 0
            construction.env.read_file(str(tmp_path / "file"))

        def compile(self, ctx):
            raise AssertionError

    with pytest.raises(PermissionDeniedError, match="compilation accesses no files") as caught:
        emitted(Reads)
    assert caught.value.node == "mine"


def test_inputs_by_index_and_name():

    def kernel(ctx):
        assert (ctx.num_inputs, ctx.num_outputs, ctx.attr("k"), ctx.attr("N")) == (3, 3, 7, 2)
        assert ctx.input_shape(0) == ctx.input_shape("a") == ctx.input_shape(-1) == (2,)
        assert ctx.input_type("a") is ctx.expected_output_dtype("x") is DataType.DT_FLOAT
        assert ctx.input_list_shapes("rest") == [(2,), (2,)]
        assert ctx.input_expression(0).tensor_shape.as_list() == [2]
        for ask, message in [
            (lambda: ctx.input("rest"), "is a list"),
            (lambda: ctx.input("nothing"), "no 'nothing'"),
            (lambda: ctx.input(3), "none at 3"),
            (lambda: ctx.input_list("nothing"), "no input 'nothing'"),
            (lambda: ctx.attr("nothing"), "no attribute 'nothing'"),
            (lambda: ctx.input_resource(0), "not a resource"),
            (lambda: ctx.input_tensor_list(0), "not a tensor list"),
            (lambda: ctx.require(False, "so it is"), "so it is"),
        ]:
            with pytest.raises(InvalidArgumentError, match=message):
                ask()
        return [ctx.input("a"), *ctx.input_list("rest")]

    emitted(kernel, k=7)


def test_lists_are_joined():
    graph = graph_of(lambda x, y: apply_op("ConcatV2", [x, y, x], np.int32(1)), "float", "float")
    result = compiled(graph, parameter("float", 2, 1), parameter("float", 2, 3))
    assert opcodes(result) == ["concatenate"]
    assert result.outputs[0].shape == (2, 5)


def test_outputs_are_of_the_declared_type():

    def wrong(ctx):
        ctx.set_output(0, xla.convert(ctx.input(0), "s32"))

    with pytest.raises(InternalError, match=r"output 0 of BridgeTwo is s32\[2\]"):
        emitted(wrong)
    with pytest.raises(InternalError, match="3 outputs; it made 1"):
        emitted(lambda ctx: ctx.input(0))
    with pytest.raises(InternalError, match="mine:1, which was not set"):
        emitted(lambda ctx: ctx.set_output(0, ctx.input(0)))


def test_compiled_shapes_are_the_declared_ones(monkeypatch):
    """Checked where programs are verified."""
    args = (("float", 2),)
    emitted(lambda ctx: ctx.input(0), name="BridgeWrong", args=args)
    monkeypatch.setenv("CYXLA_VERIFY", "1")
    with pytest.raises(InternalError, match=r"BridgeWrong was compiled as \[2\]; its shape function infers \[5\]"):
        emitted(lambda ctx: ctx.input(0), name="BridgeWrong", args=args)
    emitted(lambda ctx: xla.broadcast(xla.constant(ctx.builder, np.float32(0)), [5]), name="BridgeWrong", args=args)


def test_constants_stay_beside_the_program():
    """An output that is known becomes no instruction."""

    def kernel(ctx):
        ctx.set_constant_output(0, [1, 2])
        ctx.set_output_expression(1, XlaExpression.constant(np.zeros(3, np.float32), DataType.DT_FLOAT))
        ctx.set_output(2, ctx.input(0))

    result = emitted(kernel)
    assert opcodes(result) == []
    assert [output.tuple_indices for output in result.outputs] == [(), (), (0,)]
    assert result.outputs[0].value.tolist() == [1, 2]
    assert result.outputs[0].value.dtype == np.float32


# Inputs that must be known while compiling


def reshaped(x, shape):
    return apply_op("Reshape", x, shape)


def test_a_shape_of_constants_leaves_no_instruction():
    """The shape is worked out from constants and from shapes."""

    def make(x):
        rows = apply_op("StridedSlice", apply_op("Shape", x), [0], [1], [1], shrink_axis_mask=1)
        return reshaped(x, apply_op("Pack", [rows * np.int32(2), np.int32(-1)]))

    result = compiled(graph_of(make, "float"), parameter("float", 2, 6))
    assert (opcodes(result), result.outputs[0].shape) == (["reshape"], (4, 3))


def test_a_shape_given_as_a_constant():
    result = compiled(graph_of(reshaped, "float", "int32"), parameter("float", 6), constant([3, 2]))
    assert (result.input_mapping, result.outputs[0].shape) == ((0,), (3, 2))


def test_a_shape_that_depends_on_data_is_refused():
    graph = graph_of(reshaped, "float", "int32")
    with pytest.raises(InvalidArgumentError, match="'shape' of Reshape must be a compile-time constant") as caught:
        compiled(graph, parameter("float", 6), parameter("int32", 2))
    assert (caught.value.op, caught.value.number) == ("Reshape", 3)


def test_constants_as_numbers_and_shapes():

    def kernel(ctx):
        (vector,) = (ctx.xla.args[i].value for i in [1])
        assert ctx.constant_input_as_int_vector(1) == vector.tolist() == [2, 3]
        assert ctx.constant_input_as_shape(1) == (2, 3)
        assert ctx.constant_input_as_int_scalar(2) == -4
        for ask, message in [
            (lambda: ctx.constant_input_as_int_vector(2), "must be a vector"),
            (lambda: ctx.constant_input_as_int_scalar(1), "must be a scalar"),
            (lambda: ctx.constant_input(0), "input 0 of BridgeTwo"),
        ]:
            with pytest.raises(InvalidArgumentError, match=message):
                ask()
        return [ctx.input(0), ctx.input(1), ctx.input(2)]

    registry = XlaOpRegistry()
    register_xla_backend("XLA_TEST_JIT", CPU_ALL_TYPES, registry=registry)
    for plain in ("_Arg", "_Retval"):
        registry.register(XlaOpRegistry.global_().registrations(plain)[0])
    xla_kernel("BridgeTwo", registry=registry)(kernel)
    graph = graph_of(lambda a, b, c: apply_op("BridgeTwo", a, [b, c])[0], "int32", "int32", "int32")
    args = (parameter("int32", 1), constant([2, 3]), constant(-4))
    compiled(graph, *args, device="XLA_TEST_JIT", registry=registry, kernels=KernelRegistry())


# Expressions


def test_kinds_of_expressions():
    builder = XlaBuilder("b")
    known = XlaExpression.constant(np.arange(3, dtype=np.int32), DataType.DT_INT32)
    assert (known.kind, known.is_constant, known.shape) == (ExpressionKind.CONSTANT, True, (3,))
    assert builder.instruction_count == 0
    made = known.as_xla_op(builder)
    assert (str(made.shape), builder.instruction_count) == ("s32[3]", 1)
    symbol = XlaExpression.of(made, DataType.DT_INT32)
    assert (symbol.as_xla_op(builder), symbol.is_constant, symbol.shape) == (made, False, (3,))
    text = XlaExpression.constant(np.array(b"text", object), DataType.DT_STRING)
    with pytest.raises(InvalidArgumentError, match="constant of type"):
        text.as_xla_op(builder)
    for other in (XlaExpression.resource(None), XlaExpression.tensor_list(None)):
        with pytest.raises(InvalidArgumentError, match="is not an array"):
            other.as_xla_op(builder)
        with pytest.raises(InternalError, match="has no shape"):
            _ = other.shape


# What the context keeps


@pytest.mark.parametrize("reduction", ["Sum", "Max", "Min", "Prod"])
def test_reducers_appear_once_for_each_type(reduction):

    def make(x, y):
        first = apply_op(reduction, x, [0])
        return apply_op(reduction, first, [0]), apply_op(reduction, y, [0]), apply_op(reduction, y, [1])

    result = compiled(graph_of(make, "float", "int32"), parameter("float", 2, 3), parameter("int32", 4, 5))
    names = [c.name for c in result.computation.module().computations.values()]
    assert sorted(name.rsplit("_", 1)[1] for name in names if name != "g") == ["f32", "s32"]


def test_relu_is_a_maximum_with_zero():
    result = compiled(graph_of(lambda x: apply_op("Relu", x), "float"), parameter("float", 2, 3))
    assert opcodes(result) == ["constant", "broadcast", "maximum"]
    zero, spread, top = (i for i in result.computation.module().entry.instructions if i.opcode in opcodes(result))
    assert zero.attrs["literal"].array == 0
    assert {o.opcode for o in top.operands} == {"parameter", "broadcast"}
    assert spread.operands == (zero,)


def convolved(x, kernel, dy):
    return apply_op("Conv2D", x, kernel, strides=[1, 2, 2, 1], padding="SAME")


def input_gradient(x, kernel, dy):
    sizes = np.int32([1, 6, 7, 3])
    return apply_op("Conv2DBackpropInput", sizes, kernel, dy, strides=[1, 2, 2, 1], padding="SAME")


def kernel_gradient(x, kernel, dy):
    sizes = np.int32([3, 3, 3, 4])
    return apply_op("Conv2DBackpropFilter", x, sizes, dy, strides=[1, 2, 2, 1], padding="SAME")


@pytest.mark.parametrize(
    "make, windows",  # stride, padding, dilation of the base and of the window
    [
        (convolved, [(2, 0, 1, 1, 1), (2, 1, 1, 1, 1)]),
        (input_gradient, [(1, 2, 1, 2, 1), (1, 1, 1, 2, 1)]),
        (kernel_gradient, [(1, 0, 1, 1, 2), (1, 1, 1, 1, 2)]),
    ],
)
def test_a_convolution_or_its_gradient_is_one_convolution(make, windows):
    graph = graph_of(make, "float", "float", "float")
    args = (parameter("float", 1, 6, 7, 3), parameter("float", 3, 3, 3, 4), parameter("float", 1, 3, 4, 4))
    result = compiled(graph, *args)
    assert opcodes(result).count("convolution") == 1
    assert set(opcodes(result)) <= {"convolution", "reverse", "reshape", "transpose"}  # the others on the kernel
    (conv,) = (i for i in result.computation.module().entry.instructions if i.opcode == "convolution")
    found = [
        (d.stride, d.padding_low, d.padding_high, d.base_dilation, d.window_dilation) for d in conv.attrs["window"]
    ]
    assert found == windows


def test_instructions_tell_their_node():
    """From a node to operations of the builder to HLO."""
    graph = graph_of(lambda x: apply_op("Softmax", apply_op("Relu", x, name="act/relu"), name="out"), "float")
    result = compiled(graph, parameter("float", 2, 3))
    made = [i for i in result.computation.module().entry.instructions if i.opcode not in ("parameter", "tuple")]
    told = [(dict(i.metadata)["op_type"], dict(i.metadata)["op_name"]) for i in made]
    assert list(dict.fromkeys(told)) == [("Relu", "act/relu"), ("Softmax", "out")]
    assert 'op_type="Relu" op_name="act/relu"' in result.computation.to_text()


def test_variables_are_read_and_assigned():

    def make(handle, x):
        old = apply_op("ReadVariableOp", handle, dtype=DataType.DT_FLOAT)
        apply_op("AssignVariableOp", handle, old + x)
        return old

    result = compiled(graph_of(make, "resource", "float"), variable("float", 2), parameter("float", 2))
    (update,) = result.resource_updates
    assert (update.input_index, update.modified, update.shape.as_list()) == (0, True, [2])
    found = run(result, [np.float32([1, 2]), np.float32([10, 20])])
    assert found[result.outputs[0].tuple_indices[0]].tolist() == [1, 2]
    assert found[update.tuple_indices[0]].tolist() == [11, 22]


# Helpers

NUMBERS = [t for t in CPU_ALL_TYPES if element_type(t) is not ElementType.PRED]
FINITE = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz")
REAL = [t for t in NUMBERS if not np.issubdtype(t.numpy, np.complexfloating)]


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda t: t.text)
def test_constants_of_every_type(dtype):
    """Zero, one, any number; least, greatest, lowest and highest; the place along a dimension."""

    def kernel_values(like):
        yield values.scalar(like, 0), 0
        yield values.scalar(like, 1), 1
        yield values.zeros_like(like), [0, 0]
        yield values.full_like(like, 2), [2, 2]
        if dtype in REAL:
            info = values._info(values.numpy_type(like))
            yield values.min_finite_value(like), info.min
            yield values.max_finite_value(like), info.max
            endless = values.is_float(like) and dtype.text not in FINITE
            yield values.min_value(like), -np.inf if endless else info.min
            yield values.max_value(like), np.inf if endless else info.max

    builder = XlaBuilder("b")
    like = full(builder, 1, dtype, (2,))
    pairs = list(kernel_values(like))
    computation = builder.build(xla.tuple_(builder, [op for op, _ in pairs]))
    found = LocalClient("interpreter").compile(computation).run([])
    for got, (made, want) in zip(found, pairs, strict=True):
        assert got.dtype == dtype.numpy == made.shape.dtype.numpy_dtype
        np.testing.assert_array_equal(got, np.asarray(want).astype(dtype.numpy))


def test_places_along_a_dimension():
    builder = XlaBuilder("b")
    made = values.iota_along(builder, ElementType.S32, (2, 3), 1)
    found = LocalClient("interpreter").compile(builder.build(made)).run([])
    np.testing.assert_array_equal(found, [[0, 1, 2], [0, 1, 2]])
    assert values.epsilon(xla.constant(XlaBuilder("c"), np.float32(1))) == np.finfo(np.float32).eps
