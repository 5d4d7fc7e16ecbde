"""Detection of StableHLO by the beginning of a text."""

from __future__ import annotations

import re
from typing import Final

BYTE_ORDER_MARK: Final = "\ufeff"  # written by some editors before a text
_START: Final = re.compile(
    BYTE_ORDER_MARK + r"?+(?:[ \t\r\n]++|//[^\n]*+)*+"
    r"(?:(?:builtin\.)?module(?=\s*+(?:[@{]|attributes\b))|"
    r'func\.func\b|"(?:builtin\.module|func\.func)"|#[\w$.\-]++\s*+=|![\w$.\-]++\s*+=)'
)


def is_stablehlo(text: str) -> bool:
    """Return True if a text begins as MLIR does, after blanks and comments."""
    return _START.match(text) is not None
