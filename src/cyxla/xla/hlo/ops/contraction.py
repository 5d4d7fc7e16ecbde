"""Opcodes that contract, transform or factorise: dot, convolution, fft, linear algebra, batch normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cyxla.errors import DTypeError
from cyxla.types import UNBOUNDED, ElementType, Shape
from cyxla.xla.hlo.attributes import ConvDims
from cyxla.xla.hlo.opcode import FLOAT, INEXACT, Site, opcode, opt, req
from cyxla.xla.hlo.ops.checks import agree, arrays, distinct, in_range, merged_dims, same_but_precision, same_dtype
from cyxla.xla.hlo.ops.window import check_window, window_count

DOT_ALGORITHMS = (
    "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6", "dot_bf16_bf16_f32_x9",
    "dot_tf32_tf32_f32", "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32", "dot_f64_f64_f64",
)  # fmt: skip

# fmt: off
_DOT = (opt("lhs_batch_dims", "dims", ()), opt("lhs_contracting_dims", "dims", ()),
        opt("rhs_batch_dims", "dims", ()), opt("rhs_contracting_dims", "dims", ()))
_PRECISION = (opt("operand_precision", "precision", ()),)  # () is the default for every operand
_ALGORITHM = (opt("algorithm", "enum:" + ",".join(DOT_ALGORITHMS)),)
_RAGGED    = (opt("lhs_ragged_dims", "dims", ()), opt("rhs_group_dims", "dims", ()))
_GROUPS    = (opt("feature_group_count", "int", 1), opt("batch_group_count", "int", 1))
_NORM      = (req("epsilon", "float"), req("feature_index", "int"))
_SOLVE     = (opt("left_side", "bool", False), opt("lower", "bool", False), opt("unit_diagonal", "bool", False),
              opt("transpose_a", "enum:NO_TRANSPOSE,TRANSPOSE,ADJOINT", "NO_TRANSPOSE"))
# fmt: on


def wider_type(a: ElementType, b: ElementType) -> ElementType:
    """Return the element type of a product of both: complex before float before integer, then the wider one."""
    return max(a, b, key=lambda t: (t.is_complex, t.is_float, t.is_integer, t.bits))


def _product_type(site: Site, label: str) -> ElementType:
    """Return the stated element type, if it can hold sums of such products; else the wider of the operands' types."""
    lhs, rhs = (s.dtype for s in site.operands[:2])
    natural = wider_type(lhs, rhs)
    if site.declared is None or not site.declared.is_array or site.declared.dtype is natural:
        return natural
    result_type = site.declared.dtype
    fits = result_type.is_complex if natural.is_complex else result_type.is_float or not natural.is_float
    site.require(fits, label, f"products of {lhs} and {rhs} cannot be accumulated in {result_type}", DTypeError)
    return result_type


def _precision(site: Site, label: str) -> None:
    precisions = site.attrs["operand_precision"]
    site.require(len(precisions) in (0, 2), label, f"operand_precision has {len(precisions)} entries for two operands")


class _DotAxes(NamedTuple):
    batch: list[int]  # sizes
    lhs: list[int]  # free dimensions
    rhs: list[int]


def _dot_axes(site: Site) -> _DotAxes:
    """Check constraints (C1) to (C7) of `dot`, and return its result dimensions."""
    arrays(site)
    lhs, rhs = site.operands[:2]
    a = site.attrs
    lb, lc, rb, rc = (
        tuple(a[n]) for n in ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")
    )
    distinct(site, "C2", "batch and contracting dimensions of lhs", lb + lc, lhs.rank)
    distinct(site, "C3", "batch and contracting dimensions of rhs", rb + rc, rhs.rank)
    for label, kind, lhs_dims, rhs_dims in (("C4", "batch", lb, rb), ("C5", "contracting", lc, rc)):
        site.require(
            len(lhs_dims) == len(rhs_dims), label, f"{len(lhs_dims)} {kind} dimensions of lhs, {len(rhs_dims)} of rhs"
        )
    for label, kind, pairs in (
        ("C6", "batch", zip(lb, rb, strict=True)),
        ("C7", "contracting", zip(lc, rc, strict=True)),
    ):
        for i, j in pairs:
            n, m = lhs.dims[i], rhs.dims[j]
            site.require(agree(n, m), label, f"{kind} dimension {i} of lhs has size {n}, dimension {j} of rhs {m}")
    free = [[d for d in range(s.rank) if d not in used] for s, used in ((lhs, lb + lc), (rhs, rb + rc))]
    return _DotAxes([_known_size(lhs.dims[i], rhs.dims[j]) for i, j in zip(lb, rb, strict=True)], *free)


