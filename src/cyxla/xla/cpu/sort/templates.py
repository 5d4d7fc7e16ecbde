"""Instances of the headers that sort, ``include/cyxla/kernels/sort``.

The build of the package makes those that come prebuilt (`prebuilt.sort`), an emitter those of its own program.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.kernel_header import instantiate

PADDING = 64  # bytes after the keys that vector stores may write
SAMPLES = 16  # keys of the sample for each bucket
MAX_BUCKETS, MAX_CHUNKS = 64, 16
MAX_K = 128  # largest k of topk; sorting is faster above


def keys_text(bits: int, prefix: str) -> str:
    """Return C of ``{prefix}_sort(x, n, y)`` and ``{prefix}_spread(x, n, y, borders, buckets, counts)``.

    Parameters
    ----------
    bits : int
        Width of a key, 32 or 64.
    prefix : str
        Prefix of all names.
    """
    return instantiate("sort/sort_keys.h", KEYS_PREFIX=prefix, KEYS_BITS=bits)


def rows_text(key_bits: int, keys: str, prefix: str) -> str:
    """Return C of ``{prefix}_run(numbers, bufs, begin, end)``, a kernel that sorts rows by keys.

    Parameters
    ----------
    key_bits : int
        Width of a key, 32 or 64.
    keys : str
        Prefix of the functions of `keys_text`.
    prefix : str
        Prefix of all names, among them the functions that load keys and store results, which are defined before.
    """
    return instantiate(
        "sort/sort_rows.h",
        SORT_PREFIX=prefix,
        SORT_KEY=f"uint{key_bits}_t",
        SORT_KEYS_PREFIX=keys,
        SORT_SAMPLES=SAMPLES,
        SORT_MAX_BUCKETS=MAX_BUCKETS,
        SORT_PADDING=PADDING,
    )


def by_bits_text(bits: int, key_bits: int, prefix: str, *, indices: bool) -> str:
    """Return C of the functions that `rows_text` asks for, for keys that follow from the bits of elements.

    Parameters
    ----------
    bits : int
        Width of an element.
    key_bits : int
        Width of a key, 64 with indices.
    prefix : str
        Prefix of all names.
    indices : bool
        Whether keys go with the indices of their elements, by which all operands are put in order.
    """
    key = f"uint{key_bits}_t"
    return instantiate(
        "sort/sort_by_bits.h", SORT_PREFIX=prefix, SORT_BITS=bits, SORT_INDICES=int(indices), SORT_KEY=key
    )


def topk_text(bits: int, key_bits: int, prefix: str) -> str:
    """Return C of ``{prefix}_run(numbers, bufs, begin, end)``, a kernel that finds the best elements of rows.

    Parameters
    ----------
    bits : int
        Width of elements whose keys follow from their bits; 0 if the type of elements and the function that makes a
        key are defined before.
    key_bits : int
        Width of a key, 32 or 64.
    prefix : str
        Prefix of all names.
    """
    key = f"int{key_bits}_t"
    return instantiate("sort/topk.h", TOPK_PREFIX=prefix, TOPK_KEY=key, TOPK_BITS=bits, TOPK_MAX_K=MAX_K)


def row_bytes(key: int, length: int) -> int:
    """Return the bytes of scratch of a task that sorts rows at once, by keys of `key` bytes."""
    return 2 * key * length + PADDING


def split_bytes(key: int, count: int, length: int, buckets: int, chunks: int) -> int:
    """Return the bytes of scratch of `count` rows that are cut into chunks and buckets."""
    special = (count * chunks + 15) // 16 * 16
    return count * (key * length + 4 * chunks * buckets + PADDING * buckets + 2 * key * length) + 4 * special
