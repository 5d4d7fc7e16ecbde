"""Custom calls of linear algebra: wrong operands are refused before any memory access, right ones run."""

import re

import numpy as np
import pytest
from support.hlo.differential import flat

import cyxla
from cyxla.errors import DTypeError, InvalidArgumentError, OpError, ShapeError, UnimplementedError
from cyxla.types import Shape
from cyxla.xla.cpu.calls import lapack
from cyxla.xla.evaluator.custom_calls import custom_call_targets
from cyxla.xla.hlo.custom_call_signatures import targets_with_signature

NUMPY = {"f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16", "s32": "i4"}
OWN = ["Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors", "Qr", "tridiagonal_solve_perturbed_ffi"]


def config(options):
    def spelled(value):
        return f"{ord(value)} : ui8" if isinstance(value, str) and len(value) == 1 else str(value).lower()

    return "{" + ", ".join(f"{k} = {spelled(v)}" for k, v in options.items()) + "}"


def call(target, operands, results, options, first=0):
    """The parameters of a call from a number on, the shape of its result, and the instruction itself."""
    operands, results = operands.split(), results.split()
    lines = [f"  p{k} = {s} parameter({k})" for k, s in enumerate(operands, first)]
    given = ", ".join(f"p{k}" for k in range(first, first + len(operands)))
    shape = results[0] if len(results) == 1 else f"({', '.join(results)})"
    tail = f", backend_config={config(options)}" if options else ""
    return lines, shape, f'{shape} custom-call({given}), custom_call_target="{target}"{tail}'


def program(target, operands, results, options):
    lines, _, instruction = call(target, operands, results, options)
    return "\n".join(["ENTRY e {", *lines, f"  ROOT r = {instruction}", "}"])


def program_of_several(calls):
    """A program whose result is a tuple of the results of all calls."""
    lines, roots, first = [], [], 0
    for k, (target, operands, results, options) in enumerate(calls):
        parameters, shape, instruction = call(target, operands, results, options, first)
        first += len(parameters)
        lines += [*parameters, f"  r{k} = {instruction}"]
        roots.append(shape)
    names = ", ".join(f"r{k}" for k in range(len(roots)))
    return "\n".join(["ENTRY e {", *lines, f"  ROOT t = ({', '.join(roots)}) tuple({names})", "}"])


