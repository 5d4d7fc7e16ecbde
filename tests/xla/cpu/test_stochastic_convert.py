"""stochastic-convert from every float type to every number, compiled and interpreted."""

import pytest
from support.hlo.differential import agree

from cyxla.types import ElementType

UNSIGNED = {e.bits: e for e in ElementType if e.is_integer and e.is_unsigned}
SOURCES = [e for e in ElementType if e.is_float and e.bits in UNSIGNED]
TARGETS = [e for e in ElementType if e.is_integer or e.is_float]
NARROW = [e for e in SOURCES if e.bits <= 8]  # all are widened in one way, so they share the targets among them
SHARE = 3


def targets(source: ElementType) -> list[ElementType]:
    """Every third one for a narrow type, the next ones for the next type."""
    return TARGETS[NARROW.index(source) % SHARE :: SHARE] if source in NARROW else TARGETS


def test_narrow_types_reach_all():
    assert {t for source in NARROW for t in targets(source)} == set(TARGETS)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_compiled_agrees_with_interpreter(source):
    bits, to = UNSIGNED[source.bits], targets(source)
    n = 50 if source is ElementType.F32 else 64  # what is left of whole vectors takes the C compiler long
    results = [f"r{k} = {t}[{n}] stochastic-convert(x, bits)" for k, t in enumerate(to)]
    text = f"""ENTRY e {{
      x = {source}[{n}] parameter(0)
      bits = {bits}[{n}] parameter(1)
      {chr(10).join(results)}
      ROOT t = ({", ".join(f"{t}[{n}]" for t in to)}) tuple({", ".join(f"r{k}" for k in range(len(to)))})
    }}"""
    for seed in range(2):
        agree(text, seed=seed, ulp=0)


def test_fractions_against_bits():
    agree(
        """ENTRY e {
          x = f32[6] constant({2.25, 2.25, -2.75, 0.5, nan, inf})
          bits = u32[6] constant({0, 4294967295, 3221225471, 2147483648, 0, 0})
          ROOT r = s32[6] stochastic-convert(x, bits)
        }""",
        ulp=0,
    )
