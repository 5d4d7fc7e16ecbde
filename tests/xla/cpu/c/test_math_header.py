"""The elementary functions of the headers: accuracy, special values, vectorisation, independence of libm."""

import ctypes
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builds.shared_builds import build_once

from cyxla.xla.hlo import OPCODES

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None or platform.machine() != "x86_64", reason="needs gcc on x86-64"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

INCLUDE = Path(__file__).parents[4] / "include" / "cyxla"
HEADERS = ("abi.h", "scalar.h", "math.h", "math_inverse.h")
INCLUDES = "".join(f'#include "{INCLUDE / name}"\n' for name in HEADERS)
FLAGS = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-w"]
VECTOR = ["-ftree-vectorize", "-mprefer-vector-width=512"]
ISA = {
    "v1": [],
    "v2": ["-msse4.2"],
    "v3": ["-mavx2", "-mfma", "-mbmi2"],
    "v4": ["-mavx2", "-mfma", "-mbmi2", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq"],
}
NEEDS = {"v1": "sse2", "v2": "sse4.2", "v3": "fma", "v4": "avx512dq"}
CTYPE = {"f32": "float", "f64": "double"}
DTYPE = {"f32": np.float32, "f64": np.float64}

# name -> (the same in the long double of C's own library, largest error in ulp with FMA)
UNARY = {
    "exponential": ("expl(x)", 1.1),
    "exponential_minus_one": ("expm1l(x)", 1.8),
    "log": ("logl(x)", 1.0),
    "log_plus_one": ("log1pl(x)", 1.6),
    "logistic": ("1 / (1 + expl(-x))", 1.7),
    "tanh": ("tanhl(x)", 1.5),
    "sinh": ("sinhl(x)", 1.6),
    "cosh": ("coshl(x)", 1.5),
    "erf": ("erfl(x)", 1.7),
    "rsqrt": ("1 / sqrtl(x)", 1.5),
    "sqrt": ("sqrtl(x)", 0.5),
    "cbrt": ("cbrtl(x)", 1.0),
    "sine": ("sinl(x)", 1.6),
    "cosine": ("cosl(x)", 1.6),
    "tan": ("tanl(x)", 2.0),
    "asin": ("asinl(x)", 1.2),
    "acos": ("acosl(x)", 1.2),
    "atan": ("atanl(x)", 1.9),
    "asinh": ("asinhl(x)", 1.6),
    "acosh": ("acoshl(x)", 2.0),
    "atanh": ("atanhl(x)", 1.6),
    "floor": ("floorl(x)", 0),
    "ceil": ("ceill(x)", 0),
    "round_nearest_even": ("rintl(x)", 0),
    "round_nearest_afz": ("roundl(x)", 0),
    "sign": ("x != x || x == 0 ? x : copysignl(1, x)", 0),
    "abs": ("fabsl(x)", 0),
}
BINARY = {
    "power": ("powl(x, z)", 1.3),
    "atan2": ("atan2l(x, z)", 2.0),
    "hypot": ("hypotl(x, z)", 1.1),
    "remainder": ("fmodl(x, z)", 0),
}
ALL = UNARY | BINARY
DECAY = "exp_decay"  # the exponential of what is not above zero
SLOW = re.findall(r"\w+", re.search(r"/\* slow: (.*) \*/", (INCLUDE / "math.h").read_text())[1])
# Without FMA the products of the reductions and remainders round.
PLAIN_LIMIT = 2.5
INF, NAN = float("inf"), float("nan")
EDGES = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 2.5, -2.5, 3.0, -3.0, 4.0, -4.0, 8.0, -8.0, INF, -INF, NAN,
    1e-45, -1e-45, 1e-40, -1e-40, 5e-324, -5e-324, 1e-310, 2.0**-126, 2.0**-1022, 3.4e38, -3.4e38, 1.7e308, -1.7e308,
    88.7, -88.7, 89.5, 103.9, -103.9, -104.5, 709.7, 709.8, 710.4, 710.5, -745.1, -745.2, 1e5, -1e5, 1e22, -1e22,
    0.49999997, 0.49999999999999994, 4194304.5, 8388607.5, 8388609.0, -8388609.0, 2.0**52 + 1, 2.0**53, 2.0**53 + 2,
    -(2.0**53), 1e-5, 1e-8, 0.99999994, 1.0000001,
]  # fmt: skip


