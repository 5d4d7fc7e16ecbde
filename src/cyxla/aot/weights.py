"""Constants of a library: bytes that all programs and processor levels share, embedded or in a file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from cyxla.aot import ctext

ALIGNMENT: Final = 64
#: Size up to which constants are C; larger ones are a file that the assembler includes.
MAX_C_BYTES: Final = 1 << 20
#: First bytes of a file of weights; the digest of the rest follows. Both make one cache line.
MAGIC: Final = b"cyxla weights 1\0"


class Weights:
    """Bytes of constants, each of which is stored once.

    Attributes
    ----------
    nbytes : int
        Size of all of them.
    """

    def __init__(self) -> None:
        self._offsets: dict[bytes, int] = {}
        self._parts: list[np.ndarray[Any, Any]] = []
        self.nbytes = 0

    def add(self, data: np.ndarray[Any, Any]) -> int:
        """Add bytes; return their offset."""
        key = hashlib.sha256(data.data).digest() + data.nbytes.to_bytes(8, "little")
        if key not in self._offsets:
            self._offsets[key] = self.nbytes
            self._parts.append(data)
            self.nbytes += -(-data.nbytes // ALIGNMENT) * ALIGNMENT
        return self._offsets[key]

    def add_all(self, arrays: Iterable[np.ndarray[Any, Any]]) -> list[int]:
        """Add several constants; return their offsets."""
        return [self.add(a) for a in arrays]

    @property
    def digest(self) -> bytes:
        """Digest of the bytes."""
        return hashlib.sha256(b"".join(self._offsets)).digest()

    def data(self) -> bytes:
        """Return all bytes."""
        return b"".join(part for a in self._parts for part in (a.tobytes(), bytes(-a.nbytes % ALIGNMENT)))

    def head(self) -> bytes:
        """Return the first bytes of a file of weights, a multiple of the alignment."""
        head = MAGIC + self.digest
        return head + bytes(-len(head) % ALIGNMENT)

    def file(self) -> bytes:
        """Return the contents of a file of weights."""
        return self.head() + self.data()


_IN_C = """/* Constants. */
#include <stdint.h>

__attribute__((visibility("hidden"), aligned(64))) extern const uint64_t {prefix}_data[];
const uint64_t {prefix}_data[] = {{
{words}
}};
"""
_IN_ASSEMBLY = """/* Constants, from the file beside this one. */
  .section .rodata.{prefix}_data,"a"
  .balign 64
  .globl {prefix}_data
  .hidden {prefix}_data
  .type {prefix}_data, %object
{prefix}_data:
  .incbin "{file}"
  .size {prefix}_data, .-{prefix}_data
  .section .note.GNU-stack,"",%progbits
"""


def files(prefix: str, weights: Weights, where: str) -> dict[str, bytes]:
    """Return the files that hold the constants, by name.

    Parameters
    ----------
    prefix : str
        Prefix of the library's symbols.
    weights : Weights
        Constants.
    where : str
        ``"embed"``, or ``"file"`` for one that the program loads.
    """
    if not weights.nbytes:
        return {}
    if where == "file":
        return {f"{prefix}.weights": weights.file()}
    if weights.nbytes <= MAX_C_BYTES:
        text = _IN_C.format(prefix=prefix, words=ctext.words(weights.data()))
        return {f"{prefix}.data.c": text.encode()}
    name = f"{prefix}.data.bin"
    return {f"{prefix}.data.S": _IN_ASSEMBLY.format(prefix=prefix, file=name).encode(), name: weights.data()}
