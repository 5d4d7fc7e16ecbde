r"""Regular expressions in RE2's syntax, matched in time linear in the text for any pattern.

A pattern is compiled to instructions of Pike's virtual machine (Thompson, "Regular expression search algorithm", 1968,
with captures added), whose threads run in lockstep. The syntax has no look-ahead, no back-references; ``\w``, ``\d``
and ``\s`` are ASCII classes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from cyxla.core.kernels.lib.regex_parser import Node, parse
from cyxla.errors import InvalidArgumentError

_MAX_INSTRUCTIONS = 50_000
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")

Instruction = tuple[Any, ...]
Captures = tuple[int | None, ...]


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at] in _WORD


_ASSERTIONS: dict[str, Callable[[str, int], bool]] = {
    "text begins": lambda text, at: at == 0,
    "text ends": lambda text, at: at == len(text),
    "line begins": lambda text, at: at == 0 or text[at - 1] == "\n",
    "line ends": lambda text, at: at == len(text) or text[at] == "\n",
    "word edge": lambda text, at: _is_word(text, at - 1) != _is_word(text, at),
    "no word edge": lambda text, at: _is_word(text, at - 1) == _is_word(text, at),
}


class Regex:
    """Compiled pattern.

    Parameters
    ----------
    pattern : str
        Pattern in RE2's syntax.

    Raises
    ------
    InvalidArgumentError
        The pattern is malformed or too large.
    """

    def __init__(self, pattern: str) -> None:
        root, self.groups = parse(pattern)
        self._pattern = pattern
        self._program: list[Instruction] = []
        self._emitted = 0
        self._emit(("group", 0, root))
        self._append("match")

    # Compilation of the tree

    def _append(self, *instruction: Any) -> int:
        if len(self._program) >= _MAX_INSTRUCTIONS:
            raise InvalidArgumentError(f"the pattern {self._pattern!r} is too large", hint="repeat less")
        self._program.append(instruction)
        return len(self._program) - 1

    def _emit(self, node: Node) -> None:
        self._emitted += 1
        if self._emitted > 2 * _MAX_INSTRUCTIONS:  # repeats of empty nodes cost time, too
            raise InvalidArgumentError(f"the pattern {self._pattern!r} is too large", hint="repeat less")
        getattr(self, f"_emit_{node[0]}")(*node[1:])

    def _emit_char(self, test: Callable[[str], bool]) -> None:
        self._append("char", test)

    def _emit_assert(self, name: str) -> None:
        self._append("assert", _ASSERTIONS[name])

    def _emit_concatenation(self, *parts: Node) -> None:
        for part in parts:
            self._emit(part)

    def _emit_group(self, number: int, body: Node) -> None:
        self._append("save", 2 * number)
        self._emit(body)
        self._append("save", 2 * number + 1)

    def _emit_alternation(self, *choices: Node) -> None:
        jumps = []
        for choice in choices[:-1]:
            fork = self._append("fork", 0, 0)
            self._emit(choice)
            jumps.append(self._append("jump", 0))
            self._program[fork] = ("fork", fork + 1, len(self._program))
        self._emit(choices[-1])
        for end in jumps:
            self._program[end] = ("jump", len(self._program))

    def _emit_repeat(self, body: Node, minimum: int, maximum: int | None, greedy: bool) -> None:
        for _ in range(minimum):
            self._emit(body)
        forks = []
        for _ in range(1 if maximum is None else maximum - minimum):
            forks.append(self._append("fork", 0, 0))
            self._emit(body)
        if maximum is None:
            self._append("jump", forks[0])
        for fork in forks:
            targets = fork + 1, len(self._program)
            self._program[fork] = ("fork", *(targets if greedy else targets[::-1]))

    # Matching

    def search(self, text: str, start: int = 0) -> Captures | None:
        """Return begin and end offsets of the first match from `start` on and of its groups; None without a match."""
        return self._run_threads(text, start, to_end=False)

    def matches(self, text: str) -> bool:
        """Return whether all of a text matches."""
        return self._run_threads(text, 0, to_end=True) is not None

    def _run_threads(self, text: str, start: int, to_end: bool) -> Captures | None:
        """Run the threads in lockstep; of leftmost matches, return that of the highest priority."""
        nothing: Captures = (None,) * (2 * self.groups + 2)
        best: Captures | None = None
        threads: list[tuple[int, Captures]] = []
        for at in range(start, len(text) + 1):
            ready: list[tuple[int, Captures]] = []
            visited: set[int] = set()
            for pc, captures in threads:
                self._add_threads(pc, captures, text, at, ready, visited)
            if best is None and (not to_end or at == start):
                self._add_threads(0, nothing, text, at, ready, visited)
            threads = []
            for pc, captures in ready:
                instruction = self._program[pc]
                if instruction[0] == "match":
                    if to_end and at < len(text):
                        continue
                    best = captures
                    break  # threads of lower priority are cut off
                if at < len(text) and instruction[1](text[at]):
                    threads.append((pc + 1, captures))
            if not threads and (best is not None or to_end):
                break
        return best

    def _add_threads(
        self, pc: int, captures: Captures, text: str, at: int, ready: list[tuple[int, Captures]], visited: set[int]
    ) -> None:
        """Add all threads reachable without consuming a character, highest priority first."""
        stack = [(pc, captures)]
        while stack:
            pc, captures = stack.pop()
            if pc in visited:
                continue
            visited.add(pc)
            kind, *args = self._program[pc]
            if kind == "jump":
                stack.append((args[0], captures))
            elif kind == "fork":
                stack += [(args[1], captures), (args[0], captures)]
            elif kind == "save":
                stack.append((pc + 1, (*captures[: args[0]], at, *captures[args[0] + 1 :])))
            elif kind == "assert":
                if args[0](text, at):
                    stack.append((pc + 1, captures))
            else:
                ready.append((pc, captures))

    # Replacement

    def replace(self, text: str, rewrite: list[str | int], every: bool) -> str:
        """Replace the first match or all of them by a rewrite: literal text and group numbers."""
        out, at, last = [], 0, -1
        while at <= len(text):
            captures = self.search(text, at)
            if captures is None:
                break
            begin, end = captures[0] or 0, captures[1] or 0
            out.append(text[at:begin])
            if begin == end == last:  # an empty match directly after another match does not count
                out.append(text[begin : begin + 1])
                at = begin + 1
                continue
            out += [piece if isinstance(piece, str) else _group(text, captures, piece) for piece in rewrite]
            at = last = end
            if not every:
                break
        return "".join(out) + text[at:]

    def parse_rewrite(self, text: str) -> list[str | int]:
        """Parse a rewrite: backslash and digit refer to a group, two backslashes mean one.

        Raises
        ------
        InvalidArgumentError
            A backslash precedes another character, or there is no such group.
        """
        pieces: list[str | int] = []
        rest = iter(text)
        for c in rest:
            if c != "\\":
                pieces.append(c)
                continue
            after = next(rest, "")
            if after != "\\" and (len(after) != 1 or after not in "0123456789"):
                raise InvalidArgumentError(f"the rewrite {text!r} has a backslash before {after!r}", hint="double it")
            if after.isdigit() and int(after) > self.groups:
                raise InvalidArgumentError(f"the rewrite {text!r} asks for group {after} of {self.groups}")
            pieces.append("\\" if after == "\\" else int(after))
        return pieces


def _group(text: str, captures: Captures, number: int) -> str:
    begin, end = captures[2 * number], captures[2 * number + 1]
    return "" if begin is None or end is None else text[begin:end]


@lru_cache(maxsize=64)
def compile_regex(pattern: str) -> Regex:
    """Compile a pattern; results are cached."""
    return Regex(pattern)
