"""The hot loop of every kind of kernel uses vector instructions, checked in the assembly.

gcc leaves a loop scalar without a word. For each kind of kernel a program is compiled to assembly as for running it; one
of its innermost loops must hold the kernel's arithmetic on vectors of the width that the processor level has.
"""

# ruff: noqa: E501  programs read best a line at a time

import re
import subprocess
from functools import partial

import pytest

import cyxla
from cyxla.xla.cpu import lowering
from cyxla.xla.cpu.dump import Dump
from cyxla.xla.cpu.native import compiler_search
from cyxla.xla.cpu.prebuilt import library as prebuilt_library
from cyxla.xla.service import CompileOptions

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
MAX = "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"
ADD_F64 = ADD.replace("f32", "f64").replace("add {", "add_f64 {")
MAX_F64 = MAX.replace("f32", "f64").replace("max {", "max_f64 {")
LESS = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }\n"
PICK = "pick { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }\n"
BEST = """best { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
 beyond = pred[] compare(a, b), direction=GT nan = pred[] compare(a, a), direction=NE keep = pred[] or(beyond, nan)
 x = f32[] select(keep, a, b) same = pred[] compare(a, b), direction=EQ before = pred[] compare(i, j), direction=LT
 tie = pred[] and(same, before) stay = pred[] or(keep, tie) y = s32[] select(stay, i, j) ROOT t = (f32[], s32[]) tuple(x, y) }
"""
SUM = r"v(add|fn?m(add|sub)\d+)p[sd]"
MULTIPLY = r"v(mul|fn?m(add|sub)\d+)p[sd]"

