"""Attributes' values, shapes and tensors, to and from their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.attr_value import AttrValue, NameAttrList, TensorValue
from cyxla.core.framework.protos.messages import message, parse_text
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN, TensorShape
from cyxla.core.framework.types import FLOAT8, DataType
from cyxla.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError

Array = np.ndarray[Any, Any]

# Shapes ----------------------------------------------------------------------------------------------------------


def shape_from_proto(proto: Any) -> TensorShape:
    """A shape from a ``TensorShapeProto``; -1 stands for a size that is unknown.

    Raises
    ------
    InvalidArgumentError
        A size below -1, more dimensions than allowed, or dimensions beside ``unknown_rank``.
    """
    sizes = [dim.size for dim in proto.dim]
    if proto.unknown_rank:
        if sizes:
            raise InvalidArgumentError(f"a shape of unknown rank has the dimensions {sizes}")
        return UNKNOWN
    if not sizes:
        return SCALAR
    if min(sizes) < -1:
        raise InvalidArgumentError(f"a shape has a size below -1: {sizes[:20]}", hint="-1 denotes an unknown size")
    return TensorShape(None if size < 0 else size for size in sizes)


def shape_to_proto(shape: TensorShape) -> Any:
    """The ``TensorShapeProto`` of a shape."""
    proto = message("TensorShapeProto")()
    if shape.dims is None:
        proto.unknown_rank = True
    for size in shape.dims or ():
        proto.dim.add(size=-1 if size is None else size)
    return proto


# Tensors ---------------------------------------------------------------------------------------------------------

# The field that holds elements of a type unless they come as raw bytes.
_FIELDS: dict[DataType, str] = {
    DataType[f"DT_{name}"]: field
    for field, names in {
        "float_val": "FLOAT",
        "double_val": "DOUBLE",
        "int_val": "INT32 UINT8 INT16 INT8 QINT8 QUINT8 QINT32 QINT16 QUINT16 UINT16 INT4 UINT4 INT2 UINT2",
        "string_val": "STRING",
        "scomplex_val": "COMPLEX64",
        "int64_val": "INT64",
        "bool_val": "BOOL",
        "dcomplex_val": "COMPLEX128",
        "half_val": "HALF BFLOAT16",
        "uint32_val": "UINT32",
        "uint64_val": "UINT64",
        "float8_val": "FLOAT8_E5M2 FLOAT8_E4M3FN FLOAT8_E4M3FNUZ FLOAT8_E4M3B11FNUZ FLOAT8_E5M2FNUZ FLOAT4_E2M1FN",
        "resource_handle_val": "RESOURCE",
        "variant_val": "VARIANT",
    }.items()
    for name in names.split()
}
_PATTERNS = {DataType.DT_HALF: np.uint16, DataType.DT_BFLOAT16: np.uint16}  # stored as bit patterns in wider integers
_DENSE = 1 << 12  # larger splats are views of one element
_MAX_PADDED = 1 << 28  # bytes: elements that were left out and cannot be a view


def tensor_from_proto(proto: Any) -> TensorValue:
    """A constant from a ``TensorProto``.

    Elements that are left out repeat the last one given, or are zero.

    Raises
    ------
    InvalidArgumentError
        An unknown type, a shape that is not known, or bytes that are not as many as the shape asks for.
    UnimplementedError
        Elements that are resource handles or variants.
    ResourceExhaustedError
        A few bytes that stand for very many elements.
    """
    dtype = data_type(proto.dtype)
    if dtype.is_ref or not dtype:
        raise InvalidArgumentError(f"a tensor has the type {dtype.name}")
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if proto.tensor_shape.unknown_rank or (sizes and min(sizes) < 0):
        raise InvalidArgumentError("the shape of a tensor is not fully known")
    TensorShape(sizes)  # checks the rank
    if prod(max(size, 1) for size in sizes) >= 1 << 58:  # NumPy counts bytes in 63 bits, empty dimensions aside
        raise InvalidArgumentError(f"a tensor of the shape {sizes} has too many elements")
    flat = _from_content(dtype, proto.tensor_content) if proto.tensor_content else None
    if flat is None:
        return TensorValue(dtype, _fill_shape(_from_typed_fields(dtype, proto), sizes))
    if flat.size != prod(sizes):
        raise InvalidArgumentError(f"a tensor of {dtype}{sizes} has {len(proto.tensor_content)} bytes of content")
    return TensorValue(dtype, flat.reshape(sizes))


def data_type(number: int) -> DataType:
    """The data type of that number; InvalidArgumentError if there is none."""
    try:
        return DataType(number)
    except ValueError:
        raise InvalidArgumentError(f"{number} is not the number of a data type") from None


def _from_content(dtype: DataType, content: bytes) -> Array:
    if dtype.numpy.hasobject:
        raise InvalidArgumentError(f"a tensor of type {dtype} cannot come as raw bytes")
    if len(content) % dtype.numpy.itemsize:
        raise InvalidArgumentError(f"{len(content)} bytes are no whole number of elements of type {dtype}")
    if dtype is DataType.DT_BOOL:
        return np.frombuffer(content, np.uint8).astype(np.bool_)
    return np.frombuffer(content, dtype.numpy)


def _from_typed_fields(dtype: DataType, proto: Any) -> Array:
    """The elements of the typed field, as many as there are."""
    values = getattr(proto, _FIELDS[dtype])
    if dtype in (DataType.DT_RESOURCE, DataType.DT_VARIANT):
        if len(values):
            raise UnimplementedError(f"a constant of type {dtype}: handles cannot be read from a graph")
        return np.empty(0, object)
    if dtype is DataType.DT_STRING:
        strings = np.empty(len(values), object)
        strings[:] = list(values)
        return strings
    if dtype in FLOAT8 or dtype is DataType.DT_FLOAT4_E2M1FN:
        return np.frombuffer(values, np.uint8).view(dtype.numpy)
    if dtype in _PATTERNS:
        return np.array(values, np.int64).astype(np.uint16).view(dtype.numpy)
    if dtype.numpy.kind == "c":
        parts = np.array(values, dtype.numpy.type(0).real.dtype)
        return parts[: len(parts) // 2 * 2].view(dtype.numpy)
    if proto.DESCRIPTOR.fields_by_name[_FIELDS[dtype]].name == "int_val" and dtype.numpy != np.int32:
        return np.array(values, np.int32).astype(dtype.numpy)
    return np.array(values, dtype.numpy)


def _fill_shape(values: Array, sizes: list[int]) -> Array:
    """An array of these sizes: the elements given, and the last one (or zero) for the rest."""
    count = prod(sizes)
    if len(values) >= count:
        return values[:count].reshape(sizes)
    if len(values) <= 1:
        last = values.reshape(()) if len(values) else _zero(values.dtype)
        splat = np.broadcast_to(last, sizes)
        return splat if count > _DENSE else splat.copy()
    if count * values.dtype.itemsize > _MAX_PADDED:
        raise ResourceExhaustedError(f"a tensor of the shape {sizes} is given by its first {len(values)} elements")
    return np.concatenate([values, np.broadcast_to(values[-1], [count - len(values)])]).reshape(sizes)


def _zero(dtype: np.dtype[Any]) -> Array:
    zero = np.zeros((), dtype)
    if dtype.hasobject:
        zero[()] = b""
    return zero


def tensor_to_proto(value: TensorValue) -> Any:
    """The ``TensorProto`` of a constant: single values in their typed field, others as raw bytes.

    Raises
    ------
    UnimplementedError
        Resource handles or variants.
    """
    dtype, array = value.dtype, value.array
    proto = message("TensorProto")(dtype=int(dtype), tensor_shape=shape_to_proto(TensorShape(array.shape)))
    if dtype in (DataType.DT_RESOURCE, DataType.DT_VARIANT):
        raise UnimplementedError(f"a constant of type {dtype} cannot be written to a graph")
    if dtype is DataType.DT_STRING:
        proto.string_val.extend(array.ravel().tolist())
    elif array.size and (array.size == 1 or not any(array.strides)):
        put_elements(proto, dtype, array.reshape(-1)[:1] if array.size == 1 else array[(0,) * array.ndim].reshape(1))
    else:
        proto.tensor_content = np.ascontiguousarray(array).tobytes()
    return proto


def put_elements(proto: Any, dtype: DataType, value: Array) -> None:
    """Add elements to the typed field of a ``TensorProto``."""
    field = _FIELDS[dtype]
    value = np.ascontiguousarray(value).reshape(-1)
    if field == "float8_val":
        proto.float8_val = value.tobytes()
        return
    if dtype in _PATTERNS:
        value = value.view(np.uint16)
    elif value.dtype.kind == "c":
        value = value.view(value.real.dtype)
    elif field == "int_val":
        value = value.astype(np.int32)
    getattr(proto, field).extend(value.tolist())


# Attributes ------------------------------------------------------------------------------------------------------


def text_of(data: bytes) -> str:
    """A string attribute as str; bytes that are not UTF-8 become surrogates."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """The inverse of `text_of`."""
    return text.encode("utf-8", "surrogateescape")


def func_from_proto(proto: Any) -> NameAttrList:
    """A function's name with attributes, from a ``NameAttrList``."""
    return NameAttrList(proto.name, attrs_from_proto(proto.attr))


