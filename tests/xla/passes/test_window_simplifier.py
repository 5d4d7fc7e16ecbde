"""Updates of known windows: plainer afterwards, and the same result."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hlo.differential import agree, arguments, flat

from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import parse_module, verify
from cyxla.xla.passes.simplify import dce, window_simplifier

COMBINE = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
minus { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] subtract(b, a) }
put { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
odd { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] sine(b) ROOT r = f32[] add(a, c) }
"""


def scatter(
    dims: str,
    window: str,
    at: list[int],
    to_apply: str = "add",
    inserted: str = "",
    to: str = "0,1",
    windows: str = "0,1",
) -> str:
    return f"""HloModule m
{COMBINE}
ENTRY e {{ x = f32[{dims}] parameter(0) y = f32[{window}] parameter(1) i = s32[{len(at)}] constant({{{", ".join(map(str, at))}}})
ROOT r = f32[{dims}] scatter(x, i, y), update_window_dims={{{windows}}}, inserted_window_dims={{{inserted}}}, scatter_dims_to_operand_dims={{{to}}}, index_vector_dim=0, to_apply={to_apply} }}"""


def update(dims: str, window: str, at: list[int]) -> str:
    starts = " ".join(f"s{k} = s32[] constant({s})" for k, s in enumerate(at))
    return f"""HloModule m
ENTRY e {{ x = f32[{dims}] parameter(0) y = f32[{window}] parameter(1) {starts}
ROOT r = f32[{dims}] dynamic-update-slice(x, y, {", ".join(f"s{k}" for k in range(len(at)))}) }}"""


MANY_TO_ONE = f"""HloModule m
{COMBINE}
ENTRY e {{ x = f32[] parameter(0) y = f32[3] parameter(1) i = s32[3,0] constant({{ {{}}, {{}}, {{}} }})
ROOT r = f32[] scatter(x, i, y), update_window_dims={{}}, inserted_window_dims={{}}, scatter_dims_to_operand_dims={{}}, index_vector_dim=1, to_apply=add }}"""

# what opcodes must be gone
CASES = {
    "add": (scatter("8,8", "6,6", [1, 1]), "scatter dynamic-update-slice"),
    "assign": (scatter("8,8", "6,6", [0, 2], "put"), "scatter dynamic-update-slice"),
    "operands the other way": (scatter("8,8", "6,6", [2, 0], "minus"), "scatter"),
    "not inside": (scatter("8,8", "6,6", [3, 1]), "scatter"),
    "below": (scatter("8,8", "6,6", [-1, 1]), "scatter"),
    "a small one": (scatter("8,8", "2,3", [4, 5]), "scatter"),
    "a row": (scatter("8,5", "5", [3], inserted="0", to="0", windows="0"), "scatter"),
    "a column": (scatter("8,5", "8", [3], inserted="1", to="1", windows="0"), "scatter"),
    "many windows, all at the only place": (MANY_TO_ONE, ""),
    "another combination": (scatter("8,8", "6,6", [1, 1], "odd"), ""),
    "update": (update("9,7", "8,6", [1, 0]), "dynamic-update-slice"),
    "update, clamped": (update("9,7", "8,6", [5, -3]), "dynamic-update-slice"),
    "update of everything": (update("9,7", "9,7", [5, -3]), "dynamic-update-slice"),
    "update of columns": (update("9,7", "9,5", [0, 1]), "dynamic-update-slice"),
    "update of rows": (update("9,7", "8,7", [1, 0]), ""),
    "update of little": (update("9,7", "2,2", [1, 1]), ""),
    "update of a cube": (update("6,5,4", "5,4,3", [0, 1, 1]), "dynamic-update-slice"),
    "update of a vector": (update("100", "99", [1]), ""),
}  # fmt: skip


@pytest.mark.parametrize("text, gone", CASES.values(), ids=CASES)
def test_a_known_window(text, gone):
    module = parse_module(text)
    given_ = arguments(module)
    want = flat(evaluate(module, given_))
    changed = window_simplifier.run(module)
    window_simplifier.run(module)
    dce.run(module)
    verify(module)
    assert changed == bool(gone)
    assert not set(gone.split()) & {i.opcode for i in module.entry.instructions}
    assert all(np.array_equal(g, w) for g, w in zip(flat(evaluate(module, given_)), want, strict=True))


@given(st.data())
def test_any_update(data):
    dims = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    window = [data.draw(st.integers(1, n)) for n in dims]
    at = [data.draw(st.integers(-2, n + 1)) for n in dims]
    module = parse_module(update(",".join(map(str, dims)), ",".join(map(str, window)), at))
    given_ = arguments(module)
    want = evaluate(module, given_)
    window_simplifier.run(module)
    verify(module)
    assert np.array_equal(evaluate(module, given_), want)


@pytest.mark.parametrize("rows, columns", [(70, 100), (5, 5000), (66, 4100), (3, 9000)])
def test_a_border_stays(rows, columns):
    """Narrow boxes beside wide ones: the first and last columns go with their rows."""
    inner = f"f32[{rows - 2},{columns - 2}]"
    cuts = [((0, 2), (1, 1)), ((2, 0), (1, 1)), ((1, 1), (0, 2)), ((1, 1), (2, 0))]
    parts = " ".join(
        f"n{k} = {inner} slice(x), slice={{[{a}:{rows - b}], [{c}:{columns - d}]}}"
        for k, ((a, b), (c, d)) in enumerate(cuts)
    )
    agree(f"""HloModule m
ENTRY e {{ x = f32[{rows},{columns}] parameter(0) one = s32[] constant(1)
{parts} a = {inner} add(n0, n1) b = {inner} add(n2, n3) c = {inner} add(a, b)
ROOT r = f32[{rows},{columns}] dynamic-update-slice(x, c, one, one) }}""")