# kind of kernel: (computations, the entry's lines, mnemonics of x86-64 of which each must be in one innermost loop)
CASES = {
    "loop": ("", "p = f32[65536] parameter(0) ROOT r = f32[65536] multiply(p, p)", [r"vmulps"]),
    "loop of f64": ("", "p = f64[65536] parameter(0) ROOT r = f64[65536] multiply(p, p)", [r"vmulpd"]),
    "loop of integers": ("", "p = s32[65536] parameter(0) ROOT r = s32[65536] multiply(p, p)", [r"vpmulld"]),
    "exponential": ("", "p = f32[65536] parameter(0) ROOT r = f32[65536] exponential(p)", [MULTIPLY, SUM]),
    "error function": ("", "p = f32[65536] parameter(0) ROOT r = f32[65536] erf(p)", [MULTIPLY, SUM]),
    "select": ("", "p = f32[65536] parameter(0) z = f32[] constant(0) b = f32[65536] broadcast(z), dimensions={} c = pred[65536] compare(p, b), direction=LT n = f32[65536] multiply(p, p) ROOT r = f32[65536] select(c, n, p)", [r"vmulps", r"vcmp(\w+)?ps"]),
    "full reduction": (ADD, "p = f32[65536] parameter(0) z = f32[] constant(0) ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add", [SUM]),
    "full reduction of an expression": (ADD, "p = f32[65536] parameter(0) z = f32[] constant(0) q = f32[65536] multiply(p, p) ROOT r = f32[] reduce(q, z), dimensions={0}, to_apply=add", [r"vmulps", SUM]),
    "reduction of rows": (ADD, "p = f32[64,2048] parameter(0) z = f32[] constant(0) ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=add", [SUM]),
    "maximum of rows": (MAX, "p = f32[64,2048] parameter(0) z = f32[] constant(-inf) ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=max", [r"v(pmaxs|maxp)[sd]"]),
    "reduction of columns": (ADD, "p = f32[2048,512] parameter(0) z = f32[] constant(0) ROOT r = f32[512] reduce(p, z), dimensions={0}, to_apply=add", [SUM]),
    "place of the maximum": (BEST, "p = f32[64,2048] parameter(0) q = s32[64,2048] iota(), iota_dimension=1 z = f32[] constant(-inf) k = s32[] constant(0) ROOT r = (f32[64], s32[64]) reduce(p, q, z, k), dimensions={1}, to_apply=best", [r"vcmp(\w+)?ps"]),
    "sum selected by bools": (ADD, "p = f32[65536] parameter(0) m = pred[65536] parameter(1) z = f32[] constant(0) b = f32[65536] broadcast(z), dimensions={} s = f32[65536] select(m, p, b) ROOT r = f32[] reduce(s, z), dimensions={0}, to_apply=add", [SUM]),
    "sum of f64 selected by bools": (ADD_F64, "p = f64[65536] parameter(0) m = pred[65536] parameter(1) z = f64[] constant(0) b = f64[65536] broadcast(z), dimensions={} s = f64[65536] select(m, p, b) ROOT r = f64[] reduce(s, z), dimensions={0}, to_apply=add_f64", [SUM]),
    "sum of f64 selected by two bools": (ADD_F64, "p = f64[65536] parameter(0) m = pred[65536] parameter(1) n = pred[65536] parameter(2) o = pred[65536] not(n) a = pred[65536] and(m, o) z = f64[] constant(0) b = f64[65536] broadcast(z), dimensions={} s = f64[65536] select(a, p, b) ROOT r = f64[] reduce(s, z), dimensions={0}, to_apply=add_f64", [SUM]),
    "sum of integers selected by bools": (ADD_F64, "p = s64[65536] parameter(0) m = pred[65536] parameter(1) z = f64[] constant(0) b = f64[65536] broadcast(z), dimensions={} c = f64[65536] convert(p) s = f64[65536] select(m, c, b) ROOT r = f64[] reduce(s, z), dimensions={0}, to_apply=add_f64", [SUM]),
    "rows of f64 selected by bools": (ADD_F64, "p = f64[64,2048] parameter(0) m = pred[64,2048] parameter(1) z = f64[] constant(0) b = f64[64,2048] broadcast(z), dimensions={} s = f64[64,2048] select(m, p, b) ROOT r = f64[64] reduce(s, z), dimensions={1}, to_apply=add_f64", [SUM]),
    "columns of f64 selected by bools": (ADD_F64, "p = f64[2048,512] parameter(0) m = pred[2048,512] parameter(1) z = f64[] constant(0) b = f64[2048,512] broadcast(z), dimensions={} s = f64[2048,512] select(m, p, b) ROOT r = f64[512] reduce(s, z), dimensions={0}, to_apply=add_f64", [SUM]),
    "maximum of f64 selected by bools": (MAX_F64, "p = f64[65536] parameter(0) m = pred[65536] parameter(1) z = f64[] constant(-inf) b = f64[65536] broadcast(z), dimensions={} s = f64[65536] select(m, p, b) ROOT r = f64[] reduce(s, z), dimensions={0}, to_apply=max_f64", [r"v(pmax|max|blendm|p?blendv|pand|pternlog)\w*"]),
    "loop of f64 selected by bools": ("", "p = f64[65536] parameter(0) m = pred[65536] parameter(1) z = f64[] constant(0) b = f64[65536] broadcast(z), dimensions={} q = f64[65536] multiply(p, p) ROOT s = f64[65536] select(m, q, b)", [r"vmulpd"]),
    "sum of bytes as f64": (ADD_F64, "p = u8[65536] parameter(0) z = f64[] constant(0) c = f64[65536] convert(p) ROOT r = f64[] reduce(c, z), dimensions={0}, to_apply=add_f64", [SUM]),
    "row group": (ADD + MAX, """p = f32[64,1024] parameter(0) z = f32[] constant(0) i = f32[] constant(-inf) m = f32[64] reduce(p, i), dimensions={1}, to_apply=max
 b = f32[64,1024] broadcast(m), dimensions={0} d = f32[64,1024] subtract(p, b) e = f32[64,1024] exponential(d) s = f32[64] reduce(e, z), dimensions={1}, to_apply=add
 t = f32[64,1024] broadcast(s), dimensions={0} ROOT r = f32[64,1024] divide(e, t)""", [r"vsubps", MULTIPLY]),
    "scan of columns": (ADD, "p = f32[256,512] parameter(0) z = f32[] constant(0) ROOT r = f32[256,512] reduce-window(p, z), window={size=256x1 pad=255_0x0_0}, to_apply=add", [SUM]),
    "sort": (LESS, "p = f32[65536] parameter(0) ROOT r = f32[65536] sort(p), dimensions={0}, is_stable=true, to_apply=less", [r"vpcompressd|vpsrad|vpsraw"]),
    "average pool": (ADD, "p = f32[2,32,32,64] parameter(0) z = f32[] constant(0) ROOT r = f32[2,16,16,64] reduce-window(p, z), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=add", [SUM]),
    "maximum pool": (MAX, "p = f32[2,32,32,64] parameter(0) z = f32[] constant(-inf) ROOT r = f32[2,16,16,64] reduce-window(p, z), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0}, to_apply=max", [r"v(max|cmp)(\w+)?ps|vpmaxs\w"]),
    "gradient of a maximum pool": (PICK + ADD, "p = f32[2,32,32,64] parameter(0) s = f32[2,16,16,64] parameter(1) z = f32[] constant(0) ROOT r = f32[2,32,32,64] select-and-scatter(p, s, z), window={size=1x2x2x1 stride=1x2x2x1}, select=pick, scatter=add", [r"vcmp(\w+)?ps|vpcmp\w*"]),
    "gather of rows": ("", "p = f32[100,256] parameter(0) i = s32[64] parameter(1) ROOT r = f32[64,256] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,256}", [r"vmov(up|ap|dqu|dqa)\w*"]),
    "scatter of rows": (ADD, "p = f32[100,256] parameter(0) i = s32[64] parameter(1) u = f32[64,256] parameter(2) ROOT r = f32[100,256] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add", [SUM]),
    "dot": ("", "p = f32[128,128] parameter(0) q = f32[128,128] parameter(1) ROOT r = f32[128,128] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", [r"vfmadd\d+ps"]),
    "convolution": ("", "p = f32[2,16,16,64] parameter(0) q = f32[3,3,64,64] parameter(1) ROOT r = f32[2,16,16,64] convolution(p, q), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", [r"vfmadd\d+ps"]),
}  # fmt: skip
SCALAR_WITH_CLANG = ("full reduction of an expression", "scatter of rows")  # slower than it could be, not wrong
# gcc vectorises 32 lanes by vectors of at most 32 bytes if there are bytes among their elements
BYTES_IN_LANES = (
    "sum of f64 selected by bools",
    "sum of f64 selected by two bools",
    "sum of integers selected by bools",
    "rows of f64 selected by bools",
    "sum of bytes as f64",
)
REGISTER = {128: "%xmm", 256: "%ymm", 512: "%zmm"}


