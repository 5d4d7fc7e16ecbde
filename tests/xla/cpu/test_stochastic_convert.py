"""stochastic-convert from every float type to every number, compiled and interpreted."""

import pytest
from differential import agree

from cyxla.types import ElementType

UNSIGNED = {e.bits: e for e in ElementType if e.is_integer and e.is_unsigned}
SOURCES = [e for e in ElementType if e.is_float and e.bits in UNSIGNED]
TARGETS = [e for e in ElementType if e.is_integer or e.is_float]


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_compiled_agrees_with_interpreter(source):
    bits = UNSIGNED[source.bits]
    results = [f"r{k} = {t}[50] stochastic-convert(x, bits)" for k, t in enumerate(TARGETS)]
    text = f"""ENTRY e {{
      x = {source}[50] parameter(0)
      bits = {bits}[50] parameter(1)
      {chr(10).join(results)}
      ROOT t = ({", ".join(f"{t}[50]" for t in TARGETS)}) tuple({", ".join(f"r{k}" for k in range(len(TARGETS)))})
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