def arguments(name: str) -> str:
    return "a[i], b[i]" if name in BINARY else "a[i]"


def loop(name: str, kind: str) -> str:
    """Return an array loop in the form of generated code: blocks of constant trip count, then the remainder."""
    c, call = CTYPE[kind], f"cyx_{name}_{kind}"
    lanes, slow = arguments(name), f"{name}_{kind}" in SLOW
    flag = f"s |= {call}_needs_slow({lanes});" if slow else ""
    patch = f"if (s) for (long i = 0; i < N; ++i) if ({call}_needs_slow({lanes})) y[i] = {call}_slow({lanes});"
    block = f"for (long i = 0; i < N; ++i) {{ y[i] = {call}({lanes}); {flag} }} {patch if slow else ''}"
    return (
        f"void {name}_{kind}(const {c} *restrict a, const {c} *restrict b, {c} *restrict y, long n) {{\n"
        f"  uint{kind[1:]}_t s = 0;\n"
        f"  for (; n >= 64; n -= 64, a += 64, b += 64, y += 64) {{ {block.replace('N', '64')} }}\n"
        f"  {block.replace('N', 'n')}\n}}\n"
    )


@cache
def program() -> str:
    return "\n".join([INCLUDES, *(loop(n, k) for n in (*ALL, DECAY) for k in CTYPE)])


def compile_c(folder: Path, name: str, text: str, flags: list[str], suffix: str = ".so") -> Path:
    source, target = folder / f"{name}.c", folder / f"{name}{suffix}"
    source.write_text(text)
    subprocess.run(["gcc", *flags, str(source), "-o", str(target)], check=True)
    return target


def link(listing: Path) -> Path:
    target = listing.with_suffix(".so")
    subprocess.run(["gcc", "-shared", "-nostdlib", str(listing), "-o", str(target)], check=True)
    return target


class Functions:
    """The loops of one shared object."""

    def __init__(self, path: Path, isa: str) -> None:
        self.isa, self._library = isa, ctypes.CDLL(str(path))

    def call(self, name: str, kind: str, x: np.ndarray, z: np.ndarray | None = None) -> np.ndarray:
        x = np.ascontiguousarray(x, DTYPE[kind])
        z = x if z is None else np.ascontiguousarray(z, DTYPE[kind])
        y = np.empty_like(x)
        self._library[f"{name}_{kind}"](*(ctypes.c_void_p(v.ctypes.data) for v in (x, z, y)), ctypes.c_long(x.size))
        return y


class Reference:
    """C's own library in long double."""

    def __init__(self, folder: Path) -> None:
        loops = (
            f"void ref_{name}(const double *a, const double *b, long double *y, long n)"
            f"{{ for (long i = 0; i < n; ++i) {{ long double x = a[i], z = b[i]; y[i] = {form}; }} }}"
            for name, (form, _) in ALL.items()
        )
        text = "#define _GNU_SOURCE\n#include <math.h>\n" + "\n".join(loops)
        probes = "".join(
            f'int has_{i}(void) {{ __builtin_cpu_init(); return !!__builtin_cpu_supports("{f}"); }}\n'
            for i, f in NEEDS.items()
        )
        flags = ["-O1", "-fPIC", "-shared", "-w", "-Wl,--no-as-needed", "-lm"]
        self.library = ctypes.CDLL(str(compile_c(folder, "reference", text + "\n" + probes, flags)))

    def call(self, name: str, x: np.ndarray, z: np.ndarray | None = None) -> np.ndarray:
        x = np.ascontiguousarray(x, np.float64)
        z = x if z is None else np.ascontiguousarray(z, np.float64)
        y = np.empty(x.size, np.longdouble)
        self.library[f"ref_{name}"](*(ctypes.c_void_p(v.ctypes.data) for v in (x, z, y)), ctypes.c_long(x.size))
        return y


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return Reference(tmp_path_factory.mktemp("reference"))


