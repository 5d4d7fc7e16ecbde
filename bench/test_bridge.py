"""Claims: jit="auto" is 3 times as fast as "off" over all graphs and slower in none; a cluster costs at most 30 us.

The graphs are of common kinds: perceptrons, residual and separable convolutions, transformers, training steps. Both
sessions are timed in alternation, so that the ratio does not depend on the load of the machine.
"""

from itertools import pairwise
from math import exp, log, sqrt
from time import perf_counter

import numpy as np
import pytest

import cyxla
from cyxla.core.framework.apply import apply_op as apply
from cyxla.core.runtime.subgraph import executable_graph
from cyxla.tf2xla.xla_compiler import XlaCompiler, XlaCompilerOptions, argument_for
from cyxla.tf2xla.xla_op_registry import XLA_CPU_JIT

RNG = np.random.default_rng(0)
RATIOS: dict[str, float] = {}


class Net:
    """A graph with its feeds and the initialisers of its variables."""

    def __init__(self):
        self.graph, self.feeds, self.starts = cyxla.Graph(), {}, []

    def weights(self, *shape):
        scale = 1 / sqrt(np.prod(shape[:-1]) or 1)
        return self.graph.constant((RNG.standard_normal(shape) * scale).astype(np.float32))

    def input(self, *shape):
        tensor = self.graph.placeholder("float", shape)
        self.feeds[tensor.name] = RNG.standard_normal(shape).astype(np.float32)
        return tensor

    def dense(self, x, size, activation=None):
        y = apply("BiasAdd", apply("MatMul", x, self.weights(x.shape.as_list()[-1], size)), self.weights(size))
        return apply(activation, y) if activation else y

    def norm(self, x):
        n = x.shape.as_list()[-1]
        mean = apply("Mean", x, np.int32([-1]), keep_dims=True)
        variance = apply("Mean", apply("SquaredDifference", x, mean), np.int32([-1]), keep_dims=True)
        factor = apply("Rsqrt", variance + np.float32(1e-3)) * self.weights(n)
        return x * factor + (apply("Neg", mean) * factor + self.weights(n))

    def gelu(self, x):
        return (np.float32(0.5) * x) * apply("Erfc", apply("Neg", x) * np.float32(sqrt(0.5)))

    def batch_norm(self, x):
        n = x.shape.as_list()[-1]
        positive = self.graph.constant(RNG.random(n).astype(np.float32) + np.float32(0.5))
        facts = [self.weights(n), self.weights(n), self.weights(n), positive]
        return apply("FusedBatchNormV3", x, *facts, is_training=False)[0]

    def conv(self, x, size, kernel=3, stride=1, activation="Relu"):
        w = self.weights(kernel, kernel, x.shape.as_list()[-1], size)
        y = self.batch_norm(apply("Conv2D", x, w, strides=[1, stride, stride, 1], padding="SAME"))
        return apply(activation, y) if activation else y

    def depthwise(self, x, stride=1):
        w = self.weights(3, 3, x.shape.as_list()[-1], 1)
        y = apply("DepthwiseConv2dNative", x, w, strides=[1, stride, stride, 1], padding="SAME")
        return apply("Relu6", self.batch_norm(y))


def perceptron(net, batch, *sizes):
    x = net.input(batch, sizes[0])
    for size in sizes[1:-1]:
        x = net.dense(x, size, "Relu")
    return apply("Softmax", net.dense(x, sizes[-1]))


def residual(net, batch, size, widths):
    x = net.conv(net.input(batch, size, size, 3), widths[0])
    for width in widths:
        stride = 1 if x.shape.as_list()[-1] == width else 2
        short = x if stride == 1 else net.conv(x, width, 1, stride, None)
        x = apply("Relu", net.conv(net.conv(x, width, stride=stride), width, activation=None) + short)
    return apply("Softmax", net.dense(apply("Mean", x, np.int32([1, 2])), 10))


