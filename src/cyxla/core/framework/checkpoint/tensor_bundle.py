"""Checkpoints: tensors by name in an index file and data files.

``prefix.index`` is a sorted table: the empty key holds the header, the other keys hold the metadata of a tensor and the
location of its bytes in ``prefix.data-00000-of-00001`` and further data files. The entry of a tensor saved in slices
lists the slices, each of which has an entry under a key made of the name and the bounds of the slice.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.checkpoint.crc32c import crc32c, mask
from cyxla.core.framework.checkpoint.sorted_table import read_table, read_varint, write_table, write_varint
from cyxla.core.framework.environment.env import Env
from cyxla.core.framework.protos import messages as proto
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError

Array = np.ndarray[Any, Any]
Extent = tuple[int, int]  # start and length along one dimension; a length of -1 extends to the end
_HEADER = b""
_BIG = 1
_HAS_NO_BYTES = (DataType.DT_VARIANT, DataType.DT_RESOURCE)


@dataclass(frozen=True)
class BundleEntry:
    """Metadata of a saved tensor: type, shape, location, and its slices if it is saved in several."""

    dtype: DataType
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    slices: tuple[tuple[Extent, ...], ...] = ()


class BundleReader:
    """Reader of a checkpoint.

    Parameters
    ----------
    prefix : path
        Name of the files without ``.index``.
    env : Env, optional
        Access to files; unlimited by default.

    Raises
    ------
    NotFoundError
        The checkpoint does not exist.
    DataLossError
        The index is corrupt.
    """

    def __init__(self, prefix: str | os.PathLike[str], env: Env | None = None) -> None:
        self.prefix, self._env = os.fspath(prefix), env or Env()
        index = self._read_file("index")
        self._table = read_table(index)
        if _HEADER not in self._table:
            raise DataLossError(f"the checkpoint '{self.prefix}' has no header")
        header = proto.parse_binary("BundleHeaderProto", self._table.pop(_HEADER))
        if header.endianness == _BIG:
            raise UnimplementedError(f"the checkpoint '{self.prefix}' was written by a big-endian machine")
        self.num_shards = header.num_shards

    def names(self) -> list[str]:
        """Names of the tensors, sorted."""
        return sorted(key.decode("utf-8", "surrogateescape") for key in self._table if not key.startswith(b"\0"))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _key(name) in self._table

    def entry(self, name: str) -> BundleEntry:
        """Return the metadata of a tensor.

        Raises
        ------
        NotFoundError
            The checkpoint has no tensor of that name.
        """
        return self._entry(_key(name), name)

    def _entry(self, key: bytes, name: str) -> BundleEntry:
        if key not in self._table:
            raise NotFoundError(f"key '{name}' is not in the checkpoint '{self.prefix}'")
        message = proto.parse_binary("BundleEntryProto", self._table[key])
        shape = tuple(dim.size for dim in message.shape.dim)
        if min(shape, default=0) < 0:
            raise DataLossError(f"'{name}' has a negative size in the checkpoint '{self.prefix}'")
        return BundleEntry(
            as_data_type(message.dtype), shape, message.shard_id, message.offset, message.size, message.crc32c,
            tuple(_extents(s) for s in message.slices),
        )  # fmt: skip

    def read(self, name: str) -> Array:
        """Read a tensor.

        Raises
        ------
        NotFoundError
            The checkpoint has no tensor of that name.
        DataLossError
            The bytes of the tensor are corrupt.
        """
        entry = self.entry(name)
        return self._assemble(name, entry, [(0, -1)] * len(entry.shape)) if entry.slices else self._load(name, entry)

    def read_slice(self, name: str, extents: Sequence[Extent]) -> Array:
        """Read a slice of a tensor."""
        entry = self.entry(name)
        if len(extents) != len(entry.shape):
            raise InvalidArgumentError(
                f"a slice of {len(extents)} dimensions of '{name}', which has {len(entry.shape)}"
            )
        if entry.slices:
            return self._assemble(name, entry, extents)
        return self._load(name, entry)[_subscripts(extents, entry.shape, name)]

    def _assemble(self, name: str, entry: BundleEntry, extents: Sequence[Extent]) -> Array:
        """Assemble a tensor or a slice of it from saved slices."""
        requested = _subscripts(extents, entry.shape, name)
        regions = [_subscripts(extents_of_slice, entry.shape, name) for extents_of_slice in entry.slices]
        if _volume(requested) > sum(map(_volume, regions)):  # before memory is allocated
            raise DataLossError(f"the checkpoint '{self.prefix}' lacks slices of '{name}'")
        result = np.zeros([s.stop - s.start for s in requested], entry.dtype.numpy)
        is_filled = np.zeros(result.shape, bool)
        for extents_of_slice, region in zip(entry.slices, regions, strict=True):
            overlap = [
                slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(requested, region, strict=True)
            ]
            if all(s.start < s.stop for s in overlap):
                values = self._load(name, self._entry(slice_key(name, extents_of_slice), name))
                target = _relative_to(overlap, requested)
                result[target] = values[_relative_to(overlap, region)]
                is_filled[target] = True
        if not is_filled.all():
            raise DataLossError(f"the checkpoint '{self.prefix}' lacks slices of '{name}'")
        return result

    def _load(self, name: str, entry: BundleEntry) -> Array:
        if entry.dtype in _HAS_NO_BYTES:
            raise UnimplementedError(f"'{name}' is {entry.dtype}, which cannot be read from checkpoints")
        data = self._read_file(f"data-{entry.shard:05d}-of-{self.num_shards:05d}", entry.offset, entry.size)
        if len(data) != entry.size:
            raise DataLossError(f"the data of '{name}' extend beyond the end of the checkpoint '{self.prefix}'")
        if entry.dtype == DataType.DT_STRING:
            return _strings(name, data, entry)
        if mask(crc32c(data)) != entry.checksum:
            raise DataLossError(f"the data of '{name}' in the checkpoint '{self.prefix}' have a wrong checksum")
        count = prod(entry.shape)
        if count * entry.dtype.numpy.itemsize != entry.size:
            raise DataLossError(f"'{name}' has {entry.size} bytes, which do not fit {entry.dtype}{list(entry.shape)}")
        return np.frombuffer(data, entry.dtype.numpy).reshape(entry.shape)

    def _read_file(self, suffix: str, offset: int = 0, size: int = -1) -> bytes:
        try:
            return self._env.read_file(f"{self.prefix}.{suffix}", offset, size)
        except NotFoundError as error:
            error.hint = "pass the prefix of the checkpoint"
            raise


def _key(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _extents(message: Any) -> tuple[Extent, ...]:
    return tuple((e.start, e.length if e.HasField("length") else -1) for e in message.extent)


def _subscripts(extents: Sequence[Extent], shape: Sequence[int], name: str) -> tuple[slice, ...]:
    result = []
    for (start, length), size in zip(extents, shape, strict=True):
        stop = size if length < 0 else start + length
        if not 0 <= start <= stop <= size:
            raise InvalidArgumentError(
                f"the slice {start},{length} of '{name}' lies outside of its shape {list(shape)}"
            )
        result.append(slice(start, stop))
    return tuple(result)


def _volume(region: Sequence[slice]) -> int:
    return prod(s.stop - s.start for s in region)


def _relative_to(region: Sequence[slice], origin: Sequence[slice]) -> tuple[slice, ...]:
    """Return slices relative to an origin."""
    return tuple(slice(s.start - o.start, s.stop - o.start) for s, o in zip(region, origin, strict=True))


def _strings(name: str, data: bytes, entry: BundleEntry) -> Array:
    """Decode a string tensor: lengths, their checksum, and the bytes."""
    count = prod(entry.shape)
    lengths, at = [], 0
    for _ in range(count):
        length, at = read_varint(data, at)
        lengths.append(length)
    if data[at : at + 4] != struct.pack("<I", mask(_crc_of_lengths(lengths))):
        raise DataLossError(f"the lengths of the strings of '{name}' have a wrong checksum")
    crc = crc32c(data[at:], _crc_of_lengths(lengths))
    if mask(crc) != entry.checksum or at + 4 + sum(lengths) != len(data):
        raise DataLossError(f"the strings of '{name}' have a wrong checksum")
    at += 4
    out = np.empty(count, object)
    for i, length in enumerate(lengths):
        out[i] = data[at : at + length]
        at += length
    return out.reshape(entry.shape)


def _crc_of_lengths(lengths: Iterable[int]) -> int:
    return crc32c(b"".join(struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in lengths))


# Writing -----------------------------------------------------------------------------------------------------------
def write_bundle(
    prefix: str | os.PathLike[str], tensors: Mapping[str, Array], dtypes: Mapping[str, DataType] | None = None
) -> None:
    """Write a checkpoint of whole tensors.

    Parameters
    ----------
    prefix : path
        Name of the files without ``.index``; a missing folder is created.
    tensors : mapping of ndarray
        Arrays to save, by name.
    dtypes : mapping of DataType, optional
        Types that cannot be inferred from the arrays, such as quantised ones.
    """
    pieces = [SavedPiece(name, array, (dtypes or {}).get(name)) for name, array in tensors.items()]
    write_pieces(prefix, pieces)


@dataclass
class SavedPiece:
    """Tensor to save, or a slice with the shape of the whole tensor and the bounds of the slice."""

    name: str
    array: Array
    dtype: DataType | None = None
    full_shape: tuple[int, ...] | None = None
    extents: tuple[Extent, ...] | None = None


def write_pieces(prefix: str | os.PathLike[str], pieces: Iterable[SavedPiece], env: Env | None = None) -> None:
    """Write a checkpoint of tensors and slices; access to files is unlimited by default."""
    env = env or Env()
    data_file, index_file = [env.path(f"{prefix}.{name}") for name in ("data-00000-of-00001", "index")]
    for path in (data_file, index_file):
        env.recursively_create_dir(os.path.dirname(path))
    header = proto.message("BundleHeaderProto")(num_shards=1)
    header.version.producer = 1
    table = {_HEADER: header.SerializeToString()}
    sliced_entries: dict[str, Any] = {}
    offset = 0
    with env.new_writable_file(data_file) as file:
        for piece in pieces:
            entry, data = _make_entry(piece, offset)
            key = _key(piece.name)
            if piece.extents is not None:
                _record_slice(sliced_entries, piece, entry)
                key = slice_key(piece.name, piece.extents)
            if key in table:
                raise InvalidArgumentError(f"'{piece.name}' is saved twice")
            table[key] = entry.SerializeToString()
            file.append(data)
            offset += len(data)
    table.update({_key(name): entry.SerializeToString() for name, entry in sliced_entries.items()})
    env.write_file(index_file, write_table(table.items()))


def _make_entry(piece: SavedPiece, offset: int) -> tuple[Any, bytes]:
    dtype = piece.dtype or as_data_type(piece.array.dtype)
    if dtype in _HAS_NO_BYTES:
        raise UnimplementedError(f"'{piece.name}' is {dtype}, which cannot be written to checkpoints")
    if dtype == DataType.DT_STRING:
        data, crc = _string_bytes(piece.array)
    else:
        data = np.ascontiguousarray(piece.array).tobytes()
        crc = crc32c(data)
    entry = proto.message("BundleEntryProto")(dtype=int(dtype), offset=offset, size=len(data), crc32c=mask(crc))
    entry.shape.SetInParent()
    for size in piece.array.shape:
        entry.shape.dim.add(size=size)
    return entry, data


def _string_bytes(array: Array) -> tuple[bytes, int]:
    items = [bytes(item) for item in array.ravel()]
    lengths = [len(item) for item in items]
    crc = _crc_of_lengths(lengths)
    rest = struct.pack("<I", mask(crc)) + b"".join(items)
    return b"".join(map(write_varint, lengths)) + rest, crc32c(rest, crc)


def _record_slice(sliced_entries: dict[str, Any], piece: SavedPiece, entry: Any) -> None:
    sliced_entry = sliced_entries.get(piece.name)
    if sliced_entry is None:
        sliced_entry = sliced_entries[piece.name] = proto.message("BundleEntryProto")(dtype=entry.dtype)
        sliced_entry.shape.SetInParent()
        for size in piece.full_shape or ():
            sliced_entry.shape.dim.add(size=size)
    bounds = sliced_entry.slices.add()
    for start, length in piece.extents or ():
        extent = bounds.extent.add(start=start)
        if length >= 0:
            extent.length = length


# Keys of slices ----------------------------------------------------------------------------------------------------
def slice_key(name: str, extents: Sequence[Extent]) -> bytes:
    """Return the key of a slice's entry: bytes that sort by name and bounds."""
    out = _ordered_number(0) + _ordered_string(_key(name)) + _ordered_number(len(extents))
    for start, length in extents:
        out += _ordered_signed(0 if length < 0 else start) + _ordered_signed(length)
    return out


def _ordered_number(value: int) -> bytes:
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(data)]) + data


def _ordered_string(text: bytes) -> bytes:
    return re.sub(rb"[\0\xff]", lambda m: m[0] + bytes([255 - m[0][0]]), text) + b"\0\x01"


def _ordered_signed(value: int) -> bytes:
    """Encode a number such that its first bits hold its sign and, as in UTF-8, its length."""
    size = value if value >= 0 else ~value
    length = 1
    while size >= 1 << (7 * length - 1):
        length += 1
    if length >= 8:
        return _long_signed(value, length)
    marker = (0xFF << (8 - length) & 0xFF) << 8 * (length - 1)
    return ((value & ((1 << 8 * length) - 1)) ^ marker).to_bytes(length, "big")


def _long_signed(value: int, length: int) -> bytes:
    data = bytearray((value & ((1 << 80) - 1)).to_bytes(10, "big")[10 - length :])
    first, second = {8: (0xFF, 0), 9: (0xFF, 0x80), 10: (0xFF, 0xC0)}[length]
    data[0] ^= first
    data[1] ^= second
    return bytes(data)
