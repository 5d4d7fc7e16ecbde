"""Compositions of ops become one node on devices that have a kernel for it, and are plain nodes elsewhere."""

from dataclasses import replace
from functools import cache
from math import pi, sqrt

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.graphs.running import Extension, constant_like, while_loop

from cyxla.autojit import jit_session as front
from cyxla.autojit.fused_ops.patterns import fusions
from cyxla.autojit.fused_ops.rewrite import FUSED_OPS, register, specialize
from cyxla.core.framework.apply import apply_op as apply
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.device import Device, DeviceSet, full_name
from cyxla.core.runtime.optimization_registry import Grouping, OptimizationPassRegistry
from cyxla.core.runtime.session import Session
from cyxla.core.runtime.step_stats import RunMetadata
from cyxla.core.runtime.subgraph import executable_graph
from cyxla.errors import InvalidArgumentError
from cyxla.tf2xla.xla_compiler import XlaCompilerOptions

RNG = np.random.default_rng(7)
FLOATS = ("float", "double")
HALF_ROOT = sqrt(0.5)


# --- a device with fused kernels -------------------------------------------------------------------------------------
def eager(op, *args, **attrs):
    """Return the results of the eager kernel of an op."""
    graph = Graph()
    with graph.as_default():
        out = apply(op, *(graph.constant(a) for a in args), **attrs)
    return Session(graph).run(out)


def softmax(x, axes, stable):
    e = np.exp(x - x.max(axes, keepdims=True) if stable else x)
    return e / e.sum(axes, keepdims=True)


def layer_norm(x, affine, axes, epsilon):
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + x.dtype.type(epsilon))
    return y * affine[0] + affine[1] if affine else y


def batch_norm(x, mean, variance, offset, scale, epsilon):
    y = (x - mean) / np.sqrt(variance + x.dtype.type(epsilon))
    return y * scale[0] + offset if scale else y + offset


def gelu(x, approximate):
    if approximate:
        return x / 2 * (1 + np.tanh(x.dtype.type(sqrt(2 / pi)) * (x + x.dtype.type(0.044715) * x**3)))
    return x / 2 * (1 + eager("Erf", x / x.dtype.type(sqrt(2))))


def activated(x, activation, alpha):
    if not activation:
        return x
    return eager(activation, x, **({"alpha": alpha} if activation == "LeakyRelu" else {}))


def convolution(x, w, b, activation, alpha, data_format, **attrs):
    y = eager("Conv2D", x, w, data_format=data_format, **attrs)
    return activated(eager("BiasAdd", y, b, data_format=data_format), activation, alpha)


def product(a, b, bias, activation, alpha, transpose_a, transpose_b):
    return activated((a.T if transpose_a else a) @ (b.T if transpose_b else b) + bias, activation, alpha)


KERNELS = {
    "_FusedSoftmax": (softmax, ("axes", "stable")),
    "_FusedLayerNorm": (layer_norm, ("axes", "epsilon")),
    "_FusedBatchNorm": (batch_norm, ("epsilon",)),
    "_FusedGelu": (gelu, ("approximate",)),
    "_FusedConv2DBiasActivation": (
        convolution, ("strides", "padding", "explicit_paddings", "data_format", "dilations", "activation", "alpha")),
    "_FusedMatMulBiasActivation": (product, ("transpose_a", "transpose_b", "activation", "alpha")),
}  # fmt: skip


@cache
def extension(*ops, **types):
    """Kernels of a device Toy: all of the CPU's, and those of some fused ops."""
    ext = Extension()
    for op in {facts.op for facts in KernelRegistry.global_().get_all_registered_kernels()}:
        for row in KernelRegistry.global_().registrations(op):
            if row.kernel_def.device_type == "CPU":
                ext.kernels.register(replace(row.kernel_def, device_type="Toy"), row.factory)
    for name in ops or KERNELS:
        fn, attrs = KERNELS[name]
        array_kernel(name, fn, attrs=attrs, device="Toy", types=types or None, registry=ext.kernels)
    return ext


