"""Random numbers from the seed attributes of a node: Philox states that persist between runs of a program."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from math import pi, prod, sqrt
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.operands import shape_of
from cyxla.core.framework.philox_state import RESERVED, PhiloxState
from cyxla.core.framework.types import FLOATING, DataType
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.forking import new_lock
from cyxla.tf2xla.kernels.array_slice_ops import gather_slices
from cyxla.tf2xla.lib import philox
from cyxla.tf2xla.lib.philox import Generator
from cyxla.tf2xla.lib.typed_values import cast, full
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, lowering, xla_kernel
from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator.custom_calls import register_custom_call
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.lib.special import in_f64
from cyxla.xla.lib.special_loops import gamma_sample_grad
from cyxla.xla.lib.values import broadcast_to, count_of, iota_along, max_of, paired, scalar, select, sizes_of, sum_of

Array = np.ndarray[Any, Any]
Draw = Callable[[Generator, tuple[int, ...], DataType], XlaOp]
_MASK64 = (1 << 64) - 1
_WINITZKI, _HALLEY = 0.147, 3  # Winitzki's constant; Halley steps for full f64 precision

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
            found = self._next.get(config) or _initial_state(node["seed"], node["seed2"])
            self._next[config] = found.skip(node["blocks"])
        return found


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


def parameterized_truncated_normal(
    generator: Generator, sizes: tuple[int, ...], dtype: DataType, parameters: Sequence[XlaOp]
) -> XlaOp:
    """Draw truncated normal numbers by inverting the distribution function."""
    wide = ElementType.F64 if element_type(dtype) is ElementType.F64 else ElementType.F32
    mean, deviation, low, high = (broadcast_to(xla.convert(p, wide), sizes) for p in parameters)
    a, b = (_phi((bound - mean) / deviation) for bound in (low, high))
    drawn = philox.uniform(generator, sizes, DataType.DT_DOUBLE if wide is ElementType.F64 else DataType.DT_FLOAT)
    at = a + drawn * (b - a)
    two, one = (xla.broadcast(scalar(at, n), sizes) for n in (2.0, 1.0))
    edge = xla.broadcast(scalar(at, 1 - float(np.finfo(at.shape.dtype.numpy_dtype).eps)), sizes)
    root = xla.broadcast(scalar(at, sqrt(2)), sizes)
    found = mean + deviation * root * _inverse_erf(xla.clamp(xla.negate(edge), two * at - one, edge))
    return cast(xla.clamp(low, found, high), dtype)


def _inverse_erf(y: XlaOp) -> XlaOp:
    """Invert erf on (-1, 1) by Winitzki's approximation, refined by Halley's method."""

    def of(value: float) -> XlaOp:
        return xla.broadcast(scalar(y, value), sizes_of(y))

    log = xla.log_plus_one(xla.negate(y * y))
    about = of(2 / (pi * _WINITZKI)) + log * of(0.5)
    x = xla.sign(y) * xla.sqrt(xla.sqrt(about * about - log / of(_WINITZKI)) - about)
    for _ in range(_HALLEY):
        step = (xla.erf(x) - y) / (of(2 / sqrt(pi)) * xla.exponential(xla.negate(x * x)))
        x = x - step / (of(1) + x * step)
    return x


def _phi(x: XlaOp) -> XlaOp:
    """Return the normal distribution function."""
    half, root = (xla.broadcast(scalar(x, n), sizes_of(x)) for n in (0.5, sqrt(0.5)))
    return half + half * xla.erf(x * root)


# ------------------------------------------------------------------------------------------------------ categorical


@xla_kernel("Multinomial", const=("num_samples",))
def _multinomial(ctx: XlaOpKernelContext) -> Any:
    logits, samples = ctx.input("logits"), ctx.constant_input("num_samples")
    words = prod(sizes_of(logits)[:1]) * (-(-int(samples.max(initial=0)) // 4) * 4) * 2
    return categorical(reserve(ctx, words * RESERVED), logits, samples, ctx.attr("output_dtype"))


def categorical(generator: Generator, logits: XlaOp, num_samples: Array, dtype: DataType) -> XlaOp:
    """Draw classes by counting the cumulative probabilities not above a uniform number.

    Raises
    ------
    ShapeError, InvalidArgumentError
        The logits are not a matrix with columns, or the number of samples is not a scalar or is negative.
    """
    count = _samples(logits, num_samples)
    rows, classes = sizes_of(logits)
    builder = logits.builder
    if not rows * count:
        return full(builder, 0, dtype, (rows, count))
    totals = _cumulative_weights(xla.convert(logits, ElementType.F64))
    words = generator.words(-(-rows * count * 2 // 4))
    units = [philox.unit64(words[0], words[1]), philox.unit64(words[2], words[3])]
    table = xla.concatenate([xla.reshape(u, (sizes_of(u)[0], 1)) for u in units], 1)
    flat = xla.slice_in_dim(xla.reshape(table, (count_of(table),)), 0, rows * count)
    total = xla.slice_in_dim(totals, classes - 1, classes, 1, 1)
    points = xla.reshape(flat, (rows, count)) * broadcast_to(total, (rows, count))
    shape = (rows, count, classes)
    passed = xla.le(xla.broadcast_in_dim(totals, shape, (0, 2)), xla.broadcast_in_dim(points, shape, (0, 1)))
    return sum_of(xla.convert(passed, element_type(dtype)), [2])


def _samples(logits: XlaOp, num_samples: Array) -> int:
    if len(sizes_of(logits)) != 2:
        raise ShapeError(f"logits must be a matrix of rows of classes; their shape is {list(sizes_of(logits))}")
    if num_samples.ndim:
        raise ShapeError(f"num_samples must be a scalar; its shape is {list(num_samples.shape)}")
    if num_samples < 0:
        raise InvalidArgumentError(f"num_samples must not be negative; it is {num_samples}")
    if not sizes_of(logits)[1]:
        raise InvalidArgumentError("there are no classes to draw from: logits have no columns")
    return int(num_samples)


def _cumulative_weights(logits: XlaOp) -> XlaOp:
    """Return the cumulative sums of exponentials; logits that are not finite count as 0."""
    rows, classes = sizes_of(logits)
    finite = xla.is_finite(logits)
    known = select(finite, logits, scalar(logits, float(np.finfo(np.float64).min)))
    weights = xla.exponential(known - broadcast_to(max_of(known, [1], keep=True), (rows, classes)))
    add = scalar_computation("add", ElementType.F64)
    pads = [(0, 0), (classes - 1, 0)]
    return xla.reduce_window(select(finite, weights, 0.0), scalar(logits, 0), add, [1, classes], [1, 1], pads)


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
