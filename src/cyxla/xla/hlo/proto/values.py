"""Conversion of shapes, layouts, literals, shardings and metadata to protos and back."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.types import COMBINE, ElementType, Layout, Literal, Shape, SplitConfig, element_type, row_major
from cyxla.xla.hlo.attributes import IotaTiles, Metadata, Sharding
from cyxla.xla.hlo.limits import MAX_RANK
from cyxla.xla.hlo.proto.schema import text, utf8
from cyxla.xla.hlo.text import parse_shape
from cyxla.xla.hlo.text.attributes import METADATA_FIELDS
from cyxla.xla.hlo.text.tile_assignment import canonical_sharding

_LEVELS = ("D", "C", "S", "L")
_SHARDINGS = ("replicated", "maximal", "tuple", "devices", "manual", "unknown", "unreduced")
_GROUPS = ("shard_as", "shard_like")
_METADATA_STRINGS = {"op_type", "op_name", "source_file", "deduplicated_name", "scheduling_name"}
_WIDE = {"s32s": ElementType.S32, "s64s": ElementType.S64, "u32s": ElementType.U32, "u64s": ElementType.U64}
_PACKED = {"preds", "f32s", "f64s", "c64s", "c128s"}  # bytes in chunks, see schema


def read_type(number: int) -> ElementType:
    """Return the element type with a number."""
    try:
        return ElementType(number)
    except ValueError:
        raise InvalidArgumentError(f"{number} is not an element type") from None


def read_shape(p: Any) -> Shape:
    """Return the shape in a ShapeProto."""
    dtype = read_type(p.element_type)
    if dtype is ElementType.TUPLE:
        return Shape.tuple([read_shape(e) for e in p.tuple_shapes])
    if dtype is ElementType.BUFFER:
        raise UnimplementedError("buffer shapes b(..) are not supported")
    if p.dimensions and not dtype.is_array:
        raise InvalidArgumentError(f"{dtype} has no dimensions")
    layout = read_layout(p.layout) if p.HasField("layout") and dtype.is_array else None
    dims, dynamic = tuple(p.dimensions), tuple(p.is_dynamic_dimension)
    if dynamic and len(dynamic) != len(dims):
        raise ShapeError(f"{len(dynamic)} dynamic flags for {len(dims)} dimensions")
    if layout is not None and not dims and layout == Layout(()):
        layout = None
    return Shape.array(dtype, dims, dynamic=dynamic, layout=layout)


def read_layout(p: Any) -> Layout:
    """Return the layout in a LayoutProto."""
    if any(not 0 <= level < len(_LEVELS) for level in p.dim_level_types):
        raise InvalidArgumentError("a dimension level is not one of dense, compressed, singleton, loose compressed")
    levels = tuple(_LEVELS[level] for level in p.dim_level_types)
    sizes = [d for t in p.tiles for d in t.dimensions if d != COMBINE]
    sizes += [d for s in p.split_configs for d in (s.dimension, *s.split_indices)]
    sizes += (p.tail_padding_alignment_in_elements, p.element_size_in_bits, p.memory_space)
    if min(sizes) < 0 or p.dynamic_shape_metadata_prefix_bytes < 0:
        raise InvalidArgumentError("a layout contains a negative number")
    if any(not s.split_indices for s in p.split_configs):
        raise InvalidArgumentError("a layout splits a dimension at no index")
    return Layout(
        minor_to_major=tuple(p.minor_to_major),
        dim_level_types=levels if any(level != "D" for level in levels) else (),
        tiles=tuple(tuple(t.dimensions) for t in p.tiles),
        tail_padding_alignment=p.tail_padding_alignment_in_elements or 1,
        index_primitive_type=read_type(p.index_primitive_type).text if p.index_primitive_type else "",
        pointer_primitive_type=read_type(p.pointer_primitive_type).text if p.pointer_primitive_type else "",
        element_size_in_bits=p.element_size_in_bits,
        memory_space=p.memory_space,
        split_configs=tuple(SplitConfig(s.dimension, tuple(s.split_indices)) for s in p.split_configs),
        physical_shape=read_shape(p.physical_shape).to_text() if p.HasField("physical_shape") else "",
        dynamic_shape_metadata_prefix_bytes=p.dynamic_shape_metadata_prefix_bytes,
    )


def write_shape(p: Any, shape: Shape) -> None:
    """Fill a ShapeProto; arrays without a layout get the row-major one."""
    p.element_type = shape.dtype.value
    if shape.is_tuple:
        for element in shape.elements:
            write_shape(p.tuple_shapes.add(), element)
        return
    p.dimensions.extend(shape.dims)
    p.is_dynamic_dimension.extend(shape.dynamic)
    if shape.is_array:
        write_layout(p.layout, shape.layout or row_major(shape.rank))


def write_layout(p: Any, layout: Layout) -> None:
    """Fill a LayoutProto."""
    p.minor_to_major.extend(layout.minor_to_major)
    p.dim_level_types.extend(_LEVELS.index(level[0].upper()) for level in layout.dim_level_types)
    for tile in layout.tiles:
        p.tiles.add().dimensions.extend(tile)
    p.tail_padding_alignment_in_elements = layout.tail_padding_alignment
    for field in ("index_primitive_type", "pointer_primitive_type"):
        if getattr(layout, field):
            setattr(p, field, element_type(getattr(layout, field)).value)
    p.element_size_in_bits, p.memory_space = layout.element_size_in_bits, layout.memory_space
    p.dynamic_shape_metadata_prefix_bytes = layout.dynamic_shape_metadata_prefix_bytes
    for split_config in layout.split_configs:
        p.split_configs.add(dimension=split_config.dimension, split_indices=split_config.split_indices)
    if layout.physical_shape:
        write_shape(p.physical_shape, parse_shape(layout.physical_shape))
    p.SetInParent()


def _field_of(dtype: ElementType) -> str:
    return f"{dtype.text}s"


def read_literal(p: Any) -> Literal:
    """Return the literal in a LiteralProto."""
    shape = read_shape(p.shape)
    if shape.is_tuple:
        if len(p.tuple_literals) != len(shape.elements):
            raise InvalidArgumentError(f"{len(p.tuple_literals)} literals for the tuple {shape}")
        return Literal(tuple(read_literal(e) for e in p.tuple_literals))
    if not shape.is_array:
        raise InvalidArgumentError(f"constants of {shape} are not supported")
    flat = _read_elements(p, shape.dtype)
    if flat.size != shape.size:
        raise InvalidArgumentError(f"{flat.size} elements in a literal of {shape}")
    order = tuple(reversed(shape.minor_to_major))
    try:
        elements = flat.reshape([shape.dims[d] for d in order])
        return Literal(elements.transpose(np.argsort(order)) if order else elements, shape.static)
    except ValueError as e:  # more dimensions than NumPy has
        raise InvalidArgumentError(f"a literal of {shape}: {e}") from None


def _read_elements(p: Any, dtype: ElementType) -> np.ndarray[Any, Any]:
    field, kind = _field_of(dtype), dtype.numpy_dtype
    assert kind is not None
    elements: Any = getattr(p, field)
    if field in _WIDE:
        return np.array(elements, kind)
    data = b"".join(elements) if field in _PACKED else elements
    if len(data) % kind.itemsize:
        raise InvalidArgumentError(f"{len(data)} bytes are not a multiple of the element size of {dtype}")
    if dtype is ElementType.PRED:
        return np.asarray(np.frombuffer(data, np.uint8) != 0)
    if dtype.bits < 8 and dtype.is_integer:
        bits = np.frombuffer(data, np.uint8) & (2**dtype.bits - 1)
        signed = bits.astype(np.int8) - ((bits >> (dtype.bits - 1)) * 2**dtype.bits * dtype.is_signed).astype(np.int8)
        return np.asarray(signed, kind)
    return np.frombuffer(data, kind.newbyteorder("<") if kind.itemsize > 1 and kind.isbuiltin == 1 else kind)


def write_literal(p: Any, literal: Literal) -> None:
    """Fill a LiteralProto in row-major order."""
    write_shape(p.shape, literal.shape)
    for element in literal.elements:
        write_literal(p.tuple_literals.add(), element)
    if literal.is_tuple:
        return
    dtype, array = literal.shape.dtype, np.ascontiguousarray(literal.array).reshape(-1)
    field = _field_of(dtype)
    if field in _WIDE:
        getattr(p, field).extend(array.tolist())
        return
    if dtype.bits < 8 and dtype.is_integer:
        array = array.astype(np.int8).view(np.uint8) & (2**dtype.bits - 1)
    if field not in _PACKED:
        setattr(p, field, array.tobytes())
    elif array.size:
        getattr(p, field).append(array.tobytes())


def read_sharding(p: Any) -> Sharding:
    """Return the sharding in an OpSharding."""
    if p.HasField("named_sharding"):
        raise UnimplementedError("shardings by named mesh axes are not supported")
    kind = _choice(_SHARDINGS, p.type, "kind of sharding")
    if kind == "tuple":
        return Sharding("tuple", elements=tuple(read_sharding(e) for e in p.tuple_shardings))
    dims = tuple(p.tile_assignment_dimensions)
    iota = IotaTiles(dims, tuple(p.iota_reshape_dims), tuple(p.iota_transpose_perm)) if p.iota_reshape_dims else None
    group = (
        (_choice(_GROUPS, p.shard_group_type, "kind of shard group"), p.shard_group_id) if p.is_shard_group else None
    )
    if kind != "devices":
        devices = tuple(p.tile_assignment_devices)[:1] if kind == "maximal" else ()
        if kind == "maximal" and not devices:
            raise InvalidArgumentError("a maximal sharding names its device")
        return Sharding(kind, devices=devices, shard_group=group)
    last = tuple(_choice(_SHARDINGS, t, "kind of sharding") for t in p.last_tile_dims)
    _check_tiles(dims, iota, tuple(p.tile_assignment_devices), len(last) + p.replicate_on_last_tile_dim)
    devices = () if iota else tuple(p.tile_assignment_devices)
    sharding = Sharding(kind, devices, dims, iota, p.replicate_on_last_tile_dim, last, group)
    return canonical_sharding(sharding)


def _check_tiles(dims: tuple[int, ...], iota: IotaTiles | None, devices: tuple[int, ...], subgroups: int) -> None:
    valid = len(dims) <= 32 and (not iota or len(iota.reshape) <= MAX_RANK)
    count = prod(iota.reshape) if iota and valid else len(devices)
    valid = valid and all(d > 0 for d in (*dims, *(iota.reshape if iota else ()))) and prod(dims) == count
    if iota and iota.transpose and sorted(iota.transpose) != list(range(len(iota.reshape))):
        valid = False
    if not valid or subgroups > len(dims):
        raise InvalidArgumentError(
            f"a sharding in tiles of {list(dims)[:40]} has {count} devices and {subgroups} subgroups"
        )


def _choice(options: tuple[str, ...], number: int, kind: str) -> str:
    if not 0 <= number < len(options):
        raise InvalidArgumentError(f"{number} is not a {kind}")
    return options[number]


def write_sharding(p: Any, sharding: Sharding) -> None:
    """Fill an OpSharding."""
    if sharding.kind == "named":
        raise UnimplementedError(
            f"the sharding {{{sharding.named[:80]}}} names axes of a mesh, which has no proto form"
        )
    p.type = _SHARDINGS.index(sharding.kind)
    for element in sharding.elements:
        write_sharding(p.tuple_shardings.add(), element)
    if sharding.kind == "maximal":
        p.tile_assignment_dimensions.append(1)
    p.tile_assignment_dimensions.extend(sharding.tile_dims)
    p.tile_assignment_devices.extend(sharding.devices)
    if sharding.iota:
        p.iota_reshape_dims.extend(sharding.iota.reshape)
        p.iota_transpose_perm.extend(sharding.iota.transpose or range(len(sharding.iota.reshape)))
    p.replicate_on_last_tile_dim = sharding.last_tile_dim_replicate
    p.last_tile_dims.extend(_SHARDINGS.index(k) for k in sharding.last_tile_dims)
    if sharding.shard_group:
        p.is_shard_group, p.shard_group_id = True, sharding.shard_group[1]
        p.shard_group_type = _GROUPS.index(sharding.shard_group[0])
    p.SetInParent()


def read_metadata(p: Any) -> Metadata:
    """Return the metadata in an OpMetadata."""
    fields: list[tuple[str, object]] = []
    for field in METADATA_FIELDS:
        value = getattr(p, field, None)
        if value:
            fields.append((field, text(value) if field in _METADATA_STRINGS else _plain_value(value)))
    return tuple(fields)


def _plain_value(value: Any) -> object:
    return value if isinstance(value, int) else tuple(value)


def write_metadata(p: Any, metadata: Metadata) -> None:
    """Fill an OpMetadata."""
    for field, value in metadata:
        if not hasattr(p, field):
            continue
        if isinstance(value, tuple):
            getattr(p, field).extend(value)
        else:
            setattr(p, field, utf8(value) if isinstance(value, str) else _int32(field, value))


def _int32(field: str, value: object) -> int:
    number = int(value)  # type: ignore[call-overload]
    wide = field.startswith("size_of")
    return number if wide or -(2**31) <= number < 2**31 else 0
