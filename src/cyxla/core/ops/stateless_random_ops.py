"""Random numbers that their seed alone decides."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import random_shape, scalar_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _check_seed(c: InferenceContext, i: int) -> None:
    c.merge_dim(c.with_rank(c.input(i), 1)[0], 2)


def _seeded_shape(c: InferenceContext) -> None:
    """The shape, then a seed of two numbers."""
    _check_seed(c, 1)
    random_shape(c)


def _keyed_shape(c: InferenceContext) -> None:
    """The shape, then key, counter and algorithm of the generator."""
    c.merge_dim(c.with_rank(c.input(1), 1)[0], 1)
    c.with_rank(c.input(2), 1)
    c.with_rank(c.input(3), 0)
    random_shape(c)


def _multinomial_shape(c: InferenceContext) -> None:
    logits = c.with_rank(c.input(0), 2)
    _check_seed(c, 2)
    c.set_output(0, (logits[0], c.make_dim_for_scalar_input(1)))


def _key_shape(c: InferenceContext) -> None:
    """A key, a counter of two words, and perhaps the algorithm."""
    _check_seed(c, 0)
    for i, shape in enumerate([(1,), (2,), ()][: c.num_outputs]):
        c.set_output(i, shape)


op("StatelessMultinomial", "logits: T, num_samples: int32, seed: Tseed -> output: output_dtype", "T: realnumbertype",
    "Tseed: {int32, int64} = DT_INT64", "output_dtype: {int32, int64} = DT_INT64", shape=_multinomial_shape,
    doc="Classes drawn by unnormalised logarithms of their probabilities, by a seed.",
)  # fmt: skip
op("StatelessParameterizedTruncatedNormal",
    "shape: S, seed: Tseed, means: dtype, stddevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype",
    "S: {int32, int64}", "Tseed: {int32, int64} = DT_INT64", "dtype: {half, float, double}", shape=_seeded_shape,
    doc="Normal numbers within bounds, by a seed.",
)  # fmt: skip
op("StatelessRandomBinomial", "shape: S, seed: Tseed, counts: T, probs: T -> output: dtype", "S: {int32, int64}",
    "Tseed: {int32, int64} = DT_INT64", "T: {half, float, double, int32, int64} = DT_DOUBLE",
    "dtype: {half, float, double, int32, int64} = DT_INT64", shape=_seeded_shape,
    doc="Numbers of binomial distributions, by a seed.",
)  # fmt: skip
op("StatelessRandomGammaV2", "shape: T, seed: Tseed, alpha: dtype -> output: dtype", "dtype: {half, float, double}",
    "T: {int32, int64}", "Tseed: {int32, int64} = DT_INT64", shape=_seeded_shape,
    doc="Numbers of gamma distributions, by a seed.",
)  # fmt: skip
op("StatelessRandomGammaV3",
    "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype -> output: dtype",
    "dtype: {half, float, double}", "shape_dtype: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Numbers of gamma distributions, by key and counter.",
)  # fmt: skip
op("StatelessRandomGetAlg", "-> alg: int32", stateful=True, shape=scalar_shape,
    doc="The generator that is best on the device.",
)  # fmt: skip
op("StatelessRandomGetKeyCounter", "seed: Tseed -> key: uint64, counter: uint64", "Tseed: {int32, int64} = DT_INT64",
    shape=_key_shape, doc="Key and counter for a seed.",
)  # fmt: skip
op("StatelessRandomGetKeyCounterAlg", "seed: Tseed -> key: uint64, counter: uint64, alg: int32",
    "Tseed: {int32, int64} = DT_INT64", shape=_key_shape, doc="Key, counter and generator for a seed.",
)  # fmt: skip
op("StatelessRandomNormal", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64} = DT_INT64", shape=_seeded_shape,
    doc="Numbers of the standard normal distribution, by a seed.",
)  # fmt: skip
op("StatelessRandomNormalV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "Tshape: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Numbers of the standard normal distribution, by key and counter.",
)  # fmt: skip
op("StatelessRandomUniform", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64} = DT_INT64", shape=_seeded_shape, doc="Numbers from 0 to 1, by a seed.",
)  # fmt: skip
op("StatelessRandomUniformFullInt", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {int32, int64, uint32, uint64} = DT_UINT64", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64, uint32, uint64} = DT_INT64", shape=_seeded_shape, doc="Integers of all values, by a seed.",
)  # fmt: skip
op("StatelessRandomUniformFullIntV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {int32, int64, uint32, uint64} = DT_UINT64", "Tshape: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Integers of all values, by key and counter.",
)  # fmt: skip
op("StatelessRandomUniformInt", "shape: T, seed: Tseed, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: {int32, int64}", "T: {int32, int64}", "Tseed: {int32, int64} = DT_INT64", shape=_seeded_shape,
    doc="Integers between two bounds, by a seed.",
)  # fmt: skip
op("StatelessRandomUniformIntV2",
    "shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: {int32, int64, uint32, uint64}", "Tshape: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Integers between two bounds, by key and counter.",
)  # fmt: skip
op("StatelessRandomUniformV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "Tshape: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Numbers from 0 to 1, by key and counter.",
)  # fmt: skip
op("StatelessTruncatedNormal", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64} = DT_INT64", shape=_seeded_shape, doc="Normal numbers within two deviations, by a seed.",
)  # fmt: skip
op("StatelessTruncatedNormalV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "Tshape: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Normal numbers within two deviations, by key and counter.",
)  # fmt: skip