def assembly(text: str) -> list[str]:
    """Return the assembly of each unit of a program."""
    tools, options, module = compiler_search.require(), CompileOptions(), cyxla.hlo.parse_module(text)
    _, _, source = lowering.emit(lowering.run_passes(module, options, Dump(module)), options)
    command = [*tools.compiler.command, *tools.flags(), "-x", "c", "-S", "-o", "-", "-"]
    run = partial(subprocess.run, command, capture_output=True, text=True, check=True)
    return [run(input=unit).stdout for unit in source.units]


def innermost_loops(text: str) -> list[str]:
    """Stretches of assembly from a label to a jump back to it that hold no such stretch inside."""
    lines = [line.partition(" #")[0].partition("\t#")[0].rstrip() for line in text.splitlines()]  # clang comments
    labels = {line[:-1]: n for n, line in enumerate(lines) if re.fullmatch(r"\.L\w+:", line)}
    spans = []
    for n, line in enumerate(lines):
        jump = re.match(r"\s+j\w+\s+(\.L\w+)", line)
        if jump and labels.get(jump[1], n) < n:
            spans.append((labels[jump[1]], n))
    inner = [s for s in spans if not any(s != t and s[0] <= t[0] and t[1] <= s[1] for t in spans)]
    return ["\n".join(lines[a : b + 1]) for a, b in inner]


