"""Builder functions that apply a computation to elements, and those that call computations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from cyxla.errors import InvalidArgumentError
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.attributes import Alias, DomainAttr, Sharding, Window, WindowDim
from cyxla.xla.hlo.builder.computation import XlaComputation
from cyxla.xla.hlo.builder.contraction import Padding, make_padding
from cyxla.xla.hlo.builder.data_movement import as_list
from cyxla.xla.hlo.builder.elementwise import Operand, as_dtype, lift
from cyxla.xla.hlo.builder.xla_builder import XlaBuilder, XlaOp, deferred


@lru_cache(maxsize=512)
def _scalar_computation(opcode: str, dtype: ElementType) -> XlaComputation:
    builder = XlaBuilder(f"{opcode}_{dtype}")
    shape = Shape.array(dtype)
    x, y = (builder.add("parameter", (), {"parameter_number": i}, shape=shape, name=n) for i, n in enumerate("xy"))
    return builder.build(builder.add(opcode, [x, y]))


def scalar_computation(opcode: str, dtype: ElementType | str) -> XlaComputation:
    """Return the computation of a binary opcode on two scalars, for `reduce` and the like."""
    return _scalar_computation(opcode, as_dtype(dtype))


@deferred
def map_(operands: XlaOp | Sequence[XlaOp], to_apply: XlaComputation, dimensions: Sequence[int] | None = None) -> XlaOp:
    """Apply a computation on scalars to the elements of arrays."""
    inputs = as_list(operands)
    dims = tuple(dimensions) if dimensions is not None else tuple(range(inputs[0].shape.rank))
    return inputs[0].builder.add("map", inputs, {"dimensions": dims}, called=[to_apply])


def _inits(inputs: Sequence[XlaOp], values: Operand | Sequence[Operand]) -> list[XlaOp]:
    inits: list[Operand] = list(values) if isinstance(values, (list, tuple)) else [values]  # type: ignore[list-item]
    if len(inits) != len(inputs):
        raise InvalidArgumentError(f"{len(inputs)} arrays, but {len(inits)} initial values")
    return [lift(x.builder, v, x.shape) for x, v in zip(inputs, inits, strict=True)]


@deferred
def reduce(
    operands: XlaOp | Sequence[XlaOp],
    init_values: Operand | Sequence[Operand],
    to_apply: XlaComputation,
    dimensions: Sequence[int],
) -> XlaOp:
    """Combine the elements along dimensions; several arrays together give a tuple."""
    inputs = as_list(operands)
    all_operands = [*inputs, *_inits(inputs, init_values)]
    return inputs[0].builder.add("reduce", all_operands, {"dimensions": tuple(dimensions)}, called=[to_apply])


@deferred
def reduce_all(operand: XlaOp, init_value: Operand, to_apply: XlaComputation) -> XlaOp:
    """Combine all elements."""
    return reduce(operand, init_value, to_apply, range(operand.shape.rank))


def make_window(
    shape: Shape,
    dimensions: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
) -> Window:
    """Return the window of `reduce_window`; padding is SAME, VALID, or (low, high) for each dimension."""
    n = len(dimensions)
    base_dilation, dilation = list(base_dilations or [1] * n), list(window_dilations or [1] * n)
    if isinstance(padding, str):
        sizes = [0 if d == 0 else (d - 1) * b + 1 for d, b in zip(shape.dims, base_dilation, strict=True)]
        padding = make_padding(
            padding, sizes, [(w - 1) * h + 1 for w, h in zip(dimensions, dilation, strict=True)], strides
        )
    if not n == len(strides) == len(padding) == len(base_dilation) == len(dilation):
        raise InvalidArgumentError(f"window {list(dimensions)} has {len(strides)} strides and {len(padding)} paddings")
    parts = zip(dimensions, strides, padding, dilation, base_dilation, strict=True)
    return tuple(WindowDim(w, s, p[0], p[1], h, b) for w, s, p, h, b in parts)


@deferred
def reduce_window(
    operands: XlaOp | Sequence[XlaOp],
    init_values: Operand | Sequence[Operand],
    to_apply: XlaComputation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
) -> XlaOp:
    """Combine the elements in each position of a sliding window.

    Parameters
    ----------
    operands : XlaOp or sequence of XlaOp
        Arrays of the same sizes.
    init_values : XlaOp, scalar or sequence of these
        Initial value of each window, which padding and holes have as well.
    to_apply : XlaComputation
        Computation that combines accumulators and elements.
    window_dimensions, window_strides : sequence of int
        Size and stride in each dimension.
    padding : str or sequence of (int, int)
        SAME, VALID, or low and high padding of each dimension.
    base_dilations, window_dilations : sequence of int, optional
        Distance between elements of array and window.
    """
    inputs = as_list(operands)
    window = make_window(inputs[0].shape, window_dimensions, window_strides, padding, base_dilations, window_dilations)
    all_operands = [*inputs, *_inits(inputs, init_values)]
    return inputs[0].builder.add("reduce-window", all_operands, {"window": window}, called=[to_apply])


@deferred
def select_and_scatter(
    operand: XlaOp,
    select: XlaComputation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    source: XlaOp,
    init_value: Operand,
    scatter: XlaComputation,
) -> XlaOp:
    """Add each element of source to the element that `select` chooses in the corresponding window."""
    window = make_window(operand.shape, window_dimensions, window_strides, padding)
    operands = [operand, source, lift(operand.builder, init_value, operand.shape)]
    return operand.builder.add("select-and-scatter", operands, {"window": window}, called=[select, scatter])


@deferred
def scan(
    operands: XlaOp | Sequence[XlaOp],
    init_values: XlaOp | Sequence[XlaOp],
    to_apply: XlaComputation,
    dimension: int = 0,
    *,
    is_reverse: bool = False,
    is_associative: bool | None = None,
    shape: Shape | None = None,
) -> XlaOp:
    """Run a computation along a dimension with carried values; without operands the result must be stated."""
    inputs, carries = as_list(operands), as_list(init_values)
    attrs = {
        "dimensions": (dimension,),
        "num_carries": len(carries),
        "is_reverse": is_reverse,
        "is_associative": is_associative,
    }
    return (inputs + carries)[0].builder.add("scan", [*inputs, *carries], attrs, called=[to_apply], shape=shape)


@deferred
def sort(
    operands: XlaOp | Sequence[XlaOp],
    comparator: XlaComputation | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> XlaOp:
    """Sort along a dimension, several arrays together; by default in ascending order of the first."""
    inputs = as_list(operands)
    less = comparator if comparator is not None else less_than([x.shape.dtype for x in inputs])
    attrs = {
        "dimensions": (dimension % max(inputs[0].shape.rank, 1) if dimension < 0 else dimension,),
        "is_stable": is_stable,
    }
    return inputs[0].builder.add("sort", inputs, attrs, called=[less])


def less_than(dtypes: Sequence[ElementType]) -> XlaComputation:
    """Return the comparator of `sort` that compares the first pair; floats in total order."""
    builder = XlaBuilder("less_than")
    shapes = [Shape.array(t) for t in dtypes for _ in range(2)]
    parameters = [builder.add("parameter", (), {"parameter_number": i}, shape=s) for i, s in enumerate(shapes)]
    attrs = {"direction": "LT", "type": "TOTALORDER" if dtypes[0].is_float else None}
    return builder.build(builder.add("compare", parameters[:2], attrs))


@deferred
def topk(operand: XlaOp, k: int, largest: bool = True) -> XlaOp:
    """Return the k largest (or smallest) elements along the last dimension, and their indices."""
    return operand.builder.add("topk", [operand], {"k": k, "largest": largest})


@deferred
def call(
    builder: XlaBuilder, to_apply: XlaComputation, operands: Sequence[XlaOp] = (), *, is_composite: bool = False
) -> XlaOp:
    """Call a computation."""
    return builder.add("call", operands, {"is_composite": is_composite}, called=[to_apply])


@deferred
def fusion(
    builder: XlaBuilder,
    calls: XlaComputation,
    operands: Sequence[XlaOp] = (),
    kind: str = "kLoop",
    output_to_operand_aliasing: Sequence[Alias] = (),
) -> XlaOp:
    """Call a computation as one fused kernel."""
    attrs = {"kind": kind, "output_to_operand_aliasing": tuple(output_to_operand_aliasing)}
    return builder.add("fusion", operands, attrs, called=[calls])


@deferred
def while_(condition: XlaComputation, body: XlaComputation, init: XlaOp) -> XlaOp:
    """Run `body` on a state while `condition` is true."""
    return init.builder.add("while", [init], called=[body, condition])


@deferred
def conditional(selector: XlaOp, branches: Sequence[XlaComputation], operands: Sequence[XlaOp]) -> XlaOp:
    """Run one of several computations on its operand: (true, false), or by index, clamped to the last."""
    return selector.builder.add("conditional", [selector, *operands], called=branches)


@deferred
def custom_call(
    builder: XlaBuilder,
    call_target_name: str,
    operands: Sequence[XlaOp],
    shape: Shape,
    opaque: str = "",
    *,
    operand_shapes_with_layout: Sequence[Shape] | None = None,
    has_side_effect: bool = False,
    output_operand_aliasing: Sequence[Alias] = (),
    called_computations: Sequence[XlaComputation] = (),
    api_version: str = "API_VERSION_ORIGINAL",
    **attrs: Any,
) -> XlaOp:
    """Call a routine by name.

    Parameters
    ----------
    builder : XlaBuilder
        Builder of the computation.
    call_target_name : str
        Name under which the routine is registered.
    operands : sequence of XlaOp
        Operands of the routine.
    shape : Shape
        Result shape.
    opaque : str, optional
        Text for the routine, the backend_config.
    operand_shapes_with_layout : sequence of Shape, optional
        Layouts of the operands that the routine requires.
    has_side_effect : bool, optional
        True if the call must run even when its result is unused.
    output_operand_aliasing : sequence of Alias, optional
        Results that share memory with operands.
    called_computations : sequence of XlaComputation, optional
        Computations that the routine may call.
    api_version : str, optional
        Calling convention.
    **attrs
        Other attributes of `custom-call`.
    """
    constraints = tuple(operand_shapes_with_layout) if operand_shapes_with_layout is not None else None
    call_attrs = {
        "custom_call_target": call_target_name, "custom_call_has_side_effect": has_side_effect,
        "api_version": api_version, "operand_layout_constraints": constraints,
        "output_to_operand_aliasing": tuple(output_operand_aliasing), **attrs,
    }  # fmt: skip
    extras = {"backend_config": opaque} if opaque else None
    return builder.add("custom-call", operands, call_attrs, called=called_computations, shape=shape, extras=extras)


@deferred
def async_start(
    builder: XlaBuilder,
    calls: XlaComputation,
    operands: Sequence[XlaOp] = (),
    *,
    execution_thread: str = "",
    shape: Shape | None = None,
) -> XlaOp:
    """Start a computation."""
    return builder.add(
        "async-start", operands, {"async_execution_thread": execution_thread}, called=[calls], shape=shape
    )


@deferred
def async_update(operand: XlaOp) -> XlaOp:
    """Continue the computation of `async_start`."""
    return operand.builder.add("async-update", [operand])


@deferred
def async_done(operand: XlaOp) -> XlaOp:
    """Wait for the result of `async_start`."""
    return operand.builder.add("async-done", [operand])


@deferred
def after_all(builder: XlaBuilder, tokens: Sequence[XlaOp] = ()) -> XlaOp:
    """Return a token that is ready after others."""
    return builder.add("after-all", tokens)


@deferred
def add_dependency(operand: XlaOp, token: XlaOp) -> XlaOp:
    """Return the same value, available only after the token."""
    return operand.builder.add("add-dependency", [operand, token])


@deferred
def domain(operand: XlaOp, entry: Sharding, exit: Sharding, kind: str = "sharding") -> XlaOp:
    """Return the same value on the other side of a boundary between shardings."""
    return operand.builder.add("domain", [operand], {"domain": DomainAttr(kind, entry, exit)})
