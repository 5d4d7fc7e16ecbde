"""Operations that run regions or functions, and operations with effects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.types import UNBOUNDED, ElementType, Layout, Shape
from cyxla.xla.hlo import Computation
from cyxla.xla.hlo.attributes import Alias, WindowDim
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.opcode import OPCODES
from cyxla.xla.stablehlo.attributes import Dense, Dictionary, Record, Symbol
from cyxla.xla.stablehlo.collective import ALGORITHMS
from cyxla.xla.stablehlo.context import Context, fits
from cyxla.xla.stablehlo.functional import only_region
from cyxla.xla.stablehlo.registry import (
    Handler,
    Results,
    channel_of,
    field_int,
    flag,
    handles,
    integer,
    ints,
    keyword,
    required,
)
from cyxla.xla.stablehlo.sizes.unknown import UnknownSizeError
from cyxla.xla.stablehlo.syntax import Operation, Region

PRED_SCALAR = Shape.array(ElementType.PRED)


@handles("while")
def _while(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Lower a while loop; the state is its operands, except sizes that stay as they are, and what regions capture."""
    condition, body = only_region(op, 0), only_region(op, 1)
    captured = c.captures(op.regions)
    sizes = c.sizes_of_loop(op, xs)
    carried = [k for k in range(len(xs)) if k not in sizes]
    state = [*(xs[k] for k in carried), *(c.value(v) for v in captured)]
    shapes = [x.shape for x in state]

    def region(region: Region, name: str, carry: bool) -> Computation:
        if len(region.arguments) != len(xs):
            raise InvalidArgumentError(f"{op.name}: a region takes {len(region.arguments)} values, not {len(xs)}")
        inside = c.on_tuple(name, [*(region.arguments[k] for k in carried), *captured], shapes)
        for k in sizes:
            inside.copy_from_around(region.arguments[k], xs[k])
        results = inside.run(region)
        if carry:
            if len(results) != len(xs):
                raise InvalidArgumentError(f"{op.name}: its body returns {len(results)} values, not {len(xs)}")
            results = [*(results[k] for k in carried), *(inside.value(v) for v in captured)]
        elif len(results) != 1:
            raise InvalidArgumentError(f"{op.name}: its condition returns {len(results)} values")
        return inside.builder.finish(inside.tuple_or_single(results))

    called = [region(body, "body", True), region(condition, "condition", False)]
    made = c.builder.call("while", [c.tuple_or_single(state)], called)
    elements = [made] if len(state) == 1 else c.tuple_elements(made, len(carried))
    results = dict(zip(carried, elements, strict=False))
    return [results.get(k, x) for k, x in enumerate(xs)]


