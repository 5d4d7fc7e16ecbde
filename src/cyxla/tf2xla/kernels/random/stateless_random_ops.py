"""Random numbers determined by a seed, or by a key and a counter: Philox in integer instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import shape_of
from cyxla.core.framework.philox_state import PHILOX
from cyxla.core.framework.types import DataType
from cyxla.tf2xla.lib import philox
from cyxla.tf2xla.lib.philox import Generator
from cyxla.tf2xla.lib.random_distributions import categorical, parameterized_truncated_normal
from cyxla.tf2xla.lib.random_operands import generator_of_key, generator_of_seed, scalar_bounds
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Array = np.ndarray[Any, Any]
Draw = Callable[[Generator, tuple[int, ...], DataType], XlaOp]

DRAWS: dict[str, Draw] = {
    "Uniform": philox.uniform,
    "Normal": philox.normal,
    "TruncatedNormal": philox.truncated_normal,
    "UniformFullInt": philox.uniform,
}


def sizes_in(shape: Array) -> tuple[int, ...]:
    """Return the sizes held by a vector; raises as `shape_of`."""
    return shape_of(shape)[0]


_SEED = (DataType.DT_INT32,)  # types of seeds in compiled code
_WORDS = (DataType.DT_INT32, DataType.DT_INT64)


def _register(name: str, draw: Draw) -> None:
    full = "StatelessTruncatedNormal" if name == "TruncatedNormal" else "StatelessRandom" + name

    seed_types = {"Tseed": _SEED} | ({"dtype": _WORDS} if name == "UniformFullInt" else {})

    @lowering(full, attrs=("dtype",), const=("shape",), types=seed_types)
    def by_seed(shape: Array, seed: XlaOp, *, dtype: DataType) -> XlaOp:
        return draw(generator_of_seed(seed), sizes_in(shape), dtype)

    @lowering(full + "V2", attrs=("dtype",), const=("shape", "alg"))
    def by_key(shape: Array, key: XlaOp, counter: XlaOp, alg: Array, *, dtype: DataType) -> XlaOp:
        return draw(generator_of_key(key, counter, alg), sizes_in(shape), dtype)


for _name, _draw in DRAWS.items():
    _register(_name, _draw)


@lowering("StatelessRandomUniformInt", const=("shape",), types={"Tseed": _SEED})
def _uniform_int(shape: Array, seed: XlaOp, minval: XlaOp, maxval: XlaOp) -> XlaOp:
    return philox.uniform_int(generator_of_seed(seed), sizes_in(shape), *scalar_bounds(minval, maxval))


@lowering("StatelessRandomUniformIntV2", const=("shape", "alg"))
def _uniform_int_v2(shape: Array, key: XlaOp, counter: XlaOp, alg: Array, minval: XlaOp, maxval: XlaOp) -> XlaOp:
    return philox.uniform_int(generator_of_key(key, counter, alg), sizes_in(shape), *scalar_bounds(minval, maxval))


_MULTINOMIAL = {"Tseed": _SEED, "T": (DataType.DT_BFLOAT16, DataType.DT_FLOAT, DataType.DT_DOUBLE)}


@lowering("StatelessMultinomial", attrs=("output_dtype",), const=("num_samples",), types=_MULTINOMIAL)
def _multinomial(logits: XlaOp, num_samples: Array, seed: XlaOp, *, output_dtype: DataType) -> XlaOp:
    return categorical(generator_of_seed(seed), logits, num_samples, output_dtype)


@lowering("StatelessParameterizedTruncatedNormal", attrs=("dtype",), const=("shape",), types={"Tseed": _SEED})
def _parameterized(
    shape: Array, seed: XlaOp, means: XlaOp, stddevs: XlaOp, minvals: XlaOp, maxvals: XlaOp, *, dtype: DataType
) -> XlaOp:
    sizes = sizes_in(shape)
    return parameterized_truncated_normal(generator_of_seed(seed), sizes, dtype, [means, stddevs, minvals, maxvals])


@lowering("StatelessRandomGetKeyCounter")
def _key_counter(seed: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return the key and counter scrambled from the seed."""
    generator = generator_of_seed(seed)
    halves = [xla.reshape(x, (1,)) for x in (generator.low, generator.high)]
    return xla.reshape(generator.key, (1,)), xla.concatenate(halves, 0)


@lowering("StatelessRandomGetKeyCounterAlg")
def _key_counter_algorithm(seed: XlaOp) -> tuple[XlaOp, XlaOp, Array]:
    return (*_key_counter(seed), np.array(PHILOX, np.int32))


@lowering("StatelessRandomGetAlg")
def _algorithm() -> Array:
    """Output a constant: Philox."""
    return np.array(PHILOX, np.int32)
