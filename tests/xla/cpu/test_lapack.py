"""The LAPACK custom calls, natively, against the interpreter; each routine, element type and option, and batches."""

import subprocess
import sys

import numpy as np
import pytest
from support.hlo.differential import flat

import cyxla
from cyxla.errors import DTypeError, UnimplementedError
from cyxla.xla.cpu.calls import host_functions, lapack
from cyxla.xla.evaluator import evaluate

DTYPES = {"s": ("f32", "f4"), "d": ("f64", "f8"), "c": ("c64", "c8"), "z": ("c128", "c16")}
REAL = {"s": "f32", "d": "f64", "c": "f32", "z": "f64"}
COMPLEX = {"s": "c64", "d": "c128", "c": "c64", "z": "c128"}


def square(rng, n):
    return rng.standard_normal((n, n))


def code(character):
    return f"{ord(character)} : ui8"


def geev(letter, n):
    values = [f"{DTYPES[letter][0]}[{n}]"] * (1 if letter in "cz" else 2)
    return [*values, *[f"{COMPLEX[letter]}[{n},{n}]"] * 2, "s32[]"]


def gees(letter, n):
    t = DTYPES[letter][0]
    values = [f"{t}[{n}]"] * (1 if letter in "cz" else 2)
    return [*[f"{t}[{n},{n}]"] * 2, *values, "s32[]", "s32[]"]


# routine, letters, dims of the operands, results (T own type, R its real one), options; n is 5
N = 5
CASES = [
    ("potrf", "sdcz", ["hermitian"], "T[5,5] s32[]", [{"uplo": "L"}, {"uplo": "U"}]),
    ("trsm", "sdcz", ["full", (5, 3)], "T[5,3]", [
        {"side": "L", "uplo": u, "trans_x": t, "diag": d} for u in "LU" for t in "NTC" for d in "NU"]),
    ("trsm", "sdcz", ["full", (3, 5)], "T[3,5]", [{"side": "R", "uplo": "L", "trans_x": "C", "diag": "N"}]),
    ("getrf", "sdcz", [(5, 3)], "T[5,3] s32[3] s32[]", [{}]),
    ("getrf", "sdcz", [(3, 5)], "T[3,5] s32[3] s32[]", [{}]),
    ("geqrf", "sdcz", [(5, 3)], "T[5,3] T[3]", [{}]),
    ("geqrf", "sdcz", [(70, 70)], "T[70,70] T[70]", [{}]),
    ("orgqr", "sd", [(5, 3), (3,)], "T[5,3]", [{}]),
    ("ungqr", "cz", [(5, 3), (3,)], "T[5,3]", [{}]),
    ("ormqr", "sd", [(5, 3), (3,), (5, 4)], "T[5,4]", [
        {"left": "true", "transpose": "true"}, {"left": "true", "transpose": "false"}]),
    ("unmqr", "cz", [(5, 3), (3,), (4, 5)], "T[4,5]", [{"left": "false", "transpose": "true"}]),
    ("syevd", "sd", ["hermitian"], "T[5,5] R[5] s32[]", [{"mode": "V", "uplo": "L"}, {"mode": "V", "uplo": "U"}]),
    ("heevd", "cz", ["hermitian"], "T[5,5] R[5] s32[]", [{"mode": "V", "uplo": "L"}]),
    ("gesdd", "sdcz", [(5, 3)], "T[5,3] R[3] T[5,3] T[3,3] s32[]", [{"mode": "S"}]),
    ("gesdd", "sdcz", [(3, 5)], "T[3,5] R[3] T[3,3] T[5,5] s32[]", [{"mode": "A"}]),
    ("gesdd", "sdcz", [(3, 5)], "T[3,5] R[3] T[3,3] T[5,5] s32[]", [{"mode": "N"}]),
    ("gesvd", "sdcz", [(5, 3)], "T[5,3] R[3] T[5,5] T[3,3] s32[]", [{"mode": "A"}]),
    ("gesvd", "sdcz", [(5, 3)], "T[5,3] R[3] T[5,3] T[3,3] s32[]", [{"mode": "S"}, {"mode": "N"}]),
    ("gees", "sdcz", [(5, 5)], gees, [{"mode": "V", "sort": "N"}, {"mode": "N", "sort": "N"}]),
    ("gehrd", "sdcz", [(5, 5)], "T[5,5] T[4] s32[]", [{"low": "1 : i32", "high": "5 : i32"}]),
    ("geev", "sdcz", [(5, 5)], geev, [{"compute_left": "V", "compute_right": "V"},
                                      {"compute_left": "N", "compute_right": "V"}]),
    ("sytrd", "sd", ["hermitian"], "T[5,5] R[5] R[4] T[4] s32[]", [{"uplo": "L"}, {"uplo": "U"}]),
    ("hetrd", "cz", ["hermitian"], "T[5,5] R[5] R[4] T[4] s32[]", [{"uplo": "L"}]),
    ("gtsv", "sdcz", [(5,), (5,), (5,), (5, 2)], "T[5] T[5] T[5] T[5,2] s32[]", [{}]),
]  # fmt: skip
EACH = [
    pytest.param(f"lapack_{letter}{name}_ffi", letter, operands, results, choices, id=f"{letter}{name}-{k}")
    for k, (name, letters, operands, results, choices) in enumerate(CASES)
    for letter in letters
]


