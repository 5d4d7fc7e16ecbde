"""Lists of the tests that a backend does not run, or is known to fail."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from cyxla.errors import InvalidArgumentError

_ENTRY = re.compile(r"(fails|skip)\s+([^\s\[]+(?:\[[^]]*\])?)\s*(.*)")  # with spaces in the brackets


@dataclass
class Entry:
    """Line of a list.

    Attributes
    ----------
    verb : str
        ``"fails"``: the tests run, and must fail; ``"skip"``: they do not run.
    pattern : str
        Shell pattern of names such as ``test_programs.py::test_program[jax/expm]``, which leave out the backend.
    reason : str
        Rest of the line.
    where : str
        File and line.
    matches : int
        Number of tests that the pattern has matched.
    """

    verb: str
    pattern: str
    reason: str
    where: str
    matches: int = 0

    def takes(self, name: str) -> bool:
        """Return True if the pattern matches a name; brackets in it stand for themselves."""
        return fnmatchcase(name, self.pattern.replace("[", "[[]"))


def read_list(path: str | Path) -> list[Entry]:
    """Read a list: a verb, a pattern and a reason in each line, and comments after ``#``.

    Raises
    ------
    InvalidArgumentError
        The file cannot be read, or a line has another form; the message names it.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"cannot read the list of tests {str(path)!r}: {error}") from error
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        words, where = line.partition("#")[0].strip(), f"{path}:{number}"
        if not words:
            continue
        parts = _ENTRY.fullmatch(words)
        if parts is None:
            raise InvalidArgumentError(
                f"{where}: {words!r} is no entry", hint="write 'fails PATTERN reason' or 'skip PATTERN reason'"
            )
        entries.append(Entry(parts[1], parts[2], parts[3], where))
    return entries