def run(graph, fetch, feeds=None, kind="Toy", ext=None, **options):
    """Return the results of a graph on a device, and the ops that ran."""
    passes = OptimizationPassRegistry()
    register(passes)
    made = DeviceSet([Device(full_name(kind, 0), kind)], {kind: 60})
    metadata = RunMetadata()
    with (ext or extension()).session(graph, devices=made, passes=passes, **options) as session:
        result = session.run(fetch, feeds, metadata=metadata)
    return result, [node for part in metadata.partition_graphs for node in part.nodes.values()]


def ops(nodes):
    """Names of the ops beside arguments, results and constants."""
    return sorted(n.op for n in nodes if n.op not in ("_Arg", "_Retval", "Const"))


# --- graphs ----------------------------------------------------------------------------------------------------------
X = RNG.standard_normal((3, 4, 6))
IMAGE, FILTER = RNG.standard_normal((2, 7, 6, 3)), RNG.standard_normal((3, 2, 3, 5))
A, B = RNG.standard_normal((4, 6)), RNG.standard_normal((6, 5))


class Maker:
    """Makes the nodes of one form."""

    def __init__(self, dtype="float"):
        self.graph, self.dtype = Graph(), dtype
        self.type = {"float": np.float32, "double": np.float64}[dtype]
        self.feeds = {}

    def feed(self, array, name):
        tensor = self.graph.placeholder(self.dtype, array.shape, name=name)
        self.feeds[tensor] = array.astype(self.type)
        return tensor

    def x(self):
        return self.feed(X, "x")

    def vector(self, name, size=6, shift=0.0):
        return self.feed(np.abs(np.random.default_rng(len(name)).standard_normal(size)) + shift, name)

    def number(self, value):
        return self.graph.constant(np.asarray(value, self.type))


def softmax_of(m, axis=-1, stable=True, inverse=False, other_axis=None, keep_dims=True):
    x = m.x()
    top = apply("Max", x, np.int32([axis]), keep_dims=keep_dims)
    e = apply("Exp", apply("Sub", x, top) if stable else x)
    total = apply("Sum", e, np.int32([axis if other_axis is None else other_axis]), keep_dims=True)
    return apply("Mul", apply("Reciprocal", total), e) if inverse else apply("RealDiv", e, total)


def moments(m, x, square="SquaredDifference", axes=(-1,), keep_dims=True, stop=True):
    mean = apply("Mean", x, np.int32(axes), keep_dims=keep_dims)
    held = apply("StopGradient", mean) if stop else mean
    squares = apply("SquaredDifference", x, held) if square == "SquaredDifference" else apply("Square", x - mean)
    return mean, apply("Mean", squares, np.int32(axes), keep_dims=keep_dims)


def normal(m, x, mean, variance, scale, offset, way):
    moved = apply("AddV2", variance, m.number(1e-3))
    inverse = apply("Rsqrt", moved)
    factor = inverse if scale is None else inverse * scale
    if way == "keras":
        return x * factor + (apply("Neg", mean) * factor + offset)
    if way == "nn":
        return x * factor + (offset - mean * factor)
    if way == "factor":
        return (x - mean) * factor + offset
    if way == "sqrt":
        y = (x - mean) / apply("Sqrt", moved)
        return (y if scale is None else y * scale) + offset
    return offset + scale * (inverse * (x - mean))


def layer_norm_of(m, way="keras", **facts):
    x = m.x()
    mean, variance = moments(m, x, **facts)
    return normal(m, x, mean, variance, m.vector("gamma"), m.vector("shift_"), way)


def plain_layer_norm_of(m, divide):
    x = m.x()
    mean, variance = moments(m, x, "Square", stop=False)
    moved = m.number(1e-3) + variance
    return (x - mean) / apply("Sqrt", moved) if divide else (x - mean) * apply("Rsqrt", moved)


