"""A writer of modules of Python functions, and the expressions of their statements."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

SIZES = (1, 2, 3, 4, 5, 6, 9, 20, 40)
DTYPES = ("f8",) * 7 + ("f4", "i8", "i8")
#: Dtypes of arguments in place of these, which statements are written for.
OTHER_DTYPES = {"f8": ("c16",), "f4": ("c8",), "i8": ("i4", "i2", "u1", "u8")}
STATE = """\
class Box:
    pass


TABLE = np.linspace(-1.0, 1.0, {n})
COUNT = 0
LEVEL = 0.5
LOG = []
KNOWN = {{"scale": 0.25, "calls": 0}}
BOX = Box()
BOX.total, BOX.steps, BOX.weights = 0.0, 0, np.arange({n}.0) / 8


"""


class Int(NamedTuple):
    """An integer and the range that it is known to be in."""

    low: int
    high: int


class Array(NamedTuple):
    dtype: str
    shape: tuple[int, ...]


@dataclass
class Scope:
    """Names of a function that are bound for certain."""

    ints: dict[str, Int] = field(default_factory=dict)
    floats: set[str] = field(default_factory=set)
    arrays: dict[str, Array] = field(default_factory=dict)
    lists: set[str] = field(default_factory=set)
    fixed: set[str] = field(default_factory=set)  # variables of loops and limits, which are not assigned to

    def copy(self) -> Scope:
        return Scope(dict(self.ints), set(self.floats), dict(self.arrays), set(self.lists), set(self.fixed))


class Module:
    """Writes a module.

    Parameters
    ----------
    rng : random.Random
        Source of all choices.
    statements : sequence
        Functions that write a statement, with their weights, and whether they nest others.
    """

    def __init__(self, rng: random.Random, statements: Sequence[tuple[Callable[[Module], None], float, bool]]) -> None:
        self.rng, self._makers = rng, statements
        self.n, self.m = rng.choice(SIZES), rng.choice(SIZES[:7])
        self.dtype = rng.choice(DTYPES)
        self.lines: list[str] = []
        self.indent = 1
        self.loops = 0  # around the statement that is written
        self.work = 1  # iterations of these together
        self.names = 0
        self.helpers: list[str] = []
        self.globals: set[str] = set()
        self.scope = Scope()
        self.has_state = rng.random() < 0.4
        self.returned = ""
        self.in_helper = False
        self.depth = 3

    def text(self) -> str:
        """Return the source."""
        head = "import math\n\nimport numpy as np\n\n" + (STATE.format(n=self.n) if self.has_state else "")
        parts = [self._helper(k) for k in range(self.rng.choice((0, 0, 1, 2)))]
        return head + "".join(parts) + self._main()

    # -- functions

    def _helper(self, number: int) -> str:
        name = f"helper{number}"
        self._begin(Scope(arrays={"v": Array(self.dtype, (self.n,))}, floats={"s"}, ints={"k": Int(0, 2)}))
        self.in_helper, self.depth = True, 2
        self.returned = self.choice(("s", "v.sum()", "s + 1", "s * k", "v", None, None, "s, k")) or ""
        self.statements(self.rng.choice((1, 2, 3)))
        end = f"    return {self.returned}\n" if self.returned else ""
        self.helpers.append((name, self.returned))
        return f"def {name}(v, s, k):\n" + self._body() + end + "\n\n"

    def _main(self) -> str:
        given = {
            "x": Array(self.dtype, (self.n,)),
            "y": Array("f8", (self.n,)),
            "a": Array(self.dtype, (self.n, self.m)),
        }
        self._begin(Scope(arrays=given, floats={"t"}, ints={"k": Int(0, 3)}))
        self.in_helper, self.depth = False, 3
        self.line("n, m = a.shape", "n = len(x)\n    m = a.shape[1]")
        self.scope.ints.update(n=Int(self.n, self.n), m=Int(self.m, self.m))
        self.scope.fixed.update("nm")
        self.line("s = 0.0", "s = x[0]" if self.dtype == "f8" else "s = t", "s = t * 0.5", "s = float(k)")
        self.scope.floats.add("s")
        self.line("c = 0", "c = k")
        self.scope.ints["c"] = Int(-(10**6), 10**6)
        if self.chance(0.6):
            self.new_array("b")
        parts = ["s", "c", *sorted(self.scope.arrays), "t", "s + c"]
        self.returned = ", ".join(dict.fromkeys(self.choice(parts) for _ in range(self.rng.choice((1, 2, 3)))))
        self.statements(self.rng.choice((2, 3, 4, 5)))
        self._return_list()
        text = self._body() + f"    return {self.returned}\n"
        dtypes = {a: given[a].dtype for a in "xya"}
        if self.chance(0.15):
            dtypes["x"] = dtypes["a"] = self.choice(OTHER_DTYPES[self.dtype])
        spec = [(a, dtypes[a], given[a].shape) for a in "xya"]
        return f"ARGUMENTS = {spec}, {self.rng.randrange(10**6)}\n\n\ndef main(x, y, a, t, k):\n" + text

    def _return_list(self) -> None:
        for name in sorted(self.scope.lists):
            self.line(f"s = s + sum({name})", f"c = c + len({name})", f"s = s + np.sum(np.array({name}))")

    def _begin(self, scope: Scope) -> None:
        self.lines, self.scope, self.globals, self.indent, self.loops, self.work = [], scope, set(), 1, 0, 1

    def _body(self) -> str:
        head = f"    global {', '.join(sorted(self.globals))}\n" if self.globals else ""
        return head + "".join(self.lines)

    # -- writing

    def line(self, *choices: str) -> None:
        self.lines.append("    " * self.indent + self.choice(choices) + "\n")

    def choice(self, options: Any) -> Any:
        return self.rng.choice(options)

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    @contextmanager
    def block(self, head: str, times: int = 0):
        """Write the head of a block; names that it binds are forgotten after it."""
        self.line(head)
        outer, self.scope = self.scope, self.scope.copy()
        self.indent += 1
        if times:
            self.loops, self.work = self.loops + 1, self.work * times
        yield
        if times:
            self.loops, self.work = self.loops - 1, self.work // times
        self.indent -= 1
        for name, kind in self.scope.ints.items():  # an integer that the block changed
            if name in outer.ints and outer.ints[name] != kind:
                outer.ints[name] = Int(min(kind.low, outer.ints[name].low), max(kind.high, outer.ints[name].high))
        for name in list(outer.ints):
            if name not in self.scope.ints and name in self.scope.floats:
                del outer.ints[name]
                outer.floats.add(name)
        for name, kind in list(outer.arrays.items()):
            if self.scope.arrays.get(name) != kind:
                del outer.arrays[name]
        self.scope = outer

    def statements(self, count: int) -> None:
        for _ in range(count):
            nested = self.indent <= self.depth
            weights = [(maker, w) for maker, w, deep in self._makers if nested or not deep]
            maker = self.rng.choices([m for m, _ in weights], [w for _, w in weights])[0]
            before = len(self.lines)
            maker(self)
            if len(self.lines) == before:
                self._makers[0][0](self)  # an assignment to a number
        if self.lines[-1].endswith(":\n"):
            self.line("pass")

    # -- parts of expressions

    def int_(self, low: int, high: int) -> str:
        """Return an integer within a range, for an index mostly."""
        if self.chance(0.01):
            return str(high + 1)
        within = [n for n, k in self.scope.ints.items() if low <= k.low and k.high <= high]
        loose = [n for n, k in self.scope.ints.items() if k.high > high or k.low < low]
        if within and self.chance(0.75):
            name = self.choice(within)
            kind = self.scope.ints[name]
            if kind.high < high and self.chance(0.2):
                return f"{name} + 1"
            if kind.low > low and self.chance(0.3):
                return f"{name} - 1"
            return name
        if low <= 0 and loose and high >= 0 and self.chance(0.4):
            return f"{self.choice(loose)} % {high + 1}"
        return str(self.rng.randint(low, high))

    def index(self, size: int) -> str:
        return self.int_(-1 if self.chance(0.2) else 0, size - 1)

    def int_value(self) -> str:
        scope = self.scope
        options = [*scope.ints, *scope.ints, "1", "2", "3"]
        made = self.choice(options)
        if self.chance(0.3):
            array = self.array(None)
            if array:
                made = self.choice(
                    (
                        f"np.argmax({array})",
                        f"({array} > {self.float_value()}).sum()",
                        f"len({array})",
                        f"{array}.size",
                        f"np.count_nonzero({array} < 0)",
                        f"int({self.float_value()})",
                    )
                )
        if self.chance(0.4):
            made = self.choice(
                (
                    f"{made} + {self.choice(options)}",
                    f"{made} * 2 % 7",
                    f"{made} // 2",
                    f"{made} - {self.choice(options)}",
                    f"max({made}, {self.choice(options)})",
                    f"({made} ^ 1)",
                    f"abs({made})",
                    f"{made} % 5",
                    f"-{made}",
                )
            )
        return made

    def array(self, like: Array | None, rank: int | None = None) -> str:
        """Return the name of an array."""
        found = [
            n
            for n, k in self.scope.arrays.items()
            if (like is None or k == like) and (rank is None or len(k.shape) == rank)
        ]
        return self.choice(found) if found else ""

    def vector(self, size: int) -> str:
        """Return an expression for a vector of floats or integers."""
        options = [n for n, k in self.scope.arrays.items() if k.shape == (size,)] * 2
        for name, kind in self.scope.arrays.items():
            if len(kind.shape) == 2 and kind.shape[1] == size:
                options += [f"{name}[{self.index(kind.shape[0])}]"]
            if len(kind.shape) == 2 and kind.shape[0] == size:
                options += [f"{name}[:, {self.index(kind.shape[1])}]"]
        if self.has_state and size == self.n:
            options += ["TABLE", "BOX.weights"]
        if not options or self.chance(0.05):
            return f"np.arange({size}.0)"
        made = self.choice(options)
        if self.chance(0.3):
            return self.choice(
                (
                    f"np.tanh({made})",
                    f"{made}[::-1]",
                    f"np.sort({made})",
                    f"np.abs({made})",
                    f"(0.5 * {made})",
                    f"np.where({made} > {self.small()}, {made}, {self.small()})",
                    f"np.cumsum({made}) / {size}",
                    f"np.roll({made}, 1)",
                    f"({made} + {self.choice(options)}) / 2",
                    f"np.minimum({made}, {self.choice(options)})",
                )
            )
        return made

    def small(self) -> str:
        return self.choice(("0.5", "0.25", "-1.0", "2.0", "0.0", "1", "-0.5"))

    def part(self) -> str:
        """Return a part of an array, mostly a vector, by slices with variables of loops."""
        name = self.array(None)
        if not name:
            return ""
        shape = self.scope.arrays[name].shape
        cuts = self.slice(shape[0])
        if len(shape) == 1:
            return f"{name}[{cuts}]"
        return self.choice(
            (
                f"{name}[{self.index(shape[0])}, {self.slice(shape[1])}]",
                f"{name}[{cuts}, {self.index(shape[1])}]",
                f"{name}[{cuts}]",
            )
        )

    def slice(self, size: int) -> str:
        i, j = self.int_(0, size), self.int_(0, size)
        return self.choice((f":{i}", f"{i}:", "1:", ":-1", "1:-1", "::2", "::-1", f"{i}:{j}", f"{i}::2", ":"))

    def float_value(self) -> str:
        scope = self.scope
        options = [*sorted(scope.floats)] * 3 + ["0.5", "1.5", "-0.25"]
        if self.has_state:
            options += ["LEVEL", "KNOWN['scale']", "BOX.total", f"TABLE[{self.index(self.n)}]"]
        arrays = [(n, k.shape) for n, k in scope.arrays.items()]
        for name, shape in arrays * 2:
            options += [f"{name}[{', '.join(self.index(d) for d in shape)}]"]
        for name, shape in arrays:
            if len(shape) == 1:
                options += [
                    f"{name}.sum()",
                    f"{name}.max()",
                    f"{name}.mean()",
                    f"np.dot({name}, {self.vector(shape[0])})",
                ]
            else:
                options += [f"{name}[{self.index(shape[0])}].sum()", f"{name}[:, {self.index(shape[1])}].min()"]
        part = self.part()
        if part:
            options += [f"{part}.sum()", f"np.abs({part}).sum()"]
        return self.choice(options)

    def float_(self) -> str:
        """Return an expression whose value stays of moderate size."""
        made = self.float_value()
        other = self.float_value()
        if self.chance(0.35):
            return made
        return self.choice(
            (
                f"{made} * 0.5 + {other} * 0.25",
                f"np.tanh({made})",
                f"min({made}, {other})",
                f"max({made}, {other})",
                f"math.sqrt(abs({made}))",
                f"abs({made}) / (1 + abs({other}))",
                f"np.sin({made})",
                f"math.cos({made})",
                f"({made} if {self.condition()} else {other})",
                f"np.where({made} > {other}, {made}, 1.0)",
                f"{made} - {other} / 4",
                f"round({made})",
                f"{self.int_value()} * 0.125",
                f"-{made}",
                f"{made} // 2",
                f"{made} % 3",
            )
        )

    def condition(self) -> str:
        f, i = self.float_value, self.int_value
        made = self.choice(
            (
                f"{f()} > {f()}",
                f"{f()} < {f()}",
                f"{f()} > {f()}",
                f"{i()} % 2 == 0",
                f"{i()} > {i()}",
                f"{i()} != {i()}",
                f"{i()} == {i()}",
                f"{self.small()} < {f()} < {f()}",
                f"not {f()} > {f()}",
                f"{i()} % 3 == 1",
            )
        )
        array = self.array(None)
        if array and self.chance(0.15):
            made = self.choice((f"({array} > {f()}).any()", f"np.all({array} < {f()})", f"np.any(np.isnan({array}))"))
        if self.chance(0.2):
            made = f"({made} {self.choice(('and', 'or'))} {f()} < {f()})"
        return made

    def array_value(self, kind: Array) -> str:
        """Return an expression for an array of a shape (of another dtype perhaps)."""
        if len(kind.shape) == 1:
            return self.vector(kind.shape[0])
        same = [n for n, k in self.scope.arrays.items() if k.shape == kind.shape]
        if not same:
            return f"np.zeros({kind.shape})"
        name, other = self.choice(same), self.choice(same)
        return self.choice(
            (
                name,
                f"np.tanh({name})",
                f"{name}[::-1]",
                f"({name} + {other}) / 2",
                f"np.where({name} > 0, {other}, 0)",
                f"{name} - {name}.mean()",
                f"np.sort({name}, axis=0)",
                f"np.clip({name}, -1, 1)",
                f"{other} * 0.5",
            )
        )

    def new_array(self, name: str) -> None:
        shape, like = self.choice((((self.n,), "x"), ((self.n,), "y"), ((self.n, self.m), "a")))
        text = self.choice(
            (
                f"{like}.copy()",
                f"np.zeros({shape})",
                f"np.zeros_like({like})",
                f"{like} * 0.5",
                f"np.ones({shape})",
                f"np.full({shape}, 0.5)",
                f"np.arange({prod(shape)}.0).reshape({shape})",
                f"np.zeros({shape}, dtype=np.int64)",
                f"np.random.default_rng({self.n}).random({shape})",  # an array that is not traced
                f"{like} > 0",
                f"np.empty_like({like})\n{'    ' * self.indent}{name}[:] = 1",
            )
        )
        self.line(f"{name} = {text}")
        dtype = "i8" if "int64" in text else "b1" if ">" in text else "f8"
        if ("*" not in text and "like" in text) or "copy" in text:
            dtype = self.scope.arrays[like].dtype
        if "*" in text and self.scope.arrays[like].dtype == "f4":
            dtype = "f4"
        self.scope.arrays[name] = Array(dtype, shape)
