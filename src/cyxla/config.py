"""Settings from the environment: one table of flags, which are read on each use.

Every flag is an environment variable ``CYXLA_<NAME>``. A variable that is not in the table is an error, which suggests
the nearest flag, since a misspelt setting would otherwise be ignored silently.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from cyxla.errors import InvalidArgumentError

PREFIX: Final = "CYXLA_"


class Flag(NamedTuple):
    """A setting.

    Attributes
    ----------
    parse : callable
        Function from the text of the variable to the value; raises ValueError.
    default : object
        Value if the variable is unset or empty.
    doc : str
        Description in one line.
    """

    parse: Callable[[str], Any]
    default: Any
    doc: str


def _bool(text: str) -> bool:
    try:
        return {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}[text.lower()]
    except KeyError:
        raise ValueError("expected 0 or 1") from None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("expected a number of at least 1")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError("expected a number of seconds, or 0 for never")
    return seconds


def _opt_level(text: str) -> str:
    if text not in ("1", "2", "3"):
        raise ValueError("expected 1, 2 or 3")
    return text


def _sanitizers(text: str) -> tuple[str, ...]:
    names = _names(text)
    for name in names:
        if name not in SANITIZERS:
            raise ValueError(f"expected some of {', '.join(SANITIZERS)}")
    return names


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _tier(text: str) -> str:
    if text not in TIERS:
        raise ValueError(f"expected one of {', '.join(TIERS)}")
    return text


def _fallback(text: str) -> str:
    if text not in FALLBACKS:
        raise ValueError(f"expected one of {', '.join(FALLBACKS)}")
    return text


def _traceback(text: str) -> str:
    if text not in ("full", "short"):
        raise ValueError("expected full or short")
    return text


def _folders(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(os.pathsep) if part)


FALLBACKS: Final = ("numpy", "error")
TIERS: Final = ("auto", "kernels", "native")
SANITIZERS: Final = ("address", "undefined", "float-cast-overflow")
FLAGS: Final[Mapping[str, Flag]] = {
    "AUTOTUNE": Flag(_bool, False, "measure variants of heavy products and convolutions while programs are compiled"),
    "CACHE": Flag(_bool, True, "keep compiled programs on disk"),
    "CACHE_BYTES": Flag(_positive, 1 << 30, "limit on the size of the disk cache in bytes"),
    "CACHE_DIR": Flag(str, "", "folder of the disk cache; empty is one in the user's cache directory"),
    "CC": Flag(str, "", "C compiler, with arguments if need be; `none` uses none; empty searches for one"),
    "COMPILE_TIMEOUT": Flag(_positive, 600, "limit on the seconds that the C compiler takes for one file"),
    "DISABLE_HLO_PASSES": Flag(_names, (), "names of HLO passes to skip, separated by commas"),
    "DISABLE_JIT": Flag(_bool, False, "run jitted functions that are not compiled yet as plain Python"),
    "DUMP": Flag(str, "", "folder to dump each program into, after every pass, with its C and its plan"),
    "FALLBACK": Flag(
        _fallback,
        "numpy",
        "what happens if a traced function cannot be compiled: `numpy` runs it as it is written, with a warning, "
        "`error` raises the reason",
    ),
    "ISA": Flag(str, "", "instruction set of generated code, such as `x86-64-v3`; empty is that of the processor"),
    "KERNEL_PATH": Flag(_folders, (), "folders with kernel libraries, `libcyxlakernel*.so`, separated as in PATH"),
    "NUM_THREADS": Flag(_positive, 0, "the same as CYXLA_THREADS, which takes precedence"),
    "OPT_LEVEL": Flag(_opt_level, "", "optimisation level of generated code, `1` to `3`; empty is about -O1"),
    "POOL_BYTES": Flag(_positive, 512 << 20, "limit on the bytes of freed memory that are kept for later results"),
    "PREBUILT": Flag(_bool, True, "call kernels compiled with the package; 0 generates and compiles all C"),
    "REALLY_LOAD_UNSAFE_PACKAGES": Flag(_bool, False, "load kernel libraries that do not fit this machine"),
    "SANITIZE": Flag(
        _sanitizers,
        (),
        f"sanitizers of generated code, separated by commas ({', '.join(SANITIZERS)}); the process must preload them",
    ),
    "PROGRESS": Flag(
        _seconds,
        5.0,
        "seconds after which a compilation shows its progress on stderr; 0 for never",
    ),
    "THREADS": Flag(_positive, 0, "number of threads of a call; 0 is the number of processors available"),
    "TIER": Flag(
        _tier,
        "auto",
        "tier of traced functions: `auto` calls prebuilt kernels until native code is ready, `native` waits for native "
        "code, `kernels` compiles none where prebuilt kernels suffice",
    ),
    "TRACE_SECONDS": Flag(
        _seconds,
        10.0,
        "seconds of the processor that a function is traced in vain, or a call of it, before NumPy runs it; 0 for any",
    ),
    "TRACEBACK": Flag(_traceback, "short", "`full` keeps the frames of this package in tracebacks of traced functions"),
    "VERIFY": Flag(_bool, False, "verify the module after every pass, and compiled shapes against declared ones"),
}


def get(name: str) -> Any:
    """Return the value of a flag, given by its name without the prefix.

    Raises
    ------
    InvalidArgumentError
        The text of the variable does not parse.
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
    """Raise for ``CYXLA_`` variables that no flag reads, and for values that do not parse.

    Raises
    ------
    InvalidArgumentError
        A variable is unknown or malformed; the message names it and the nearest flag.
    """
    for variable in os.environ:
        if variable.startswith(PREFIX):
            require_known(variable.removeprefix(PREFIX))
            get(variable.removeprefix(PREFIX))


def require_known(name: str) -> None:
    """Raise `InvalidArgumentError` unless a flag of this name exists."""
    if name not in FLAGS:
        raise InvalidArgumentError(f"unknown setting {PREFIX}{name}", hint=nearest(name, FLAGS, PREFIX))


def similar(name: str, known: Iterable[str]) -> str:
    """Return a hint with known names that are similar in letters, upper or lower case; empty if there are none."""
    from difflib import get_close_matches

    names = {k.lower(): k for k in known}
    matches = [names[match] for match in get_close_matches(name.lower(), names, n=3)]
    return f"did you mean {', '.join(matches)}?" if matches else ""


def nearest(name: str, known: Mapping[str, Any], prefix: str = "") -> str:
    """Return a hint with the most similar of the known names, or with all of them if none is similar."""
    from difflib import get_close_matches

    close_matches = get_close_matches(name, known, n=1, cutoff=0.4)
    return (
        f"did you mean {prefix}{close_matches[0]}?"
        if close_matches
        else f"one of {', '.join(prefix + k for k in known)}"
    )
