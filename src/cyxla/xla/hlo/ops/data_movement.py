"""Opcodes that create arrays or move elements."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.errors import DTypeError
from cyxla.types import UNBOUNDED, Shape
from cyxla.xla.hlo.opcode import NUMBER, VARIADIC, Site, opcode, opt, req
from cyxla.xla.hlo.ops.checks import (
    S32_0,
    U32_0,
    agree,
    arrays,
    distinct,
    in_range,
    is_integer_scalar,
    merged_dim,
    same_dtype,
    same_value,
    stated,
)
from cyxla.xla.hlo.ops.window import padded


@opcode("parameter", 0, attrs=(req("parameter_number", "int"),))
def parameter(site: Site) -> Shape:
    """(C1) the shape is stated; (C2) parameter_number >= 0."""
    number = site.attrs["parameter_number"]
    site.require(number >= 0, "C2", f"parameter number {number} is negative")
    return stated(site, "C1", array=False)


@opcode("constant", 0, attrs=(req("literal", "literal"),), xla="ConstantLiteral")
def constant(site: Site) -> Shape:
    """(C1) a stated shape is that of the literal."""
    shape: Shape = site.attrs["literal"].shape.logical
    if site.declared is not None:
        site.require(
            same_value(site.declared, shape),
            "C1",
            f"the literal is {shape}, but the result is stated as {site.declared}",
        )
        return site.declared
    return shape


@opcode("iota", 0, attrs=(req("iota_dimension", "int"),), movement=True)
def iota(site: Site) -> Shape:
    """(C1) the result is a stated array; (C2) of numbers; (C3) 0 <= iota_dimension < rank."""
    shape = stated(site, "C1")
    site.require(shape.dtype in NUMBER, "C2", f"no iota of {shape.dtype}", DTypeError)
    in_range(site, "C3", "iota_dimension", site.attrs["iota_dimension"], shape.rank)
    return shape


@opcode("broadcast", 1, attrs=(opt("dimensions", "dims", ()),), movement=True)
def broadcast(site: Site) -> Shape:
    """The stated result; the operand is repeated along its other dimensions.

    (C1) an array; (C2) the result is a stated array; (C3) of the same element type; (C4) one entry of dimensions for
    each dimension of the operand; (C5) each a different dimension of the result; (C6) of the same size.
    """
    arrays(site)
    operand, result, dims = site.operands[0], stated(site, "C2"), site.attrs["dimensions"]
    same_dtype(site, "C3", (operand, result))
    site.require(len(dims) == operand.rank, "C4", f"{len(dims)} dimensions for an operand of rank {operand.rank}")
    distinct(site, "C5", "dimensions", dims, result.rank)
    for i, d in enumerate(dims):
        fits = agree(operand.dims[i], result.dims[d])
        site.require(
            fits, "C6", f"dimension {i} has size {operand.dims[i]}, dimension {d} of the result {result.dims[d]}"
        )
    return result


@opcode("reshape", 1, attrs=(opt("inferred_dimension", "int"),))
def reshape(site: Site) -> Shape:
    """(C1) an array; (C2) the result is a stated array; (C3) of the same element type; (C4) and number of elements."""
    arrays(site)
    operand, result = site.operands[0], stated(site, "C2")
    same_dtype(site, "C3", (operand, result))
    if UNBOUNDED not in operand.dims + result.dims:
        site.require(
            operand.size == result.size, "C4", f"{operand.size} elements cannot become {result} of {result.size}"
        )
    return result


@opcode("dynamic-reshape", (1, None))
def dynamic_reshape(site: Site) -> Shape:
    """The stated result, whose sizes are dynamic.

    (C1) operand 0 is an array; (C2) the result is a stated array; (C3) of the same element type; (C4) the other
    operands are one s32 scalar for each dimension of the result; (C5) the (maximal) number of elements is the same.
    """
    arrays(site)
    (operand, *sizes), result = site.operands, stated(site, "C2")
    same_dtype(site, "C3", (operand, result))
    fits = len(sizes) == result.rank and all(s is S32_0 for s in sizes)
    site.require(fits, "C4", f"sizes must be {result.rank} s32 scalars")
    bounded = UNBOUNDED not in operand.dims + result.dims
    site.require(not bounded or operand.size == result.size, "C5", f"{operand.size} elements cannot become {result}")
    return result


@opcode("bitcast", 1)
def bitcast(site: Site) -> Shape:
    """(C1) an array; (C2) the result is a stated array; (C3) of as many bits."""
    arrays(site)
    operand, result = site.operands[0], stated(site, "C2")
    had, gets = operand.size * operand.dtype.bits, result.size * result.dtype.bits
    site.require(had == gets, "C3", f"{had} bits cannot become {result} of {gets} bits")
    return result


@opcode("bitcast-convert", 1, xla="BitcastConvertType")
def bitcast_convert(site: Site) -> Shape:
    """The operand's bits as elements of the stated type.

    (C1) an array; (C2) the result is a stated array; (C3) both or none are complex; (C4) a wider operand gives a new
    last dimension of the ratio of the widths, a narrower one has such a dimension, which is removed.
    """
    arrays(site)
    operand, result = site.operands[0], stated(site, "C2")
    had, gets = operand.dtype, result.dtype
    site.require(had.is_complex == gets.is_complex, "C3", f"{had} and {gets} share no bits", DTypeError)
    if had.bits == gets.bits:
        return operand.with_dtype(gets)
    if had.bits > gets.bits:
        ratio, rest = divmod(had.bits, gets.bits)
        site.require(rest == 0, "C4", f"{had.bits} bits are not a multiple of {gets.bits}", DTypeError)
        return Shape.array(gets, (*operand.dims, ratio), dynamic=(*operand.dynamic, False))
    ratio, rest = divmod(gets.bits, had.bits)
    fits = rest == 0 and operand.rank > 0 and agree(operand.dims[-1], ratio)
    site.require(
        fits, "C4", f"{gets} needs {gets.bits / had.bits:g} elements of {had} along the last dimension of {operand}"
    )
    return Shape.array(gets, operand.dims[:-1], dynamic=operand.dynamic[:-1])


@opcode("transpose", 1, attrs=(req("dimensions", "dims"),), movement=True)
def transpose(site: Site) -> Shape:
    """(C1) an array; (C2) dimensions is a permutation of 0..rank - 1."""
    arrays(site)
    operand, order = site.operands[0], site.attrs["dimensions"]
    site.require(
        sorted(order) == list(range(operand.rank)),
        "C2",
        f"{list(order)} is not a permutation of {operand.rank} dimensions",
    )
    return operand.with_dims([operand.dims[d] for d in order], [operand.dynamic[d] for d in order])


@opcode("reverse", 1, attrs=(req("dimensions", "dims"),), xla="Rev", movement=True)
def reverse(site: Site) -> Shape:
    """(C1) an array; (C2) dimensions are different dimensions of it."""
    arrays(site)
    distinct(site, "C2", "dimensions", site.attrs["dimensions"], site.operands[0].rank)
    return site.operands[0]


@opcode("slice", 1, attrs=(req("slice", "slice"),), movement=True)
def slice_(site: Site) -> Shape:
    """(C1) an array; (C2) one range for each dimension; (C3) 0 <= start <= limit <= size; (C4) stride >= 1."""
    arrays(site)
    operand, ranges = site.operands[0], site.attrs["slice"]
    site.require(len(ranges) == operand.rank, "C2", f"{len(ranges)} ranges for rank {operand.rank}")
    dims, dynamic = [], []
    for axis, (start, limit, stride) in enumerate(ranges):
        size = operand.dims[axis]
        inside = 0 <= start <= limit and (limit <= size or size == UNBOUNDED)
        site.require(inside, "C3", f"range {start}:{limit} leaves dimension {axis} of size {size}")
        site.require(stride >= 1, "C4", f"stride {stride} of dimension {axis} is not positive")
        dims.append(-((start - limit) // stride))
        dynamic.append(operand.dynamic[axis] and (start, limit, stride) == (0, size, 1))
    return operand.with_dims(dims, dynamic)


@opcode("pad", 2, attrs=(req("padding", "padding"),), movement=True)
def pad(site: Site) -> Shape:
    """The operand with padding around and between its elements.

    (C1) the operands are arrays; (C2) the second a scalar; (C3) of the same element type; (C4) one entry of padding for
    each dimension; (C5) interior >= 0; (C6) no size becomes negative.
    """
    arrays(site)
    (operand, value), padding = site.operands, site.attrs["padding"]
    site.require(value.is_scalar, "C2", f"the padding value is {value}, not a scalar")
    same_dtype(site, "C3", (operand, value))
    site.require(len(padding) == operand.rank, "C4", f"{len(padding)} paddings for rank {operand.rank}")
    dims = []
    for axis, (size, (low, high, interior)) in enumerate(zip(operand.dims, padding, strict=True)):
        site.require(interior >= 0, "C5", f"interior padding {interior} of dimension {axis} is negative")
        dims.append(padded(size, low, high, interior + 1))
        site.require(
            dims[-1] >= 0 or size == UNBOUNDED,
            "C6",
            f"padding {low}_{high}_{interior} makes dimension {axis} of {size} negative",
        )
    return operand.with_dims(dims, operand.dynamic)


@opcode("concatenate", (1, None), attrs=(req("dimensions", "dims"),), xla="ConcatInDim", movement=True)
def concatenate(site: Site) -> Shape:
    """The operands one after another.

    (C1) the operands are arrays; (C2) dimensions names one dimension of them; (C3) their element types are equal; (C4)
    so are their sizes, except along that dimension.
    """
    arrays(site)
    first, dims = site.operands[0], site.attrs["dimensions"]
    site.require(len(dims) == 1, "C2", f"dimensions {list(dims)} must name one dimension")
    along = dims[0]
    in_range(site, "C2", "dimension", along, first.rank)
    same_dtype(site, "C3", site.operands)
    for i, s in enumerate(site.operands):
        site.require(s.rank == first.rank, "C4", f"operand {i} has rank {s.rank}, operand 0 rank {first.rank}")
    axes = [_joined_dim(site, axis, axis == along) for axis in range(first.rank)]
    return first.with_dims([a[0] for a in axes], [a[1] for a in axes])


def _joined_dim(site: Site, axis: int, along: bool) -> tuple[int, bool]:
    sizes = [(s.dims[axis], s.dynamic[axis]) for s in site.operands]
    if along:
        unknown = any(n == UNBOUNDED for n, _ in sizes)
        return UNBOUNDED if unknown else sum(n for n, _ in sizes), any(m for _, m in sizes)
    merged = sizes[0]
    for other in sizes[1:]:
        merged = merged_dim(site, "C4", axis, merged, other)
    return merged


@opcode("dynamic-slice", (1, None), attrs=(req("dynamic_slice_sizes", "dims"),), movement=True)
def dynamic_slice(site: Site) -> Shape:
    """A slice of the operand of the given sizes.

    (C1) the operands are arrays; (C2) one start index for each dimension, all integer scalars of one type, or one
    vector of them; (C3) one size for each dimension; (C4) 0 <= size <= that of the operand.
    """
    arrays(site)
    operand, sizes = site.operands[0], site.attrs["dynamic_slice_sizes"]
    _start_indices(site, operand.rank, site.operands[1:])
    site.require(len(sizes) == operand.rank, "C3", f"{len(sizes)} slice sizes for rank {operand.rank}")
    _sizes_fit(site, sizes, operand)
    return operand.with_dims(
        sizes, [m and n == d for m, n, d in zip(operand.dynamic, sizes, operand.dims, strict=True)]
    )


@opcode("dynamic-update-slice", (2, None))
def dynamic_update_slice(site: Site) -> Shape:
    """The operand with a slice replaced.

    (C1) the operands are arrays; (C2) start indices as in dynamic-slice; (C3) the update has the operand's rank; (C4)
    and no dimension larger than the operand's; (C5) and the operand's element type.
    """
    arrays(site)
    operand, update = site.operands[:2]
    _start_indices(site, operand.rank, site.operands[2:])
    site.require(update.rank == operand.rank, "C3", f"the update has rank {update.rank}, the operand {operand.rank}")
    _sizes_fit(site, update.dims, operand)
    same_dtype(site, "C5", (operand, update))
    return operand


def _start_indices(site: Site, rank: int, indices: Sequence[Shape]) -> None:
    if len(indices) == 1 and indices[0].rank == 1:
        fits = indices[0].dtype.is_integer and agree(indices[0].dims[0], rank)
        site.require(fits, "C2", f"start indices are {indices[0]}, but must be {rank} integers")
        return
    site.require(len(indices) == rank, "C2", f"{len(indices)} start indices for rank {rank}")
    for i in indices:
        site.require(
            is_integer_scalar(i) and i is indices[0], "C2", f"start index {i} is not an integer scalar like the others"
        )


def _sizes_fit(site: Site, sizes: Sequence[int], operand: Shape) -> None:
    for axis, (n, size) in enumerate(zip(sizes, operand.dims, strict=True)):
        fits = UNBOUNDED in (n, size) or 0 <= n <= size
        site.require(fits, "C4", f"a slice of {n} does not fit dimension {axis} of size {size}")


@opcode("tuple", VARIADIC)
def tuple_(site: Site) -> Shape:
    """No constraint."""
    return Shape.tuple(site.operands)


@opcode("get-tuple-element", 1, attrs=(req("index", "int"),))
def get_tuple_element(site: Site) -> Shape:
    """(C1) a tuple; (C2) 0 <= index < its length."""
    operand, index = site.operands[0], site.attrs["index"]
    site.require(operand.is_tuple, "C1", f"{operand} is not a tuple")
    site.require(0 <= index < len(operand.elements), "C2", f"index {index} of a tuple of {len(operand.elements)}")
    return operand.subshape((index,))


@opcode("get-dimension-size", 1, attrs=(req("dimensions", "dims"),), movement=True)
def get_dimension_size(site: Site) -> Shape:
    """(C1) an array; (C2) dimensions names one dimension of it. The result is an s32 scalar."""
    arrays(site)
    _only_dimension(site)
    return S32_0


@opcode("set-dimension-size", 2, attrs=(req("dimensions", "dims"),))
def set_dimension_size(site: Site) -> Shape:
    """(C1) the operands are arrays; (C2) dimensions names one dimension of the first; (C3) the size is s32[]."""
    arrays(site)
    axis, operand = _only_dimension(site), site.operands[0]
    site.require(site.operands[1] is S32_0, "C3", f"the size is {site.operands[1]} instead of s32[]")
    return operand.with_dims(operand.dims, [flags or i == axis for i, flags in enumerate(operand.dynamic)])


def _only_dimension(site: Site) -> int:
    dims = site.attrs["dimensions"]
    site.require(len(dims) == 1, "C2", f"dimensions {list(dims)} must name one dimension")
    in_range(site, "C2", "dimension", dims[0], site.operands[0].rank)
    return int(dims[0])


def _same(site: Site) -> Shape:
    """No constraint: the result is the operand."""
    return site.operands[0]


opcode("copy", 1, attrs=(opt("cross_program_prefetch_index", "int"),), rule=_same)
opcode("opt-barrier", 1, rule=_same, xla="OptimizationBarrier")


@opcode("copy-start", 1, attrs=(opt("cross_program_prefetch_index", "int"),))
def copy_start(site: Site) -> Shape:
    """(C1) an array. The result is (destination, source, context)."""
    arrays(site)
    return Shape.tuple([site.operands[0], site.operands[0], U32_0])


@opcode("copy-done", 1)
def copy_done(site: Site) -> Shape:
    """(C1) the result of copy-start: two equal arrays and a context."""
    operand = site.operands[0]
    fits = len(operand.elements) == 3 and same_value(operand.elements[0], operand.elements[1])
    site.require(fits, "C1", f"{operand} is not the result of a copy-start")
    return operand.elements[0]
