"""Random numbers drawn from the kernel's own generator."""

from cyxla.core.framework.op import op

op("Multinomial", "logits: T, num_samples: int32 -> output: output_dtype", "seed: int = 0", "seed2: int = 0",
    "T: realnumbertype", "output_dtype: {int32, int64} = DT_INT64", stateful=True, shape=None,
)  # fmt: skip
op("ParameterizedTruncatedNormal",
    "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype", "seed: int = 0",
    "seed2: int = 0", "dtype: {half, bfloat16, float, double}", "T: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("RandomCrop", "image: T, size: int64 -> output: T", "T: {uint8, int8, int16, int32, int64, float, double}",
    "seed: int = 0", "seed2: int = 0", stateful=True, deprecated=(8, "Use Slice with random offsets."), shape=None,
)  # fmt: skip
op("RandomGamma", "shape: S, alpha: T -> output: T", "seed: int = 0", "seed2: int = 0", "S: {int32, int64}",
    "T: {half, float, double}", stateful=True, shape=None,
)  # fmt: skip
op("RandomGammaGrad", "alpha: T, sample: T -> output: T", "T: {float, double}", shape=None)
op("RandomPoissonV2", "shape: S, rate: R -> output: dtype", "seed: int = 0", "seed2: int = 0", "S: {int32, int64}",
    "R: {half, float, double, int32, int64} = DT_DOUBLE", "dtype: {half, float, double, int32, int64} = DT_INT64",
    stateful=True, shape=None,
)  # fmt: skip
op("RandomShuffle", "value: T -> output: T", "seed: int = 0", "seed2: int = 0", "T: type", stateful=True, shape=None)
op("RandomStandardNormal", "shape: T -> output: dtype", "seed: int = 0", "seed2: int = 0",
    "dtype: {half, bfloat16, float, double}", "T: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("RandomUniform", "shape: T -> output: dtype", "seed: int = 0", "seed2: int = 0",
    "dtype: {half, bfloat16, float, double}", "T: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("RandomUniformInt", "shape: T, minval: Tout, maxval: Tout -> output: Tout", "seed: int = 0", "seed2: int = 0",
    "Tout: {int32, int64}", "T: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("TruncatedNormal", "shape: T -> output: dtype", "seed: int = 0", "seed2: int = 0",
    "dtype: {half, bfloat16, float, double}", "T: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
