"""Queues: their order, batches, closing, cancellation, and threads that wait for each other."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from cyxla.core.framework import CancellationManager
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import as_data_type
from cyxla.core.graph.graph import Graph
from cyxla.core.kernels.lib.queues import queue as queue_module
from cyxla.core.kernels.lib.queues.queue import Queue
from cyxla.core.runtime.session import RunOptions, Session
from cyxla.core.runtime.step_stats import RunMetadata
from cyxla.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
)

KINDS = ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue")
FORMS = ("", "V2")


class World:
    """A graph with one queue, its operations, and a session."""

    def __init__(self, kind="FIFOQueueV2", types=("float",), shapes=((),), *, form=None, **attrs):
        self.form = ("V2" if kind.endswith("V2") else "") if form is None else form
        self.graph = Graph()
        self.is_priority = kind.startswith("Priority")
        self.types = [*(["int64"] if self.is_priority else []), *types]
        self._numbers = iter(range(1 << 20))
        with self.graph.as_default():
            given = {"shared_name": "queue", **attrs}
            self.handle = apply_op(kind, component_types=list(types), shapes=list(shapes), name="queue", **given)
        self.session = Session(self.graph, threads=2)

    def op(self, name, *args, **attrs):
        with self.graph.as_default():
            return apply_op(f"Queue{name}{self.form}", self.handle, *args, name=f"op{next(self._numbers)}", **attrs)

    def arrays(self, values):
        return [np.array(v, as_data_type(t).numpy) for v, t in zip(values, self.types, strict=True)]

    def put(self, *values):
        return self.op("Enqueue", self.arrays(values))

    def put_many(self, *values):
        return self.op("EnqueueMany", self.arrays(values))

    def get(self):
        return self.op("Dequeue", component_types=self.types)

    def get_many(self, n, name="DequeueMany"):
        return self.op(name, np.int32(n), component_types=self.types)

    def close(self, **attrs):
        return self.op("Close", **attrs)

    def run(self, fetch, **kwargs):
        result = self.session.run(fetch, **kwargs)
        return [r.tolist() for r in result] if isinstance(result, list) else result

    def size(self):
        return int(self.session.run(self.op("Size")))

    @property
    def queue(self):
        (row,) = self.session.engine.resource_manager
        return row[3]


@contextmanager
def running(world, fetch, **kwargs):
    """Run a fetch on a thread that waits; yield a list that holds its result, or its error, after the block."""
    results = []

    def work():
        try:
            results.append(world.run(fetch, **kwargs))
        except OpError as error:
            results.append(error)

    before = len(world.queue._adding) + len(world.queue._taking)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while len(world.queue._adding) + len(world.queue._taking) <= before and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not results, results
    yield results
    thread.join(10)
    assert not thread.is_alive()
    assert results


def failure(call, *args, **kwargs):
    with pytest.raises(OpError) as caught:
        call(*args, **kwargs)
    return caught.value


# Elements --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind, order", [
    ("FIFOQueue",          [5, 1, 4, 2]),
    ("PaddingFIFOQueue",   [5, 1, 4, 2]),
    ("PriorityQueue",      [1, 2, 4, 5]),
])  # fmt: skip
def test_order_of_elements(kind, order, form):
    world = World(kind + form)
    head = [[5, 1, 4, 2]] if world.is_priority else []
    world.run(world.put_many(*head, [5, 1, 4, 2]))
    assert world.size() == 4
    get = world.get()
    assert [world.run(get)[-1] for _ in range(4)] == order
    assert world.size() == 0


@pytest.mark.parametrize("form", FORMS)
def test_equal_priorities_keep_the_order_of_arrival(form):
    world = World("PriorityQueue" + form, ("string",))
    world.run(world.put_many([1, 0, 1, 0], [b"a", b"b", b"c", b"d"]))
    assert world.run(world.get_many(4)) == [[0, 0, 1, 1], [b"b", b"d", b"a", b"c"]]


def test_a_seeded_queue_shuffles_reproducibly():
    def draw(**seeds):
        world = World("RandomShuffleQueueV2", ("int32",), **seeds)
        world.run(world.put_many(range(10)))
        return world.run(world.get_many(10))[0]

    first = draw(seed=7, seed2=3)
    assert first == draw(seed=7, seed2=3) == [3, 9, 0, 6, 4, 7, 2, 1, 5, 8]  # as TensorFlow
    assert len({tuple(draw()) for _ in range(4)}) > 1


def test_some_elements_of_a_shuffled_queue_stay_until_it_is_closed():
    world = World("RandomShuffleQueueV2", ("int32",), min_after_dequeue=3, seed=1)
    world.run(world.put_many(range(5)))
    get = world.get()
    taken = [world.run(get)[0] for _ in range(2)]
    with running(world, get) as results:
        assert world.size() == 3
        world.run(world.close())
    taken += results[0] + world.run(world.get_many(2))[0]
    assert sorted(taken) == list(range(5))


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "double", "int8", "uint64", "complex64", "bool", "string"])
@pytest.mark.parametrize("shape", [(), (2,), (0, 3)])
def test_types_and_shapes(dtype, shape):
    world = World("FIFOQueueV2", (dtype,), (shape,))
    rows = np.zeros((3, *shape), object if dtype == "string" else None)
    if dtype == "string":
        rows[...] = b"text"
    with world.graph.as_default():
        values = rows if dtype == "string" else apply_op("Cast", rows, DstT=dtype)
        put = apply_op("QueueEnqueueManyV2", world.handle, [values])
    world.run(put)
    one, two = world.get(), world.get_many(2)
    assert np.shape(world.run(one)[0]) == (shape if 0 not in shape else (0,))
    (result,) = world.session.run(two)
    assert result.shape == (2, *shape)
    assert result.tolist() == rows[:2].tolist()


def test_a_queue_keeps_its_own_copy():
    world = World("FIFOQueueV2", ("float",), ((2,),))
    with world.graph.as_default():
        x = world.graph.placeholder("float", [2])
        put = apply_op("QueueEnqueueV2", world.handle, [x])
    fed = np.float32([1, 2])
    world.run(put, feeds={x: fed})
    fed[:] = 9
    assert world.run(world.get()) == [[1, 2]]


def test_elements_are_padded_to_the_largest():
    world = World("PaddingFIFOQueueV2", ("int32", "string"), ((None, 2), (None,)))
    for rows in (1, 3, 0):
        texts = np.array([b"t"] * rows, object)
        with world.graph.as_default():
            put = apply_op("QueueEnqueueV2", world.handle, [np.full((rows, 2), rows, np.int32), texts])
        world.run(put)
    numbers, texts = world.run(world.get_many(3))
    assert numbers == [[[1, 1], [0, 0], [0, 0]], [[3, 3]] * 3, [[0, 0]] * 3]
    assert texts == [[b"t", b"", b""], [b"t"] * 3, [b""] * 3]
    assert [v.shape for v in world.session.run(world.get_many(0))] == [(0, 0, 2), (0, 0)]


def test_elements_without_declared_shapes_are_taken_one_by_one():
    world = World("FIFOQueueV2", ("float",), ())
    for size in (1, 3):
        with world.graph.as_default():
            put = apply_op("QueueEnqueueV2", world.handle, [np.zeros(size, np.float32)])
        world.run(put)
    get = world.get()
    assert [len(world.run(get)[0]) for _ in range(2)] == [1, 3]
    error = failure(world.run, world.get_many(1))
    assert error.message == "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes."


# Waiting ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_a_consumer_waits_for_its_producer(kind, form):
    world = World(kind + form)
    head = [0] if world.is_priority else []
    world.run(world.op("Size"))
    with running(world, world.get()) as results:
        world.run(world.put(*head, 7))
    assert results == [[*head, 7]]


def test_a_producer_waits_for_room():
    world = World(capacity=2)
    world.run(world.put_many([1, 2]))
    with running(world, world.put_many([3, 4, 5])) as results:
        assert world.size() == 2
        assert [world.run(world.get()) for _ in range(3)] == [[1], [2], [3]]
    assert results == [None]
    assert world.run(world.get_many(2)) == [[4, 5]]


def test_a_batch_larger_than_the_capacity_passes():
    world = World(capacity=2)
    world.run(world.op("Size"))
    with running(world, world.get_many(5)) as results:
        world.run(world.put_many([1, 2, 3, 4, 5]))
    assert results == [[[1, 2, 3, 4, 5]]]


def test_both_sides_in_one_step_on_one_thread():
    """A dequeue that waits does not hold the thread which the enqueue needs."""
    world = World()
    world.session = Session(world.graph, threads=1)
    get, put = world.get(), world.put(3.0)
    assert [v if v is None else v.tolist() for v in world.session.run([get[0], put])] == [3.0, None]


def test_waiting_consumers_are_served_in_turn():
    world = World()
    world.run(world.op("Size"))
    with running(world, world.get_many(2)) as first, running(world, world.get()) as second:
        world.run(world.put(1.0))
        assert (first, second) == ([], [])
        world.run(world.put_many([2, 3]))
    assert (first, second) == ([[[1, 2]]], [[3]])


@pytest.mark.parametrize("kind", KINDS)
def test_many_producers_and_consumers(kind):
    world = World(kind + "V2", ("int32",), capacity=3)
    each, count = 25, 4
    with world.graph.as_default():
        x = world.graph.placeholder("int32", [])
        parts = [np.int64(0), x] if world.is_priority else [x]
        put = apply_op("QueueEnqueueV2", world.handle, parts)
    get, taken, lock = world.get(), [], threading.Lock()
    world.run(world.op("Size"))

    def produce(k):
        for i in range(each):
            world.session.run(put, {x: np.int32(k * each + i)})

    def consume():
        for _ in range(each):
            value = world.run(get)[-1]
            with lock:
                taken.append(value)

    threads = [threading.Thread(target=produce, args=(k,)) for k in range(count)]
    threads += [threading.Thread(target=consume) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(taken) == list(range(each * count))
    assert world.size() == 0


# Closing ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_closing(kind, form):
    world = World(kind + form)
    head, heads = ([0], [[0, 0]]) if world.is_priority else ([], [])
    world.run(world.put_many(*heads, [1, 2]))
    closed = world.op("IsClosed")
    assert not world.session.run(closed)
    world.run(world.close())
    assert world.session.run(closed)
    errors = [failure(world.run, world.put(*head, 3)), failure(world.run, world.get_many(3))]
    world.run(world.get_many(2))
    errors += [failure(world.run, world.get()), failure(world.run, world.get_many(1, "DequeueUpTo"))]
    errors += [failure(world.run, world.close())]
    short = f"{kind} 'queue' is closed and has insufficient elements"
    assert [(e.code, e.message) for e in errors] == [
        ("CANCELLED", f"{kind} 'queue' is closed."),
        ("OUT_OF_RANGE", f"{short} (requested 3, current size 2)"),
        ("OUT_OF_RANGE", f"{short} (requested 1, current size 0)"),
        ("OUT_OF_RANGE", f"{short} (requested 1, current size 0)"),
        ("CANCELLED", "Queue 'queue' is already closed."),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_is_left_of_a_closed_queue(kind):
    world = World(kind + "V2")
    world.run(world.put_many(*([[0, 0, 0]] if world.is_priority else []), [1, 2, 3]))
    world.run(world.close())
    assert sorted(world.run(world.get_many(10, "DequeueUpTo"))[-1]) == [1, 2, 3]


def test_closing_ends_waits_for_elements_and_restores_what_was_taken():
    world = World()
    world.run(world.put_many([1, 2]))
    with running(world, world.get_many(5)) as results:
        assert world.size() == 0
        world.run(world.close())
    assert isinstance(results[0], OutOfRangeError)
    assert "(requested 3, current size 0)" in str(results[0])
    assert world.run(world.get_many(2)) == [[1, 2]]


def test_closing_waits_for_pending_additions_unless_it_cancels_them():
    for cancels in (False, True):
        world = World(capacity=1)
        world.run(world.put(1.0))
        with running(world, world.put(2.0)) as put:
            if cancels:
                world.run(world.close(cancel_pending_enqueues=True))
            else:
                with running(world, world.close()):
                    assert world.run(world.get()) == [1]
        if cancels:
            assert isinstance(put[0], CancelledError)
            assert put[0].message == "Enqueue operation was cancelled"
        else:
            assert put == [None]
            assert world.run(world.get()) == [2]
        assert world.queue.closed


# Cancellation ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("action", ["Enqueue", "Dequeue"])
def test_cancelling_a_step_leaves_the_queue_intact(action):
    world = World(capacity=1)
    if action == "Enqueue":
        world.run(world.put(1.0))
    world.run(world.op("Size"))
    cancellation = CancellationManager()
    fetch = world.put(2.0) if action == "Enqueue" else world.get()
    with running(world, fetch, options=RunOptions(cancellation=cancellation)) as results:
        cancellation.start_cancel()
    assert isinstance(results[0], CancelledError)
    if action == "Dequeue":
        world.run(world.put(1.0))
    assert world.run(world.get()) == [1]
    assert world.size() == 0


def test_a_deadline_ends_the_wait():
    world = World()
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        world.run(world.get(), options=RunOptions(timeout=0.05))
    assert time.monotonic() - began < 5
    world.run(world.put(1.0))
    assert world.size() == 1


def test_cancelling_loses_what_a_batch_has_taken_as_in_tensorflow():
    world = World()
    world.run(world.put_many([1, 2]))
    with pytest.raises(DeadlineExceededError):
        world.run(world.get_many(5), options=RunOptions(timeout=0.05))
    assert world.size() == 0


def test_closing_a_session_ends_pending_steps():
    for options in (RunOptions(), RunOptions(cancellation=CancellationManager())):
        world = World(capacity=1)
        world.run(world.put(1.0))
        with running(world, world.put(2.0), options=options) as results:
            world.session.close()
        assert isinstance(results[0], CancelledError)


def test_a_failing_step_ends_its_waits():
    world = World("FIFOQueue")
    get, bad = world.get(), world.op("DequeueMany", np.int32(-1), component_types=["float"])
    error = failure(world.session.run, [get[0], bad[0]])
    assert (error.code, error.message) == ("INVALID_ARGUMENT", "DequeueManyOp requested -1 < 0 elements")


# Errors ----------------------------------------------------------------------------------------------------------
def creation(kind, types=("float",), shapes=((),), **attrs):
    world = World(kind, types, shapes, **attrs)
    return failure(world.session.run, world.handle if kind.endswith("V2") else world.handle.node)


@pytest.mark.parametrize("kind, types, shapes, attrs, message", [
    ("FIFOQueueV2", ["float", "int32"], [()], {}, "Different number of component types.  Types: float, int32, "
     "Shapes: [[]]"),
    ("PaddingFIFOQueueV2", ["float"], [], {}, "Shapes must be provided for all components, but received 1 dtypes and "
     "0 shapes."),
    ("FIFOQueueV2", ["float"], [[None]], {}, "Shape [?] is not fully defined"),
    ("RandomShuffleQueueV2", ["float"], [], {"min_after_dequeue": -1}, "min_after_dequeue -1 must be >= 0"),
    ("RandomShuffleQueueV2", ["float"], [], {"min_after_dequeue": 5, "capacity": 5}, "min_after_dequeue 5 must be < "
     "capacity 5"),
    ("PaddingFIFOQueueV2", ["float"], [TensorShape()], {}, "shape <unknown> must have known rank."),
    ("FIFOQueueV2", ["float"], [], {"shared_name": "_q"}, "shared_name cannot start with '_':_q"),
    ("FIFOQueueV2", ["float"], [], {"container": "a b"}, "container contains invalid characters: a b"),
])  # fmt: skip
def test_wrong_queues(kind, types, shapes, attrs, message):
    error = creation(kind, types, shapes, **attrs)
    assert (error.code, error.message) == ("INVALID_ARGUMENT", message)


@pytest.mark.parametrize("second, attrs, message", [
    ("FIFOQueueV2", {"capacity": 4}, "Shared queue 'q' has capacity 3 but requested capacity was 4"),
    ("FIFOQueueV2", {"component_types": ["int32"]}, "Shared queue 'q' has component types float but requested "
     "component types were int32"),
    ("FIFOQueueV2", {"shapes": [[2]]}, "Shared queue 'q' has component shapes [[]] but requested component shapes "
     "were [[2]]"),
    ("PaddingFIFOQueueV2", {}, "Expected FIFOQueue, found PaddingFIFOQueueV2"),
    ("FIFOQueueV2", {}, None),
])  # fmt: skip
def test_a_shared_queue_must_be_the_same(second, attrs, message):
    graph = Graph()
    given = {"component_types": ["float"], "shapes": [[]], "capacity": 3, "shared_name": "q"}
    with graph.as_default():
        first = apply_op("FIFOQueueV2", **given)
        put = apply_op("QueueEnqueueV2", first, [np.float32(1)])
        again = apply_op(second, **{**given, **attrs})
        size = apply_op("QueueSizeV2", again)
    session = Session(graph)
    session.run(put)
    if message is None:
        assert session.run(size) == 1
    else:
        error = failure(session.run, size)
        assert (error.code, error.message) == ("INVALID_ARGUMENT", message)


def test_a_queue_without_a_shared_name_belongs_to_its_node():
    graph, sizes = Graph(), []
    with graph.as_default():
        for name in "ab":
            queue = apply_op("FIFOQueueV2", component_types=["float"], name=name)
            sizes.append(apply_op("QueueSizeV2", queue))
            put = apply_op("QueueEnqueueV2", queue, [np.float32(1)])
    session = Session(graph)
    session.run(put)
    assert [int(s) for s in session.run(sizes)] == [0, 1]
    assert [name.split("_")[2] for _, _, name, _ in session.engine.resource_manager] == ["b", "a"]


def _wrong(world, op, *arrays, **attrs):
    return world.op(op, list(arrays), **attrs)


F = np.float32


@pytest.mark.parametrize("make, message", [
    (lambda w: _wrong(w, "Enqueue", F([1]), F(1)), "Shape mismatch in tuple component 0. Expected [2], got [1]"),
    (lambda w: _wrong(w, "EnqueueMany", np.ones((3, 1), F), np.ones(3, F)), "Shape mismatch in tuple component 0. "
     "Expected [3,2], got [3,1]"),
    (lambda w: _wrong(w, "EnqueueMany", np.ones((3, 2), F), np.ones(2, F)), "Shape mismatch in tuple component 1. "
     "Expected [3], got [2]"),
    (lambda w: _wrong(w, "EnqueueMany", F(1), F(1)), "Component 0 is a scalar, which cannot be sliced into elements"),
    (lambda w: _wrong(w, "Enqueue", F([1, 2])), None),
    (lambda w: _wrong(w, "Enqueue", np.int32([1, 2]), F(1)), None),
    (lambda w: w.op("Dequeue", component_types=["float"]), None),
    (lambda w: w.op("DequeueMany", np.int32(1), component_types=["float", "int32"]), None),
    (lambda w: w.op("Enqueue", [F([1, 2]), F(1)], timeout_ms=5), "Timeout not supported yet."),
])  # fmt: skip
def test_wrong_elements(make, message):
    world = World("FIFOQueueV2", ("float", "float"), ((2,), ()))
    fetch = make(world)
    error = failure(world.session.run, fetch)
    assert error.code == "INVALID_ARGUMENT"
    assert (message or "the node is") in error.message
    assert world.size() == 0


def test_a_priority_must_be_a_scalar():
    world = World("PriorityQueueV2", ("float",), ())
    error = failure(world.session.run, _wrong(world, "Enqueue", np.int64([1, 2]), F(1)))
    assert error.message == "Expected the priority element to be a scalar, but received shape: [2]"


def test_an_operation_before_the_queue_exists_or_after_it_is_deleted():
    world = World()
    world.run(world.put(1.0))
    world.session.engine.resource_manager.delete("", "queue", Queue)
    with world.graph.as_default():
        handle = world.graph.placeholder("resource", [], name="given")
        size = apply_op("QueueSizeV2", handle)
    value = world.session.run(world.handle)
    world.session.engine.resource_manager.delete("", "queue", Queue)
    with pytest.raises(NotFoundError, match="there is no resource localhost/queue/Queue"):
        world.session.run(size, {handle: value})
    with pytest.raises(InvalidArgumentError, match="does not hold the handle"):
        world.session.run(size, {handle: np.array(None, object)})


def test_a_negative_number_is_refused_when_the_graph_is_built():
    with pytest.raises(InvalidArgumentError, match="Input 'n' must be >= 0, but is -1"):
        World().get_many(-1)


def test_deleting_a_queue_ends_waits():
    world = World()
    world.run(world.op("Size"))
    with running(world, world.get()) as results:
        world.session.engine.resource_manager.delete("", "queue", Queue)
    assert isinstance(results[0], CancelledError)
    assert results[0].message == "Dequeue operation was cancelled"


def test_the_memory_of_elements_is_in_the_statistics():
    world = World("FIFOQueueV2", ("float", "int64"), ((3,), ()))
    world.run(world.put_many(np.zeros((2, 3)), [1, 2]))
    metadata = RunMetadata()
    world.session.run(world.op("Size"), metadata=metadata)
    assert [r.allocated for r in metadata.step_stats.nodes if r.op == "FIFOQueueV2"] == [{"persistent": 40}]


def test_a_batch_that_cannot_be_stacked_fails_its_own_step(monkeypatch):
    """The thread of the enqueue completes the dequeue, whose error is not its own."""
    world = World("PaddingFIFOQueueV2", ("float",), ((None,),))
    world.run(world.op("Size"))

    def fail(*_):
        raise MemoryError("too large")

    monkeypatch.setattr(queue_module, "stack", fail)
    with running(world, world.get_many(1)) as results:
        world.run(world.put([1.0]))
    assert results[0].code == "RESOURCE_EXHAUSTED"
