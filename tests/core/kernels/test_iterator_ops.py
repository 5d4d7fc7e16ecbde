"""Iterators over Python iterables."""

import threading

import numpy as np
import pytest
from cyxla.core.kernels.data_flow.iterator_ops import IteratorResource

from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import Session
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError


@pytest.fixture
def made():
    """A session, its iterator of (float[2], string), and the components of the next element."""
    graph = Graph()
    facts = {"output_types": ["float", "string"], "output_shapes": [[2], []]}
    with graph.as_default():
        handle = apply_op("IteratorV2", shared_name="it", container="", **facts)
        parts = apply_op("IteratorGetNext", handle, **facts)
        apply_op("DeleteIterator", handle, graph.placeholder("variant", [], name="deleter"), name="delete")
    session = Session(graph)
    iterator = IteratorResource()
    session.engine.resource_manager.create("", "it", iterator)
    return session, iterator, parts


def test_elements_come_one_by_one_and_end(made):
    session, iterator, parts = made
    assert [str(t.shape) for t in parts] == ["[2]", "[]"]
    iterator.restart(([k, k + 1], f"element {k}") for k in range(3))
    for k in range(3):
        x, text = session.run(parts)
        assert (x.dtype, x.tolist(), text.item()) == (np.float32, [k, k + 1], f"element {k}".encode())
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match="no more elements") as caught:
            session.run(parts)
    assert caught.value.op == "IteratorGetNext"


def test_an_iterator_without_elements(made):
    session, _, parts = made
    with pytest.raises(FailedPreconditionError, match="no dataset yet"):
        session.run(parts)


@pytest.mark.parametrize("element, message", [
    (([1.0, 2.0],),                  "the element has 1 components, 2 are declared"),
    ((np.float64([1, 2]), "a"),      "component 0 is an array of float64, but float is declared"),
    (([1.0, 2.0, 3.0], "a"),         r"component 0 has shape \[3\], but \[2\] is declared"),
    (([1.0, 2.0], 7),                "component 1: 7 is not a string"),
])  # fmt: skip
def test_elements_that_do_not_fit(made, element, message):
    session, iterator, parts = made
    iterator.restart([element])
    with pytest.raises(InvalidArgumentError, match=message):
        session.run(parts)


def test_threads_share_the_elements(made):
    session, iterator, parts = made
    iterator.restart(([k, k], "") for k in range(200))
    taken = []

    def work():
        for _ in range(50):
            taken.append(session.run(parts)[0][0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(200))
