"""Loops and conditionals in each other, with the gradients through them, give the same however they are compiled."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS, close
from support.graphs.control_flow import Builder, constant

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph, Tensor
from cyxla.errors import InvalidArgumentError

X = np.array([0.5, -0.25, 0.75], np.float32)
ONE = np.ones(3, np.float32)
BOOL, INT, F = DataType.DT_BOOL, DataType.DT_INT32, DataType.DT_FLOAT


def less(limit: int) -> Callable[..., Tensor]:
    return lambda i, *_: apply_op("Less", i, constant(limit, np.int32))


def one() -> Tensor:
    return constant(1, np.int32)


def zero() -> Tensor:
    return constant(0, np.int32)


# Each builds the result for x, and the gradient for dy; beside it stands what NumPy says


def a_loop(b: Builder, x: Tensor, dy: Tensor, _: Any) -> Sequence[Tensor]:
    saved = []

    def body(i, y):
        t = apply_op("Tanh", y)
        saved.extend(map(b.save, (t, y)))
        return [i + one(), t * y]

    (_, y), count = b.loop("while", [zero(), x], less(4), body)

    def back(dz):
        t, u = map(b.load, saved)
        return [dz * t + dz * u * (constant(1) - t * t)]

    return [y, *b.back("gradients/while", count, [dy], back)]


def a_loop_in_numpy(x, dy, _):
    seen = []
    for _ in range(4):
        seen.append(x)
        x = np.tanh(x) * x
    for u in reversed(seen):
        t = np.tanh(u)
        dy = dy * t + dy * u * (1 - t * t)
    return x, dy


def a_loop_in_a_loop(b: Builder, x: Tensor, dy: Tensor, _: Any) -> Sequence[Tensor]:
    """The inner one runs i + 1 times, and takes a value of the outer one that stays the same meanwhile."""
    saved: dict[str, Tensor] = {}

    def outer(i, y):
        def inner(j, z):
            saved["z"] = b.save(z)
            return [j + one(), z * b.enter(y, -1)]

        limit = i + one()
        (_, z), count = b.loop("while/while", [zero(), y], lambda j, _: apply_op("Less", j, b.enter(limit, -1)), inner)
        saved["count"], saved["y"] = b.save(count), b.save(y)
        return [i + one(), z + y]

    (_, y), count = b.loop("while", [zero(), x], less(3), outer)

    def back_outer(d):
        times, same = b.load(saved["count"], INT), b.load(saved["y"])

        def back_inner(dz, dsame):
            return [dz * b.enter(same, -1), dsame + dz * b.load(saved["z"])]

        dz, dsame = b.back("gradients/while/while", times, [d, apply_op("ZerosLike", d)], back_inner)
        return [dz + dsame + d]

    return [y, *b.back("gradients/while", count, [dy], back_outer)]


def a_loop_in_a_loop_in_numpy(x, dy, _):
    y, seen = x, []
    for i in range(3):
        z = y
        for _ in range(i + 1):
            z = z * y
        seen.append(y)
        y = z + y
    d = dy
    for i, u in reversed(list(enumerate(seen))):
        d = d * ((i + 2) * u ** (i + 1) + 1)
    return y, d


def a_conditional_in_a_loop(b: Builder, x: Tensor, dy: Tensor, _: Any) -> Sequence[Tensor]:
    """Values of one branch are pushed and popped in that branch."""
    saved: dict[str, Tensor] = {}

    def body(i, y):
        odd = apply_op("Equal", apply_op("FloorMod", i, constant(2, np.int32)), one())
        saved["odd"] = b.save(odd)

        def then(z):
            s = apply_op("Sin", z)
            saved["z"] = b.save(z)
            return s * z

        return [i + one(), b.cond(odd, [y], then, lambda z: z * constant(3))]

    (_, y), count = b.loop("while", [zero(), x], less(5), body)

    def back(d):
        odd = b.load(saved["odd"], BOOL)

        def then(dz):
            z = b.load(saved["z"])
            return dz * (apply_op("Sin", z) + z * apply_op("Cos", z))

        return [b.cond(odd, [d], then, lambda dz: dz * constant(3))]

    return [y, *b.back("gradients/while", count, [dy], back)]


def a_conditional_in_a_loop_in_numpy(x, dy, _):
    seen = []
    for i in range(5):
        seen.append(x)
        x = np.sin(x) * x if i % 2 else x * 3
    for i, u in reversed(list(enumerate(seen))):
        dy = dy * (np.sin(u) + u * np.cos(u)) if i % 2 else dy * 3
    return x, dy


def a_loop_in_a_conditional(b: Builder, x: Tensor, dy: Tensor, pred: Tensor) -> Sequence[Tensor]:
    saved: dict[str, Tensor] = {}

    def then(a):
        def body(i, y):
            saved["y"] = b.save(y)
            return [i + one(), y * y]

        (_, y), saved["count"] = b.loop("cond/while", [zero(), a], less(3), body)
        return y

    y = b.cond(pred, [x], then, lambda a: a * constant(2))

    def back(d):
        slope = lambda dz: [dz * b.load(saved["y"]) * constant(2)]  # noqa: E731
        return b.back("gradients/cond/while", saved["count"], [d], slope)[0]

    return [y, b.cond(pred, [dy], back, lambda d: d * constant(2))]


def a_loop_in_a_conditional_in_numpy(x, dy, pred):
    return (x**8, dy * 8 * x**7) if pred else (x * 2, dy * 2)


def a_loop_after_another(b: Builder, x: Tensor, dy: Tensor, _: Any) -> Sequence[Tensor]:
    """The second loop reads a result of the first, which is also its trip count."""
    saved: dict[str, Tensor] = {}

    def first(i, y):
        saved["y"] = b.save(y)
        return [i + one(), y * y]

    (i, y), count = b.loop("while", [zero(), x], less(2), first)

    def second(j, z, w):
        saved["z"], saved["w"] = b.save(z), b.save(w)
        return [j + one(), z * w, w + constant(1)]

    limit = i + one()
    (_, z, w), again = b.loop("while_1", [zero(), y, y], lambda j, *_: apply_op("Less", j, b.enter(limit, -1)), second)

    def back_second(dz, dw):
        z, w = b.load(saved["z"]), b.load(saved["w"])
        return [dz * w, dw + dz * z]

    dz, dw = b.back("gradients/while_1", again, [dy, apply_op("ZerosLike", dy)], back_second)
    (dx,) = b.back("gradients/while", count, [dz + dw], lambda d: [d * b.load(saved["y"]) * constant(2)])
    return [z, dx, w]


def a_loop_after_another_in_numpy(x, dy, _):
    y = x**4
    z = y * y * (y + 1) * (y + 2)
    slope = 4 * y**3 + 9 * y**2 + 4 * y
    return z, dy * slope * 4 * x**3, y + 3


def a_conditional_in_a_loop_in_a_loop(b: Builder, x: Tensor, dy: Tensor, _: Any) -> Sequence[Tensor]:
    saved: dict[str, Tensor] = {}

    def outer(i, y):
        def inner(j, z):
            small = apply_op("Less", apply_op("Sum", z * z, zero()), constant(1))
            saved["small"] = b.save(small)

            def then(v):
                saved["v"] = b.save(v)
                return v * v + v

            return [j + one(), b.cond(small, [z], then, lambda v: v * constant(0.5))]

        (_, z), count = b.loop("while/while", [zero(), y], less(2), inner)
        saved["count"] = b.save(count)
        return [i + one(), z]

    (_, y), count = b.loop("while", [zero(), x], less(3), outer)

    def back_outer(d):
        times = b.load(saved["count"], INT)

        def back_inner(dz):
            small = b.load(saved["small"], BOOL)
            other = lambda u: u * constant(0.5)  # noqa: E731
            return [b.cond(small, [dz], lambda u: u * (b.load(saved["v"]) * constant(2) + constant(1)), other)]

        return b.back("gradients/while/while", times, [d], back_inner)

    return [y, *b.back("gradients/while", count, [dy], back_outer)]


def a_conditional_in_a_loop_in_a_loop_in_numpy(x, dy, _):
    seen = []
    for _ in range(6):
        small = (x * x).sum() < 1
        seen.append((small, x))
        x = x * x + x if small else x * np.float32(0.5)
    for small, u in reversed(seen):
        dy = dy * (2 * u + 1) if small else dy * np.float32(0.5)
    return x, dy


def a_loop_in_a_conditional_in_a_loop(b: Builder, x: Tensor, dy: Tensor, _: Any) -> Sequence[Tensor]:
    """The number of the inner loop's iterations is there in one branch only, like the values of its stacks."""
    saved: dict[str, Tensor] = {}

    def outer(i, y):
        odd = apply_op("Equal", apply_op("FloorMod", i, constant(2, np.int32)), one())
        saved["odd"] = b.save(odd)

        def then(a):
            def inner(j, z):
                saved["z"] = b.save(z)
                return [j + one(), apply_op("Sin", z)]

            (_, z), count = b.loop("while/cond/while", [zero(), a], less(2), inner)
            saved["count"] = b.save(count)
            return z

        return [i + one(), b.cond(odd, [y], then, lambda a: a * constant(2))]

    (_, y), count = b.loop("while", [zero(), x], less(4), outer)

    def back_outer(d):
        odd = b.load(saved["odd"], BOOL)

        def then(da):
            times = b.load(saved["count"], INT)
            slope = lambda dz: [dz * apply_op("Cos", b.load(saved["z"]))]  # noqa: E731
            return b.back("gradients/while/cond/while", times, [da], slope)[0]

        return [b.cond(odd, [d], then, lambda da: da * constant(2))]

    return [y, *b.back("gradients/while", count, [dy], back_outer)]


