"""gather and scatter: slices at the indices in an array."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.errors import DTypeError
from cyxla.types import UNBOUNDED, Shape
from cyxla.xla.hlo.opcode import Site, opcode, opt, req
from cyxla.xla.hlo.ops.checks import (
    agree,
    arrays,
    ascending,
    distinct,
    merged_dims,
    same_but_precision,
    scalar_function,
    tuple_or_single,
)

# fmt: off
_GATHER = (
    req("offset_dims", "dims"), req("collapsed_slice_dims", "dims"), req("start_index_map", "dims"),
    opt("operand_batching_dims", "dims", ()), opt("start_indices_batching_dims", "dims", ()),
    req("index_vector_dim", "int"), req("slice_sizes", "dims"), opt("indices_are_sorted", "bool", False))
_SCATTER = (
    req("update_window_dims", "dims"), req("inserted_window_dims", "dims"), req("scatter_dims_to_operand_dims", "dims"),
    opt("input_batching_dims", "dims", ()), opt("scatter_indices_batching_dims", "dims", ()),
    req("index_vector_dim", "int"), opt("indices_are_sorted", "bool", False), opt("unique_indices", "bool", False))
# fmt: on


@opcode("gather", 2, attrs=_GATHER, movement=True)
def gather(site: Site) -> Shape:
    """One slice of the operand for each index vector.

    (C1) the operands are arrays; (C2) the indices integers; (C3) 0 <= index_vector_dim <= rank of the indices; (C4)
    start_index_map has one entry for each component of an index vector, all different dimensions of the operand; (C5)
    offset_dims ascend and are dimensions of the result; (C6) collapsed_slice_dims ascend and are dimensions of the
    operand; (C7) so are operand_batching_dims; (C8) no dimension is both collapsed and batching, or both batching and
    indexed; (C9) start_indices_batching_dims have as many entries, different dimensions of the indices without
    index_vector_dim, of the same sizes; (C10) slice_sizes has an entry for each dimension of the operand, none larger
    than it; (C11) collapsed and batching dimensions have slices of at most 1; (C12) offset_dims has one entry for each
    other dimension.
    """
    arrays(site)
    operand, indices = site.operands
    a = site.attrs
    lead = index_dims(site, indices, a["index_vector_dim"])
    offset_dims, collapsed, batching = a["offset_dims"], a["collapsed_slice_dims"], a["operand_batching_dims"]
    _index_map(site, indices, operand.rank, "start_index_map")
    rank = len(offset_dims) + len(lead)
    distinct(site, "C5", "offset_dims", offset_dims, rank)
    ascending(site, "C5", "offset_dims", offset_dims)
    distinct(site, "C6", "collapsed_slice_dims", collapsed, operand.rank)
    ascending(site, "C6", "collapsed_slice_dims", collapsed)
    distinct(site, "C7", "operand_batching_dims", batching, operand.rank)
    ascending(site, "C7", "operand_batching_dims", batching)
    _check_disjoint(site, "C8", collapsed, batching, a["start_index_map"])
    _batching(site, "C9", (operand, batching), (indices, a["start_indices_batching_dims"]), a["index_vector_dim"])
    window_sizes = _slice_sizes(site, operand, a["slice_sizes"], (*collapsed, *batching))
    site.require(
        len(window_sizes) == len(offset_dims),
        "C12",
        f"{len(offset_dims)} offset_dims for {len(window_sizes)} dimensions of a slice",
    )
    return operand.with_dims(*_interleave(rank, offset_dims, window_sizes, lead))


def index_dims(site: Site, indices: Shape, vector_dim: int) -> list[tuple[int, bool]]:
    """Return sizes and dynamic flags of the dimensions of the indices, except that of the index vectors."""
    site.require(indices.dtype.is_integer, "C2", f"indices are {indices.dtype}, not integers", DTypeError)
    fits = 0 <= vector_dim <= indices.rank
    site.require(fits, "C3", f"index_vector_dim {vector_dim} for indices of rank {indices.rank}")
    return [(n, m) for i, (n, m) in enumerate(zip(indices.dims, indices.dynamic, strict=True)) if i != vector_dim]


def _index_map(site: Site, indices: Shape, rank: int, name: str) -> None:
    vector_dim, mapped = site.attrs["index_vector_dim"], site.attrs[name]
    length = 1 if vector_dim == indices.rank else indices.dims[vector_dim]
    site.require(agree(len(mapped), length), "C4", f"{name} has {len(mapped)} entries for index vectors of {length}")
    distinct(site, "C4", name, mapped, rank)


def _check_disjoint(
    site: Site, label: str, collapsed: Sequence[int], batching: Sequence[int], mapped: Sequence[int]
) -> None:
    for d in batching:
        site.require(
            d not in collapsed and d not in mapped, label, f"batching dimension {d} has another part to play as well"
        )


def _batching(
    site: Site, label: str, a: tuple[Shape, Sequence[int]], b: tuple[Shape, Sequence[int]], vector_dim: int
) -> None:
    (operand, of_operand), (indices, of_indices) = a, b
    distinct(site, label, "batching dimensions of the indices", of_indices, indices.rank)
    site.require(vector_dim not in of_indices, label, f"index_vector_dim {vector_dim} cannot be a batching dimension")
    counts = len(of_operand), len(of_indices)
    site.require(
        counts[0] == counts[1], label, f"{counts[0]} batching dimensions of the operand, {counts[1]} of the indices"
    )
    for i, j in zip(of_operand, of_indices, strict=True):
        n, m = operand.dims[i], indices.dims[j]
        site.require(agree(n, m), label, f"batching dimensions {i} and {j} have sizes {n} and {m}")


def _slice_sizes(site: Site, operand: Shape, sizes: Sequence[int], collapsed: Sequence[int]) -> list[tuple[int, bool]]:
    site.require(len(sizes) == operand.rank, "C10", f"{len(sizes)} slice_sizes for rank {operand.rank}")
    for axis, (n, size) in enumerate(zip(sizes, operand.dims, strict=True)):
        fits = n >= 0 and (n <= size or size == UNBOUNDED)
        site.require(fits, "C10", f"a slice of {n} does not fit dimension {axis} of size {size}")
    for axis in collapsed:
        site.require(
            sizes[axis] <= 1,
            "C11",
            f"dimension {axis} is dropped from the result, but its slice has {sizes[axis]} elements",
        )
    flags = operand.dynamic
    return [(n, flags[i] and n == operand.dims[i]) for i, n in enumerate(sizes) if i not in collapsed]


def _interleave(
    rank: int,
    window_dims: Sequence[int],
    window_sizes: Sequence[tuple[int, bool]],
    batch_sizes: Sequence[tuple[int, bool]],
) -> tuple[list[int], list[bool]]:
    """Return `window_sizes` at dimensions `window_dims` and `batch_sizes` at the others, both in order."""
    inside_axes, outside_axes = iter(window_sizes), iter(batch_sizes)
    axes = [next(inside_axes) if d in window_dims else next(outside_axes) for d in range(rank)]
    return [n for n, _ in axes], [m for _, m in axes]


@opcode("scatter", (3, None), calls=("to_apply",), attrs=_SCATTER)
def scatter(site: Site) -> Shape:
    """The operands, or a tuple of several, combined with the updates.

    (C1) the operands are n arrays, one array of indices and n updates; (C2) the indices are integers; (C3) 0 <=
    index_vector_dim <= rank of the indices; (C4) scatter_dims_to_operand_dims has one entry for each component of an
    index vector, all different dimensions of the operands; (C5) the operands have the same sizes, and so have the
    updates; (C6) update_window_dims ascend and are dimensions of the updates; (C7) inserted_window_dims and
    input_batching_dims ascend and are dimensions of the operands; (C8) no dimension is both inserted and batching, or
    both batching and indexed; (C9) scatter_indices_batching_dims have as many entries, different dimensions of the
    indices without index_vector_dim, of the same sizes; (C10) window, inserted and batching dimensions add up to the
    operands' rank; (C11) no window is larger than the operands; (C12) the updates' other dimensions are those of the
    indices; (C13) each update has its operand's element type; (C14) to_apply takes the scalars of operands, then
    updates, and returns those of operands.
    """
    arrays(site)
    n, rest = divmod(len(site.operands) - 1, 2)
    site.require(rest == 0, "C1", f"{len(site.operands)} operands are not n arrays, indices and n updates")
    inputs, indices, updates = site.operands[:n], site.operands[n], site.operands[n + 1 :]
    dims, dynamic = merged_dims(site, "C5", inputs)
    operand, update = inputs[0].with_dims(dims, dynamic), updates[0].with_dims(*merged_dims(site, "C5", updates))
    lead = index_dims(site, indices, site.attrs["index_vector_dim"])
    _index_map(site, indices, operand.rank, "scatter_dims_to_operand_dims")
    _scatter_dims(site, operand, indices, update)
    _windows_fit(site, operand, update)
    _updates_match(site, update, [s for s, _ in lead])
    _combiner(site, inputs, updates)
    return tuple_or_single(inputs)


def _scatter_dims(site: Site, operand: Shape, indices: Shape, update: Shape) -> None:
    a = site.attrs
    inserted, batching = a["inserted_window_dims"], a["input_batching_dims"]
    distinct(site, "C6", "update_window_dims", a["update_window_dims"], update.rank)
    ascending(site, "C6", "update_window_dims", a["update_window_dims"])
    for name in ("inserted_window_dims", "input_batching_dims"):
        distinct(site, "C7", name, a[name], operand.rank)
        ascending(site, "C7", name, a[name])
    _check_disjoint(site, "C8", inserted, batching, a["scatter_dims_to_operand_dims"])
    _batching(site, "C9", (operand, batching), (indices, a["scatter_indices_batching_dims"]), a["index_vector_dim"])


def _windows_fit(site: Site, operand: Shape, update: Shape) -> None:
    a = site.attrs
    inserted = {*a["inserted_window_dims"], *a["input_batching_dims"]}
    window = [d for d in range(operand.rank) if d not in inserted]
    window_dims = a["update_window_dims"]
    site.require(
        len(window) == len(window_dims),
        "C10",
        f"{len(window_dims)} window dimensions for the {len(window)} that remain of rank {operand.rank}",
    )
    for d, u in zip(window, window_dims, strict=True):
        n, size = update.dims[u], operand.dims[d]
        site.require(
            n <= size or UNBOUNDED in (n, size), "C11", f"windows of {n} do not fit dimension {d} of size {size}"
        )


def _updates_match(site: Site, update: Shape, lead: Sequence[int]) -> None:
    window = set(site.attrs["update_window_dims"])
    batch_sizes = [n for d, n in enumerate(update.dims) if d not in window]
    fits = len(batch_sizes) == len(lead) and all(map(agree, batch_sizes, lead))
    site.require(fits, "C12", f"updates are {batch_sizes} outside their windows, the indices {list(lead)}")


def _combiner(site: Site, inputs: Sequence[Shape], updates: Sequence[Shape]) -> None:
    for x, u in zip(inputs, updates, strict=True):
        site.require(
            same_but_precision(x.dtype, u.dtype), "C13", f"updates are {u.dtype}, the operand is {x.dtype}", DTypeError
        )
    dtypes = [s.dtype for s in (*inputs, *updates)]
    results = scalar_function(site, "C14", site.called[0], dtypes, "to_apply")
    fits = len(results) == len(inputs) and all(
        same_but_precision(r.dtype, x.dtype) for r, x in zip(results, inputs, strict=True)
    )
    site.require(fits, "C14", f"to_apply {site.called[0].name} returns {', '.join(map(str, results))}")