def batch_norm_of(m, way="keras", scaled=True, size=6):
    x, scale = m.x(), m.vector("gamma", size) if scaled else None
    return normal(m, x, m.vector("mean", size), m.vector("variance", size), scale, m.vector("moved", size), way)


def gelu_of(m, way="erf", half=0.5, root=HALF_ROOT, part=0.044715):
    x, n = m.x(), m.number
    half, one = n(half), n(1.0)
    if way == "erfc":
        return (half * x) * apply("Erfc", apply("Neg", x) * n(root))
    if way.startswith("erf"):
        factor = one + apply("Erf", x / n(sqrt(2)) if way == "erf/" else x * n(root))
        return half * (x * factor) if way == "erf outside" else x * half * factor
    inner = {
        "tanh": lambda: x + n(part) * apply("Pow", x, n(3.0)),
        "tanh*": lambda: x + n(part) * x * x * x,
        "tanh square": lambda: x + n(part) * (x * apply("Square", x)),
        "tanh grown": lambda: x * (n(1.0) + n(part) * apply("Square", x)),
    }[way]()
    return half * x * (one + apply("Tanh", n(sqrt(2 / pi)) * inner))


def with_activation(y, activation):
    if activation == "LeakyRelu":
        return apply("LeakyRelu", y, alpha=0.3)
    return apply(activation, y) if activation else y


def convolution_of(m, activation="Relu", bias="BiasAdd", size=5, strides=(1, 2, 1, 1)):
    facts = {"strides": list(strides), "padding": "SAME"}
    y = apply("Conv2D", m.feed(IMAGE, "image"), m.feed(FILTER, "filter"), **facts)
    return with_activation(apply(bias, y, m.vector("bias", size)), activation)


def product_of(m, activation="Relu", bias="BiasAdd", size=5, **transposes):
    a = m.feed(A.T if transposes.get("transpose_a") else A, "a")
    b = m.feed(B.T if transposes.get("transpose_b") else B, "b")
    y = apply("MatMul", a, b, **transposes)
    return with_activation(apply(bias, y, m.vector("bias", size)), activation)


