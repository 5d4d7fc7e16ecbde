"""Comments of generated C that quote HLO, above kernels and behind statements; `kernel.hlo_quotes` writes them."""

from __future__ import annotations

import re

_STATEMENT = re.compile(r"  /\* %[^*]*\*/")
_HEAD = re.compile(r"/\* HLO\n(?: \*.*\n)+")


def without_quotes(text: str) -> str:
    """Return C without quotes of HLO."""
    if "/* %" in text:
        text = _STATEMENT.sub("", text)
    return _HEAD.sub("", text) if "/* HLO" in text else text
