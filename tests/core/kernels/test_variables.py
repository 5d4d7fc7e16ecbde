"""Variables behind handles and behind references."""

import threading

import numpy as np
import pytest
from cyxla.core.kernels.state.resource_variable_ops import ANONYMOUS

from cyxla.core.framework import TensorShape, apply_op
from cyxla.core.framework.types import as_data_type
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import Session
from cyxla.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)

F32 = np.float32
INDEX = np.int32


class Variable:
    """A graph with one variable and a session; ops on it run one at a time."""

    def __init__(self, dtype="float", shape=None, ref=False):
        self.graph, self.dtype, self.ref = Graph(), dtype, ref
        self.session = Session(self.graph)
        with self.graph.as_default():
            if ref:
                self.handle = apply_op("VariableV2", shape=shape or [], dtype=dtype)
            else:
                self.handle = apply_op("VarHandleOp", dtype=dtype, shape=TensorShape(shape), shared_name="v")

    def __call__(self, op, *inputs, **attrs):
        with self.graph.as_default():
            made = apply_op(op, self.handle, *inputs, **attrs)
        if getattr(made, "node", None) is None:  # no outputs: run for the effect
            self.session.run(made.name)
            return None
        return self.session.run(made)

    def assign(self, value):
        """Set the value."""
        return self("Assign" if self.ref else "AssignVariableOp", np.asarray(value, as_data_type(self.dtype).numpy))

    def value(self):
        """Its value."""
        return self.session.run(self.handle) if self.ref else self("ReadVariableOp", dtype=self.dtype)


@pytest.mark.parametrize("dtype", ["float", "half", "bfloat16", "double", "int8", "uint64", "bool", "complex128"])
def test_assigned_and_read(dtype):
    v = Variable(dtype, [2])
    assert not v("VarIsInitializedOp")
    v.assign([1, 0])
    assert v("VarIsInitializedOp")
    got = v.value()
    assert (got.dtype, got.tolist()) == (
        as_data_type(dtype).numpy,
        np.array([1, 0], as_data_type(dtype).numpy).tolist(),
    )
    assert v("VariableShape", out_type="int64").tolist() == [2]


def test_copies_of_reads_are_switched_off():
    """Values that were read are never written to, so nothing changes; the variable must exist."""
    v = Variable("float", [2])
    with pytest.raises(NotFoundError, match="v"):
        v("DisableCopyOnRead")
    v.assign([1, 2])
    read = v.value()
    v("DisableCopyOnRead")
    v.assign([3, 4])
    assert (read.tolist(), v.value().tolist()) == ([1, 2], [3, 4])


def test_values_of_strings():
    v = Variable("string", [])
    v("AssignVariableOp", np.array(b"text", object))
    assert v.value() == b"text"


def test_added_and_subtracted():
    v = Variable("int32", [2])
    v.assign([5, 6])
    seen = v.value()
    v("AssignAddVariableOp", np.array([1, 2], INDEX))
    v("AssignSubVariableOp", np.array([10, 0], INDEX))
    assert (seen.tolist(), v.value().tolist()) == ([5, 6], [-4, 8])