def func_to_proto(func: NameAttrList) -> Any:
    """The ``NameAttrList`` of a function's name with attributes."""
    proto = message("NameAttrList")(name=func.name)
    attrs_to_proto(func.attrs, proto.attr)
    return proto


# The field of the message: kind, how to read, how to write.
_KINDS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "s": ("string", text_of, bytes_of),
    "i": ("int", int, int),
    "f": ("float", float, float),
    "b": ("bool", bool, bool),
    "type": ("type", data_type, int),
    "shape": ("shape", shape_from_proto, shape_to_proto),
    "tensor": ("tensor", tensor_from_proto, tensor_to_proto),
    "func": ("func", func_from_proto, func_to_proto),
    "placeholder": ("placeholder", str, str),
}
_FIELD_OF = {kind: field for field, (kind, _, _) in _KINDS.items()}
_MESSAGES = ("shape", "tensor", "func")


def attr_from_proto(proto: Any) -> AttrValue:
    """An attribute's value from an ``AttrValue``; one without any value has the kind ``""``.

    Raises
    ------
    InvalidArgumentError
        A type without a name, a shape that is none, a tensor that does not hold together.
    """
    field = proto.WhichOneof("value")
    if field is None:
        return AttrValue("", None)
    if field == "list":
        return _list_from_proto(proto.list)
    kind, read, _ = _KINDS[field]
    return AttrValue(kind, read(getattr(proto, field)))