# target without lapack_ and _ffi, operands, results, options, the error and what it says
MISFITS = [
    ("spotrf", "f32[3000,1]", "f32[3000,1] s32[]", {"uplo": "L"}, ShapeError, r"operand 0 .* must be f32\[n,n\]"),
    ("spotrf", "f32[500,500]", "f32[1,1] s32[]", {"uplo": "L"}, ShapeError, r"result 0 .* must be f32\[500,500\]"),
    ("spotrf", "f32[5]", "f32[5] s32[]", {}, ShapeError, "operand 0"),
    ("spotrf", "f32[]", "f32[] s32[]", {}, ShapeError, "operand 0"),
    ("spotrf", "f32[2,3,3]", "f32[2,3,3] s32[]", {}, ShapeError, r"result 1 is s32\[\], but must be s32\[2\]"),
    ("spotrf", "f32[2,3,3]", "f32[3,3,3] s32[2]", {}, ShapeError, "result 0"),
    ("spotrf", "f32[2,3,3]", "f32[3,3] s32[2]", {}, ShapeError, "result 0"),
    ("spotrf", "f32[3,3]", "f32[3,3] s32[1]", {}, ShapeError, "result 1"),
    ("spotrf", "f32[3,3]", "f32[3,3] s64[]", {}, DTypeError, r"must be s32\[\]"),
    ("spotrf", "f64[3,3]", "f64[3,3] s32[]", {}, DTypeError, "must be f32"),
    ("spotrf", "f32[3,3]", "f32[3,3]", {}, ShapeError, "gives 2 results, not 1"),
    ("spotrf", "f32[3,3] f32[3,3]", "f32[3,3] s32[]", {}, ShapeError, "takes 1 operand, not 2"),
    ("spotrf", "", "f32[3,3] s32[]", {}, ShapeError, "takes 1 operand, not 0"),
    ("spotrf", "f32[3,3]", "f32[3,3] s32[]", {"uplo": "X"}, InvalidArgumentError, "uplo = 88"),
    ("spotrf", "f32[3,3]", "f32[3,3] s32[]", {"uplo": "1e400"}, InvalidArgumentError, "uplo = inf"),
    ("spotrf", "f32[3,3]", "((f32[3,3]), s32[])", {}, DTypeError, "result 0"),
    ("spotrf", "(f32[3,3])", "f32[3,3] s32[]", {}, DTypeError, "operand 0"),
    ("strsm", "f32[900,900] f32[2,2]", "f32[2,2]", {"side": "L"}, ShapeError, r"must be f32\[900,n\]"),
    ("strsm", "f32[3,3] f32[3,5]", "f32[3,5]", {"side": "R"}, ShapeError, r"must be f32\[m,3\]"),
    ("strsm", "f32[5,5] f32[3,5]", "f32[3,5]", {"side": "L"}, ShapeError, "operand 1"),
    ("strsm", "f32[3,5] f32[3,5]", "f32[3,5]", {}, ShapeError, "operand 0"),
    ("strsm", "f32[2,3,3] f32[4,3,5]", "f32[2,3,5]", {}, ShapeError, r"operand 1 .* must be f32\[2,3,n\]"),
    ("strsm", "f32[2,3,3] f32[3,5]", "f32[3,5]", {}, ShapeError, "operand 1"),
    ("strsm", "f32[3,3] f64[3,5]", "f32[3,5]", {}, DTypeError, "operand 1"),
    ("strsm", "f32[3,3] f32[3,5]", "f32[3,4]", {}, ShapeError, "result 0"),
    ("strsm", "f32[3,3] f32[3,5]", "f32[3,5]", {"trans_x": "X"}, InvalidArgumentError, "trans_x"),
    ("sgetrf", "f32[900,90]", "f32[900,90] s32[1] s32[]", {}, ShapeError, r"result 1 .* must be s32\[90\]"),
    ("sgetrf", "f32[3,5]", "f32[3,5] s32[5] s32[]", {}, ShapeError, r"must be s32\[3\]"),
    ("sgeqrf", "f32[900,900]", "f32[900,900] f32[1]", {}, ShapeError, "result 1"),
    ("cgeqrf", "c64[5,3]", "c64[5,3] f32[3]", {}, DTypeError, r"must be c64\[3\]"),
    ("sorgqr", "f32[3,3000] f32[3]", "f32[3,3000]", {}, ShapeError, "n = 3000, but m = 3"),
    ("sorgqr", "f32[5,3] f32[4]", "f32[5,3]", {}, ShapeError, "k = 4, but n = 3"),
    ("cungqr", "c64[5,3] c64[3]", "c64[3,3]", {}, ShapeError, "result 0"),
    ("sorgqr", "f32[2,5,3] f32[3]", "f32[2,5,3]", {}, ShapeError, "operand 1"),
    ("sormqr", "f32[5,3] f32[4] f32[5,2]", "f32[5,2]", {"left": True}, ShapeError, "k = 4, but l = 3"),
    ("sormqr", "f32[5,9] f32[6] f32[5,2]", "f32[5,2]", {"left": True}, ShapeError, "k = 6, but m = 5"),
    ("sormqr", "f32[5,3] f32[3] f32[2,5]", "f32[2,5]", {"left": True}, ShapeError, "operand 2"),
    ("sormqr", "f32[5,3] f32[3] f32[5,2]", "f32[5,2]", {"left": False}, ShapeError, "operand 2"),
    ("sormqr", "f32[5,3] f32[3] f32[5,2]", "f32[5,2]", {"left": 7}, InvalidArgumentError, "left = 7"),
    ("cunmqr", "c64[5,3] c64[3] c64[5,2]", "c64[2,5]", {}, ShapeError, "result 0"),
    ("sgeqp3", "f32[500,500] s32[1]", "f32[500,500] s32[1] f32[1]", {}, ShapeError, "operand 1"),
    ("sgeqp3", "f32[5,4] s32[4]", "f32[5,4] s32[4] f32[5]", {}, ShapeError, "result 2"),
    ("sgeqp3", "f32[5,4] s64[4]", "f32[5,4] s64[4] f32[4]", {}, DTypeError, "operand 1"),
    ("ssyevd", "f32[900,900]", "f32[900,900] f32[1] s32[]", {"mode": "N"}, ShapeError, r"must be f32\[900\]"),
    ("ssyevd", "f32[3,3]", "f32[3,3] f32[3] s32[]", {"mode": "S"}, InvalidArgumentError, "mode"),
    ("cheevd", "c64[3,3]", "c64[3,3] c64[3] s32[]", {}, DTypeError, r"must be f32\[3\]"),
    ("sgesdd", "f32[9,9]", "f32[9,9] f32[1] f32[1,1] f32[1,1] s32[]", {"mode": "N"}, ShapeError, "result 1"),
    ("sgesdd", "f32[9,5]", "f32[9,5] f32[5] f32[9,5] f32[5,5] s32[]", {"mode": "A"}, ShapeError, "result 2"),
    ("sgesdd", "f32[5,9]", "f32[5,9] f32[5] f32[5,5] f32[9,9] s32[]", {"mode": "S"}, ShapeError, "result 3"),
    ("sgesvd", "f32[9,5]", "f32[9,5] f32[5] f32[1,1] f32[5,5] s32[]", {"mode": "S"}, ShapeError, "result 2"),
    ("dgesvd", "f64[9,5]", "f64[9,5] f64[5] f64[9,9] f64[5,9] s32[]", {"mode": "A"}, ShapeError, "result 3"),
    ("sgesdd", "f32[9,5]", "f32[9,5] f32[5] f32[9,9] f32[5,5] s32[]", {"mode": "O"}, InvalidArgumentError, "mode"),
    ("sgeev", "f32[2,5]", "f32[2] f32[2] c64[2,5] c64[2,5] s32[]", {}, ShapeError, "operand 0"),
    ("sgeev", "f32[500,500]", "f32[1] f32[1] c64[1,1] c64[1,1] s32[]", {"compute_right": "V"}, ShapeError, "result 0"),
    ("sgeev", "f32[5,5]", "f32[5] f32[5] f32[5,5] f32[5,5] s32[]", {}, DTypeError, "must be c64"),
    ("sgees", "f32[9,9]", "f32[9,9] f32[1,1] f32[1] f32[1] s32[] s32[]", {"mode": "V"}, ShapeError, "result 1"),
    ("cgees", "c64[9,9]", "c64[9,9] c64[9,9] c64[1] s32[] s32[]", {"mode": "V"}, ShapeError, "result 2"),
    ("cgees", "c64[9,9]", "c64[9,9] c64[9,9] c64[9] s32[] s32[]", {"sort": "S"}, InvalidArgumentError, "sort"),
    ("sgehrd", "f32[3000,1]", "f32[3000,1] f32[4] s32[]", {"low": 1, "high": 3000}, ShapeError, "operand 0"),
    ("sgehrd", "f32[5,5]", "f32[5,5] f32[5] s32[]", {"low": 1, "high": 5}, ShapeError, r"must be f32\[4\]"),
    *[("sgehrd", "f32[5,5]", "f32[5,5] f32[4] s32[]", {"low": low, "high": high}, InvalidArgumentError, "low")
      for low, high in [(0, 5), (1, 6), (4, 3), (-1, 5), (1, 0), (6, 6), (1, 2**40)]],
    ("sgehrd", "f32[5,5]", "f32[5,5] f32[4] s32[]", {"high": 9}, InvalidArgumentError, "high = 9"),
    ("sgehrd", "f32[5,5]", "f32[5,5] f32[4] s32[]", {"low": "true"}, InvalidArgumentError, "low = True"),
    ("ssytrd", "f32[3000,1]", "f32[3000,1] f32[5] f32[4] f32[4] s32[]", {"uplo": "L"}, ShapeError, "operand 0"),
    ("ssytrd", "f32[5,5]", "f32[5,5] f32[5] f32[4] f32[1] s32[]", {"uplo": "L"}, ShapeError, "result 3"),
    ("chetrd", "c64[5,5]", "c64[5,5] c64[5] f32[4] c64[4] s32[]", {"uplo": "L"}, DTypeError, "result 1"),
    ("sgtsv", "f32[1] f32[9] f32[1] f32[9,2]", "f32[1] f32[9] f32[1] f32[9,2] s32[]", {}, ShapeError, "operand 1"),
    ("sgtsv", "f32[9] f32[9] f32[9] f32[2,2]", "f32[9] f32[9] f32[9] f32[2,2] s32[]", {}, ShapeError, "operand 3"),
    ("sgtsv", "f32[9] f32[9] f32[8] f32[9,2]", "f32[9] f32[9] f32[8] f32[9,2] s32[]", {}, ShapeError, "operand 2"),
    ("tridiagonal_solve_perturbed", "f32[9] f32[9] f32[9] f32[2,2]", "f32[2,2]", {}, ShapeError, "operand 3"),
    ("tridiagonal_solve_perturbed", "f16[9] f16[9] f16[9] f16[9,2]", "f16[9,2]", {}, DTypeError, "operand 0"),
    ("Qr", "f32[900,900]", "f32[900,900] f32[1]", {}, ShapeError, "result 1"),
    ("Qr", "s32[9,9]", "s32[9,9] s32[9]", {}, DTypeError, "operand 0"),
    ("ProductOfElementaryHouseholderReflectors", "f32[3,30] f32[3]", "f32[3,30]", {}, ShapeError, "n = 30, but m = 3"),
    ("LuDecomposition", "f32[5,3]", "f32[5,3] s32[3] s32[3]", {}, ShapeError, r"result 2 .* must be s32\[5\]"),
    ("Eigh", "f32[5,3]", "f32[5,3] f32[3]", {}, ShapeError, "operand 0"),
    ("Eigh", "f32[5,5]", "f32[5,5] f32[1]", {}, ShapeError, "result 1"),
    ("spotrf", "f32[<=2,3,3]", "f32[<=2,3,3] s32[<=2]", {}, UnimplementedError, "only at run time"),
    ("spotrf", "f32[?,3,3]", "f32[?,3,3] s32[?]", {}, UnimplementedError, "only at run time"),
]  # fmt: skip


