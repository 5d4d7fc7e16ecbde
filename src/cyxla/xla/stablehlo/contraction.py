"""Operations that contract, transform or factorise."""

from __future__ import annotations

from typing import Any

from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.xla.hlo.attributes import ConvDims, WindowDim
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.ops.contraction import DOT_ALGORITHMS
from cyxla.xla.stablehlo.attributes import Record
from cyxla.xla.stablehlo.context import Context
from cyxla.xla.stablehlo.data_movement import dimension_numbers
from cyxla.xla.stablehlo.elementwise import arity
from cyxla.xla.stablehlo.registry import (
    Results,
    choice,
    field_int,
    flag,
    handles,
    int_list,
    integer,
    ints,
    keyword,
    number,
    pairs,
    required,
    word,
)
from cyxla.xla.stablehlo.syntax import Operation

_SIDES = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting")


def _precision(op: Operation) -> tuple[str, ...]:
    """Return the precisions of the operands, or an empty tuple if all are the default."""
    precisions = op.attributes.get("precision_config", ())
    if not isinstance(precisions, (list, tuple)):
        raise InvalidArgumentError(f"precision_config of {op.name} is to be a list")
    words = tuple(word(w, "a precision").lower() for w in precisions)
    if not {"default", "high", "highest"}.issuperset(words):
        raise InvalidArgumentError(f"precision_config of {op.name} is of DEFAULT, HIGH and HIGHEST")
    return () if all(w == "default" for w in words) else words


_COUNTS = ("lhs_component_count", "rhs_component_count", "num_primitive_operations")


def _algorithm(op: Operation) -> str | None:
    """Return the name of a dot algorithm that is written as a record."""
    record = op.attributes.get("algorithm")
    if not isinstance(record, Record):
        return None
    fields = record.fields
    lhs, rhs, total = (
        _type_name(fields.get(k)) for k in ("lhs_precision_type", "rhs_precision_type", "accumulation_type")
    )
    counts = [fields.get(k, 1) for k in _COUNTS]
    if "f8" in lhs:
        fast = "_fast_accum" if fields.get("allow_imprecise_accumulation") else ""
        name = f"dot_any_f8_any_f8_{total}{fast}"
    else:
        times = f"_x{counts[2]}" if isinstance(counts[2], int) and counts[2] > 1 else ""
        name = f"dot_{lhs}_{rhs}_{total}{times}"
    if name not in DOT_ALGORITHMS:
        names = ", ".join(DOT_ALGORITHMS)
        raise UnimplementedError(f"{op.name} does not support the algorithm {name[:60]}", hint=f"use one of {names}")
    return name


def _type_name(value: Any) -> str:
    return str(value).lower()


