"""Instantiates the C of kernels that is the same for every program: headers whose parameters are macros."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from cyxla.include_dir import get_include

_BEGIN, _END = "/* instance of ", " */\n"

_OPENING = re.compile(r"\A/\*(?:(?!\*/)[\s\S])*\*/\n(?:#include .*\n)*\n")


def instantiate(header: str, **parameters: str | int) -> str:
    """Return the text of a kernel header behind the definitions of its parameters, between two comments.

    Parameters
    ----------
    header : str
        Name of a file under ``include/cyxla/kernels``, a template that undefines its parameters at its end.
    **parameters : str or int
        Macros that the template asks for. Text of a program never stands in them.
    """
    definitions = "".join(f"#define {name} {value}\n" for name, value in parameters.items())
    return f"{_BEGIN}{header}{_END}{definitions}{_body(header)}/* end of {header}{_END}"


def is_instance(text: str) -> bool:
    """Return True if a text begins with what `instantiate` returns."""
    return text.startswith(_BEGIN)


def split_instances(text: str) -> list[str]:
    """Cut a text into instances of headers and what stands between them."""
    pieces = []
    start = 0
    while (begin := text.find(_BEGIN, start)) >= 0:
        header = text[begin + len(_BEGIN) : text.index(_END, begin)]
        ending = f"/* end of {header}{_END}"
        end = text.index(ending, begin) + len(ending)
        pieces += [text[start:begin], text[begin:end]]
        start = end
    return [piece for piece in (*pieces, text[start:]) if piece]


@cache
def _body(header: str) -> str:
    """Text of a header less its opening comment and its includes: `prelude` pastes the blocks that the rest names."""
    text = Path(get_include(), "cyxla", "kernels", header).read_text(encoding="utf-8")
    return _OPENING.sub("", text, count=1)