def _list_from_proto(proto: Any) -> AttrValue:
    fields = proto.ListFields()
    if not fields:
        return AttrValue("list", ())
    if len(fields) > 1:
        raise InvalidArgumentError(f"a list attr has values of several kinds: {', '.join(f.name for f, _ in fields)}")
    kind, read, _ = _KINDS[fields[0][0].name]
    return AttrValue(f"list({kind})", tuple(read(value) for value in fields[0][1]))


def attr_to_proto(attr: AttrValue) -> Any:
    """The ``AttrValue`` message of an attribute's value."""
    proto = message("AttrValue")()
    write_attr(attr, proto)
    return proto


def write_attr(attr: AttrValue, proto: Any) -> None:
    """Fill an ``AttrValue`` message."""
    if attr.kind.startswith("list"):
        proto.list.SetInParent()
        if attr.value:
            field = _FIELD_OF[attr.kind[5:-1]]
            getattr(proto.list, field).extend(_KINDS[field][2](value) for value in attr.value)
        return
    if not attr.kind:
        return
    field = _FIELD_OF[attr.kind]
    value = _KINDS[field][2](attr.value)
    if attr.kind in _MESSAGES:
        getattr(proto, field).CopyFrom(value)
        getattr(proto, field).SetInParent()
    else:
        setattr(proto, field, value)


def attrs_from_proto(attrs: Mapping[str, Any]) -> dict[str, AttrValue]:
    """Attributes by name, in the order of their names: a map on the wire has none."""
    return {name: attr_from_proto(attrs[name]) for name in sorted(attrs)}


def attrs_to_proto(attrs: Mapping[str, AttrValue], proto: Any) -> None:
    """Fill a map of ``AttrValue`` messages."""
    for name, attr in attrs.items():
        write_attr(attr, proto[name])


def attr_from_text(kind: str, text: str) -> AttrValue:
    """An attribute's value of a kind from text: ``attr_from_text("shape", "{ dim { size: 2 } }")``.

    Raises
    ------
    InvalidArgumentError
        The text is no such value.
    """
    field = _FIELD_OF[kind]
    colon = "" if text.startswith("{") else ":"
    return attr_from_proto(parse_text("AttrValue", f"{field}{colon} {text}"))
