"""Fusion: the groups, and that fusing them is valid."""
# ruff: noqa: E501 - programs read best one a line

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.kernel_groups import check
from support.interrupts import at_most

from cyxla.xla.cpu import emitters
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.plan.fusion import MAX_COSTLY, fuse
from cyxla.xla.hlo import HloModule

ADD = "f {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n"


def module(lines: str) -> HloModule:
    return HloModule.from_text(f"HloModule m\n{ADD}ENTRY e {{\n" + lines.replace(";", "\n") + "\n}\n")


def kinds(lines: str) -> list[tuple[str, str, int]]:
    """(kind, opcodes, outputs) of the groups."""
    return [(g.kind, " ".join(i.opcode for i in g.instructions), len(g.outputs)) for g in fuse(module(lines).entry)]


TABLE = {
    "a chain": ("p = f32[9] parameter(0); a = f32[9] negate(p); b = f32[9] tanh(a); ROOT c = f32[9] abs(b)", [("loop", "negate tanh abs", 1)]),
    "through reshapes and copies": (
        "p = f32[9] parameter(0); a = f32[9] tanh(p); b = f32[3,3] reshape(a); c = f32[3,3] copy(b); ROOT d = f32[3,3] abs(c)",
        [("loop", "tanh abs", 1)]),
    "two results of one loop": (
        "p = f32[9] parameter(0); a = f32[9] tanh(p); b = f32[9] abs(a); c = f32[9] negate(a); ROOT t = (f32[9], f32[9]) tuple(b, c)",
        [("loop", "tanh abs negate", 2)]),
    "a value on the way is a second output": (
        "p = f32[9] parameter(0); a = f32[9] tanh(p); b = f32[9] abs(a); ROOT t = (f32[9], f32[9]) tuple(a, b)",
        [("loop", "tanh abs", 2)]),
    "what is costly is not repeated": (
        "p = f32[9] parameter(0); a = f32[9] tanh(p); b = f32[700,9] broadcast(a), dimensions={1}; ROOT c = f32[700,9] abs(b)",
        [("loop", "tanh", 1), ("loop", "broadcast abs", 1)]),
    "what is cheap may be": (
        "p = f32[9] parameter(0); a = f32[9] negate(p); b = f32[700,9] broadcast(a), dimensions={1}; ROOT c = f32[700,9] abs(b)",
        [("loop", "negate broadcast abs", 1)]),
    "nor is much of what is cheap": (
        "p = f32[9999] parameter(0); a = f32[9999] multiply(p, p); b = f32[9999] add(a, p); c = f32[9999] negate(b); d = f32[9999] add(c, p); "
        "e = f32[9999] multiply(d, d); s = f32[9990] slice(e), slice={[0:9990]}; t = f32[9990] slice(e), slice={[5:9995]}; "
        "u = f32[9990] slice(e), slice={[9:9999]}; v = f32[9990] add(s, t); w = f32[9990] add(v, u); x = f32[9990] slice(e), slice={[2:9992]}; "
        "y = f32[9990] slice(e), slice={[3:9993]}; z = f32[9990] add(x, y); ROOT r = f32[9990] add(w, z)",
        [("loop", "multiply add negate add multiply", 1), ("loop", "slice slice add slice add slice slice add add", 1)]),
    "halves of an array repeat nothing": (
        "p = f32[9998] parameter(0); a = f32[9998] multiply(p, p); b = f32[9998] add(a, p); c = f32[9998] negate(b); d = f32[9998] add(c, p); "
        "e = f32[9998] multiply(d, d); f = f32[9998] add(e, p); g = f32[9998] multiply(f, f); h = f32[9998] add(g, p); i = f32[9998] multiply(h, h); "
        "j = f32[9998] add(i, p); k = f32[9998] add(j, i); l = f32[9998] add(k, i); m = f32[9998] add(l, i); n = f32[9998] add(m, i); "
        "o = f32[9998] add(n, i); q = f32[9998] add(o, i); t = f32[9998] add(q, i); s = f32[4999] slice(t), slice={[0:4999]}; "
        "u = f32[4999] slice(t), slice={[4999:9998]}; ROOT r = f32[4999] add(s, u)",
        [("loop", "multiply add negate add multiply add multiply add multiply add add add add add add add add slice slice add", 1)]),
    "long rows pay for what is outside of them": (
        "p = f32[9] parameter(0); a = f32[9] tanh(p); b = f32[9,700] broadcast(a), dimensions={0}; ROOT c = f32[9,700] abs(b)",
        [("loop", "tanh broadcast abs", 1)]),
    "a reduction takes its prologue and epilogue": (
        "p = f32[9,9] parameter(0); a = f32[9,9] tanh(p); z = f32[] constant(0); r = f32[9] reduce(a, z), dimensions={1}, to_apply=f; "
        "ROOT b = f32[9] sqrt(r)", [("reduce", "tanh reduce sqrt", 1)]),
    "no cycle through a reduction": (
        "p = f32[9,9] parameter(0); a = f32[9,9] tanh(p); z = f32[] constant(0); r = f32[9] reduce(a, z), dimensions={1}, to_apply=f; "
        "b = f32[9,9] broadcast(r), dimensions={0}; ROOT c = f32[9,9] divide(a, b)",
        [("loop", "tanh", 1), ("reduce", "reduce", 1), ("loop", "broadcast divide", 1)]),
    "an update takes its operand": (
        "p = f32[9] parameter(0); u = f32[3] parameter(1); i = s32[] parameter(2); a = f32[3] tanh(u); "
        "ROOT d = f32[9] dynamic-update-slice(p, a, i)", [("update", "tanh dynamic-update-slice", 1)]),
    "but nothing that reads what is updated": (
        "p = f32[9] parameter(0); i = s32[] parameter(1); s = f32[3] dynamic-slice(p, i), dynamic_slice_sizes={3}; a = f32[3] tanh(s); "
        "ROOT d = f32[9] dynamic-update-slice(p, a, i)", [("loop", "dynamic-slice", 1), ("update", "tanh dynamic-update-slice", 1)]),
    "a contraction takes its epilogue": (
        "p = f32[9,9] parameter(0); a = f32[9,9] tanh(p); d = f32[9,9] dot(a, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}; "
        "ROOT b = f32[9,9] abs(d)", [("loop", "tanh", 1), ("dot", "dot abs", 1)]),
    "what nobody reads is not computed": ("p = f32[9] parameter(0); a = f32[9] tanh(p); ROOT b = f32[9] abs(p)", [("loop", "abs", 1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_groups(name):
    lines, wanted = TABLE[name]
    assert kinds(lines) == wanted


def test_reasons_are_kept():
    groups = fuse(module(TABLE["what is costly is not repeated"][0]).entry)
    assert any("tanh f32[9]" in str(r) for g in groups for r in g.reasons)


def test_materialised_values_are_outputs():
    m = module(TABLE["a chain"][0])
    middle = next(i for i in m.entry.instructions if i.opcode == "tanh")
    (group,) = fuse(m.entry, materialised={middle: "it is wanted"})
    assert middle in group.outputs


def test_long_chains_are_quick_and_few_texts():
    n = 5_000
    names = ["negate", "tanh", "exponential", "abs"]
    lines = "".join(f"{'ROOT ' if i == n else ''}v{i} = f32[64] {names[i % 4]}(v{i - 1});" for i in range(1, n + 1))
    m = module("v0 = f32[64] parameter(0);" + lines)
    with at_most(lines=1000 * n):
        groups = fuse(m.entry)
        texts = {s.kernel.text for g in groups for s in emitters.emit(g)}
    assert len(groups) == n // (2 * MAX_COSTLY)
    assert len(texts) <= 4


@st.composite
def programs(draw):
    """Random programs over 4x4 arrays with several results."""
    lines = ["v0 = f32[4,4] parameter(0)", "v1 = f32[4,4] parameter(1)", "z = f32[] constant(0.5)"]
    count = draw(st.integers(2, 14))
    for i in range(2, 2 + count):
        a, b = (f"v{draw(st.integers(0, i - 1))}" for _ in range(2))
        lines.append(f"v{i} = f32[4,4] " + draw(st.sampled_from([
            f"add({a}, {b})", f"maximum({a}, {b})", f"tanh({a})", f"negate({a})", f"transpose({a}), dimensions={{1,0}}",
            f"reverse({a}), dimensions={{0}}", f"dynamic-update-slice({a}, v{i}u, v{i}i, v{i}i)", f"broadcast(v{i}r), dimensions={{1}}",
            f"pad(v{i}s, z), padding=1_1x0_1", f"concatenate(v{i}s, v{i}s), dimensions={{0}}".replace(f"v{i}s", f"v{i}h"),
        ])))  # fmt: skip
        lines[-1:-1] = [
            f"v{i}i = s32[] constant({draw(st.integers(-1, 3))})", f"v{i}u = f32[2,3] slice({b}), slice={{[1:3], [0:3]}}",
            f"v{i}r = f32[4] reduce({b}, z), dimensions={{{draw(st.integers(0, 1))}}}, to_apply=f",
            f"v{i}s = f32[2,3] slice({b}), slice={{[0:4:2], [1:4]}}", f"v{i}h = f32[2,4] slice({a}), slice={{[1:3], [0:4]}}",
        ]  # fmt: skip
    roots = draw(st.lists(st.integers(2, 1 + count), min_size=1, max_size=4))
    shapes = ", ".join(["f32[4,4]"] * len(roots))
    lines.append(f"ROOT t = ({shapes}) tuple({', '.join(f'v{r}' for r in roots)})")
    return ";".join(lines)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_groups_are_in_order(lines):
    m = module(lines)
    done = {i for i in m.entry.instructions if i.opcode in ("parameter", "constant")}
    for group in fuse(m.entry):
        for ins in group.instructions:
            for operand in ins.operands:
                source = resolve(operand).instruction
                assert source in done or source in group.instructions
        done.update(group.outputs)


@settings(max_examples=30, deadline=None)
@given(programs())
def test_fused_programs_compute_the_same(lines):
    rng = np.random.default_rng(3)
    text = f"HloModule m\n{ADD}ENTRY e {{\n" + lines.replace(";", "\n") + "\n}\n"
    inputs = [rng.normal(size=(4, 4)).astype(np.float32) for _ in range(2)]
    check(text, *inputs, ulp=400, near=1.0)


def test_no_cycles_among_groups_of_rows():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        lines = ["v0 = f32[20,20] parameter(0)", "v1 = f32[20,20] parameter(1)", "z = f32[] constant(0.5)"]
        for i in range(2, 40):
            a, b = (f"v{rng.integers(max(0, i - 8), i)}" for _ in range(2))
            lines += [
                f"v{i}r = f32[20] reduce({b}, z), dimensions={{1}}, to_apply=f",
                f"v{i}b = f32[20,20] broadcast(v{i}r), dimensions={{0}}",
            ]
            lines.append(f"v{i} = f32[20,20] " + str(rng.choice([
                f"subtract({a}, v{i}b)", f"tanh({a})", f"multiply({a}, {b})", f"transpose({a}), dimensions={{1,0}}",
                f"dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            ])))  # fmt: skip
        m = module(";".join([*lines, "ROOT t = (f32[20,20], f32[20,20]) tuple(v39, v30)"]))
        done = {i for i in m.entry.instructions if i.opcode in ("parameter", "constant")}
        for group in fuse(m.entry):
            read = {resolve(o).instruction for i in group.instructions for o in i.operands}
            assert read <= done | set(group.instructions)
            done.update(group.outputs)
