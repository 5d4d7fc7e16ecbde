"""`hashlib.blake2b`, imported without OpenSSL, which takes milliseconds to load."""

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