ACTIVATIONS = ("", "Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Tanh", "Sigmoid", "Softplus")
# fmt: off
FOUND = [
    #  fused op          graph                                              some attributes
    ("_FusedSoftmax",    lambda m: softmax_of(m),                           {"axes": (2,), "stable": True}),
    ("_FusedSoftmax",    lambda m: softmax_of(m, axis=1),                   {"axes": (1,)}),
    ("_FusedSoftmax",    lambda m: softmax_of(m, other_axis=2),             {"axes": (2,)}),  # -1 is the same
    ("_FusedSoftmax",    lambda m: softmax_of(m, stable=False),             {"stable": False}),
    ("_FusedSoftmax",    lambda m: softmax_of(m, inverse=True),             {"stable": True}),
    ("_FusedLayerNorm",  lambda m: layer_norm_of(m),                        {"axes": (2,), "num_affine": 2}),
    ("_FusedLayerNorm",  lambda m: layer_norm_of(m, "nn"),                  {}),
    ("_FusedLayerNorm",  lambda m: layer_norm_of(m, "factor"),              {}),
    ("_FusedLayerNorm",  lambda m: layer_norm_of(m, "sqrt", stop=False),    {}),
    ("_FusedLayerNorm",  lambda m: layer_norm_of(m, "plain"),               {}),
    ("_FusedLayerNorm",  lambda m: layer_norm_of(m, square="Square"),       {}),
    ("_FusedLayerNorm",  lambda m: layer_norm_of(m, axes=(2, 1)),           {"axes": (1, 2)}),
    ("_FusedLayerNorm",  lambda m: plain_layer_norm_of(m, divide=True),     {"num_affine": 0}),
    ("_FusedLayerNorm",  lambda m: plain_layer_norm_of(m, divide=False),    {"num_affine": 0}),
    ("_FusedBatchNorm",  lambda m: batch_norm_of(m),                        {"num_scales": 1}),
    ("_FusedBatchNorm",  lambda m: batch_norm_of(m, "nn"),                  {}),
    ("_FusedBatchNorm",  lambda m: batch_norm_of(m, "factor"),              {}),
    ("_FusedBatchNorm",  lambda m: batch_norm_of(m, "sqrt"),                {}),
    ("_FusedBatchNorm",  lambda m: batch_norm_of(m, "plain"),               {}),
    ("_FusedBatchNorm",  lambda m: batch_norm_of(m, "keras", scaled=False), {"num_scales": 0}),
    ("_FusedBatchNorm",  lambda m: batch_norm_of(m, "nn", scaled=False),    {"num_scales": 0}),
    ("_FusedBatchNorm",  lambda m: batch_norm_of(m, "sqrt", scaled=False),  {"num_scales": 0}),
    ("_FusedGelu",       lambda m: gelu_of(m, "erf"),                       {"approximate": False}),
    ("_FusedGelu",       lambda m: gelu_of(m, "erf/"),                      {"approximate": False}),
    ("_FusedGelu",       lambda m: gelu_of(m, "erf outside"),               {"approximate": False}),
    ("_FusedGelu",       lambda m: gelu_of(m, "erfc"),                      {"approximate": False}),
    ("_FusedGelu",       lambda m: gelu_of(m, "tanh"),                      {"approximate": True}),
    ("_FusedGelu",       lambda m: gelu_of(m, "tanh*"),                     {"approximate": True}),
    ("_FusedGelu",       lambda m: gelu_of(m, "tanh square"),               {"approximate": True}),
    ("_FusedGelu",       lambda m: gelu_of(m, "tanh grown"),                {"approximate": True}),
    *[("_FusedConv2DBiasActivation", lambda m, a=a, b=b: convolution_of(m, a, b), {"activation": a, "padding": "SAME"})
      for a in ACTIVATIONS for b in ("BiasAdd", "AddV2")],
    *[("_FusedMatMulBiasActivation", lambda m, a=a, b=b: product_of(m, a, b, transpose_b=True),
       {"activation": a, "transpose_b": True}) for a in ACTIVATIONS for b in ("BiasAdd", "AddV2")],
    ("_FusedMatMulBiasActivation", lambda m: product_of(m, "Relu", transpose_a=True), {"transpose_a": True}),
]


def escaping(m):
    """Somebody else reads the exponentials."""
    y = softmax_of(m)
    return y + apply("Sum", y.node.inputs[0], np.int32([-1]), keep_dims=True)


def other_exponential(m):
    return apply("Exp", m.x()) / apply("Sum", apply("Exp", m.feed(X, "z")), np.int32([-1]), keep_dims=True)


def no_dimensions_kept(m):
    e = apply("Exp", m.feed(A[:, :4], "x"))
    return e / apply("Sum", e, np.int32([0]))


def other_moments(m):
    x = m.x()
    return normal(m, x, moments(m, x, axes=(1,))[0], moments(m, x)[1], m.vector("a"), m.vector("b"), "nn")


def moments_of_more(m):
    return normal(m, m.feed(A[:1], "x"), m.feed(A, "mean"), m.feed(A * A, "var"), m.vector("a"), m.vector("b"), "nn")


def two_arguments(m):
    return m.number(0.5) * m.feed(X, "y") * (m.number(1.0) + apply("Erf", m.x() * m.number(sqrt(0.5))))


def matrices(m, columns, bias):
    return apply("AddV2", apply("MatMul", m.feed(A, "a"), m.feed(B[:, :columns], "b")), bias)


def no_bias(m):
    return apply("Relu", apply("MatMul", m.feed(A, "a"), m.feed(B, "b")))