def full(name):
    return f"{name}_ffi" if name.startswith("tridiag") else name if name in OWN else f"lapack_{name}_ffi"


@pytest.mark.parametrize("name, operands, results, options, error, said", MISFITS)
def test_wrong_shapes_and_types(backend, name, operands, results, options, error, said):
    results = results if not results.startswith("((") else results.replace(", ", " ")[1:-1]
    with pytest.raises(OpError) as caught:
        cyxla.compile(program(full(name), operands, results, options), platform=backend)
    assert type(caught.value) is error
    assert caught.value.number in (3, 12)
    assert re.search(said, caught.value.message)
    assert full(name) in caught.value.message
    assert "custom-call C4" in str(caught.value)
    assert "computation e" in caught.value.where
    assert caught.value.hint or error is UnimplementedError
    assert len(str(caught.value)) <= 900
    assert str(caught.value).count("\n") < 15


def test_errors_have_a_remedy():
    with pytest.raises(ShapeError) as caught:
        cyxla.compile(program("lapack_sgetrf_ffi", "f32[2,9,5]", "f32[2,9,5] s32[2,1] s32[2]", {}))
    assert str(caught.value) == (
        "lapack_sgetrf_ffi: result 1 is s32[2,1], but must be s32[2,5]  [custom-call C4]\n"
        "  at:   %r = (f32[2,9,5], s32[2,1], s32[2]) custom-call(%p0) of computation e\n"
        "  mend: it takes f32[m,n] and returns f32[m,n], s32[min(m,n)], s32[], "
        "all with the same leading batch dimensions"
    )


