"""Tensor lists whose length changes: clusters give what the kernels give."""

import numpy as np
import pytest
from support.graphs.control_flow import Builder
from support.graphs.jitting import auto, clusters, nodes_that_run
from support.graphs.symbolic import add_function

import cyxla
from cyxla.autojit.regions import jit_scope
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.graph.graph import Graph

INT, F = np.int32, np.float32
PAIR, ANY = INT([2]), INT(-1)


def from_rows(x, shape=PAIR):
    return apply_op("TensorListFromTensor", x, shape)


def limited(most):
    return apply_op("EmptyTensorList", PAIR, INT(most), element_dtype="float")


def reserved(count, shape=PAIR):
    return apply_op("TensorListReserve", shape, INT(count), element_dtype="float")


def push(held, *items):
    for item in items:
        held = apply_op("TensorListPushBack", held, item)
    return held


def pop(held):
    return apply_op("TensorListPopBack", held, PAIR, element_dtype="float")


def set_item(held, index, item, *, resize=False):
    return apply_op("TensorListSetItem", held, index, item, resize_if_index_out_of_bounds=resize)


def get_item(held, index):
    return apply_op("TensorListGetItem", held, index, PAIR, element_dtype="float")


def stack(held):
    return apply_op("TensorListStack", held, PAIR, element_dtype="float")


def length(held):
    return apply_op("TensorListLength", held)


def element_shape(held):
    return apply_op("TensorListElementShape", held, shape_type="int32")


def total(x):
    return apply_op("Sum", x, INT(0))


def whole(held):
    """Return all that depends on the length of a list."""
    joined = apply_op("TensorListConcatV2", held, PAIR, np.zeros(0, np.int64), element_dtype="float")
    return [stack(held), length(held), *joined]


def call(name, make, *inputs):
    """Apply a function."""
    graph = inputs[0].graph
    add_function(graph, name, make, *(t.dtype for t in inputs))
    return apply_op(name, *inputs)


def loop(body, *inputs, times=2):
    """Run a body that takes a counter and other values."""
    graph = inputs[0].graph
    types = ["int32", *(t.dtype for t in inputs)]
    add_function(graph, "times", lambda i, *_: apply_op("Less", i, INT(times)), *types)
    add_function(graph, "body", lambda i, *values: [apply_op("AddV2", i, INT(1)), *body(i, *values)], *types)
    start = graph.constant(INT(0))
    _, *results = apply_op("While", [start, *inputs], cond=NameAttrList("times"), body=NameAttrList("body"))
    return results


def choose(condition, then, other, held):
    """Apply one of two functions to a list."""
    graph = held.graph
    for name, make in (("then", then), ("other", other)):
        add_function(graph, name, make, held.dtype)
    branches = {"then_branch": NameAttrList("then"), "else_branch": NameAttrList("other")}
    (result,) = apply_op("If", condition, [held], Tout=[held.dtype], **branches)
    return result


def shape_of_another_list(x, i):
    return stack(set_item(reserved(3, element_shape(from_rows(x, ANY))), i, total(x)))


def pushed_and_popped(held, x):
    held, second = pop(push(held, total(x), total(x) + 1))
    return [second, pop(held)[1]]


def filled(x, i):
    """Return the sums of a loop that sets elements, as a dynamic RNN does."""
    held, _ = loop(lambda i, held, y: [set_item(held, i, y), apply_op("Tanh", y)], reserved(2), total(x))
    return [stack(held), length(held), get_item(held, INT(1))]


def saved(x, i):
    """Return the last value of a loop that pops what another one pushed, as gradients of loops do."""
    held, _ = loop(lambda i, held, y: [push(held, y), apply_op("Tanh", y)], limited(5), total(x))

    def back(i, held, y):
        held, z = pop(held)
        return [held, y * z]

    add_function(x.graph, "back", lambda i, *values: [i + INT(1), *back(i, *values)], "int32", "variant", "float")
    calls = {"cond": NameAttrList("times"), "body": NameAttrList("back")}
    return apply_op("While", [x.graph.constant(INT(0)), held, total(x)], **calls)[2]


def stacked_after(x, i):
    held, _ = loop(lambda i, held, y: [push(held, y), apply_op("Tanh", y)], limited(5), total(x))
    return whole(held)


def inside_a_loop(x, i):
    return loop(lambda i, y: [total(stack(push(limited(4), y, y)))], total(x))


def in_one_branch(x, i):
    long = apply_op("Greater", apply_op("Reshape", i, np.zeros(0, INT)), INT(0))
    return whole(choose(long, lambda held: pop(held)[0], lambda held: apply_op("Identity", held), from_rows(x)))


def array(x, i, dynamic):
    handle, flow = apply_op("TensorArrayV3", INT(2), dtype="float", element_shape=[2], dynamic_size=dynamic)
    for k in range(2 + dynamic):
        flow = apply_op("TensorArrayWriteV3", handle, INT(k), total(x), flow)
    return apply_op("TensorArraySizeV3", handle, flow)


