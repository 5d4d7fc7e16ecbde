"""Outlining of elementary functions that a kernel uses many times: calls in place of inlined copies.

Each inlined copy takes time to compile. There is one call for each vector, since gcc makes a SIMD clone of the function
(``CYX_SIMD_CLONE`` in math.h); values that are live across a call are spilled.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from cyxla.xla.cpu.c.prelude import definition, expanded_size

MAX_INLINED_USES = 8  # functions used more often in one kernel are outlined
MIN_OUTLINED_CHARS = 400  # expanded size of a function; inlined copies of shorter ones are no longer than calls

_USE = re.compile(r"\bcyx_\w+(?=\()")
_HEAD = re.compile(
    r"^static inline CYX_INLINE (?P<type>float|double) (?P<name>\w+)"
    r"\((?P<arguments>(?P=type) \w+(?:, (?P=type) \w+)*)\) \{",
    re.MULTILINE,
)


def outline_functions(text: str) -> str:
    """Return the text of a kernel with large functions outlined that it uses more than `MAX_INLINED_USES` times.

    Parameters
    ----------
    text : str
        C definition of ``KERNEL`` (see `Kernel`).
    """
    outlined = {
        name: wrapper
        for name, uses in Counter(_USE.findall(text)).items()
        if uses > MAX_INLINED_USES and (wrapper := _outlined(name))
    }
    if not outlined:
        return text
    calls = _USE.sub(lambda use: f"KERNEL_{use[0]}" if use[0] in outlined else use[0], text)
    return "".join(outlined.values()) + calls


@cache
def _outlined(name: str) -> str:
    """Return the C of the outlined function, if it has a SIMD clone and is worth a call; else nothing."""
    head = next((h for h in _HEAD.finditer(definition(name)) if h["name"] == name), None)
    if head is None or expanded_size(name) < MIN_OUTLINED_CHARS:
        return ""
    c_type, arguments = head["type"], head["arguments"]
    names = arguments.replace(f"{c_type} ", "")
    return f"static CYX_SIMD_CLONE {c_type} KERNEL_{name}({arguments}) {{ return {name}({names}); }}\n"