NEAR_MISSES = [
    #  what                  the device lacks   graph
    ("the inside is read",   (),                escaping),
    ("another exponential",  (),                other_exponential),
    ("no dimensions kept",   (),                no_dimensions_kept),
    ("moments of two axes",  ("BatchNorm",),    other_moments),
    ("larger moments",       (),                moments_of_more),
    ("half is another",      (),                lambda m: gelu_of(m, half=0.51)),
    ("root is another",      (),                lambda m: gelu_of(m, root=0.70711)),
    ("part is another",      (),                lambda m: gelu_of(m, "tanh", part=0.0447)),
    ("two arguments",        (),                two_arguments),
    ("larger bias",          (),                lambda m: matrices(m, 1, m.vector("bias", 5))),
    ("matrix of biases",     (),                lambda m: matrices(m, 5, m.feed(RNG.random((4, 5)), "bias"))),
    ("no bias",              (),                no_bias),
    ("integers",             (),                lambda m: apply("AddV2", apply("MatMul", [[1]], [[2]]), [3])),
]
# fmt: on


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op, make, attrs", FOUND, ids=[f"{k}{row[0]}" for k, row in enumerate(FOUND)])
def test_composition_becomes_one_node(op, make, attrs, dtype):
    """The device with the kernel gets one node, and both give the same."""
    m = Maker(dtype)
    with m.graph.as_default():
        out = make(m)
    plain, before = run(m.graph, out, m.feeds, kind="CPU")
    got, nodes = run(m.graph, out, m.feeds)
    assert ops(nodes) == [op]
    assert not FUSED_OPS & set(ops(before))
    assert len(ops(before)) > 1
    fused = next(node for node in nodes if node.op == op)
    assert fused.name == out.node.name
    assert {name: fused.attr(name) for name in attrs} == attrs
    np.testing.assert_allclose(
        got, plain, rtol=2e-5 if dtype == "float" else 1e-12, atol=1e-5 if dtype == "float" else 1e-12
    )
    assert not [n for n in nodes if n.op == "Const"]


@pytest.mark.parametrize("lacks, make", [row[1:] for row in NEAR_MISSES], ids=[row[0] for row in NEAR_MISSES])
def test_near_miss_stays(lacks, make):
    ext = extension(*(op for op in KERNELS if op.removeprefix("_Fused") not in lacks))
    m = Maker()
    with m.graph.as_default():
        out = make(m)
    plain, before = run(m.graph, out, m.feeds, kind="CPU")
    got, nodes = run(m.graph, out, m.feeds, ext=ext)
    assert ops(nodes) == ops(before)
    np.testing.assert_array_equal(got, plain)


def softmax_graph():
    m = Maker()
    with m.graph.as_default():
        return m, softmax_of(m)


def test_softmax_along_another_axis():
    """The largest composition that is there is found: here without the maximum, which is of another axis."""
    m = Maker()
    with m.graph.as_default():
        out = softmax_of(m, axis=1, other_axis=2)
    got, nodes = run(m.graph, out, m.feeds)
    assert ops(nodes) == ["Max", "Sub", "_FusedSoftmax"]
    np.testing.assert_allclose(got, run(m.graph, out, m.feeds, kind="CPU")[0], rtol=1e-5)


def test_inside_that_is_fetched_or_fed_stays():
    m, out = softmax_graph()
    e = out.node.inputs[0]
    (got, exponentials), nodes = run(m.graph, [out, e], m.feeds)
    assert "_FusedSoftmax" not in ops(nodes)
    np.testing.assert_allclose(got, exponentials / exponentials.sum(-1, keepdims=True), rtol=1e-6)
    got, nodes = run(m.graph, out, {e: np.ones(X.shape, np.float32)})
    assert "_FusedSoftmax" not in ops(nodes)
    np.testing.assert_allclose(got, np.full(X.shape, 1 / 6), rtol=1e-6)