def _known_size(a: int, b: int) -> int:
    return b if a == UNBOUNDED else a


@opcode("dot", 2, attrs=(*_DOT, *_PRECISION, *_ALGORITHM), many_steps=True)
def dot(site: Site) -> Shape:
    """Batch dimensions, then the free dimensions of lhs, then those of rhs.

    (C1) the operands are arrays; (C2) batch and contracting dimensions of lhs are different dimensions of it; (C3) so
    are those of rhs; (C4) batch dimensions are equally many on both sides, (C5) and so are contracting ones; (C6) batch
    dimensions have the same sizes, (C7) and so have contracting ones; (C8) operand_precision is absent or has two
    entries; (C9) a stated element type can hold the sums: complex for complex numbers, floating point for floats.
    """
    batch, free_lhs, free_rhs = _dot_axes(site)
    _precision(site, "C8")
    dtype, (lhs, rhs) = _product_type(site, "C9"), site.operands
    dims = [*batch, *(lhs.dims[d] for d in free_lhs), *(rhs.dims[d] for d in free_rhs)]
    if not (lhs.is_dynamic or rhs.is_dynamic):
        return Shape.array(dtype, dims)
    pairs = zip(site.attrs["lhs_batch_dims"], site.attrs["rhs_batch_dims"], strict=True)
    flags = [lhs.dynamic[i] or rhs.dynamic[j] for i, j in pairs]
    return Shape.array(
        dtype, dims, dynamic=[*flags, *(lhs.dynamic[d] for d in free_lhs), *(rhs.dynamic[d] for d in free_rhs)]
    )


@opcode("ragged-dot", 3, attrs=(*_DOT, *_RAGGED, *_PRECISION), many_steps=True)
def ragged_dot(site: Site) -> Shape:
    """The dimensions of `dot`; a ragged contracting dimension adds one for the groups in front.

    (C1) to (C9) are those of `dot`; (C10) lhs_ragged_dims names one dimension of lhs; (C11) rhs_group_dims names one
    free dimension of rhs if the ragged one is free, none if it is contracting or batch; (C12) group_sizes are integers,
    one for each group, or for each group and each index of the batch and other dimensions before the ragged one.
    """
    batch, free_lhs, free_rhs = _dot_axes(site)
    _precision(site, "C8")
    dtype, (lhs, rhs, sizes) = _product_type(site, "C9"), site.operands
    ragged, group = site.attrs["lhs_ragged_dims"], site.attrs["rhs_group_dims"]
    site.require(len(ragged) == 1, "C10", f"lhs_ragged_dims {list(ragged)} must name one dimension")
    in_range(site, "C10", "ragged dimension", ragged[0], lhs.rank)
    is_free = ragged[0] in free_lhs
    fits = len(group) == 1 and group[0] in free_rhs if is_free else not group
    site.require(fits, "C11", f"rhs_group_dims {list(group)} does not suit the ragged dimension {ragged[0]}")
    groups = _group_sizes(site, lhs, sizes, free_lhs)
    if is_free:
        site.require(
            agree(groups, rhs.dims[group[0]]), "C12", f"{groups} group sizes for {rhs.dims[group[0]]} groups of rhs"
        )
    front = [groups] if ragged[0] in site.attrs["lhs_contracting_dims"] else []
    return Shape.array(
        dtype, [*front, *batch, *(lhs.dims[d] for d in free_lhs), *(rhs.dims[d] for d in free_rhs if d not in group)]
    )


