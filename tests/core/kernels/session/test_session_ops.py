"""Tensors that a session keeps between runs."""

import numpy as np
import pytest
from support.graphs.running import Extension

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.step.session_state import SessionMetadata
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import Session
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, OpError


@pytest.fixture
def made():
    """A graph: handle keeps x, value reads a handle, delete drops it."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        apply_op("GetSessionHandle", apply_op("Mul", x, np.float32(2)), name="keep")
        given = graph.placeholder("string", [], name="given")
        apply_op("GetSessionTensor", given, dtype="float", name="value")
        apply_op("DeleteSessionTensor", given, name="delete")
    return graph


X = np.float32([1, 2])


@pytest.mark.parametrize("jit", ["off", "auto"])
def test_a_tensor_is_kept_until_it_is_deleted(made, jit):
    import cyxla

    session = cyxla.Session(made, jit=jit)
    first, second = (session.run("keep:0", {"x:0": X * k}) for k in (1, 10))
    assert first.item().startswith(b"keep;0;")
    assert second.item().startswith(b"keep;1;")
    for _ in range(2):
        value = session.run("value:0", {"given:0": first})
        assert value.tolist() == [2, 4]
        value[:] = 0  # the caller's own
    assert session.run("value:0", {"given:0": second}).tolist() == [20, 40]
    session.run("delete", {"given:0": first})
    for fetch in ("value:0", "delete"):
        with pytest.raises(
            InvalidArgumentError, match=r"The tensor with handle 'keep;0;.*' is not in the session store"
        ):
            session.run(fetch, {"given:0": first})
    assert len(session._state) == 1
    session.close()
    assert len(session._state) == 0


def test_a_tensor_whose_handle_is_not_fetched_is_dropped(made):
    session = Session(made)
    session.run("keep", {"x:0": X})
    assert len(session._state) == 0


def test_a_handle_belongs_to_its_session(made):
    handle = Session(made).run("keep:0", {"x:0": X})
    with pytest.raises(InvalidArgumentError, match="not in the session store"):
        Session(made).run("value:0", {"given:0": handle})


def test_a_handle_of_another_type(made):
    session = Session(made)
    handle = session.run("keep:0", {"x:0": X})
    with made.as_default():
        wrong = apply_op("GetSessionTensor", made.tensor("given:0"), dtype="int32")
    with pytest.raises(InvalidArgumentError, match="is of float32, not of int32"):
        session.run(wrong, {"given:0": handle})


def test_a_resource_handle():
    graph = Graph()
    with graph.as_default():
        keep = apply_op("GetSessionHandleV2", np.float32([3]), name="keep")
    session = Session(graph)
    handle = session.run(keep).item()
    assert (handle.type_name, handle.name.split(";")[:2]) == ("TensorHandle", ["keep", "0"])
    assert session._state.get_tensor(handle.name).tolist() == [3]


def test_without_a_session():
    with pytest.raises(FailedPreconditionError, match="GetSessionHandle called on null session state"):
        apply_op("GetSessionHandle", X)


def test_a_failed_run_keeps_nothing(made):
    session = Session(made)
    with pytest.raises(OpError):
        session.run(["keep:0", "value:0"], {"x:0": X, "given:0": b"none"})
    assert len(session._state) == 0


def test_kernels_see_the_metadata_of_the_session():
    seen = []

    def see(ctx):
        seen.append(ctx.session_metadata)
        ctx.set_output(0, np.float32(0))

    extension = Extension()
    extension.probe("SeesSession", see, "-> y: float", stateful=True)
    graph = extension.graph()
    with graph.as_default():
        y = apply_op("SeesSession")
    extension.session(graph, metadata=SessionMetadata("model", 3)).run(y)
    extension.session(graph).run(y)
    assert seen == [SessionMetadata("model", 3), None]
