"""Reductions whose order makes no difference, prebuilt: of integers and truth values, and the extremes of floats."""

from __future__ import annotations

from cyxla.types import ElementType as E
from cyxla.xla.cpu import scalar
from cyxla.xla.cpu.levels import Level
from cyxla.xla.cpu.prebuilt_elementwise import TYPES

KERNEL = ("cyx_status", "void *const *bufs, int64_t begin, int64_t end")
#: What a kernel is told: of an array of three dimensions, whose middle one goes, the sizes. It reads the array and the
#: start.
NUMBERS = ("outer", "reduced", "inner")
_EXTREMES = ("maximum", "minimum")
_ALL = ("add", "multiply", *_EXTREMES, "and", "or", "xor")


def forms() -> dict[tuple[str, E], str]:
    """Combiner and type -> the name of the function."""
    types = [t for t in TYPES if not t.is_complex]
    pairs = [(c, t) for t in types for c in (_EXTREMES if t.is_float else _ALL)]
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
      {local} x = first;
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


def text(_: Level) -> str:
    """The functions."""
    types = dict.fromkeys(t for _, t in forms())
    memory = [f"typedef {scalar.storage_type(t)} reduce_{t} __attribute__((aligned(1), may_alias));\n" for t in types]
    return "".join([*memory, *(_function(c, t, name) for (c, t), name in forms().items())])


def _function(combiner: str, t: E, name: str) -> str:
    value = scalar.expression(combiner, t, (t, t), {}, ("x", "y"))
    return _TEXT.format(
        name=name,
        t=t,
        local=scalar.local_type(t),
        start=scalar.load(t, "start[0]"),
        row=scalar.load(t, "from[k]"),
        column=scalar.load(t, "from[k * inner + j]"),
        so_far=scalar.load(t, "to[j]"),
        value=value,
        stored=scalar.store(t, "x"),
        stored_value=scalar.store(t, value),
    )
