"""Attributes as proto fields: a reader and a writer for each attribute name.

An attribute that has different fields in different opcodes also has a row for ``(opcode, attribute)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.hlo.attributes import (
    Alias,
    ConvDims,
    DomainAttr,
    IotaTiles,
    PaddingDim,
    ReplicaGroups,
    ResultAccuracy,
    SliceDim,
    WindowDim,
)
from cyxla.xla.hlo.ops.contraction import DOT_ALGORITHMS
from cyxla.xla.hlo.proto.schema import escaped, raw, text, utf8
from cyxla.xla.hlo.proto.values import (
    read_literal,
    read_shape,
    read_sharding,
    write_literal,
    write_shape,
    write_sharding,
)
from cyxla.xla.hlo.text.sharding import check_iota

Read = Callable[[Any, tuple[Shape, ...]], Any]  # the instruction's proto and its operands' shapes; None is the default
Write = Callable[[Any, Any], None]


@dataclass(frozen=True)
class Codec:
    """Reader and writer of one attribute of an HloInstructionProto."""

    read: Read
    write: Write


def _at(p: Any, path: str) -> tuple[Any, str]:
    *messages, field = path.split(".")
    for name in messages:
        p = getattr(p, name)
    return p, field


def _get(p: Any, path: str) -> Any:
    message, field = _at(p, path)
    return getattr(message, field)


def _set_field(p: Any, path: str, value: Any) -> None:
    message, field = _at(p, path)
    setattr(message, field, value)
    if message is not p:
        message.SetInParent()


def _scalar(path: str) -> Codec:
    return Codec(lambda p, _: _get(p, path), lambda p, v: _set_field(p, path, v))


def _nonzero(path: str) -> Codec:
    """Return the codec of a number that is absent when 0."""
    return Codec(lambda p, _: _get(p, path) or None, lambda p, v: _set_field(p, path, v))


def _optional(field: str) -> Codec:
    return Codec(lambda p, _: getattr(p, field) if p.HasField(field) else None, lambda p, v: setattr(p, field, v))


def _string(path: str, *, binary: bool = False) -> Codec:
    if binary:
        return Codec(lambda p, _: escaped(_get(p, path)), lambda p, v: _set_field(p, path, raw(v)))
    return Codec(lambda p, _: text(_get(p, path)), lambda p, v: _set_field(p, path, utf8(v)))


def _dims(path: str, *, optional: bool = False) -> Codec:
    def write(p: Any, value: tuple[int, ...]) -> None:
        message, field = _at(p, path)
        getattr(message, field).extend(value)
        if message is not p:
            message.SetInParent()

    return Codec(lambda p, _: tuple(_get(p, path)) or (None if optional else ()), write)


def _singleton(field: str, *, optional: bool = False) -> Codec:
    """Return the codec of a number that is stored as a list of one."""

    def read(p: Any, _: tuple[Shape, ...]) -> int | None:
        message = getattr(p, field)
        if len(message) != 1:
            if optional and not message:
                return None
            raise InvalidArgumentError(f"{field} has {len(message)} numbers, not one")
        return int(message[0])

    return Codec(read, lambda p, v: getattr(p, field).append(v))


def _enum(path: str, options: tuple[str | None, ...]) -> Codec:
    """Return the codec of an enum whose numbers are indices of `options`."""

    def read(p: Any, _: tuple[Shape, ...]) -> str | None:
        number: int = _get(p, path)
        if not 0 <= number < len(options) or options[number] == "":
            raise InvalidArgumentError(f"{path} has the unknown value {number}")
        return options[number]

    return Codec(read, lambda p, v: _set_field(p, path, options.index(v)))


def _string_enum(field: str, options: str) -> Codec:
    """Return the codec of a string that must be one of several; empty is absent."""

    def read(p: Any, _: tuple[Shape, ...]) -> str | None:
        name = text(getattr(p, field))
        if name and name not in options.split():
            raise InvalidArgumentError(f"{field} is {name[:40]!r}, not one of {options}")
        return name or None

    return Codec(read, lambda p, v: setattr(p, field, utf8(v)))


def _read_slice(p: Any, _: tuple[Shape, ...]) -> tuple[SliceDim, ...]:
    return tuple(SliceDim(d.start, d.limit, d.stride or 1) for d in p.slice_dimensions)


def _write_slice(p: Any, dims: tuple[SliceDim, ...]) -> None:
    for d in dims:
        p.slice_dimensions.add(start=d.start, limit=d.limit, stride=d.stride)


def _read_padding(p: Any, _: tuple[Shape, ...]) -> tuple[PaddingDim, ...]:
    dims = p.padding_config.dimensions
    return tuple(PaddingDim(d.edge_padding_low, d.edge_padding_high, d.interior_padding) for d in dims)


def _write_padding(p: Any, dims: tuple[PaddingDim, ...]) -> None:
    for d in dims:
        p.padding_config.dimensions.add(edge_padding_low=d.low, edge_padding_high=d.high, interior_padding=d.interior)
    p.padding_config.SetInParent()


def _read_window(p: Any, _: tuple[Shape, ...]) -> tuple[WindowDim, ...] | None:
    if not p.HasField("window"):
        return None
    return tuple(
        WindowDim(
            size=d.size,
            stride=d.stride or 1,
            padding_low=d.padding_low,
            padding_high=d.padding_high,
            window_dilation=d.window_dilation or 1,
            base_dilation=d.base_dilation or 1,
            window_reversal=d.window_reversal,
        )
        for d in p.window.dimensions
    )


def _write_window(p: Any, dims: tuple[WindowDim, ...]) -> None:
    for d in dims:
        p.window.dimensions.add(**d._asdict())
    p.window.SetInParent()


_CONV = {
    "input_batch": "input_batch_dimension",
    "input_feature": "input_feature_dimension",
    "input_spatial": "input_spatial_dimensions",
    "kernel_input_feature": "kernel_input_feature_dimension",
    "kernel_output_feature": "kernel_output_feature_dimension",
    "kernel_spatial": "kernel_spatial_dimensions",
    "output_batch": "output_batch_dimension",
    "output_feature": "output_feature_dimension",
    "output_spatial": "output_spatial_dimensions",
}


def _read_conv(p: Any, _: tuple[Shape, ...]) -> ConvDims | None:
    if not p.HasField("convolution_dimension_numbers"):
        return None
    numbers = [getattr(p.convolution_dimension_numbers, field) for field in _CONV.values()]
    values: list[Any] = [v if isinstance(v, int) else tuple(v) for v in numbers]
    dims = ConvDims(*values)
    groups = (dims[:3], dims[3:6], dims[6:])
    for first, second, spatial in groups:
        if sorted((first, second, *spatial)) != list(range(len(dims.input_spatial) + 2)):
            raise InvalidArgumentError("the dimension numbers of a convolution do not name each dimension once")
    return dims


def _write_conv(p: Any, dims: ConvDims) -> None:
    message = p.convolution_dimension_numbers
    for name, field in _CONV.items():
        value = getattr(dims, name)
        if isinstance(value, tuple):
            getattr(message, field).extend(value)
        else:
            setattr(message, field, value)
    message.SetInParent()


_PRECISIONS = ("default", "high", "highest", "packed_nibble")
# Numbers of DotAlgorithm are indices of this tuple.
_ALGORITHMS: tuple[str | None, ...] = (
    None, "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6", "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32", "dot_f64_f64_f64", "dot_bf16_bf16_f32_x9",
)  # fmt: skip
assert set(_ALGORITHMS) == {None, *DOT_ALGORITHMS}


def _read_precision(p: Any, _: tuple[Shape, ...]) -> tuple[str, ...]:
    numbers = p.precision_config.operand_precision
    if any(not 0 <= n < len(_PRECISIONS) for n in numbers):
        raise InvalidArgumentError("operand_precision contains an unknown value")
    return tuple(_PRECISIONS[n] for n in numbers) if any(numbers) else ()


def _write_precision(p: Any, value: tuple[str, ...]) -> None:
    p.precision_config.operand_precision.extend(_PRECISIONS.index(v) for v in value)


def _read_groups(p: Any, _: tuple[Shape, ...]) -> ReplicaGroups:
    if p.HasField("mesh_axes_replica_group_list"):
        raise UnimplementedError("replica groups by mesh axes are not supported")
    if p.HasField("iota_collective_device_list"):
        iota_list = p.iota_collective_device_list
        dims = (iota_list.num_replica_groups, iota_list.num_devices_per_group)
        iota = IotaTiles(dims, tuple(iota_list.iota_reshape_dims), tuple(iota_list.iota_transpose_perm))
        return ReplicaGroups(iota=check_iota(iota))
    group_list = p.collective_device_list.replica_groups or p.replica_groups
    return ReplicaGroups(tuple(tuple(g.replica_ids) for g in group_list))


def _write_groups(p: Any, groups: ReplicaGroups) -> None:
    if groups.iota:
        if len(groups.iota.dims) != 2:
            raise UnimplementedError(f"replica groups over {len(groups.iota.dims)} dimensions have no proto form")
        message = p.iota_collective_device_list
        message.num_replica_groups, message.num_devices_per_group = groups.iota.dims
        message.iota_reshape_dims.extend(groups.iota.reshape)
        message.iota_transpose_perm.extend(groups.iota.transpose or range(len(groups.iota.reshape)))
        return
    for group in groups.groups:
        p.replica_groups.add(replica_ids=group)
        p.collective_device_list.replica_groups.add(replica_ids=group)


def _read_pairs(p: Any, _: tuple[Shape, ...]) -> tuple[tuple[int, int], ...]:
    return tuple((pair.source, pair.target) for pair in p.source_target_pairs)


def _write_pairs(p: Any, pairs: tuple[tuple[int, int], ...]) -> None:
    for source, target in pairs:
        p.source_target_pairs.add(source=source, target=target)


def _read_slice_sizes(p: Any, operands: tuple[Shape, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of several slices, stored one after the other."""
    flat, rank = tuple(p.dynamic_slice_sizes), (operands[0].rank if operands and operands[0].is_array else 0)
    if not flat:
        return ()
    if not rank or len(flat) % rank:
        raise InvalidArgumentError(f"{len(flat)} slice sizes for operands of rank {rank}")
    return tuple(flat[i : i + rank] for i in range(0, len(flat), rank))


