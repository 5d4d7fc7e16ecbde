"""Operations that apply a region to elements."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.types import Shape
from cyxla.xla.hlo import Computation
from cyxla.xla.hlo.attributes import Window, WindowDim
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.stablehlo.context import Context
from cyxla.xla.stablehlo.data_movement import dim_lists, dimension_numbers
from cyxla.xla.stablehlo.elementwise import BINARY
from cyxla.xla.stablehlo.registry import Results, field_int, flag, handles, int_list, integer, pairs
from cyxla.xla.stablehlo.syntax import Operation, Region


def only_region(op: Operation, index: int = 0) -> Region:
    """Return a region that must exist."""
    if index >= len(op.regions):
        raise InvalidArgumentError(f"{op.name} needs {index + 1} regions, it has {len(op.regions)}")
    return op.regions[index]


def scalars(xs: Sequence[XlaOp]) -> list[Shape]:
    """Return the shapes of single elements."""
    return [Shape.array(x.shape.dtype) for x in xs]


def split_operands(op: Operation, xs: list[XlaOp]) -> tuple[list[XlaOp], list[XlaOp]]:
    """Return arrays, and the same number of initial values."""
    n = len(xs) // 2
    if not n or len(xs) != 2 * n:
        raise InvalidArgumentError(
            f"{op.name} has {len(xs)} operands, which cannot be divided into arrays and initial values"
        )
    return xs[:n], xs[n:]


def _combiner(c: Context, op: Operation, xs: Sequence[XlaOp], inits: Sequence[XlaOp]) -> Computation:
    """Return the computation that combines two elements."""
    name = str(op.attributes["applies"]) if "applies" in op.attributes else ""
    if not name:
        shapes = [Shape.array(a.type.dtype) for a in only_region(op).arguments]
        return c.embed(only_region(op), shapes if len(shapes) == 2 * len(xs) else scalars([*inits, *xs]), op.kind)
    opcode = BINARY.get(name.partition(".")[2])
    if opcode is None or len(xs) != 1:
        raise UnimplementedError(f"{op.name} applies {name[:60]}")
    return c.builder._import(scalar_computation(opcode, inits[0].shape.dtype))


@handles("reduce")
def _reduce(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arrays, inits = split_operands(op, xs)
    combiner = _combiner(c, op, arrays, inits)
    result = c.builder.call("reduce", xs, [combiner], {"dimensions": int_list(op, "dimensions")})
    return c.tuple_elements(result, len(arrays))


def window_of(op: Operation, rank: int) -> Window:
    """Return the window of an operation on arrays of a rank."""
    ones = [1] * rank
    names = ("window_strides", "window_dilations", "base_dilations")
    sizes, lists = int_list(op, "window_dimensions"), [int_list(op, k, ones) for k in names]
    padding = pairs(op, "padding", rank)
    if {len(sizes), *map(len, lists)} != {rank}:
        raise ShapeError(f"the window of {op.name} does not have {rank} dimensions")
    return tuple(
        WindowDim(size, stride, low, high, dilation, base)
        for size, stride, dilation, base, (low, high) in zip(sizes, *lists, padding, strict=True)
    )


@handles("reduce_window")
def _reduce_window(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arrays, inits = split_operands(op, xs)
    window = window_of(op, arrays[0].shape.rank)
    combiner = _combiner(c, op, arrays, inits)
    return c.tuple_elements(c.builder.call("reduce-window", xs, [combiner], {"window": window}), len(arrays))


@handles("select_and_scatter")
def _select_and_scatter(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    if len(xs) != 3:
        raise InvalidArgumentError(f"{op.name} takes 3 operands, not {len(xs)}")
    element = scalars([xs[0]] * 2)
    called = [c.embed(only_region(op, k), element, name) for k, name in enumerate(("select", "scatter"))]
    return c.builder.call("select-and-scatter", xs, called, {"window": window_of(op, xs[0].shape.rank)})


@handles("map", least=1)
def _map(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    called = c.embed(only_region(op), scalars(xs), "map")
    dimensions = int_list(op, "dimensions", range(xs[0].shape.rank) if xs else ())
    return c.builder.call("map", xs, [called], {"dimensions": dimensions})


@handles("sort", least=1)
def _sort(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    called = c.embed(only_region(op), [s for x in xs for s in scalars([x] * 2)], "compare")
    dimension = integer(op, "dimension", -1)
    if dimension < 0 and xs:
        dimension += xs[0].shape.rank
    attrs = {"dimensions": (dimension,), "is_stable": flag(op, "is_stable")}
    return c.tuple_elements(c.builder.call("sort", xs, [called], attrs), len(xs))


_SCATTER = (
    "update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims",
)  # fmt: skip


@handles("scatter")
def _scatter(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    n = len(xs) // 2
    if not n or len(xs) != 2 * n + 1:
        raise InvalidArgumentError(
            f"{op.name} has {len(xs)} operands, which cannot be divided into arrays, indices and updates"
        )
    name = "scatter_dimension_numbers"
    fields = dimension_numbers(op, name)
    called = c.embed(only_region(op), scalars([*xs[:n], *xs[:n]]), "scatter")
    attrs = {
        **dim_lists(fields, _SCATTER), "index_vector_dim": field_int(fields, "index_vector_dim"),
        "indices_are_sorted": flag(op, "indices_are_sorted"), "unique_indices": flag(op, "unique_indices"),
    }  # fmt: skip
    return c.tuple_elements(c.builder.call("scatter", xs, [called], attrs), n)


@handles("topk")
def _topk(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Lower ``mhlo.topk``."""
    return c.tuple_elements(c.builder.add("topk", xs, {"k": integer(op, "k"), "largest": flag(op, "largest", True)}), 2)
