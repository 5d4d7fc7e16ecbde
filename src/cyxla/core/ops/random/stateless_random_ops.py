"""Random numbers determined by a seed, or by a key and a counter."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import random_shape, scalar_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _check_seed(c: InferenceContext, i: int) -> None:
    c.merge_dim(c.with_rank(c.input(i), 1)[0], 2)


def _seeded_shape(c: InferenceContext) -> None:
    """Check the seed of two numbers, and set the shape of the first input."""
    _check_seed(c, 1)
    random_shape(c)


def _keyed_shape(c: InferenceContext) -> None:
    """Check key, counter and algorithm, and set the shape of the first input."""
    c.merge_dim(c.with_rank(c.input(1), 1)[0], 1)
    c.with_rank(c.input(2), 1)
    c.with_rank(c.input(3), 0)
    random_shape(c)


def _multinomial_shape(c: InferenceContext) -> None:
    logits = c.with_rank(c.input(0), 2)
    _check_seed(c, 2)
    c.set_output(0, (logits[0], c.make_dim_for_scalar_input(1)))


def _key_shape(c: InferenceContext) -> None:
    """Set a key, a counter of two words, and the algorithm if there is a third output."""
    _check_seed(c, 0)
    for i, shape in enumerate([(1,), (2,), ()][: c.num_outputs]):
        c.set_output(i, shape)


op("StatelessMultinomial", "logits: T, num_samples: int32, seed: Tseed -> output: output_dtype", "T: realnumbertype",
    "Tseed: {int32, int64} = DT_INT64", "output_dtype: {int32, int64} = DT_INT64", shape=_multinomial_shape,
    doc="Draw classes with the probabilities of logits, from a seed.",
)  # fmt: skip
op("StatelessParameterizedTruncatedNormal",
    "shape: S, seed: Tseed, means: dtype, stddevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype",
    "S: {int32, int64}", "Tseed: {int32, int64} = DT_INT64", "dtype: {half, float, double}", shape=_seeded_shape,
    doc="Draw truncated normal numbers, from a seed.",
)  # fmt: skip
op("StatelessRandomBinomial", "shape: S, seed: Tseed, counts: T, probs: T -> output: dtype", "S: {int32, int64}",
    "Tseed: {int32, int64} = DT_INT64", "T: {half, float, double, int32, int64} = DT_DOUBLE",
    "dtype: {half, float, double, int32, int64} = DT_INT64", shape=_seeded_shape,
    doc="Draw from binomial distributions, from a seed.",
)  # fmt: skip
op("StatelessRandomGammaV2", "shape: T, seed: Tseed, alpha: dtype -> output: dtype", "dtype: {half, float, double}",
    "T: {int32, int64}", "Tseed: {int32, int64} = DT_INT64", shape=_seeded_shape,
    doc="Draw from gamma distributions, from a seed.",
)  # fmt: skip
op("StatelessRandomGammaV3",
    "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype -> output: dtype",
    "dtype: {half, float, double}", "shape_dtype: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Draw from gamma distributions, from key and counter.",
)  # fmt: skip
op("StatelessRandomGetAlg", "-> alg: int32", stateful=True, shape=scalar_shape,
    doc="Return the number of the device's best algorithm.",
)  # fmt: skip
op("StatelessRandomGetKeyCounter", "seed: Tseed -> key: uint64, counter: uint64", "Tseed: {int32, int64} = DT_INT64",
    shape=_key_shape, doc="Return key and counter for a seed.",
)  # fmt: skip
op("StatelessRandomGetKeyCounterAlg", "seed: Tseed -> key: uint64, counter: uint64, alg: int32",
    "Tseed: {int32, int64} = DT_INT64", shape=_key_shape, doc="Return key, counter and algorithm for a seed.",
)  # fmt: skip
op("StatelessRandomNormal", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64} = DT_INT64", shape=_seeded_shape,
    doc="Draw from the standard normal distribution, from a seed.",
)  # fmt: skip
op("StatelessRandomNormalV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "Tshape: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Draw from the standard normal distribution, from key and counter.",
)  # fmt: skip
op("StatelessRandomUniform", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64} = DT_INT64", shape=_seeded_shape, doc="Draw uniform numbers in [0, 1), from a seed.",
)  # fmt: skip
op("StatelessRandomUniformFullInt", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {int32, int64, uint32, uint64} = DT_UINT64", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64, uint32, uint64} = DT_INT64", shape=_seeded_shape,
    doc="Draw uniform integers over their whole range, from a seed.",
)  # fmt: skip
op("StatelessRandomUniformFullIntV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {int32, int64, uint32, uint64} = DT_UINT64", "Tshape: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Draw uniform integers over their whole range, from key and counter.",
)  # fmt: skip
op("StatelessRandomUniformInt", "shape: T, seed: Tseed, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: {int32, int64}", "T: {int32, int64}", "Tseed: {int32, int64} = DT_INT64", shape=_seeded_shape,
    doc="Draw uniform integers between two bounds, from a seed.",
)  # fmt: skip
op("StatelessRandomUniformIntV2",
    "shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: {int32, int64, uint32, uint64}", "Tshape: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Draw uniform integers between two bounds, from key and counter.",
)  # fmt: skip
op("StatelessRandomUniformV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "Tshape: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Draw uniform numbers in [0, 1), from key and counter.",
)  # fmt: skip
op("StatelessTruncatedNormal", "shape: T, seed: Tseed -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "T: {int32, int64} = DT_INT32",
    "Tseed: {int32, int64} = DT_INT64", shape=_seeded_shape,
    doc="Draw normal numbers within two standard deviations, from a seed.",
)  # fmt: skip
op("StatelessTruncatedNormalV2", "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
    "dtype: {half, bfloat16, float, double} = DT_FLOAT", "Tshape: {int32, int64} = DT_INT32", shape=_keyed_shape,
    doc="Draw normal numbers within two standard deviations, from key and counter.",
)  # fmt: skip
