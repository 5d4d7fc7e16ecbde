"""Mutations of bytes without regard to their meaning."""

from __future__ import annotations

import random

STARTLING = (
    b"\0",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\0" * 8,
    b"\xff" * 8,
    b"\x80" * 12,
)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The bytes with a few of them changed, flipped, gone, twice, or new."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        k = rng.randrange(len(made) + 1)
        match rng.randrange(7):
            case 0 if k < len(made):
                made[k] = rng.randrange(256)
            case 1 if k < len(made):
                made[k] ^= 1 << rng.randrange(8)
            case 2:
                del made[k : k + rng.randint(1, 8)]
            case 3:
                made[k:k] = rng.choice(STARTLING)
            case 4:
                made[k:k] = made[k : k + rng.randint(1, 64)]
            case 5:
                j = rng.randrange(len(made) + 1)
                made[k:k] = made[j : j + rng.randint(1, 32)]
            case 6 if rng.random() < 0.3:
                del made[k:]
    return bytes(made)
