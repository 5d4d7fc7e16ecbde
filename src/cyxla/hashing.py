"""BLAKE2b as `hashlib` gives it, without the milliseconds that loading OpenSSL takes."""

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
