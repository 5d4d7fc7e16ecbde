"""Iterators, which feed a graph from outside."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_inference import InferenceContext

_TYPES = ("output_types: list(type)", "output_shapes: list(shape) >= 1")


def _components(c: InferenceContext) -> None:
    c.set_outputs("components", list(c.attr("output_shapes")))


op("DeleteIterator", "handle: resource, deleter: variant ->", stateful=True, shape=lambda c: None,
    doc="Delete an iterator.",
)  # fmt: skip
op("IteratorGetNext", "iterator: resource -> components: output_types", *_TYPES, stateful=True, shape=_components,
    doc="Return the next element of an iterator.",
)  # fmt: skip
op("IteratorGetNextSync", "iterator: resource -> components: output_types", *_TYPES, stateful=True, shape=_components,
    doc="Return the next element of an iterator, waiting on the calling thread.",
)  # fmt: skip
op("IteratorV2", "-> handle: resource", "shared_name: string", "container: string", "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1", stateful=True,
    shape=lambda c: c.set_output(0, c.scalar()), doc="Return the handle of an iterator.",
)  # fmt: skip
