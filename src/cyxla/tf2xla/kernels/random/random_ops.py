"""Random numbers from the seed attributes of a node: Philox states that persist between runs of a program."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import shape_of
from cyxla.core.framework.philox_state import RESERVED, PhiloxState
from cyxla.core.framework.types import FLOATING, DataType
from cyxla.errors import ShapeError
from cyxla.forking import new_lock
from cyxla.tf2xla.lib import philox
from cyxla.tf2xla.lib.gather_scatter import gather_slices
from cyxla.tf2xla.lib.philox import Generator
from cyxla.tf2xla.lib.random_distributions import categorical, parameterized_truncated_normal
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, lowering, xla_kernel
from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator.custom_calls import register_custom_call
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.lib.special import in_f64
from cyxla.xla.lib.special_loops import gamma_sample_grad
from cyxla.xla.lib.values import count_of, iota_along, paired, sizes_of

Array = np.ndarray[Any, Any]
Draw = Callable[[Generator, tuple[int, ...], DataType], XlaOp]
_MASK64 = (1 << 64) - 1

# ------------------------------------------------------------------------------------------------- generator states

_TARGET = "cyxla.next_random_state"


class _Streams:
    """Philox states of nodes in this process; nodes without seeds start at a random state."""

    def __init__(self) -> None:
        self._lock, self._next = new_lock(), dict[str, PhiloxState]()

    def take(self, config: str) -> PhiloxState:
        """Return the state of a node and advance it by the blocks that the node uses."""
        node = json.loads(config)
        with self._lock:
            result = self._next.get(config) or _initial_state(node["seed"], node["seed2"])
            self._next[config] = result.skip(node["blocks"])
        return result


def _initial_state(seed: int, seed2: int) -> PhiloxState:
    return (
        PhiloxState.from_seeds(seed, seed2)
        if seed or seed2
        else PhiloxState.from_seeds(*map(secrets.randbits, (64, 64)))
    )


_STREAMS = _Streams()


@register_custom_call(_TARGET)
def _next_state(_: Any, ins: Instruction) -> Array:
    """Return key and counter halves of a node's next numbers."""
    config = ins.extras.get("backend_config") or b""
    state = _STREAMS.take(config.decode() if isinstance(config, bytes) else str(config))
    return np.array([state.key, state.counter & _MASK64, state.counter >> 64], np.uint64)


def reserve(ctx: XlaOpKernelContext, words: int) -> Generator:
    """Return a generator at the first of enough blocks for `words` words.

    The state comes from a custom call at run time, so each run of a compiled graph draws other numbers.
    """
    config = {
        "node": ctx.kernel.name, "seed": ctx.attr("seed"), "seed2": ctx.attr("seed2"), "blocks": -(-words // 4)
    }  # fmt: skip
    shape = Shape.array(ElementType.U64, (3,))
    state = xla.custom_call(ctx.builder, _TARGET, [], shape, json.dumps(config), has_side_effect=True)
    key, low, high = (xla.reshape(xla.slice_in_dim(state, i, i + 1), ()) for i in range(3))
    return Generator(key, low, high)


# ----------------------------------------------------------------------------------------------------- distributions


def _sizes(ctx: XlaOpKernelContext) -> tuple[int, ...]:
    return shape_of(ctx.constant_input("shape"))[0]


_EXACT = {"dtype": (DataType.DT_FLOAT, DataType.DT_DOUBLE)}


def _fill(name: str, draw: Draw) -> None:
    @xla_kernel(name, const=("shape",), types=_EXACT if name == "TruncatedNormal" else None)
    def fill(ctx: XlaOpKernelContext) -> Any:
        sizes = _sizes(ctx)
        return draw(reserve(ctx, prod(sizes) * RESERVED), sizes, ctx.attr("dtype"))


_fill("RandomUniform", philox.uniform)
_fill("RandomStandardNormal", philox.normal)
_fill("TruncatedNormal", philox.truncated_normal)


@xla_kernel("RandomUniformInt", const=("shape",))
def _uniform_int(ctx: XlaOpKernelContext) -> Any:
    """Draw integers by the remainder of whole words."""
    sizes, bounds = _sizes(ctx), [ctx.input(name) for name in ("minval", "maxval")]
    for name, bound in zip(("minval", "maxval"), bounds, strict=True):
        ctx.require(not sizes_of(bound), f"{name} must be a scalar; its shape is {list(sizes_of(bound))}", ShapeError)
    return philox.uniform_int(reserve(ctx, prod(sizes) * RESERVED), sizes, *bounds)


@xla_kernel("ParameterizedTruncatedNormal", const=("shape",), types=_EXACT)
def _parameterized(ctx: XlaOpKernelContext) -> Any:
    """Draw with scalar parameters, or one per element of the first dimension."""
    sizes = _sizes(ctx)
    ctx.require(sizes, "the shape must have a dimension for the batch")
    parameters = [_for_batch(ctx.input(name), sizes) for name in ("means", "stdevs", "minvals", "maxvals")]
    return parameterized_truncated_normal(reserve(ctx, prod(sizes) * RESERVED), sizes, ctx.attr("dtype"), parameters)


def _for_batch(parameter: XlaOp, sizes: tuple[int, ...]) -> XlaOp:
    if count_of(parameter) == 1:
        return xla.reshape(parameter, ())
    if sizes_of(parameter) != sizes[:1]:
        raise ShapeError(f"a parameter must be a scalar or have the shape {list(sizes[:1])}, not {parameter.shape}")
    return xla.reshape(parameter, (sizes[0], *[1] * (len(sizes) - 1)))


# ------------------------------------------------------------------------------------------------------ categorical


@xla_kernel("Multinomial", const=("num_samples",))
def _multinomial(ctx: XlaOpKernelContext) -> Any:
    logits, samples = ctx.input("logits"), ctx.constant_input("num_samples")
    words = prod(sizes_of(logits)[:1]) * (-(-int(samples.max(initial=0)) // 4) * 4) * 2
    return categorical(reserve(ctx, words * RESERVED), logits, samples, ctx.attr("output_dtype"))


# ---------------------------------------------------------------------------------------------------------- shuffling


@xla_kernel("RandomShuffle")
def _shuffle(ctx: XlaOpKernelContext) -> Any:
    """Gather rows in an order that sorts random words."""
    value = ctx.input("value")
    if not sizes_of(value) or sizes_of(value)[0] < 2:
        return value
    count = sizes_of(value)[0]
    keys = philox.uniform(reserve(ctx, 2 * count), (count,), DataType.DT_UINT64)
    indices = iota_along(ctx.builder, ElementType.S32, (count,), 0)
    order = xla.get_tuple_element(xla.sort([keys, indices], None, 0, is_stable=True), 1)
    return gather_slices(value, order, 0)


@lowering("RandomGammaGrad", types={"T": FLOATING[2:]})
def _gamma_grad(alpha: XlaOp, sample: XlaOp) -> XlaOp:
    """Compute a series and a continued fraction in loops."""
    return in_f64(gamma_sample_grad)(*paired(alpha, sample))
