"""Compilers are told of independent iterations, but for short loops over complex numbers."""

import pytest

from cyxla.types import ElementType as E
from cyxla.xla.cpu.c.independence import MAX_SHORT_COMPLEX_TRIP, independence

TOLD = ["#pragma GCC ivdep"]


@pytest.mark.parametrize(
    "trip, dtypes, lines",
    [
        (1, [E.C64], []),
        (4, [E.C128], []),
        (4, [E.F32, E.C64, E.PRED], []),
        ("4", [E.C64], []),
        (MAX_SHORT_COMPLEX_TRIP, [E.C64], []),
        (str(MAX_SHORT_COMPLEX_TRIP), {E.C128}, []),
        (MAX_SHORT_COMPLEX_TRIP + 1, [E.C64], TOLD),
        ("1024", [E.C128], TOLD),
        ("length", [E.C64], TOLD),
        ("end - q", [E.C64], TOLD),
        (4, [E.F32, E.F64, E.S64], TOLD),
        ("4", [E.U8], TOLD),
        (4, [], TOLD),
    ],
)
def test_lines_before_a_loop(trip, dtypes, lines):
    assert independence(trip, dtypes) == lines
