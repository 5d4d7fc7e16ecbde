"""Barriers: components that arrive at different times, closing, and steps that wait."""

import threading
import time

import numpy as np
import pytest

from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import Session
from cyxla.errors import OpError

FIRST = -(1 << 63)


class World:
    """A graph with a barrier of (float[2], int32), its operations, and a session."""

    def __init__(self, **attrs):
        self.graph = Graph()
        given = {"component_types": ["float", "int32"], "shapes": [[2], []], "shared_name": "barrier", **attrs}
        with self.graph.as_default():
            self.handle = apply_op("Barrier", name="barrier", **given)
        self.session = Session(self.graph)

    def op(self, name, *args, **attrs):
        with self.graph.as_default():
            return apply_op(f"Barrier{name}", self.handle, *args, **attrs)

    def insert(self, keys, values, component):
        keys = np.array([k.encode() for k in keys], object)
        values = np.array(values, (np.float32, np.int32)[component])
        return self.session.run(self.op("InsertMany", keys, values, component_index=component))

    def take(self, n, **attrs):
        indices, keys, values = self.op("TakeMany", np.int32(n), component_types=["float", "int32"], **attrs)
        return [v.tolist() for v in self.session.run([indices, keys, *values])]

    def close(self, **attrs):
        self.session.run(self.op("Close", **attrs))

    def sizes(self):
        return tuple(int(v) for v in self.session.run([self.op("ReadySize"), self.op("IncompleteSize")]))


def failure(call, *args, **kwargs):
    with pytest.raises(OpError) as caught:
        call(*args, **kwargs)
    return caught.value.code, caught.value.message


def test_elements_are_taken_when_complete_in_the_order_of_their_first_component():
    world = World()
    world.insert("abc", [[1, 1], [2, 2], [3, 3]], 0)
    world.insert("d", [4], 1)
    assert world.sizes() == (0, 4)
    world.insert("cba", [30, 20, 10], 1)
    assert world.sizes() == (3, 1)
    world.insert("d", [[4, 4]], 0)
    assert world.take(4) == [
        [FIRST] * 3 + [FIRST + 1],
        [b"c", b"b", b"a", b"d"],
        [[3, 3], [2, 2], [1, 1], [4, 4]],
        [30, 20, 10, 4],
    ]
    assert world.sizes() == (0, 0)


def test_a_step_waits_for_components():
    world = World()
    world.insert("ab", [[1, 1], [2, 2]], 0)
    results = []
    thread = threading.Thread(target=lambda: results.append(world.take(2)), daemon=True)
    thread.start()
    world.insert("a", [10], 1)
    time.sleep(0.02)
    assert not results
    world.insert("b", [20], 1)
    thread.join(10)
    assert results[0][1:] == [[b"a", b"b"], [[1, 1], [2, 2]], [10, 20]]


@pytest.mark.parametrize("keys, values, component, code, message", [
    ("a", [[9, 9]], 0, "INVALID_ARGUMENT", "Key a already has a value for component 0 in barrier barrier"),
    ("b", [[9, 9, 9]], 0, "INVALID_ARGUMENT", None),
    ("b", np.zeros((1, 0)), 0, "INVALID_ARGUMENT", "Tensors with no elements are not supported barrier: received shape "
     "[1,0]"),
    ("bc", [[9, 9]], 0, "INVALID_ARGUMENT", None),
])  # fmt: skip
def test_wrong_components(keys, values, component, code, message):
    world = World()
    world.insert("a", [[1, 1]], 0)
    if keys == "b" and message is None:
        world.insert("b", [1], 1)
        message = "Shape mismatch in tuple component 2. Expected [2], got [3]"
    found = failure(world.insert, keys, values, component)
    assert found[0] == code
    assert message is None or found[1] == message


@pytest.mark.parametrize("attrs, message", [
    ({"shapes": []}, "All of the component shapes must be specified"),
    ({"shapes": [[None], []]}, "All of the component shapes must be specified"),
    ({"capacity": 5}, "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a "
     "limited capacity."),
])  # fmt: skip
def test_wrong_barriers(attrs, message):
    world = World(**attrs)
    assert failure(world.sizes) == ("INVALID_ARGUMENT", message)


def test_a_component_out_of_range():
    world = World()
    fetch = world.op("InsertMany", np.array([b"a"], object), np.float32([[1, 2]]), component_index=2)
    message = "The component ID is out of range 2 > num_components (= 2)"
    assert failure(world.session.run, fetch) == ("INVALID_ARGUMENT", message)


def test_a_closed_barrier_takes_the_rest_of_its_keys():
    world = World()
    world.insert("ab", [[1, 1], [2, 2]], 0)
    world.close()
    assert failure(world.insert, "c", [[3, 3]], 0) == (
        "CANCELLED",
        "Barrier barrier is closed, but attempted to insert a brand new key: c.  Pending enqueues cancelled: 0.  "
        "Insertion index: 0.  Number of incomplete keys: 2.",
    )
    assert failure(world.close) == ("CANCELLED", "Barrier 'barrier' is already closed.")
    world.insert("ab", [10, 20], 1)
    assert failure(world.take, 3) == (
        "OUT_OF_RANGE",
        "Barrier 'barrier' is closed and has insufficient elements (requested 3, total size 2)",
    )
    assert world.take(5, allow_small_batch=True)[3] == [10, 20]
    assert failure(world.take, 1)[0] == "OUT_OF_RANGE"
    assert failure(world.insert, "a", [1], 1)[0] == "CANCELLED"


def test_closing_with_cancellation_drops_incomplete_elements():
    world = World()
    world.insert("ab", [[1, 1], [2, 2]], 0)
    world.insert("a", [10], 1)
    world.close()
    world.close(cancel_pending_enqueues=True)
    assert world.sizes() == (1, 0)
    assert failure(world.insert, "b", [20], 1) == (
        "CANCELLED",
        "Barrier barrier is closed.  Pending enqueues cancelled: 1.  Number of new insertions: 1.  Number of "
        "incomplete keys: 0.",
    )
    assert world.take(1)[1] == [b"a"]


@pytest.mark.parametrize("last", ["close", "insert"])
def test_a_step_that_waits_for_a_barrier_ends_when_nothing_can_come(last):
    world = World()
    world.insert("a", [[1, 1]], 0)
    world.sizes()
    results = []
    thread = threading.Thread(target=lambda: results.append(failure(world.take, 2)), daemon=True)
    thread.start()
    time.sleep(0.05)
    if last == "close":
        world.close(cancel_pending_enqueues=True)
    else:
        world.close()
        world.insert("a", [10], 1)
    thread.join(10)
    assert results
    assert results[0][0] == "OUT_OF_RANGE"