def typed(letter, results, n):
    if callable(results):
        return results(letter, n)
    return [r.replace("T", DTYPES[letter][0]).replace("R", REAL[letter]) for r in results.split()]


def with_batch(text, batch):
    return text.replace("[", f"[{batch}," if not text.endswith("[]") else f"[{batch}") if batch else text


def program(target, letter, dims, results, options, batch=0):
    """A single call."""
    text = programs(target, letter, dims, results, [options], [batch])
    return text.replace("  r0 =", "  ROOT r =").split("  ROOT t =")[0] + "}"


def programs(target, letter, dims, results, choices, batches):
    """A call for each choice of options at each number of matrices; every number has parameters of its own."""
    lines, calls = [], []
    for batch in batches:
        shapes = [with_batch(f"{DTYPES[letter][0]}[{','.join(map(str, d))}]", batch) for d in dims]
        first = len(lines)
        lines += [f"  p{k} = {s} parameter({k})" for k, s in enumerate(shapes, first)]
        args = ", ".join(f"p{k}" for k in range(first, len(lines)))
        outs = [with_batch(r, batch) for r in results]
        shape = f"({', '.join(outs)})" if len(outs) > 1 else outs[0]
        for options in choices:
            config = ", ".join(f"{k} = {code(v) if len(v) == 1 else v}" for k, v in options.items())
            calls.append((shape, f'custom-call({args}), custom_call_target="{target}", backend_config={{{config}}}'))
    lines += [f"  r{k} = {shape} {call}" for k, (shape, call) in enumerate(calls)]
    root = f"({', '.join(s for s, _ in calls)}) tuple({', '.join(f'r{k}' for k in range(len(calls)))})"
    return "\n".join(["ENTRY e {", *lines, f"  ROOT t = {root}", "}"])


def operand(rng, kind, dtype, batch=()):
    if kind == "hermitian":
        a = operand(rng, (N, N), dtype, batch)
        return (a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(N)).astype(dtype)
    if kind == "full":
        return (operand(rng, (N, N), dtype, batch) + 3 * np.eye(N)).astype(dtype)
    a = rng.standard_normal((*batch, *kind))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(a.shape)
    return a.astype(dtype)


def check(text, args, dtype):
    module = cyxla.hlo.parse_module(text)
    got, want = flat(cyxla.compile(module)(*args)), flat(evaluate(module, list(args)))
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (np.asarray(w).dtype, np.shape(w))
        tolerance = 500 * np.finfo(dtype).eps * max(1.0, float(np.abs(np.nan_to_num(w)).max(initial=0)))
        np.testing.assert_allclose(g, w, rtol=0, atol=tolerance)


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("target, letter, operands, results, choices", EACH)
def test_compiled_agrees_with_interpreter(target, letter, operands, results, choices):
    """One matrix, and three in the first and the last type of a routine, with all options, in one program."""
    rng = np.random.default_rng(len(target))
    dtype = DTYPES[letter][1]
    one, three = ([operand(rng, kind, dtype, batch) for kind in operands] for batch in ((), (3,)))
    has_batch = letter in "sz"
    text = programs(target, letter, [a.shape for a in one], typed(letter, results, N), choices, (0, 3)[: 1 + has_batch])
    check(text, [*one, *three] if has_batch else one, dtype)


