"""Prebuilt reductions: order-independent ones, and sums and products of floats along rows.

The order of the latter is that of `reduce.loops.by_rows`: accumulation in lanes that are folded at the end
(``loops.h``); complex numbers are added sequentially.
"""

from __future__ import annotations

from cyxla.types import ElementType as E
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.prebuilt.forms import LANED, TYPES
from cyxla.xla.cpu.prebuilt.library import KERNEL

_EXTREMES = ("maximum", "minimum")
_LANES = {E.F32: 64, E.F64: 32}  # of sums and products
_ALL = ("add", "multiply", *_EXTREMES, "and", "or", "xor")


def forms() -> dict[tuple[str, E], str]:
    """Return the name of the function for each combiner and type."""
    pairs = [(c, t) for t in TYPES for c in (("add",) if t.is_complex else _EXTREMES if t.is_float else _ALL)]
    pairs += [(c, t) for t in _LANES for c in LANED]
    return {(c, t): f"reduce_{c}_{t}" for c, t in pairs if scalar.is_supported(c, t, (t, t), {})}


FUNCTIONS = dict.fromkeys(forms().values(), KERNEL)


def text(_: Level) -> str:
    """Return the C of the functions, which is the same for every level."""
    types = dict.fromkeys(t for _, t in forms())
    memory = [scalar.memory_typedef(f"reduce_{t}", t) + "\n" for t in types]
    return "".join([*memory, *(_function(c, t, name) for (c, t), name in forms().items())])


def _function(combiner: str, t: E, name: str) -> str:
    write = _along_lanes if t.is_float and combiner in LANED else _one_by_one
    return write(combiner, t, f"CYX_PREBUILT({name})")


def _along_lanes(combiner: str, t: E, name: str) -> str:
    unit, sign = ("-0.0", "+") if combiner == "add" else ("1", "*")
    parameters: dict[str, str | int] = {
        "REDUCE_NAME": name, "REDUCE_REAL": scalar.storage_type(t), "REDUCE_MEMORY": f"reduce_{t}",
        "REDUCE_LANES": _LANES[t], "REDUCE_UNIT": unit, "REDUCE_ADD": f"cyx_lanes_{combiner}_{t}",
        "REDUCE_FOLD": f"cyx_fold_{combiner}_{t}", "REDUCE_COMBINE(x, y)": f"x {sign} y",
    }  # fmt: skip
    return instantiate("reduce_lanes.h", **parameters)


def _one_by_one(combiner: str, t: E, name: str) -> str:
    joined = scalar.expression(combiner, t, (t, t), {}, ("initial", "x"))
    parameters: dict[str, str | int] = {
        "REDUCE_NAME": name, "REDUCE_MEMORY": f"reduce_{t}", "REDUCE_LOCAL": scalar.local_type(t),
        "REDUCE_LOAD(m)": scalar.load(t, "m"), "REDUCE_STORE(x)": scalar.store(t, "x"),
        "REDUCE_COMBINE(x, y)": scalar.expression(combiner, t, (t, t), {}, ("x", "y")),
        "REDUCE_UNIT": f"cyx_{t}_of(-0.0, -0.0)" if t.is_complex else "initial",
        "REDUCE_RESULT": joined if t.is_complex else scalar.store(t, "x"),
    }  # fmt: skip
    return instantiate("reduce.h", **parameters)
