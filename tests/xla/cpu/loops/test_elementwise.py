"""Every element-wise opcode, at every element type that it accepts, compiled, agrees with the interpreter."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.hlo.programs import assert_same, single
from support.strategies import arrays, random_array, special_values

import cyxla
from cyxla.errors import UnimplementedError
from cyxla.types import ElementType, Shape, element_type
from cyxla.xla.cpu.c import scalar
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import OPCODES, HloModule

DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
UNSIGNED_OF = {16: ElementType.U16, 32: ElementType.U32, 64: ElementType.U64, 8: ElementType.U8}
# Sums of rounded parts: what complex functions lose near their zeros is measured by the size of the whole.
COMPLEX_ULP = 16


def comparisons(dtype: ElementType):
    kinds = ["FLOAT", "TOTALORDER"] if dtype.is_float else [None]
    for direction in DIRECTIONS[: 2 if dtype.is_complex else 6]:
        for kind in kinds:
            yield (dtype, dtype), {"direction": direction, "type": kind}, ElementType.PRED


def plain(name: str, dtype: ElementType):
    result = dtype.real_part if name in ("abs", "real", "imag") else dtype
    yield (dtype,) * OPCODES[name].arity[0], {}, ElementType.PRED if name == "is-finite" else result


COMPLEX_OF = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}
FORMATS = ((5, 10), (8, 7), (4, 3), (11, 52), (2, 1), (32, 64), (2**31 - 1, 2**31 - 1))
OWN_VARIANTS = {
    "compare": comparisons,
    "convert": lambda dtype: (((dtype,), {}, to) for to in ElementType if to.is_array),
    "select": lambda dtype: [((ElementType.PRED, dtype, dtype), {}, dtype)],
    "reduce-precision": lambda dtype: [((dtype,), {"exponent_bits": e, "mantissa_bits": m}, dtype) for e, m in FORMATS],
    "stochastic-convert": lambda dtype: (),
    "complex": lambda dtype: [((dtype, dtype), {}, COMPLEX_OF[dtype])] if dtype in COMPLEX_OF else (),
}


def variants(name: str, dtype: ElementType):
    """(operand types, attributes, result type) of an opcode at an element type."""
    return OWN_VARIANTS[name](dtype) if name in OWN_VARIANTS else plain(name, dtype)


def accepted(name: str):
    return (
        [e for e in ElementType if e.is_array]
        if name == "select"
        else sorted(OPCODES[name].accepts, key=lambda e: e.value)
    )


CASES = [
    (name, operands, attrs, result)
    for name, row in OPCODES.items()
    if row.elementwise
    for dtype in accepted(name)
    for operands, attrs, result in variants(name, dtype)
]
NATIVE = [case for case in CASES if scalar.is_supported(case[0], case[3], case[1], case[2])]
LACKING = [case for case in CASES if case not in NATIVE]
# XLA defines no result for infinite complex operands, nor below the smallest number of a type without zero.
UNDEFINED = {("power", ElementType.C64), ("power", ElementType.C128), ("power", ElementType.F8E8M0FNU)}
BATCH = 24  # results of one program: compiling each alone would take the C compiler minutes
VECTORS, REMAINDER = (2, 64), (3, 37)  # a remainder doubles the time of the C compiler
FEW = (7,)  # a quarter of that time


def dims_of(dtype, part, is_last):
    """Return the dimensions of a program.

    Floats of at most 8 bits are computed as f32 and rounded by the same C as in conversions, so that only their
    conversions need vector loops; test_narrow_results_are_rounded_before_they_are_widened has loops over all values.
    """
    if dtype.is_float and dtype.bits <= 8 and part[len(part) // 2][0] != "convert":
        return FEW
    return REMAINDER if is_last else VECTORS


def batches():
    """Yield programs of many instructions on the same parameters, by element type."""
    for dtype in ElementType:
        mine = [case for case in NATIVE if case[1][-1] is dtype]
        for start in range(0, len(mine), BATCH):
            part = mine[start : start + BATCH]
            dims = dims_of(dtype, part, start + BATCH >= len(mine))
            yield pytest.param(dtype, part, dims, id=f"{dtype}-{part[0][0]}-to-{part[-1][0]}")


def program(dtype, cases, dims):
    """A module with one result for each case: parameters 0 to 2 are of the element type, parameter 3 is a predicate."""
    module = HloModule("elementwise")
    module.entry = entry = module.new_computation("main")
    shapes = [Shape.array(t, dims) for t in (dtype, dtype, dtype, ElementType.PRED)]
    params = [entry.add("parameter", attrs={"parameter_number": k}, shape=s) for k, s in enumerate(shapes)]
    results = []
    for name, operands, attrs, result in cases:
        chosen = [params[3], params[0], params[1]] if name == "select" else params[: len(operands)]
        results.append(entry.add(name, chosen, attrs, shape=Shape.array(result, dims)))
    entry.root = entry.add("tuple", results, shape=Shape.tuple([r.shape for r in results]))
    module.verify()
    return module, shapes


def tolerance(name: str, dtype: ElementType) -> float:
    if dtype.is_complex:
        return 0 if name in ("negate", "real", "imag", "add", "subtract") else COMPLEX_ULP
    ulp = OPCODES[name].ulp
    return 1 if ulp and scalar.is_narrow(dtype) else 2 * ulp


@pytest.mark.slow_but_every(13)
@pytest.mark.parametrize("dtype, cases, dims", list(batches()))
def test_compiled_agrees_with_interpreter(dtype, cases, dims):
    module, shapes = program(dtype, cases, dims)
    compiled, oracle = cyxla.compile(module), cyxla.compile(module, platform="interpreter")
    wrong = []
    for seed, special in enumerate((0.0, 0.3, 1.0) * (10 if dims == FEW else 1)):
        args = [random_array(s, 10 * seed + k, special) for k, s in enumerate(shapes)]
        for (name, operands, attrs, result), got, want in zip(cases, compiled(*args), oracle(*args), strict=True):
            if special and (name, dtype) in UNDEFINED:
                continue
            try:
                assert_same(got, want, result, tolerance(name, operands[-1]), floor=1.0 if dtype.is_complex else 0.0)
            except AssertionError as error:
                wrong.append(f"{name} {attrs} -> {result}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name, operands, attrs, result", [
    pytest.param(*case, id=f"{case[0]}-{case[1][-1]}") for case in {(c[0], c[1][-1]): c for c in LACKING}.values()
])  # fmt: skip
def test_unsupported_types_are_refused_by_name(name, operands, attrs, result):
    with pytest.raises(UnimplementedError, match=name):
        cyxla.compile(
            single(name, [Shape.array(t, (3,)) for t in operands], attrs, Shape.array(result, (3,))), cache=False
        )


NOT_FUNCTIONS = ("convert", "reduce-precision", "real", "imag", "is-finite")
FUNCTIONS = [
    name
    for name, row in OPCODES.items()
    if row.elementwise and row.arity == (1, 1) and ElementType.F32 in row.accepts and name not in NOT_FUNCTIONS
]


# Every length up to one vector of the widest kind; behind a vector, remainders that take each narrower vector alone and
# all of them; then either side of more vectors.
LENGTHS = {
    ElementType.F32: [*range(18), 18, 20, 23, 24, 28, 31, 32, 33, 47, 48, 49, 64, 65, 130],
    ElementType.F64: [*range(10), 10, 12, 15, 16, 17, 23, 24, 25, 32, 33, 64, 130],
}


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("dtype, start", [(t, k) for t, lengths in LENGTHS.items() for k in range(0, len(lengths), 7)])
def test_every_length_gives_the_bits_of_one_long_array(dtype, start):
    """Vector loops, their remainders and short arrays round alike."""
    x = np.resize(np.concatenate([special_values(dtype), random_array(Shape.array(dtype, (100,)), 0, 0.0)]), 256)
    cases = [(name, (dtype,), {}, dtype) for name in FUNCTIONS]

    def run(n):
        executable = cyxla.compile(program(dtype, cases, (n,))[0])
        return executable(*[np.ascontiguousarray(x[:n])] * 3, np.zeros(n, bool))

    whole, bits = run(256), f"u{dtype.itemsize}"
    for n in LENGTHS[dtype][start : start + 7]:
        for name, part, long in zip(FUNCTIONS, run(n), whole, strict=True):
            same = (part.view(bits) == long[:n].view(bits)) | (np.isnan(part) & np.isnan(long[:n]))
            assert same.all(), f"{name}, length {n}, element {np.argmin(same)}"


@pytest.mark.parametrize("name", ["add", "divide", "maximum", "power", "atan2"])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_property_on_drawn_arrays(name, data):
    shape = Shape.array("f32", (5, 7))
    module = single(name, [shape, shape])
    args = [data.draw(arrays(shape)) for _ in range(2)]
    got, want = (cyxla.compile(module, platform=p)(*args) for p in ("cpu", "interpreter"))
    assert_same(got, want, shape.dtype, tolerance(name, shape.dtype))


NARROW = [e for e in ElementType if scalar.is_narrow(e)]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_narrow_results_are_rounded_before_they_are_widened(dtype):
    dims = (min(1 << dtype.bits, 1 << 12),)
    module = HloModule("widened")
    module.entry = entry = module.new_computation("main")
    x = entry.add("parameter", attrs={"parameter_number": 0}, shape=Shape.array(dtype, dims))
    opcodes = ("ceil", "floor", "round-nearest-even", "negate", "sign", "abs")
    accepted = [opcode for opcode in opcodes if dtype in OPCODES[opcode].accepts]
    rounded = [entry.add(opcode, [x], shape=x.shape) for opcode in accepted]
    wide = [entry.add("convert", [y], shape=Shape.array(ElementType.F32, dims)) for y in rounded]
    entry.root = entry.add("tuple", wide, shape=Shape.tuple([w.shape for w in wide]))
    numbers = np.arange(dims[0]) if dtype.bits <= 8 else np.arange(dims[0]) * 16 + 7
    kind = np.uint16 if dtype.bits == 16 else np.uint8
    given = numbers.astype(kind).view(dtype.numpy_dtype)
    compiled, oracle = (cyxla.compile(module, platform=p)(given) for p in ("cpu", "interpreter"))
    for opcode, got, want in zip(accepted, compiled, oracle, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=opcode)


BETWEEN = [
    "{i} copy({w})",
    "{i} maximum({w}, {w})",
    "{i} reshape({w})",
    "{i} select({p}, {w}, {w})",
    "s64[{n}] convert({w})",
]


@pytest.mark.parametrize("size", ["", "8", "100"])
@pytest.mark.parametrize(
    "real, integer", [("f32", "s32"), ("f64", "s64"), ("f64", "s32"), ("f32", "s8"), ("f16", "s32")]
)
def test_the_zero_of_an_integer_has_no_sign(real, integer, size):
    lines, count = [], len(BETWEEN)
    for k, between in enumerate(BETWEEN):  # each with a parameter of its own, so that no value has two uses
        made = between.format(i=f"{integer}[{size}]", n=size, w=f"w{k}", p=f"p{k}")
        lines.append(f"""x{k} = {real}[{size}] parameter({k})
            p{k} = pred[{size}] is-finite(x{k})
            w{k} = {integer}[{size}] convert(x{k})
            k{k} = {made}
            y{k} = {real}[{size}] convert(k{k})
            s{k} = {real}[{size}] sign(y{k})""")
    results = f"({', '.join([f'{real}[{size}]'] * count)}) tuple({', '.join(f's{k}' for k in range(count))})"
    text = "\n".join(["ENTRY e {", *lines, f"ROOT t = {results} }}"])
    x = np.linspace(-0.9, -0.1, int(size or 1)).reshape([int(size)] if size else [])
    x = x.astype(element_type(real).numpy_dtype)
    for between, result in zip(BETWEEN, cyxla.compile(text)(*[x] * count), strict=True):
        assert not np.signbit(result).any(), between


def test_the_zero_of_an_integer_has_no_sign_in_complex_numbers():
    text = """ENTRY e { x = c128[8] parameter(0) w = s64[8] convert(x) ROOT y = c128[8] convert(w) }"""
    y = cyxla.compile(text)(np.linspace(-0.9, -0.1, 8) + 1j)
    assert not np.signbit(y.real).any()


CONSTANTS = ["0", "-0", "6", "-1.5", "inf", "-inf", "nan", "1e-40"]


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
def test_extremes_beside_constants(dtype):
    shape = f"{dtype}[64]"
    parts = [f"c{n} = {dtype}[] constant({c})" for n, c in enumerate(CONSTANTS)]
    for n in range(len(CONSTANTS)):
        parts.append(f"b{n} = {shape} broadcast(c{n}), dimensions={{}}")
        for opcode in ("maximum", "minimum"):
            parts.append(f"{opcode}r{n} = {shape} {opcode}(x, b{n})")
            parts.append(f"{opcode}l{n} = {shape} {opcode}(b{n}, x)")
        parts.append(f"clamp{n} = {shape} clamp(c{n}, x, c{(n + 1) % len(CONSTANTS)})")
    names = [p.split(" = ")[0] for p in parts if p[0] in "mc" and " constant" not in p]
    results = f"ROOT t = ({', '.join([shape] * len(names))}) tuple({', '.join(names)})"
    text = "\n".join(["ENTRY e {", f"x = {shape} parameter(0)", *parts, results, "}"])
    kind = Shape.array(element_type(dtype), (64,))
    x = random_array(kind, 3, 0.7)
    x[:4] = [0.0, -0.0, np.inf, np.nan]
    wanted = evaluate(cyxla.hlo.parse_module(text), [x])
    for name, got, want in zip(names, cyxla.compile(text)(x), wanted, strict=True):
        nan = np.isnan(want)
        assert np.array_equal(np.isnan(got), nan), name
        assert np.asarray(got)[~nan].tobytes() == np.asarray(want)[~nan].tobytes(), name


@pytest.mark.parametrize("computed", ["multiply(x, x)", "sqrt(x)", "exponential(x)", "abs(x)", "maximum(x, zero)"])
@pytest.mark.parametrize("size", [1, 33])
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_abs_clears_the_sign_of_nan(dtype, size, computed):
    """C compilers omit it where they hold that a value is not negative."""
    bits = {"f32": 32, "f64": 64}.get(dtype, 16)
    shape = f"{dtype}[{size}]"
    text = f"""ENTRY e {{
      x = {shape} parameter(0)
      z = {dtype}[] constant(0)
      zero = {shape} broadcast(z), dimensions={{}}
      y = {shape} {computed}
      a = {shape} abs(y)
      ROOT r = s{bits}[{size}] bitcast-convert(a) }}"""
    compiled = cyxla.compile(text, platform="cpu")
    x = np.full(size, -np.nan, element_type(dtype).numpy_dtype)
    assert (compiled(x) >= 0).all()