@handles("if", "case")
def _branches(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    if len(xs) != 1 or not op.regions:
        raise InvalidArgumentError(f"{op.name} takes one operand and branches")
    if len(op.regions) == 1 and op.kind == "case":
        return c.run(op.regions[0])
    selector = c.constant_value(xs[0]) if c.converter.is_dynamic else None
    if selector is not None and selector.size == 1:  # so that branches may have results of different sizes
        return c.run(_selected(op, selector.item()))
    operands, called, known = [], [], []
    for region in op.regions:
        captured = c.captures([region])
        operand_values = [c.value(v) for v in captured]
        inside = c.on_tuple("branch", captured, [x.shape for x in operand_values])
        results = inside.run(region)
        known.append(inside.known_sizes(region, results))
        called.append(inside.builder.finish(inside.tuple_or_single(results)))
        operands.append(c.tuple_or_single(operand_values))
    made_op = c.builder.call("conditional", [xs[0], *operands], called)
    made = [made_op] if len(op.results) == 1 else c.tuple_elements(made_op, len(op.results))
    return [
        x if size is None else xla.constant(c.builder, size, x.shape.dtype)
        for x, size in zip(made, _common_values(known), strict=False)
    ]


def _common_values(known: list[list[Any]]) -> Iterator[Any]:
    """Yield the values that results have in all branches, and None for others."""
    for first, *others in zip(*known, strict=False):
        is_common = first is not None and all(v is not None and np.array_equal(v, first) for v in others)
        yield first if is_common else None


def _selected(op: Operation, selector: int) -> Region:
    """Return the region that is run; an index without a branch selects the last one."""
    if op.kind == "if":
        return only_region(op, 0 if selector else 1)
    return op.regions[selector if 0 <= selector < len(op.regions) else -1]


# Functions


@handles("call")
def _call(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return c.function(str(required(op, "callee")), xs)


@handles("composite")
def _composite(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return c.function(str(required(op, "decomposition")), xs)


@handles("custom_call")
def _custom_call(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    target = str(required(op, "call_target_name"))
    special = _TARGETS.get(target)
    return special(c, op, xs) if special is not None else _call_target(c, op, xs, target)


def _call_target(c: Context, op: Operation, xs: list[XlaOp], target: str) -> Results:
    config, (xs, results) = _config(op), _split_shape_operands(c, op, xs)
    layouts = op.attributes.get("result_layouts")
    if isinstance(layouts, list):
        results = _with_layouts(op, results, layouts)
    shape = results[0] if len(results) == 1 else Shape.tuple(results)
    layouts = op.attributes.get("operand_layouts")
    constraints = None
    if isinstance(layouts, list):
        removed = ints(op.attributes.get("indices_of_shape_operands", ()))
        constraints = tuple(
            _with_layouts(op, [x.shape for x in xs], [v for k, v in enumerate(layouts) if k not in removed])
        )
    attrs: dict[str, Any] = {
        "custom_call_target": target, "custom_call_has_side_effect": flag(op, "has_side_effect"),
        "api_version": _VERSIONS[integer(op, "api_version", 1)], "operand_layout_constraints": constraints,
        "output_to_operand_aliasing": _aliases(op),
    }  # fmt: skip
    if integer(op, "custom_call_schedule", 0):
        attrs["schedule"] = _SCHEDULES.get(integer(op, "custom_call_schedule"), "SCHEDULE_NONE")
    extras = {"backend_config": config} if config else {}
    called = [_callee(c, name) for name in op.attributes.get("called_computations", ())]
    c.converter.record_location(op, target)
    with c.builder.attributes(**extras):
        made = c.builder.call("custom-call", xs, called, attrs, shape)
    return [made] if len(results) == 1 else c.tuple_elements(made, len(results))


def _split_shape_operands(c: Context, op: Operation, xs: list[XlaOp]) -> tuple[list[XlaOp], list[Shape]]:
    """Return operands and result types of a custom call; operands that are sizes of results are removed."""
    results = [v.type for v in op.results]
    xs, operands = _shape_operands(op, xs)
    if operands:
        sizes = [c.constant_ints(x, f"a result of {op.name}") for x in operands]
        results = [r if not r.is_dynamic else r.with_dims(s) for r, s in zip(results, sizes, strict=True)]
    if any(UNBOUNDED in r.dims for r in results):
        raise UnimplementedError(f"{op.name} with a result of open sizes")
    return xs, results


def _shape_operands(op: Operation, xs: list[XlaOp]) -> tuple[list[XlaOp], list[XlaOp]]:
    """Return the operands of a custom call, and those that are the sizes of its results: one for each, or none."""
    positions = ints(op.attributes.get("indices_of_shape_operands", ()), "indices_of_shape_operands")
    if not positions:
        return xs, []
    if len(positions) != len(op.results) or any(not 0 <= p < len(xs) for p in positions):
        raise InvalidArgumentError(f"{op.name}: {list(positions)} do not say the sizes of {len(op.results)} results")
    return [x for k, x in enumerate(xs) if k not in positions], [xs[p] for p in positions]


def _callee(c: Context, name: Any) -> Computation:
    computation = c.converter.computations.get(str(name)) if isinstance(name, Symbol) else None
    if computation is None:
        raise UnimplementedError(f"a custom call of {str(name)[:60]}, which is not a function with known sizes")
    return computation


class _Versions(dict[int, str]):
    def __missing__(self, number: int) -> str:
        raise InvalidArgumentError(f"custom calls have no api_version {number}")


_VERSIONS = _Versions({
    0: "API_VERSION_UNSPECIFIED", 1: "API_VERSION_ORIGINAL", 2: "API_VERSION_STATUS_RETURNING",
    3: "API_VERSION_STATUS_RETURNING_UNIFIED", 4: "API_VERSION_TYPED_FFI",
})  # fmt: skip
_SCHEDULES = {1: "SCHEDULE_LATEST", 2: "SCHEDULE_EARLIEST"}


def _config(op: Operation) -> str:
    """Return the text of the options, as written."""
    for name in ("mhlo.backend_config", "backend_config"):
        value = op.attributes.get(name)
        if isinstance(value, Dictionary):
            return value.text
        if isinstance(value, str) and value:
            return value
    return ""


def _with_layouts(op: Operation, shapes: list[Shape], layouts: list[Any]) -> list[Shape]:
    """Return shapes with layouts, which are written with the minor dimension first."""
    flat = shapes[0].elements if len(shapes) == 1 and shapes[0].is_tuple else tuple(shapes)
    if len(flat) != len(layouts):
        raise InvalidArgumentError(f"{op.name} has {len(layouts)} layouts for {len(flat)} values")
    laid_out = []
    for shape, layout in zip(flat, layouts, strict=True):
        order = ints(layout, "a layout") if isinstance(layout, (Dense, tuple, list)) else ()
        if not shape.is_array or not shape.rank:
            laid_out.append(shape)
            continue
        if sorted(order) != list(range(shape.rank)):
            raise InvalidArgumentError(f"{op.name}: {list(order)} is not a layout of {shape}")
        laid_out.append(shape.with_layout(Layout(order)))
    return [Shape.tuple(laid_out)] if len(shapes) == 1 and shapes[0].is_tuple else laid_out


def _aliases(op: Operation) -> tuple[Alias, ...]:
    aliases = []
    for record in op.attributes.get("output_operand_aliases", ()):
        if not isinstance(record, Record):
            raise InvalidArgumentError(f"{op.name}: an alias is to be an output_operand_alias")
        parts = [ints(record.fields.get(k, ()), k) for k in ("output_tuple_indices", "operand_tuple_indices")]
        aliases.append(Alias(parts[0], field_int(record.fields, "operand_index"), parts[1]))
    return tuple(aliases)


def _identity(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Return the operands without those that are sizes of results; on one device, shardings have no effect."""
    xs, sizes = _shape_operands(op, xs)
    for x, dims in zip(xs, map(c.constant_value, sizes), strict=False):
        if dims is not None and not x.shape.is_dynamic and tuple(dims.ravel().tolist()) != x.shape.dims:
            raise ShapeError(f"{op.name} of {x.shape} states the sizes {dims.ravel().tolist()}")
    if len(xs) != len(op.results) or not all(fits(x.shape, r.type) for x, r in zip(xs, op.results, strict=True)):
        raise UnimplementedError(
            f"{op.attributes.get('call_target_name', op.name)} to another shape needs more devices"
        )
    return xs


def _approximate_top_k(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Lower ApproxTopK exactly: sort by the comparator, and take the first elements."""
    names = op.attributes.get("called_computations", ())
    config = op.attributes.get("mhlo.backend_config", op.attributes.get("backend_config"))
    xs, results = _split_shape_operands(c, op, xs)
    n = len(xs) // 2
    if len(names) != 1 or not isinstance(config, Dictionary) or not n:
        raise UnimplementedError("ApproxTopK without a comparator or options")
    axis = field_int(config, "reduction_dim", -1) % max(xs[0].shape.rank, 1)
    if not results or not results[0].is_array or results[0].rank <= axis:
        raise InvalidArgumentError(f"ApproxTopK returns arrays with a dimension {axis}")
    attrs = {"dimensions": (axis,), "is_stable": True}
    elements = c.tuple_elements(c.builder.call("sort", xs[:n], [_callee(c, names[0])], attrs), n)
    size = results[0].dims[axis]
    return [xla.slice_in_dim(x, 0, size, 1, axis) for x in elements]


def _top_k(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    config = op.attributes.get("mhlo.attributes", {})
    k, largest = config.get("k"), config.get("largest", True)
    if len(xs) != 1 or not isinstance(k, int):
        raise UnimplementedError("mhlo.topk without its k")
    return c.tuple_elements(c.builder.add("topk", xs, {"k": k, "largest": bool(largest)}), 2)


def _dynamic_top_k(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    if len(xs) != 2:
        raise InvalidArgumentError(f"{op.attributes['call_target_name']} has {len(xs)} operands")
    return c.tuple_elements(xla.topk(xs[0], c.constant_int(xs[1], "k of a top-k")), 2)


def _dynamic_reduce_window(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Lower the operands: arrays, initial values, then window, strides, dilations of both sides and padding."""
    n = (len(xs) - 5) // 2
    names = op.attributes.get("called_computations", ())
    if n < 1 or len(xs) != 2 * n + 5 or len(names) != 1:
        raise InvalidArgumentError(f"{op.attributes['call_target_name']} has {len(xs)} operands")
    sizes, strides, base, dilation, padding = (c.constant_ints(x, "a window") for x in xs[2 * n :])
    lists = (sizes, strides, padding[::2], padding[1::2], dilation, base)
    if len({len(part) for part in lists}) != 1:
        raise ShapeError(f"the operands of a window are for {', '.join(str(len(part)) for part in lists)} dimensions")
    window = tuple(WindowDim(*part) for part in zip(*lists, strict=True))
    return c.tuple_elements(c.builder.call("reduce-window", xs[: 2 * n], [_callee(c, names[0])], {"window": window}), n)


def _dynamic_rng_bit_generator(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    if len(xs) != 2:
        raise InvalidArgumentError(f"{op.attributes['call_target_name']} has {len(xs)} operands")
    stated = c.stated(op, 1)
    shape = Shape.array(stated.dtype, c.constant_ints(xs[1], "the number of random bits"))
    return c.tuple_elements(xla.rng_bit_generator(xs[0], shape, ALGORITHMS[keyword(op, "rng_algorithm", "DEFAULT")]), 2)


def _shape_assertion(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Check an exporter's assertion about dynamic sizes, which are known here."""
    if not xs or xs[0].shape.logical is not PRED_SCALAR:
        found = xs[0].shape if xs else "nothing"
        raise InvalidArgumentError(f"{op.name} @shape_assertion asserts {found}, not a tensor<i1>")
    values = [c.constant_value(x) for x in xs]
    if any(v is None for v in values):
        raise UnknownSizeError("an assertion about shapes depends on values of the arguments")
    if not bool(values[0]):
        message = str(op.attributes.get("error_message", "an assertion about shapes does not hold"))
        for k, value in enumerate(values[1:]):
            message = message.replace(f"{{{k}}}", str(value))
        raise ShapeError(message[:2000])
    return []


def _elementwise(opcode: str) -> Handler:
    def run(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
        return c.builder.add(opcode, xs)

    return run


_TARGETS: dict[str, Handler] = {
    "Sharding": _identity, "SPMDFullToShardShape": _identity, "SPMDShardToFullShape": _identity,
    "ApproxTopK": _approximate_top_k, "mhlo.topk": _top_k, "shape_assertion": _shape_assertion,
    "stablehlo.dynamic_top_k": _dynamic_top_k, "stablehlo.dynamic_reduce_window": _dynamic_reduce_window,
    "stablehlo.dynamic_rng_bit_generator": _dynamic_rng_bit_generator,
    **{f"mhlo.{name}": _elementwise(name) for name in (
        "tan", "mulhi", *(row.name for row in OPCODES.values() if row.dialect == "chlo"),
    )},
}  # fmt: skip


# Order and tokens


@handles("optimization_barrier")
def _barrier(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    if not xs:
        return []
    result = xla.opt_barrier(c.tuple_or_single(xs))
    return [result] if len(xs) == 1 else c.tuple_elements(result, len(xs))


@handles("after_all", "create_token")
def _after_all(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return xla.after_all(c.builder, xs)


@handles("infeed", least=1)
def _infeed(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    data = [c.stated_statically(op, k) for k in range(len(op.results) - 1)]
    shape = Shape.tuple(data)
    result = xla.infeed(xs[-1], shape, keyword(op, "infeed_config", ""))
    elements = c.tuple_elements(result, 2)
    return [*c.tuple_elements(elements[0], len(data)), elements[1]]


@handles("outfeed", least=1)
def _outfeed(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    data = xla.tuple_(c.builder, xs[:-1])
    return xla.outfeed(data, xs[-1], config=keyword(op, "outfeed_config", ""))


@handles("send", least=1)
def _send(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    host = flag(op, "is_host_transfer")
    data = c.tuple_or_single(xs[:-1])
    return xla.send_done(xla.send(data, xs[-1], channel_of(op), host), channel_of(op), host)


@handles("recv", least=1)
def _recv(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    host = flag(op, "is_host_transfer")
    data = [c.stated_statically(op, k) for k in range(len(op.results) - 1)]
    shape = data[0] if len(data) == 1 else Shape.tuple(data)
    elements = c.tuple_elements(xla.recv_done(xla.recv(xs[-1], shape, channel_of(op), host), channel_of(op), host), 2)
    return [*([elements[0]] if len(data) == 1 else c.tuple_elements(elements[0], len(data))), elements[1]]


@handles("trace")
def _trace(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return []


# Shardings of one device


@handles("sharding_constraint", "reshard")
def _sharding_constraint(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return xs


@handles("manual_computation")
def _manual_computation(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Lower the region; on one device each part is the whole."""
    region = only_region(op)
    if len(region.arguments) != len(xs) or any(
        a.type is not x.shape for a, x in zip(region.arguments, xs, strict=True)
    ):
        raise UnimplementedError(f"{op.name} over more than one device")
    c.values.update(zip(region.arguments, xs, strict=True))
    return c.run(region)
