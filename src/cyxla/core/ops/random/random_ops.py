"""Random numbers from the generator of the kernel."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import broadcast_binary_shape, random_shape, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _multinomial_shape(c: InferenceContext) -> None:
    """Set one row of samples per row of logits."""
    logits = c.with_rank(c.input(0), 2)
    c.set_output(0, (logits[0], c.make_dim_for_scalar_input(1)))


def _crop_shape(c: InferenceContext) -> None:
    """Set height and width from an input, and keep the channels."""
    image = c.with_rank(c.input(0), 3)
    c.merge_dim(c.with_rank(c.input(1), 1)[0], 2)
    c.set_output(0, (*c.with_rank(c.make_shape_from_shape_tensor(1), 2), image[2]))


def _per_parameter_shape(c: InferenceContext) -> None:
    """Set one array of the given shape per parameter; the parameters' dimensions come last."""
    c.set_output(0, c.concatenate(c.make_shape_from_shape_tensor(0), c.input(1)))


op("Multinomial", "logits: T, num_samples: int32 -> output: output_dtype", "seed: int = 0", "seed2: int = 0",
    "T: realnumbertype", "output_dtype: {int32, int64} = DT_INT64", stateful=True, shape=_multinomial_shape,
    doc="Draw classes with the probabilities of logits.",
)  # fmt: skip
op("ParameterizedTruncatedNormal",
    "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype", "seed: int = 0",
    "seed2: int = 0", "dtype: {half, bfloat16, float, double}", "T: {int32, int64}", stateful=True, shape=random_shape,
    doc="Draw truncated normal numbers with parameters per batch.",
)  # fmt: skip
op("RandomCrop", "image: T, size: int64 -> output: T", "T: {uint8, int8, int16, int32, int64, float, double}",
    "seed: int = 0", "seed2: int = 0", stateful=True, deprecated=(8, "Use Slice with random offsets."),
    shape=_crop_shape, doc="Crop a random box from an image.",
)  # fmt: skip
op("RandomGamma", "shape: S, alpha: T -> output: T", "seed: int = 0", "seed2: int = 0", "S: {int32, int64}",
    "T: {half, float, double}", stateful=True, shape=_per_parameter_shape, doc="Draw from gamma distributions.",
)  # fmt: skip
op("RandomGammaGrad", "alpha: T, sample: T -> output: T", "T: {float, double}", shape=broadcast_binary_shape,
    doc="Compute the derivative of gamma samples with respect to alpha.",
)  # fmt: skip
op("RandomPoissonV2", "shape: S, rate: R -> output: dtype", "seed: int = 0", "seed2: int = 0", "S: {int32, int64}",
    "R: {half, float, double, int32, int64} = DT_DOUBLE", "dtype: {half, float, double, int32, int64} = DT_INT64",
    stateful=True, shape=_per_parameter_shape, doc="Draw from Poisson distributions.",
)  # fmt: skip
op("RandomShuffle", "value: T -> output: T", "seed: int = 0", "seed2: int = 0", "T: type", stateful=True,
    shape=unchanged_shape, doc="Permute rows at random.",
)  # fmt: skip
op("RandomStandardNormal", "shape: T -> output: dtype", "seed: int = 0", "seed2: int = 0",
    "dtype: {half, bfloat16, float, double}", "T: {int32, int64}", stateful=True, shape=random_shape,
    doc="Draw from the standard normal distribution.",
)  # fmt: skip
op("RandomUniform", "shape: T -> output: dtype", "seed: int = 0", "seed2: int = 0",
    "dtype: {half, bfloat16, float, double}", "T: {int32, int64}", stateful=True, shape=random_shape,
    doc="Draw uniform numbers in [0, 1).",
)  # fmt: skip
op("RandomUniformInt", "shape: T, minval: Tout, maxval: Tout -> output: Tout", "seed: int = 0", "seed2: int = 0",
    "Tout: {int32, int64}", "T: {int32, int64}", stateful=True, shape=random_shape,
    doc="Draw uniform integers between two bounds, the upper one exclusive.",
)  # fmt: skip
op("TruncatedNormal", "shape: T -> output: dtype", "seed: int = 0", "seed2: int = 0",
    "dtype: {half, bfloat16, float, double}", "T: {int32, int64}", stateful=True, shape=random_shape,
    doc="Draw normal numbers within two standard deviations.",
)  # fmt: skip
