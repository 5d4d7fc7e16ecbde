"""Prebuilt function that makes the kernel calls of a table; see ``launches.h``."""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level

_ARGUMENTS = (
    "const void *launches, int64_t count, int (*is_short)(int64_t test, void *const *bufs), const int64_t *words, "
    "void **b, void *const *bufs, const cyx_ctx *ctx"
)

FUNCTIONS = {"launch_all": ("cyx_status", _ARGUMENTS)}


def text(_: Level) -> str:
    """Return the C of the function, which is the same for every level."""
    call = "return cyx_launch_all(launches, count, is_short, words, b, bufs, ctx);"
    return f"cyx_status CYX_PREBUILT(launch_all)({_ARGUMENTS}) {{ {call} }}\n"
