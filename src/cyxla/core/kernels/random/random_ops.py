"""Random numbers from the seed attributes of a node; if both are zero, from the system's entropy."""

from __future__ import annotations

import secrets
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import shape_of
from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.philox_state import RESERVED
from cyxla.core.framework.types import FLOATING, INDEX, REAL
from cyxla.core.kernels.lib import philox, rejection_sampling
from cyxla.core.kernels.lib.elementwise import binary
from cyxla.core.kernels.lib.gamma_derivatives import gamma_sample_grad
from cyxla.core.kernels.lib.philox import Philox
from cyxla.core.kernels.lib.random_distributions import (
    Draw,
    categorical,
    check_categorical,
    repeat_parameters,
    reshape_samples,
)
from cyxla.core.kernels.lib.random_operands import int_range
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]


class Seeded(OpKernel):
    """Kernel with its own generator, from which each run reserves distinct blocks."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        seed, seed2 = construction.get_attr("seed"), construction.get_attr("seed2")
        if not seed and not seed2:
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        self._next = Philox.from_seeds(seed, seed2)
        self._lock = new_lock()

    def reserve(self, words: int) -> Philox:
        """Reserve enough blocks for `words` words, and return a generator at the first of them."""
        with self._lock:
            generator = self._next
            self._next = generator.skip(-(-words // 4))
        return generator


def _fill(name: str, draw: Draw) -> None:
    @kernel(name, device="CPU", types={"dtype": FLOATING})
    class Fill(Seeded):
        def compute(self, ctx: OpKernelContext) -> None:
            shape, count = shape_of(ctx.input(0))
            dtype = ctx.attr("dtype").numpy
            ctx.set_output(0, draw(self.reserve(count * RESERVED), count, dtype).reshape(shape))

    Fill.__name__ = Fill.__qualname__ = name + "Op"


_fill("RandomUniform", philox.uniform)
_fill("RandomStandardNormal", philox.normal)
_fill("TruncatedNormal", philox.truncated_normal)


@kernel("RandomUniformInt", device="CPU", types={"Tout": INDEX})
class RandomUniformInt(Seeded):
    """Kernel that draws integers in [minval, maxval)."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw an array of the given shape."""
        shape, count = shape_of(ctx.input(0))
        low, high = int_range(ctx.input("minval"), ctx.input("maxval"))
        if count:
            ctx.set_output(0, philox.uniform_int(self.reserve(count * RESERVED), count, low, high).reshape(shape))
        else:
            ctx.set_output(0, np.empty(shape, low.dtype))


# ------------------------------------------------------------------------------------------ drawn until they fit


@kernel("RandomGamma", device="CPU", types={"T": tuple(t for t in FLOATING if t.text != "bfloat16")})
class RandomGamma(Seeded):
    """Kernel that draws from gamma distributions."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw an array of the given shape for each shape parameter."""
        sizes, count = shape_of(ctx.input(0))
        alpha = ctx.input(1)
        samples = rejection_sampling.gamma(
            self.reserve(count * alpha.size * RESERVED * 4), repeat_parameters(count, alpha)
        )
        ctx.set_output(0, reshape_samples(samples, sizes, alpha, alpha.dtype))


@kernel("RandomPoissonV2", device="CPU")
class RandomPoisson(Seeded):
    """Kernel that draws from Poisson distributions."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw an array of the given shape for each rate."""
        sizes, count = shape_of(ctx.input(0))
        rate = ctx.input(1)
        samples = rejection_sampling.poisson(
            self.reserve(count * rate.size * RESERVED * 4), repeat_parameters(count, rate)
        )
        ctx.set_output(0, reshape_samples(samples, sizes, rate, ctx.attr("dtype").numpy))


def truncated_normal(generator: Philox, sizes: tuple[int, ...], parameters: list[Array]) -> Array:
    """Draw truncated normal numbers, with scalar parameters or one per row of the first dimension.

    Raises
    ------
    ShapeError
        A parameter is neither a single number nor one per row.
    """
    rows = sizes[0] if sizes else 1
    for name, x in zip(("means", "stdevs", "minvals", "maxvals"), parameters, strict=True):
        if x.ndim > 1 or x.size not in (1, rows):
            raise ShapeError(f"{name} {list(x.shape)} must hold one number, or one for each of {rows} rows")
    count = prod(sizes)
    wide = [np.repeat(np.broadcast_to(x.reshape(-1), rows), count // max(rows, 1)) for x in parameters]
    samples = rejection_sampling.truncated_normal(generator, *(x.astype(np.float64) for x in wide))
    return samples.reshape(sizes).astype(parameters[0].dtype)


@kernel("ParameterizedTruncatedNormal", device="CPU", types={"dtype": FLOATING})
class ParameterizedTruncatedNormal(Seeded):
    """Kernel that draws truncated normal numbers."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw an array of the given shape."""
        sizes, count = shape_of(ctx.input(0))
        parameters = [ctx.input(i) for i in range(1, 5)]
        ctx.set_output(0, truncated_normal(self.reserve(count * RESERVED * 4), sizes, parameters))


# ------------------------------------------------------------------------------------------------------ categories


@kernel("Multinomial", device="CPU", types={"T": REAL})
class Multinomial(Seeded):
    """Kernel that draws classes with the probabilities of rows of logits."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw `num_samples` classes per row."""
        logits, count = check_categorical(ctx.input("logits"), ctx.input("num_samples"))
        words = logits.shape[0] * (-(-count // 4) * 4) * 2
        samples = categorical(self.reserve(words * RESERVED), logits, count)
        ctx.set_output(0, samples.astype(ctx.attr("output_dtype").numpy))


@kernel("RandomShuffle", device="CPU")
class RandomShuffle(Seeded):
    """Kernel that permutes the slices of the first dimension uniformly."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Shuffle by swapping each slice with a random one from there on (Fisher-Yates)."""
        value = ctx.input(0)
        if value.ndim == 0 or len(value) < 2:
            ctx.set_output(0, value)
            return
        order = list(range(len(value)))
        words = self.reserve(len(order) - 1).blocks(-(-(len(order) - 1) // 4)).reshape(-1).tolist()
        for k in range(len(order) - 1):
            other = k + words[k] % (len(order) - k)
            order[k], order[other] = order[other], order[k]
        ctx.set_output(0, value[order])


binary("RandomGammaGrad", gamma_sample_grad, FLOATING[2:])


@kernel("RandomCrop", device="CPU")
class RandomCrop(Seeded):
    """Kernel that crops a random box from an image [height, width, channels]."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw the corner and crop."""
        image, size = ctx.input("image"), ctx.input("size")
        if image.ndim != 3:
            raise ShapeError(f"the image must have rank 3: height, width, channels; its shape is {list(image.shape)}")
        if size.shape != (2,):
            raise ShapeError(f"size must hold a height and a width; its shape is {list(size.shape)}")
        height, width = (int(n) for n in size)
        if not (0 < height <= image.shape[0] and 0 < width <= image.shape[1]):
            raise InvalidArgumentError(f"cannot cut {height} x {width} out of an image of {list(image.shape[:2])}")
        words = self.reserve(2).blocks(1)[0].tolist()
        top, left = words[0] % (image.shape[0] - height + 1), words[1] % (image.shape[1] - width + 1)
        ctx.set_output(0, image[top : top + height, left : left + width].copy())
