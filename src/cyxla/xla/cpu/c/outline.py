"""Outlines elementary functions that a kernel uses many times: calls of one copy in place of many.

Each copy takes time to compile. The calls stay one for each vector, since gcc makes a form of the function for vectors
(``CYX_REPEATED`` in math.h); they store and load again what lives across them.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from cyxla.xla.cpu.c.prelude import definition, expanded_size

MAX_INLINED_USES = 8  # uses up to which each has its copy
MIN_OUTLINED_CHARS = 400  # characters a function stands for; the copies of shorter ones are no longer than calls

_USE = re.compile(r"\bcyx_\w+(?=\()")
_HEAD = re.compile(
    r"^static inline CYX_ALWAYS (?P<type>float|double) (?P<name>\w+)"
    r"\((?P<arguments>(?P=type) \w+(?:, (?P=type) \w+)*)\) \{",
    re.MULTILINE,
)


def outline_functions(text: str) -> str:
    """The text of a kernel in which no large function is copied more than a few times.

    Parameters
    ----------
    text : str
        The definition of ``KERNEL`` (see `Kernel`).
    """
    forms = {
        name: form
        for name, uses in Counter(_USE.findall(text)).items()
        if uses > MAX_INLINED_USES and (form := _form(name))
    }
    if not forms:
        return text
    used = _USE.sub(lambda use: f"KERNEL_{use[0]}" if use[0] in forms else use[0], text)
    return "".join(forms.values()) + used


@cache
def _form(name: str) -> str:
    """The function that is called, if there is one for vectors and it is worth a call; else nothing."""
    head = next((h for h in _HEAD.finditer(definition(name)) if h["name"] == name), None)
    if head is None or expanded_size(name) < MIN_OUTLINED_CHARS:
        return ""
    of, arguments = head["type"], head["arguments"]
    passed = arguments.replace(f"{of} ", "")
    return f"static CYX_REPEATED {of} KERNEL_{name}({arguments}) {{ return {name}({passed}); }}\n"
