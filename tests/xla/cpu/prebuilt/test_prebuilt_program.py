"""Programs of prebuilt functions give the bits of native code; whatever might differ by a bit is not taken."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.functions.function_rows import SUBJECTS, outcome, rows
from support.hlo.random_steps import FORMS, REDUCTIONS, Writer, arguments, random_steps, same_bits

import cyxla
from cyxla._native import kernels as library
from cyxla.types import ElementType as E
from cyxla.types import Shape
from cyxla.xla.cpu.kernel import prebuilt_numbers
from cyxla.xla.cpu.prebuilt import coverage
from cyxla.xla.cpu.prebuilt import elementwise as prebuilt_elementwise
from cyxla.xla.cpu.prebuilt import program as prebuilt_program
from cyxla.xla.cpu.prebuilt import reductions as prebuilt_reductions
from cyxla.xla.cpu.prebuilt.forms import OPCODES, TYPES
from cyxla.xla.cpu.prebuilt.program import NotCoveredError
from cyxla.xla.cpu.reduce.accumulators import accumulator
from cyxla.xla.service import CompileOptions

COMBINERS = {
    "add": "f32 f64 s32 s64 c64", "maximum": "f32 f64 s32", "minimum": "f32 f64", "multiply": "f32 c64", "or": "pred",
}  # fmt: skip
REDUCERS = "".join(
    f"{opcode}_{t} {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT r = {t}[] {opcode}(a, b) }}\n"
    for opcode, types in COMBINERS.items()
    for t in types.split()
)


def parsed(body, computations=REDUCERS):
    """The module of a program of one computation, given by its lines."""
    module = cyxla.hlo.parse_module(f"HloModule m\n{computations}ENTRY e {{\n{body}\n}}")
    module.verify()
    return module


def prebuilt(module, most_ns=1e12, **options):
    return prebuilt_program.prebuilt_program(module, CompileOptions(**options), most_ns)


def is_covered(module):
    try:
        prebuilt(module)
    except NotCoveredError:
        return False
    return True


def native(module):
    made = cyxla.compile(module, cache=False)
    assert made.tier == "native"
    return made


def assert_same_bits(module, fractions=(0.0, 0.4, 0.9)):
    """Assert that native code of a module gives the bits of prebuilt functions on arguments of several kinds."""
    first, second = prebuilt(module), native(module)
    for seed, special in enumerate(fractions):
        given = arguments(module, seed, special)
        assert same_bits(first(*given), second(*given)), f"{module.to_text()}\nseed {seed}, special {special}"
    return first


# --- random programs --------------------------------------------------------------------------------------------------

CHUNK = 25


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("start", range(0, 125, CHUNK))
def test_random_programs(start):
    count = 0
    for seed in range(start, start + CHUNK):
        module = random_steps(seed)
        if is_covered(module):
            count += 1
            assert_same_bits(module, (0.05, 0.4))
    assert count >= 0.6 * CHUNK


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(1000, 1 << 30))
def test_any_program(seed):
    module = random_steps(seed)
    if is_covered(module):
        assert_same_bits(module, (0.3,))


def test_random_programs_have_every_step():
    """Each opcode and each type that there is a step for."""
    instructions = [ins for seed in range(600) for ins in random_steps(seed).entry.instructions]
    moves = {"transpose", "reverse", "broadcast", "slice", "concatenate", "pad", "reshape", "copy", "reduce", "iota"}
    assert {ins.opcode for ins in instructions} >= OPCODES | moves | {"constant"}
    assert {ins.shape.dtype for ins in instructions if ins.shape.is_array} == set(TYPES)


# --- without a C compiler: sums that nothing is fused into ------------------------------------------------------------

SUMS = [
    ("f64", (100_000,), (0,)), ("f32", (1000, 1000), (0, 1)), ("f32", (700, 900), (0,)), ("f64", (900, 700), (1,)),
    ("f64", (3, 20_000), (1,)), ("f64", (4000, 3), (0,)), ("f32", (3, 5000, 40), (1,)), ("f32", (5000, 7), (1,)),
    ("f32", (7, 9, 15), (1,)), ("f64", (4099, 5), (0,)), ("f64", (257, 65), (0,)), ("f64", (5, 3), (0, 1)),
]  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("combiner", ["add", "multiply"])
@pytest.mark.parametrize("dtype, dims, reduced", SUMS)
def test_sums_of_the_order_of_native_code(dtype, dims, reduced, combiner):
    left = ",".join(str(n) for d, n in enumerate(dims) if d not in reduced)
    reducer = f"c {{ a = {dtype}[] parameter(0) b = {dtype}[] parameter(1) ROOT r = {dtype}[] {combiner}(a, b) }}\n"
    module = parsed(
        f"""x = {dtype}[{",".join(map(str, dims))}] parameter(0)
  z = {dtype}[] parameter(1)
  ROOT r = {dtype}[{left}] reduce(x, z), dimensions={{{",".join(map(str, reduced))}}}, to_apply=c""",
        reducer,
    )
    x = np.random.default_rng(0).standard_normal(dims).astype(module.parameters[0].shape.dtype.numpy_dtype)
    x = 1 + x / 100 if combiner == "multiply" else x
    first = prebuilt_program.prebuilt_program(module, CompileOptions(), 1e12, exact=False)
    assert same_bits(first(x, x.dtype.type(3)), native(module)(x, x.dtype.type(3)))


# --- programs that are covered ----------------------------------------------------------------------------------------

COVERED = {
    "quotients of complex numbers by themselves": """x = c128[5] parameter(0)
  y = c128[5] parameter(1)
  n = c128[5] negate(x)
  d = c128[5] divide(n, n)
  s = c128[5] add(d, d)
  t = c128[5] subtract(n, y)
  ROOT r = (c128[5], c128[5]) tuple(s, t)""",
    "element by element": """x = f32[129] parameter(0)
  y = f32[129] parameter(1)
  p = f32[129] multiply(x, y)
  t = f32[129] tanh(p)
  g = pred[129] compare(t, y), direction=GT
  ROOT r = f32[129] select(g, t, x)""",
    "clamped and converted": """x = f64[65] parameter(0)
  low = s16[] parameter(1)
  high = s16[] parameter(2)
  i = s16[65] convert(x)
  a = s16[65] broadcast(low), dimensions={}
  b = s16[65] broadcast(high), dimensions={}
  c = s16[65] clamp(a, i, b)
  ROOT r = bf16[65] convert(c)""",
    "every move": """x = f32[5,8] parameter(0)
  z = f32[] parameter(1)
  t = f32[8,5] transpose(x), dimensions={1,0}
  v = f32[8,5] reverse(t), dimensions={0}
  s = f32[3,4] slice(v), slice={[1:8:3], [1:5]}
  c = f32[6,4] concatenate(s, s), dimensions={0}
  p = f32[16,2] pad(c, z), padding=2_-2_2x-1_-1
  b = f32[3,2,16] broadcast(p), dimensions={2,1}
  h = f32[96] reshape(b)
  k = f32[96] copy(h)
  ROOT r = f32[96] negate(k)""",
    "a turn of six dimensions": """x = u16[2,3,2,3,2,3] parameter(0)
  ROOT t = u16[3,2,3,2,3,2] transpose(x), dimensions={5,4,3,2,1,0}""",
    "elements of each size": """a = s8[7,5] parameter(0)
  b = bf16[7,5] parameter(1)
  c = c64[7,5] parameter(2)
  d = c128[7,5] parameter(3)
  s = s8[5,7] transpose(a), dimensions={1,0}
  t = bf16[5,7] transpose(b), dimensions={1,0}
  u = c64[5,7] transpose(c), dimensions={1,0}
  v = c128[5,7] transpose(d), dimensions={1,0}
  ROOT r = (s8[5,7], bf16[5,7], c64[5,7], c128[5,7]) tuple(s, t, u, v)""",
    "reductions": """x = s32[4,5,6] parameter(0)
  g = pred[4,5,6] parameter(1)
  z = s32[] parameter(2)
  f = pred[] constant(false)
  a = s32[5] reduce(x, z), dimensions={0,2}, to_apply=add_s32
  b = s32[4,5] reduce(x, z), dimensions={2}, to_apply=maximum_s32
  c = s32[5,6] reduce(x, z), dimensions={0}, to_apply=add_s32
  d = pred[] reduce(g, f), dimensions={0,1,2}, to_apply=or_pred
  ROOT r = (s32[5], s32[4,5], s32[5,6], pred[]) tuple(a, b, c, d)""",
    "sums along rows": """x = f32[30,100] parameter(0)
  y = f64[30,17] parameter(1)
  z = c64[3,20] parameter(2)
  a = f32[] constant(1.5)
  b = f64[] constant(0)
  c = c64[] constant((0, 0))
  e = f32[30,100] sine(x)
  s = f32[30] reduce(e, a), dimensions={1}, to_apply=add_f32
  p = f32[30] reduce(x, a), dimensions={1}, to_apply=multiply_f32
  t = f64[30] reduce(y, b), dimensions={1}, to_apply=add_f64
  u = c64[3] reduce(z, c), dimensions={1}, to_apply=add_c64
  ROOT r = (f32[30], f32[30], f64[30], c64[3]) tuple(s, p, t, u)""",
    "the sum of all": """x = f64[7,9] parameter(0)
  z = f64[] constant(-0.0)
  ROOT s = f64[] reduce(x, z), dimensions={0,1}, to_apply=add_f64""",
    "softmax of rows": """x = f32[30,64] parameter(0)
  low = f32[] constant(-inf)
  z = f32[] constant(0)
  m = f32[30] reduce(x, low), dimensions={1}, to_apply=maximum_f32
  mb = f32[30,64] broadcast(m), dimensions={0}
  d = f32[30,64] subtract(x, mb)
  e = f32[30,64] exponential(d)
  s = f32[30] reduce(e, z), dimensions={1}, to_apply=add_f32
  sb = f32[30,64] broadcast(s), dimensions={0}
  ROOT r = f32[30,64] divide(e, sb)""",
    "the norm of rows": """x = f64[20,33] parameter(0)
  w = f64[33] parameter(1)
  z = f64[] constant(0)
  n = f64[] constant(33)
  nb = f64[20] broadcast(n), dimensions={}
  s = f64[20] reduce(x, z), dimensions={1}, to_apply=add_f64
  m = f64[20] divide(s, nb)
  mb = f64[20,33] broadcast(m), dimensions={0}
  d = f64[20,33] subtract(x, mb)
  q = f64[20,33] multiply(d, d)
  t = f64[20] reduce(q, z), dimensions={1}, to_apply=add_f64
  v = f64[20] divide(t, nb)
  i = f64[20] rsqrt(v)
  ib = f64[20,33] broadcast(i), dimensions={0}
  wb = f64[20,33] broadcast(w), dimensions={1}
  k = f64[20,33] multiply(d, ib)
  ROOT r = f64[20,33] multiply(k, wb)""",
    "a result twice": """x = f32[10] parameter(0)
  a = f32[10] negate(x)
  b = f32[10] abs(x)
  ROOT r = (f32[10], f32[10], f32[10]) tuple(a, b, a)""",
    "no result": "x = f32[] parameter(0)\n ROOT r = () tuple()",
    "a tuple of one": "x = f32[9] parameter(0)\n y = f32[9] sine(x)\n ROOT r = (f32[9]) tuple(y)",
    "a parameter": "ROOT x = s64[7] parameter(0)",
    "parameters, one twice": """x = u8[7] parameter(0)
  y = c64[] parameter(1)
  ROOT r = (u8[7], c64[], u8[7]) tuple(x, y, x)""",
    "a constant": "ROOT c = f32[3] constant({1, nan, -0.0})",
    "constants, counted too": """c = s32[] constant(7)
  d = f16[2] constant({1.5, inf})
  i = f32[3,4] iota(), iota_dimension=1
  b = s32[5] broadcast(c), dimensions={}
  ROOT r = (s32[], f16[2], f32[3,4], s32[5]) tuple(c, d, i, b)""",
    "one number for all": """x = f32[] parameter(0)
  e = f32[] exponential(x)
  b = f32[3,50] broadcast(e), dimensions={}
  n = f32[3,50] negate(b)
  t = f32[50,3] transpose(n), dimensions={1,0}
  ROOT r = (f32[50,3], f32[3,50], f32[]) tuple(t, b, e)""",
    "one number for all, among others": """x = f32[] parameter(0)
  y = f32[70] parameter(1)
  b = f32[70] broadcast(x), dimensions={}
  s = f32[70] sine(b)
  a = f32[70] add(y, s)
  c = f32[140] concatenate(s, y), dimensions={0}
  ROOT r = (f32[70], f32[140]) tuple(a, c)""",
    "scans": """x = f32[5,70,6] parameter(0)
  y = s64[700] parameter(1)
  z = f32[] parameter(2)
  o = s64[] constant(1)
  a = f32[5,70,6] reduce-window(x, z), window={size=1x70x1 pad=0_0x69_0x0_0}, to_apply=add_f32
  b = f32[5,70,6] reduce-window(x, z), window={size=1x1x6 pad=0_0x0_0x5_0}, to_apply=multiply_f32
  c = s64[700] reduce-window(y, o), window={size=700 pad=699_0}, to_apply=add_s64
  ROOT r = (f32[5,70,6], f32[5,70,6], s64[700]) tuple(a, b, c)""",
    "extremes of long rows and columns": """x = f64[3,5000] parameter(0)
  y = f32[500,600] parameter(1)
  z = f64[] parameter(2)
  w = f32[] parameter(3)
  a = f64[3] reduce(x, z), dimensions={1}, to_apply=maximum_f64
  b = f64[5000] reduce(x, z), dimensions={0}, to_apply=minimum_f64
  c = f32[] reduce(y, w), dimensions={0,1}, to_apply=minimum_f32
  d = f32[600] reduce(y, w), dimensions={0}, to_apply=maximum_f32
  ROOT r = (f64[3], f64[5000], f32[], f32[600]) tuple(a, b, c, d)""",
    "no dimension": """x = f64[] parameter(0)
  y = f64[] parameter(1)
  a = f64[] atan2(x, y)
  t = f64[] transpose(a), dimensions={}
  ROOT r = f64[] tan(t)""",
    "nothing in it": """x = f32[0] parameter(0)
  y = f32[3,0,4] parameter(1)
  s = f32[0] sine(x)
  t = f32[4,0,3] transpose(y), dimensions={2,1,0}
  c = f32[0] concatenate(x, s), dimensions={0}
  ROOT r = (f32[0], f32[4,0,3], f32[0]) tuple(s, t, c)""",
    "the default layout": """x = f32[3,4]{1,0} parameter(0)
  ROOT r = f32[3,4]{1,0} sine(x)""",
    "unused parameters, and a root that is not last": """x = f32[4] parameter(0)
  u = f32[4] parameter(1)
  y = f32[4] negate(x)
  ROOT r = (f32[4], f32[4]) tuple(y, x)
  w = f32[] parameter(2)
  d = f32[4] add(y, u)""",
    "results in the same memory": """x = s16[6,5] parameter(0)
  n = s16[6,5] not(x)
  a = s16[30] reshape(n)
  b = s16[3,10] bitcast(n)
  p = s16[30] reshape(x)
  ROOT r = (s16[30], s16[3,10], s16[6,5], s16[30]) tuple(a, b, n, p)""",
    "roots of roots": """x = c64[70] parameter(0)
  a = c64[70] sqrt(x)
  b = c64[70] sqrt(a)
  c = c128[70] convert(b)
  d = c128[70] log(c)
  ROOT r = (c64[70], c128[70]) tuple(b, d)""",
    "complex numbers of parts": """x = f64[70] parameter(0)
  y = f32[70] convert(x)
  c = c64[70] complex(y, y)
  m = c64[70] multiply(c, c)
  d = c64[70] divide(m, c)
  ROOT r = c128[70] convert(d)""",
    "the sign of what was an integer": """x = f32[70] parameter(0)
  i = s32[70] convert(x)
  f = f32[70] convert(i)
  s = f32[70] sign(f)
  h = f32[70] asinh(f)
  ROOT r = (f32[70], f32[70]) tuple(s, h)""",
    "there and back": """x = f64[70] parameter(0)
  a = f32[70] convert(x)
  b = f64[70] convert(a)
  d = f64[70] subtract(x, b)
  h = bf16[70] convert(x)
  ROOT r = (f64[70], bf16[70]) tuple(d, h)""",
    "small numbers": """x = f16[70] parameter(0)
  y = bf16[70] parameter(1)
  a = f16[70] add(x, x)
  m = f16[70] multiply(a, x)
  t = f16[70] tanh(m)
  c = bf16[70] multiply(y, y)
  e = bf16[70] exponential(c)
  ROOT r = (f16[70], bf16[70]) tuple(t, e)""",
    "a power": """x = f32[70] parameter(0)
  y = f32[70] parameter(1)
  ROOT r = f32[70] power(x, y)""",
    "exact arithmetic on constants": """x = f32[3] parameter(0)
  a = f32[3] constant({1, 3, -7})
  b = f32[3] constant({3, 0.1, 1e30})
  d = f32[3] divide(a, b)
  s = f32[3] sqrt(b)
  m = f32[3] multiply(d, s)
  ROOT r = f32[3] add(x, m)""",
    "constants among arguments": """x = f64[65] parameter(0)
  c = f64[] constant(0.1)
  b = f64[65] broadcast(c), dimensions={}
  m = f64[65] multiply(x, b)
  s = f64[65] subtract(m, b)
  ROOT r = f64[65] log-plus-one(s)""",
}  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", COVERED)
def test_covered(name):
    assert_same_bits(parsed(COVERED[name]))


@pytest.mark.parametrize("name", COVERED)
def test_results_are_arrays_of_their_own(name):
    module = parsed(COVERED[name])
    given, run = arguments(module, 0), prebuilt(module)
    kept = [a.copy() for a in given]
    made = run(*given)
    results = list(made) if isinstance(made, tuple) else [made]
    again = [r.copy() for r in results]
    for r in results:
        r.reshape(-1).view(np.uint8)[...] = 0xAB
    assert same_bits(given, kept)
    assert same_bits(run(*given), tuple(again) if isinstance(made, tuple) else again[0])
    assert not any(np.shares_memory(a, b) for k, a in enumerate(results) for b in (*results[:k], *given))


HUGE = {
    "sine": (1e5, 1e9, -1e15, 3e38),
    "cosine": (1e5, -1e9, 1e15, 3e38),
    "tan": (-1e5, 1e9, 1e15, -3e38),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("opcode", HUGE)
def test_rare_arguments(opcode, dtype):
    """One rare argument in a block, at each index, and in the remainder after the last block."""
    module = parsed(f"x = {dtype}[150] parameter(0)\n ROOT r = {dtype}[150] {opcode}(x)")
    first, second = prebuilt(module), native(module)
    for at in range(150):
        x = np.linspace(-3.0, 3.0, 150).astype(first.inputs[0].dtype.numpy_dtype)
        x[at] = HUGE[opcode][at % 4]
        assert same_bits(first(x), second(x))


LARGE = """x = f32[{n}] parameter(0)
  y = f32[{n}] parameter(1)
  s = f32[{n}] sine(x)
  m = f32[{n}] multiply(s, y)
  h = bf16[{n}] convert(m)
  ROOT r = (f32[{n}], bf16[{n}]) tuple(m, h)"""


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("combiner", ["maximum", "minimum"])
def test_extremes_meet_rare_elements_everywhere(combiner, dtype):
    worst = -np.inf if combiner == "maximum" else np.inf
    for n in (1, 3, 7, 16, 17, 63, 64, 65, 150, 261):
        module = parsed(f"""x = {dtype}[{n}] parameter(0)
  c = {dtype}[] constant({worst})
  ROOT m = {dtype}[] reduce(x, c), dimensions={{0}}, to_apply={combiner}_{dtype}""")
        first, find = prebuilt(module), getattr(np, combiner).reduce
        padded = np.empty(n + 16, module.parameters[0].shape.dtype.numpy_dtype)
        for place in range(n):
            x = padded[place % 16 :][:n]
            for element, others in ((np.nan, 1.0), (5.0, 1.0), (-5.0, 1.0), (0.0, -0.0), (-0.0, 0.0)):
                x[:] = others
                x[place] = element
                want = find(x) if others == 1 or n == 1 else 0.0 if combiner == "maximum" else -0.0
                assert same_bits(first(x), x.dtype.type(want)), (n, place, element)


@pytest.mark.parametrize("n", [32768, 40000, 131073])
def test_tasks_change_no_bit(n):
    module = parsed(LARGE.format(n=n))
    first, given, before = prebuilt(module), arguments(module, 1), cyxla.threads()
    wanted = native(module)(*given)
    try:
        for count in (1, 2, 8):
            cyxla.threads(count)
            assert same_bits(first(*given), wanted)
    finally:
        cyxla.threads(before)


# --- programs that are not --------------------------------------------------------------------------------------------

FOLDED = r"of constants, which the passes fold"
FEW = "c = f32[8] constant({0.2, 0.3, 0.5, 0.7, 0.11, 0.13, 0.17, 0.19})"
NOT_COVERED = {
    "a function of a constant": (f"{FEW}\n ROOT r = f32[8] sine(c)", f"sine {FOLDED}"),
    "a function of one number": (
        "c = f64[] constant(2)\n b = f64[9] broadcast(c), dimensions={}\n ROOT r = f64[9] log(b)", f"log {FOLDED}"),
    "a function of counted numbers": (
        "i = f32[9] iota(), iota_dimension=0\n ROOT r = f32[9] tanh(i)", f"tanh {FOLDED}"),
    "a power of constants": (f"{FEW}\n ROOT r = f32[8] power(c, c)", f"power {FOLDED}"),
    "a product of complex constants": (
        "c = c64[] constant((1, 2))\n ROOT r = c64[] multiply(c, c)", f"multiply {FOLDED}"),
    "a part of a concatenation": (f"""x = f32[8] parameter(0)
  {FEW}
  s = f32[16] concatenate(x, c), dimensions={{0}}
  p = f32[8] slice(s), slice={{[8:16]}}
  ROOT r = f32[8] cbrt(p)""", f"cbrt {FOLDED}"),
    "a choice between constants": (f"""i = s32[8] parameter(0)
  {FEW}
  n = f32[8] negate(c)
  g = pred[8] compare(i, i), direction=EQ
  p = f32[8] select(g, c, n)
  ROOT r = f32[8] exponential(p)""", f"exponential {FOLDED}"),
    "a choice that is known": (f"""x = f32[8] parameter(0)
  i = s32[8] parameter(1)
  {FEW}
  g = pred[8] compare(i, i), direction=EQ
  p = f32[8] select(g, c, x)
  ROOT r = f32[8] exponential(p)""", f"exponential {FOLDED}"),
    "what is the same, taken away": ("""i = s32[8] parameter(0)
  z = s32[8] subtract(i, i)
  f = f32[8] convert(z)
  ROOT r = f32[8] cosine(f)""", f"cosine {FOLDED}"),
    "integers and a constant": ("""i = s32[8] parameter(0)
  c = s32[] constant(0)
  b = s32[8] broadcast(c), dimensions={}
  a = s32[8] and(i, b)
  f = f64[8] convert(a)
  ROOT r = f64[8] cosine(f)""", f"cosine {FOLDED}"),
    "an empty array with a border": ("""x = f32[0] parameter(0)
  c = f32[] constant(3)
  p = f32[8] pad(x, c), padding=4_4
  ROOT r = f32[8] erf(p)""", f"erf {FOLDED}"),
    "the extreme of nothing": ("""x = f32[0] parameter(0)
  c = f32[] constant(3)
  m = f32[] reduce(x, c), dimensions={0}, to_apply=maximum_f32
  ROOT r = f32[] erf(m)""", f"erf {FOLDED}"),
    "a sum of constants": (f"""{FEW}
  z = f32[] constant(0)
  ROOT r = f32[] reduce(c, z), dimensions={{0}}, to_apply=add_f32""", f"reduce {FOLDED}"),
    "a known exponent": ("""x = f32[8] parameter(0)
  c = f32[] constant(3)
  b = f32[8] broadcast(c), dimensions={}
  ROOT r = f32[8] power(x, b)""", "powers that the passes multiply out"),
    "an exponent that the passes find": ("""x = f32[8] parameter(0)
  i = s32[8] parameter(1)
  c = s32[8] constant({2, 3, 5, 7, 11, 13, 17, 19})
  z = s32[8] xor(i, i)
  o = s32[8] or(z, c)
  f = f32[8] convert(o)
  ROOT r = f32[8] power(x, f)""", "powers that the passes multiply out"),
    "a sum along columns": ("""x = f32[30,64] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[64] reduce(x, z), dimensions={0}, to_apply=add_f32""", "a sum of floats that is not along short rows"),
    "a sum along long rows": ("""x = f32[2,4097] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=add_f32""", "a sum of floats that is not along short rows"),
    "a sum along rows that are too short": ("""x = f64[30,15] parameter(0)
  z = f64[] constant(0)
  ROOT r = f64[30] reduce(x, z), dimensions={1}, to_apply=add_f64""", "a sum of floats that is not along short rows"),
    "a sum of nothing": ("""x = f32[0] parameter(0)
  z = f32[] parameter(1)
  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add_f32""", "a sum of floats that is not along short rows"),
    "much work on a sum": ("""x = f32[500,4096] parameter(0)
  z = f32[] constant(0)
  s = f32[500,4096] sine(x)
  ROOT r = f32[500] reduce(s, z), dimensions={1}, to_apply=add_f32""", "a sum of floats that may be split into parts"),
    "a sum of sums": ("""x = f32[30,64] parameter(0)
  z = f32[] constant(0)
  s = f32[30] reduce(x, z), dimensions={1}, to_apply=add_f32
  ROOT r = f32[] reduce(s, z), dimensions={0}, to_apply=add_f32""", "a sum of floats computed by reduce"),
    "a sum of what was turned": ("""x = f32[64,30] parameter(0)
  z = f32[] constant(0)
  t = f32[30,64] transpose(x), dimensions={1,0}
  ROOT r = f32[30] reduce(t, z), dimensions={1}, to_apply=add_f32""", "a sum of floats computed by transpose"),
    "a product of complex numbers": ("""x = c64[20] parameter(0)
  z = c64[] parameter(1)
  ROOT r = c64[] reduce(x, z), dimensions={0}, to_apply=multiply_c64""", "reduce_multiply_c64 is not prebuilt"),
    "a reduction along nothing": ("""x = s32[20] parameter(0)
  z = s32[] parameter(1)
  ROOT r = s32[20] reduce(x, z), dimensions={}, to_apply=add_s32""", "along no dimension"),
    "a layout": ("""x = f32[3,4]{0,1} parameter(0)
  ROOT r = f32[3,4]{0,1} sine(x)""", r"the layout of f32\[3,4\]"),
    "a dynamic size": ("x = f32[<=8] parameter(0)\n ROOT r = f32[<=8] sine(x)", r"parameter to f32\[<=8\]"),
    "a total order": ("""x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  ROOT r = pred[8] compare(x, y), direction=LT, type=TOTALORDER""", r"compare to pred\[8\]"),
    "a type": ("x = f8e5m2[8] parameter(0)\n ROOT r = f8e5m2[8] negate(x)", "parameter to f8e5m2"),
    "an opcode": ("""x = f32[8] parameter(0)
  ROOT r = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}""", r"dot to f32\[\]"),
    "another opcode": ("x = f32[8] parameter(0)\n ROOT r = s32[8] bitcast-convert(x)", r"bitcast-convert to s32\[8\]"),
    "an order of steps": ("""x = f32[8] parameter(0)
  s = f32[8] sine(x)
  ROOT r = f32[8] negate(x), control-predecessors={s}""", r"negate to f32\[8\]"),
    "a conversion to the same type": (
        "x = f32[8] parameter(0)\n ROOT r = f32[8] convert(x)", "convert of f32 is not prebuilt"),
    "many dimensions": ("""x = f32[2,2,2,2,2,2,2,2,2] parameter(0)
  ROOT r = f32[2,2,2,2,2,2,2,2,2] transpose(x), dimensions={8,7,6,5,4,3,2,1,0}""", "a move of 9 dimensions"),
    "an argument of several arrays": ("""x = (f32[8], f32[8]) parameter(0)
  ROOT r = f32[8] get-tuple-element(x), index=0""", "arguments that are no arrays"),
    "a result in a result": ("""x = f32[8] parameter(0)
  t = (f32[8]) tuple(x)
  ROOT r = ((f32[8])) tuple(t)""", r"tuple to \(f32\[8\]\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_COVERED)
def test_not_covered(name):
    body, reason = NOT_COVERED[name]
    with pytest.raises(NotCoveredError, match=reason):
        prebuilt(parsed(body))


@pytest.mark.parametrize("options", [{"profile": True}, {"donate": (0,)}, {"disabled_passes": ("cse",)}], ids=str)
def test_options_of_native_code(options):
    with pytest.raises(NotCoveredError, match="options that are for native code"):
        prebuilt(parsed("x = f32[8] parameter(0)\n ROOT r = f32[8] negate(x)"), **options)


def test_lanes_are_those_of_native_code():
    assert all(accumulator("add", t).lanes == n for t, n in prebuilt_reductions._LANES.items())


def test_much_work():
    module = parsed(LARGE.format(n=40000))
    with pytest.raises(NotCoveredError, match="more than 20000 ns of work"):
        prebuilt(module, most_ns=20_000.0)
    assert prebuilt(module).cost["ns"] > 20_000.0


# --- all functions ----------------------------------------------------------------------------------------------------

ELEMENTS = 2000


def all_forms(t):
    """A module that has every element-wise opcode on a type; and the functions."""
    w, vector = Writer(0), Shape.array(t, (ELEMENTS,))
    forms = [form for some in FORMS[t].values() for form in some]
    bits, *given = (w.parameter(s) for s in (vector.with_dtype(E.PRED), vector, vector, vector))
    for form in forms:
        operands = [bits if of is not t else x for of, x in zip(form.operands, given, strict=False)]
        w.add(form.opcode, operands, form.attrs, vector.with_dtype(form.result))
    return finished(w), [form.name for form in forms]


def all_reductions(t):
    """A module that has every reduction of a type; and the functions."""
    w = Writer(0)
    x, start = w.parameter(Shape.array(t, (3, ELEMENTS))), w.parameter(Shape.array(t))
    for combiner in REDUCTIONS[t]:
        w.add("reduce", [x, start], {"dimensions": (1,)}, called=[w.reducer(combiner, t)])
    return finished(w), [prebuilt_reductions.forms()[combiner, t] for combiner in REDUCTIONS[t]]


def finished(w):
    """The module, with all but the parameters as its results."""
    made = [v for v in w.values if v.opcode != "parameter"]
    w.entry.root = w.entry.add("tuple", made, shape=Shape.tuple([v.shape for v in made]))
    w.module.verify()
    return w.module


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("t", TYPES, ids=str)
@pytest.mark.parametrize("every", [all_forms, all_reductions])
def test_every_function(every, t):
    module, names = every(t)
    first, second = prebuilt(module), native(module)
    for seed, special in enumerate((0.0, 0.01, 0.8)):
        given = arguments(module, seed, special)
        pairs = zip(names, first(*given), second(*given), strict=True)
        assert [name for name, a, b in pairs if not same_bits(a, b)] == []


def test_every_function_is_called():
    listed = {*prebuilt_elementwise.forms().values(), *prebuilt_reductions.forms().values()}
    called = {name for t in TYPES for every in (all_forms, all_reductions) for name in every(t)[1]}
    assert listed == called
    assert {name + prebuilt_numbers.suffix() for name in called} <= set(library.numbers)


# --- the executable ---------------------------------------------------------------------------------------------------

WAVE = """x = f64[40,30] parameter(0)
  y = f64[40,30] parameter(1)
  k = f64[] parameter(2)
  kb = f64[40,30] broadcast(k), dimensions={}
  a = f64[40,30] tanh(x)
  b = f64[40,30] multiply(a, y)
  c = f64[40,30] tanh(b)
  d = f64[40,30] add(c, kb)
  t = f64[30,40] transpose(d), dimensions={1,0}
  ROOT r = (f64[40,30], f64[30,40]) tuple(d, t)"""


@pytest.fixture(scope="module")
def wave():
    """Return a program, its arguments, and the results of native code."""
    module = parsed(WAVE)
    given = arguments(module, 0, 0.1)
    return prebuilt(module), given, native(module)(*given)


def test_explain(wave):
    said = wave[0].explain().splitlines()
    assert said[0].startswith("5 calls of 4 prebuilt functions, ")
    assert said[1] == "  map_tanh_f64 x2"
    assert sorted(said[2:]) == ["  map_add_f64 x1", "  map_multiply_f64 x1", "  move_8 x1"]
    assert wave[0].tier == "kernels"


def test_memory(wave):
    large = 8 * 40 * 30
    memory = wave[0].memory
    assert memory == {"arguments": 2 * large + 8, "results": 2 * large, "temporaries": 2 * large, "constants": 0}


def test_temporaries_are_used_again():
    lines = ["v0 = f32[1000] parameter(0)", *(f"v{k + 1} = f32[1000] tanh(v{k})" for k in range(100))]
    run = prebuilt(parsed("\n".join([*lines, "ROOT r = f32[1000] negate(v100)"])))
    assert "map_tanh_f32 x100" in run.explain()
    assert run.memory["temporaries"] <= 2 * 4032


def test_bound_arguments(wave):
    run, (x, y, k), wanted = wave
    bound = run.bind({1: y})
    assert same_bits(bound(x, k), wanted)
    assert same_bits(bound.bind({"k": k})(x), wanted)
    assert bound.memory["bound"] == y.nbytes
    assert [str(s) for s in bound.inputs] == ["f64[40,30]", "f64[]"]


def test_pickled(wave):
    run, given, wanted = wave
    assert same_bits(pickle.loads(pickle.dumps(run))(*given), wanted)
    assert same_bits(pickle.loads(pickle.dumps(run.bind({0: given[0]})))(*given[1:]), wanted)


OTHERWISE = {
    "misaligned": lambda a: np.frombuffer(b"?" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    "every second element": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
    "turned": lambda a: a.copy(order="F"),
    "backwards": lambda a: a[::-1].copy()[::-1] if a.ndim else a,
    "swapped bytes": lambda a: a.astype(a.dtype.newbyteorder()),
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
}  # fmt: skip


@pytest.mark.parametrize("how", OTHERWISE)
def test_arguments_in_other_memory(how, wave):
    run, given, wanted = wave
    assert same_bits(run(*map(OTHERWISE[how], given)), wanted)


def test_results_into_arrays(wave):
    run, given, wanted = wave
    out = tuple(np.empty_like(w) for w in wanted)
    made = run(*given, out=out)
    assert all(m is o for m, o in zip(made, out, strict=True))
    assert same_bits(out, wanted)


STRANGE = {
    "strided": lambda w: np.empty((*w.shape[:-1], 2 * w.shape[-1]))[..., ::2],
    "turned": lambda w: np.empty(w.shape, order="F"),
    "misaligned": lambda w: np.empty(w.nbytes + 1, np.uint8)[1:].view(w.dtype).reshape(w.shape),
}  # fmt: skip


@pytest.mark.parametrize("how", STRANGE)
def test_results_into_other_memory(how, wave):
    run, given, wanted = wave
    out = tuple(map(STRANGE[how], wanted))
    run(*given, out=out)
    assert same_bits(out, wanted)


@pytest.mark.parametrize("which", [0, 1])
def test_results_into_arguments(which, wave):
    run, given, wanted = wave
    own = [a.copy() for a in given]
    run(*own, out=(own[which], None))
    assert same_bits(own[which], wanted[0])


def test_results_into_a_part_of_an_argument(wave):
    run, (x, y, k), wanted = wave
    memory = np.concatenate([x, x])
    memory[20:60] = x
    run(memory[20:60], y, k, out=(memory[10:50], None))
    assert same_bits(memory[10:50], wanted[0])


def test_calls_from_several_threads(wave):
    run, given, wanted = wave
    wrong = []

    def call():
        wrong.extend(True for _ in range(200) if not same_bits(run(*given), wanted))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# --- functions of NumPy -----------------------------------------------------------------------------------------------


LEAST = {  # number of functions that are covered, by subject
    "creation": 13, "movement": 52, "indexing": 2, "indices": 8, "reductions": 17, "statistics": 6, "quantiles": 0,
    "histograms": 2, "sorting": 2, "sets": 0, "contractions": 5, "linalg": 10, "fft": 6, "polynomials": 7,
    "mathematics": 19, "convolutions": 5, "logic": 11, "ufuncs": 84, "special": 40, "random": 0,
}  # fmt: skip


def variants(row):
    """Yield calls, shapes and dtypes of a row: all calls on a few dtypes, and the first call on all."""
    few = [row.dtypes[0], *(letter for letter in "fdF" if letter in row.dtypes[1:])]
    for call in row.calls:
        for shapes in row.shapes:
            is_first = call is row.calls[0] and shapes is row.shapes[0]
            for letter in row.dtypes if is_first else few:
                yield call, shapes, letter


def first_covered(row):
    """Return the module of the first variant of a row that is covered, or None."""
    for call, shapes, letter in variants(row):
        arrays = row.arrays(np.random.default_rng(1), shapes, letter)
        module, failure = outcome(cyxla.jit(call).lower, arrays)
        if failure is None and is_covered(module):
            return module
    return None


@pytest.mark.slow_but_every(16)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_functions_of_numpy(subject):
    found = {row.name: first_covered(row) for row in rows(subject)}
    covered = [module for module in found.values() if module is not None]
    assert len(covered) >= LEAST[subject]
    for module in covered:
        assert_same_bits(module, (0.0, 0.4))


def test_opcodes_that_are_covered_at_most():
    assert {*prebuilt_program._STEPS, "tuple"} == coverage.COVERED