def _write_slice_sizes(p: Any, sizes: tuple[tuple[int, ...], ...]) -> None:
    for size in sizes:
        p.dynamic_slice_sizes.extend(size)


def _read_aliasing(p: Any, _: tuple[Shape, ...]) -> tuple[Alias, ...]:
    aliasing = p.output_operand_aliasing
    return tuple(Alias(tuple(a.output_shape_index), a.operand_index, tuple(a.operand_shape_index)) for a in aliasing)


def _write_aliasing(p: Any, aliases: tuple[Alias, ...]) -> None:
    for a in aliases:
        p.output_operand_aliasing.add(
            output_shape_index=a.output_index, operand_index=a.operand, operand_shape_index=a.operand_index
        )


def _read_layouts(p: Any, _: tuple[Shape, ...]) -> tuple[Shape, ...] | None:
    return tuple(read_shape(s) for s in p.operand_shapes_with_layout) if p.constrain_layout else None


def _write_layouts(p: Any, shapes: tuple[Shape, ...]) -> None:
    p.constrain_layout = True
    for shape in shapes:
        write_shape(p.operand_shapes_with_layout.add(), shape)


def _read_domain(p: Any, _: tuple[Shape, ...]) -> DomainAttr:
    return DomainAttr("sharding", read_sharding(p.domain_entry_sharding), read_sharding(p.domain_exit_sharding))