def a_loop_in_a_conditional_in_a_loop_in_numpy(x, dy, _):
    seen = []
    for i in range(4):
        for _ in range(2 if i % 2 else 1):
            seen.append((i % 2, x))
            x = np.sin(x) if i % 2 else x * 2
    for odd, u in reversed(seen):
        dy = dy * np.cos(u) if odd else dy * 2
    return x, dy


def loops_in_loops_in_loops(b: Builder, x: Tensor, dy: Tensor, _: Any) -> Sequence[Tensor]:
    """Gradients of a value that all loops capture add up over all loops."""
    saved: dict[str, Tensor] = {}
    names = ("while", "while/while", "while/while/while")

    def forward(depth, y):
        def body(i, z):
            if depth < 2:
                (_, result), count = forward(depth + 1, z)
                saved[f"count{depth}"] = b.save(count)
                return [i + one(), result]
            saved["z"] = b.save(z)
            return [i + one(), z * b.enter(x)]

        return b.loop(names[depth], [zero(), y], less(2), body)

    (_, y), count = forward(0, constant(ONE))

    def backward(depth, times, dz, dx):
        def body(d, total):
            if depth < 2:
                return backward(depth + 1, b.load(saved[f"count{depth}"], INT), d, total)
            added = apply_op("AddN", [total, d * b.load(saved["z"])])
            added.node.attrs["_class"] = AttrValue("list(string)", (f"loc:@{total.node.name}",))
            return [d * b.enter(x), added]

        return b.back(f"gradients/{names[depth]}", times, [dz, dx], body)

    return [y, backward(0, count, dy, apply_op("ZerosLike", x))[1]]