@pytest.fixture(scope="module")
def listings(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The assembly of the program by processor level, beside its shared object."""

    def listing(isa: str) -> Path:
        flags = [*FLAGS, *VECTOR, *ISA[isa], "-S"]
        build = build_once(tmp_path_factory, f"math_{isa}", lambda p: link(compile_c(p, isa, program(), flags, ".s")))
        return build / f"{isa}.s"

    return cache(listing)


@pytest.fixture(scope="module", params=["v2", "v3", "v4"])
def functions(request: pytest.FixtureRequest, reference: Reference, listings: Callable[[str], Path]) -> Functions:
    if not reference.library[f"has_{request.param}"]():
        pytest.skip(f"this processor lacks {NEEDS[request.param]}")
    return Functions(listings(request.param).with_suffix(".so"), request.param)


def limit(functions: Functions, name: str) -> float:
    exact = ALL[name][1] <= 0.5
    return ALL[name][1] if exact or functions.isa != "v2" else max(PLAIN_LIMIT, ALL[name][1])


def test_errors_are_within_the_bounds_of_the_opcodes():
    """Every function that is not exact is measured here; without FMA it may be off by half a unit more."""
    rows = {name.replace("-", "_"): row for name, row in OPCODES.items()}
    assert [name for name, row in rows.items() if row.ulp and ALL[name][1] > row.ulp] == []
    assert [name for name, (_, bound) in ALL.items() if bound and name in rows and not rows[name].ulp] == []
    assert max(row.ulp for row in rows.values()) + 0.5 == PLAIN_LIMIT


def error_in_ulp(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Error against a long double, infinite where a NaN, an infinity or the sign of a zero is wrong."""
    info = np.finfo(got.dtype)
    rounded = want.astype(got.dtype)
    exponent = np.frexp(np.abs(want))[1]
    ulp = np.ldexp(np.longdouble(1), np.maximum(exponent, info.minexp + 1) - info.nmant - 1)
    finite = np.where(
        np.isinf(got), np.copysign(np.ldexp(np.longdouble(1), info.maxexp), got), got.astype(np.longdouble)
    )
    error = np.abs(finite - want) / ulp
    same = (got == rounded) & (np.signbit(got) == np.signbit(rounded))
    error = np.where(same & (np.isinf(got) | (got == 0)), 0, error)
    both_nan = np.isnan(got) & np.isnan(want)
    error = np.where(both_nan, 0, error)
    wrong = (np.isnan(got) != np.isnan(want)) | (np.isinf(want) & ~same) | ((want == 0) & ~same)
    return np.where(wrong, np.inf, error)


def check(functions: Functions, name: str, got: np.ndarray, want: np.ndarray, *inputs: np.ndarray) -> None:
    error = error_in_ulp(got, want)
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    assert error[worst] <= limit(functions, name), (
        f"{name}{tuple(float(v[worst]) for v in inputs)} = {got[worst]!r}, not {want[worst]!r}: {error[worst]:.3f} ulp"
    )


def doubles(count: int, seed: int) -> np.ndarray:
    """Random doubles: any bit pattern, near one, over moderate exponents, with small integer parts."""
    rng = np.random.default_rng(seed)
    any_bits = rng.integers(0, 2**64, count, np.uint64).view(np.float64)
    sign = rng.choice([-1.0, 1.0], count)
    near_one = sign * rng.uniform(0, 2, count)
    spread = sign * np.ldexp(rng.uniform(1, 2, count), rng.integers(-60, 12, count))
    return np.concatenate([any_bits, near_one, spread, rng.uniform(-40, 40, count), EDGES])


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("name", UNARY)
def test_f32_over_all_exponents(functions: Functions, reference: Reference, name: str) -> None:
    bits = np.arange(0, 2**32, 8191 if functions.isa == "v4" else 65521, np.uint32)
    x = np.concatenate([bits.view(np.float32), np.array(EDGES, np.float32)])
    check(functions, name, functions.call(name, "f32", x), reference.call(name, x), x)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", UNARY)
def test_f64_at_random(functions: Functions, reference: Reference, name: str) -> None:
    x = doubles(20_000, 1)
    check(functions, name, functions.call(name, "f64", x), reference.call(name, x), x)


@pytest.mark.parametrize("kind, step", [("f32", 6151), ("f64", 2**44 - 3)])
def test_decay_has_the_bits_of_the_exponential(functions: Functions, kind: str, step: int) -> None:
    unsigned = np.dtype(f"u{DTYPE[kind]().itemsize}")
    bits = np.arange(0, 2 ** (8 * unsigned.itemsize), step, unsigned).view(DTYPE[kind])
    x = np.concatenate([bits[~(bits > 0)], -np.linspace(0, 800, 50_000), EDGES]).astype(DTYPE[kind])
    x = x[~(x > 0)]
    assert functions.call(DECAY, kind, x).tobytes() == functions.call("exponential", kind, x).tobytes()


@pytest.mark.parametrize("kind", CTYPE)
@pytest.mark.parametrize("name", BINARY)
def test_binary_edges(functions: Functions, reference: Reference, name: str, kind: str) -> None:
    edges = np.array(EDGES, DTYPE[kind])
    x, z = (v.ravel() for v in np.meshgrid(edges, edges))
    check(functions, name, functions.call(name, kind, x, z), reference.call(name, x, z), x, z)


@pytest.mark.parametrize("kind", CTYPE)
@pytest.mark.parametrize("name", BINARY)
def test_binary_at_random(functions: Functions, reference: Reference, name: str, kind: str) -> None:
    x, z = (
        doubles(20_000, 2).astype(DTYPE[kind]),
        np.random.default_rng(3).permutation(doubles(20_000, 4)).astype(DTYPE[kind]),
    )
    check(functions, name, functions.call(name, kind, x, z), reference.call(name, x, z), x, z)


@pytest.mark.parametrize("kind, span", [("f32", 150), ("f64", 1075)])
def test_power_over_all_results(functions: Functions, reference: Reference, kind: str, span: int) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(0.5, 2, 20_000), 1 + rng.uniform(-1e-4, 1e-4, 20_000)]).astype(DTYPE[kind])
    x[x == 1] = 3
    z = (rng.uniform(-span, span, x.size) / np.log2(x.astype(np.float64))).astype(DTYPE[kind])
    check(functions, "power", functions.call("power", kind, x, z), reference.call("power", x, z), x, z)


