"""Random numbers drawn from a generator in a variable."""

from cyxla.core.framework.op import op

op("RngReadAndSkip", "resource: resource, alg: int32, delta: uint64 -> value: int64", stateful=True, shape=None)
op("RngSkip", "resource: resource, algorithm: int64, delta: int64 ->", stateful=True, shape=None)
op("StatefulStandardNormalV2", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_FLOAT", "shape_dtype: type = DT_INT64", stateful=True, shape=None,
)  # fmt: skip
op("StatefulTruncatedNormal", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_FLOAT", "shape_dtype: type = DT_INT64", stateful=True, shape=None,
)  # fmt: skip
op("StatefulUniform", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_FLOAT", "shape_dtype: type = DT_INT64", stateful=True, shape=None,
)  # fmt: skip
op("StatefulUniformFullInt", "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = DT_UINT64", "shape_dtype: type = DT_INT64", stateful=True, shape=None,
)  # fmt: skip
op("StatefulUniformInt",
    "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: type = DT_INT64", "shape_dtype: type = DT_INT64", stateful=True, shape=None,
)  # fmt: skip