def loops_in_loops_in_loops_in_numpy(x, dy, _):
    return x**8, dy * 8 * x**7


def a_conditional(b: Builder, x: Tensor, dy: Tensor, pred: Tensor) -> Sequence[Tensor]:
    """The gradient reads the result, values of the branches, and their inputs."""
    kept: dict[str, Tensor] = {}

    def then(a):
        kept["a"], kept["s"] = a, apply_op("Sin", a)
        return kept["s"] * kept["s"]

    def other(a):
        kept["t"] = apply_op("Tanh", a)
        return apply_op("Identity", kept["t"])

    y = b.cond(pred, [x], then, other)
    then_back = lambda d: d * constant(2) * kept["s"] * apply_op("Cos", kept["a"])  # noqa: E731
    other_back = lambda d: d * (constant(1) - kept["t"] * kept["t"])  # noqa: E731
    return [y, b.cond(pred, [y * dy], then_back, other_back)]


def a_conditional_in_numpy(x, dy, pred):
    y = np.sin(x) ** 2 if pred else np.tanh(x)
    return y, y * dy * (2 * np.sin(x) * np.cos(x) if pred else 1 - np.tanh(x) ** 2)


def conditionals_in_a_conditional(b: Builder, x: Tensor, dy: Tensor, pred: Tensor) -> Sequence[Tensor]:
    """The inner predicate is there in one branch only."""
    kept: dict[str, Tensor] = {}

    def then(a):
        kept["small"] = apply_op("Less", apply_op("Sum", a, zero()), constant(2))

        def inner(v):
            kept["e"] = apply_op("Exp", v)
            return kept["e"] * constant(2)

        return b.cond(kept["small"], [a], inner, lambda v: v * constant(3))

    y = b.cond(pred, [x], then, lambda a: a * constant(5))

    def then_back(d):
        slope = lambda v: v * kept["e"] * constant(2)  # noqa: E731
        return b.cond(kept["small"], [d], slope, lambda v: v * constant(3))

    return [y, b.cond(pred, [y * dy], then_back, lambda d: d * constant(5))]


