"""Loops that carry integers agree with the interpreter at every instruction-set level."""

from itertools import product

import numpy as np
import pytest
from support.hlo.differential import agree

import cyxla
from cyxla._native import _rt
from cyxla.xla.cpu.c import isa_levels
from cyxla.xla.cpu.kernel.carried_products import combiner_carries_product, loop_carries_product
from cyxla.xla.evaluator import evaluate

DETECTED = _rt.isa_level()
LEVELS = list(isa_levels.ISA_FEATURES)
SUPPORTED = LEVELS[: LEVELS.index(DETECTED) + 1] if DETECTED else [""]

# bodies of loops that compute w from v, the loop invariant y, the counter n and constants one and three
TURNS = {
    "square": "w = T multiply(v, v)",
    "square of a multiple": "m = T multiply(v, y) w = T multiply(m, m)",
    "square of a constant multiple": "m = T multiply(v, three) w = T multiply(m, m)",
    "square of the opposite": "m = T negate(v) w = T multiply(m, m)",
    "square and multiple": "m = T multiply(v, v) w = T multiply(m, y)",
    "cube": "m = T multiply(v, v) w = T multiply(m, v)",
    "fourth power": "m = T multiply(v, v) w = T multiply(m, m)",
    "the larger of square and factor": "m = T multiply(v, v) w = T maximum(m, y)",
    "square and one": "m = T multiply(v, v) w = T add(m, one)",
    "square, shifted": "m = T multiply(v, v) w = T shift-right-logical(m, one)",
    "square of the difference": "m = T subtract(v, y) w = T multiply(m, m)",
    "factorial": "w = T multiply(v, n)",
    "generator": "m = T multiply(v, three) w = T add(m, y)",
    "shift register": "m = T shift-left(v, one) w = T xor(v, m)",
    "sum": "w = T add(v, y)",
}
DTYPES = ("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64")
SIZES = ("", "2", "4", "17", "3,5")
COUNTS = (2, 3, 4, 10, 13)


def loop(name: str, dtype: str, dims: str, turns: int, body: str) -> tuple[str, str]:
    """Return the computations of a loop, and the lines that run it on the array ``x_name``."""
    t = f"{dtype}[{dims}]"
    state = f"(s32[], {t}, {t})"
    gets = f"""s = {state} parameter(0)
i = s32[] get-tuple-element(s), index=0
v = {t} get-tuple-element(s), index=1
y = {t} get-tuple-element(s), index=2
"""
    computations = f"""more_{name} {{ {gets} k = s32[] constant({turns}) ROOT l = pred[] compare(i, k), direction=LT }}
step_{name} {{ {gets}
c = s32[] constant(1) j = s32[] add(i, c)
c1 = {dtype}[] constant(1) one = {t} broadcast(c1), dimensions={{}}
c3 = {dtype}[] constant(3) three = {t} broadcast(c3), dimensions={{}}
cn = {dtype}[] convert(j) n = {t} broadcast(cn), dimensions={{}}
{body.replace(" T ", f" {t} ")}
ROOT r = {state} tuple(j, w, y) }}
"""
    run = f"""x_{name} = {t} parameter(0)
t_{name} = {state} tuple(z, x_{name}, x_{name})
w_{name} = {state} while(t_{name}), condition=more_{name}, body=step_{name}
o_{name} = {t} get-tuple-element(w_{name}), index=1
"""
    return computations, run


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("body", TURNS.values(), ids=TURNS.keys())
def test_loops_of_every_type_and_size(body, monkeypatch):
    head, lines, results, arguments = "HloModule m\n", "", [], []
    for k, (dtype, dims) in enumerate(product(DTYPES, SIZES)):
        computations, run = loop(f"l{k}", dtype, dims, COUNTS[k % len(COUNTS) if dims else -1], body)
        head += computations
        lines += run.replace("parameter(0)", f"parameter({k})")
        results.append(f"{dtype}[{dims}]")
        shape = [int(d) for d in dims.split(",") if d]
        numbers = np.arange(np.prod(shape, dtype=int)) * 2 + 3
        arguments.append(numbers.astype(dtype.replace("s", "int").replace("u", "uint")).reshape(shape))
    names = ", ".join(f"o_l{k}" for k in range(len(results)))
    text = f"{head}ENTRY e {{ z = s32[] constant(0)\n{lines}ROOT r = ({', '.join(results)}) tuple({names}) }}"
    wanted = evaluate(cyxla.hlo.parse_module(text), arguments)
    for isa in SUPPORTED:
        if isa:
            monkeypatch.setenv("CYXLA_ISA", isa)
        for result, got, want in zip(results, cyxla.compile(text)(*arguments), wanted, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"{result} for {isa}", strict=True)


