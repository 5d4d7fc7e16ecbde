"""Types of the options of `cyxla.jit`, for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

#: Options of other compilers for which there is nothing to choose here, or another name.
OPTIONS_OF_OTHERS = {
    "nopython": "it is not needed: functions are always compiled",
    "forceobj": "cyxla.disable_jit() runs functions as plain Python",
    "parallel": "it is not needed: programs run on several threads, CYXLA_THREADS says on how many",
    "nogil": "it is not needed: programs run without the GIL",
    "fastmath": "there is none: results keep NumPy's rounding",
    "error_model": "there is none: floats follow IEEE 754, as in NumPy",
    "static_argnums": "use static=(0,)", "static_argnames": 'use static=("n",)',
    "donate_argnums": "use donate=(0,)", "donate_argnames": 'use donate=("x",)',
    "backend": 'use platform="cpu"', "device": 'use platform="cpu"', "inline": "calls are always inlined",
}  # fmt: skip
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
    autotune: bool
