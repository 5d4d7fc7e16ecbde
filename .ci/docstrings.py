"""Counts the habits of language that docstrings are to be free of; fails where there are too many.

Usage: python .ci/docstrings.py [FOLDER ...] [--list]
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src" / "cyxla"
#: A docstring that begins with one of these is a clause without its verb or noun.
QUESTIONS = {"what", "who", "whose", "where", "when", "why", "how", "which", "whether", "whatever", "whichever"}
#: A description of a parameter that begins with one of these needs the parameter's name as its noun.
FRAGMENTS = (QUESTIONS - {"whether"}) | {
    "of", "to", "from", "by", "in", "at", "on", "with", "for", "into", "than", "its", "their", "those", "such",
}  # fmt: skip
MAX_WHATS = 1.0  # in 1,000 words
MAX_QUESTIONS = 0.01  # of all docstrings

SECTION = re.compile(r"^(Parameters|Other Parameters|Returns|Yields|Attributes|Raises|Warns)\n-{3,}\n", re.MULTILINE)
HEADING = re.compile(r"^[A-Z][A-Za-z ]*\n-{3,}$", re.MULTILINE)


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a file, and the comments ``#:`` that document constants, with their lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                doc = ast.get_docstring(node)
                if doc:
                    yield getattr(node, "lineno", 1), doc
    else:  # Cython: every string in three quotes that stands on a line of its own
        for match in re.finditer(r'^[ \t]*r?"""(.*?)"""', text, re.MULTILINE | re.DOTALL):
            indent = "\n".join(line.strip() for line in match[1].strip().splitlines())
            yield text.count("\n", 0, match.start()) + 1, indent


def descriptions(doc: str) -> Iterator[str]:
    """Yield the first line of each description in the sections of parameters of a docstring."""
    for section in SECTION.finditer(doc):
        rest = doc[section.end() :]
        stop = HEADING.search(rest)
        lines = (rest[: stop.start()] if stop else rest).splitlines()
        for before, line in pairwise(lines):
            if line.startswith("    ") and before and not before.startswith(" "):
                yield line.strip()


def first_word(text: str) -> str:
    """Return the first word of a text in lower case."""
    match = re.match(r"[A-Za-z]+", text)
    return match[0].lower() if match else ""


def main(arguments: list[str]) -> int:
    """Count, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[SOURCES, SOURCES.parents[1] / "pyx"])
    parser.add_argument("--list", action="store_true", help="print each finding")
    options = parser.parse_args(arguments)
    words = whats = count = 0
    questions: list[str] = []
    fragments: list[str] = []
    for folder in options.folders:
        kinds = ("*.py", "*.pyx", "*.pxi")
        paths = [folder] if folder.is_file() else sorted(path for kind in kinds for path in folder.rglob(kind))
        for path in paths:
            for line, doc in docstrings(path):
                count += 1
                found = re.findall(r"[A-Za-z]+", doc)
                words += len(found)
                here = sum(word.lower() == "what" for word in found)
                whats += here
                where = f"{path}:{line}: "
                if here and options.list:
                    print(
                        f"{where}what: " + next(t for t in doc.splitlines() if re.search(r"\bwhat\b", t, re.I)).strip()
                    )
                if first_word(doc) in QUESTIONS:
                    questions.append(where + doc.splitlines()[0])
                fragments += [where + text for text in descriptions(doc) if first_word(text) in FRAGMENTS]
    rate = 1000 * whats / max(words, 1)
    share = len(questions) / max(count, 1)
    print(
        f"{count} docstrings, {words} words: {rate:.2f} 'what' in 1,000 words, "
        f"{share:.2%} begin with a question word, {len(fragments)} descriptions lean on a name"
    )
    if options.list:
        print(*questions, *fragments, sep="\n")
    return int(rate > MAX_WHATS or share > MAX_QUESTIONS or bool(fragments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