def _write_domain(p: Any, domain: DomainAttr) -> None:
    write_sharding(p.domain_entry_sharding, domain.entry)
    write_sharding(p.domain_exit_sharding, domain.exit)


def _read_accuracy(p: Any, _: tuple[Shape, ...]) -> ResultAccuracy | None:
    accuracy = p.result_accuracy
    if accuracy.HasField("tolerance"):
        t = accuracy.tolerance
        return ResultAccuracy("tolerance", t.atol, t.rtol, t.ulps)
    return ResultAccuracy("highest") if accuracy.mode == 1 else None


def _write_accuracy(p: Any, accuracy: ResultAccuracy) -> None:
    if accuracy.mode != "tolerance":
        p.result_accuracy.mode = int(accuracy.mode == "highest")
        return
    t = p.result_accuracy.tolerance
    t.atol, t.rtol, t.ulps = accuracy.atol, accuracy.rtol, accuracy.ulps
    t.SetInParent()


def _read_tristate(p: Any, _: tuple[Shape, ...]) -> bool | None:
    return {1: True, 2: False}.get(p.is_associative)


def _shape_codec(field: str) -> Codec:
    def read(p: Any, _: tuple[Shape, ...]) -> Shape | None:
        return read_shape(getattr(p, field)) if p.HasField(field) else None

    return Codec(read, lambda p, v: write_shape(getattr(p, field), v))


