"""Functions of hidden ops: those whose names begin with ``_``, and those that overrides hide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as _Any  # Any is the name of an op

from cyxla import raw_ops


def __getattr__(name: str) -> Callable[..., _Any]:
    try:
        return getattr(raw_ops._namespaces[True], name)  # type: ignore[no-any-return]
    except AttributeError:
        raise AttributeError(f"module 'cyxla.raw_ops.internal' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return dir(raw_ops._namespaces[True])