def test_types_that_the_kernel_refuses_stay():
    only_double = extension("_FusedSoftmax", T=(DataType.DT_DOUBLE,))
    for dtype, found in (("float", False), ("double", True)):
        m = Maker(dtype)
        with m.graph.as_default():
            out = softmax_of(m)
        assert ("_FusedSoftmax" in ops(run(m.graph, out, m.feeds, ext=only_double)[1])) is found


def test_without_optimisation_nothing_is_composed():
    m, out = softmax_graph()
    assert "_FusedSoftmax" not in ops(run(m.graph, out, m.feeds, optimize=False)[1])


def test_scopes_of_compilation_are_not_mixed():
    m, out = softmax_graph()
    out.node.inputs[0].node.attrs["_XlaScope"] = AttrValue("string", "a")
    assert "_FusedSoftmax" not in ops(run(m.graph, out, m.feeds)[1])


def test_controls_and_shared_constants_are_kept():
    """The fused node has the control inputs of its parts; a constant with other users stays."""
    m = Maker()
    with m.graph.as_default():
        gate = apply("Assert", apply("Less", m.feed(np.zeros(()), "g"), m.number(1.0)), [m.number(0.0)])
        axes = m.graph.constant(np.int32([-1]))
        with m.graph.control_dependencies([gate]):
            e = apply("Exp", m.x())
        out = e / apply("Sum", e, axes, keep_dims=True)
    (_, axis), nodes = run(m.graph, [out, axes], m.feeds)
    assert axis == [-1]
    fused = next(node for node in nodes if node.op == "_FusedSoftmax")
    assert [c.op for c in fused.control_inputs] == ["Assert"]
    m.feeds[m.graph.tensor("g:0")] = np.float32(2)
    with pytest.raises(InvalidArgumentError):
        run(m.graph, out, m.feeds)


def test_many_compositions_in_a_row():
    """Each is found whatever is before and after it, in time that grows with their number only."""
    m = Maker()
    with m.graph.as_default():
        y = m.x()
        for _ in range(50):
            half = m.number(0.5)
            y = half * y * (m.number(1.0) + apply("Erf", y * m.number(sqrt(0.5))))
            e = apply("Exp", y)
            y = e / apply("Sum", e, np.int32([1]), keep_dims=True)
    got, nodes = run(m.graph, y, m.feeds)
    assert ops(nodes) == ["_FusedGelu"] * 50 + ["_FusedSoftmax"] * 50
    np.testing.assert_allclose(got, run(m.graph, y, m.feeds, kind="CPU")[0], rtol=1e-4)


BLOCKS = [
    lambda m, x, other: apply("Tanh", x),
    lambda m, x, other: x + other,
    lambda m, x, other: apply("Identity", x),
    lambda m, x, other: soft(m, x, -1),
    lambda m, x, other: soft(m, x, 0),
    lambda m, x, other: apply("Exp", x) / apply("Sum", apply("Exp", other), np.int32([-1]), keep_dims=True),
    lambda m, x, other: x * m.number(0.5) * (m.number(1.0) + apply("Erf", x * m.number(HALF_ROOT))),
    lambda m, x, other: x * m.number(0.5) * (m.number(1.0) + apply("Erf", other * m.number(HALF_ROOT))),
    lambda m, x, other: normal(m, x, *moments(m, x), scale_of(m), scale_of(m), "keras"),
    lambda m, x, other: normal(m, x, *moments(m, x), None, scale_of(m), "sqrt"),
    lambda m, x, other: normal(m, x, *moments(m, other), scale_of(m), scale_of(m), "factor"),
    lambda m, x, other: apply("Relu", apply("AddV2", apply("MatMul", x, m.graph.constant(SQUARE)), scale_of(m))),
    lambda m, x, other: apply("BiasAdd", apply("MatMul", x, other, transpose_b=True), scale_of(m, 4)),
]
SQUARE = (np.eye(6) / 2 + 0.1).astype(np.float32)