def test_stablehlo_names_the_line(backend):
    text = """func.func @main(%a: tensor<2x5xf32>) -> tensor<2x5xf32> {
      %0 = stablehlo.sine %a : tensor<2x5xf32>
      %1:2 = stablehlo.custom_call @lapack_spotrf_ffi(%0) {mhlo.backend_config = {uplo = 76 : ui8}}
        : (tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<i32>)
      return %1#0 : tensor<2x5xf32>
    }"""
    with pytest.raises(ShapeError, match=r"lapack_spotrf_ffi: operand 0 is f32\[2,5\]") as caught:
        cyxla.compile(text, platform=backend)
    assert caught.value.where.startswith("line 3, ")


# routine, letters, operands and results in m, n and k = min(m, n), options
FITTING = [
    ("potrf", "sdcz", "T[n,n]", "T[n,n] I[]", {"uplo": "L"}),
    ("trsm", "sdcz", "T[m,m] T[m,n]", "T[m,n]", {"side": "L", "trans_x": "C"}),
    ("trsm", "sdcz", "T[n,n] T[m,n]", "T[m,n]", {"side": "R", "diag": "U"}),
    ("getrf", "sdcz", "T[m,n]", "T[m,n] I[k] I[]", {}),
    ("geqrf", "sdcz", "T[m,n]", "T[m,n] T[k]", {}),
    ("orgqr", "sd", "T[m,k] T[k]", "T[m,k]", {}),
    ("ungqr", "cz", "T[m,k] T[k]", "T[m,k]", {}),
    ("ormqr", "sd", "T[m,k] T[k] T[m,n]", "T[m,n]", {"left": True, "transpose": True}),
    ("unmqr", "cz", "T[n,k] T[k] T[m,n]", "T[m,n]", {"left": False, "transpose": 1}),
    ("geqp3", "sdcz", "T[m,n] I[n]", "T[m,n] I[n] T[k]", {}),
    ("syevd", "sd", "T[n,n]", "T[n,n] R[n] I[]", {"mode": "V"}),
    ("heevd", "cz", "T[n,n]", "T[n,n] R[n] I[]", {"mode": "N", "uplo": "L"}),
    ("gesdd", "sdcz", "T[m,n]", "T[m,n] R[k] T[m,k] T[k,n] I[]", {"mode": "S"}),
    ("gesdd", "sdcz", "T[m,n]", "T[m,n] R[k] T[m,m] T[n,n] I[]", {"mode": "A"}),
    ("gesdd", "sdcz", "T[m,n]", "T[m,n] R[k] T[m,k] T[k,n] I[]", {"mode": "N"}),
    ("gesvd", "sdcz", "T[m,n]", "T[m,n] R[k] T[m,m] T[n,n] I[]", {"mode": "N"}),
    ("gesvd", "sdcz", "T[m,n]", "T[m,n] R[k] T[m,k] T[k,n] I[]", {"mode": "S"}),
    ("geev", "sd", "T[n,n]", "T[n] T[n] C[n,n] C[n,n] I[]", {"compute_left": "V", "compute_right": "V"}),
    ("geev", "cz", "T[n,n]", "T[n] C[n,n] C[n,n] I[]", {"compute_left": "N", "compute_right": "V"}),
    ("gees", "sd", "T[n,n]", "T[n,n] T[n,n] T[n] T[n] I[] I[]", {"mode": "V", "sort": "N"}),
    ("gees", "cz", "T[n,n]", "T[n,n] T[n,n] T[n] I[] I[]", {"mode": "V"}),
    ("gehrd", "sdcz", "T[n,n]", "T[n,n] T[n-1] I[]", {"low": 1}),
    ("sytrd", "sd", "T[n,n]", "T[n,n] R[n] R[n-1] T[n-1] I[]", {"uplo": "U"}),
    ("hetrd", "cz", "T[n,n]", "T[n,n] R[n] R[n-1] T[n-1] I[]", {"uplo": "L"}),
    ("gtsv", "sdcz", "T[n] T[n] T[n] T[n,m]", "T[n] T[n] T[n] T[n,m] I[]", {}),
    ("tridiagonal_solve_perturbed", "sdcz", "T[n] T[n] T[n] T[n,m]", "T[n,m]", {}),
    ("Qr", "sdcz", "T[m,n]", "T[m,n] T[k]", {}),
    ("ProductOfElementaryHouseholderReflectors", "sdcz", "T[m,k] T[k]", "T[m,k]", {}),
    ("LuDecomposition", "sdcz", "T[m,n]", "T[m,n] I[k] I[m]", {}),
    ("Eigh", "sdcz", "T[n,n]", "T[n,n] R[n]", {}),
]
TYPES = {
    "s": ("f32", "f32", "c64"),
    "d": ("f64", "f64", "c128"),
    "c": ("c64", "f32", "c64"),
    "z": ("c128", "f64", "c128"),
}


