"""Lists of the tests that a backend does not run, or is known to fail."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from cyxla.errors import InvalidArgumentError

VERBS = ("fails", "skip")


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
        words = line.partition("#")[0].split(None, 2)
        where = f"{path}:{number}"
        if words and (words[0] not in VERBS or len(words) < 2):
            raise InvalidArgumentError(
                f"{where}: {line.strip()!r} is no entry", hint="write 'fails PATTERN reason' or 'skip PATTERN reason'"
            )
        if words:
            entries.append(Entry(words[0], words[1], words[2].strip() if len(words) > 2 else "", where))
    return entries