def soft(m, x, axis):
    e = apply("Exp", x)
    return e / apply("Sum", e, np.int32([axis]), keep_dims=True)


def scale_of(m, size=6):
    return m.graph.constant(np.linspace(0.5, 1, size).astype(np.float32))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_random_graphs(data):
    """Compositions, incomplete ones, and ones with other users, in any surroundings, give the same results."""
    m = Maker()
    with m.graph.as_default():
        values = [m.feed(A, "a"), m.feed(A[::-1], "b")]
        for _ in range(data.draw(st.integers(1, 8), label="length")):
            block = data.draw(st.sampled_from(BLOCKS))
            x, other = (data.draw(st.sampled_from(values)) for _ in range(2))
            y = block(m, x, other)
            if y.shape.as_list() == [4, 6]:
                values.append(y)
            inner = [t for node in m.graph.nodes.values() for t in node.outputs if t.shape.dims == (4, 6)]
            values.append(data.draw(st.sampled_from(inner)))
    fetches = [values[-1], data.draw(st.sampled_from(values))]
    plain, _ = run(m.graph, fetches, m.feeds, kind="CPU")
    got, _ = run(m.graph, fetches, m.feeds)
    for one, two in zip(got, plain, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)


# --- writing out -----------------------------------------------------------------------------------------------------
WRITTEN = [
    ("_FusedSoftmax", (X,), {"axes": [1], "stable": True}),
    ("_FusedSoftmax", (X,), {"axes": [-1], "stable": False}),
    ("_FusedLayerNorm", (X, [RNG.random(6), RNG.random(6)]), {"axes": [-1], "epsilon": 1e-3}),
    ("_FusedLayerNorm", (X, []), {"axes": [1, 2], "epsilon": 1e-3}),
    ("_FusedBatchNorm", (X, RNG.random(6), RNG.random(6), RNG.random(6), [RNG.random(6)]), {"epsilon": 1e-3}),
    ("_FusedBatchNorm", (X, RNG.random(6), RNG.random(6), RNG.random(6), []), {"epsilon": 1e-3}),
    ("_FusedGelu", (X,), {"approximate": True}),
    ("_FusedGelu", (X,), {"approximate": False}),
    *[
        ("_FusedConv2DBiasActivation", (IMAGE, FILTER, RNG.random(5)),
         {"strides": [1, 1, 1, 1], "padding": "VALID", "activation": a, "alpha": 0.3, "use_cudnn_on_gpu": False})
        for a in ACTIVATIONS
    ],
    *[("_FusedMatMulBiasActivation", (A, B, RNG.random(5)), {"activation": a, "alpha": 0.3}) for a in ACTIVATIONS],
]  # fmt: skip


def fused_graph(op, args, attrs, dtype=np.float32):
    """A graph that has the fused op itself."""

    def constant(value):
        return [graph.constant(v.astype(dtype)) for v in value] if isinstance(value, list) else graph.constant(
            value.astype(dtype)
        )  # fmt: skip

    graph = Graph()
    with graph.as_default():
        lists = {"T": DataType.DT_FLOAT} if op in ("_FusedLayerNorm", "_FusedBatchNorm") else {}
        return graph, apply(op, *map(constant, args), name="fused", **attrs, **lists)


@pytest.mark.parametrize("op, args, attrs", WRITTEN, ids=[f"{k}{row[0]}" for k, row in enumerate(WRITTEN)])
def test_fused_node_is_written_out(op, args, attrs):
    """A device without the kernel gets the plain nodes, whose last has the fused node's name."""
    graph, _ = fused_graph(op, args, attrs)
    want, nodes = run(graph, "fused:0", optimize=False)
    assert ops(nodes) == [op]
    got, nodes = run(graph, "fused:0", kind="CPU", optimize=False)
    assert not FUSED_OPS & {node.op for node in nodes}
    assert "fused" in {node.name for node in nodes}
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    again, nodes = run(graph, "fused:0", kind="CPU")
    np.testing.assert_allclose(again, want, rtol=2e-5, atol=2e-6)


