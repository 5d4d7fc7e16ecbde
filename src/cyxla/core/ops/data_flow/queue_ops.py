"""Queues, which pass elements between steps."""

from __future__ import annotations

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs, scalar_shape, unchanged_shape, unknown_shape
from cyxla.core.framework.shape_fns.handles import pair_handle_shape, pair_handles_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import Dim, TensorShape
from cyxla.errors import ShapeError


def _dequeue_shape(c: InferenceContext) -> None:
    """Set the shapes of the components, if the handle tells them."""
    _components(c, ())


def _dequeue_many_shape(c: InferenceContext) -> None:
    """Set the shapes of stacked components, if the handle tells them."""
    n = c.input_tensor(1)
    if n is not None and n < 0:
        raise ShapeError(f"Input 'n' must be >= 0, but is {int(n)}")
    _components(c, (None if n is None else int(n),))


def _dequeue_up_to_shape(c: InferenceContext) -> None:
    _components(c, (None,))


def _components(c: InferenceContext, batch: tuple[Dim, ...]) -> None:
    known = c.input_handle(0)
    if known is not None and len(known) == c.num_outputs:
        for i, (shape, _) in enumerate(known):
            c.set_output(i, TensorShape(batch) + shape)


_NAME = ("container: string = ''", "shared_name: string = ''")
_CAPACITY = ("capacity: int = -1", *_NAME)
_TYPED = ("component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []")
_CREATED = {  # attributes of each kind of queue, and its description
    "FIFOQueue": ((*_TYPED, *_CAPACITY), "Create a queue in the order of arrival."),
    "PaddingFIFOQueue": (
        (*_TYPED, *_CAPACITY),
        "Create a queue in the order of arrival, whose elements are padded with zeros to a common shape.",
    ),
    "PriorityQueue": (
        ("component_types: list(type) >= 0 = []", "shapes: list(shape) >= 0", *_CAPACITY),
        "Create a queue in the order of the first component.",
    ),
    "RandomShuffleQueue": (
        (*_TYPED, "capacity: int = -1", "min_after_dequeue: int = 0", "seed: int = 0", "seed2: int = 0", *_NAME),
        "Create a queue in random order.",
    ),
}
for _name, (_attrs, _doc) in _CREATED.items():
    op(_name, "-> handle: Ref(string)", *_attrs, stateful=True, shape=pair_handle_shape, doc=_doc)
    op(f"{_name}V2", "-> handle: resource", *_attrs, stateful=True, shape=scalar_shape, doc=_doc)

op("FakeQueue", "resource: resource -> handle: Ref(string)", stateful=True, shape=pair_handle_shape,
    doc="Return the name of a queue.",
)  # fmt: skip

_TAKEN = ("component_types: list(type) >= 1", "timeout_ms: int = -1")
_ADDED = ("Tcomponents: list(type) >= 1", "timeout_ms: int = -1")
_OPERATIONS = {  # arguments after the handle, outputs, attributes, shape functions without and with types, description
    "QueueEnqueue": (
        ", components: Tcomponents", "", _ADDED, unknown_shape, unknown_shape, "Add an element to a queue.",
    ),
    "QueueEnqueueMany": (
        ", components: Tcomponents", "", _ADDED, unknown_shape, unknown_shape, "Add the rows of tensors to a queue.",
    ),
    "QueueDequeue": (
        "", "components: component_types", _TAKEN, unknown_shape, _dequeue_shape, "Take an element from a queue.",
    ),
    "QueueDequeueMany": (
        ", n: int32", "components: component_types", _TAKEN, unknown_shape, _dequeue_many_shape,
        "Take n elements from a queue.",
    ),
    "QueueDequeueUpTo": (
        ", n: int32", "components: component_types", _TAKEN, unknown_shape, _dequeue_up_to_shape,
        "Take n elements from a queue, or all that are left if it is closed.",
    ),
    "QueueClose": (
        "", "", ("cancel_pending_enqueues: bool = false",), pair_handles_shape, no_outputs, "Close a queue.",
    ),
    "QueueIsClosed": ("", "is_closed: bool", (), scalar_shape, scalar_shape, "Test if a queue is closed."),
    "QueueSize": (
        "", "size: int32", (), pair_handles_shape, unchanged_shape, "Return the number of elements of a queue.",
    ),
}  # fmt: skip
for _name, (_inputs, _outputs, _attrs, _legacy_shape, _shape, _doc) in _OPERATIONS.items():
    op(_name, f"handle: Ref(string){_inputs} -> {_outputs}", *_attrs, shape=_legacy_shape, doc=_doc)
    op(f"{_name}V2", f"handle: resource{_inputs} -> {_outputs}", *_attrs, stateful=True, shape=_shape, doc=_doc)