@handles("dot")
def _dot(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    last = max(xs[0].shape.rank - 1, 0)
    if xs[0].shape.rank not in (1, 2) or xs[1].shape.rank not in (1, 2):
        raise ShapeError(f"{op.name} of {xs[0].shape} and {xs[1].shape}: operands are vectors or matrices")
    return xla.dot_general(
        xs[0], xs[1], lhs_contracting_dims=(last,), rhs_contracting_dims=(0,), operand_precision=_precision(op),
        algorithm=_algorithm(op), preferred_element_type=c.stated(op).dtype,
    )  # fmt: skip


@handles("dot_general")
def _dot_general(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    fields = dimension_numbers(op, "dot_dimension_numbers").copy() if "dot_dimension_numbers" in op.attributes else {}
    dims = [ints(fields.get(f"{s}_dimensions", op.attributes.get(f"{s}_dimensions", ())), s) for s in _SIDES]
    return xla.dot_general(
        xs[0], xs[1], lhs_batch_dims=dims[0], rhs_batch_dims=dims[1], lhs_contracting_dims=dims[2],
        rhs_contracting_dims=dims[3], operand_precision=_precision(op), algorithm=_algorithm(op),
        preferred_element_type=c.stated(op).dtype,
    )  # fmt: skip


_RAGGED = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting", "lhs_ragged", "rhs_group")


@handles("ragged_dot")
def _ragged_dot(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 3)
    fields = dimension_numbers(op, "ragged_dot_dimension_numbers")
    dims = [ints(fields.get(f"{name}_dimensions", ()), name) for name in _RAGGED]
    return xla.ragged_dot(
        *xs, lhs_batch_dims=dims[0], rhs_batch_dims=dims[1], lhs_contracting_dims=dims[2],
        rhs_contracting_dims=dims[3], lhs_ragged_dims=dims[4], rhs_group_dims=dims[5],
        operand_precision=_precision(op), preferred_element_type=c.stated(op).dtype,
    )  # fmt: skip


# Einsum


@handles("einsum", "unary_einsum")
def _einsum(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2 if op.kind == "einsum" else 1)
    inputs_text, arrow, output = keyword(op, "einsum_config").replace(" ", "").partition("->")
    names = inputs_text.split(",")
    if not arrow or len(names) != len(xs) or "." in inputs_text:
        raise UnimplementedError(f"{op.name} of {keyword(op, 'einsum_config')[:60]!r}")
    for x, labels in zip(xs, names, strict=True):
        if x.shape.rank != len(labels) or len(set(labels)) != len(labels):
            raise UnimplementedError(f"{op.name} of {x.shape} with the labels {labels[:60]!r}")
    if len(xs) == 1:
        return _sum_absent_labels(xs[0], names[0], output)
    return _contract_pair(c, op, xs, names, output)


def _sum_absent_labels(x: XlaOp, labels: str, output: str) -> XlaOp:
    from cyxla.xla.lib.values import sum_of

    kept = [a for a in labels if a in output]
    summed = sum_of(x, [i for i, a in enumerate(labels) if a not in output])
    return xla.transpose(summed, [kept.index(a) for a in output])


def _contract_pair(c: Context, op: Operation, xs: list[XlaOp], names: list[str], output: str) -> XlaOp:
    a, b = names
    xs = [
        _sum_absent_labels(x, labels, "".join(k for k in labels if k in other + output))
        for x, labels, other in zip(xs, names, (b, a), strict=True)
    ]
    a, b = ("".join(k for k in labels if k in other + output) for labels, other in ((a, b), (b, a)))
    common = [k for k in a if k in b]
    batch, summed = [k for k in common if k in output], [k for k in common if k not in output]
    product = xla.dot_general(
        *xs, lhs_batch_dims=[a.index(k) for k in batch], rhs_batch_dims=[b.index(k) for k in batch],
        lhs_contracting_dims=[a.index(k) for k in summed], rhs_contracting_dims=[b.index(k) for k in summed],
        operand_precision=_precision(op), preferred_element_type=c.stated(op).dtype,
    )  # fmt: skip
    order = [*batch, *(k for k in a if k not in common), *(k for k in b if k not in common)]
    return xla.transpose(product, [order.index(k) for k in output])


# Convolution

_ROLES = (("b", "f"), ("i", "o"), ("b", "f"))
_RAW = (
    ("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
    ("kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"),
    ("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
)  # fmt: skip


def _conv_dims(op: Operation) -> ConvDims:
    fields = dimension_numbers(op, "dimension_numbers")
    dims: list[Any] = []
    for part, roles, raw in zip(("input", "kernel", "output"), _ROLES, _RAW, strict=True):
        if part in fields:
            labels = list(fields[part])
            expected = [*roles, *map(str, range(len(labels) - 2))]
            if sorted(labels) != sorted(expected):
                raise InvalidArgumentError(f"dimension numbers {labels} of {op.name} are not {expected} in some order")
            positions = [labels.index(w) for w in expected]
            dims += [positions[0], positions[1], tuple(positions[2:])]
        else:
            dims += [field_int(fields, raw[0]), field_int(fields, raw[1]), ints(fields.get(raw[2], ()))]
    return ConvDims(*dims)


@handles("convolution", "dynamic_conv")
def _convolution(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    dynamic = op.kind == "dynamic_conv"
    arity(op, xs, 3 if dynamic else 2)
    labels = _conv_dims(op)
    n = len(labels.input_spatial)
    if xs[1].shape.rank != n + 2 or {len(labels.kernel_spatial), len(labels.output_spatial)} != {n}:
        raise ShapeError(f"{op.name}: a kernel {xs[1].shape} does not have {n} spatial dimensions")
    padding = pairs(op, "padding", n)
    if dynamic:
        flat = c.constant_ints(xs[2], f"the padding of {op.name}")
        padding = list(zip(flat[::2], flat[1::2], strict=True))
    ones = [1] * n
    lists = [int_list(op, k, ones) for k in ("window_strides", "rhs_dilation", "lhs_dilation")]
    reverse = op.attributes.get("window_reversal", [False] * n)
    reversal = [bool(v) for v in (reverse.array.ravel() if hasattr(reverse, "array") else reverse)]
    if {len(v) for v in (*lists, padding, reversal)} != {n}:
        raise ShapeError(f"the window of {op.name} does not have {n} dimensions")
    sizes = [xs[1].shape.dims[d] for d in labels.kernel_spatial]
    window = tuple(
        WindowDim(size, stride, low, high, dilation, base, reverse_)
        for size, stride, (low, high), dilation, base, reverse_ in zip(
            sizes, lists[0], padding, *lists[1:], reversal, strict=True
        )
    )
    return xla.convolution(
        xs[0], xs[1], window=window, dim_labels=labels, feature_group_count=integer(op, "feature_group_count", 1),
        batch_group_count=integer(op, "batch_group_count", 1), operand_precision=_precision(op),
        preferred_element_type=c.stated(op).dtype,
    )  # fmt: skip


# Transforms and factors


@handles("fft")
def _fft(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return xla.fft(xs[0], choice(op, "fft_type", ("FFT", "IFFT", "RFFT", "IRFFT")), int_list(op, "fft_length"))


@handles("cholesky")
def _cholesky(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return xla.cholesky(xs[0], flag(op, "lower"))


@handles("triangular_solve")
def _triangular_solve(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    words = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", "TRANSPOSE_INVALID")
    transpose = choice(op, "transpose_a", words, "NO_TRANSPOSE")
    return xla.triangular_solve(
        xs[0], xs[1], left_side=bool(required(op, "left_side")), lower=bool(required(op, "lower")),
        unit_diagonal=flag(op, "unit_diagonal"),
        transpose_a="NO_TRANSPOSE" if transpose == "TRANSPOSE_INVALID" else transpose,
    )  # fmt: skip


@handles("batch_norm_training", "batch_norm_inference", "batch_norm_grad", least=3)
def _batch_norm(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    attrs = {"epsilon": number(op, "epsilon"), "feature_index": integer(op, "feature_index")}
    result = c.builder.add(op.kind.replace("_", "-"), xs, attrs)
    return result if op.kind == "batch_norm_inference" else c.tuple_elements(result, 3)
