"""Checkpoints of version 1: one sorted table that holds metadata under the empty key, and the values of slices.

Each other key is made of the name of a tensor and the bounds of a slice, as in a tensor bundle; its value is a message
with the elements of the slice. A checkpoint may be sharded over several files, which a pattern matches.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cyxla.core.framework.checkpoint.sorted_table import read_table, write_table
from cyxla.core.framework.checkpoint.tensor_bundle import Extent, SavedPiece, slice_key
from cyxla.core.framework.environment.env import Env
from cyxla.core.framework.protos import messages as proto
from cyxla.core.framework.protos.attrs import put_elements, shape_from_proto, shape_to_proto, tensor_from_proto
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.errors import DataLossError, InternalError, InvalidArgumentError, NotFoundError, UnimplementedError

Array = np.ndarray[Any, Any]
_META = b""
_VERSION = 1
# Types that the format has fields for
_SAVED = frozenset(
    as_data_type(name)
    for name in (
        "float", "double", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8", "quint8",
        "qint32", "qint16", "quint16", "uint16", "complex128", "half",
    )
)  # fmt: skip


@dataclass
class SavedTensor:
    """Type and shape of a saved tensor, and its slices with the tables that hold them."""

    dtype: DataType
    shape: tuple[int, ...]
    slices: list[tuple[tuple[Extent, ...], dict[bytes, bytes]]] = field(default_factory=list)


class SliceFileReader:
    """Reader of a checkpoint of version 1.

    Parameters
    ----------
    pattern : str
        Name of the file, or a pattern that matches all files of the checkpoint.
    env : Env, optional
        Access to files; unlimited by default.

    Raises
    ------
    NotFoundError
        No file matches.
    DataLossError
        A file is corrupt, or has another format.
    """

    def __init__(self, pattern: str, env: Env | None = None) -> None:
        self.pattern = pattern
        env = env or Env()
        self._tensors: dict[str, SavedTensor] = {}
        paths = matching_files(pattern, env)
        if not paths:
            raise NotFoundError(
                "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for " + pattern
            )
        for path in paths:
            self._add_table(path, read_table(env.read_file(path)))

    def _add_table(self, path: str, table: dict[bytes, bytes]) -> None:
        if _META not in table:
            raise DataLossError(f"'{path}' is not a checkpoint: it has no metadata")
        meta = proto.parse_binary("SavedTensorSlices", table[_META]).meta
        for entry in meta.tensor:
            shape = tuple(dim.size for dim in entry.shape.dim)
            tensor = self._tensors.setdefault(entry.name, SavedTensor(as_data_type(entry.type), shape))
            if (tensor.dtype, tensor.shape) != (as_data_type(entry.type), shape):
                raise DataLossError(
                    f"the files of the checkpoint '{self.pattern}' differ in type or shape of '{entry.name}'"
                )
            tensor.slices += [(_extents(bounds), table) for bounds in entry.slice]

    def names(self) -> list[str]:
        """Names of the tensors, sorted."""
        return sorted(self._tensors)

    def entry(self, name: str) -> SavedTensor:
        """Return type, shape and slices of a tensor.

        Raises
        ------
        NotFoundError
            The checkpoint has no tensor of that name.
        """
        tensor = self._tensors.get(name)
        if tensor is None:
            raise NotFoundError(f'Tensor name "{name}" not found in checkpoint files {self.pattern}')
        return tensor

    def read(self, name: str, extents: Sequence[Extent] | None = None) -> Array:
        """Read a tensor or a slice of it.

        Raises
        ------
        NotFoundError
            The checkpoint has no tensor of that name.
        DataLossError
            The checkpoint lacks a part of the slice.
        """
        tensor = self.entry(name)
        wanted = _region(extents or [(0, -1)] * len(tensor.shape), tensor.shape)
        result = np.empty([s.stop - s.start for s in wanted], tensor.dtype.numpy)
        is_filled = np.zeros(result.shape, bool)
        for bounds, table in tensor.slices:
            region = _region(bounds, tensor.shape)
            common = [slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(wanted, region, strict=True)]
            if all(s.start < s.stop for s in common):
                target, source = _shifted(common, wanted), _shifted(common, region)
                result[target] = _load(name, bounds, region, tensor, table)[source]
                is_filled[target] = True
        if not is_filled.all():
            raise DataLossError(f"the checkpoint '{self.pattern}' lacks slices of '{name}'")
        return result


def matching_files(pattern: str, env: Env) -> list[str]:
    """Return the files that a name or pattern matches."""
    names = [pattern] if env.file_exists(pattern) else env.get_matching_paths(pattern)
    return [name for name in names if env.file_exists(name) and not env.is_directory(name)]


def _load(
    name: str, bounds: Sequence[Extent], region: Sequence[slice], tensor: SavedTensor, table: dict[bytes, bytes]
) -> Array:
    value = table.get(slice_key(name, bounds))
    if value is None:
        raise DataLossError(f"the metadata of a checkpoint list a slice of '{name}' that it does not hold")
    data = proto.parse_binary("SavedTensorSlices", value).data.data
    sizes = TensorShape(s.stop - s.start for s in region)
    data.dtype = int(tensor.dtype)  # which writers leave out
    data.tensor_shape.CopyFrom(shape_to_proto(sizes))
    return tensor_from_proto(data).array


def _extents(bounds: Any) -> tuple[Extent, ...]:
    return tuple((e.start, e.length if e.HasField("length") else -1) for e in bounds.extent)


def _region(extents: Sequence[Extent], shape: Sequence[int]) -> list[slice]:
    if len(extents) != len(shape):
        raise DataLossError(f"a slice of {len(extents)} dimensions of a tensor of shape {list(shape)}")
    pairs = zip(extents, shape, strict=True)
    return [slice(0, size) if length < 0 else slice(start, start + length) for (start, length), size in pairs]


def _shifted(region: Sequence[slice], origin: Sequence[slice]) -> tuple[slice, ...]:
    return tuple(slice(s.start - o.start, s.stop - o.start) for s, o in zip(region, origin, strict=True))


# Writing -----------------------------------------------------------------------------------------------------------
def write_slice_file(path: str, pieces: Iterable[SavedPiece], env: Env | None = None) -> None:
    """Write tensors and slices of tensors as one file, which replaces an existing one when it is complete.

    Access to files is unlimited by default.

    Raises
    ------
    UnimplementedError
        The format has no field for a type.
    InternalError
        Two slices of one tensor differ in its type or shape.
    """
    header = proto.message("SavedTensorSlices")()
    header.meta.versions.producer = _VERSION
    entries: dict[str, Any] = {}
    table: dict[bytes, bytes] = {}
    for piece in pieces:
        _add_piece(piece, header.meta, entries, table)
    table[_META] = header.SerializeToString()
    env = env or Env()
    target = env.path(path)
    env.recursively_create_dir(os.path.dirname(target))
    unfinished = f"{target}.tempstate{os.getpid()}"
    try:
        env.write_file(unfinished, write_table(table.items()))
        env.rename_file(unfinished, target)
    finally:
        if env.file_exists(unfinished):
            env.delete_file(unfinished)


def _add_piece(piece: SavedPiece, meta: Any, entries: dict[str, Any], table: dict[bytes, bytes]) -> None:
    dtype = piece.dtype or as_data_type(piece.array.dtype)
    if dtype in (DataType.DT_UINT32, DataType.DT_UINT64):
        raise InvalidArgumentError(
            f"Tensor slice serialization not implemented for dtype {int(dtype)}", hint="use SaveV2"
        )
    if dtype not in _SAVED:
        raise UnimplementedError(f"Saving data type {dtype} not yet supported", hint="use SaveV2")
    shape = TensorShape(piece.array.shape if piece.full_shape is None else piece.full_shape)
    entry = entries.get(piece.name)
    if entry is None:
        entry = entries[piece.name] = meta.tensor.add(name=piece.name, type=int(dtype), shape=shape_to_proto(shape))
    _check_same(entry, dtype, shape)
    extents = piece.extents or ((0, -1),) * len(shape)
    message = proto.message("SavedTensorSlices")()
    message.data.name = piece.name
    for bounds in (entry.slice.add(), message.data.slice):
        _write_extents(bounds, extents)
    put_elements(message.data.data, dtype, piece.array)
    table.setdefault(slice_key(piece.name, extents), message.SerializeToString())  # the first one of a slice counts


def _check_same(entry: Any, dtype: DataType, shape: TensorShape) -> None:
    saved = shape_from_proto(entry.shape)
    if saved != shape:
        raise InternalError(
            f"Mismatching shapes: existing tensor = {saved}, trying to add name {entry.name}, shape = {shape}"
        )
    if entry.type != dtype:
        raise InternalError(
            f"Mismatching types: existing type = {as_data_type(entry.type)}, trying to add name {entry.name}, type = "
            f"{dtype}"
        )


def _write_extents(bounds: Any, extents: Sequence[Extent]) -> None:
    bounds.SetInParent()
    for start, length in extents:
        extent = bounds.extent.add()
        if length >= 0:
            extent.start, extent.length = start, length