def conditionals_in_a_conditional_in_numpy(x, dy, pred):
    y, slope = (2 * np.exp(x), 2 * np.exp(x)) if pred else (5 * x, np.full_like(x, 5))
    return y, y * dy * slope


def a_loop_in_a_conditional_of_a_loss(b: Builder, x: Tensor, dy: Tensor, pred: Tensor) -> Sequence[Tensor]:
    """The loop of the gradient takes how often the other one ran from a branch."""
    saved: dict[str, Tensor] = {}

    def then(a):
        def body(i, y):
            saved["y"] = b.save(y)
            return [i + one(), y * y]

        (_, y), saved["count"] = b.loop("cond/while", [zero(), a], less(2), body)
        return y

    y = b.cond(pred, [x], then, lambda a: a * constant(2))

    def back(d):
        slope = lambda dz: [dz * b.load(saved["y"]) * constant(2)]  # noqa: E731
        return b.back("gradients/cond/while", saved["count"], [d], slope)[0]

    return [y, b.cond(pred, [y * dy], back, lambda d: d * constant(2))]


def a_loop_in_a_conditional_of_a_loss_in_numpy(x, dy, pred):
    return (x**4, x**4 * dy * 4 * x**3) if pred else (x * 2, x * 2 * dy * 2)


def empty_list(dtype: DataType, sizes: Sequence[int] = ()) -> Tensor:
    return apply_op("EmptyTensorList", constant(sizes, np.int32), constant(20, np.int32), element_dtype=dtype)


def push(items: Tensor, x: Tensor) -> Tensor:
    return apply_op("TensorListPushBack", items, x, element_dtype=x.dtype)


def pop(items: Tensor, dtype: DataType, sizes: Sequence[int] = ()) -> Sequence[Tensor]:
    return apply_op("TensorListPopBack", items, constant(sizes, np.int32), element_dtype=dtype)