def has_vectors(loop: str, mnemonics: list[str], register: str) -> bool:
    return all(re.search(rf"^\s+(?:{m})\s.*{register}", loop, re.MULTILINE) for m in mnemonics)


@pytest.mark.parametrize("name", CASES)
def test_hot_loops_use_vectors(name, monkeypatch):
    monkeypatch.setenv("CYXLA_PREBUILT", "0")
    tools = compiler_search.require()
    if tools.isa not in ("x86-64-v3", "x86-64-v4"):
        pytest.skip(f"the table lists instructions of AVX2 and AVX-512 only; this processor has {tools.isa}")
    if tools.compiler.kind == "clang" and name in SCALAR_WITH_CLANG:
        pytest.skip("clang leaves it scalar")
    computations, lines, mnemonics = CASES[name]
    units = assembly(f"HloModule m\n{computations}ENTRY e {{ {lines} }}")
    loops = [loop for unit in units for loop in innermost_loops(unit)]
    register = REGISTER[min(tools.vector_bits, 256) if name in BYTES_IN_LANES else tools.vector_bits]
    assert any(has_vectors(loop, mnemonics, register) for loop in loops), f"{len(loops)} loops"


def test_functions_of_many_lines_are_called_on_vectors():
    if compiler_search.require().compiler.kind != "gcc":
        pytest.skip("only gcc makes forms for vectors")
    lines = "".join(f"q{k + 1} = f32[65536] tanh(q{k}) " for k in range(12))
    (unit,) = assembly(
        f"HloModule m\nENTRY e {{ q0 = f32[65536] parameter(0) {lines} ROOT r = f32[65536] negate(q12) }}"
    )
    calls = [call for loop in innermost_loops(unit) for call in re.findall(r"call\w*\s+(\S*tanh\S*)", loop)]
    assert len(calls) >= 12
    assert all(call.startswith("_ZGV") for call in calls)


# module of the prebuilt library: mnemonics as above
PREBUILT = {"prebuilt_dot": [r"vfmadd\d+p[sd]"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", PREBUILT)
def test_prebuilt_loops_use_vectors(name):
    """So do those of the library, at each level that has them by these names."""
    tools = compiler_search.require()
    for isa, register in (("x86-64-v3", "%ymm"), ("x86-64-v4", "%zmm")):
        suffix = prebuilt_library.Level(isa).suffix
        (source,) = (
            s for s in prebuilt_library.sources(tools.compiler.kind, "x86_64") if s.name == f"{name}{suffix}.c"
        )
        command = [*tools.compiler.command, *source.flags, "-x", "c", "-S", "-o", "-", "-"]
        made = subprocess.run(command, capture_output=True, text=True, check=True, input=source.text).stdout
        assert any(has_vectors(loop, PREBUILT[name], register) for loop in innermost_loops(made))


def test_the_test_sees_scalar_loops():
    """A loop that cannot run in vectors is told from one that does."""
    text = "\n".join(
        [".L1:", "\tvmulps\t%zmm0, %zmm1, %zmm2", "\tjne\t.L1", ".L2:", "\tvmulss\t%xmm0, %xmm1, %xmm2", "\tjne\t.L2"]
    )
    loops = innermost_loops(text)
    assert [has_vectors(loop, ["vmulps"], "%zmm") for loop in loops] == [True, False]
    assert not innermost_loops(".L1:\n\tjmp\t.L3\n.L3:")
