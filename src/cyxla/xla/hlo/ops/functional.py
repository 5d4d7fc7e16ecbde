"""Opcodes that apply a computation to elements: map, reductions, scan, sort."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.opcode import PRED, REAL, Site, opcode, opt, req
from cyxla.xla.hlo.ops.checks import (
    PRED0,
    agree,
    arrays,
    distinct,
    in_range,
    merged_dims,
    same_but_precision,
    same_dtype,
    same_value,
    scalar_function,
    signature,
    tuple_or_single,
)
from cyxla.xla.hlo.ops.window import check_window, window_count


@opcode("map", (1, None), calls=("to_apply",), attrs=(req("dimensions", "dims"),))
def map_(site: Site) -> Shape:
    """The operands' sizes and the element type of the result of to_apply.

    (C1) the operands are arrays; (C2) of the same sizes; (C3) dimensions is 0..rank - 1; (C4) to_apply takes one scalar
    of each operand's element type and returns one.
    """
    arrays(site)
    dims, dynamic = merged_dims(site, "C2", site.operands)
    dimensions = site.attrs["dimensions"]
    site.require(
        tuple(dimensions) == tuple(range(len(dims))),
        "C3",
        f"dimensions {list(dimensions)} must be all {len(dims)} in order",
    )
    results = scalar_function(site, "C4", site.called[0], [s.dtype for s in site.operands], "to_apply")
    site.require(len(results) == 1, "C4", f"to_apply {site.called[0].name} returns {len(results)} values")
    return Shape.array(results[0].dtype, dims, dynamic=dynamic)


@opcode("reduce", (2, None), calls=("to_apply",), attrs=(req("dimensions", "dims"),))
def reduce(site: Site) -> Shape:
    """The arrays without `dimensions`, or a tuple of several.

    (C1) the operands are n arrays and n initial values; (C2) arrays of the same sizes; (C3) scalars of the arrays'
    element types; (C4) dimensions are different dimensions of the arrays; (C5) to_apply takes n accumulators, then n
    elements, and returns n accumulators.
    """
    inputs, inits = _inputs_and_inits(site)
    sizes, flags = merged_dims(site, "C2", inputs)
    reduced = site.attrs["dimensions"]
    distinct(site, "C4", "dimensions", reduced, len(sizes))
    dtypes = _reducer(site, "C5", inputs, inits)
    kept_dims = [d for d in range(len(sizes)) if d not in reduced]
    dims, dynamic = [sizes[d] for d in kept_dims], [flags[d] for d in kept_dims] if flags else []
    return tuple_or_single([Shape.array(t, dims, dynamic=dynamic) for t in dtypes])


@opcode("reduce-window", (2, None), calls=("to_apply",), attrs=(opt("window", "window", ()),), many_steps=True)
def reduce_window(site: Site) -> Shape:
    """One element for each window position, or a tuple of several such arrays.

    (C1) the operands are n arrays and n initial values; (C2) arrays of the same sizes; (C3) scalars of the arrays'
    element types; (C4) window has an entry for each dimension, its sizes, stride and dilations at least 1; (C5)
    to_apply takes n accumulators, then n elements, and returns n accumulators.
    """
    inputs, inits = _inputs_and_inits(site)
    sizes, flags = merged_dims(site, "C2", inputs)
    window = site.attrs["window"]
    check_window(site, "C4", window, len(sizes))
    dtypes = _reducer(site, "C5", inputs, inits)
    dims = [window_count(n, w) for n, w in zip(sizes, window, strict=True)]
    return tuple_or_single([Shape.array(t, dims, dynamic=flags) for t in dtypes])


def _inputs_and_inits(site: Site) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    n, rest = divmod(len(site.operands), 2)
    site.require(rest == 0, "C1", f"{len(site.operands)} operands are not as many arrays as initial values")
    arrays(site)
    inputs, inits = site.operands[:n], site.operands[n:]
    for i, (x, init) in enumerate(zip(inputs, inits, strict=True)):
        fits = init.is_scalar and same_but_precision(x.dtype, init.dtype)
        site.require(fits, "C3", f"initial value {i} is {init}, but must be a scalar {x.dtype}")
    return inputs, inits


def _reducer(site: Site, label: str, inputs: Sequence[Shape], inits: Sequence[Shape]) -> list[ElementType]:
    """Check the computation of a reduction, and return the element types of its results."""
    dtypes = [s.dtype for s in (*inits, *inputs)]
    results = scalar_function(site, label, site.called[0], dtypes, "to_apply")
    fits = len(results) == len(inits) and all(
        same_but_precision(r.dtype, i.dtype) for r, i in zip(results, inits, strict=True)
    )
    site.require(fits, label, f"to_apply {site.called[0].name} returns {', '.join(map(str, results))}")
    return [r.dtype for r in results]


@opcode("select-and-scatter", 3, calls=("select", "scatter"), attrs=(opt("window", "window", ()),), many_steps=True)
def select_and_scatter(site: Site) -> Shape:
    """The operand.

    (C1) the operands are arrays; (C2) operand, source and initial value have one element type; (C3) window has an entry
    for each dimension, its sizes, stride and dilations at least 1; (C4) source has one element for each window
    position; (C5) the initial value is a scalar; (C6) select takes two scalars and returns a pred; (C7) scatter takes
    two and returns one.
    """
    arrays(site)
    operand, source, init = site.operands
    same_dtype(site, "C2", site.operands)
    window = site.attrs["window"]
    check_window(site, "C3", window, operand.rank)
    positions = [window_count(n, w) for n, w in zip(operand.dims, window, strict=True)]
    fits = source.rank == operand.rank and all(map(agree, source.dims, positions))
    site.require(fits, "C4", f"source is {source}, but the window has {positions} positions")
    site.require(init.is_scalar, "C5", f"the initial value is {init}, not a scalar")
    picked = scalar_function(site, "C6", site.called[0], [operand.dtype] * 2, "select")
    site.require(
        picked == (PRED0,),
        "C6",
        f"select {site.called[0].name} returns {', '.join(map(str, picked))} instead of pred[]",
    )
    summed = scalar_function(site, "C7", site.called[1], [operand.dtype] * 2, "scatter")
    fits = len(summed) == 1 and same_but_precision(summed[0].dtype, operand.dtype)
    site.require(fits, "C7", f"scatter {site.called[1].name} returns {', '.join(map(str, summed))}")
    return operand


_SCAN = (
    req("dimensions", "dims"),
    req("num_carries", "int"),
    opt("is_reverse", "bool", False),
    opt("is_associative", "tristate", False),
)


@opcode("scan", (1, None), calls=("to_apply",), attrs=_SCAN)
def scan(site: Site) -> Shape:
    """The stacked results, then the final carries.

    (C1) the operands are arrays; (C2) 0 <= num_carries <= their number; (C3) dimensions names one dimension; (C4) all
    scanned arrays have it, with one size; (C5) to_apply takes slices of the scanned arrays, then the carries; (C6) and
    returns slices of the results, then the carries; (C7) without a scanned array the results must be stated.
    """
    arrays(site)
    n, dims = site.attrs["num_carries"], site.attrs["dimensions"]
    site.require(0 <= n <= len(site.operands), "C2", f"num_carries {n} for {len(site.operands)} operands")
    site.require(len(dims) == 1 and dims[0] >= 0, "C3", f"dimensions {list(dims)} must name one dimension")
    along, k = dims[0], len(site.operands) - n
    scanned, carries = site.operands[:k], site.operands[k:]
    for i, s in enumerate(scanned):
        fits = along < s.rank and agree(s.dims[along], scanned[0].dims[along])
        site.require(fits, "C4", f"operand {i} is {s}: dimension {along} must exist and have the size of operand 0's")
    root = signature(site, "C5", site.called[0], [*(_without(s, along) for s in scanned), *carries], "to_apply")
    results = root.elements if root.is_tuple else (root,)
    outs = results[: len(results) - n]
    fits = len(results) >= n and all(map(same_value, results[len(outs) :], carries))
    site.require(fits, "C6", f"to_apply {site.called[0].name} returns {root}, but must end in the carries")
    length = _scan_length(site, scanned, len(outs), along)
    for i, s in enumerate(outs):
        site.require(
            s.is_array and along <= s.rank,
            "C6",
            f"result {i} of to_apply is {s}: slices cannot be stacked along {along}",
        )
    flag = any(s.dynamic[along] for s in scanned)
    stacked = [
        s.with_dims((*s.dims[:along], length, *s.dims[along:]), (*s.dynamic[:along], flag, *s.dynamic[along:]))
        for s in outs
    ]
    shapes = [*stacked, *results[len(outs) :]]
    return Shape.tuple(shapes) if root.is_tuple else shapes[0]


def _without(shape: Shape, axis: int) -> Shape:
    return shape.with_dims(shape.dims[:axis] + shape.dims[axis + 1 :], shape.dynamic[:axis] + shape.dynamic[axis + 1 :])


def _scan_length(site: Site, scanned: Sequence[Shape], outs: int, along: int) -> int:
    if scanned or not outs:
        return scanned[0].dims[along] if scanned else 0
    parts = (site.declared.elements or (site.declared,)) if site.declared is not None else ()
    fits = bool(parts) and parts[0].is_array and along < parts[0].rank
    site.require(fits, "C7", "nothing is scanned: the result shapes must be given")
    return parts[0].dims[along]


@opcode(
    "sort",
    (1, None),
    calls=("to_apply",),
    attrs=(req("dimensions", "dims"), opt("is_stable", "bool", False)),
    many_steps=True,
)
def sort(site: Site) -> Shape:
    """The operand, or a tuple of several.

    (C1) the operands are arrays; (C2) of the same sizes; (C3) dimensions names one dimension of them; (C4) to_apply
    takes two scalars of each operand's element type and returns a pred.
    """
    arrays(site)
    merged_dims(site, "C2", site.operands)
    dims, rank = site.attrs["dimensions"], site.operands[0].rank
    site.require(len(dims) == 1, "C3", f"dimensions {list(dims)} must name one dimension")
    in_range(site, "C3", "dimension", dims[0], rank)
    dtypes = [s.dtype for s in site.operands for _ in range(2)]
    results = scalar_function(site, "C4", site.called[0], dtypes, "to_apply")
    site.require(
        results == (PRED0,),
        "C4",
        f"to_apply {site.called[0].name} returns {', '.join(map(str, results))} instead of pred[]",
    )
    return tuple_or_single(site.operands)


_TOPK = (req("k", "int"), opt("largest", "bool", True), opt("is_stable", "bool", False))


@opcode("topk", 1, accepts=REAL | PRED, attrs=_TOPK, xla="TopK")
def topk(site: Site) -> Shape:
    """(C1) an array of rank 1 or more; (C2) 0 <= k <= size of its last dimension."""
    arrays(site)
    operand, k = site.operands[0], site.attrs["k"]
    site.require(operand.rank >= 1, "C1", f"{operand} has no last dimension")
    last = operand.dims[-1]
    site.require(k >= 0 and (k <= last or last < 0), "C2", f"k is {k}, but the last dimension has {last} elements")
    values = operand.with_dims((*operand.dims[:-1], k), (*operand.dynamic[:-1], False))
    return Shape.tuple([values, values.with_dtype(ElementType.S32)])
