"""An op of one's own: declaration, shapes, kernels and gradient in a few lines, as a user writes them."""

import subprocess
import sys

SCRIPT = '''
import numpy as np
import cyxla
from cyxla.core.framework import OpKernel, apply_op, array_kernel, gradient, kernel, op, unchanged_shape


@op("ScaleRows", "x: T, s: T -> y: T", "T: {half, float, double}", "axis: int = 0")
def _(c):
    """Multiply each slice of x along `axis` by the matching entry of s."""
    x = c.with_rank_at_least(c.input(0), 1)
    c.merge_dim(x[c.attr("axis")], c.with_rank(c.input(1), 1)[0])
    c.set_output(0, x)


op("Negate2", "x: T -> y: T", "T: numbertype", shape=unchanged_shape)
array_kernel("Negate2", np.negative, device="CPU")


@kernel("ScaleRows", device="CPU", types={"T": (np.float32, np.float64)})
def scale_rows(ctx):
    x, s = ctx.input("x"), ctx.input("s")
    shape = [1] * x.ndim
    shape[ctx.attr("axis")] = -1
    ctx.set_output(0, x * s.reshape(shape))


@kernel("ScaleRows", device="CPU", types={"T": np.float16}, label="wide")
class ScaleRowsWide(OpKernel):
    def __init__(self, construction):
        super().__init__(construction)
        self.axis = construction.get_attr("axis")

    def compute(self, ctx):
        ctx.set_output(0, (ctx.input(0).astype(np.float32) * 2).astype(np.float16))


@gradient("ScaleRows")
def scale_rows_grad(node, dy):
    x, s = node.inputs
    axis = node.attr("axis")
    rest = [i for i in range(x.shape.rank) if i != axis]
    return apply_op("ScaleRows", dy, s, axis=axis), apply_op("Sum", dy * x, rest)


graph = cyxla.Graph()
with graph.as_default():
    x = graph.placeholder("double", [2, None], name="x")
    s = graph.placeholder("double", [None], name="s")
    y = apply_op("ScaleRows", x, s)
    z = apply_op("Negate2", y)
grads = cyxla.gradients(y, [x, s])
session = cyxla.Session(graph)
feeds = {"x:0": [[1.0, 2.0], [3.0, 4.0]], "s:0": [10.0, 100.0]}
print(y.shape, *(v.tolist() for v in session.run([z, *grads], feeds)))
print(cyxla.raw_ops.Negate2(x=np.float32([1])).tolist())
try:
    with graph.as_default():
        apply_op("ScaleRows", x, np.ones(3))
except cyxla.errors.InvalidArgumentError as error:
    print(error.code)
'''


def test_a_user_defined_op():
    """Nothing but the public names is needed."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=600)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "[2,?] [[-10.0, -20.0], [-300.0, -400.0]] [[10.0, 10.0], [100.0, 100.0]] [3.0, 7.0]",
        "[-1.0]",
        "INVALID_ARGUMENT",
    ]