def _group_sizes(site: Site, lhs: Shape, sizes: Shape, free: Sequence[int]) -> int:
    """Return the number of groups."""
    a, ragged = site.attrs, site.attrs["lhs_ragged_dims"][0]
    batch = tuple(a["lhs_batch_dims"])
    if ragged in batch:
        before = batch[: batch.index(ragged)]
    else:
        family = [*free] if ragged in free else [*a["lhs_contracting_dims"]]
        before = (*batch, *family[: family.index(ragged)])
    prefix = tuple(lhs.dims[d] for d in before)
    fits = sizes.dtype.is_integer and sizes.rank >= 1 and (sizes.rank == 1 or sizes.dims[:-1] == prefix)
    site.require(
        fits,
        "C12",
        f"group_sizes are {sizes}, but must be integers[{','.join(map(str, (*prefix, 'groups')))}] or [groups]",
    )
    return sizes.dims[-1]


@opcode("scaled-dot", (3, 4), attrs=(*_DOT, *_PRECISION))
def scaled_dot(site: Site) -> Shape:
    """The dimensions of `dot`; each scale applies to a block of its operand.

    (C1) to (C9) are those of `dot`; (C10) a scale is one number, or has the rank of its operand and sizes that divide
    the operand's.
    """
    batch, free_lhs, free_rhs = _dot_axes(site)
    _precision(site, "C8")
    dtype, (lhs, rhs, *scales) = _product_type(site, "C9"), site.operands
    for x, scale in zip((lhs, rhs), scales, strict=False):
        blocks = scale.rank == x.rank and all(
            n == m == 0 or (n > 0 and m % n == 0) for n, m in zip(scale.dims, x.dims, strict=True)
        )
        site.require(scale.size == 1 or blocks, "C10", f"scale {scale} does not divide {x} into blocks")
    return Shape.array(dtype, [*batch, *(lhs.dims[d] for d in free_lhs), *(rhs.dims[d] for d in free_rhs)])


@opcode(
    "convolution",
    2,
    attrs=(opt("window", "window", ()), req("dim_labels", "dim_labels"), *_GROUPS, *_PRECISION),
    many_steps=True,
)
def convolution(site: Site) -> Shape:
    """Batch and features of the kernel, and the number of window positions; padding and holes add zero.

    (C1) the operands are arrays; (C2) dim_labels give every dimension of input, kernel and result one role; (C3) window
    has an entry for each spatial dimension, its sizes, stride and dilations at least 1; (C4) and the sizes of the
    kernel; (C5) group counts are positive and not both above 1; (C6) feature_group_count divides the input features,
    the kernel has input features of one group; (C7) both counts divide the kernel's output features; (C8)
    batch_group_count divides the batch; (C9) operand_precision is absent or has two entries; (C10) a stated element
    type can hold the sums.
    """
    arrays(site)
    x, kernel = site.operands
    labels: ConvDims = site.attrs["dim_labels"]
    rank = len(labels.input_spatial) + 2
    _conv_labels(site, labels, rank)
    window = site.attrs["window"]
    check_window(site, "C3", window, rank - 2)
    for w, d in zip(window, labels.kernel_spatial, strict=True):
        site.require(
            agree(w.size, kernel.dims[d]),
            "C4",
            f"the window has size {w.size}, dimension {d} of the kernel {kernel.dims[d]}",
        )
    dims = [0] * rank
    dims[labels.output_batch], dims[labels.output_feature] = _conv_groups(site, labels)
    for out, inp, w in zip(labels.output_spatial, labels.input_spatial, window, strict=True):
        dims[out] = window_count(x.dims[inp], w)
    _precision(site, "C9")
    flags = [False] * rank
    flags[labels.output_batch], flags[labels.output_feature] = (
        x.dynamic[labels.input_batch],
        kernel.dynamic[labels.kernel_output_feature],
    )
    for out, inp in zip(labels.output_spatial, labels.input_spatial, strict=True):
        flags[out] = x.dynamic[inp]
    return Shape.array(_product_type(site, "C10"), dims, dynamic=flags)


