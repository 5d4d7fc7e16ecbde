"""Search for the C compiler of this process.

The compiler is looked for once, when first needed, in the order of `CANDIDATES`, and remembered on disk by the identity
of its file.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from functools import cache

from cyxla import config, errors
from cyxla.forking import new_lock
from cyxla.xla.cpu.c.target import isa_level
from cyxla.xla.cpu.native import cache as store
from cyxla.xla.cpu.native.toolchain import Compiler, Steps, Toolchain, which
from cyxla.xla.service.background import call_on_thread

PROBE_FORMAT = 5  # version of the facts stored about a compiler
FACTS_FILE = "compilers.json"
NO_COMPILER = "native code needs a C compiler and none was found"
COMPILER_HINT = "install gcc or clang, or `pip install cyxla[cc]`, or name one in CYXLA_CC"

SEARCH_THREAD = "cyxla-compiler-search"
_lock = new_lock()  # held during a search


def require() -> Toolchain:
    """Return the toolchain of this process.

    Raises
    ------
    UnimplementedError
        There is no C compiler.
    """
    toolchain = find()
    if toolchain is None:
        raise errors.UnimplementedError(NO_COMPILER, hint=COMPILER_HINT)
    return toolchain


def find() -> Toolchain | None:
    """Return the toolchain of this process, or None when there is no working C compiler (or CYXLA_CC=none).

    Waits for a search that is in progress.
    """
    isa = isa_level()
    with _lock:
        compiler = find_compiler(config.get("CC"), os.environ.get("CC", ""), (isa, config.get("OPT_LEVEL")))
    return Toolchain(compiler, isa) if compiler else None


def find_in_background() -> None:
    """Begin to look for the compiler on another thread if this takes long; `find` reports errors."""
    if not is_known() and _lock.acquire(blocking=False):  # else a search is in progress
        _lock.release()
        call_on_thread(_find_quietly, SEARCH_THREAD)


def _find_quietly() -> None:
    with contextlib.suppress(errors.OpError):
        find()


def is_known() -> bool:
    """Return whether `find` answers without probing a compiler, because this or another process has done so."""
    if find_compiler.cache_info().currsize or config.get("CC"):
        return True
    commands = [candidate(os.environ.get("CC", "")) for candidate in CANDIDATES[:-1]]
    command = next((resolved for c in commands if c and (resolved := _resolve(c))), None)
    return command is None or isinstance(store.FactFile(FACTS_FILE).get(_facts_key(command)), dict)


@cache
def find_compiler(cyxla_cc: str, cc: str, target: tuple[str, ...] = ()) -> Compiler | None:
    """Return the first candidate that passes the probe, given the values of CYXLA_CC and CC.

    Instruction-set level and optimisation level, with which the probe compiles, are `target`: each pair is probed.
    """
    if cyxla_cc == "none":
        return None
    if cyxla_cc:
        import shlex

        compiler = _probe(tuple(shlex.split(cyxla_cc)))
        if compiler is None:
            raise errors.InvalidArgumentError(f"CYXLA_CC={cyxla_cc} is not a C compiler that works; its probe failed")
        return compiler
    for candidate in CANDIDATES:
        command = candidate(cc)
        compiler = _probe(command) if command else None
        if compiler:
            return compiler
    return None


def _ziglang(_: str) -> tuple[str, ...]:
    import importlib.util

    return (sys.executable, "-m", "ziglang", "cc") if importlib.util.find_spec("ziglang") else ()


CANDIDATES: tuple[Callable[[str], tuple[str, ...]], ...] = (
    lambda cc: tuple(cc.split()),
    lambda _: ("gcc",),
    lambda _: ("clang",),
    lambda _: ("cc",),
    _ziglang,
)


def _probe(command: tuple[str, ...]) -> Compiler | None:
    """Identify and probe a compiler, or read the facts from disk."""
    resolved = _resolve(command)
    if resolved is None:
        return None
    command, key, facts_file = resolved, _facts_key(resolved), store.FactFile(FACTS_FILE)
    facts = facts_file.get(key)
    if not isinstance(facts, dict):
        from cyxla.xla.cpu.native.compiler_probe import probe_compiler

        facts = probe_compiler(command, isa_level())
        if facts is None:
            return None
        facts_file.put(key, facts)
    steps = facts["steps"] and Steps(*map(tuple, facts["steps"]))
    return Compiler(command, facts["kind"], store.digest(key, facts["version"]), steps, tuple(facts["workaround"]))


def _resolve(command: tuple[str, ...]) -> tuple[str, ...] | None:
    path = which(command[0])
    return (path, *command[1:]) if path is not None else None


def _facts_key(command: tuple[str, ...]) -> str:
    """Return the key of the facts of a compiler."""
    path = os.path.realpath(command[0])
    stat = os.stat(path)
    levels = [isa_level(), config.get("OPT_LEVEL")]
    return json.dumps([PROBE_FORMAT, command, path, stat.st_size, stat.st_mtime_ns, *levels])