@pytest.mark.parametrize("target, letter, operands, results, options", [
    pytest.param(f"lapack_{letter}{name}_ffi", letter, [(3, 3)], results, {"mode": "S" if "gesdd" in name else "V"},
                 id=letter + name)
    for name, letters, results in [
        ("syevd", "s", "T[3,3] R[3] s32[]"), ("heevd", "z", "T[3,3] R[3] s32[]"), ("gees", "dc", gees),
        ("gesdd", "dc", "T[3,3] R[3] T[3,3] T[3,3] s32[]"), ("geev", "sz", geev)]
    for letter in letters
])  # fmt: skip
def test_matrices_that_are_not_finite(target, letter, operands, results, options):
    a = np.eye(3, dtype=DTYPES[letter][1])
    a[1, 1] = np.nan
    module = cyxla.hlo.parse_module(program(target, letter, [(3, 3)], typed(letter, results, 3), options))
    got, want = flat(cyxla.compile(module)(a)), flat(evaluate(module, [a]))
    assert got[-1] == want[-1] == -4
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.isnan(g), np.isnan(w))


def test_failures_are_reported_in_info():
    text = program("lapack_dpotrf_ffi", "d", [(2, 2)], ["f64[2,2]", "s32[]"], {"uplo": "L"}, 2)
    args = [np.array([[[1.0, 2], [2, 1]], [[4.0, 0], [0, 9]]])]
    assert cyxla.compile(text)(*args)[1].tolist() == [2, 0]
    text = program("lapack_dgetrf_ffi", "d", [(2, 2)], ["f64[2,2]", "s32[2]", "s32[]"], {})
    assert cyxla.compile(text)(np.zeros((2, 2)))[2] == 1


def test_pivots_marked_beforehand():
    rng = np.random.default_rng(3)
    text = """ENTRY e {
      a = f64[5,4] parameter(0)
      fixed = s32[4] constant({0, 0, 1, 0})
      ROOT r = (f64[5,4], s32[4], f64[4]) custom-call(a, fixed), custom_call_target="lapack_dgeqp3_ffi"
    }"""
    check(text, [rng.standard_normal((5, 4))], "f8")
    check(text.replace("1, 0}", "0, 0}").replace("f64", "c128").replace("dge", "zge"), [operand(rng, (5, 4), "c16")],
          "c16")  # fmt: skip


def test_matrices_without_elements():
    text = program("lapack_sgetrf_ffi", "s", [(0, 0)], ["f32[0,0]", "s32[0]", "s32[]"], {}, 2)
    assert cyxla.compile(text)(np.zeros((2, 0, 0), "f4"))[2].tolist() == [0, 0]


def test_wrong_shapes_and_types():
    with pytest.raises(DTypeError, match="custom-call"):
        cyxla.compile(program("lapack_dgetrf_ffi", "s", [(2, 2)], ["f32[2,2]", "s32[2]", "s32[]"], {}))
    with pytest.raises(UnimplementedError):
        host_functions.address("system")


def test_every_target_of_the_interpreter_has_native_code():
    from cyxla.xla.evaluator.custom_calls import custom_call_targets

    wanted = [t for t in custom_call_targets() if t.startswith("lapack_")]
    assert wanted
    assert all(t in lapack.ROUTINES for t in wanted)


def test_from_the_disk_cache_in_a_new_process(tmp_path):
    text = program("lapack_dgetrf_ffi", "d", [(3, 3)], ["f64[3,3]", "s32[3]", "s32[]"], {})
    script = f"""
import sys, numpy as np, cyxla
run = cyxla.compile({text!r})
print("cyxla.xla.cpu.lowering" in sys.modules, run(np.array([[0., 1, 0], [2, 0, 0], [0, 0, 4]]))[1].tolist())
"""
    import os

    said = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "CYXLA_CACHE_DIR": str(tmp_path), "CYXLA_CACHE": "1"},
            capture_output=True, text=True, check=True, timeout=600,
        ).stdout
        for _ in range(2)
    ]  # fmt: skip
    assert said == ["True [2, 2, 3]\n", "False [2, 2, 3]\n"]


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (50, 50), (2, 4, 4)], ids=str)
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_lu_of_complex_matrices(dtype, shape):
    *batch, m, n = shape

    def typed(element, *dims):
        return f"{element}[{','.join(map(str, dims))}]"

    results = ", ".join([typed(dtype, *shape), typed("s32", *batch, min(m, n)), typed("s32", *batch, m)])
    program_text = f"""HloModule lu
ENTRY e {{
  a = {typed(dtype, *shape)} parameter(0)
  ROOT lu = ({results}) custom-call(a), custom_call_target="LuDecomposition"
}}"""
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(DTYPES["c" if dtype == "c64" else "z"][1])
    executable = cyxla.compile(program_text)
    assert [k.kind for k in executable.explanation().kernels] == ["lapack"]
    for ours, expected in zip(executable(a), cyxla.compile(program_text, platform="interpreter")(a), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4 if dtype == "c64" else 1e-12)
