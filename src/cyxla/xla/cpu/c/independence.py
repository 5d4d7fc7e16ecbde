"""Statement before a loop whose iterations do not depend on each other, for C compilers that cannot tell."""

from __future__ import annotations

from collections.abc import Iterable

from cyxla.types import ElementType

#: Iterations up to which gcc decides by itself whether those of a loop over complex numbers are independent: gcc 12 at
#: -O1 drops the stores of such a loop if it is told so, and makes one iteration over vectors of it.
MAX_SHORT_COMPLEX_TRIP = 16


def independence(trip: int | str, dtypes: Iterable[ElementType]) -> list[str]:
    """Return the lines before a loop whose iterations do not depend on each other through memory.

    Parameters
    ----------
    trip : int or str
        Trip count, or its C; a text that is not a number stands for a count known at run time.
    dtypes : iterable of ElementType
        Types of the elements that the loop computes with.
    """
    is_short = str(trip).isdecimal() and int(trip) <= MAX_SHORT_COMPLEX_TRIP
    return [] if is_short and any(t.is_complex for t in dtypes) else ["#pragma GCC ivdep"]
