"""Loaders of the contents of the global registries, which the packages above the framework provide.

`cyxla.core` registers them, so that the framework names no module that builds on it.
"""

from __future__ import annotations

from collections.abc import Callable

Loader = Callable[[], None]
_LOADERS: dict[str, Loader] = {}


def register_loaders(**loaders: Loader) -> None:
    """Register functions by the name of what they load, such as ``ops``."""
    _LOADERS.update(loaders)


def loader(name: str) -> Loader:
    """Return a function that calls the registered loader of that name."""
    return lambda: _LOADERS[name]()
