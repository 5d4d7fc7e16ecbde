"""Random modules whose function holds values of any kind in local variables: None, texts, containers, functions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from string import Template

from support.functions.local_forms import (
    CALLS_OF_HELPERS,
    FLOATS,
    GIVEN,
    INTS,
    KINDS,
    OTHERS,
    RETURNS,
    SEARCHES,
    TESTS,
    Kind,
)

SIZES = (1, 2, 3, 5, 6)
HEAD = """\
import numpy as np

DTYPE = "f8"


def step(w):
    if w > 1:
        return w * 0.5
    return w + 1


"""
SIMPLE = 2  # depth below which statements nest others


class _Writer:
    """Writes a module.

    Parameters
    ----------
    rng : random.Random
        Source of all choices.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.kinds = [KINDS[name] for name in rng.sample(list(KINDS), rng.choice((1, 1, 2, 2, 3)))]
        self.given = rng.choice(self.kinds)  # kind of an argument
        self.names = 0
        self.loops = 0
        self.has_returns = rng.random() < 0.5
        self.others = OTHERS

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    # -- expressions

    def expression(self, own: Sequence[str], others: Sequence[tuple[Kind, str]], depth: int) -> str:
        if others and self.chance(0.45):
            kind, text = self.rng.choice(others)
            return self.filled(text, kind, depth + 1)
        return self.rng.choice(own)

    def of(self, part: str) -> list[tuple[Kind, str]]:
        return [(kind, text) for kind in self.kinds for text in getattr(kind, part)]

    def filled(self, text: str, kind: Kind, depth: int) -> str:
        """Fill in the placeholders of a line, each one anew, and nest the statements that it names."""
        variable, other = self.rng.sample(kind.names, 2)
        self.names += 1
        made = Template(text.replace("$n", str(self.names)))
        return made.safe_substitute(_Values(self, kind, variable, other, depth))

    # -- statements

    def statement(self, depth: int) -> str:
        kind = self.rng.choice(self.kinds)
        if depth > SIMPLE or self.chance(0.5):
            return self.filled(self.rng.choice(kind.changes), kind, depth)
        forms = self.rng.choices((self.others, SEARCHES, kind.heads or OTHERS), (5, 3, 1))[0]
        text = self.rng.choice(forms)
        if forms is kind.heads:
            text += "\n    $t" + ("\n    if $b:\n        $j" if self.chance(0.4) else "")
        is_loop = text.startswith(("for", "while")) or "\nwhile" in text
        self.loops += is_loop
        made = _indented_fill(self, text, kind, depth)
        self.loops -= is_loop
        return made

    def jump(self) -> str:
        if self.loops and self.chance(0.6):
            return self.rng.choice(("break", "break", "continue"))
        if not self.has_returns:
            return "c += 2"
        values = [*RETURNS, *[name for kind in self.kinds for name in kind.names] * 2]
        return f"return {self.rng.choice(values)}"

    def helper(self) -> str:
        """Return a function that may end anywhere, with a result of any kind; empty for a module without one."""
        if self.chance(0.6):
            return ""
        kinds, has_returns = self.kinds, self.has_returns
        self.kinds, self.has_returns = [KINDS[self.rng.choice(list(KINDS))]], True
        lines = ["k, t = 2, s", "def bump(w):\n    nonlocal s\n    s += w\n    return s", *self.first_values()]
        lines += [self.statement(1) for _ in range(self.rng.choice((1, 1, 2)))]
        lines.append(f"return {self.rng.choice((*RETURNS, *self.kinds[0].names))}")
        self.kinds, self.has_returns = kinds, has_returns
        self.others = (*OTHERS, *CALLS_OF_HELPERS * 4)
        return f"def helper(x, s, c):\n{_indented(chr(10).join(lines))}\n\n\n"

    def first_values(self) -> list[str]:
        """Return assignments of first values to all variables."""
        made = []
        for kind in self.kinds:
            first = [make for make in kind.makes if "$v" not in make]
            for name in kind.names:
                is_given = kind is self.given and self.chance(0.6)
                made.append(f"{name} = {'arg' if is_given else self.filled(self.rng.choice(first), kind, SIMPLE + 1)}")
        return made

    def call(self, size: int, values: str) -> str:
        """Return a row of the module's calls; the same numbers as in the call before, mostly."""
        if self.chance(0.3) or not values:
            values = f"{self.rng.choice((0, 1, 2, 3))}, {self.rng.choice((-0.5, 0.25, 1.5))}"
        name = next(name for name, kind in KINDS.items() if kind is self.given)
        others = name if self.chance(0.85) else self.rng.choice(list(GIVEN))
        return f"({size}, None, lambda x: (x, {values}, {self.rng.choice(GIVEN[others])}))"

    def text(self) -> str:
        size, other = self.rng.choice(SIZES), self.rng.choice(SIZES)
        helper = self.helper()
        lines = ["s, c, found = 0.5, 0, None", "def bump(w):\n    nonlocal s\n    s += w\n    return s"]
        lines += self.first_values()
        lines += [self.statement(0) for _ in range(self.rng.choice((2, 3, 4, 5)))]
        kept = [name for kind in self.kinds for name in kind.names if kind is not KINDS["function"]]
        lines.append(f"return {', '.join(['s', 'c', 'x', *kept, *['found'] * bool(helper)])}")
        body = "\n".join(lines)
        calls = [self.call(n, f"{self.rng.choice((0, 2))}, 0.25") for n in (size, size, other, size, size)]
        return f"{HEAD}{helper}def main(x, k, t, arg):\n{_indented(body)}\n\n\nCALLS = [{', '.join(calls)}]\n"


class _Values(dict[str, str]):
    """Values of placeholders, made when they are asked for."""

    def __init__(self, writer: _Writer, kind: Kind, variable: str, other: str, depth: int) -> None:
        super().__init__(v=variable, o=other)
        self._writer, self._kind, self._depth = writer, kind, depth

    def __missing__(self, name: str) -> str:
        w, depth = self._writer, self._depth
        own, part = {"e": (FLOATS, "floats"), "i": (INTS, "ints"), "b": (TESTS, "tests")}.get(name, ((), ""))
        if part:
            made = w.expression(own, w.of(part) if depth <= SIMPLE else (), depth)
            return f"({made})" if " or " in made or " and " in made else made
        if name == "m":
            return w.filled(w.rng.choice(self._kind.makes), self._kind, depth + 1)
        return {"j": w.jump, "t": lambda: w.statement(depth + 1)}[name]()


def _indented_fill(writer: _Writer, text: str, kind: Kind, depth: int) -> str:
    """Fill in a block line by line, so that nested statements have its indentation."""
    variable, other = writer.rng.sample(kind.names, 2)
    writer.names += 1
    values = _Values(writer, kind, variable, other, depth)
    lines = []
    for line in text.replace("$n", str(writer.names)).split("\n"):
        space = line[: len(line) - len(line.lstrip())]
        made = Template(line.strip()).safe_substitute(values)
        lines += [space + part for part in made.split("\n")]
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


def random_locals(seed: int) -> str:
    """Return the source of a module with a function `main`, and what `check_holders` calls it with."""
    return _Writer(random.Random(seed)).text()