def separable(net, batch, size, blocks):
    x = net.conv(net.input(batch, size, size, 3), 16, stride=2, activation="Relu6")
    for k in range(blocks):
        width = x.shape.as_list()[-1]
        y = net.conv(net.depthwise(net.conv(x, 4 * width, 1, activation="Relu6")), width, 1, activation=None)
        x = x + y if k % 2 else net.conv(y, width + 8, 1, activation="Relu6")
    return apply("Softmax", net.dense(apply("Mean", x, np.int32([1, 2])), 10))


def transformer(net, batch, length, width, heads, layers):
    x = net.input(batch, length, width)

    def project(y, size):
        return apply("BatchMatMulV2", y, net.weights(y.shape.as_list()[-1], size)) + net.weights(size)

    def split(y):
        return apply("Transpose", apply("Reshape", y, np.int32([batch, length, heads, -1])), np.int32([0, 2, 1, 3]))

    for _ in range(layers):
        y = net.norm(x)
        q, k, v = (split(project(y, width)) for _ in range(3))
        scores = apply("Softmax", apply("BatchMatMulV2", q, k, adj_y=True) * np.float32((width // heads) ** -0.5))
        mixed = apply("Transpose", apply("BatchMatMulV2", scores, v), np.int32([0, 2, 1, 3]))
        x = x + project(apply("Reshape", mixed, np.int32([batch, length, width])), width)
        x = x + project(net.gelu(project(net.norm(x), 4 * width)), width)
    return net.norm(x)


def training(net, batch, *sizes):
    """Add one step of gradient descent with variables as weights."""
    x, y = net.input(batch, sizes[0]), net.input(batch, sizes[-1])
    handles = []
    for k, shape in enumerate(pairwise(sizes)):
        handles.append(apply("VarHandleOp", dtype="float", shape=list(shape), shared_name=f"w{k}"))
        net.starts.append(apply("AssignVariableOp", handles[-1], net.weights(*shape)))
    values = [apply("ReadVariableOp", h, dtype="float") for h in handles]
    for k, w in enumerate(values):
        x = apply("MatMul", apply("Tanh", x) if k else x, w)
    loss = apply("Mean", apply("SquaredDifference", x, y), np.int32([0, 1]))
    steps = cyxla.gradients([loss], values)
    rate = np.float32(1e-3)
    with net.graph.control_dependencies(
        [apply("ResourceApplyGradientDescent", h, rate, g) for h, g in zip(handles, steps, strict=True)]
    ):
        return apply("Identity", loss)


# fmt: off
GRAPHS = {
    "perceptron 64 x 20-64-64-10":          lambda net: perceptron(net, 64, 20, 64, 64, 10),
    "perceptron 1 x 20-32-10":              lambda net: perceptron(net, 1, 20, 32, 10),
    "perceptron 32 x 256-512-512-10":       lambda net: perceptron(net, 32, 256, 512, 512, 10),
    "residual 2 x 16 x 16":                 lambda net: residual(net, 2, 16, (8, 16)),
    "residual 8 x 32 x 32":                 lambda net: residual(net, 8, 32, (16, 32, 64)),
    "separable 2 x 24 x 24, 4 blocks":      lambda net: separable(net, 2, 24, 4),
    "separable 4 x 48 x 48, 8 blocks":      lambda net: separable(net, 4, 48, 8),
    "transformer 2 x 12 x 32, 2 layers":    lambda net: transformer(net, 2, 12, 32, 4, 2),
    "transformer 4 x 64 x 128, 4 layers":   lambda net: transformer(net, 4, 64, 128, 8, 4),
    "training 8 x 16-32-4":                 lambda net: training(net, 8, 16, 32, 4),
    "training 32 x 64-128-128-10":          lambda net: training(net, 32, 64, 128, 128, 10),
}
# fmt: on


def build(make, jit):
    """Return a call of a new session, with the same graph for every mode."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state
    net = Net()
    with net.graph.as_default():
        out = make(net)
    session = cyxla.Session(net.graph, jit=jit)
    session.run(net.starts)
    return lambda: session.run(out, net.feeds)


def in_turns(best_time, *calls):
    """Return the best time of each of several calls."""
    return [min(times) for times in zip(*[[best_time(call, 0.2) for call in calls] for _ in range(3)], strict=True)]


@pytest.mark.parametrize("name", GRAPHS)
def test_graph(benchmark, claim, best_time, name):
    """Clustering changes no result of a graph and never makes it slower."""
    off, auto = (build(GRAPHS[name], jit) for jit in ("off", "auto"))
    for _ in range(3):
        np.testing.assert_allclose(auto(), off(), rtol=2e-3, atol=2e-4)
    slow, fast = in_turns(best_time, off, auto)
    RATIOS[name] = slow / fast
    claim(f"{name}: auto", fast * 1e6, "us")
    claim("  times as fast as off", slow / fast, "", at_least=1)
    benchmark(auto)


def test_all_graphs(claim):
    """The geometric mean over the graphs above."""
    if len(RATIOS) < len(GRAPHS):
        pytest.skip("needs all graphs of this file")
    claim("all graphs: times as fast as off", exp(sum(map(log, RATIOS.values())) / len(RATIOS)), "", at_least=3)


# --- overhead of a cluster --------------------------------------------------------------------------------------------
def chain(net, length, variables=0):
    """Add a chain of cheap nodes, the first of which read a variable each."""
    x = net.input(8)
    for k in range(variables):
        handle = apply("VarHandleOp", dtype="float", shape=[8], shared_name=f"v{k}")
        net.starts.append(apply("AssignVariableOp", handle, np.ones(8, np.float32)))
        x = apply("Mul", x, apply("ReadVariableOp", handle, dtype="float"))
    for _ in range(length):
        x = apply("Neg", x)
    return x


@pytest.mark.parametrize("variables", [0, 4])
@pytest.mark.parametrize("jit", ["auto", "on"])
def test_overhead(benchmark, claim, best_time, jit, variables):
    """Overhead of a cluster of eight cheap nodes: its time less that of an empty run."""
    empty = build(lambda net: apply("Identity", net.input(8)), "off")
    run = build(lambda net: chain(net, 8, variables), jit)
    alone, all_in_all = in_turns(best_time, empty, run)
    what = f"a cluster, jit={jit!r}" + (f", {variables} variables" if variables else "")
    claim(what, (all_in_all - alone) * 1e6, "us", at_most=30)
    claim("  the whole run", all_in_all * 1e6, "us")
    benchmark(run)


# --- compiling --------------------------------------------------------------------------------------------------------
def lowering(length):
    """Return the seconds of compiling a chain to HLO."""
    net = Net()
    with net.graph.as_default():
        x = y = net.input(8)
        for _ in range(length // 4):
            x = apply("Mul", apply("AddV2", x, y), np.float32(1.5))
            y = apply("Tanh", x)
    part = executable_graph(net.graph, [net.graph.tensor(name) for name in net.feeds], [y])
    compiler = XlaCompiler(XlaCompilerOptions(XLA_CPU_JIT, part.library))
    args = [argument_for(value, x.dtype, constant=False) for value in net.feeds.values()]
    began = perf_counter()
    compiler.analysis.run(part)
    compiler.compile_graph("chain", part, args)
    return perf_counter() - began


def test_lowering(claim):
    """The time of compiling a graph to HLO grows linearly with its nodes."""
    lowering(100)
    short, long = (min(lowering(length) for _ in range(3)) for length in (1000, 10_000))
    claim("a graph of 10,000 nodes to HLO: a node", long / 10_000 * 1e6, "us")
    claim("  against 1,000 nodes: a node", long / short / 10, "", at_most=2)