GROWS, LENGTH = "does not become longer", "does not follow pushes"
# The graph of a matrix x and a number i, and the reason why its lists are not compiled; empty if they are.
PROGRAMS = [
    ("push to rows", lambda x, i: whole(push(from_rows(x), total(x))), GROWS),
    ("push below the limit", lambda x, i: whole(push(limited(5), total(x), total(x))), LENGTH),
    ("push up to the limit", lambda x, i: whole(push(limited(2), total(x), total(x))), LENGTH),
    ("push and pop", lambda x, i: pushed_and_popped(limited(5), x), ""),
    ("push and pop without a limit", lambda x, i: pushed_and_popped(limited(-1), x), "max_num_elements"),
    ("push and pop of rows", lambda x, i: pushed_and_popped(from_rows(x), x), GROWS),
    ("push to a reserved list", lambda x, i: pushed_and_popped(reserved(2), x), GROWS),
    ("pop", lambda x, i: pop(from_rows(x))[1], ""),
    ("length after pop", lambda x, i: length(pop(from_rows(x))[0]), LENGTH),
    ("push after pops", lambda x, i: pop(push(pop(from_rows(x))[0], total(x), total(x) + 1))[1], GROWS),
    ("set", lambda x, i: whole(set_item(reserved(3), i, total(x))), ""),
    ("set beyond the end", lambda x, i: whole(set_item(reserved(1), i, total(x), resize=True)), GROWS),
    ("set beyond the end, as known", lambda x, i: whole(set_item(reserved(1), INT(2), total(x), resize=True)), ""),
    ("get", lambda x, i: get_item(push(limited(5), total(x)), INT(0)), ""),
    ("declared shape", lambda x, i: element_shape(from_rows(x)), ""),
    ("unknown shape", lambda x, i: element_shape(from_rows(x, ANY)), "declared"),
    ("shape of another list", shape_of_another_list, ""),
    ("sums", lambda x, i: whole(apply_op("AddN", [from_rows(x), apply_op("ZerosLike", from_rows(x))])), ""),
    ("sum of another length", lambda x, i: length(apply_op("AddN", [pop(from_rows(x))[0]] * 2)), LENGTH),
    ("a function", lambda x, i: whole(call("f", lambda held: push(held, F([5, 6])), from_rows(x))), GROWS),
    ("inside a function", lambda x, i: call("f", lambda y: stack(push(limited(3), y)), total(x)), LENGTH),
    ("a loop that sets", filled, ""),
    ("a loop that pushes, and one that pops", saved, ""),
    ("a loop that pushes", stacked_after, LENGTH),
    ("inside a loop", inside_a_loop, LENGTH),
    ("in one branch", in_one_branch, LENGTH),
    ("an array", lambda x, i: array(x, i, False), ""),
    ("an array that grows", lambda x, i: array(x, i, True), GROWS),
]  # fmt: skip


def build(make):
    graph = Graph()
    x, i = graph.placeholder("float", (None, 2), name="x"), graph.placeholder("int32", (), name="i")
    with graph.as_default():
        y = x
        for op in ("Tanh", "Exp", "Sin", "Neg"):
            y = apply_op(op, y)
        made = make(y, i)
    return graph, [t.name for t in (made if isinstance(made, (list, tuple)) else [made])]


@pytest.mark.parametrize("rows, index", [(2, 2), (3, 0)])
@pytest.mark.parametrize("name, make, reason", [pytest.param(*row, id=row[0]) for row in PROGRAMS])
def test_every_call_gives_what_the_kernels_give(name, make, reason, rows, index):
    graph, fetches = build(make)
    feeds = {"x:0": np.arange(2 * rows, dtype=F).reshape(rows, 2), "i:0": INT(index)}
    plain, session = cyxla.Session(graph).run(fetches, feeds), auto(graph)
    session.run(fetches, {"x:0": np.ones((7, 2), F), "i:0": INT(0)})  # the first signature is compiled at once
    for _ in range(3):
        for found, value in zip(session.run(fetches, feeds), plain, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-6)
    if reason:
        assert any(reason in row.reason for row in session.clusters().values())
    members = set().union(*clusters(session).values())
    assert any(n.startswith(("TensorList", "TensorArray", "While")) for n in members) is not bool(reason)


def test_the_rows_of_an_empty_matrix():
    """There is nothing to overwrite in a compiled list without elements."""
    graph, fetches = build(lambda x, i: pop(push(from_rows(x), total(x) + 1))[1])
    session = auto(graph)
    for _ in range(3):
        np.testing.assert_array_equal(session.run(fetches, {"x:0": np.zeros((0, 2), F)}), [[1, 1]])


def test_lists_are_compiled_where_this_is_requested():
    """A scope asks for compilation as it is, with lengths that are capacities."""
    graph = Graph()
    x = graph.placeholder("float", (2,), name="x")
    with graph.as_default(), jit_scope(graph):
        held = apply_op("EmptyTensorList", PAIR, INT(5), element_dtype="float")
        count = length(push(held, apply_op("Exp", x)))
    with cyxla.Session(graph, platform="interpreter") as session:
        assert session.run(count, {x: np.ones(2, F)}) == 5


@pytest.mark.parametrize("grows", [True, False])
def test_a_loop_of_frames(grows):
    """It becomes a While node only if its list can be compiled."""

    def make(x, i):
        def body(i, held, y):
            return [i + INT(1), push(held, y) if grows else set_item(held, i, y), apply_op("Tanh", y)]

        start = [x.graph.constant(INT(0)), reserved(2), total(x)]
        (_, held, _), _ = Builder(x.graph).loop("while", start, lambda i, *_: apply_op("Less", i, INT(2)), body)
        return stack(held)

    graph, fetches = build(make)
    feeds = {"x:0": np.ones((2, 2), F)}
    session = auto(graph)
    for _ in range(3):
        np.testing.assert_allclose(session.run(fetches, feeds), cyxla.Session(graph).run(fetches, feeds), rtol=1e-6)
    assert ("Enter" in nodes_that_run(session, fetches, feeds).values()) is grows
