"""Instantiates the C of kernels that is the same for every program: headers whose parameters are macros."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from cyxla.include_dir import get_include

_OPENING = re.compile(r"\A/\*(?:(?!\*/)[\s\S])*\*/\n(?:#include .*\n)*\n")


def instantiate(header: str, **parameters: str | int) -> str:
    """Return the text of a kernel header behind the definitions of its parameters.

    Parameters
    ----------
    header : str
        Name of a file under ``include/cyxla/kernels``, a template that undefines its parameters at its end.
    **parameters : str or int
        Macros that the template asks for. Text of a program never stands in them.
    """
    return "".join(f"#define {name} {value}\n" for name, value in parameters.items()) + _body(header)


@cache
def _body(header: str) -> str:
    """Text of a header less its opening comment and its includes: `prelude` pastes the blocks that the rest names."""
    text = Path(get_include(), "cyxla", "kernels", header).read_text(encoding="utf-8")
    return _OPENING.sub("", text, count=1)