@pytest.mark.parametrize("kind", CTYPE)
@pytest.mark.parametrize("name", ["sine", "cosine", "tan"])
def test_huge_and_nearly_cancelling_angles(functions: Functions, reference: Reference, name: str, kind: str) -> None:
    # Multiples of pi / 2 rounded to the type: their reduced arguments hang on the last part of pi.
    multiples = np.arange(1, 64_000, 7, np.longdouble) * (np.arctan2(np.longdouble(1), np.longdouble(0)))
    powers = np.ldexp(1.0, np.arange(1024 if kind == "f64" else 128))
    worst = np.array([6381956970095103.0 * 2.0**797, 16367173.0 * 2.0**72, 2.0**1023 * 1.9])
    x = np.concatenate([multiples.astype(DTYPE[kind]), powers, 1.7 * powers, worst]).astype(DTYPE[kind])
    check(functions, name, functions.call(name, kind, x), reference.call(name, x), x)


SIGNED = [
    ("sqrt", -0.0, -0.0), ("rsqrt", 0.0, INF), ("rsqrt", -0.0, -INF), ("rsqrt", INF, 0.0), ("log", 0.0, -INF),
    ("log", -0.0, -INF), ("log", -1.0, NAN), ("log_plus_one", -1.0, -INF), ("log_plus_one", -2.0, NAN),
    ("log_plus_one", -0.0, -0.0), ("cbrt", -8.0, -2.0), ("cbrt", -0.0, -0.0), ("exponential", -INF, 0.0),
    ("exponential", INF, INF), ("exponential_minus_one", -0.0, -0.0), ("exponential_minus_one", -INF, -1.0),
    ("logistic", -INF, 0.0), ("logistic", INF, 1.0), ("logistic", 0.0, 0.5), ("sine", -0.0, -0.0), ("sine", INF, NAN),
    ("cosine", -0.0, 1.0), ("cosine", -INF, NAN), ("tan", -0.0, -0.0), ("tan", INF, NAN), ("tanh", -0.0, -0.0),
    ("tanh", -INF, -1.0), ("asinh", -0.0, -0.0), ("asinh", -INF, -INF), ("acosh", 1.0, 0.0), ("acosh", 0.5, NAN),
    ("acosh", -3.0, NAN), ("atanh", -0.0, -0.0), ("atanh", 1.0, INF), ("atanh", -1.0, -INF), ("atanh", 1.5, NAN),
    ("asin", 2.0, NAN), ("asin", -0.0, -0.0), ("acos", 1.0, 0.0), ("acos", -2.0, NAN), ("erf", -0.0, -0.0),
    ("erf", INF, 1.0), ("erf", -INF, -1.0), ("atan", -0.0, -0.0), ("sinh", -0.0, -0.0), ("cosh", -INF, INF),
    ("sign", -0.0, -0.0), ("sign", -INF, -1.0), ("sign", 1e-45, 1.0), ("abs", -0.0, 0.0),
    ("round_nearest_afz", -0.4, -0.0), ("round_nearest_afz", 2.5, 3.0), ("round_nearest_even", 2.5, 2.0),
    ("round_nearest_even", -0.5, -0.0), ("floor", -0.0, -0.0), ("ceil", -0.5, -0.0),
]  # fmt: skip


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("kind", CTYPE)
@pytest.mark.parametrize("name, x, want", SIGNED)
def test_special_values(functions: Functions, name: str, kind: str, x: float, want: float) -> None:
    got = functions.call(name, kind, np.array([x if kind == "f32" or x != 1e-45 else 5e-324]))[0]
    assert np.isnan(got) if np.isnan(want) else (got == want and np.signbit(got) == np.signbit(want))


POWERS = [
    (NAN, 0.0, 1.0), (1.0, NAN, 1.0), (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (-8.0, 1 / 3, NAN), (-2.0, 3.0, -8.0),
    (-0.0, -3.0, -INF), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (0.0, -2.0, INF), (-INF, 3.0, -INF), (-INF, -3.0, -0.0),
    (-INF, 0.5, INF), (INF, -1.0, 0.0), (0.5, INF, 0.0), (0.5, -INF, INF), (2.0, INF, INF), (NAN, 1.0, NAN),
    (2.0, NAN, NAN),
]  # fmt: skip


@pytest.mark.parametrize("kind", CTYPE)
@pytest.mark.parametrize("x, y, want", POWERS)
def test_power_of_special_values(functions: Functions, kind: str, x: float, y: float, want: float) -> None:
    got = functions.call("power", kind, np.array([x]), np.array([y]))[0]
    assert np.isnan(got) if np.isnan(want) else (got == want and np.signbit(got) == np.signbit(want))


@pytest.mark.slow
def test_a_lane_does_not_depend_on_its_place(functions: Functions, tmp_path: Path) -> None:
    """Every length up to two blocks and a bit gives the bits that a loop over single elements gives."""
    flags = [*FLAGS, "-fno-tree-vectorize", "-fno-tree-slp-vectorize", *ISA[functions.isa], "-nostdlib"]
    single = Functions(compile_c(tmp_path, "single", program(), flags), functions.isa)
    x, z = np.concatenate([EDGES, doubles(30, 6)])[:130], np.random.default_rng(7).permutation(doubles(40, 8))[:130]
    for name in ALL:
        for kind, dtype in DTYPE.items():
            a, b = x.astype(dtype), z.astype(dtype)
            want = single.call(name, kind, a, b)
            for length in range(131):
                got = functions.call(name, kind, a[:length], b[:length])
                assert np.array_equal(got, want[:length], equal_nan=True), (name, kind, length)
                assert np.array_equal(
                    np.signbit(got) | np.isnan(got), np.signbit(want[:length]) | np.isnan(want[:length])
                )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("isa, register", [("v2", "xmm"), ("v3", "ymm"), ("v4", "zmm")])
def test_loops_are_vectorised(listings: Callable[[str], Path], isa: str, register: str) -> None:
    text = listings(isa).read_text()
    packed = re.compile(rf"\tv?(?:add|sub|mul|div|sqrt|round|rndscale|fn?m\w+?|max)p[sd]\t.*%{register}")
    for name in set(ALL) - {"remainder", "abs", "sign"}:
        for kind in CTYPE:
            body = re.search(rf"^{name}_{kind}:\n(.*?)\n\t\.size\t{name}_{kind}", text, re.S | re.M)[1]
            assert packed.search(body), f"{name}_{kind} is not vectorised for {isa}"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("isa", ISA)
def test_nothing_is_called(listings: Callable[[str], Path], isa: str) -> None:
    path = listings(isa).with_suffix(".so")
    undefined = subprocess.run(["nm", "-u", str(path)], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"\bU (\S+)", undefined)) <= {"memcpy", "memset"}


