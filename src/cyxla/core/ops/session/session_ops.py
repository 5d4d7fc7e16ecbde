"""Tensors that a session keeps between runs."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import scalar_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _handle_shape(c: InferenceContext) -> None:
    """Check that the handle is a scalar."""
    c.with_rank(c.input(0), 0)


op("DeleteSessionTensor", "handle: string ->", stateful=True, shape=_handle_shape,
    doc="Drop a tensor that the session keeps.",
)  # fmt: skip
op("GetSessionHandle", "value: T -> handle: string", "T: type", stateful=True, shape=scalar_shape,
    doc="Keep a tensor in the session, and return its handle.",
)  # fmt: skip
op("GetSessionHandleV2", "value: T -> handle: resource", "T: type", stateful=True, shape=scalar_shape,
    doc="Keep a tensor in the session, and return its handle.",
)  # fmt: skip
op("GetSessionTensor", "handle: string -> value: dtype", "dtype: type", stateful=True, shape=_handle_shape,
    doc="Return a tensor that the session keeps.",
)  # fmt: skip
