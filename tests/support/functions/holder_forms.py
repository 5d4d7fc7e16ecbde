"""Texts of which random modules of state in holders are made: holders, values, and what is done with them."""

from __future__ import annotations

from typing import NamedTuple


class Holder(NamedTuple):
    """A way to hold a value. In the texts, $n is the holder's number, $h the holder and $v the value.

    Attributes
    ----------
    weight : float
        Frequency.
    head : str
        Definitions of the module.
    make : str
        Expression of a new holder.
    read : str
        Expression of the held value.
    put : str
        Statement that holds another value; empty if there is none.
    is_inner : bool
        Whether the function itself may contain that statement.
    replaced : tuple of str
        Statements that put another method, property or code in place of the one that reads, which gives $v.
    """

    weight: float
    head: str
    make: str
    read: str
    put: str = ""
    is_inner: bool = True
    replaced: tuple[str, ...] = ()


class Value(NamedTuple):
    """A kind of value. In the texts, $v is the value.

    Attributes
    ----------
    makes : tuple of str
        Expressions of new values.
    uses : tuple of str
        Expressions of numbers or arrays.
    tests : tuple of str
        Conditions.
    steps : tuple of str
        Expressions of values to put in place of the value.
    changes : tuple of str
        Statements that change the value in place.
    augmented : tuple of str
        Augmented assignments.
    """

    makes: tuple[str, ...]
    uses: tuple[str, ...]
    tests: tuple[str, ...]
    steps: tuple[str, ...]
    changes: tuple[str, ...] = ()
    augmented: tuple[str, ...] = ()


_KIND = """\
class K$n:
    def __init__(self, held):
        self.held = held

    def get(self):
        return self.held

    def set(self, held):
        self.held = held

    @property
    def value(self):
        return self.held

    @value.setter
    def value(self, held):
        self.held = held

    def __call__(self):
        return self.held

    def __getitem__(self, key):
        if key:
            raise IndexError(key)  # so that a loop over it ends
        return self.held
"""
_SHARED = """\
class K$n:
    held = None

    @staticmethod
    def get():
        return K$n.held

    @classmethod
    def of(cls):
        return cls.held

    def own(self):
        return self.held


class D$n(K$n):
    def own(self):
        return super().own()


def hold$n(v, made):
    K$n.held = v
    return made
"""
_CLOSURE = "def hold$n(v):\n    def get():\n        return v\n\n    return get\n"
_VARIABLE = """\
def hold$n(v):
    def access(*new):
        nonlocal v
        if new:
            v = new[0]
        return v

    return access
"""
_CELL = "$h.__closure__[0].cell_contents = $v"
_SPARE = "SPARE = $v\n"
_CODE = _SPARE + "$h.__code__ = (lambda held=None: SPARE).__code__"
_SHARED_CODE = _SPARE + "K$n.get.__code__ = (lambda: SPARE).__code__"

