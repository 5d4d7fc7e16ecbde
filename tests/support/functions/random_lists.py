"""Random modules of functions of lists of numbers: nested loops over lists that are written meanwhile."""

from __future__ import annotations

import random

SIZES = (2, 3, 5, 8, 20, 40, 45, 60)
HEAD = """import numpy as np

ARGUMENTS = ([("x", "i8", ({size},))], {seed})


def main(x, s, c):
    n, t = {size}, 1
    known = [k * 7 % 10 for k in range(n)]
    traced = {traced}
"""
TRACED = ("x.tolist()", "[int(v) for v in x]", "[0] * n", "[True, False] * n", "list(range(n))")
RESULTS = ("known, traced, t, x", "known, t", "t", "[t, c], traced", "np.array(known), traced")
#: Loops: statement, names of numbers that it binds, and whether it iterates over the first and the second list.
LOOPS = (
    ("for {i} in range({count}):", "i", 0), ("for {i} in range(1, {count}, 2):", "i", 0),
    ("for {i} in range({count} - 1, -1, -1):", "i", 0), ("for {v} in {a}:", "v", 1),
    ("for {i}, {v} in enumerate({a}):", "iv", 1), ("for {i}, {v} in enumerate({a}):", "iv", 1),
    ("for {v}, {w} in zip({a}, {b}):", "vw", 2), ("for {v} in reversed({a}):", "v", 1),
    ("for {v} in {a}[1:]:", "v", 0), ("for {v} in {a}[::-1]:", "v", 0), ("for {v} in x.tolist():", "v", 0),
)  # fmt: skip
COUNTS = ("n", "n", "3", "len({a})", "40", "{i} % 5")
INDICES = ("0", "-1", "{i} % len({a})", "({i} * 3 + 1) % len({a})", "({i} + {j}) % len({a})", "abs({i}) % len({a})")
NUMBERS = (
    "{i}", "{i}", "{n}", "{a}[{at}]", "{a}[{at}]", "len({a})", "sum({a})", "max({a})", "{a}.count({i})", "int(x[{at}])",
    "abs({x})", "({x} if {test} else {y})", "({x} + {y})", "({x} - {y})", "({x} * {y})", "min({x}, {y})",
)  # fmt: skip
TESTS = (
    "{x} < {y}", "{x} == {y}", "{x} % 2 == 0", "{x} % 3 != 1", "{i} in {a}", "{x} > {y} and {i} < 5", "not {i}",
    "{x} < 3 or {y} > 5",
)  # fmt: skip
WRITES = (
    "{a}[{at}] = {x} % 11", "{a}[{at}] = {x} % 101", "{a}[{at}] += {x} % 7", "t = {x} % 1009", "t += {x} % 7",
    "x[{at}] = {x} % 17", "{a}[{at}], {a}[{too}] = {a}[{too}], {a}[{at}]",
)  # fmt: skip
#: Statements outside of loops over lists.
CHANGES = (
    "{a}.append({x} % 9)", "{a} = [({x} + each) % 13 for each in {b}]", "{a}.sort()", "{a}.reverse()", "{a} = {b}",
    "{a} = {a}[:]", "{a} = sorted({b})", "{a} = {a}[::-1]",
)  # fmt: skip


class _Writer:
    """Text of a function, with the names of the numbers in it."""

    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng, self.lines, self.depth = rng, [], 1
        self.most_loops = 3 if size < 10 else 2
        self.numbers, self.loops, self.over_lists, self.left = ["t", "c"], 0, 0, rng.randint(5, 14)

    def _filled(self, text: str, depth: int = 0) -> str:
        a, b = self.rng.choice(("known", "traced")), self.rng.choice(("known", "traced"))
        i, j = self.rng.choice(self.numbers), self.rng.choice(self.numbers)
        names = {"a": a, "b": b, "i": i, "j": j, "n": self.rng.randint(-3, 9)}
        for key, choices in (("at", INDICES), ("too", INDICES)):
            names[key] = self.rng.choice(choices).format(**names)
        for key, choices in (("x", NUMBERS), ("y", NUMBERS), ("test", TESTS)):
            if f"{{{key}}}" in text:
                names[key] = i if depth > 2 and key != "test" else self._filled(self._choice(choices, depth), depth + 1)
        return text.format(**names)

    def _choice(self, choices: tuple[str, ...], depth: int) -> str:
        return self.rng.choice(choices if depth < 3 else choices[:4])

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _block(self, count: int) -> None:
        self.depth += 1
        for _ in range(count):
            self.statement()
        self.depth -= 1

    def _loop(self) -> None:
        text, bound, lists = self.rng.choice(LOOPS)
        number, before = len(self.lines), list(self.numbers)
        names = {key: f"{key}{number}" for key in "ivw"}
        count = self._filled(self.rng.choice(COUNTS))
        a, b = self.rng.choice(("known", "traced")), self.rng.choice(("known", "traced"))
        self._line(text.format(a=a, b=b, count=count, **names))
        self.numbers += [names[key] for key in bound]
        self.loops, self.over_lists = self.loops + 1, self.over_lists + bool(lists)
        self._block(self.rng.randint(1, 3))
        if self.rng.random() < 0.1:
            self.depth += 1
            self._line(self._filled(f"if {{test}}: {self.rng.choice(('break', 'continue'))}"))
            self.depth -= 1
        self.loops, self.over_lists, self.numbers = self.loops - 1, self.over_lists - bool(lists), before

    def statement(self) -> None:
        """Write a statement, or a loop or branch with some."""
        self.left -= 1
        kind = self.rng.random()
        if kind < 0.35 and self.loops < self.most_loops and self.left > 0:
            self._loop()
        elif kind < 0.45 and self.left > 0:
            self._line(self._filled("if {test}:"))
            self._block(self.rng.randint(1, 2))
        elif kind < 0.6 and not self.loops:
            self._line(self._filled(self.rng.choice(CHANGES)))
        else:
            self._line(self._filled(self.rng.choice(WRITES)))


def random_lists(seed: int) -> str:
    """Return the text of a module whose function `main` reads and writes two lists of numbers and an array."""
    rng = random.Random(seed)
    size = rng.choice(SIZES)
    writer = _Writer(rng, size)
    for _ in range(rng.randint(3, 6)):
        writer.statement()
    head = HEAD.format(size=size, seed=rng.randrange(1000), traced=rng.choice(TRACED))
    return "\n".join([head.rstrip(), *writer.lines, f"    return {rng.choice(RESULTS)}\n"])
