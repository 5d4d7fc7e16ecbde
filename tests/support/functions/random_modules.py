"""Random modules of Python functions: loops, branches, jumps, written arguments, helpers and state outside."""

from __future__ import annotations

import random
from collections.abc import Callable

from support.functions.module_writer import Array, Int, Module


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
        w.line(
            f"{name} = {w.float_()}",
            f"{name} = 0.5 * {name} + {w.float_()} / 4",
            f"{name} += {w.float_()} * 0.125",
            f"{name} *= 0.5",
            f"{name} -= {w.float_value()} / 8",
            f"{name} /= 2",
        )
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
    forms = [
        f"{name}[{cut}] = {scalar}",
        f"{name}[{name} > {w.float_value()}] = {w.small()}",
        f"{name}[:] = {w.array_value(kind)}",
        f"{name}[...] = {scalar}",
        f"{name}[{cut}] = {name}[{cut}]",
        f"{name}[1:] = {name}[:-1]",
        f"{name}[:-1] = {name}[1:]",
        f"np.minimum({name}, 3, out={name})",
        f"np.multiply({name}, {factor}, out={name}, casting='unsafe')",
        f"np.copyto({name}, {w.array_value(kind)}, casting='unsafe')",
        f"{name}.sort(axis=0)",
        f"{name}[::-1].sort(axis=0)",
        f"{name}.fill({w.small()})",
        f"np.putmask({name}, {name} > {w.float_value()}, {w.small()})",
        f"{name}.flat[{w.index(first)}] = {w.small()}",
        f"{name}.T[...] = {w.small()}",
        f"{name}.reshape(-1)[{w.index(first)}] += 1",
        f"np.add.at({name}, [{w.index(first)}, {w.index(first)}], {w.small()})",
    ]
    if kind.dtype[0] == "f":
        forms += [
            f"{name} *= 0.5",
            f"{name}[{cut}] *= 0.5",
            f"{name}[{cut}] -= {scalar}",
            f"{name} += 0.25 * {w.array_value(kind)}",
            f"{name}[{cut}] += 0.25 * ({w.array_value(kind)})[{cut}]",
            f"np.add({name}, {w.array_value(kind)}, out={name})",
            f"{name}[1:-1] = 0.5 * ({name}[2:] + {name}[:-2])",
            f"np.tanh({name}, out={name})",
        ]
    else:
        forms += [f"{name} += 1", f"{name} %= 5", f"{name}[{cut}] //= 2"]
    if len(kind.shape) == 2:
        i, j, c = w.index(first), w.index(first), w.slice(kind.shape[1])
        k, rest = w.index(kind.shape[1]), w.slice(first)
        forms += [
            f"{name}[{i}] = {w.vector(kind.shape[1])}",
            f"{name}[:, {k}] = {w.vector(first)}",
            f"{name}[{i}, {c}] = {name}[{j}, {c}]",
            f"{name}[{rest}, {k}] = {scalar}",
            f"{name}[[{i}, {j}]] = {name}[[{j}, {i}]]",
            f"{name}[{i}, {c}] //= 2",
        ] * 2
        if kind.dtype[0] == "f":
            forms += [
                f"{name}[{i}, {c}] -= 0.5 * {name}[{j}, {c}]",
                f"{name}[{i}] += {w.float_value()} * {name}[{j}] / 4",
                f"{name}[{i}, {c}] /= 2",
            ] * 2
    w.line(*forms)


def _assign_array(w: Module) -> None:
    """Bind a name to an array."""
    names = [n for n in w.scope.arrays if w.scope.arrays[n].dtype == "f8"]
    if not names:
        return
    name = w.choice(names)
    kind = w.scope.arrays[name]
    others = [n for n in names if w.scope.arrays[n] == kind and n != name]
    forms = [
        f"{name} = 0.5 * {w.array_value(kind)}",
        f"{name} = {name} * 0.5 + 0.25 * {w.array_value(kind)}",
        f"{name} = {name}.copy()",
        f"{name} = np.tanh({w.array_value(kind)}) + 0.0",
        f"{name} = np.where({w.condition()}, {name}, 0.0)",
    ]
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
    w.new_array(w.fresh("b"))