@pytest.mark.parametrize("turns", [1, 4, 10])
@pytest.mark.parametrize("dtype", ["i2", "i4", "i8"])
def test_a_traced_loop_that_squares(dtype, turns):
    @cyxla.jit
    def power(x):
        return cyxla.fori_loop(0, turns, lambda i, v: v * v, x)

    x = np.arange(4, dtype=dtype)
    power(x)
    power.wait()
    want = x
    for _ in range(turns):
        want = want * want
    np.testing.assert_array_equal(power(x), want)


COMBINER = """HloModule m
last {{ a = s32[] parameter(0) b = s32[] parameter(1) {turn} }}
ENTRY e {{ x = {shape} parameter(0) i = s32[] constant(3)
{root} }}
"""
SQUARES = {
    "of the total": "ROOT w = s32[] multiply(a, a)",
    "of the product": "m = s32[] multiply(a, b) ROOT w = s32[] multiply(m, m)",
    "of the total, and more": "m = s32[] multiply(a, a) ROOT w = s32[] add(m, b)",
}
COMBINED = {
    "along rows": ("s32[6,21]", "ROOT r = s32[6] reduce(x, i), dimensions={1}, to_apply=last"),
    "along columns": ("s32[21,6]", "ROOT r = s32[6] reduce(x, i), dimensions={0}, to_apply=last"),
    "along long columns": ("s32[21,70]", "ROOT r = s32[70] reduce(x, i), dimensions={0}, to_apply=last"),
    "everything": ("s32[21]", "ROOT r = s32[] reduce(x, i), dimensions={0}, to_apply=last"),
    "windows": (
        "s32[21]",
        "ROOT r = s32[9] reduce-window(x, i), window={size=13}, to_apply=last",
    ),
    "running": ("s32[21]", "ROOT r = s32[21] reduce-window(x, i), window={size=21 pad=20_0}, to_apply=last"),
    "running along columns": (
        "s32[21,5]",
        "ROOT r = s32[21,5] reduce-window(x, i), window={size=21x1 pad=20_0x0_0}, to_apply=last",
    ),
    "one place": (
        "s32[21]",
        "j = s32[21,0] constant({"
        + ", ".join(["{}"] * 21)
        + "}) ROOT r = s32[] scatter(i, j, x), update_window_dims={}, "
        "inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=1, to_apply=last",
    ),
}


@pytest.mark.parametrize("turn", SQUARES.values(), ids=SQUARES.keys())
@pytest.mark.parametrize("shape, root", COMBINED.values(), ids=COMBINED.keys())
def test_combiners_that_square(shape, root, turn):
    agree(COMBINER.format(shape=shape, root=root, turn=turn))


def body_of(turn: str) -> cyxla.hlo.Computation:
    computations, run = loop("l", "s32", "4", 3, turn)
    module = cyxla.hlo.parse_module(f"HloModule m\n{computations}ENTRY e {{ z = s32[] constant(0)\n{run}}}")
    return module.computations["step_l"]


MULTIPLY = {name for name in TURNS if any(word in name for word in ("square", "cube", "power"))}


@pytest.mark.parametrize("name, turn", TURNS.items(), ids=TURNS.keys())
def test_products_of_the_state_are_found(name, turn):
    assert loop_carries_product(body_of(turn)) == (name in MULTIPLY)


@pytest.mark.parametrize(
    "turn, found",
    [
        ("ROOT w = s32[] multiply(a, a)", True),
        ("m = s32[] multiply(a, b) ROOT w = s32[] multiply(m, a)", True),
        ("ROOT w = s32[] multiply(a, b)", False),
        ("m = s32[] multiply(b, b) ROOT w = s32[] add(m, a)", False),
    ],
)
def test_products_of_totals_are_found(turn, found):
    root = "ROOT r = s32[] reduce(x, i), dimensions={0}, to_apply=last"
    module = cyxla.hlo.parse_module(COMBINER.format(shape="s32[3]", root=root, turn=turn))
    assert combiner_carries_product(module.computations["last"]) is found
