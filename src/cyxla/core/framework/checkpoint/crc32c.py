"""Checksum of TensorFlow's files: CRC-32C (Castagnoli), and the masked form in which files store it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_POLYNOMIAL = 0x82F63B78  # bit-reversed
_MASK_DELTA = 0xA282EAD8
_LANES = 1024  # number of parts of long data that are processed in parallel
_LONG = 1 << 14


@lru_cache(maxsize=1)
def _table() -> tuple[list[int], Array]:
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), crc >> np.uint32(1))
    return crc.tolist(), crc


def _extend(crc: int, data: bytes) -> int:
    """Feed bytes one by one to a bare register."""
    table = _table()[0]
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc


def _times(matrix: Array, crcs: Array) -> Array:
    """Return registers after a run of zero bytes, given as a matrix over GF(2) whose row k is the image of bit k."""
    result = np.zeros_like(crcs)
    for bit in range(32):
        result ^= np.where(crcs >> np.uint32(bit) & np.uint32(1), matrix[bit], np.uint32(0))
    return result


def _zeros_matrix(count: int) -> Array:
    """Return the matrix over GF(2) that advances a register by `count` zero bytes."""
    table = _table()[1]
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    power = table[bits & np.uint32(0xFF)] ^ (bits >> np.uint32(8))
    result = bits
    while count:
        if count & 1:
            result = _times(power, result)
        power = _times(power, power)
        count >>= 1
    return result


def _extend_long(crc: int, data: bytes) -> int:
    """Compute `_extend` on many parts of the data in parallel."""
    table = _table()[1]
    width = len(data) // _LANES
    lanes = np.frombuffer(data, np.uint8, _LANES * width).reshape(_LANES, width).T
    crcs = np.zeros(_LANES, np.uint32)
    crcs[0] = crc
    for column in np.ascontiguousarray(lanes):
        crcs = table[(crcs ^ column) & np.uint32(0xFF)] ^ (crcs >> np.uint32(8))
    while (
        len(crcs) > 1
    ):  # merge neighbours: advance the left register by the number of bytes that the right one has read
        crcs = _times(_zeros_matrix(width), crcs[0::2]) ^ crcs[1::2]
        width *= 2
    return _extend(int(crcs[0]), data[_LANES * (len(data) // _LANES) :])


def crc32c(data: bytes | bytearray | memoryview, crc: int = 0) -> int:
    """Return the checksum of bytes, continuing the checksum of preceding bytes.

    Examples
    --------
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    data = bytes(data)
    register = crc ^ 0xFFFFFFFF
    register = _extend_long(register, data) if len(data) >= _LONG else _extend(register, data)
    return register ^ 0xFFFFFFFF


def mask(crc: int) -> int:
    """Return the stored form of a checksum, which keeps checksums of data that contain checksums sound."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF
