"""Types of the options of `cyxla.jit`, for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

Names = int | str | Sequence[int | str]  # positions and names of arguments


class JitOptions(TypedDict, total=False):
    """Options of `cyxla.jit`: its own, and those of `cyxla.xla.service.CompileOptions`."""

    static: Names
    donate: Names
    platform: str
    bounds: Literal["raise", "clamp", "unchecked"]
    sizes: Literal["auto", "any", "exact"]
    fallback: Literal["numpy", "error"] | None
    name: str | None
    disabled_passes: tuple[str, ...]
    custom_calls: Mapping[str, Callable[..., Any]]
    cache: bool
    seed: int
    max_trips: int | None
    profile: bool
