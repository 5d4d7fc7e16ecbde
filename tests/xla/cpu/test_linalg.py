"""Blocked linear algebra against the interpreter and the definitions: sizes around blocks, forms, batches."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import flat

import cyxla
from cyxla.xla.evaluator import evaluate

TYPES = {"f32": np.float32, "f64": np.float64}
SIZES = (1, 7, 24, 48, 49, 130)


def program(target: str, operands: list[str], result: str, attributes: str = "") -> str:
    """A program of one instruction; a target with a capital letter or an underscore is a custom call."""
    call = "custom-call" if target != target.lower() or "_" in target else target
    tail = [f'custom_call_target="{target}"'] if call != target else []
    lines = [f"  p{k} = {shape} parameter({k})" for k, shape in enumerate(operands)]
    given = ", ".join(f"p{k}" for k in range(len(operands)))
    tail = ", ".join([f"{call}({given})", *tail, *([attributes] if attributes else [])])
    return "\n".join(["ENTRY e {", *lines, f"  ROOT r = {result} {tail}", "}"])


def call_of(target: str, operands: list[str], result: str, attributes: str = "") -> str:
    """An instruction but for its name."""
    tail = program(target, [""] * len(operands), result, attributes).split("ROOT r = ")[1].removesuffix("\n}")
    arguments = ", ".join(f"p{k}" for k in range(len(operands)))
    return tail.replace(f"({arguments})", f"({', '.join(operands)})", 1)


def shape_of(x):
    return f"{'f32' if x.dtype == np.float32 else 'f64'}[{','.join(map(str, x.shape))}]"


def tolerance(x, scale=200):
    return scale * np.finfo(x.dtype).eps


def run(target, args, result, attributes=""):
    text = program(target, [shape_of(a) for a in args], result, attributes)
    compiled = cyxla.compile(text)
    assert "python" not in compiled.explain()
    return compiled(*args), evaluate(cyxla.hlo.parse_module(text), list(args))


def run_all(problems):
    """Return the results of `run` for each (target, arguments, result, attributes), from one program."""
    lines, calls, given = [], [], []
    for target, args, result, attributes in problems:
        names = [f"p{len(given) + k}" for k in range(len(args))]
        lines += [f"  {p} = {shape_of(a)} parameter({p[1:]})" for p, a in zip(names, args, strict=True)]
        calls.append(f"  r{len(calls)} = {call_of(target, names, result, attributes)}")
        given += args
    results = ", ".join(result for _, _, result, _ in problems)
    root = f"  ROOT t = ({results}) tuple({', '.join(f'r{k}' for k in range(len(calls)))})"
    text = "\n".join(["ENTRY e {", *lines, *calls, root, "}"])
    compiled = cyxla.compile(text)
    assert "python" not in compiled.explain()
    return zip(compiled(*given), evaluate(cyxla.hlo.parse_module(text), given), strict=True)


def positive(rng, n, dtype, batch=()):
    a = rng.standard_normal((*batch, n, n))
    return (a @ np.swapaxes(a, -1, -2) / n + np.eye(n)).astype(dtype)


def triangle(rng, n, dtype, batch=()):
    """A well conditioned one; its other half is nan, since nobody may look at it."""
    a = rng.standard_normal((*batch, n, n)) / n + np.eye(n)
    return a.astype(dtype)


# --- triangular-solve -----------------------------------------------------------------------------------------------


def system(rng, dtype, n, columns, *, left, lower, transposed, unit, batch=()):
    """Whose other half is nan."""
    a = triangle(rng, n, dtype, batch)
    other = np.triu(np.ones((n, n), bool), 1) if lower else np.tril(np.ones((n, n), bool), -1)
    a[..., other] = np.nan
    b = rng.standard_normal((*batch, n, columns) if left else (*batch, columns, n)).astype(dtype)
    transpose = "TRANSPOSE" if transposed else "NO_TRANSPOSE"
    attributes = f"left_side={left}, lower={lower}, transpose_a={transpose}, unit_diagonal={unit}".lower()
    attributes = attributes.replace("no_transpose", "NO_TRANSPOSE").replace("=transpose", "=TRANSPOSE")
    return "triangular-solve", [a, b], shape_of(b), attributes


def solved(systems):
    for (got, want), (_, (_, b), _, attributes) in zip(run_all(systems), systems, strict=True):
        np.testing.assert_allclose(
            got, want, rtol=0, atol=tolerance(b) * np.abs(want).max(), err_msg=f"{b.dtype} {attributes}"
        )


NAMES = ("left", "lower", "transposed", "unit")
FORMS = [dict(zip(NAMES, bits, strict=True)) for bits in product([False, True], repeat=4)]


def test_every_form_of_triangular_solve():
    rng = np.random.default_rng(0)
    solved([system(rng, TYPES["f32" if k % 3 else "f64"], 53, 37, **form) for k, form in enumerate(FORMS)])


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(list(TYPES)),
    st.integers(1, 140),
    st.integers(1, 140),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_triangular_solve_of_any_size(dtype, n, columns, bits):
    solved([system(np.random.default_rng(n), TYPES[dtype], n, columns, **dict(zip(NAMES, bits, strict=True)))])


@pytest.mark.parametrize("dtype, n, columns", [(np.float32, 201, 1), (np.float64, 75, 2)])
def test_one_or_two_right_sides(dtype, n, columns):
    rng = np.random.default_rng(n)
    solved([system(rng, dtype, n, columns, **form) for form in FORMS])


def test_singular_triangles_divide_by_zero():
    a, b = np.tril(np.ones((3, 3), np.float32)), np.ones((3, 2), np.float32)
    a[1, 1] = 0
    b[1] = 3
    got, want = run("triangular-solve", [a, b], shape_of(b), "left_side=true, lower=true, transpose_a=NO_TRANSPOSE")
    np.testing.assert_array_equal(got, want)
    assert np.isinf(got[1]).all()


# --- cholesky -------------------------------------------------------------------------------------------------------


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", SIZES)
def test_cholesky(n, dtype, lower):
    a = positive(np.random.default_rng(n), n, TYPES[dtype])
    half = np.tril(a) if lower else np.triu(a)
    other = np.where(np.tril(np.ones_like(a)) > 0 if lower else np.triu(np.ones_like(a)) > 0, half, np.nan)
    got, _ = run("cholesky", [other], shape_of(a), f"lower={str(lower).lower()}")
    want = np.linalg.cholesky(a.astype(np.float64))
    np.testing.assert_allclose(got, want if lower else want.T, rtol=0, atol=tolerance(a) * np.abs(a).max())


@pytest.mark.parametrize("size", [3, 100, 700])
@pytest.mark.parametrize("lower", ["true", "false"])
def test_indefinite_matrices_give_nan(size, lower):
    rng = np.random.default_rng(0)
    a = positive(rng, size, np.float32, (2,))
    a[1, size // 2, size // 2] = -1
    got, want = run("cholesky", [a], shape_of(a), f"lower={lower}")
    assert np.isnan(got[1]).all()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    got, _ = run("cholesky", [a[1]], shape_of(a[1]), f"lower={lower}")
    assert np.isnan(got).all()


def test_infinity_and_nan_on_the_diagonal():
    a = np.diag(np.array([1, np.inf, 4]))
    got, want = run("cholesky", [a], shape_of(a), "lower=true")
    np.testing.assert_array_equal(got, want)
    a[1, 1] = np.nan
    assert np.isnan(run("cholesky", [a], shape_of(a), "lower=true")[0]).all()


def test_lapack_counts_the_rows_and_leaves_the_other_triangle():
    a = positive(np.random.default_rng(1), 60, np.float64)
    code = "backend_config={uplo = 76 : ui8}"
    (factor, info), (want, _) = run("lapack_dpotrf_ffi", [a], f"({shape_of(a)}, s32[])", code)
    assert info == 0
    np.testing.assert_array_equal(np.triu(factor, 1), np.triu(a, 1))
    np.testing.assert_allclose(factor, want, atol=1e-13)
    a[50, 50] = -1
    assert run("lapack_dpotrf_ffi", [a], f"({shape_of(a)}, s32[])", code)[0][1] == 51


# --- qr -------------------------------------------------------------------------------------------------------------


def qr(a):
    k, m = min(a.shape[-2:]), a.shape[-2]
    batch = a.shape[:-2]
    packed = f"{shape_of(a)}"
    taus = shape_of(np.zeros((*batch, k), a.dtype))
    (r, tau), (want, want_tau) = run("Qr", [a], f"({packed}, {taus})")
    q, want_q = run(
        "ProductOfElementaryHouseholderReflectors", [r[..., :k], tau], shape_of(np.zeros((*batch, m, k), a.dtype))
    )
    return r, tau, q, want, want_tau, want_q


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "m, n", [(1, 1), (5, 3), (3, 5), (48, 48), (97, 50), (50, 97), (130, 130), (260, 30), (30, 260)]
)
def test_qr(m, n, dtype):
    a = np.random.default_rng(m).standard_normal((m, n)).astype(TYPES[dtype])
    r, tau, q, want, want_tau, want_q = qr(a)
    atol = tolerance(a, 500) * np.abs(want).max()
    for got, expected in ((r, want), (tau, want_tau), (q, want_q)):
        np.testing.assert_allclose(got, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(q @ np.triu(r)[: q.shape[1]], a, rtol=0, atol=atol)
    np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), rtol=0, atol=tolerance(a))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_qr_of_numbers_whose_squares_overflow(scale):
    a = np.random.default_rng(0).standard_normal((70, 60))
    r, tau, *_ = qr(a * scale)
    plain, plain_tau, *_ = qr(a)
    np.testing.assert_allclose(np.triu(r) / scale, np.triu(plain), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tau, plain_tau, rtol=1e-11)


def test_columns_that_need_no_reflector():
    r, tau, q, want, want_tau, _ = qr(np.triu(np.ones((60, 60), np.float32)))
    np.testing.assert_array_equal(tau, 0 * want_tau)
    np.testing.assert_array_equal(r, want)
    np.testing.assert_array_equal(q, np.eye(60))


# --- lu -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "m, n", [(1, 1), (5, 3), (3, 5), (48, 48), (97, 50), (50, 97), (130, 130), (260, 30), (30, 260)]
)
def test_lu(m, n, dtype):
    a = np.random.default_rng(m).standard_normal((m, n)).astype(TYPES[dtype])
    k = min(m, n)
    (packed, pivots, order), wanted = run("LuDecomposition", [a], f"({shape_of(a)}, s32[{k}], s32[{m}])")
    np.testing.assert_array_equal(pivots, wanted[1])
    np.testing.assert_array_equal(order, wanted[2])
    lower = np.tril(packed[:, :k], -1) + np.eye(m, k, dtype=a.dtype)
    np.testing.assert_allclose(lower @ np.triu(packed)[:k], a[order], rtol=0, atol=tolerance(a) * np.abs(packed).max())


def test_lu_of_a_singular_matrix():
    a = np.random.default_rng(0).standard_normal((60, 60))
    a[:, 52] = a[:, 3] = 0
    letters = f"({shape_of(a)}, s32[60], s32[])"
    (packed, pivots, info), wanted = run("lapack_dgetrf_ffi", [a], letters)
    assert info == wanted[2] == 4
    np.testing.assert_array_equal(pivots[:40], wanted[1][:40])
    assert np.isfinite(packed).all()


# --- all of them ----------------------------------------------------------------------------------------------------

EACH = [
    ("cholesky", 1, "{0}", "lower=true"),
    ("triangular-solve", 2, "{0}", "left_side=true, lower=true, transpose_a=NO_TRANSPOSE"),
    ("Qr", 1, "({0}, {1})", ""),
    ("LuDecomposition", 1, "({0}, {2}, {2})", ""),
]


def problem(target, count, result, batch, n, dtype):
    rng = np.random.default_rng(n)
    args = [positive(rng, n, dtype, batch) for _ in range(count)]
    vector = shape_of(np.zeros((*batch, n), dtype))
    return args, result.format(shape_of(args[0]), vector, "s32" + vector[3:])


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("batch", [(3,), (2, 2), (40,)])
@pytest.mark.parametrize("target, count, result, attributes", EACH, ids=lambda x: str(x)[:8])
def test_batches_are_done_one_by_one(target, count, result, attributes, batch):
    args, shapes = problem(target, count, result, batch, 30, np.float32)
    got = flat(run(target, args, shapes, attributes)[0])
    _, single = problem(target, count, result, (), 30, np.float32)
    for at in np.ndindex(*batch):
        one = flat(run(target, [a[at] for a in args], single, attributes)[0])
        for whole, part in zip(got, one, strict=True):
            np.testing.assert_array_equal(whole[at], part)
        if sum(at) > 2:
            break


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("target, count, result, attributes", EACH, ids=lambda x: str(x)[:8])
def test_large_ones_have_the_same_bits_on_any_threads(target, count, result, attributes, batch):
    args, shapes = problem(target, count, result, batch, 450, np.float32)
    compiled = cyxla.compile(program(target, [shape_of(a) for a in args], shapes, attributes))
    assert "phase" in compiled.c_source
    before, seen = cyxla.threads(), set()
    try:
        for n in (1, 2, 8, 2):
            cyxla.threads(n)
            seen.add(b"".join(x.tobytes() for x in flat(compiled(*args))))
    finally:
        cyxla.threads(before)
    assert len(seen) == 1


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("isa", ["x86-64-v1", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("dtype", TYPES.values())
def test_narrower_vectors(dtype, isa, monkeypatch):
    monkeypatch.setenv("CYXLA_ISA", isa)
    problems = []
    for target, count, result, attributes in EACH:
        args, shapes = problem(target, count, result, (), 61, dtype)
        problems.append((target, args, shapes, attributes))
    for (got, want), (target, (a, *_), *_) in zip(run_all(problems), problems, strict=True):
        for g, w in zip(flat(got), flat(want), strict=True):
            np.testing.assert_allclose(g, w, rtol=0, atol=tolerance(a) * np.abs(w).max(), err_msg=target)


def test_meanings_of_the_programs_own_are_refused():
    text = program("Qr", ["f32[4,4]"], "(f32[4,4], f32[4])")
    with pytest.raises(cyxla.errors.UnimplementedError, match="program's own"):
        cyxla.compile(text, custom_calls={"Qr": lambda *_: None})
