"""Settings from the environment: one table of flags, read when asked for.

Every flag is an environment variable ``CYXLA_<NAME>``. A name that is not in the table is refused with the nearest one
that is, since a misspelt setting that silently does nothing costs an afternoon.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from cyxla.errors import InvalidArgumentError

PREFIX: Final = "CYXLA_"


class Flag(NamedTuple):
    """One setting.

    Attributes
    ----------
    parse : callable
        From the text of the variable to the value; raises ValueError.
    default : object
        Value where the variable is not set, or empty.
    doc : str
        One line for people.
    """

    parse: Callable[[str], Any]
    default: Any
    doc: str


def _switch(text: str) -> bool:
    try:
        return {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}[text.lower()]
    except KeyError:
        raise ValueError("want 0 or 1") from None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("want a number from 1 up")
    return number


def _level(text: str) -> str:
    if text not in ("1", "2", "3"):
        raise ValueError("want 1, 2 or 3")
    return text


def _sanitizers(text: str) -> tuple[str, ...]:
    names = _names(text)
    for name in names:
        if name not in SANITIZERS:
            raise ValueError(f"want some of {', '.join(SANITIZERS)}")
    return names


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _tier(text: str) -> str:
    if text not in TIERS:
        raise ValueError(f"want one of {', '.join(TIERS)}")
    return text


def _trimming(text: str) -> str:
    if text not in ("full", "short"):
        raise ValueError("want full or short")
    return text


def _folders(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(os.pathsep) if part)


TIERS: Final = ("auto", "kernels", "native")
SANITIZERS: Final = ("address", "undefined", "float-cast-overflow")
FLAGS: Final[Mapping[str, Flag]] = {
    "CACHE": Flag(_switch, True, "keep compiled programs on disk"),
    "CACHE_DIR": Flag(str, "", "where the disk cache lies; empty is the user's cache directory"),
    "CACHE_BYTES": Flag(_positive, 1 << 30, "how large the disk cache may grow"),
    "CC": Flag(str, "", "C compiler; `none` is to have none; empty looks for one"),
    "COMPILE_TIMEOUT": Flag(_positive, 600, "seconds that a C compiler may take for one text before it is ended"),
    "DISABLE_HLO_PASSES": Flag(_names, (), "names of passes to leave out, separated by commas"),
    "DUMP": Flag(str, "", "folder for the program at every stage"),
    "ISA": Flag(str, "", "instruction set level of generated code, such as x86-64-v3; empty is what the processor has"),
    "KERNEL_PATH": Flag(_folders, (), "folders of libraries of kernels, libcyxlakernel*.so, separated like PATH"),
    "NUM_THREADS": Flag(_positive, 0, "the same as THREADS, by the name of OMP_NUM_THREADS; THREADS goes first"),
    "OPT_LEVEL": Flag(
        _level, "", "N of the -ON that generated code is compiled with; empty is what serves it best, about -O1"
    ),
    "POOL_BYTES": Flag(_positive, 512 << 20, "how much free memory is kept for later results"),
    "PREBUILT": Flag(_switch, True, "call the functions that come with the package; 0 is to write and compile all C"),
    "REALLY_LOAD_UNSAFE_PACKAGES": Flag(_switch, False, "load libraries of kernels that do not fit this machine"),
    "SANITIZE": Flag(
        _sanitizers, (), "sanitizers that generated code is built with, separated by commas; the process must have them"
    ),
    "THREADS": Flag(_positive, 0, "threads of a call; 0 is as many as the process may use"),
    "TIER": Flag(
        _tier,
        "auto",
        "what answers calls of traced functions: `auto` is prebuilt kernels until native code is there, `native` waits "
        "for it, `kernels` makes none where prebuilt ones do",
    ),
    "TRACEBACK": Flag(_trimming, "short", "`full` keeps the frames of this package in tracebacks of traced functions"),
    "VERIFY": Flag(_switch, False, "verify the program after every pass, and compiled shapes against the declared"),
}


def get(name: str) -> Any:
    """The value of a flag, by its name without the prefix.

    Raises
    ------
    InvalidArgumentError
        The variable's text does not parse.
    """
    flag = FLAGS[name]
    text = os.environ.get(PREFIX + name, "")
    if not text:
        return flag.default
    try:
        return flag.parse(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{PREFIX}{name}={text!r}: {error}", hint=flag.doc) from None


def check_environment() -> None:
    """Refuse ``CYXLA_`` variables that no flag reads, and values that do not parse.

    Raises
    ------
    InvalidArgumentError
        Names the variable and the nearest flag.
    """
    for variable in os.environ:
        if variable.startswith(PREFIX):
            require_known(variable.removeprefix(PREFIX))
            get(variable.removeprefix(PREFIX))


def require_known(name: str) -> None:
    """Raise `InvalidArgumentError` unless there is a flag of that name."""
    if name not in FLAGS:
        raise InvalidArgumentError(f"unknown setting {PREFIX}{name}", hint=nearest(name, FLAGS, PREFIX))


def nearest(name: str, known: Mapping[str, Any], prefix: str = "") -> str:
    """A hint that names what was probably meant."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.4)
    return f"did you mean {prefix}{near[0]}?" if near else f"one of {', '.join(prefix + k for k in known)}"
