"""Random modules of Python functions: loops, branches, jumps, written arguments, helpers and state outside."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SIZES = (1, 2, 3, 4, 5, 6, 9, 20, 40)
DTYPES = ("f8",) * 7 + ("f4", "i8", "i8")
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
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
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
        self._statements(self.rng.choice((1, 2, 3)))
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
            self._new_array("b")
        parts = ["s", "c", *sorted(self.scope.arrays), "t", "s + c"]
        self.returned = ", ".join(dict.fromkeys(self.choice(parts) for _ in range(self.rng.choice((1, 2, 3)))))
        self._statements(self.rng.choice((2, 3, 4, 5)))
        self._return_list()
        text = self._body() + f"    return {self.returned}\n"
        spec = [(a, given[a].dtype, given[a].shape) for a in "xya"]
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

    def _statements(self, count: int) -> None:
        for _ in range(count):
            nested = self.indent <= self.depth
            weights = [(maker, w) for maker, w, deep in STATEMENTS if nested or not deep]
            maker = self.rng.choices([m for m, _ in weights], [w for _, w in weights])[0]
            before = len(self.lines)
            maker(self)
            if len(self.lines) == before:
                _scalar(self)
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
                    (f"np.argmax({array})", f"({array} > {self.float_value()}).sum()", f"len({array})", f"{array}.size",
                     f"np.count_nonzero({array} < 0)", f"int({self.float_value()})")
                )  # fmt: skip
        if self.chance(0.4):
            made = self.choice(
                (f"{made} + {self.choice(options)}", f"{made} * 2 % 7", f"{made} // 2", f"{made} - {self.choice(options)}",
                 f"max({made}, {self.choice(options)})", f"({made} ^ 1)", f"abs({made})", f"{made} % 5", f"-{made}")
            )  # fmt: skip
        return made

    def array(self, like: Array | None, rank: int | None = None) -> str:
        """Return the name of an array."""
        found = [
            n for n, k in self.scope.arrays.items()
            if (like is None or k == like) and (rank is None or len(k.shape) == rank)
        ]  # fmt: skip
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
                (f"np.tanh({made})", f"{made}[::-1]", f"np.sort({made})", f"np.abs({made})", f"(0.5 * {made})",
                 f"np.where({made} > {self.small()}, {made}, {self.small()})", f"np.cumsum({made}) / {size}",
                 f"np.roll({made}, 1)", f"({made} + {self.choice(options)}) / 2", f"np.minimum({made}, {self.choice(options)})")
            )  # fmt: skip
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
            (f"{name}[{self.index(shape[0])}, {self.slice(shape[1])}]", f"{name}[{cuts}, {self.index(shape[1])}]",
             f"{name}[{cuts}]")
        )  # fmt: skip

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
            (f"{made} * 0.5 + {other} * 0.25", f"np.tanh({made})", f"min({made}, {other})", f"max({made}, {other})",
             f"math.sqrt(abs({made}))", f"abs({made}) / (1 + abs({other}))", f"np.sin({made})", f"math.cos({made})",
             f"({made} if {self.condition()} else {other})", f"np.where({made} > {other}, {made}, 1.0)", f"{made} - {other} / 4",
             f"round({made})", f"{self.int_value()} * 0.125", f"-{made}", f"{made} // 2", f"{made} % 3")
        )  # fmt: skip

    def condition(self) -> str:
        f, i = self.float_value, self.int_value
        made = self.choice(
            (f"{f()} > {f()}", f"{f()} < {f()}", f"{f()} > {f()}", f"{i()} % 2 == 0", f"{i()} > {i()}", f"{i()} != {i()}",
             f"{i()} == {i()}", f"{self.small()} < {f()} < {f()}", f"not {f()} > {f()}", f"{i()} % 3 == 1")
        )  # fmt: skip
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
            (name, f"np.tanh({name})", f"{name}[::-1]", f"({name} + {other}) / 2", f"np.where({name} > 0, {other}, 0)",
             f"{name} - {name}.mean()", f"np.sort({name}, axis=0)", f"np.clip({name}, -1, 1)", f"{other} * 0.5")
        )  # fmt: skip

    def _new_array(self, name: str) -> None:
        shape, like = self.choice((((self.n,), "x"), ((self.n,), "y"), ((self.n, self.m), "a")))
        text = self.choice(
            (f"{like}.copy()", f"np.zeros({shape})", f"np.zeros_like({like})", f"{like} * 0.5", f"np.ones({shape})",
             f"np.zeros({shape}, dtype=np.int64)", f"{like} > 0", f"np.empty_like({like})\n{'    ' * self.indent}{name}[:] = 1")
        )  # fmt: skip
        self.line(f"{name} = {text}")
        dtype = "i8" if "int64" in text else "b1" if ">" in text else "f8"
        if "*" not in text and "like" in text or "copy" in text:
            dtype = self.scope.arrays[like].dtype
        if "*" in text and self.scope.arrays[like].dtype == "f4":
            dtype = "f4"
        self.scope.arrays[name] = Array(dtype, shape)


# -- statements


def _scalar(w: Module) -> None:
    """Assign to a number."""
    if w.chance(0.4):
        name = w.choice([n for n in w.scope.ints if n not in w.scope.fixed] or ["c"])
        if name not in w.scope.ints:
            return
        if w.chance(0.08):
            w.line(f"{name} = {w.float_()}", f"{name} += 0.5")
            del w.scope.ints[name]
            w.scope.floats.add(name)
        else:
            w.line(
                f"{name} += {w.int_(0, 3)}",
                f"{name} = {w.int_value()} % 1000",
                f"{name} = ({name} * 3 + {w.int_value()}) % 17",
                f"{name} -= 1",
                f"{name} += 1",
            )
            w.scope.ints[name] = Int(-(10**6), 10**6)
        return
    names = sorted(w.scope.floats - w.scope.fixed) or ["s"]
    name = w.choice(names)
    if w.chance(0.15):
        name = w.fresh("f")
        w.line(f"{name} = {w.float_()}")
    elif name in w.scope.floats:
        w.line(f"{name} = {w.float_()}", f"{name} = 0.5 * {name} + {w.float_()} / 4", f"{name} += {w.float_()} * 0.125",
               f"{name} *= 0.5", f"{name} -= {w.float_value()} / 8", f"{name} /= 2")  # fmt: skip
    else:
        w.line(f"{name} = {w.float_()}")
    w.scope.floats.add(name)


def _write(w: Module) -> None:
    """Write elements of an array."""
    name = w.array(None)
    if not name:
        return
    kind = w.scope.arrays[name]
    shape = kind.shape
    value = f"{w.float_()} * 0.5" if kind.dtype[0] == "f" else w.int_value() if kind.dtype == "i8" else w.condition()
    at = ", ".join(w.index(d) for d in shape)
    if kind.dtype[0] == "i" and w.chance(0.2):
        value = w.float_()
    if kind.dtype == "i8":
        w.line(f"{name}[{at}] = {value}", f"{name}[{at}] += 1", f"{name}[{at}] ^= 1")
    elif kind.dtype == "b1":
        w.line(f"{name}[{at}] = {value}", f"{name}[{at}] |= {w.condition()}", f"{name}[{at}] = not {name}[{at}]")
    else:
        w.line(
            f"{name}[{at}] = {value}",
            f"{name}[{at}] += {value}",
            f"{name}[{at}] *= 0.5",
            f"{name}[{at}] -= {w.float_value()} / 8",
        )


def _write_part(w: Module) -> None:
    """Write a slice, a row, a column or a mask of an array."""
    name = w.array(None)
    if not name or w.scope.arrays[name].dtype == "b1":
        return
    kind = w.scope.arrays[name]
    factor = "0.5" if kind.dtype[0] == "f" else "2"
    scalar = w.float_() if kind.dtype[0] == "f" else w.int_value()
    first, cut = kind.shape[0], w.slice(kind.shape[0])
    forms = [f"{name}[{cut}] = {scalar}", f"{name}[{name} > {w.float_value()}] = {w.small()}", f"{name}[:] = {w.array_value(kind)}",
             f"{name}[...] = {scalar}", f"{name}[{cut}] = {name}[{cut}]", f"{name}[1:] = {name}[:-1]", f"{name}[:-1] = {name}[1:]",
             f"np.minimum({name}, 3, out={name})", f"np.multiply({name}, {factor}, out={name}, casting='unsafe')",
             f"np.copyto({name}, {w.array_value(kind)}, casting='unsafe')", f"{name}.sort(axis=0)"]  # fmt: skip
    if kind.dtype[0] == "f":
        forms += [f"{name} *= 0.5", f"{name}[{cut}] *= 0.5", f"{name}[{cut}] -= {scalar}", f"{name} += 0.25 * {w.array_value(kind)}",
                  f"{name}[{cut}] += 0.25 * {w.array_value(kind)}[{cut}]", f"np.add({name}, {w.array_value(kind)}, out={name})",
                  f"{name}[1:-1] = 0.5 * ({name}[2:] + {name}[:-2])", f"np.tanh({name}, out={name})"]  # fmt: skip
    else:
        forms += [f"{name} += 1", f"{name} %= 5", f"{name}[{cut}] //= 2"]
    if len(kind.shape) == 2:
        i, j, c = w.index(first), w.index(first), w.slice(kind.shape[1])
        k, rest = w.index(kind.shape[1]), w.slice(first)
        forms += [f"{name}[{i}] = {w.vector(kind.shape[1])}", f"{name}[:, {k}] = {w.vector(first)}",
                  f"{name}[{i}, {c}] = {name}[{j}, {c}]", f"{name}[{rest}, {k}] = {scalar}",
                  f"{name}[[{i}, {j}]] = {name}[[{j}, {i}]]", f"{name}[{i}, {c}] //= 2"] * 2  # fmt: skip
        if kind.dtype[0] == "f":
            forms += [f"{name}[{i}, {c}] -= 0.5 * {name}[{j}, {c}]", f"{name}[{i}] += {w.float_value()} * {name}[{j}] / 4",
                      f"{name}[{i}, {c}] /= 2"] * 2  # fmt: skip
    w.line(*forms)


def _assign_array(w: Module) -> None:
    """Bind a name to an array."""
    names = [n for n in w.scope.arrays if w.scope.arrays[n].dtype == "f8"]
    if not names:
        return
    name = w.choice(names)
    kind = w.scope.arrays[name]
    others = [n for n in names if w.scope.arrays[n] == kind and n != name]
    forms = [f"{name} = 0.5 * {w.array_value(kind)}", f"{name} = {name} * 0.5 + 0.25 * {w.array_value(kind)}", f"{name} = {name}.copy()",
             f"{name} = np.tanh({w.array_value(kind)}) + 0.0", f"{name} = np.where({w.condition()}, {name}, 0.0)"]  # fmt: skip
    if others:
        other = w.choice(others)
        forms += [f"{name}, {other} = {other}, {name}"] * 5 + [
            f"{name}, {other} = {other} * 0.5, {name}",
            f"{name} = {other}",
        ]
    w.line(*forms)


def _new(w: Module) -> None:
    if w.in_helper:
        return
    if w.loops == 0 and w.chance(0.3):
        name = w.fresh("made")
        w.line(f"{name} = []")
        w.scope.lists.add(name)
        return
    w._new_array(w.fresh("b"))


def _view(w: Module) -> None:
    """Bind a name to a part of an array."""
    name = w.array(None)
    if not name or w.scope.arrays[name].dtype == "b1" or w.in_helper:
        return
    kind = w.scope.arrays[name]
    made = w.fresh("v")
    if len(kind.shape) == 2:
        w.line(f"{made} = {name}[{w.index(kind.shape[0])}]")
        w.scope.arrays[made] = Array(kind.dtype, kind.shape[1:])
    else:
        w.line(f"{made} = {name}[::-1]")
        w.scope.arrays[made] = kind


def _append(w: Module) -> None:
    if w.scope.lists:
        w.line(f"{w.choice(sorted(w.scope.lists))}.append({w.float_()})")


def _call(w: Module) -> None:
    """Call a helper."""
    if not w.helpers or w.in_helper or w.work > 200:
        return
    name, returned = w.choice(w.helpers)
    like = Array(w.dtype, (w.n,))
    array = w.array(like)
    if not array:
        return
    call = f"{name}({array}, {w.float_value()}, {w.int_(0, 2)})"
    if returned in ("s", "v.sum()", "s + 1", "s * k"):
        w.line(f"s = {call} / 4", f"s += {call} * 0.125", call)
        w.scope.floats.add("s")
        w.scope.ints.pop("s", None)
    elif returned == "v" and w.dtype == "f8":
        made = w.fresh("b")
        w.line(f"{made} = {call}")
        w.scope.arrays[made] = like
    else:
        w.line(call)


def _outside(w: Module) -> None:
    """Read and write the state of the module."""
    if not w.has_state:
        return
    form = w.choice(("COUNT += 1", "LEVEL = {f} * 0.5", "LOG", "KNOWN['calls'] += 1", "KNOWN['scale'] = {f} * 0.125", "BOX.total += {f} / 4",
                     "BOX.steps += 1", "TABLE[{i}] = {f}", "TABLE[{i}] += 0.5", "BOX.weights[{i}] = {f} * 0.5", "BOX.weights *= 0.5",
                     "BOX.weights = BOX.weights * 0.5", "COUNT = {k} % 100", "TABLE *= 0.5"))  # fmt: skip
    if form == "LOG":
        if w.loops and w.chance(0.7):
            return
        form = "LOG.append({f})"
    if form.split()[0] in ("COUNT", "LEVEL", "TABLE"):
        w.globals.add(form.split()[0])
    w.line(form.format(f=w.float_value(), i=w.index(w.n), k=w.int_value()))


def _if(w: Module) -> None:
    with w.block(f"if {w.condition()}:"):
        w._statements(w.rng.choice((1, 1, 2)))
        _jump(w, 0.15)
    for _ in range(w.rng.choice((0, 0, 0, 1))):
        with w.block(f"elif {w.condition()}:"):
            w._statements(1)
            _jump(w, 0.1)
    if w.chance(0.4):
        with w.block("else:"):
            w._statements(w.rng.choice((1, 2)))
            _jump(w, 0.05)


def _jump(w: Module, part: float) -> None:
    if w.chance(part if w.loops else part / 3):
        if w.loops and w.chance(0.75):
            w.line("break", "continue")
        elif w.returned:
            w.line(f"return {w.returned}")
        elif w.in_helper:
            w.line("return")


def _for(w: Module) -> None:
    """Loop over numbers."""
    i = w.fresh("i")
    most = max(1, 400 // w.work)
    n, m = w.n, w.m
    counts = [(f"range({n})" if w.in_helper else w.choice(("range(n)", "range(len(x))", "range(a.shape[0])")), 0, n - 1),
              ("range(v.shape[0])" if w.in_helper else "range(m)", 0, (n if w.in_helper else m) - 1), ("range(1, {n})".format(n=n), 1, n - 1),
              (f"range({n} - 1, -1, -1)", 0, n - 1), (f"range(0, {n}, 2)", 0, n - 1), ("range(3)", 0, 2), ("range(30)", 0, 29),
              ("range(k)", 0, 3), ("range(k, 20)", 0, 19), (f"range(1, {n} - 1)", 1, n - 2), (f"range(20, k, -1)", 0, 20)]  # fmt: skip
    for name, kind in w.scope.ints.items():
        if kind.low >= 0 and kind.high <= 60 and name not in ("n", "m"):
            counts += [(f"range({name})", 0, max(kind.high - 1, 0)), (f"range({name}, {n})", 0, n - 1), (f"range({name} + 1)", 0, kind.high),
                       (f"range({name} + 1, {n})", min(1, n - 1), n - 1), (f"range({name}, -1, -1)", 0, kind.high)]  # fmt: skip
    array = w.array(None)
    if array:
        counts += [(f"range(int(abs({w.float_value()})) % 6)", 0, 5), (f"range(({array} > 0).sum() % 20)", 0, 19),
                   (f"range(np.argmax({array}) % 7, 20)", 0, 19)]  # fmt: skip
    head, low, high = w.choice([c for c in counts if c[2] - c[1] < most] or [("range(2)", 0, 1)])
    with w.block(f"for {i} in {head}:", max(high - low + 1, 1)):
        w.scope.ints[i] = Int(low, max(high, low))
        w.scope.fixed.add(i)
        w._statements(w.rng.choice((1, 2, 2, 3)))
        _jump(w, 0.02)
    if w.chance(0.06):
        with w.block("else:"):
            w._statements(1)
    if w.chance(0.05):
        w.line(f"c = {i}")
        w.scope.ints["c"] = Int(0, 40)


def _for_each(w: Module) -> None:
    """Loop over elements or rows."""
    vectors = [n for n, k in w.scope.arrays.items() if len(k.shape) == 1 and k.dtype != "b1"]
    if not vectors:
        return
    x, y = w.choice(vectors), w.choice(vectors)
    size = w.scope.arrays[x].shape[0]
    if size * w.work > 400:
        return
    e, g, i = w.fresh("e"), w.fresh("e"), w.fresh("i")
    matrix = w.array(None, 2)
    form = w.choice(("array", "array", "enumerate", "zip", "reversed", "rows", "part", "list"))
    if form == "rows" and not matrix:
        form = "array"
    head = {"array": f"for {e} in {x}:", "enumerate": f"for {i}, {e} in enumerate({x}):", "zip": f"for {e}, {g} in zip({x}, {y}):",
            "reversed": f"for {i} in reversed(range({size})):", "rows": f"for {e} in {matrix}:", "part": f"for {e} in {x}[{w.slice(size)}]:",
            "list": f"for {e} in (0.5, 1.5, -0.5):"}[form]  # fmt: skip
    with w.block(head, size):
        if form == "rows":
            w.scope.arrays[e] = Array(w.scope.arrays[matrix].dtype, w.scope.arrays[matrix].shape[1:])
        elif form != "reversed":
            w.scope.floats.add(e)
        if form == "zip":
            w.scope.floats.add(g)
        if form in ("enumerate", "reversed"):
            w.scope.ints[i] = Int(0, size - 1)
            w.scope.fixed.add(i)
        w._statements(w.rng.choice((1, 2, 2)))
        _jump(w, 0.02)


def _while(w: Module) -> None:
    """Loop while a condition holds, a limited number of times."""
    q = w.fresh("q")
    limit = w.rng.choice((3, 7, 20, 40))
    if limit * w.work > 400:
        return
    w.line(f"{q} = 0")
    w.scope.ints[q] = Int(0, limit)
    w.scope.fixed.add(q)
    form = w.choice((f"while {w.condition()} and {q} < {limit}:", f"while {q} < {limit} and {w.condition()}:", "while True:",
                     f"while {q} < {limit}:"))  # fmt: skip
    with w.block(form, limit):
        w.line(f"{q} += 1")
        w.scope.ints[q] = Int(1, limit)
        if form == "while True:":
            with w.block(f"if {q} >= {limit} or {w.condition()}:"):
                if w.chance(0.3):
                    w._statements(1)
                w.line("break")
        w._statements(w.rng.choice((1, 2, 2)))
        _jump(w, 0.02)


Maker = Callable[[Module], None]
STATEMENTS: list[tuple[Maker, float, bool]] = [
    (_scalar, 5, False), (_write, 5, False), (_write_part, 4, False), (_assign_array, 2, False), (_new, 0.5, False),
    (_view, 0.5, False), (_append, 1, False), (_call, 2, False), (_outside, 2, False), (_if, 4, True), (_for, 5, True),
    (_for_each, 2, True), (_while, 2, True),
]  # fmt: skip


def random_module(seed: int) -> str:
    """Return the source of a module with a function `main`."""
    return Module(random.Random(seed)).text()
