"""Random loops that carry integers, whose results must agree in every bit."""

from __future__ import annotations

import random

INTEGERS = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
SHAPES = (
    "()", "(1,)", "(2,)", "(3,)", "(4,)", "(5,)", "(7,)", "(8,)", "(15,)", "(17,)", "(24,)", "(31,)", "(64,)", "(100,)",
    "(3, 5)", "(2, 8)", "(1, 4)", "(2, 3, 4)",
)  # fmt: skip
STEPS = (
    "{s} * {s}", "{s} * {s}", "{s} + {s}", "{s} * 3", "{s} * {s} + 1", "{s} * {s} - {s}", "{s} ^ ({s} << 1)",
    "({s} << 3) ^ {s}", "{s} >> 1", "~{s}", "-{s}", "{s} * 5 + 7", "{s} * {t}", "{s} + {t}", "{s} - {t}", "{s} ^ {t}",
    "{s} & {t} | {s}", "{s} * {s} * {s}", "{s} // 3", "{s} % 7", "{s} * {s} % 101", "np.maximum({s}, {t})",
    "np.minimum({s} * 2, {t})", "np.where({s} > {t}, {s} * {s}, {t} - {s})", "np.abs({s})", "{s} + x", "{s} * x",
    "x - {s}", "{s} * {s} ^ x", "{s} << (x & 3)", "{s} >> (x & 3)", "np.bitwise_count({s}).astype({s}.dtype)",
    "{s} - ({s} >> 2)", "{s} * {s} + x * x", "np.sign({s}) * {s}", "{s}.astype(np.int8).astype({s}.dtype)",
    "{s} | ({s} * {s})", "np.left_shift({s}, 1) + np.right_shift({s}, 1)", "{s} + np.sum({s}).astype({s}.dtype)",
    "{s} * np.max({s})", "np.square({s}) - 1",
)  # fmt: skip
MOVES = ("{s}[::-1]", "np.roll({s}, 1, axis=-1)", "np.cumsum({s}, axis=-1, dtype={s}.dtype)")
FORMS = {
    "fori": """
def f(x, y, n):
    def body(i, c):
        s, t = c
{steps}
        return s, t
    return cyxla.fori_loop(0, {trips}, body, (x, y))
""",
    "fori-one": """
def f(x, y, n):
    def body(i, s):
        t = y
{steps}
        return s
    return cyxla.fori_loop(0, {trips}, body, x)
""",
    "while": """
def f(x, y, n):
    def body(c):
        k, s, t = c
{steps}
        return k + 1, s, t
    return cyxla.while_loop(lambda c: c[0] < {trips}, body, (0, x, y))
""",
    "scan": """
def f(x, y, n):
    def body(c, i):
        s, t = c
{steps}
        return (s, t), s
    return cyxla.scan(body, (x, y), np.arange({constant}))
""",
    "nested": """
def f(x, y, n):
    def body(i, c):
        s, t = c
{steps}
        return s, t
    return cyxla.fori_loop(0, 3, lambda j, c: cyxla.fori_loop(0, {trips}, body, (c[1], c[0])), (x, y))
""",
    "cond": """
def f(x, y, n):
    def body(i, c):
        s, t = c
        def other():
            return t, s
        def one():
            s, t = c
{deeper}
            return s, t
        return cyxla.cond(i % 2 == 0, one, other)
    return cyxla.fori_loop(0, {trips}, body, (x, y))
""",
}


def loop(rng: random.Random) -> str:
    """The text of a loop over two arrays of one type."""
    dtype, shape = rng.choice(INTEGERS), rng.choice(SHAPES)
    constant = rng.choice((0, 1, 2, 3, 4, 5, 7, 8, 10, 16, 33))
    trips = constant if rng.random() < 0.7 else "n"
    usable = STEPS if shape == "()" else STEPS + MOVES
    steps = [_step(rng, usable) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    form = FORMS[rng.choice(list(FORMS))].format(
        steps="\n".join("        " + s for s in steps), deeper="\n".join("            " + s for s in steps),
        trips=trips, constant=constant,
    )  # fmt: skip
    first, second = (f"values({rng.randrange(10**6)}, '{dtype}', {shape}, {rng.choice(('', 'plain'))!r})" for _ in "xy")
    return f"args = ({first}, {second}, {constant})\nrounded = ('',)\n{form}"


def _step(rng: random.Random, usable: tuple[str, ...]) -> str:
    target, other = rng.choice((("s", "t"), ("s", "t"), ("t", "s")))
    return f"{target} = {rng.choice(usable).format(s=target, t=other)}"