def loops_with_lists(b: Builder, x: Tensor, dy: Tensor, _: Any) -> Sequence[Tensor]:
    """Values for the gradient are in lists that are loop variables, those of the inner loop in lists of lists."""

    def outer(i, y, lists, counts):
        (_, z, items), count = b.loop(
            "while/while",
            [zero(), y, empty_list(F, [3])],
            less(2),
            lambda j, z, items: [j + one(), apply_op("Sin", z), push(items, z)],
        )
        return [i + one(), z, push(lists, items), push(counts, count)]

    (_, y, lists, counts), count = b.loop(
        "while", [zero(), x, empty_list(DataType.DT_VARIANT), empty_list(INT)], less(3), outer
    )

    def back_outer(d, lists, counts):
        (lists, items), (counts, times) = pop(lists, DataType.DT_VARIANT), pop(counts, INT)

        def back_inner(dz, items):
            items, z = pop(items, F, [3])
            return [dz * apply_op("Cos", z), items]

        return [b.back("gradients/while/while", times, [d, items], back_inner)[0], lists, counts]

    return [y, b.back("gradients/while", count, [y * dy, lists, counts], back_outer)[0]]


def loops_with_lists_in_numpy(x, dy, _):
    seen = []
    for _ in range(6):
        seen.append(x)
        x = np.sin(x)
    d = x * dy
    for u in reversed(seen):
        d = d * np.cos(u)
    return x, d


SHAPES = [
    (a_loop, a_loop_in_numpy),
    (a_loop_in_a_loop, a_loop_in_a_loop_in_numpy),
    (a_conditional_in_a_loop, a_conditional_in_a_loop_in_numpy),
    (a_loop_in_a_conditional, a_loop_in_a_conditional_in_numpy),
    (a_loop_after_another, a_loop_after_another_in_numpy),
    (a_conditional_in_a_loop_in_a_loop, a_conditional_in_a_loop_in_a_loop_in_numpy),
    (a_loop_in_a_conditional_in_a_loop, a_loop_in_a_conditional_in_a_loop_in_numpy),
    (loops_in_loops_in_loops, loops_in_loops_in_loops_in_numpy),
    (a_conditional, a_conditional_in_numpy),
    (conditionals_in_a_conditional, conditionals_in_a_conditional_in_numpy),
    (a_loop_in_a_conditional_of_a_loss, a_loop_in_a_conditional_of_a_loss_in_numpy),
    (loops_with_lists, loops_with_lists_in_numpy),
]


def run(build, jit, platform, pred, size=100, known=True):
    """The results of a graph, whose placeholders have shapes that are `known`, or not."""
    graph, shape = Graph(), [3] if known else None
    with graph.as_default():
        x, dy = graph.placeholder("float", shape, name="x"), graph.placeholder("float", shape, name="dy")
        choice = graph.placeholder("bool", [], name="pred")
        results = build(Builder(graph, size), x, dy, choice)
    feeds = {"x:0": X, "dy:0": ONE * 2, "pred:0": np.array(pred)}
    loaded = cyxla.load_graph(graph.to_graph_def().SerializeToString())
    return list(cyxla.Session(loaded, jit=jit, platform=platform).run([r.name for r in results], feeds))


BRANCHING = {a_conditional, conditionals_in_a_conditional, a_loop_in_a_conditional, a_loop_in_a_conditional_of_a_loss}
CASES = [pytest.param(*shape, True, id=shape[0].__name__) for shape in SHAPES]
CASES += [pytest.param(*shape, False, id=f"not {shape[0].__name__}") for shape in SHAPES if shape[0] in BRANCHING]


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("build, by_numpy, pred", CASES)
def test_gradients_through_loops_and_conditionals(build, by_numpy, pred):
    wanted = by_numpy(X, ONE * 2, pred)
    close(run(build, "off", "cpu", pred), wanted)
    close(run(build, "off", "cpu", pred, size=-1), wanted)
    close(run(build, "auto", "cpu", pred), wanted)
    for platform in PLATFORMS:
        close(run(build, "on", platform, pred, known=platform == "cpu"), wanted)


def test_stacks_of_any_size_are_refused_where_everything_is_compiled():
    with pytest.raises(InvalidArgumentError, match="max_size is -1"):
        run(a_loop, "on", "interpreter", True, size=-1)