HOLDERS = (
    Holder(3, _KIND, "K$n($v)", "$h.held", "$h.held = $v"),
    Holder(2, _KIND, "K$n($v)", "$h.get()", "$h.set($v)", True, (
        "K$n.spare, K$n.get = $v, lambda self: self.spare",
        _SPARE + "K$n.get.__code__ = (lambda self: SPARE).__code__",
        _SPARE + "$h.get = lambda: SPARE",
    )),
    Holder(2, _KIND, "K$n($v)", "$h.value", "$h.value = $v", True, (
        "K$n.spare, K$n.value = $v, property(lambda self: self.spare)",
        _SPARE + "K$n.value.fget.__code__ = (lambda self: SPARE).__code__",
    )),
    Holder(1, _KIND, "K$n($v)", "$h()",
           "$h.held = $v", True, ("K$n.spare, K$n.__call__ = $v, lambda self: self.spare",)),
    Holder(1, _KIND, "K$n($v)", "$h[0]", "$h.held = $v", True,
           ("K$n.spare, K$n.__getitem__ = $v, lambda self, key: [self.spare][key]",)),
    Holder(1, _KIND, "K$n($v)", 'getattr($h, "held")', 'setattr($h, "held", $v)'),
    Holder(1, _KIND, "K$n($v).get", "$h()", "$h.__self__.held = $v"),
    Holder(1, _KIND, "[K$n($v), K$n(None)]", "$h[0].held", "$h[0].held = $v"),
    Holder(1, _KIND, "[K$n($v), K$n($v)]", "[o.held for o in $h][1]", "$h[1] = K$n($v)"),
    Holder(1, _KIND, '{"held": K$n($v)}', '$h["held"].get()', '$h["held"].set($v)'),
    Holder(2, 'class K$n:\n    __slots__ = ("held",)\n\n    def __init__(self, held):\n        self.held = held\n',
           "K$n($v)", "$h.held", "$h.held = $v"),
    Holder(1.5, _SHARED, "hold$n($v, K$n)", "$h.held", "$h.held = $v"),
    Holder(1, _SHARED, "hold$n($v, K$n())", "$h.held", "type($h).held = $v"),
    Holder(1, _SHARED, "hold$n($v, D$n())", "$h.own()", "$h.held = $v"),
    Holder(1, _SHARED, "hold$n($v, K$n())", "$h.get()", "K$n.held = $v", True, (_SHARED_CODE,)),
    Holder(1, _SHARED, "hold$n($v, K$n)", "$h.of()", "K$n.held = $v", True,
           (_SPARE + "K$n.of = classmethod(lambda cls: SPARE)",)),
    Holder(2, "@dataclasses.dataclass\nclass K$n:\n    held: object\n    other: float = 1.0\n", "K$n($v)",
           "$h.held", "$h.held = $v"),
    Holder(1, "@dataclasses.dataclass(frozen=True)\nclass K$n:\n    held: object\n", "K$n($v)", "$h.held"),
    Holder(1, "class K$n(NamedTuple):\n    held: object\n    other: float = 1.0\n", "K$n($v)", "$h.held"),
    Holder(2, _CLOSURE, "hold$n($v)", "$h()", _CELL, False),
    Holder(1, _VARIABLE, "hold$n($v)", "$h()", "$h($v)"),
    Holder(1, "def hold$n(v):\n    return lambda: v\n", "hold$n($v)", "$h()", _CELL, False),
    Holder(2, "def hold$n(v):\n    def get(held=v):\n        return held\n\n    return get\n", "hold$n($v)", "$h()",
           "$h.__defaults__ = ($v,)", False, (_CODE,)),
    Holder(1, "def hold$n(v):\n    def get(*, held=v):\n        return held\n\n    return get\n", "hold$n($v)", "$h()",
           '$h.__kwdefaults__["held"] = $v', False, ('$h.__kwdefaults__ = {"held": $v}',)),
    Holder(1, "def same$n(held):\n    return held\n", "functools.partial(same$n, $v)", "$h()", "", False,
           (_SPARE + "same$n.__code__ = (lambda held: SPARE).__code__",)),
    Holder(1, "def same$n(a, held):\n    return held\n", "functools.partial(same$n, held=$v)", "$h(1)",
           '$h.keywords["held"] = $v', False),
    Holder(1, "def hold$n(v):\n    def get():\n        return get.held\n\n    get.held = v\n    return get\n",
           "hold$n($v)",
           "$h()", "$h.held = $v"),
    Holder(1, "def hold$n(v):\n    def get():\n        pass\n\n    get.held = v\n    return get\n", "hold$n($v)",
           "$h.held", "$h.held = $v"),
    Holder(2, "", "types.SimpleNamespace(held=$v)", "$h.held", "$h.held = $v"),
    Holder(1, 'def hold$n(v):\n    made = types.ModuleType("held$n")\n    made.held = v\n    return made\n',
           "hold$n($v)",
           "$h.held", "$h.held = $v"),
    Holder(3, "", "[$v, 1.5]", "$h[0]", "$h[0] = $v"),
    Holder(1, "", "[1.5, $v]", "$h[-1]", "$h[-1] = $v"),
    Holder(1, "", "[$v, $v]", "next(iter($h))", "$h[:] = [$v, 1.5]"),
    Holder(1, "", "($v, 1.5)", "$h[0]"),
    Holder(3, "", '{"held": $v, "other": 1.5}', '$h["held"]', '$h["held"] = $v'),
    Holder(1, "", '{"held": $v}', '$h.get("held")', '$h.update(held=$v)'),
    Holder(1, "", "{7: $v}", "next(iter($h.values()))", "$h[7] = $v"),
)  # fmt: skip