def _conv_labels(site: Site, labels: ConvDims, rank: int) -> None:
    x, kernel = site.operands
    parts = {
        "input": (labels.input_batch, labels.input_feature, *labels.input_spatial),
        "kernel": (labels.kernel_input_feature, labels.kernel_output_feature, *labels.kernel_spatial),
        "output": (labels.output_batch, labels.output_feature, *labels.output_spatial),
    }
    for name, dims in parts.items():
        site.require(
            sorted(dims) == list(range(rank)),
            "C2",
            f"dim_labels have the {name} dimensions {list(dims)}, which are not the {rank} dimensions once each",
        )
    site.require(
        x.rank == kernel.rank == rank,
        "C2",
        f"dim_labels are for rank {rank}, the operands have {x.rank} and {kernel.rank}",
    )


def _conv_groups(site: Site, labels: ConvDims) -> tuple[int, int]:
    """Return batch size and number of features of the result."""
    x, kernel = site.operands
    features, batches = site.attrs["feature_group_count"], site.attrs["batch_group_count"]
    fits = features >= 1 and batches >= 1 and min(features, batches) == 1
    site.require(fits, "C5", f"feature_group_count is {features}, batch_group_count {batches}")
    input_features, kernel_features = x.dims[labels.input_feature], kernel.dims[labels.kernel_input_feature]
    fits = UNBOUNDED in (input_features, kernel_features) or (
        input_features % features == 0 and kernel_features == input_features // features
    )
    site.require(
        fits, "C6", f"{input_features} input features in {features} groups, but the kernel takes {kernel_features}"
    )
    gives = kernel.dims[labels.kernel_output_feature]
    fits = gives == UNBOUNDED or (gives % features == 0 and gives % batches == 0)
    site.require(fits, "C7", f"{gives} output features in {max(features, batches)} groups")
    batch = x.dims[labels.input_batch]
    site.require(batch == UNBOUNDED or batch % batches == 0, "C8", f"a batch of {batch} in {batches} groups")
    return batch if batch == UNBOUNDED else batch // batches, gives


_SPECTRUM = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}


@opcode(
    "fft",
    1,
    accepts=INEXACT,
    attrs=(req("fft_type", "enum:FFT,IFFT,RFFT,IRFFT"), req("fft_length", "dims")),
    many_steps=True,
)
def fft(site: Site) -> Shape:
    """The operand's sizes; the last dimension of an RFFT has n // 2 + 1 elements, that of an IRFFT's operand as well.

    (C1) an array; (C2) fft_length has one to three entries, no more than dimensions; (C3) RFFT takes f32 or f64, the
    others take complex numbers; (C4) the last dimensions are those of fft_length, for IRFFT the very last n // 2 + 1.
    """
    arrays(site)
    x, kind, lengths = site.operands[0], site.attrs["fft_type"], tuple(site.attrs["fft_length"])
    site.require(1 <= len(lengths) <= min(3, x.rank), "C2", f"{len(lengths)} fft lengths for rank {x.rank}")
    dtype = x.dtype
    fits = dtype in _SPECTRUM if kind == "RFFT" else dtype.is_complex
    site.require(fits, "C3", f"{kind} does not take {dtype}", DTypeError)
    half = lengths[-1] // 2 + 1 if lengths[-1] or (kind == "IRFFT" and x.dims[-1]) else 0  # size 0 takes 0 or 1
    expected = (*lengths[:-1], half) if kind == "IRFFT" else lengths
    actual = x.dims[x.rank - len(lengths) :]
    site.require(
        all(map(agree, actual, expected)),
        "C4",
        f"the last dimensions are {list(actual)}, but {kind} needs {list(expected)}",
    )
    if kind == "RFFT":
        return Shape.array(_SPECTRUM[dtype], (*x.dims[:-1], half), dynamic=(*x.dynamic[:-1], False))
    if kind == "IRFFT":
        return Shape.array(dtype.real_part, (*x.dims[:-1], lengths[-1]), dynamic=(*x.dynamic[:-1], False))
    return x


