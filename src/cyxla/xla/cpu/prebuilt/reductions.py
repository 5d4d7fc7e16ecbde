"""Prebuilt reductions: order-independent ones, and sums and products of floats along rows.

The order of the latter is that of `reduce.loops.by_rows`: accumulation in lanes that are folded at the end
(``loops.h``); complex numbers are added sequentially.
"""

from __future__ import annotations

from cyxla.types import ElementType as E
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.prebuilt.forms import LANED, TYPES
from cyxla.xla.cpu.prebuilt.library import KERNEL

# What a kernel is told: of an array of three dimensions, whose middle one goes, the sizes; the last is 1 for sums of
# floats. It reads the array and the start.
_EXTREMES = ("maximum", "minimum")
_LANES = {E.F32: 64, E.F64: 32}  # of sums and products
_ALL = ("add", "multiply", *_EXTREMES, "and", "or", "xor")


def forms() -> dict[tuple[str, E], str]:
    """Return the name of the function for each combiner and type."""
    pairs = [(c, t) for t in TYPES for c in (("add",) if t.is_complex else _EXTREMES if t.is_float else _ALL)]
    pairs += [(c, t) for t in _LANES for c in LANED]
    return {(c, t): f"reduce_{c}_{t}" for c, t in pairs if scalar.supported(c, t, (t, t), {})}


FUNCTIONS = dict.fromkeys(forms().values(), KERNEL)

_TEXT = """\
cyx_status CYX_PREBUILT({name})(void *const *bufs, int64_t begin, int64_t end) {{
  const int64_t *numbers = CYX_NUMBERS(bufs), reduced = numbers[1], inner = numbers[2];
  const reduce_{t} *from = bufs[0], *start = bufs[1];
  reduce_{t} *to = bufs[2];
  const {local} first = {start};
  (void)begin;
  (void)end;
  for (int64_t o = 0; o < numbers[0]; ++o, from += reduced * inner, to += inner) {{
    if (inner == 1) {{
      {local} x = {unit};
      for (int64_t k = 0; k < reduced; ++k) {{
        const {local} y = {row};
        x = {value};
      }}
      to[0] = {stored};
      continue;
    }}
    for (int64_t j = 0; j < inner; ++j) to[j] = start[0];
    for (int64_t k = 0; k < reduced; ++k) {{
      #pragma GCC ivdep
      for (int64_t j = 0; j < inner; ++j) {{
        const {local} x = {so_far}, y = {column};
        to[j] = {stored_value};
      }}
    }}
  }}
  return CYX_OK;
}}
"""
_LANED = """\
cyx_status CYX_PREBUILT({name})(void *const *bufs, int64_t begin, int64_t end) {{
  const int64_t *numbers = CYX_NUMBERS(bufs), n = numbers[1];
  const reduce_{t} *from = bufs[0], *start = bufs[1];
  reduce_{t} *to = bufs[2];
  (void)begin;
  (void)end;
  for (int64_t o = 0; o < numbers[0]; ++o, from += n) {{
    {c} x[{lanes}] __attribute__((aligned(64)));
    for (int k = 0; k < {lanes}; ++k) x[k] = {unit};
    cyx_lanes_{combiner}_{t}(x, from, n);
    to[o] = start[0] {sign} cyx_fold_{combiner}_{t}(x);
  }}
  return CYX_OK;
}}
"""


def text(_: Level) -> str:
    """Return the C of the functions."""
    types = dict.fromkeys(t for _, t in forms())
    memory = [scalar.memory_typedef(f"reduce_{t}", t) + "\n" for t in types]
    return "".join([*memory, *(_function(c, t, name) for (c, t), name in forms().items())])


def _function(combiner: str, t: E, name: str) -> str:
    if t.is_float and combiner in LANED:
        unit, sign = ("-0.0", "+") if combiner == "add" else ("1", "*")
        c = scalar.storage_type(t)
        return _LANED.format(name=name, t=t, c=c, lanes=_LANES[t], unit=unit, sign=sign, combiner=combiner)
    value = scalar.expression(combiner, t, (t, t), {}, ("x", "y"))
    joined = scalar.expression(combiner, t, (t, t), {}, ("first", "x"))
    return _TEXT.format(
        unit=f"cyx_{t}_of(-0.0, -0.0)" if t.is_complex else "first",
        name=name,
        t=t,
        local=scalar.local_type(t),
        start=scalar.load(t, "start[0]"),
        row=scalar.load(t, "from[k]"),
        column=scalar.load(t, "from[k * inner + j]"),
        so_far=scalar.load(t, "to[j]"),
        value=value,
        stored=joined if t.is_complex else scalar.store(t, "x"),
        stored_value=scalar.store(t, value),
    )
