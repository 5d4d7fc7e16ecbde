"""Kinds of values that local variables hold, and the statements and expressions that use them.

Placeholders: ``$e`` a float, ``$i`` an integer, ``$b`` a condition, ``$v`` a variable of the kind, ``$o`` another one,
``$n`` a number for new names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Kind(NamedTuple):
    """Values of a kind.

    Attributes
    ----------
    names : str
        Letters of variables.
    makes : sequence of str
        Expressions of a value.
    changes : sequence of str
        Statements that bind or change a variable.
    floats, ints, tests : sequence of str
        Expressions of numbers and conditions.
    heads : sequence of str
        Heads of loops over one.
    """

    names: str
    makes: Sequence[str]
    changes: Sequence[str]
    floats: Sequence[str] = ()
    ints: Sequence[str] = ()
    tests: Sequence[str] = ()
    heads: Sequence[str] = ()


BOUND = ("$v = $m",) * 3 + ("$v = $m if $b else $v", "$v, $o = $o, $v", "$v = $o")

KINDS = {
    "none": Kind(
        "pq", ("None", "None", "$e", "$i"),
        (*BOUND, "if $v is None or $e < $v:\n    $v = $e", "if $v is None:\n    $v = $e", "$v = $v or $e",
         "if $v is not None:\n    $v = $v + $e"),
        ("(0.5 if $v is None else $v)", "(s if $v is None else $v * 2)", "($v or 0.25)"),
        ("(1 if $v is None else 2)",),
        ("$v is None", "$v is not None", "$v is not None and $v > $e", "$v is $o", "not $v", "$v == $i"),
    ),
    "text": Kind(
        "fg", ('"a"', '"b"', '"up"', '"down"', '""'),
        (*BOUND, '$v = $v + "a"', '$v = "up" if $v == "down" else "down"', '$v += "b"', "$v = $v[:1]",
         "$v = $v.upper()", '$v = f"{$v}{c}"', '$v = str(c)'),
        ('{"a": 0.5, "b": $e}.get($v, 1.5)', '($e if $v == "a" else 0.5)', 'getattr(np, "sin" if $v else "cos")($e)'),
        ("len($v)", '"ab".find($v)', '$v.count("a")'),
        ('$v == "a"', '$v != $o', '$v in ("up", "b")', '$v.startswith("a")', "$v", "not $v", '$v < "b"'),
        ("for ch$n in $v:",),
    ),
    "tuple": Kind(
        "jl", ("($e, $i)", "($i, $e)", "(s, c)", "()", "($e,)", "($i, ($e, $e))", "(None, $e)", '("a", $e)'),
        (*BOUND, "$v = $v[::-1]", "$v = $v + ($e,)", "$v += ($i,)", "$v = ($v[0], $e)", "s, c = $v", "*_, s = $v",
         "$v = ($e, *$v)", "$v = $v[1:]", "$v = tuple(x[:2])", "$v = divmod($e, 2.0)"),
        ("$v[0]", "$v[-1]", "sum($v)", "max($v)", "min($e, *$v)"),
        ("len($v)", "$v.count($e)"),
        ("$v", "not $v", "$v == $o", "len($v) > 1", "$e in $v", "$v > $o", "any($v)", "all($v)"),
        ("for w$n in $v:",),
    ),
    "list": Kind(
        "uz", ("[$e, $i]", "[]", "[$e]", "[s, c]", "[$e] * 3", "list(x)", "[w * 2 for w in x]", "x.tolist()",
               "[w for w in x if w > $e]", "[$i for _ in range(k)]", "sorted(x)", "[[$e], [$i]]", "list($v)", "$v[:]"),
        (*BOUND, *("$v.append($e)",) * 4, "$v.pop()", "$v[0] = $e", "$v[-1] += $e", "$v = $v + [$e]", "$v += [$i]",
         "$v.insert(0, $e)", "$v.extend($o[:2])", "$v.clear()", "del $v[-1]", "$v.sort()", "$v.reverse()",
         "$v = $v[::-1]", "$v[1:] = [$e]", "$v.remove($v[0])", "s = $v.pop(0)", "$v = sorted($v)", "$v.append($v[-1])",
         "$v = [w + $e for w in $v]", "$v[$i % len($v)] = $e", "if $v:\n    s = $v.pop()", "$o = $v",
         "if len($v) > 3:\n    del $v[0]", "$v.append(x)", "$v.append((s, c))", "$v = list(reversed($v))"),
        ("$v[0]", "$v[-1]", "sum($v)", "max($v)", "min($v, default=0.5)", "np.sum($v)", "np.mean($v)",
         "sum(w * 2 for w in $v)", "sum(w for w in $v if w > $e)", "max($v, key=abs)", "np.array($v).sum()",
         "$v[$i % len($v)]", "sorted($v)[0]", "sum(a * b for a, b in zip($v, x))"),
        ("len($v)", "$v.count($e)", "$v.index($v[-1])", "sum(1 for w in $v if w > $e)"),
        ("$v", "not $v", "len($v) < 4", "$v == $o", "$e in $v", "any(w > $e for w in $v)", "all(w > -9 for w in $v)",
         "$v is $o"),
        ("for w$n in $v:\n    if len($v) > 9:\n        break", "for r$n, w$n in enumerate($v[:]):", "for w$n in $v[:]:",
         "for w$n in reversed($v):", "for w$n, y$n in zip($v, x):", "while $v and $b:\n    $v.pop()"),
    ),
    "dict": Kind(
        "dh", ("{}", '{"a": $e}', '{"a": $e, "b": $i}', "dict(a=$e)", "dict($v)", '{**$v, "c": $e}', "{$i: $e}",
               "{w: w * 2 for w in (1, 2)}", '{"a": [], "b": $e}', "dict(zip((0, 1), x))"),
        (*BOUND, *('$v["a"] = $e',) * 3, '$v["b"] += $e', '$v["a"] = $v.get("a", 0.0) + $e', '$v.setdefault("b", $e)',
         '$v.pop("a", None)', "$v.update(b=$e)", "$v.clear()", '$v = {**$v, "b": $e}', "$v[$i % 3] = $e", "$o = $v",
         'if "a" in $v:\n    del $v["a"]', '$v.setdefault("l", []).append($e)', '$v |= {"b": $i}',
         "$v[c] = $v.get(c, 0) + 1", "for key$n in list($v):\n    $v[key$n] = $e"),
        ('$v.get("a", 0.5)', '$v["a"]', "sum($v.values())", '$v.get($i % 3, 1.0)', "max($v.values(), default=0.5)"),
        ("len($v)", "list($v).count(1)"),
        ('"a" in $v', "$v", "not $v", "$v == $o", "$i % 3 in $v", 'len($v) == 1'),
        ("for key$n in $v:", "for key$n, w$n in $v.items():", "for w$n in $v.values():",
         "for w$n in list($v.values()):"),
    ),
    "function": Kind(
        "mr", ("np.sin", "np.cos", "abs", "lambda w: w + 0.5", "lambda w: w * $e", "lambda w: s + w", "float", "step",
               "lambda w, by=$e: w - by"),
        (*BOUND, "s = $v(s)", "s += $v($e)", "x[0] = $v(x[1])", "$v = lambda w, of=$v: of(w) + 0.5",
         "def made$n(w):\n    return w + s\n$v = made$n"),
        ("$v($e)", "$v(s)", "$v(np.abs(x).max())", "sum(map($v, x))", "max(x, key=$v)"),
        (),
        ("$v is $o", "$v($e) > $e", "callable($v)"),
    ),
    "flag": Kind(
        "ab", ("True", "False", "$b", "$b", "not $b", "bool(x[0])", "x[0] > $e"),
        (*BOUND, "$v = not $v", "$v = $v and $b", "$v |= $b", "$v ^= True", "$v = $v or $b", "$v = $v == $o"),
        ("float($v)", "(s if $v else $e)", "$v * $e", "$v + 0.5"),
        ("int($v)", "$v + $v", "[1, 2][$v]", "sum(($v, $o))"),
        ("$v", "not $v", "$v and $b", "$v or $b", "$v is True", "$v == $o", "$v != $b"),
    ),
    "array": Kind(
        "vy", ("x", "x.copy()", "x * 0.5", "x[::-1]", "np.zeros(len(x))", "np.arange(len(x)) * 0.5", "np.sort(x)",
               "x[1:]", "x + $e", "np.where(x > $e, x, 0.5)", "np.array([s, c])", "x[x > $e]", "np.full(3, $e)"),
        (*BOUND, "$v[0] = $e", "$v *= 0.5", "$v = $v + $o", "$v[1:] = $v[:-1]", "$v[$v > $e] = 0.25", "$v += $e",
         "$v = $v * 0.5", "$v[-1] += $e", "$v = np.append($v, $e)", "np.negative($v, out=$v)", "$v[:] = $o",
         "$v.sort()", "$v, s = $v[::-1], $v[0]", "s, *_ = $v"),
        ("$v[0]", "$v.sum()", "$v[-1]", "np.abs($v).max()", "($v * x).sum()", "$v.mean()"),
        ("len($v)", "np.argmax($v)", "int(($v > 0).sum())", "np.count_nonzero($v > $e)"),
        ("$v[0] > $e", "np.any($v > $e)", "($v > $e).all()", "$v is $o", "$v is x", "$v.size > 2", "$e in $v"),
        ("for w$n in $v:", "for r$n, w$n in enumerate($v):", "for r$n in np.nonzero($v > $e)[0]:",
         "for w$n, y$n in zip($v, x):"),
    ),
}  # fmt: skip

#: Arguments of each kind.
GIVEN = {
    "none": ("None", "0.5", "2", "np.float64(1.5)"), "text": ('"a"', '"b"', '"up"', '""'),
    "tuple": ("(0.5, 1)", "(1, 0.5)", "()", "(None, 2.0)", '("a", 1)', "(x[0], 2)"),
    "list": ("[0.5, 1]", "[]", "[1.5, 2.5, -0.5]", "[1, 2, 3]", "[x[0], 0.5]", "x.tolist()", "[[0.5], [1]]"),
    "dict": ("{}", '{"a": 0.5}', '{"a": 1, "b": 2.5}', '{"b": x[0]}', "{0: 0.5, 1: 1.5}", '{"a": x}'),
    "function": ("np.sin", "abs", "step", "np.cos"), "flag": ("True", "False", "np.bool(True)", "x[0] > 0"),
    "array": ("x", "x * 0.5", "x[::-1]", "x[1:]", "x.astype(int)",
              "x.astype('f4')", "np.array(0.5)", "x[:, None][:, 0]"),
}  # fmt: skip

#: Loops whose condition or exit may be met at any time; the last line binds or ends.
SEARCHES = (
    "r$n = 0\nwhile x[r$n] < $e:\n    r$n += 1\n    if r$n >= len(x):\n        $j",
    "r$n = len(x)\nwhile r$n > -3:\n    r$n -= 1\n    if r$n < 0:\n        $j\n    if x[r$n] > $e:\n        $j",
    "for r$n in range(len(x)):\n    if x[r$n] > $e:\n        $j\nelse:\n    $t",
    "for r$n, w$n in enumerate(x):\n    if w$n == $e:\n        $j\n    $t",
    "for w$n in x:\n    if w$n < $e:\n        continue\n    $t",
    "r$n = 0\nwhile r$n < 9 and not $b:\n    r$n += 1\n    $t\nelse:\n    $t",
    "r$n = 0\nwhile s < 3 and r$n < 20:\n    s += 0.75\n    r$n += 1\n    if $b:\n        $j\n    $t",
    "r$n = 0\nwhile r$n < len(x) and x[r$n] != $e:\n    r$n += 1\n    $t",
    "for r$n in range(30):\n    s = s * 0.5 + 0.25\n    if s < $e:\n        $j\n    $t",
    "for r$n in range(k):\n    $t\n    if $b:\n        break\nelse:\n    $t",
    "lo$n, hi$n = 0, len(x)\nwhile lo$n < hi$n:\n    mid$n = (lo$n + hi$n) // 2\n    if x[mid$n] < $e:\n        "
    "lo$n = mid$n + 1\n    else:\n        hi$n = mid$n\n    if $b:\n        $j\nc = lo$n",
)
OTHERS = (
    "if $b:\n    $t", "if $b:\n    $t", "if $b:\n    $t\nelse:\n    $t",
    "if $b:\n    $t\nelif $b:\n    $t\nelse:\n    $t", "if $b:\n    $j",
    "for r$n in range(len(x)):\n    $t", "for r$n in range(3):\n    $t\n    $t",
    "for r$n in range(int(abs(t)) + 1):\n    $t", "for w$n in x:\n    $t\n    if $b:\n        $t",
    "try:\n    $t\nexcept (IndexError, KeyError, ZeroDivisionError, ValueError, TypeError):\n    $t",
    "try:\n    $t\nfinally:\n    $t", "s = $e", "c = $i", "s += $e", "x[$i % len(x)] = $e", "x *= 0.5",
    "print(s > 1, c)", "if $b:\n    raise ValueError('told')", "assert $b or c < 50, 'told'", "bump($e)",
    "s = step($e)",
    "match c % 3:\n    case 0:\n        $t\n    case 1 if $b:\n        $t\n    case _:\n        $t",
    "if (y$n := $e) > 0.5:\n    s = y$n", "for r$n in range(2):\n    for q$n in range(len(x)):\n        $t\n    $t",
    "s = 1 / c", "c = int(s)", "c += 1", "s, c = $e, $i", "with np.errstate(all='ignore'):\n    $t", "del s\ns = $e",
)  # fmt: skip
#: Statements of modules that have a helper, whose result may be of any kind.
CALLS_OF_HELPERS = (
    "found = helper(x, $e, $i)", "found = helper(x[::-1], s, c)", "if helper(x, $e, $i):\n    $t",
    "if (found := helper(x, $e, $i)) is not None:\n    c += 1", "found = [helper(x, w, c) for w in (0.5, s)]",
    "for r$n in range(len(x)):\n    found = helper(x, x[r$n], r$n)\n    if found is not None:\n        $j",
    "found = helper(x.copy(), $e, $i), s",
)  # fmt: skip
FLOATS = ("s", "s", "t", "0.5", "-0.25", "1.5", "x[0]", "x[-1]", "x.sum()", "x[c % len(x)]", "float(k)", "abs(s)",
          "min(s, 1.0)", "np.sin(s)", "(s + 0.5)", "s * 0.5", "np.float64(0.75)", "x.max()", "round(s, 1)")  # fmt: skip
INTS = ("c", "c", "k", "1", "2", "len(x)", "(c + 1)", "c % 3", "int(s)", "np.argmax(x)", "max(c, k)", "c // 2", "-1")
TESTS = ("s > 0", "x[0] > t", "c < 3", "k > 1", "x.sum() > s", "c % 2", "0 < s < 2", "np.any(x > s)", "not s", "c == k",
         "s <= t and c < 5", "s > 1 or x[-1] < 0", "bool(c)", "x[c % len(x)] > 0")  # fmt: skip
RETURNS = ("None", "s", "c", "-1", "(s, c)", "x", '"early"', "()", "[s]", "(c, None)", "x.copy()", "True")
