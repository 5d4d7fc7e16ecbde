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
    "CACHE_BYTES": Flag(_positive, 1 << 30, "limit on the size of the disk cache in bytes"),
    "CACHE_DIR": Flag(str, "", "folder of the disk cache; empty is one in the user's cache directory"),
    "CC": Flag(str, "", "C compiler, with arguments if need be; `none` uses none; empty searches for one"),
    "COMPILE_TIMEOUT": Flag(_positive, 600, "limit on the seconds that the C compiler takes for one file"),
    "DISABLE_HLO_PASSES": Flag(_names, (), "names of HLO passes to skip, separated by commas"),
    "DUMP": Flag(str, "", "folder to dump each program into, after every pass, with its C and its plan"),
    "ISA": Flag(str, "", "instruction set of generated code, such as `x86-64-v3`; empty is that of the processor"),
    "KERNEL_PATH": Flag(_folders, (), "folders with kernel libraries, `libcyxlakernel*.so`, separated as in PATH"),
    "NUM_THREADS": Flag(_positive, 0, "the same as CYXLA_THREADS, which takes precedence"),
    "OPT_LEVEL": Flag(_level, "", "optimisation level of generated code, `1` to `3`; empty is about -O1"),
    "POOL_BYTES": Flag(_positive, 512 << 20, "limit on the bytes of freed memory that are kept for later results"),
    "PREBUILT": Flag(_switch, True, "call kernels compiled with the package; 0 generates and compiles all C"),
    "REALLY_LOAD_UNSAFE_PACKAGES": Flag(_switch, False, "load kernel libraries that do not fit this machine"),
    "SANITIZE": Flag(
        _sanitizers,
        (),
        f"sanitizers of generated code, separated by commas ({', '.join(SANITIZERS)}); the process must preload them",
    ),
    "THREADS": Flag(_positive, 0, "number of threads of a call; 0 is the number of processors available"),
    "TIER": Flag(
        _tier,
        "auto",
        "tier of traced functions: `auto` calls prebuilt kernels until native code is ready, `native` waits for native "
        "code, `kernels` compiles none where prebuilt kernels suffice",
    ),
    "TRACEBACK": Flag(_trimming, "short", "`full` keeps the frames of this package in tracebacks of traced functions"),
    "VERIFY": Flag(_switch, False, "verify the module after every pass, and compiled shapes against declared ones"),
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