@opcode("triangular-solve", 2, accepts=INEXACT, attrs=_SOLVE, many_steps=True)
def triangular_solve(site: Site) -> Shape:
    """The shape of b.

    (C1) the operands are arrays; (C2) of one element type; (C3) of the same rank, at least 2; (C4) a is square in its
    last two dimensions; (C5) the dimensions before those are the same; (C6) b has as many rows (columns, unless
    left_side) as a.
    """
    arrays(site)
    same_dtype(site, "C2", site.operands)
    a, b = site.operands
    site.require(a.rank == b.rank >= 2, "C3", f"ranks are {a.rank} and {b.rank}, but must be equal and at least 2")
    site.require(agree(a.dims[-1], a.dims[-2]), "C4", f"a is {a}, not square")
    site.require(
        all(map(agree, a.dims[:-2], b.dims[:-2])),
        "C5",
        f"batch dimensions {list(a.dims[:-2])} and {list(b.dims[:-2])} differ",
    )
    size = b.dims[-2 if site.attrs["left_side"] else -1]
    site.require(agree(size, a.dims[-1]), "C6", f"a has size {a.dims[-1]}, b {size} on the side that is solved")
    return b


@opcode("cholesky", 1, accepts=INEXACT, attrs=(opt("lower", "bool", False),), many_steps=True)
def cholesky(site: Site) -> Shape:
    """(C1) an array of rank 2 or more; (C2) square in its last two dimensions."""
    arrays(site)
    a = site.operands[0]
    site.require(a.rank >= 2, "C1", f"{a} is not a matrix")
    site.require(agree(a.dims[-1], a.dims[-2]), "C2", f"{a} is not square")
    return a


def _feature_vector_shape(site: Site, vectors: Sequence[int], *, like: int | None = None) -> Shape:
    """Check constraints (C1) to (C4) of batch normalisation, and return the shape of one number for each feature."""
    arrays(site)
    x, index = site.operands[0], site.attrs["feature_index"]
    in_range(site, "C2", "feature_index", index, x.rank)
    for s in site.operands:
        site.require(
            same_but_precision(s.dtype, x.dtype), "C3", f"element types {x.dtype} and {s.dtype} differ", DTypeError
        )
    feature = x.with_dims((x.dims[index],), (x.dynamic[index],))
    for i in vectors:
        s = site.operands[i]
        site.require(
            s.rank == 1 and agree(s.dims[0], feature.dims[0]),
            "C4",
            f"operand {i} is {s}, but there are {feature.dims[0]} features",
        )
    if like is not None:
        merged_dims(site, "C5", (x, site.operands[like]))
    return feature


@opcode("batch-norm-training", 3, accepts=FLOAT, attrs=_NORM)
def batch_norm_training(site: Site) -> Shape:
    """The operand's shape, and mean and variance for each feature.

    (C1) the operands are arrays; (C2) feature_index is a dimension of the first; (C3) they have one kind of element
    type; (C4) scale and offset have one number for each feature.
    """
    feature = _feature_vector_shape(site, (1, 2))
    return Shape.tuple([site.operands[0], feature, feature])


@opcode("batch-norm-inference", 5, accepts=FLOAT, attrs=_NORM)
def batch_norm_inference(site: Site) -> Shape:
    """The operand's shape.

    (C1) the operands are arrays; (C2) feature_index is a dimension of the first; (C3) they have one kind of element
    type; (C4) scale, offset, mean and variance have one number for each feature.
    """
    _feature_vector_shape(site, (1, 2, 3, 4))
    return site.operands[0]


@opcode("batch-norm-grad", 5, accepts=FLOAT, attrs=_NORM)
def batch_norm_grad(site: Site) -> Shape:
    """The operand's shape, and gradients of scale and offset for each feature.

    (C1) the operands are arrays; (C2) feature_index is a dimension of the first; (C3) they have one kind of element
    type; (C4) scale, mean and variance have one number for each feature; (C5) the gradient has the operand's sizes.
    """
    feature = _feature_vector_shape(site, (1, 2, 3), like=4)
    return Shape.tuple([site.operands[0], feature, feature])