def _read_constant(p: Any, _: tuple[Shape, ...]) -> Any:
    return read_literal(p.literal) if p.HasField("literal") else None


_DOT, _GATHER, _SCATTER = "dot_dimension_numbers", "gather_dimension_numbers", "scatter_dimension_numbers"
_RAGGED, _SOLVE = "ragged_dot_dimension_numbers", "triangular_solve_options"
_SCHEDULES = ("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")
_API = ("UNSPECIFIED", "ORIGINAL", "STATUS_RETURNING", "STATUS_RETURNING_UNIFIED", "TYPED_FFI")
_PADDINGS = ("PADDING_INVALID", "PADDING_VALID", "PADDING_SAME")

# fmt: off
CODECS: dict[str | tuple[str, str], Codec] = {
    "parameter_number":      _scalar("parameter_number"),
    "literal":               Codec(_read_constant, lambda p, v: write_literal(p.literal, v)),
    "index":                 _scalar("tuple_index"),
    "dimensions":            _dims("dimensions"),
    ("all-to-all", "dimensions"): _dims("dimensions", optional=True),
    "iota_dimension":        _singleton("dimensions"),
    "inferred_dimension":    _singleton("dimensions", optional=True),
    "exponent_bits":         _scalar("exponent_bits"),
    "mantissa_bits":         _scalar("mantissa_bits"),
    "direction":             _string_enum("comparison_direction", "EQ NE GE GT LE LT"),
    "type":                  _string_enum("comparison_type", "FLOAT TOTALORDER SIGNED UNSIGNED"),
    "result_accuracy":       Codec(_read_accuracy, _write_accuracy),
    "slice":                 Codec(_read_slice, _write_slice),
    "padding":               Codec(_read_padding, _write_padding),
    "dynamic_slice_sizes":   _dims("dynamic_slice_sizes"),
    "offset_dims":           _dims(f"{_GATHER}.offset_dims"),
    "collapsed_slice_dims":  _dims(f"{_GATHER}.collapsed_slice_dims"),
    "start_index_map":       _dims(f"{_GATHER}.start_index_map"),
    "operand_batching_dims": _dims(f"{_GATHER}.operand_batching_dims"),
    "start_indices_batching_dims": _dims(f"{_GATHER}.start_indices_batching_dims"),
    ("gather", "index_vector_dim"): _scalar(f"{_GATHER}.index_vector_dim"),
    "slice_sizes":           _dims("gather_slice_sizes"),
    ("collective-permute", "slice_sizes"): Codec(_read_slice_sizes, _write_slice_sizes),
    ("collective-permute-start", "slice_sizes"): Codec(_read_slice_sizes, _write_slice_sizes),
    "update_window_dims":    _dims(f"{_SCATTER}.update_window_dims"),
    "inserted_window_dims":  _dims(f"{_SCATTER}.inserted_window_dims"),
    "scatter_dims_to_operand_dims": _dims(f"{_SCATTER}.scatter_dims_to_operand_dims"),
    "input_batching_dims":   _dims(f"{_SCATTER}.input_batching_dims"),
    "scatter_indices_batching_dims": _dims(f"{_SCATTER}.scatter_indices_batching_dims"),
    ("scatter", "index_vector_dim"): _scalar(f"{_SCATTER}.index_vector_dim"),
    "indices_are_sorted":    _scalar("indices_are_sorted"),
    "unique_indices":        _scalar("unique_indices"),
    "cross_program_prefetch_index": _optional("cross_program_prefetch_index"),
    "lhs_batch_dims":        _dims(f"{_DOT}.lhs_batch_dimensions"),
    "lhs_contracting_dims":  _dims(f"{_DOT}.lhs_contracting_dimensions"),
    "rhs_batch_dims":        _dims(f"{_DOT}.rhs_batch_dimensions"),
    "rhs_contracting_dims":  _dims(f"{_DOT}.rhs_contracting_dimensions"),
    ("ragged-dot", "lhs_batch_dims"):       _dims(f"{_RAGGED}.{_DOT}.lhs_batch_dimensions"),
    ("ragged-dot", "lhs_contracting_dims"): _dims(f"{_RAGGED}.{_DOT}.lhs_contracting_dimensions"),
    ("ragged-dot", "rhs_batch_dims"):       _dims(f"{_RAGGED}.{_DOT}.rhs_batch_dimensions"),
    ("ragged-dot", "rhs_contracting_dims"): _dims(f"{_RAGGED}.{_DOT}.rhs_contracting_dimensions"),
    "lhs_ragged_dims":       _dims(f"{_RAGGED}.lhs_ragged_dimensions"),
    "rhs_group_dims":        _dims(f"{_RAGGED}.rhs_group_dimensions"),
    "operand_precision":     Codec(_read_precision, _write_precision),
    ("dot", "algorithm"):    _enum("precision_config.algorithm", _ALGORITHMS),
    "window":                Codec(_read_window, _write_window),
    "dim_labels":            Codec(_read_conv, _write_conv),
    "feature_group_count":   _nonzero("feature_group_count"),
    "batch_group_count":     _nonzero("batch_group_count"),
    "fft_type":              _enum("fft_type", ("FFT", "IFFT", "RFFT", "IRFFT")),
    "fft_length":            _dims("fft_length"),
    "left_side":             _scalar(f"{_SOLVE}.left_side"),
    ("triangular-solve", "lower"): _scalar(f"{_SOLVE}.lower"),
    "unit_diagonal":         _scalar(f"{_SOLVE}.unit_diagonal"),
    "transpose_a":           _enum(f"{_SOLVE}.transpose_a", (None, "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")),
    ("cholesky", "lower"):   _scalar("cholesky_options.lower"),
    "epsilon":               _scalar("epsilon"),
    "feature_index":         _scalar("feature_index"),
    "is_composite":          _scalar("is_composite"),
    "kind":                  _string_enum("fusion_kind", "kLoop kInput kOutput kCustom"),
    "output_to_operand_aliasing": Codec(_read_aliasing, _write_aliasing),
    "custom_call_target":    _string("custom_call_target"),
    "operand_layout_constraints": Codec(_read_layouts, _write_layouts),
    "custom_call_has_side_effect": _scalar("custom_call_has_side_effect"),
    ("custom-call", "padding_type"): _enum("padding_type", (None, *_PADDINGS[1:])),
    "schedule":              _enum("custom_call_schedule", _SCHEDULES),
    "api_version":           _enum("custom_call_api_version", tuple(f"API_VERSION_{v}" for v in _API)),
    "async_execution_thread": _string("async_execution_thread"),
    "domain":                Codec(_read_domain, _write_domain),
    "channel_id":            _nonzero("channel_id"),
    "replica_groups":        Codec(_read_groups, _write_groups),
    "constrain_layout":      _scalar("constrain_layout"),
    "use_global_device_ids": _scalar("use_global_device_ids"),
    "source_target_pairs":   Codec(_read_pairs, _write_pairs),
    "num_carries":           _scalar("num_carries"),
    "is_reverse":            _scalar("is_reverse"),
    "is_associative":        Codec(_read_tristate, lambda p, v: setattr(p, "is_associative", 1 if v else 2)),
    "is_stable":             _scalar("is_stable"),
    "k":                     _scalar("k"),
    "largest":               _scalar("largest"),
    "distribution":          _enum("distribution", ("", "rng_uniform", "rng_normal")),
    ("rng-bit-generator", "algorithm"): _enum("rng_algorithm", ("rng_default", "rng_three_fry", "rng_philox")),
    "delta":                 _scalar("delta"),
    "infeed_config":         _string("infeed_config", binary=True),
    "outfeed_config":        _string("outfeed_config", binary=True),
    "outfeed_shape":         _shape_codec("outfeed_shape"),
    "is_host_transfer":      _scalar("is_host_transfer"),
}
# fmt: on


def codec(opcode: str, attr: str) -> Codec:
    """Return the codec of an opcode's attribute."""
    return CODECS.get((opcode, attr)) or CODECS[attr]
