"""Graphs compiled as a whole, and clusters: their programs, and the state that warm runs must not keep."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cyxla
from cyxla.autojit.runtime.compiled_graph import CompiledGraph
from cyxla.autojit.runtime.launch import Variables
from cyxla.core.framework.apply import apply_op as apply
from cyxla.core.framework.resource_mgr import ResourceHandle, ResourceMgr
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Var
from cyxla.core.runtime.subgraph import executable_graph
from cyxla.errors import DTypeError, FailedPreconditionError, InvalidArgumentError, OpError, ShapeError

MODES = ("on", "auto")
FLOAT = DataType.DT_FLOAT


class Counter:
    """A graph of a variable that is set, read, added to and destroyed."""

    def __init__(self, jit):
        self.graph = cyxla.Graph()
        with self.graph.as_default():
            x = self.graph.placeholder("float", [None], name="x")
            handle = apply("VarHandleOp", dtype="float", shape=[None], shared_name="v")
            self.start = apply("AssignVariableOp", handle, x)
            y = apply("ReadVariableOp", handle, dtype="float")
            for _ in range(6):
                y = apply("Neg", y)
            self.value = y
            self.destroy = apply("DestroyResourceOp", handle)
            self.add = apply("AssignAddVariableOp", handle, apply("Neg", apply("Neg", apply("Neg", apply("Neg", x)))))
        self.session = cyxla.Session(self.graph, jit=jit, platform="interpreter")

    def destroyed(self, jit):
        """Drop the variable; no program can."""
        if jit == "auto":
            self.run(self.destroy)
        else:
            self.session.engine.resource_manager.clear()

    def run(self, fetch, x=None):
        return self.session.run(fetch, None if x is None else {"x:0": np.asarray(x, np.float32)})


@pytest.mark.parametrize("jit", MODES)
def test_variable_that_is_made_anew(jit):
    """Variables are remembered between runs, but not longer than they live."""
    counter = Counter(jit)
    counter.run(counter.start, [1, 2])
    for _ in range(3):
        np.testing.assert_array_equal(counter.run(counter.value), [1, 2])
    counter.destroyed(jit)
    counter.run(counter.start, [3, 4, 5])
    np.testing.assert_array_equal(counter.run(counter.value), [3, 4, 5])
    counter.run(counter.add, [1, 1, 1])
    np.testing.assert_array_equal(counter.run(counter.value), [4, 5, 6])


@pytest.mark.parametrize("jit", MODES)
def test_variable_without_a_value(jit):
    counter = Counter(jit)
    for _ in range(2):
        with pytest.raises(FailedPreconditionError):
            counter.run(counter.value)
    counter.run(counter.start, [1])
    np.testing.assert_array_equal(counter.run(counter.value), [1])


@pytest.mark.parametrize("jit", MODES)
def test_threads_add_to_one_variable(jit):
    """The lock is held from reading to writing."""
    counter = Counter(jit)
    counter.run(counter.start, [0])
    counter.run(counter.add, [1])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: counter.run(counter.add, [1]), range(200)))
    assert counter.run(counter.value).tolist() == [201]


def test_variables_are_looked_up_again_when_something_was_removed():
    manager, seen = ResourceMgr(), Variables()

    def handle(name):
        value = np.empty((), object)
        value[()] = ResourceHandle("", "localhost", name, "Var", ((FLOAT, None),))
        return value

    a, b = handle("a"), handle("b")
    [first, second], locks = seen.of(manager, [a, b])
    assert seen.of(manager, [a, b])[0] == [first, second]
    assert set(map(id, locks)) == {id(first.lock), id(second.lock)}
    assert seen.of(manager, [b, a])[0] == [second, first]
    assert seen.of(manager, [a, a])[1] == [first.lock]
    manager.delete("", "a", Var)
    assert seen.of(manager, [a, a])[0][0] is not first
    assert seen.of(ResourceMgr(), [a, a])[0][0] is not first


# --- programs ---------------------------------------------------------------------------------------------------------
def compiled(make, *placeholders):
    """A compiled graph of some placeholders."""
    graph = cyxla.Graph()
    with graph.as_default():
        feeds = [graph.placeholder(*p) for p in placeholders]
        out = make(*feeds)
    return CompiledGraph("g", executable_graph(graph, feeds, [out]), "interpreter")


def test_one_program_for_each_kind_of_arguments():
    """Shapes tell programs apart, values only where they must be known."""
    found = compiled(lambda x, shape: apply("Reshape", x, shape), ("float", None), ("int32", [None]))
    counts = []
    for x, shape in [
        (np.zeros(6), [2, 3]), (np.ones(6), [2, 3]), (np.ones(6), [3, 2]), (np.ones((1, 6)), [3, 2]), (np.ones(6), [6]),
    ]:  # fmt: skip
        [y] = found.run(StepContext(), [x.astype(np.float32), np.int32(shape)])
        assert y.shape == tuple(shape)
        counts.append(found.compiled)
    assert counts == [1, 1, 2, 3, 4]


def test_results_that_are_known_or_handed_on():
    def make(x):
        return [apply("Shape", x), x, apply("Neg", x)]

    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", None)
        outs = make(x)
    found = CompiledGraph("g", executable_graph(graph, [x], outs), "interpreter")
    array = np.ones((2, 3), np.float32)
    shape, same, minus = found.run(StepContext(), [array])
    assert shape.tolist() == [2, 3]
    np.testing.assert_array_equal(same, array)
    np.testing.assert_array_equal(minus, -array)


def test_sizes_known_at_run_time_only():
    found = compiled(lambda x: apply("Where", x), ("bool", [4]))
    for flags in ([0, 1, 0, 1], [1, 1, 1, 0], [0, 0, 0, 0]):
        [places] = found.run(StepContext(), [np.array(flags, bool)])
        np.testing.assert_array_equal(places[:, 0], np.flatnonzero(flags))


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_nodes_that_share_a_kernel_keep_their_names(names):
    """Errors name the node itself, not the one that the kernel was made for."""
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", [6])
        shape = graph.placeholder("int32", [2])
        good = apply("Reshape", x, np.int32([2, 3]), name=names[0])
        bad = apply("Reshape", good, apply("Cast", apply("Cast", shape, DstT="float"), DstT="int32"), name=names[1])
    session = cyxla.Session(graph, jit="on", platform="interpreter")
    shape_of_it = {x: np.zeros(6, np.float32), shape: np.int32([4, 4])}
    with pytest.raises(OpError) as caught:
        session.run(bad, shape_of_it)
    assert caught.value.node == names[1]
    assert f"'{names[0]}'" not in str(caught.value)


# --- sessions ---------------------------------------------------------------------------------------------------------
def test_wrong_arrays_after_right_ones():
    """Every array is checked, even if another one was fed before."""
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        s = graph.placeholder("string", [2], name="s")
        y = apply("Neg", x)
    session = cyxla.Session(graph)
    good = np.zeros(2, np.float32)
    for _ in range(2):
        session.run(y, {"x:0": good})
        with pytest.raises(DTypeError):
            session.run(y, {"x:0": np.zeros(2)})
        with pytest.raises(ShapeError):
            session.run(y, {"x:0": np.zeros(3, np.float32)})
        np.testing.assert_array_equal(session.run(y, {"x:0": [1.0, 2.0]}), [-1, -2])
    session.run(s, {"s:0": np.array([b"a", b"b"], object)})
    with pytest.raises((InvalidArgumentError, DTypeError)):
        session.run(s, {"s:0": np.array([1, None], object)})


@pytest.mark.parametrize("jit, is_checked", [("off", True), ("auto", True), ("on", False)])
@pytest.mark.parametrize("check", ["CheckNumerics", "Assert"])
def test_checks_run_but_in_graphs_that_are_compiled_as_a_whole(check, jit, is_checked):
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        if check == "Assert":
            is_finite = apply("All", apply("IsFinite", x), [0])
            with graph.control_dependencies([apply("Assert", is_finite, [graph.constant(b"not finite")])]):
                y = apply("Identity", x)
        else:
            y = apply("CheckNumerics", x, message="y")
        y = apply("Neg", apply("Neg", apply("Neg", apply("Neg", y))))
    session = cyxla.Session(graph, jit=jit)
    assert session.run(y, {x: [1, 2]}).tolist() == [1, 2]
    if is_checked:
        with pytest.raises(OpError):
            session.run(y, {x: [1, np.inf]})
    else:
        assert session.run(y, {x: [1, np.inf]}).tolist() == [1, np.inf]