_NUMBERS = ("x * $v", "x.sum() + $v", "(x > $v).sum()", "np.where(x > $v, x, 0.0)", "$v * k", "x[:1] - $v", "$v")
POINT = """\
class Point:
    def __init__(self, a, items):
        self.a, self.b, self.items = a, 1.5, items

    def step(self, by):
        self.a += by
        return self

    @property
    def total(self):
        return self.a + self.b


@dataclasses.dataclass
class Pair:
    a: float
    items: object
    b: float = 1.5

    def step(self, by):
        self.a, self.b = self.b, self.a + by

    @property
    def total(self):
        return self.a * self.b
"""
_ARRAY_CHANGES = (
    "$v[0] += 0.5", "$v[0] = k", "$v[...] = 0.25", "p = $v\np *= 0.5", "$v[-1] *= 0.5", "$v[k % len($v)] = 1.5",
    "np.multiply($v, 0.5, out=$v)", "$v[0] = x[0]", "$v[0] = x.sum()", "$v.sort()", "$v.fill(k)", "np.copyto($v, x[0])",
    "$v[$v > 1] = 1", "p = $v[:1]\np += 1.0", "for q in range(len($v)):\n    $v[q] = $v[q] * 0.5",
)  # fmt: skip
VALUES = {
    "float": Value(("2.0", "0.5", "-1.25", "3.0"), _NUMBERS, ("$v > 1", "$v < k", "x[0] > $v"),
                   ("$v * 0.5 + 0.25", "$v + k", "1.5", "x.sum()", "float(k)", "-$v", "x[0] * 0.5"),
                   (), ("+= 0.5", "*= 0.5", "-= x[0]", "+= k")),
    "int": Value(("2", "0", "1", "3"), (*_NUMBERS, "x[$v % len(x)]", "sum(x[q] for q in range($v % 4))", "x[:$v]"),
                 ("$v > 1", "$v == k", "$v % 2 == 0"), ("($v + 1) % 5", "k", "2", "$v // 2", "len(x)"),
                 (), ("+= 1", "%= 3", "*= -1")),
    "bool": Value(("True", "False"), ("x * $v", "x.sum() if $v else -x.sum()", "np.where($v, x, 0.0)", "$v + 1"),
                  ("$v", "not $v", "$v and k > 1"), ("not $v", "k > 1", "True", "x[0] > 0")),
    "str": Value(('"a"', '"b"', '"key"'), ("TABLE[$v] * x", "TABLE.get($v, 0.25)", 'x * (1 if $v == "a" else 2)',
                 "len($v) * x"), ('$v == "a"', "$v in TABLE", "len($v) > 1"), ('"b"', '"a" if k > 1 else "key"',
                 "$v[:1]"),
                 ("TABLE[$v] = k", "TABLE[$v] += 0.5", "TABLE[$v] = x.sum()"), ('+= "a"',)),
    "vector": Value(("np.array([1.0, 2.0, -0.5])", "np.arange(3.0)", 'np.ones(3, "f4")', "np.array([2, 1, 3])",
                     "np.full(3, 0.75)"),
                    ("x[:2] * $v[:2]", "$v.sum() * x", "$v[k % len($v)]", "np.dot($v, $v)", "$v.max()", "$v * 0.5",
                     "sum(e for e in $v)", "len($v)", "[e * 2 for e in $v][0]", "$v[1:].mean()", "x + $v"),
                    ("$v[0] > 1", "len($v) > 2", "$v.sum() > k", "$v.any()"),
                    ("$v * 0.5", "np.tanh($v)", "$v.copy()", "$v + k", "x", "x * 1.0", "np.zeros(3)",
                    "np.append($v, 1.0)",
                     "$v + 0.25 * x.sum()", "$v.astype(np.float64)", "np.sort($v)"), _ARRAY_CHANGES,
                    ("*= 0.5", "+= 1", "-= x[0]")),
    "matrix": Value(("np.array([[1.0, 2.0], [0.5, -1.0]])", "np.eye(2)", 'np.ones((2, 3), "f4")',
           "np.arange(4).reshape(2, 2)"),
                    ("$v.sum() * x", "x[:1] * $v[0, 1]", "$v[k % 2].sum()", "$v @ $v.T", "($v * 2).max()",
                    "$v.shape[0]",
                     "sum(row[0] for row in $v)", "$v[:, 0] + 1", "$v.T"),
                    ("$v[0, 0] > 0.5", "$v.shape[1] > 2", "($v > k).any()"),
                    ("$v * 0.5", "$v.T.copy()", "np.zeros((2, 2))", "$v + x[0]", "$v.copy()", "$v - k"),
                    (*_ARRAY_CHANGES, "$v[0, 1] += 1", "$v[:, 0] = x[0]", "r = $v[0]\nr[0] += 1",
                    "$v[[0, 1]] = $v[[1, 0]]"),
                    ("*= 0.5", "+= 1")),
    "list": Value(("[1.0, 2.0, 0.5]", "[0.5]", "[3.0, -1.0]", "[1, 2.5, 0.25, 4.0]"),
                  ("x * $v[0]", "sum($v) * x", "len($v)", "x + sum(e * 0.5 for e in $v)", "$v[k % len($v)]",
                   "np.array($v)", "np.sum($v)", "max($v) + x", "[e * x[0] for e in $v][-1]", "$v[-1] * x"),
                  ("$v[0] > 1", "len($v) > 2", "$v", "1.5 in $v"),
                  ("[1.0, k]", "[x[0], 2.0]", "$v + [0.5]", "list($v)", "$v[:2]", "[e * 0.5 for e in $v]"),
                  ("$v.append(k * 0.5)", "$v[0] += 0.5", "$v[-1] *= 0.5", "$v.pop()", "$v.extend([0.5, 1.5])",
                  "del $v[0]",
                   "$v.insert(0, 1.5)", "$v[0] = x[0]", "$v.append(x.sum())", "$v.reverse()",
                   "$v[0], $v[-1] = $v[-1], $v[0]",
                   "$v[:] = [1.0, 2.0]", "p = $v\np += [0.5]", "$v.append($v[0])",
                          "for q in range(len($v)):\n    $v[q] *= 0.5",
                   "$v.sort()", "if len($v) < 6:\n    $v.append(1.0)"), ("+= [0.5]",)),
    "rows": Value(("[[1.0, 2.0], [0.5, 4.0]]", "[[1.5, 0.0], [2.0, 1.0], [3.0, 3.0]]", "[[1.0, 2.0]] * 2",
                   "[np.ones(2), np.arange(2.0)]"),
                  ("x * $v[0][1]", "sum(row[0] for row in $v)", "len($v) * x", "np.array($v).sum()", "x * $v[-1][0]",
                   "[sum(row) for row in $v][0]", "np.array($v)", "$v[k % len($v)][0]"),
                  ("$v[0][0] > 1", "len($v) > 2", "$v[0] is $v[1]"),
                  ("[[1.0, k], [0.5, 2.0]]", "[list(row) for row in $v]", "$v[:2]", "[$v[1], $v[0]]", "[$v[0], $v[0]]"),
                  ("$v[0][1] += 0.5", "r = $v[0]\nr[0] += 1", "$v.append([1.0, k])", "$v[0] = $v[1]",
                   "$v[0], $v[1] = $v[1], $v[0]", "for row in $v:\n    row[0] *= 0.5", "$v[1] = [x[0], 2.0]",
                   "$v.append($v[0])", "$v[0] = list($v[1])", "r, s = $v[0], $v[1]\nr[0], s[0] = s[0], r[0]",
                   "$v[0][0] = x[0]", "$v[-1][1] = k", "del $v[-1]", "r = $v[0]\n$v[0] = [9.0, 9.0]\nr[0] = k")),
    "dict": Value(('{"a": 1.0, "b": 2.5}', '{"a": 0.5, "b": np.ones(2)}', '{"b": 4.0, "a": 3}', '{"a": 2.0}'),
                  ('x * $v["a"]', 'x + $v.get("c", 1.0)', "len($v)", "sum($v.values()) * x",
                  "sum(e * x for e in $v.values())",
                   '$v["b"]', "sum(e for q, e in $v.items())", "x * len(list($v))"),
                  ('"c" in $v', '$v["a"] > 1', "len($v) > 2"),
                  ('{"a": k, "b": 1.0}', "dict($v)", '{**$v, "c": 1.5}', '{"a": x[0], "b": 2.0}'),
                  ('$v["a"] += 0.5', '$v["c"] = k * 0.5', '$v["b"] = x.sum()', 'del $v["b"]', '$v.pop("b", None)',
                   "$v.update(a=1.5)", '$v.setdefault("d", 2.0)', "for q in $v:\n    $v[q] = $v[q] * 0.5",
                   "$v[k] = 0.25",
                   '$v["a"], $v["b"] = $v["b"], $v["a"]', '$v["c"] = $v["a"]', '$v["b"] = x', '$v["a"] *= 0.5',
                   "$v.clear()")),
    "object": Value(("Point(2.0, [1.0])", "Point(0.5, np.ones(2))", "Pair(1.0, [0.5, 2.0])",
           "Pair(0.25, np.arange(2.0))"),
                    ("x * $v.a", "$v.total + x", "$v.a - $v.b", "x * $v.items[0]", "sum($v.items)", "len($v.items)",
                     "$v.b * k"),
                    ("$v.a > 1", "$v.total > k", 'hasattr($v, "c")'),
                    ("Pair(k, [1.0])", "Point(x[0], [0.5])", "$v", "copy.copy($v)"),
                    ("$v.a += 0.5", "$v.a, $v.b = $v.b, $v.a", "$v.b = $v.a * 0.5", "$v.step(0.5)",
                    "$v.items[0] += 0.5",
                     "$v.c = k", 'setattr($v, "b", 0.5)', "$v.a = x.sum()", "$v.items = [1.0, k]", "$v.items = x",
                     "p = $v.items\np[0] = k", "$v.items.append(0.5)", "$v.b -= x[0]", "$v.items = $v.items",
                     "del $v.c")),
}  # fmt: skip
HEAD = """\
import copy
import dataclasses
import functools
import types
from typing import NamedTuple

import numpy as np

TABLE = {"a": 1.0, "b": 0.5, "key": 2.0}
BAG = []
NOTES = {"calls": 0}
BOX = types.SimpleNamespace(kept=None, level=1.0)
COUNT = 0
SPARE = None
"""
#: Parameters of the function beside x and k, and the arguments of two sorts of calls.
PARAMETERS = (
    (6, (), ("", "")),
    (2, ("h",), ("TOP", "OTHER")),
    (2, ("h", "g"), ("TOP, OTHER", "TOP, TOP")),
    (2, ("h=TOP",), ("", "OTHER")),
    (1, ("*", "h=TOP"), ("", "")),
    (2, ("v",), ("$V", "$W")),
    (2, ("v", "w"), ("$V, $W", "$V, $V")),
)
#: Heads of blocks around statements, $t being a condition on the value.
BLOCKS = (
    "for q in range(2):", "for q in range(k):", "for e in x:", "if k > 1:", "if x[0] > 0:", "if x.sum() > k:", "if $t:",
    "if k == 1 or $t:", "while (c := c + 1) < 3:",
)  # fmt: skip
RESULTS = (
    (5, "r"), (2, "r, $v"), (1, "[r, $p]"), (1, '{"r": r, "p": $p}'), (1, "$v"), (1, "$p"), (1, "$v, $v"),
    (1, "[$p, $p]"),
    (1, "(r, x)"), (1, "[$v, x]"), (1, "None"), (1, "Pair(r, [$v])"), (1, "r, BAG"), (1, "[$v][0], len(BAG)"),
)  # fmt: skip
KEEPS = (
    "BAG.append($p)", 'NOTES["last"] = $p', "NOTES[k] = $p", "BOX.kept = $p", "BAG[:] = [$p]", "TABLE['a'] = $u",
    "BAG.append($u)", "BOX.level = $u", "BOX.kept = [$p]",
)  # fmt: skip
COUNTS = (
    'NOTES["calls"] += 1',
    "COUNT += 1",
    "BOX.level *= 0.5",
    "BOX.level += x[0]",
    "COUNT = COUNT + k",
    "del NOTES['calls']",
)
