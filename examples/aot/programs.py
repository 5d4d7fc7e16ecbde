"""Three programs as static libraries: a graph with variables, a residual network in StableHLO, a function with a loop.

Usage: python programs.py FOLDER
"""

import sys
from pathlib import Path

import numpy as np

import cyxla
from cyxla import aot
from cyxla.aot.config import Config, Feed, Fetch, Variable

RNG = np.random.default_rng(0)


def classifier():
    """A graph of two layers whose weights are variables, and a counter of calls that stays a variable."""
    weights = {
        "w1": RNG.standard_normal((8, 16), np.float32), "b1": np.zeros(16, np.float32),
        "w2": RNG.standard_normal((16, 3), np.float32), "b2": np.ones(3, np.float32),
    }  # fmt: skip
    ops, graph = cyxla.raw_ops, cyxla.Graph()
    with graph.as_default():
        x = ops.Placeholder(dtype="float", shape=(None, 8), name="x")
        handles = {
            name: ops.VarHandleOp(dtype="float", shape=value.shape, shared_name=name, name=name)
            for name, value in {**weights, "calls": np.float32(0)}.items()
        }
        w1, b1, w2, b2 = (ops.ReadVariableOp(resource=handles[name], dtype="float") for name in weights)
        hidden = ops.Relu(features=ops.BiasAdd(value=ops.MatMul(a=x, b=w1), bias=b1))
        counted = ops.AssignAddVariableOp(resource=handles["calls"], value=ops.Const(value=1.0, dtype="float"))
        with graph.control_dependencies([counted]):
            ops.Softmax(logits=ops.BiasAdd(value=ops.MatMul(a=hidden, b=w2), bias=b2), name="probabilities")
    config = Config([Feed("x", (4, 8))], [Fetch("probabilities")], [Variable("calls")])
    return aot.program(graph, config=config, variables=weights, name="classifier")


class Network:
    """Writer of StableHLO with the weights inside."""

    def __init__(self):
        self.lines, self.count = [], 0

    def add(self, text):
        """Write an instruction; return its name."""
        self.count += 1
        self.lines.append(f"  %{self.count} = {text}")
        return f"%{self.count}"

    def weights(self, *dims):
        """Write normally distributed weights, scaled by the number of inputs."""
        scale = np.float32(np.prod(dims[:-1]) ** -0.5)
        data = RNG.standard_normal(dims, np.float32) * scale
        return self.add(f'stablehlo.constant dense<"0x{data.tobytes().hex()}"> : {tensor(dims)}')

    def convolution(self, x, dims, features, size, stride):
        """Write a convolution that pads with zeros; return its name and sizes."""
        n, h, w, c = dims
        out = (n, h // stride, w // stride, features)
        pad = size // 2
        name = self.add(
            f"stablehlo.convolution({x}, {self.weights(size, size, c, features)})\n"
            "    dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],\n"
            f"    window = {{stride = [{stride}, {stride}], pad = [[{pad}, {pad}], [{pad}, {pad}]]}}\n"
            "    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}\n"
            f"    : ({tensor(dims)}, {tensor((size, size, c, features))}) -> {tensor(out)}"
        )
        return name, out

    def relu(self, x, dims):
        zero = self.add(f"stablehlo.constant dense<0.0> : {tensor(dims)}")
        return self.add(f"stablehlo.maximum {x}, {zero} : {tensor(dims)}")

    def block(self, x, dims, features, stride):
        """Write a residual block: two convolutions, and one for the short cut if sizes change."""
        y, out = self.convolution(x, dims, features, 3, stride)
        y, _ = self.convolution(self.relu(y, out), out, features, 3, 1)
        if out != dims:
            x, _ = self.convolution(x, dims, features, 1, stride)
        return self.relu(self.add(f"stablehlo.add {x}, {y} : {tensor(out)}"), out), out


def tensor(dims):
    return f"tensor<{''.join(f'{n}x' for n in dims)}f32>"


def resnet(image=(1, 32, 32, 3), classes=10):
    """A residual network for small images."""
    net = Network()
    x, dims = net.convolution("%image", image, 16, 3, 1)
    x = net.relu(x, dims)
    for features, stride in ((16, 1), (32, 2), (64, 2)):
        x, dims = net.block(x, dims, features, stride)
    zero = net.add("stablehlo.constant dense<0.0> : tensor<f32>")
    sums = net.add(
        f"stablehlo.reduce({x} init: {zero}) applies stablehlo.add across dimensions = [1, 2]\n"
        f"    : ({tensor(dims)}, tensor<f32>) -> {tensor((1, dims[3]))}"
    )
    w = net.weights(dims[3], classes)
    out = net.add(
        f"stablehlo.dot_general {sums}, {w}, contracting_dims = [1] x [0]\n"
        f"    : ({tensor((1, dims[3]))}, {tensor((dims[3], classes))}) -> {tensor((1, classes))}"
    )
    head = f"func.func public @main(%image: {tensor(image)}) -> {tensor((1, classes))} {{\n"
    return aot.program("\n".join([head, *net.lines, f"  return {out} : {tensor((1, classes))}\n}}"]), name="resnet")


def sqrtm(a):
    """Square root of ``a @ a.T + 1``, positive definite for any a, by the iteration of Denman and Beavers."""
    a = a @ a.T + np.eye(len(a))
    y, z, steps = a, np.eye(len(a)), 0
    while np.max(np.abs(y @ y - a)) > 1e-9 and steps < 50:
        y, z = (y + np.linalg.inv(z)) / 2, (z + np.linalg.inv(y)) / 2
        steps += 1
    return {"root": y, "steps": steps}


def main(folder):
    programs = {"Classifier": classifier(), "ResNet": resnet(), "Sqrtm": aot.program(sqrtm, ((6, 6), float))}
    for name, made in programs.items():
        options = {"name": made.name, "cpp_class": f"example::{name}", "threads": "pthreads", "test": True}
        product = aot.compile(made, directory=folder, kind="static", **options)
        print(product)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
