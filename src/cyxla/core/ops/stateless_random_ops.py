"""Random numbers that their seed alone decides."""

from cyxla.core.framework.op import op

op("StatelessMultinomial", "logits: T, num_samples: int32, seed: Tseed -> output: output_dtype", "T: realnumbertype",
    "Tseed: {int32, int64} = DT_INT64", "output_dtype: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("StatelessParameterizedTruncatedNormal",
    "shape: S, seed: Tseed, means: dtype, stddevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype",
    "S: {int32, int64}", "Tseed: {int32, int64} = DT_INT64", "dtype: {half, float, double}", shape=None,
)  # fmt: skip
op("StatelessRandomBinomial", "shape: S, seed: Tseed, counts: T, probs: T -> output: dtype", "S: {int32, int64}",
    "Tseed: {int32, int64} = DT_INT64", "T: {half, float, double, int32, int64} = DT_DOUBLE",
    "dtype: {half, float, double, int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("StatelessRandomGammaV2", "shape: T, seed: Tseed, alpha: dtype -> output: dtype", "dtype: {half, float, double}",
    "T: {int32, int64}", "Tseed: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("StatelessRandomGammaV3",
    "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype -> output: dtype",
    "dtype: {half, float, double}", "shape_dtype: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("StatelessRandomGetAlg", "-> alg: int32", stateful=True, shape=None)
op("StatelessRandomGetKeyCounter", "seed: Tseed -> key: uint64, counter: uint64", "Tseed: {int32, int64} = DT_INT64",
    shape=None,
)  # fmt: skip
op("StatelessRandomGetKeyCounterAlg", "seed: Tseed -> key: uint64, counter: uint64, alg: int32",
    "Tseed: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("StatelessRandomNormal", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("StatelessRandomNormalV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "Tshape: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("StatelessRandomUniform", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("StatelessRandomUniformFullInt", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {int32, int64, uint32, uint64} = DT_UINT64", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64, uint32, uint64} = DT_INT64", shape=None,
)  # fmt: skip
op("StatelessRandomUniformFullIntV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {int32, int64, uint32, uint64} = DT_UINT64", "Tshape: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("StatelessRandomUniformInt", "shape: T, seed: Tseed, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: {int32, int64}", "T: {int32, int64}", "Tseed: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("StatelessRandomUniformIntV2",
    "shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: {int32, int64, uint32, uint64}", "Tshape: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("StatelessRandomUniformV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "Tshape: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("StatelessTruncatedNormal", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("StatelessTruncatedNormalV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "Tshape: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