def shapes(text, letter, m, n, batch=()):
    """The shapes of a row above, at these sizes."""
    sizes = {"m": m, "n": n, "k": min(m, n), "n-1": max(n - 1, 0)}
    kinds = {**dict(zip("TRC", TYPES[letter], strict=True)), "I": "s32"}
    dims = [[*batch, *(sizes[d] for d in word[2:-1].split(",") if d)] for word in text.split()]
    return [f"{kinds[word[0]]}[{','.join(map(str, d))}]" for word, d in zip(text.split(), dims, strict=True)]


def fitting(name, letter, operands, results, options, m, n, batch=()):
    """A call of a row above: target, shapes of operands and of results, options."""
    target = full(name if name in OWN or name.startswith("tridiag") else letter + name)
    given, made = (" ".join(shapes(text, letter, m, n, batch)) for text in (operands, results))
    return target, given, made, options


def value(shape, number):
    dtype, dims = shape.rstrip("]").split("[")
    dims = tuple(int(d) for d in dims.split(",") if d)
    if dtype == "s32":
        return np.zeros(dims, "i4")
    return np.full(dims, number, NUMPY[dtype])


EACH = [pytest.param(*row, id=f"{row[0]}-{row[1]}-{k}") for k, row in enumerate(FITTING)]


def test_every_target_has_a_signature():
    """The table above and the targets with native code cover the same targets."""
    known = set(targets_with_signature())
    assert {t for t in custom_call_targets() if t.startswith("lapack_")} | set(OWN) == known
    assert known - set(OWN) == {t for t in known if t in lapack.ROUTINES}
    covered = {full(x + name) for name, letters, *_ in FITTING if full(name) not in OWN for x in letters}
    assert covered | {full(name) for name, *_ in FITTING if full(name) in OWN} == known


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name, letters, operands, results, options", EACH)
def test_sizes_of_0_and_1_run(backend, name, letters, operands, results, options):
    sizes = [(0, 0, ()), (1, 1, ()), (3, 0, (2,)), (0, 3, ()), (3, 1, ()), (1, 3, (2,)), (3, 3, (0,))]
    calls = [fitting(name, letters[-1], operands, results, options, *s) for s in sizes]
    run = cyxla.compile(program_of_several(calls), platform=backend)
    got = run(*[value(s, 1) for _, given, _, _ in calls for s in given.split()])
    for outputs, (_, _, made, _) in zip(got, calls, strict=True):
        assert [str(Shape.of(np.asarray(g))) for g in flat(outputs)] == made.split()


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name, letters, operands, results, options", EACH)
def test_numbers_that_are_not_finite_end(backend, name, letters, operands, results, options):
    """And those so large that sums are not; no factor of them comes out finite."""
    target, given, made, options = fitting(name, letters[0], operands, results, options, 4, 3)
    run = cyxla.compile(program(target, given, made, options), platform=backend)
    for number in (np.nan, np.inf, -np.inf, 3e38, 0):
        got = flat(run(*[value(s, number) for s in given.split()]))
        if np.isnan(number) and name not in ("orgqr", "ormqr", "ProductOfElementaryHouseholderReflectors"):
            assert any(np.isnan(g).any() for g in got)


