"""Random numbers with the generator state in a variable: s64[3] of counter low, counter high and key."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from cyxla.core.framework.geometry.shape_operands import shape_of
from cyxla.core.framework.philox_state import RESERVED, check_algorithm
from cyxla.core.framework.types import FLOATING, DataType
from cyxla.errors import ShapeError
from cyxla.tf2xla.lib import philox
from cyxla.tf2xla.lib.philox import U64, Generator, number, unsigned64
from cyxla.tf2xla.lib.random_operands import element, scalar_bounds
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import sizes_of

_STATE = 3
Draw = Callable[[Generator, tuple[int, ...], DataType], XlaOp]


def _advance(ctx: XlaOpKernelContext, algorithm: str, elements: XlaOp) -> tuple[Generator, XlaOp]:
    """Return the variable's generator and state, and advance the variable by `elements` elements.

    Raises
    ------
    ShapeError, InvalidArgumentError
        The variable does not hold a state, or the algorithm is not Philox.
    """
    check_algorithm(ctx.constant_input_as_int_scalar(algorithm))
    state = ctx.read_variable_input(0, DataType.DT_INT64)
    if len(sizes_of(state)) != 1 or sizes_of(state)[0] < _STATE:
        raise ShapeError(f"the state of Philox is {_STATE} numbers; this variable's is {list(sizes_of(state))}")
    low, high, key = (xla.bitcast_convert(element(state, i), U64) for i in range(_STATE))
    generator = Generator(key, low, high)
    after = generator.skip(elements * number(ctx.builder, RESERVED, U64))
    counter = [xla.reshape(xla.bitcast_convert(x, ElementType.S64), (1,)) for x in (after.low, after.high)]
    rest = xla.slice_in_dim(state, 2, sizes_of(state)[0])
    ctx.assign_variable(0, DataType.DT_INT64, xla.concatenate([*counter, rest], 0))
    return generator, state


def _generator_and_sizes(ctx: XlaOpKernelContext) -> tuple[Generator, tuple[int, ...]]:
    sizes, _ = shape_of(ctx.constant_input("shape"))
    generator, _ = _advance(ctx, "algorithm", number(ctx.builder, prod(sizes), U64))
    return generator, sizes


_WORDS = {"dtype": (DataType.DT_INT32, DataType.DT_INT64, DataType.DT_UINT32, DataType.DT_UINT64)}


def _fill(name: str, draw: Draw) -> None:
    types = _WORDS if name.endswith("Int") else {"dtype": FLOATING}

    @xla_kernel(name, const=("algorithm", "shape"), types=types)
    def fill(ctx: XlaOpKernelContext) -> Any:
        return draw(*_generator_and_sizes(ctx), ctx.attr("dtype"))


_fill("StatefulUniform", philox.uniform)
_fill("StatefulStandardNormalV2", philox.normal)
_fill("StatefulTruncatedNormal", philox.truncated_normal)
_fill("StatefulUniformFullInt", philox.uniform)


@xla_kernel("StatefulUniformInt", const=("algorithm", "shape"), types=_WORDS)
def _uniform_int(ctx: XlaOpKernelContext) -> Any:
    bounds = scalar_bounds(ctx.input("minval"), ctx.input("maxval"))
    generator, sizes = _generator_and_sizes(ctx)
    return philox.uniform_int(generator, sizes, *bounds)


def _delta(ctx: XlaOpKernelContext) -> XlaOp:
    ctx.require(not ctx.input_shape("delta"), f"delta must be a scalar; its shape is {list(ctx.input_shape('delta'))}")
    return unsigned64(ctx.input("delta"))


@xla_kernel("RngReadAndSkip", const=("alg",))
def _read_and_skip(ctx: XlaOpKernelContext) -> Any:
    """Return the previous state."""
    return _advance(ctx, "alg", _delta(ctx))[1]


@xla_kernel("RngSkip", const=("algorithm",))
def _skip(ctx: XlaOpKernelContext) -> Any:
    _advance(ctx, "algorithm", _delta(ctx))