def _view(w: Module) -> None:
    """Bind a name to a part of an array."""
    name = w.array(None)
    if not name or w.scope.arrays[name].dtype == "b1" or w.in_helper:
        return
    kind = w.scope.arrays[name]
    made = w.fresh("v")
    first, *rest = kind.shape
    forms = [(f"{name}[::-1]", kind.shape), (f"{name}[::2]", ((first + 1) // 2, *rest)), (f"{name}[...]", kind.shape)]
    if rest:
        forms += [
            (f"{name}[{w.index(first)}]", tuple(rest)), (f"{name}[:, {w.index(rest[0])}]", (first,)),
            (f"{name}.T", kind.shape[::-1]), (f"{name}.T", kind.shape[::-1]),
        ]  # fmt: skip
    else:
        forms += [(f"{name}[:, None]", (first, 1)), (f"{name}.reshape(1, {first})", (1, first))]
    text, shape = w.choice(forms)
    w.line(f"{made} = {text}")
    w.scope.arrays[made] = Array(kind.dtype, shape)


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
    form = w.choice(
        (
            "COUNT += 1",
            "LEVEL = {f} * 0.5",
            "LOG",
            "KNOWN['calls'] += 1",
            "KNOWN['scale'] = {f} * 0.125",
            "BOX.total += {f} / 4",
            "BOX.steps += 1",
            "TABLE[{i}] = {f}",
            "TABLE[{i}] += 0.5",
            "BOX.weights[{i}] = {f} * 0.5",
            "BOX.weights *= 0.5",
            "BOX.weights = BOX.weights * 0.5",
            "COUNT = {k} % 100",
            "TABLE *= 0.5",
        )
    )
    if form == "LOG":
        if w.loops and w.chance(0.7):
            return
        form = "LOG.append({f})"
    if form.split()[0] in ("COUNT", "LEVEL", "TABLE"):
        w.globals.add(form.split()[0])
    w.line(form.format(f=w.float_value(), i=w.index(w.n), k=w.int_value()))


def _if(w: Module) -> None:
    with w.block(f"if {w.condition()}:"):
        w.statements(w.rng.choice((1, 1, 2)))
        _jump(w, 0.15)
    for _ in range(w.rng.choice((0, 0, 0, 1))):
        with w.block(f"elif {w.condition()}:"):
            w.statements(1)
            _jump(w, 0.1)
    if w.chance(0.4):
        with w.block("else:"):
            w.statements(w.rng.choice((1, 2)))
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
    counts = [
        (f"range({n})" if w.in_helper else w.choice(("range(n)", "range(len(x))", "range(a.shape[0])")), 0, n - 1),
        ("range(v.shape[0])" if w.in_helper else "range(m)", 0, (n if w.in_helper else m) - 1),
        (f"range(1, {n})", 1, n - 1),
        (f"range({n} - 1, -1, -1)", 0, n - 1),
        (f"range(0, {n}, 2)", 0, n - 1),
        ("range(3)", 0, 2),
        ("range(30)", 0, 29),
        ("range(k)", 0, 3),
        ("range(k, 20)", 0, 19),
        (f"range(1, {n} - 1)", 1, n - 2),
        ("range(20, k, -1)", 0, 20),
    ]
    for name, kind in w.scope.ints.items():
        if kind.low >= 0 and kind.high <= 60 and name not in ("n", "m"):
            counts += [
                (f"range({name})", 0, max(kind.high - 1, 0)),
                (f"range({name}, {n})", 0, n - 1),
                (f"range({name} + 1)", 0, kind.high),
                (f"range({name} + 1, {n})", min(1, n - 1), n - 1),
                (f"range({name}, -1, -1)", 0, kind.high),
            ]
    array = w.array(None)
    if array:
        counts += [
            (f"range(int(abs({w.float_value()})) % 6)", 0, 5),
            (f"range(({array} > 0).sum() % 20)", 0, 19),
            (f"range(np.argmax({array}) % 7, 20)", 0, 19),
        ]
    head, low, high = w.choice([c for c in counts if c[2] - c[1] < most] or [("range(2)", 0, 1)])
    with w.block(f"for {i} in {head}:", max(high - low + 1, 1)):
        w.scope.ints[i] = Int(low, max(high, low))
        w.scope.fixed.add(i)
        w.statements(w.rng.choice((1, 2, 2, 3)))
        _jump(w, 0.02)
    if w.chance(0.06):
        with w.block("else:"):
            w.statements(1)
    if w.chance(0.05):
        w.line(f"c = {i}")
        w.scope.ints["c"] = Int(0, 40)


NO_ROWS = ("array", "array", "enumerate", "zip", "reversed", "part", "list")
ROWS = ("rows", "numbered rows", "rows backwards", "rows of a part", "rows beside")


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
    form = w.choice((*NO_ROWS, *ROWS) if matrix else NO_ROWS)
    if form in ROWS:
        size = w.scope.arrays[matrix].shape[0]
        if size * w.work > 400:
            return
    head = {
        "array": f"for {e} in {x}:",
        "enumerate": f"for {i}, {e} in enumerate({x}):",
        "zip": f"for {e}, {g} in zip({x}, {y}):",
        "reversed": f"for {i} in reversed(range({size})):",
        "rows": f"for {e} in {matrix}:",
        "numbered rows": f"for {i}, {e} in enumerate({matrix}):",
        "rows backwards": f"for {e} in reversed({matrix}):",
        "rows of a part": f"for {e} in {matrix}[{w.slice(size)}]:",
        "rows beside": f"for {e}, {g} in zip({matrix}, {x}):",
        "part": f"for {e} in {x}[{w.slice(size)}]:",
        "list": f"for {e} in (0.5, 1.5, -0.5):",
    }[form]
    with w.block(head, size):
        if form in ROWS:
            w.scope.arrays[e] = Array(w.scope.arrays[matrix].dtype, w.scope.arrays[matrix].shape[1:])
        elif form != "reversed":
            w.scope.floats.add(e)
        if form in ("zip", "rows beside"):
            w.scope.floats.add(g)
        if form in ("enumerate", "reversed", "numbered rows"):
            w.scope.ints[i] = Int(0, size - 1)
            w.scope.fixed.add(i)
        w.statements(w.rng.choice((1, 2, 2)))
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
    form = w.choice(
        (
            f"while {w.condition()} and {q} < {limit}:",
            f"while {q} < {limit} and {w.condition()}:",
            "while True:",
            f"while {q} < {limit}:",
        )
    )
    with w.block(form, limit):
        w.line(f"{q} += 1")
        w.scope.ints[q] = Int(1, limit)
        if form == "while True:":
            with w.block(f"if {q} >= {limit} or {w.condition()}:"):
                if w.chance(0.3):
                    w.statements(1)
                w.line("break")
        w.statements(w.rng.choice((1, 2, 2)))
        _jump(w, 0.02)


Maker = Callable[[Module], None]
STATEMENTS: list[tuple[Maker, float, bool]] = [
    (_scalar, 5, False),
    (_write, 5, False),
    (_write_part, 4, False),
    (_assign_array, 2, False),
    (_new, 1, False),
    (_view, 1, False),
    (_append, 1, False),
    (_call, 2, False),
    (_outside, 2, False),
    (_if, 4, True),
    (_for, 5, True),
    (_for_each, 2, True),
    (_while, 2, True),
]


def random_module(seed: int) -> str:
    """Return the source of a module with a function `main`."""
    return Module(random.Random(seed), STATEMENTS).text()