def test_blocks_build_on_earlier_ones() -> None:
    defined: set[str] = set()
    for header in HEADERS[1:]:
        for block in (INCLUDE / header).read_text().split("\n\n"):
            code = re.sub(r"/\*.*?\*/", "", block, flags=re.S)
            names = re.findall(r"\b(?:cyx|CYX)_\w+", code)
            own = re.findall(r"^(?:#define |static |typedef ).*?\b((?:cyx|CYX)_(?!INLINE|COLD)\w+)", code, re.M)
            own += re.findall(r"^#define (CYX_\w+)", code, re.M)
            assert len(set(own)) <= 1 or header == "scalar.h", f"{header}: a block defines {own}"
            assert set(names) <= defined | set(own), (
                f"{header}: {set(names) - defined - set(own)} before its definition"
            )
            defined |= set(own)


@pytest.mark.parametrize("kind", CTYPE)
@given(data=st.data())
def test_remainder_is_exact(functions: Functions, kind: str, data: st.DataObject) -> None:
    numbers = st.floats(width=int(kind[1:]))
    x, y = data.draw(numbers), data.draw(numbers)
    got = functions.call("remainder", kind, np.array([x]), np.array([y]))[0]
    want = np.fmod(DTYPE[kind](x), DTYPE[kind](y))
    assert np.isnan(got) if np.isnan(want) else (got == want and np.signbit(got) == np.signbit(want))


@pytest.mark.parametrize("kind", CTYPE)
def test_is_finite(kind: str, tmp_path: Path) -> None:
    text = INCLUDES
    c = CTYPE[kind]
    body = f"for (long i = 0; i < n; ++i) y[i] = cyx_is_finite_{kind}(x[i]);"
    text += f"void finite(const {c} *x, uint8_t *y, long n) {{ {body} }}"
    library = ctypes.CDLL(str(compile_c(tmp_path, "finite", text, [*FLAGS, "-msse4.2"])))
    x = np.array(EDGES, DTYPE[kind])
    y = np.empty(x.size, np.uint8)
    library.finite(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_long(x.size))
    assert np.array_equal(y.astype(bool), np.isfinite(x))
