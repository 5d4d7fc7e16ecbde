"""Kernels that differ in the positions of their operands alone are one kernel, which gets pointers inside of arrays."""

import numpy as np
import pytest

import cyxla
from cyxla.xla.cpu.entry.launch_tables import _word
from cyxla.xla.cpu.memory.buffers import Buffers
from cyxla.xla.cpu.memory.locations import Location, MemoryKind


def slices(rows: int, columns: int, width: int) -> list[str]:
    """Return blocks of columns of the matrix p, each transposed, so that each needs a loop of its own."""
    return [
        f"s{k} = f32[{rows},{width}] slice(p), slice={{[0:{rows}], [{k}:{k + width}]}} "
        f"n{k} = f32[{rows},{width}] sine(s{k}) t{k} = f32[{width},{rows}] transpose(n{k}), dimensions={{1,0}}"
        for k in range(0, columns, width)
    ]


def program(rows: int, columns: int, width: int, *, from_arena: bool = False) -> str:
    source = f"p = f32[{rows},{columns}] parameter(0)"
    if from_arena:
        source = f"q{source[1:]} p = f32[{rows},{columns}] sort(q), dimensions={{0}}, to_apply=less"
    body = " ".join(slices(rows, columns, width))
    parts = [f"t{k}" for k in range(0, columns, width)]
    shapes = ", ".join([f"f32[{width},{rows}]"] * len(parts))
    less = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }"
    return f"HloModule m\n{less}\nENTRY e {{ {source} {body} ROOT r = ({shapes}) tuple({', '.join(parts)}) }}"


CASES = {
    "statements, of an argument": (600, 40, 20, False),
    "statements, in the arena": (600, 40, 20, True),
    "table, of an argument": (600, 400, 20, False),
    "table, in the arena": (600, 400, 20, True),
    "parts of one kernel": (8, 40, 4, False),
    "several tasks": (3000, 160, 40, False),
}


@pytest.mark.parametrize("rows, columns, width, from_arena", CASES.values(), ids=CASES)
def test_slices_at_other_offsets_share_a_kernel(rows, columns, width, from_arena):
    text = program(rows, columns, width, from_arena=from_arena)
    x = np.random.default_rng(0).standard_normal((rows, columns)).astype("f4")
    executable = cyxla.compile(text)
    got, want = executable(x), cyxla.compile(text, platform="interpreter")(x)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)
    assert executable.c_source.count("/* sine, slice, transpose -> ") == 1


def reversed_rows(x):
    return [np.sin(x[k : k + 40][::-1]) @ x[:3].T for k in (0, 40, 80)]


def rows_of_loops(x):
    return [np.tanh(x[k]) @ x.T for k in range(0, 100, 7)]


def every_third(x):
    return [np.cumsum(np.exp(x[k::3]), axis=0) for k in range(3)]


def shifted(x):
    """A stencil: the lowest index of an operand counts."""
    return [(x[k + 1 : k + 21] - x[k : k + 20] * x[k + 2 : k + 22]) @ x[:3].T for k in (0, 30, 60)]


def padded(x):
    """Indices that guards keep inside."""
    return [np.pad(x[k : k + 10], ((2, 3), (1, 0))) @ np.ones((x.shape[1] + 1, 2)) for k in (0, 20, 40)]


def with_itself(x):
    """In place, beside other positions of the same array."""
    x = np.sort(x, axis=0)
    return x[5:] * 2 + x[:-5], x[10:] * 2 + x[:-10]


def written(x):
    """Written to an array in place."""
    out = np.zeros_like(x)
    for k in range(0, 100, 20):
        out[k : k + 20] = np.cos(x[k : k + 20]) @ np.ones((x.shape[1], x.shape[1])) + x[k + 1 : k + 21]
    return out


FUNCTIONS = [reversed_rows, rows_of_loops, every_third, shifted, padded, with_itself, written]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_with_equal_kernels(function, dtype):
    x = (np.random.default_rng(1).standard_normal((128, 24)) * 3).astype(dtype)
    got, want = cyxla.jit(function)(x.copy()), function(x.copy())
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("rows", [0, 1, 3, 17, 64])
def test_run_time_sizes(rows):
    def parts(x, m):
        chosen = x[m]
        return [(chosen[:, k : k + 4] * 2).sum(axis=0) @ np.ones((4, 2)) for k in range(0, 24, 4)]

    x, m = np.random.default_rng(2).standard_normal((64, 24)), np.arange(64) < rows
    for g, w in zip(cyxla.jit(parts)(x, m), parts(x, m), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)


def test_offsets_of_large_arrays():
    """Offsets in the words of a table may exceed 32 bits."""
    buffers = Buffers(inputs=3)
    assert _word(buffers, Location(MemoryKind.INPUT, 2), 5 << 32) == f"CYX_INSIDE(2, {5 << 32}ll)"
    assert _word(buffers, Location(MemoryKind.OUTPUT, 0), 0) == "CYX_BUFFER(3)"
    assert _word(buffers, Location(MemoryKind.ARENA, 64), 16) == "CYX_ARENA(80)"
