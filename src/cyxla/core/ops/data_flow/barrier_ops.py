"""Barriers, which collect the components of elements."""

from __future__ import annotations

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import unknown_shape
from cyxla.core.framework.shape_fns.handles import check_pair_handle, pair_handle_shape, pair_handles_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _insert_shape(c: InferenceContext) -> None:
    """Check that there is one row for each key."""
    check_pair_handle(c, 0)
    keys, values = c.with_rank(c.input("keys"), 1), c.with_rank_at_least(c.input("values"), 1)
    c.merge_dim(keys[0], values[0])


op("Barrier", "-> handle: Ref(string)", "component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []",
    "capacity: int = -1", "container: string = ''", "shared_name: string = ''", stateful=True,
    shape=pair_handle_shape,
    doc="Create a queue of elements whose components may arrive at different times.",
)  # fmt: skip
op("BarrierClose", "handle: Ref(string) ->", "cancel_pending_enqueues: bool = false", shape=pair_handles_shape,
    doc="Close a barrier for new elements.",
)  # fmt: skip
op("BarrierIncompleteSize", "handle: Ref(string) -> size: int32", shape=pair_handles_shape,
    doc="Return the number of incomplete elements of a barrier.",
)  # fmt: skip
op("BarrierInsertMany", "handle: Ref(string), keys: string, values: T ->", "T: type", "component_index: int",
    shape=_insert_shape, doc="Set a component of elements of a barrier by their keys.",
)  # fmt: skip
op("BarrierReadySize", "handle: Ref(string) -> size: int32", shape=pair_handles_shape,
    doc="Return the number of complete elements of a barrier.",
)  # fmt: skip
op("BarrierTakeMany",
    "handle: Ref(string), num_elements: int32 -> indices: int64, keys: string, values: component_types",
    "component_types: list(type) >= 1", "allow_small_batch: bool = false", "wait_for_incomplete: bool = false",
    "timeout_ms: int = -1", shape=unknown_shape, doc="Take complete elements from a barrier.",
)  # fmt: skip
