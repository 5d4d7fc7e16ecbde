"""Random modules whose function reads and writes a value through holders: objects, closures, defaults, containers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from string import Template

from support.functions.holder_forms import BLOCKS, COUNTS, HEAD, HOLDERS, KEEPS, PARAMETERS, POINT, RESULTS, VALUES


def _filled(text: str, **values: object) -> str:
    return Template(text).safe_substitute({name: str(value) for name, value in values.items()})


class _Writer:
    """Writes a module.

    Parameters
    ----------
    rng : random.Random
        Source of all choices.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.kind = rng.choice(list(VALUES))
        self.chain = [self.weighted([(h.weight, h) for h in HOLDERS]) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))]
        self.depth = len(self.chain)
        _, self.parameters, self.sorts = self.weighted([(row[0], row) for row in PARAMETERS])
        names = [p.split("=")[0] for p in self.parameters]
        self.tops = ["TOP", "TOP", "OTHER", *[n for n in names if n in "hg"] * 3]
        self.values = [n for n in names if n in "vw"] * 3  # parameters that are the value itself

    def weighted(self, rows: Sequence[tuple]) -> object:
        return self.rng.choices([row[1] for row in rows], [row[0] for row in rows])[0]

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    # -- expressions

    def path(self, top: str, level: int) -> str:
        """Return the expression of what is so many holders below one."""
        for n in range(level):
            top = _filled(self.chain[n].read, h=top, n=n)
        return top

    def fresh(self, level: int, kind: str = "") -> str:
        """Return the expression of a new holder, or of a new value at the lowest level."""
        made = self.rng.choice(VALUES[kind or self.kind].makes)
        for n in reversed(range(level, self.depth)):
            made = _filled(self.chain[n].make, v=made, n=n)
        return made

    def value(self) -> str:
        """Return an expression of the value, or of that of the other holder."""
        top = self.rng.choice(self.tops + self.values)
        if top in self.values:
            return top
        there = self.path(top, self.depth)
        return self.weighted([(6, there), (1, f"read({top})"), (1, f"(lambda: {there})()")])

    def put(self, top: str, level: int, new: str, is_inner: bool) -> str:
        """Return a statement that puts another holder or value at a level; empty if there is none."""
        if level == 0:
            return f"{top} = {new}"
        holder = self.chain[level - 1]
        if is_inner and not holder.is_inner:
            return ""
        return _filled(holder.put, h=self.path(top, level - 1), v=new, n=level - 1)

    def of_value(self, texts: Sequence[str]) -> str:
        return _filled(self.rng.choice(texts), v=self.value())

    # -- statements of the function

    def statement(self, is_writing: bool) -> str:
        made = self.writing() if is_writing else self.reading()
        if self.chance(0.35) and made:
            head = _filled(self.rng.choice(BLOCKS), t=self.of_value(VALUES[self.kind].tests))
            rest = f"\nelse:\n{_indented(self.reading())}" if head.startswith("if") and self.chance(0.3) else ""
            made = f"{head}\n{_indented(made)}{rest}"
        return made

    def reading(self) -> str:
        use = self.of_value(VALUES[self.kind].uses)
        return self.weighted([
            (8, f"r = r + ({use})"), (1, f'print("used", {use})'), (1, f"r = [{use} for q in range(2)][1] + r"),
            (1, f"u = {use}\nr = r + u * 0.5"), (1, f"print(len(BAG), {self.of_value(VALUES[self.kind].tests)})"),
        ])  # fmt: skip

    def writing(self) -> str:
        kind, top, level = VALUES[self.kind], self.rng.choice(self.tops), self.rng.randint(0, self.depth)
        other = self.rng.choice(self.tops)
        there, lowest = self.path(top, level), self.path(top, self.depth)
        last = self.chain[-1] if self.chain else None
        forms = [
            (2, self.put(top, self.depth, self.of_value(kind.steps), True)),
            (1, self.put(top, level, self.path(other, level), True)),
            (0.2, self.put(top, level, self.fresh(level), True)),
            (1, _filled(self.rng.choice(KEEPS), p=there, u=self.of_value(kind.uses))),
            (1, self.rng.choice(COUNTS)),
        ]
        if kind.changes:
            forms += [
                (5, self.of_value(kind.changes)),
                (1, f"a = {self.value()}\n{_filled(self.rng.choice(kind.changes), v='a')}"),
            ]
        if last is None or last.put.startswith(last.read + " ="):
            if kind.augmented:
                forms.append((2, f"{lowest} {self.rng.choice(kind.augmented)}"))
            swapped = self.path("OTHER", self.depth)
            forms.append((0.7, f"{lowest}, {swapped} = {swapped}, {lowest}"))
        return self.weighted([form for form in forms if form[1]])

    def main(self) -> str:
        lines = [self.rng.choice(("r = 0.0", "r = x * 1.0", "r = x.sum()")), "c = 0"]
        is_writing = self.chance(0.5)
        for number in range(self.rng.choice((1, 2, 2, 3, 4))):
            lines.append(self.statement(is_writing and (number == 0 or self.chance(0.6))))
        there = self.path(self.rng.choice(self.tops), self.rng.randint(0, self.depth))
        lines.append("return " + _filled(self.weighted(RESULTS), v=self.value(), p=there))
        body = "\n".join(lines)
        rebound = [n for n in ("TOP", "OTHER", "COUNT") if f"{n} = " in body or f"{n} += " in body or f"{n} *= " in body
                   or f"{n} -= " in body or f"{n} %= " in body or f"{n}, " in body]  # fmt: skip
        head = f"global {', '.join(rebound)}\n" if rebound else ""
        return f"def main({', '.join(('x', 'k', *self.parameters))}):\n{_indented(head + body)}\n"

    # -- the rest of the module

    def change(self) -> str:
        """Return the body of a function that changes the state from outside."""
        kind, top, level = VALUES[self.kind], self.rng.choice(("TOP", "TOP", "OTHER")), self.rng.randint(0, self.depth)
        new = self.path(top, self.depth)
        forms = [
            (3, self.put(top, self.depth, self.fresh(self.depth), False)),
            (1, self.put(top, self.depth, self.fresh(self.depth, self.rng.choice(list(VALUES))), False)),
            (2, self.put(top, level, self.fresh(level), False)),
            (0.7, self.put("OTHER", level, self.path("TOP", level), False)),
            (0.7, self.put("TOP", level, self.path("OTHER", level), False)),
            (0.3, f"read = lambda h: {self.path('h', self.depth)}"),
            (0.3, "BOX.kept, COUNT, BOX.level = BAG, 7, 0.25"),
        ]
        if kind.changes:
            forms += [(4, _filled(self.rng.choice(kind.changes), v=new))]
        for n, holder in enumerate(self.chain):
            for text in holder.replaced:
                forms += [(1.5 / len(holder.replaced), _filled(text, h=self.path(top, n), v=self.fresh(n + 1), n=n))]
        return self.weighted([form for form in forms if form[1]])

    def text(self) -> str:
        """Return the source."""
        heads = [_filled(holder.head, n=n) for n, holder in enumerate(self.chain) if holder.head]
        made = [f"{name} = {self.fresh(0)}\n" for name in ("TOP", "OTHER")]
        read = f"def read(h):\n    return {self.path('h', self.depth)}\n"
        main = self.main()
        changes, calls = [], []
        for call in range(5):
            change = "None"
            if call and self.chance(0.75):
                change = f"change{call}"
                body = _indented(
                    f"global TOP, OTHER, SPARE, COUNT, read\nx, k = np.array([0.5, 1.5, -1.0]), 2\n{self.change()}"
                )
                changes.append(f"def {change}():\n{body}\n")
            size = 4 if call == 3 and self.chance(0.5) else 3
            extra = _filled(self.weighted([(3, self.sorts[0]), (1, self.sorts[1])]), V=self.path("TOP", self.depth),
                            W=self.path("OTHER", self.depth))  # fmt: skip
            given = ", ".join(("x", str(self.rng.choice((1, 1, 2, 2, 3))), *([extra] if extra else [])))
            calls.append(f"    ({size}, {change}, lambda x: ({given})),\n")
        dtype = self.rng.choice(("f8",) * 6 + ("f4", "i8"))
        end = f'DTYPE = "{dtype}"\nCALLS = [\n{"".join(calls)}]\n'
        return "\n\n".join([HEAD, POINT, *heads, "".join(made), read, main, *changes, end])


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


def random_holders(seed: int) -> str:
    """Return the source of a module with a function `main`, its calls and the changes between them."""
    return _Writer(random.Random(seed)).text()
