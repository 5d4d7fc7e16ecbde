"""Files of sorted keys and values in LevelDB's format, used for the index of checkpoints.

A file consists of blocks of entries whose keys share prefixes, an index block, and a footer of 48 bytes::

    block   = entry* restart:u32* restarts:u32, then kind:u8 crc:u32
    entry   = shared:varint fresh:varint size:varint key[fresh] value[size]
    footer  = metaindex:(offset, size) index:(offset, size), zeros up to 40 bytes, magic:u64
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from cyxla.core.framework.checkpoint.crc32c import crc32c, mask
from cyxla.errors import DataLossError, UnimplementedError

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5
_BLOCK_SIZE = 4096
_RESTART_EVERY = 16
_MAX_UNPACKED = 1 << 28


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint; return it and the offset behind it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise DataLossError("a number in a table extends beyond its end")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def write_varint(value: int) -> bytes:
    """Encode a varint: 7 bits in each byte, lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# Reading -----------------------------------------------------------------------------------------------------------
def read_table(data: bytes) -> dict[bytes, bytes]:
    """Read all keys and values of a file.

    Raises
    ------
    DataLossError
        The file has another format, or is corrupt.
    """
    if len(data) < _FOOTER or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
        raise DataLossError("not a sorted table: the footer is wrong")
    footer = data[-_FOOTER:]
    at = 0
    numbers = []
    for _ in range(4):
        number, at = read_varint(footer, at)
        numbers.append(number)
    table: dict[bytes, bytes] = {}
    for _, handle in _entries(_read_block(data, numbers[2], numbers[3])):
        offset, at = read_varint(handle, 0)
        size, _ = read_varint(handle, at)
        table.update(_entries(_read_block(data, offset, size)))
    return table


def _read_block(data: bytes, offset: int, size: int) -> bytes:
    if offset + size + _TRAILER > len(data):
        raise DataLossError("a block of a table lies outside the file")
    raw = data[offset : offset + size]
    kind, checksum = struct.unpack_from("<BI", data, offset + size)
    if mask(crc32c(data[offset : offset + size + 1])) != checksum:
        raise DataLossError(f"the block of a table at byte {offset} is damaged: its checksum is wrong")
    if kind == 0:
        return raw
    if kind == 1:
        return unpack_snappy(raw)
    raise UnimplementedError(f"a block of a table has the unsupported compression type {kind}")


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise DataLossError("a block of a table is too short")
    restarts = struct.unpack("<I", block[-4:])[0]
    end = len(block) - 4 * (restarts + 1)
    if end < 0:
        raise DataLossError("a block of a table has more restart points than bytes")
    at, key = 0, b""
    while at < end:
        shared_size, at = read_varint(block, at)
        suffix_size, at = read_varint(block, at)
        size, at = read_varint(block, at)
        if shared_size > len(key) or at + suffix_size + size > end:
            raise DataLossError("an entry of a table extends beyond its block")
        key = key[:shared_size] + block[at : at + suffix_size]
        at += suffix_size
        yield key, block[at : at + size]
        at += size


def unpack_snappy(data: bytes) -> bytes:
    """Decompress Snappy data, which consists of literals and copies of preceding output."""
    length, at = read_varint(data, 0)
    if length > _MAX_UNPACKED:
        raise DataLossError(f"a compressed block declares {length} bytes")
    out = bytearray()
    while at < len(data) and len(out) <= length:
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            count = (tag >> 2) + 1
            if count > 60:
                extra = count - 60
                count = int.from_bytes(data[at : at + extra], "little") + 1
                at += extra
            out += data[at : at + count]
            at += count
            continue
        wide = (0, 1, 2, 4)[tag & 3]
        offset = int.from_bytes(data[at : at + wide], "little")
        count = (tag >> 2) + 1
        if tag & 3 == 1:
            count = (tag >> 2 & 7) + 4
            offset |= (tag >> 5) << 8
        at += wide
        _copy(out, offset, count)
    if len(out) != length:
        raise DataLossError("a compressed block does not have its declared length")
    return bytes(out)


def _copy(out: bytearray, offset: int, count: int) -> None:
    if not 0 < offset <= len(out):
        raise DataLossError("a compressed block copies from before its beginning")
    start = len(out) - offset
    chunk = bytes(out[start : start + count])
    out += (chunk * (count // len(chunk) + 1))[:count]  # the ranges may overlap, in which case the pattern repeats


# Writing -----------------------------------------------------------------------------------------------------------
def write_table(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Encode entries, sorted by key, as a file."""
    out = bytearray()
    index: list[tuple[bytes, bytes]] = []
    chunk: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in sorted(entries):
        chunk.append((key, value))
        size += len(key) + len(value)
        if size >= _BLOCK_SIZE:
            index.append((key, _append_block(out, chunk)))
            chunk, size = [], 0
    if chunk or not index:
        index.append((chunk[-1][0] if chunk else b"", _append_block(out, chunk)))
    metaindex = _append_block(out, [])
    handle = _append_block(out, index)
    footer = metaindex + handle
    return bytes(out) + footer.ljust(_FOOTER - 8, b"\0") + struct.pack("<Q", _MAGIC)


def _append_block(out: bytearray, entries: list[tuple[bytes, bytes]]) -> bytes:
    """Write a block; return its handle as the index stores it."""
    block = _pack_block(entries)
    handle = write_varint(len(out)) + write_varint(len(block))
    out += block + b"\0"
    out += struct.pack("<I", mask(crc32c(block + b"\0")))
    return handle


def _pack_block(entries: list[tuple[bytes, bytes]]) -> bytes:
    out = bytearray()
    restarts = [0]
    last = b""
    for number, (key, value) in enumerate(entries):
        shared_size = 0
        if number % _RESTART_EVERY:
            limit = min(len(key), len(last))
            while shared_size < limit and key[shared_size] == last[shared_size]:
                shared_size += 1
        elif number:
            restarts.append(len(out))
        out += write_varint(shared_size) + write_varint(len(key) - shared_size) + write_varint(len(value))
        out += key[shared_size:] + value
        last = key
    return bytes(out) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
