"""Random numbers from a generator whose state is in a variable."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs
from cyxla.core.framework.shape_inference import InferenceContext


def _draw_shape(c: InferenceContext) -> None:
    """Set the shape held by the third input; the others are generator and algorithm."""
    c.with_rank(c.input(1), 0)
    c.set_output(0, c.make_shape_from_shape_tensor(2))


def _read_and_skip_shape(c: InferenceContext) -> None:
    """Set the shape of the state: two words of counter and a key."""
    c.with_rank(c.input(1), 0)
    c.with_rank(c.input(2), 0)
    c.set_output(0, (3,))


op("RngReadAndSkip", "resource: resource, alg: int32, delta: uint64 -> value: int64", stateful=True,
    shape=_read_and_skip_shape, doc="Return the state of a generator and advance it.",
)  # fmt: skip
op("RngSkip", "resource: resource, algorithm: int64, delta: int64 ->", stateful=True, shape=no_outputs,
    doc="Advance a generator.",
)  # fmt: skip
op("StatefulStandardNormalV2", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_FLOAT", "shape_dtype: type = DT_INT64", stateful=True, shape=_draw_shape,
    doc="Draw from the standard normal distribution with a generator in a variable.",
)  # fmt: skip
op("StatefulTruncatedNormal", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_FLOAT", "shape_dtype: type = DT_INT64", stateful=True, shape=_draw_shape,
    doc="Draw normal numbers within two standard deviations with a generator in a variable.",
)  # fmt: skip
op("StatefulUniform", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_FLOAT", "shape_dtype: type = DT_INT64", stateful=True, shape=_draw_shape,
    doc="Draw uniform numbers in [0, 1) with a generator in a variable.",
)  # fmt: skip
op("StatefulUniformFullInt", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_UINT64", "shape_dtype: type = DT_INT64", stateful=True, shape=_draw_shape,
    doc="Draw uniform integers over their whole range with a generator in a variable.",
)  # fmt: skip
op("StatefulUniformInt",
    "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: type = DT_INT64", "shape_dtype: type = DT_INT64", stateful=True, shape=_draw_shape,
    doc="Draw uniform integers between two bounds with a generator in a variable.",
)  # fmt: skip