@pytest.mark.parametrize("letter, form", [("d", "or"), ("z", "un")])
def test_no_reflectors(backend, letter, form):
    """Their product is the identity."""
    t = TYPES[letter][0]
    text = program(f"lapack_{letter}{form}gqr_ffi", f"{t}[2,4,3] {t}[2,0]", f"{t}[2,4,3]", {})
    q = cyxla.compile(text, platform=backend)(np.full((2, 4, 3), 7, NUMPY[t]), np.zeros((2, 0), NUMPY[t]))
    np.testing.assert_array_equal(q, np.broadcast_to(np.eye(4, 3), (2, 4, 3)))
    c = np.arange(8, dtype=NUMPY[t]).reshape(4, 2)
    for width in (0, 3):
        text = program(f"lapack_{letter}{form}mqr_ffi", f"{t}[4,{width}] {t}[0] {t}[4,2]", f"{t}[4,2]", {"left": True})
        run = cyxla.compile(text, platform=backend)
        np.testing.assert_array_equal(run(np.ones((4, width), NUMPY[t]), np.zeros(0, NUMPY[t]), c), c)


def test_a_singular_system_of_one_equation(backend):
    run = cyxla.compile(program("lapack_dgtsv_ffi", "f64[1] f64[1] f64[1] f64[1,2]",
                                "f64[1] f64[1] f64[1] f64[1,2] s32[]", {}), platform=backend)  # fmt: skip
    assert run(np.ones(1), np.zeros(1), np.ones(1), np.ones((1, 2)))[-1] == 1
    *_, x, info = run(np.ones(1), np.full(1, 4.0), np.ones(1), np.ones((1, 2)))
    assert (x.tolist(), info) == ([[0.25, 0.25]], 0)


def test_a_tridiagonal_system_that_overflows_ends(backend):
    shape = "f64[6] f64[6] f64[6] f64[6,2]"
    run = cyxla.compile(program("tridiagonal_solve_perturbed_ffi", shape, "f64[6,2]", {}), platform=backend)
    run(np.zeros(6), np.ones(6), np.full(6, 1e308), np.full((6, 2), 1e308))


def test_workspaces_beyond_32_bits_are_refused():
    """The workspace of blocked routines has a size too."""
    text = program("lapack_cgeqrf_ffi", "c64[1,40000000]", "c64[1,40000000] c64[1]", {})
    with pytest.raises(UnimplementedError, match="needs the number 2560000000, but LAPACK counts with 32 bits"):
        cyxla.compile(text, platform="cpu")
