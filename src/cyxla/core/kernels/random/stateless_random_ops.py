"""Random numbers determined by a seed, or by a key and a counter."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import shape_of
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.philox_state import PHILOX, check_algorithm
from cyxla.core.framework.types import FLOATING, INDEX, REAL, DataType, as_data_type
from cyxla.core.kernels.lib import philox, rejection_sampling
from cyxla.core.kernels.lib.philox import Philox
from cyxla.core.kernels.lib.random_distributions import (
    Draw,
    categorical,
    check_categorical,
    repeat_parameters,
    reshape_samples,
)
from cyxla.core.kernels.lib.random_operands import int_range, seeds_of
from cyxla.errors import ShapeError

Array = np.ndarray[Any, Any]

_WORDS = INDEX + tuple(as_data_type(name) for name in ("uint32", "uint64"))


def generator_of(key: Array, counter: Array, alg: Array) -> Philox:
    """Return the generator for a key, a counter and the number of an algorithm.

    Raises
    ------
    ShapeError
        The key is not u64[1], the counter has fewer than two numbers, or the algorithm is not a scalar.
    UnimplementedError
        The algorithm is ThreeFry, which TensorFlow does not have on CPU.
    InvalidArgumentError
        The algorithm does not exist.
    """
    if alg.ndim:
        raise ShapeError(f"alg must be a scalar; its shape is {list(alg.shape)}")
    if key.shape != (1,):
        raise ShapeError(f"key must be a vector of one number; its shape is {list(key.shape)}")
    check_algorithm(int(alg))
    if counter.ndim != 1 or len(counter) < 2:
        raise ShapeError(f"counter must be a vector of two numbers or more; its shape is {list(counter.shape)}")
    return Philox(int(key[0]), int(counter[0]) | int(counter[1]) << 64)


def _register_by_seed(name: str, draw: Draw, types: tuple[DataType, ...]) -> None:
    @array_kernel(name, attrs=("dtype",), types={"dtype": types})
    def fill(shape: Array, seed: Array, *, dtype: DataType) -> Array:
        sizes, count = shape_of(shape)
        return draw(Philox.from_seeds(*seeds_of(seed)), count, dtype.numpy).reshape(sizes)


def _register_by_key(name: str, draw: Draw, types: tuple[DataType, ...]) -> None:
    @array_kernel(name, attrs=("dtype",), types={"dtype": types})
    def fill(shape: Array, key: Array, counter: Array, alg: Array, *, dtype: DataType) -> Array:
        sizes, count = shape_of(shape)
        return draw(generator_of(key, counter, alg), count, dtype.numpy).reshape(sizes)


for _name, _draw, _types in (
    ("StatelessRandomUniform", philox.uniform, FLOATING),
    ("StatelessRandomNormal", philox.normal, FLOATING),
    ("StatelessTruncatedNormal", philox.truncated_normal, FLOATING),
    ("StatelessRandomUniformFullInt", philox.uniform, _WORDS),
):
    _register_by_seed(_name, _draw, _types)
    _register_by_key(_name + "V2", _draw, _types)


@array_kernel("StatelessRandomUniformInt", types={"dtype": INDEX})
def _uniform_int(shape: Array, seed: Array, minval: Array, maxval: Array) -> Array:
    return _integers(Philox.from_seeds(*seeds_of(seed)), shape, minval, maxval)


@array_kernel("StatelessRandomUniformIntV2", types={"dtype": _WORDS})
def _uniform_int_v2(shape: Array, key: Array, counter: Array, alg: Array, minval: Array, maxval: Array) -> Array:
    return _integers(generator_of(key, counter, alg), shape, minval, maxval)


def _integers(generator: Philox, shape: Array, minval: Array, maxval: Array) -> Array:
    sizes, count = shape_of(shape)
    low, high = int_range(minval, maxval)
    return philox.uniform_int(generator, count, low, high).reshape(sizes)


# Distributions by rejection sampling

_WIDE = tuple(t for t in FLOATING if t.text != "bfloat16")


def _gammas(generator: Philox, shape: Array, alpha: Array) -> Array:
    """Draw gamma numbers of a shape that ends with that of the parameters."""
    sizes, count = _ending_with(shape, alpha.shape)
    samples = rejection_sampling.gamma(generator, repeat_parameters(count, alpha))
    return reshape_samples(samples, sizes, alpha, alpha.dtype)


def _ending_with(shape: Array, end: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    sizes, _ = shape_of(shape)
    before = sizes[: max(len(sizes) - len(end), 0)]
    if sizes[len(before) :] != end:
        raise ShapeError(f"the shape {list(sizes)} must end with that of the parameters, {list(end)}")
    return before, prod(before)


@array_kernel("StatelessRandomGammaV2", types={"dtype": _WIDE})
def _gamma(shape: Array, seed: Array, alpha: Array) -> Array:
    return _gammas(Philox.from_seeds(*seeds_of(seed)), shape, alpha)


@array_kernel("StatelessRandomGammaV3", types={"dtype": _WIDE})
def _gamma_v3(shape: Array, key: Array, counter: Array, alg: Array, alpha: Array) -> Array:
    return _gammas(generator_of(key, counter, alg), shape, alpha)


@array_kernel("StatelessRandomBinomial", attrs=("dtype",))
def _binomial(shape: Array, seed: Array, counts: Array, probs: Array, *, dtype: DataType) -> Array:
    """Draw binomial numbers of a shape that ends with the broadcast shape of both parameters."""
    try:
        counts, probs = np.broadcast_arrays(counts, probs)
    except ValueError:
        raise ShapeError(f"counts {list(counts.shape)} and probs {list(probs.shape)} do not broadcast") from None
    sizes, count = _ending_with(shape, counts.shape)
    numbers, chances = (repeat_parameters(count, x) for x in (counts, probs))
    samples = rejection_sampling.binomial(Philox.from_seeds(*seeds_of(seed)), numbers, chances)
    return reshape_samples(samples, sizes, counts, dtype.numpy)


@array_kernel("StatelessParameterizedTruncatedNormal")
def _draw_truncated_normal(shape: Array, seed: Array, means: Array, stdevs: Array, low: Array, high: Array) -> Array:
    """Draw truncated normal numbers with parameters broadcast to the shape."""
    sizes, _ = shape_of(shape)
    try:
        wide = [np.broadcast_to(x, sizes).reshape(-1).astype(np.float64) for x in (means, stdevs, low, high)]
    except ValueError:
        raise ShapeError(f"the parameters do not broadcast to the shape {list(sizes)}") from None
    samples = rejection_sampling.truncated_normal(Philox.from_seeds(*seeds_of(seed)), *wide)
    return samples.reshape(sizes).astype(means.dtype)


@array_kernel("StatelessMultinomial", attrs=("output_dtype",), types={"T": REAL})
def _multinomial(logits: Array, num_samples: Array, seed: Array, *, output_dtype: DataType) -> Array:
    rows, count = check_categorical(logits, num_samples)
    return categorical(Philox.from_seeds(*seeds_of(seed)), rows, count).astype(output_dtype.numpy)


@array_kernel("StatelessRandomGetKeyCounter")
def _key_counter(seed: Array) -> tuple[Array, Array]:
    generator = Philox.from_seeds(*seeds_of(seed))
    low, high = generator.counter & (1 << 64) - 1, generator.counter >> 64
    return np.array([generator.key], np.uint64), np.array([low, high], np.uint64)


@array_kernel("StatelessRandomGetAlg")
def _algorithm() -> Array:
    return np.array(PHILOX, np.int32)


@array_kernel("StatelessRandomGetKeyCounterAlg")
def _key_counter_algorithm(seed: Array) -> tuple[Array, Array, Array]:
    return (*_key_counter(seed), _algorithm())