def test_no_update_is_lost():
    v = Variable("float", [])
    v.assign(0)
    with v.graph.as_default():
        add = apply_op("AssignAddVariableOp", v.handle, F32(1), name="add")
    threads = [threading.Thread(target=lambda: [v.session.run(add.name) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert v.value() == 200


def test_a_destroyed_variable_is_gone():
    v = Variable()
    v.assign(1)
    v("DestroyResourceOp")
    v("DestroyResourceOp")  # which is no error by default
    with pytest.raises(NotFoundError):
        v("DestroyResourceOp", ignore_lookup_error=False)
    with pytest.raises(FailedPreconditionError, match="the variable v has no value"):
        v.value()


def test_anonymous_variables_are_their_own():
    graph = Graph()
    with graph.as_default():
        handles = [apply_op("VarHandleOp", dtype="float", shape=[], shared_name=ANONYMOUS) for _ in range(2)]
        sets = [apply_op("AssignVariableOp", h, F32(k)) for k, h in enumerate(handles)]
        with graph.control_dependencies(sets):
            reads = [apply_op("ReadVariableOp", h, dtype="float") for h in handles]
    session = Session(graph)
    assert session.run(reads) == [0, 1]
    assert len(session.engine.resource_manager) == 0


def test_named_locks():
    graph = Graph()
    with graph.as_default():
        locks = [apply_op("MutexV2", shared_name=name, name=f"m{k}") for k, name in enumerate(("a", "a", ""))]
    session = Session(graph)
    names = [session.run(lock).item().name for lock in locks]
    assert names == ["a", "a", "m2"]
    assert len(session.engine.resource_manager) == 2


def test_several_at_once():
    graph = Graph()
    with graph.as_default():
        facts = {"containers": ["", ""], "shared_names": ["a", "b"], "N": 2}
        handles = apply_op("_VarHandlesOp", dtypes=["float", "int32"], shapes=[[], [1]], **facts)
        sets = [
            apply_op("AssignVariableOp", h, x) for h, x in zip(handles, (F32(1), np.array([2], INDEX)), strict=True)
        ]
        with graph.control_dependencies(sets):
            values = apply_op("_ReadVariablesOp", handles, dtypes=["float", "int32"])
    assert [v.tolist() for v in Session(graph).run(values)] == [1, [2]]


def test_rows_are_gathered():
    v = Variable("float", [3, 2])
    x = np.arange(6, dtype=F32).reshape(3, 2)
    v.assign(x)
    facts = {"dtype": "float"}
    for indices in (np.array([2, 0]), np.array(1), np.array([[0, 1], [2, 2]]), np.zeros((0,), int)):
        np.testing.assert_array_equal(v("ResourceGather", indices, **facts), x[indices])
    batched = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0]])
    np.testing.assert_array_equal(
        v("ResourceGather", batched, batch_dims=1, **facts), np.take_along_axis(x, batched, axis=1)
    )
    np.testing.assert_array_equal(v("ResourceGatherNd", np.array([[2, 1], [0, 0]]), **facts), [5, 0])
    np.testing.assert_array_equal(v("ResourceGatherNd", np.array([[1]]), **facts), x[[1]])
    np.testing.assert_array_equal(v("ResourceGatherNd", np.zeros((2, 0), int), **facts), [x, x])


SLICE = [np.array(p, INDEX) for p in ([0, 1], [2, 2], [1, 1])]


def test_slices_are_assigned():
    for v, op in (
        (Variable("float", [2, 3]), "ResourceStridedSliceAssign"),
        (Variable(ref=True, shape=[2, 3]), "StridedSliceAssign"),
    ):
        v.assign(np.zeros((2, 3)))
        v(op, *SLICE, F32([[1], [2]]))
        assert v.value().tolist() == [[0, 1, 0], [0, 2, 0]]
        v(op, *SLICE, F32(7))  # is broadcast
        assert v.value().tolist() == [[0, 7, 0], [0, 7, 0]]
        with pytest.raises(InvalidArgumentError, match="to fill the slice"):
            v(op, *SLICE, F32([[1, 2]]))
        v(op, SLICE[0], SLICE[0], SLICE[2], F32([[1, 2]]))  # nothing is assigned


def test_counting_up():
    v = Variable("int64", [])
    v.assign(0)
    assert [v("ResourceCountUpTo", limit=2, T="int64") for _ in range(2)] == [0, 1]
    with pytest.raises(OutOfRangeError, match="limit of 2"):
        v("ResourceCountUpTo", limit=2, T="int64")


def use(op, *inputs, **attrs):
    """A use of a variable of float[2]."""
    return lambda v: v(op, *inputs, **attrs)


X2 = F32([1, 2])
BAD = [
    # use, does it need a value, error
    (use("AssignVariableOp", np.array([1, 2], INDEX), dtype="int32"), True, InvalidArgumentError),
    (use("AssignVariableOp", F32(1), validate_shape=True), True, InvalidArgumentError),
    (use("ReadVariableOp", dtype="int32"), True, InvalidArgumentError),
    (use("ReadVariableOp", dtype="float"), False, FailedPreconditionError),
    (use("AssignAddVariableOp", F32([1, 2, 3])), True, InvalidArgumentError),
    (use("AssignAddVariableOp", X2), False, NotFoundError),
    (use("ResourceGather", np.array([2]), dtype="float"), True, InvalidArgumentError),
    (use("ResourceGather", np.array([-1]), dtype="float"), True, InvalidArgumentError),
    (use("ResourceGatherNd", np.array([[2]]), dtype="float"), True, InvalidArgumentError),
    (use("ResourceScatterAdd", np.array([2]), F32([1])), True, InvalidArgumentError),
    (use("ResourceScatterNdUpdate", np.array([[2]]), F32([1])), True, InvalidArgumentError),
    (use("ResourceScatterNdAdd", np.array([[0]]), F32([1]), bad_indices_policy="?"), True, InvalidArgumentError),
    (use("VariableShape"), False, NotFoundError),
]


