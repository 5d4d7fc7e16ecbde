"""Random numbers drawn from a generator in a variable."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs
from cyxla.core.framework.shape_inference import InferenceContext


def _drawn_shape(c: InferenceContext) -> None:
    """The generator, its algorithm, and the shape."""
    c.with_rank(c.input(1), 0)
    c.set_output(0, c.make_shape_from_shape_tensor(2))


def _read_and_skip_shape(c: InferenceContext) -> None:
    """The generator's state: two words of counter and a key."""
    c.with_rank(c.input(1), 0)
    c.with_rank(c.input(2), 0)
    c.set_output(0, (3,))


op("RngReadAndSkip", "resource: resource, alg: int32, delta: uint64 -> value: int64", stateful=True,
    shape=_read_and_skip_shape, doc="The state of a generator, which then advances.",
)  # fmt: skip
op("RngSkip", "resource: resource, algorithm: int64, delta: int64 ->", stateful=True, shape=no_outputs,
    doc="Advances a generator.",
)  # fmt: skip
op("StatefulStandardNormalV2", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_FLOAT", "shape_dtype: type = DT_INT64", stateful=True, shape=_drawn_shape,
    doc="Numbers of the standard normal distribution from a generator in a variable.",
)  # fmt: skip
op("StatefulTruncatedNormal", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_FLOAT", "shape_dtype: type = DT_INT64", stateful=True, shape=_drawn_shape,
    doc="Normal numbers within two deviations from a generator in a variable.",
)  # fmt: skip
op("StatefulUniform", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_FLOAT", "shape_dtype: type = DT_INT64", stateful=True, shape=_drawn_shape,
    doc="Numbers from 0 to 1 from a generator in a variable.",
)  # fmt: skip
op("StatefulUniformFullInt", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_UINT64", "shape_dtype: type = DT_INT64", stateful=True, shape=_drawn_shape,
    doc="Integers of all values from a generator in a variable.",
)  # fmt: skip
op("StatefulUniformInt",
    "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: type = DT_INT64", "shape_dtype: type = DT_INT64", stateful=True, shape=_drawn_shape,
    doc="Integers between two bounds from a generator in a variable.",
)  # fmt: skip
