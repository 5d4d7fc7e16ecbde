"""Functions that a kernel uses many times are called, on whole vectors, and give the bits of those that are copied."""

import re

import numpy as np
import pytest

import cyxla
from cyxla.xla.cpu.c import outline
from cyxla.xla.cpu.c.outline import MAX_INLINED_USES, outline_functions


def kernel(function, uses):
    lines = "".join(f"  y = {function}(y);\n" for _ in range(uses))
    return f"static float KERNEL(float y) {{\n{lines}  return y;\n}}\n"


def test_few_uses_are_copied():
    assert outline_functions(kernel("cyx_tanh_f32", MAX_INLINED_USES)) == kernel("cyx_tanh_f32", MAX_INLINED_USES)


def test_many_uses_are_called():
    text = outline_functions(kernel("cyx_tanh_f32", MAX_INLINED_USES + 1))
    assert len(re.findall(r"\bcyx_tanh_f32\(", text)) == 1
    assert text.count("y = KERNEL_cyx_tanh_f32(y)") == MAX_INLINED_USES + 1


@pytest.mark.parametrize(
    "name", ["cyx_abs_f32", "cyx_is_finite_f32", "cyx_sine_f32_needs_slow", "cyx_unknown", "cyx_f32_from_bf16"]
)
def test_short_or_mixed_functions_are_not_outlined(name):
    assert outline_functions(kernel(name, 50)) == kernel(name, 50)


OPCODES = ("tanh", "sine", "power", "erf", "atan2", "log-plus-one")


def chain(opcode, dtype, length):
    operands = "{0}, y" if opcode in ("power", "atan2") else "{0}"
    lines, last = [], "x"
    for k in range(length):
        lines.append(f"a{k} = {dtype}[1003] {opcode}({operands.format(last)}) b{k} = {dtype}[1003] multiply(a{k}, y)")
        last = f"b{k}"
    head = f"HloModule m\nENTRY e {{ x = {dtype}[1003] parameter(0) y = {dtype}[1003] parameter(1)\n"
    return head + "\n".join(lines) + f"\nROOT r = {dtype}[1003] negate({last}) }}"


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("opcode", OPCODES)
def test_calls_give_the_same_bits(opcode, dtype, monkeypatch):
    rng = np.random.default_rng(7)
    wide = rng.uniform(0.5, 2, 1003) * np.where(rng.random(1003) < 0.05, 1e7, 1)  # some are beyond what is quick
    wide[:6] = np.nan, np.inf, -np.inf, -0.0, 5e-324, -1.5
    exe = cyxla.compile(chain(opcode, dtype, MAX_INLINED_USES + 1))
    of = exe.inputs[0].dtype.numpy_dtype
    x, y = wide.astype(of), rng.uniform(0.9, 1.1, 1003).astype(of)
    called = exe(x, y)
    assert re.search(r"static CYX_SIMD_CLONE \w+ k0_cyx_", exe.c_source)
    monkeypatch.setattr(outline, "MAX_INLINED_USES", 1000)
    copied = cyxla.compile(chain(opcode, dtype, MAX_INLINED_USES + 1))
    assert "k0_cyx_" not in copied.c_source
    assert called.tobytes() == copied(x, y).tobytes()
