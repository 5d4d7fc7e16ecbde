"""Random numbers with the generator state in a variable: s64[3] of counter low, counter high and key."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import shape_of
from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.philox_state import RESERVED, check_algorithm
from cyxla.core.framework.types import FLOATING, INDEX, as_data_type
from cyxla.core.framework.variable import Var
from cyxla.core.kernels.lib import philox
from cyxla.core.kernels.lib.philox import Philox
from cyxla.core.kernels.lib.random_distributions import Draw
from cyxla.core.kernels.lib.random_operands import int_range
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]

_STATE_SIZE = 3
_WORDS = INDEX + tuple(as_data_type(name) for name in ("uint32", "uint64"))
_MASK64 = (1 << 64) - 1


def _scalar(operand: Array, name: str) -> int:
    if operand.ndim:
        raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    return int(operand)


def _advance(ctx: OpKernelContext, algorithm: int, elements: int) -> tuple[Philox, Array]:
    """Return the variable's generator and state, and advance the variable by `elements` elements."""
    check_algorithm(algorithm)
    var = ctx.lookup_resource(0, Var)
    with var.lock:
        state = var.read()
        if state is None:
            raise FailedPreconditionError("the generator's variable has no value yet", hint="run its initialiser first")
        if state.dtype != np.int64:
            raise InvalidArgumentError(f"the state of a generator must be s64; the variable holds {state.dtype}")
        if state.ndim != 1 or len(state) < _STATE_SIZE:
            raise ShapeError(f"the state of Philox is {_STATE_SIZE} numbers; this variable's is {list(state.shape)}")
        low, high, key = (int(n) & _MASK64 for n in state[:_STATE_SIZE])
        generator = Philox(key, low | high << 64)
        after = generator.skip(elements * RESERVED)
        new_state = state.copy()
        new_state.view(np.uint64)[:2] = after.counter & _MASK64, after.counter >> 64
        var.assign(new_state)
    return generator, state


def _fill(name: str, draw: Draw, types: tuple[Any, ...]) -> None:
    @kernel(name, device="CPU", types={"dtype": types})
    def fill(ctx: OpKernelContext) -> None:
        algorithm = _scalar(ctx.input("algorithm"), "algorithm")
        shape, count = shape_of(ctx.input("shape"))
        generator, _ = _advance(ctx, algorithm, count)
        ctx.set_output(0, draw(generator, count, ctx.attr("dtype").numpy).reshape(shape))


_fill("StatefulUniform", philox.uniform, FLOATING)
_fill("StatefulStandardNormalV2", philox.normal, FLOATING)
_fill("StatefulTruncatedNormal", philox.truncated_normal, FLOATING)
_fill("StatefulUniformFullInt", philox.uniform, _WORDS)


@kernel("StatefulUniformInt", device="CPU", types={"dtype": _WORDS})
def _uniform_int(ctx: OpKernelContext) -> None:
    low, high = int_range(ctx.input("minval"), ctx.input("maxval"))
    algorithm = _scalar(ctx.input("algorithm"), "algorithm")
    shape, count = shape_of(ctx.input("shape"))
    generator, _ = _advance(ctx, algorithm, count)
    ctx.set_output(0, philox.uniform_int(generator, count, low, high).reshape(shape))


@kernel("RngReadAndSkip", device="CPU")
def _read_and_skip(ctx: OpKernelContext) -> None:
    delta = _scalar(ctx.input("delta"), "delta")
    _, state = _advance(ctx, _scalar(ctx.input("alg"), "alg"), delta)
    ctx.set_output(0, state)


@kernel("RngSkip", device="CPU")
def _skip(ctx: OpKernelContext) -> None:
    delta = _scalar(ctx.input("delta"), "delta")
    _advance(ctx, _scalar(ctx.input("algorithm"), "algorithm"), delta & _MASK64)