@pytest.mark.parametrize("used, initialized, error", BAD)
def test_misused_variables(used, initialized, error):
    v = Variable("float", None)
    if initialized:
        v.assign(X2)
    with pytest.raises(error):
        used(v)


SCATTERS = [
    ("Update", [9, 2]), ("Add", [10, 2]), ("Sub", [-8, 2]), ("Mul", [9, 2]), ("Div", [1 / 9, 2]), ("Min", [1, 2]),
    ("Max", [9, 2]),
]  # fmt: skip


@pytest.mark.parametrize("how, want", SCATTERS)
def test_scatters_into_variables(how, want):
    v = Variable("float", [2])
    v.assign(X2)
    seen = v.value()
    v(f"ResourceScatter{how}", np.array([0]), F32([9]))
    np.testing.assert_allclose(v.value(), want, rtol=1e-6)
    assert seen.tolist() == [1, 2]


@pytest.mark.parametrize("how, want", SCATTERS[:3])
def test_scatters_of_slices(how, want):
    v = Variable("float", [2])
    v.assign(X2)
    v(f"ResourceScatterNd{how}", np.array([[0], [7]]), F32([9, 9]), bad_indices_policy="IGNORE")
    np.testing.assert_allclose(v.value(), want)
    r = Variable(ref=True, shape=[2])
    r.assign(X2)
    assert r(f"Scatter{how}", np.array([0]), F32([9])).tolist() == want
    if how == "Update":
        assert r("ScatterNdUpdate", np.array([[1]]), F32([7])).tolist() == [9, 7]


# References


def test_references():
    v = Variable(ref=True, shape=[2])
    assert not v("IsVariableInitialized")
    with pytest.raises(FailedPreconditionError, match="has no value yet"):
        v.value()
    with pytest.raises(FailedPreconditionError):
        v("AssignAdd", X2)
    assert v.assign(X2).tolist() == [1, 2]
    assert v("IsVariableInitialized")
    assert v("AssignAdd", X2).tolist() == [2, 4]
    assert v("AssignSub", F32([1, 1])).tolist() == [1, 3]
    for op in ("Assign", "AssignAdd"):
        with pytest.raises(InvalidArgumentError, match=r"match|equal|shape"):
            v(op, F32([1]))


def test_temporary_variables():
    graph = Graph()
    with graph.as_default():
        t = apply_op("TemporaryVariable", shape=[2], dtype="float", var_name="t")
        t = apply_op("Assign", t, X2)
        t = apply_op("AssignAdd", t, X2)
        last = apply_op("DestroyTemporaryVariable", t, var_name="t")
    session = Session(graph)
    for _ in range(2):
        assert session.run(last).tolist() == [2, 4]
    assert len(session.engine.resource_manager) == 0


def test_references_through_control_flow():
    graph = Graph()
    with graph.as_default():
        v = apply_op("VariableV2", shape=[], dtype="float", name="v")
        apply_op("Assign", v, F32(5), name="init")
        p = graph.placeholder("bool", [], name="p")
        off, on = apply_op("RefSwitch", v, p)
        merged, which = apply_op("RefMerge", [apply_op("AssignAdd", off, F32(1)), apply_op("AssignSub", on, F32(1))])
        chosen = apply_op("RefSelect", graph.placeholder("int32", [], name="k"), [v, apply_op("RefIdentity", v)])
    session = Session(graph)
    session.run("init")
    assert [np.asarray(x).item() for x in session.run([merged, which], {"p:0": True})] == [4, 1]
    assert [np.asarray(x).item() for x in session.run([merged, which], {"p:0": False})] == [5, 0]
    assert session.run(chosen, {"k:0": 1}) == 5
    with pytest.raises(InvalidArgumentError, match="out of range for"):
        session.run(chosen, {"k:0": 2})
