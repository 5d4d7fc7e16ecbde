"""Options of custom calls, read from the text of a backend configuration."""

from __future__ import annotations

import re
from typing import Any, Final

_ATTRIBUTE: Final = re.compile(r'"?([\w.]+)"?\s*[=:]\s*("(?:[^"\\]|\\.)*"|[-+.\w]+)')


def read_options(config: str | bytes | None) -> dict[str, Any]:
    """Return the options of ``{uplo = 76 : ui8, left = true}`` or of a JSON object of scalars."""
    text = config.decode(errors="replace") if isinstance(config, bytes) else str(config or "")
    return {key: _scalar(value) for key, value in _ATTRIBUTE.findall(text)}


def _scalar(text: str) -> Any:
    if text.startswith('"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