def test_placement_prefers_the_device_with_the_kernel():
    """With several devices a fused node goes where its kernel is, and stays."""
    graph, _ = fused_graph(*WRITTEN[0])
    passes = OptimizationPassRegistry()
    register(passes)
    made = DeviceSet([Device(full_name(kind, 0), kind) for kind in ("CPU", "Toy")], {"CPU": 60, "Toy": 50})
    metadata = RunMetadata()
    extension().session(graph, devices=made, passes=passes).run("fused:0", metadata=metadata)
    [node] = [n for part in metadata.partition_graphs for n in part.nodes.values() if n.op in FUSED_OPS]
    assert node.assigned_device == full_name("Toy", 0)
    with graph.device("/device:CPU:0"):
        graph.nodes["fused"].device = "/device:CPU:0"
    metadata = RunMetadata()
    extension().session(graph, devices=made, passes=passes).run("fused:0", metadata=metadata)
    assert not [n for part in metadata.partition_graphs for n in part.nodes.values() if n.op in FUSED_OPS]


def test_in_a_loop():
    """Constants that are written out belong to the turn of the loop; composing takes them away again."""
    graph = Graph()
    with graph.as_default():
        start = graph.constant(X.astype(np.float32))
        outs = while_loop(
            graph,
            lambda i, _: apply("Less", i, constant_like(i, 3)),
            lambda i, x: [i + constant_like(i, 1), apply("_FusedGelu", x, approximate=False)],
            [graph.constant(0), start],
        )
    want, nodes = run(graph, outs[1])
    assert "_FusedGelu" in ops(nodes)
    got, nodes = run(graph, outs[1], kind="CPU")
    assert "_FusedGelu" not in ops(nodes)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("jit", ["on", "auto"])
def test_fused_node_is_written_out_when_it_is_compiled(jit):
    """Compilation devices are devices like others: none of ours has the kernels."""
    graph, out = fused_graph("_FusedSoftmax", (X,), {"axes": [1]})
    with graph.as_default():
        out = apply("Exp", apply("Neg", out))
    session = front.Session(graph, jit=jit, platform="interpreter")
    np.testing.assert_allclose(session.run(out), np.exp(-softmax(X, (1,), True)), rtol=1e-5)


def test_compilation_device_with_a_kernel_gets_one_node():
    ext = Extension()
    ext.kernel("_FusedSoftmax", device="XLA_TOY_JIT")(lambda ctx: None)
    m, out = softmax_graph()
    graph = executable_graph(m.graph, list(m.feeds), [out])
    assert specialize(graph, XlaCompilerOptions("XLA_CPU_JIT", graph.library, kernels=ext.kernels)) == 0
    assert specialize(graph, XlaCompilerOptions("XLA_TOY_JIT", graph.library, kernels=ext.kernels)) == 1
    assert ops(graph.nodes.values()) == ["_FusedSoftmax"]
    assert specialize(graph, XlaCompilerOptions("XLA_CPU_JIT", graph.library, kernels=ext.kernels)) == 1
    assert ops(graph.nodes.values()) == ["Exp", "Max", "RealDiv", "Sub", "Sum"]


def test_passes_are_registered():
    """On the registry of passes, before anything is clustered."""
    found = {entry.name: entry for entry in OptimizationPassRegistry.global_().passes()}
    assert found["fuse_graph"].grouping is Grouping.POST_REWRITE_FOR_EXEC
    assert found["fuse_graph"].phase < 5
    assert found["write_out_fused"].grouping is Grouping.PRE_PLACEMENT


def test_every_fused_op_is_known():
    assert FUSED_OPS == {fusion.op for fusion in fusions()} == set(KERNELS)
    assert set(KERNELS) == {d.name for d in OpRegistry.global_().get_registered_ops() if d.name in FUSED_OPS}
