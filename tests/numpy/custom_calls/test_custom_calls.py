"""User-defined functions in traced functions: in Python, in C by pointer, and C kernels."""

import ctypes
import inspect
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cyxla
from cyxla.errors import AlreadyExistsError, DTypeError, InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.numpy import jit
from cyxla.numpy.custom_calls.ckernel import ckernel, parse_declarations
from cyxla.numpy.custom_calls.registration import ArraySpec, custom_call, register_c_call
from cyxla.xla.cpu.native import compiler_search
from cyxla.xla.evaluator.custom_calls import unregister_custom_call
from cyxla.xla.evaluator.targets import c_calls

DOCUMENT = Path(__file__).parents[3] / "docs" / "kernels.md"
PLATFORMS = ("interpreter", "cpu")
X, Y = np.arange(6.0).reshape(2, 3), np.full((2, 3), 2.0)
needs_compiler = pytest.mark.skipif(compiler_search.find() is None, reason="no C compiler")


@pytest.fixture
def name(request):
    result = f"test.{request.node.name}"
    yield result
    c_calls.unregister(result)
    unregister_custom_call(result)


def on_both_platforms(function, *arrays):
    """Return the results of a function on both platforms."""
    return [jit(function, platform=p)(*arrays) for p in PLATFORMS]


# -- Python


def test_a_python_function_in_a_traced_one(name):
    @custom_call(name, result=lambda a, b: b)
    def solve(a, b):
        assert not a.flags.writeable
        return np.linalg.solve(a, b)

    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    want = np.linalg.solve(a + 1, a) * 2
    for got in on_both_platforms(lambda a: solve(a + 1, a) * 2, a):
        np.testing.assert_allclose(got, want)
    np.testing.assert_allclose(solve(a + 1, a) * 2, want)


def test_results_written_to_out(name):
    @custom_call(name, result=lambda x: (ArraySpec((x.shape[1],), x.dtype), ArraySpec((), np.int64)))
    def sums(x, *, out):
        np.sum(x, 0, out=out[0])
        out[1][()] = x.size

    for total, count in [*on_both_platforms(lambda x: sums(x * 2), X), sums(X * 2)]:
        np.testing.assert_array_equal(total, (X * 2).sum(0))
        assert (count, np.asarray(count).dtype) == (6, np.int64)
    assert str(inspect.signature(sums)) == "(x)"
    np.testing.assert_array_equal(jit(sums)(X)[0], X.sum(0))


def test_in_loops_and_without_arguments(name):
    calls = []

    @custom_call(name, result=ArraySpec(3, np.float32), has_side_effect=True)
    def numbers():
        calls.append(1)
        return np.arange(3, dtype=np.float32)

    def function(x):
        return cyxla.fori_loop(0, 4, lambda k, s: s + numbers(), x)

    for got in on_both_platforms(function, np.ones(3, np.float32)):
        np.testing.assert_array_equal(got, 1 + 4 * np.arange(3))
    assert len(calls) == 8


def test_a_program_in_text_may_name_it(name):
    @custom_call(name, result=lambda x: x)
    def twice(x):
        return x * 2

    text = f'ENTRY e {{ x = f64[3] parameter(0) ROOT y = f64[3] custom-call(x), custom_call_target="{name}" }}'
    for platform in PLATFORMS:
        np.testing.assert_array_equal(cyxla.compile(text, platform=platform)(np.arange(3.0)), [0, 2, 4])


def test_exceptions_propagate_and_results_are_checked(name):
    answers = {"error": KeyError("mine")}

    @custom_call(name, result=lambda x: x)
    def answer(x):
        if "error" in answers:
            raise answers["error"]
        return answers["value"]

    programs = [jit(lambda x: answer(x) + 1, platform=p) for p in PLATFORMS]
    for run in (*programs, answer):
        with pytest.raises(KeyError, match="mine"):
            run(X)
    del answers["error"]
    for value, error in ((np.ones(3), ShapeError), (X + 1j, TypeError)):
        answers["value"] = value
        for run in (*programs, answer):
            with pytest.raises(error):
                run(X)
    answers["value"] = np.ones((2, 3), int)
    for run in programs:
        np.testing.assert_array_equal(run(X), np.full((2, 3), 2.0))


def test_gradients_by_vjp(name):
    @custom_call(name, result=lambda x, y: (x, x), vjp=lambda inputs, results, c: (c[0] * inputs[1] + c[1], None))
    def both_of(x, y):
        return x * y, x + 1

    def function(x, y):
        a, b = both_of(x, y)
        return (a * a).sum() + b.sum()

    want = 2 * X * Y * Y + 1
    for got in on_both_platforms(cyxla.grad(function), X, Y):
        np.testing.assert_allclose(got, want)
    for got in on_both_platforms(cyxla.grad(lambda x, y: both_of(x, y)[0].sum()), X, Y):
        np.testing.assert_allclose(got, Y)


def test_missing_vjp_raises(name):
    @custom_call(name, result=lambda x: x)
    def mystery(x):
        return x

    with pytest.raises(UnimplementedError, match=name.replace("[", r"\[")):
        jit(cyxla.grad(lambda x: mystery(x).sum()), platform="interpreter")(X)
    got = jit(cyxla.grad(lambda x: (x * mystery(cyxla.stop_gradient(x))).sum()), platform="interpreter")(X)
    np.testing.assert_array_equal(got, X)


def test_names_are_unique(name):
    custom_call(name, result=lambda x: x)(lambda x: x)
    with pytest.raises(AlreadyExistsError):
        custom_call(name, result=lambda x: x)(lambda x: x)
    with pytest.raises(AlreadyExistsError):
        register_c_call(name, 1, result=lambda x: x)
    again = custom_call(name, result=lambda x: x, replace=True)(lambda x: x + 1)
    assert again(1.0) == 2


# -- C by pointer: callbacks of ctypes are C functions


def doubles(seen=None):
    def function(out, arrays, info):
        facts = info.contents
        a, b = facts.input[0], facts.output[0]
        if seen is not None:
            shape = (a.dtype, a.rank, a.dims[: a.rank], a.size)
            seen.append((facts.version, facts.inputs, facts.outputs, *shape, facts.opaque))
        source = (ctypes.c_double * a.size).from_address(arrays[0])
        target = (ctypes.c_double * b.size).from_address(out[0])
        for k in range(a.size):
            target[k] = 2 * source[k]

    return c_calls.SIGNATURE(function)


def message_of(info):
    """Return the address of the message, since ctypes would convert a char pointer to bytes."""
    at = ctypes.addressof(info.contents) + c_calls.Info.message.offset
    return ctypes.c_void_p.from_address(at).value


def capsule(function):
    new = ctypes.pythonapi.PyCapsule_New
    new.argtypes, new.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object
    return new(ctypes.cast(function, ctypes.c_void_p), b"anything", None)


@pytest.mark.parametrize("form", [lambda f: f, capsule, lambda f: ctypes.cast(f, ctypes.c_void_p).value])
def test_c_functions_are_called_on_both_platforms(name, form):
    seen = []
    function = doubles(seen)
    twice = register_c_call(name, form(function), result=lambda x: x, abi=1)
    for got in (*on_both_platforms(lambda x: twice(x) + 1, X), twice(X) + 1):
        np.testing.assert_array_equal(got, 2 * X + 1)
    assert seen == [(1, 1, 1, 12, 2, [2, 3], 6, b"")] * 3


def test_native_code_calls_it_without_python(name):
    seen = []
    register_c_call(name, doubles(seen), result=lambda x: x)
    call = f'custom-call(x), custom_call_target="{name}", backend_config="some text"'
    text = f"ENTRY e {{ x = f64[3] parameter(0) ROOT y = f64[3] {call} }}"
    run = cyxla.compile(text)
    np.testing.assert_array_equal(run(np.arange(3.0)), [0, 2, 4])
    assert "c call" in run.explain()
    assert "python" not in run.explain()
    assert seen == [(1, 1, 1, 12, 1, [3], 3, b"some text")]


def test_messages_become_errors(name):
    def function(out, arrays, info):
        ctypes.memmove(message_of(info), b"too few numbers", 15)

    callback = c_calls.SIGNATURE(function)
    broken = register_c_call(name, callback, result=lambda x: x)
    for run in (*[jit(lambda x: broken(x), platform=p) for p in PLATFORMS], broken):
        with pytest.raises(InvalidArgumentError, match=r"test\..*: too few numbers"):
            run(X)


def test_invalid_c_functions_raise(name):
    for wrong in ("printf", None, 0, True, lambda: 0):
        with pytest.raises(InvalidArgumentError):
            register_c_call(name, wrong, result=lambda x: x)
    with pytest.raises(InvalidArgumentError, match="abi=2"):
        register_c_call(name, 1, result=lambda x: x, abi=2)
    with pytest.raises(UnimplementedError, match="not a registered C function"):
        c_calls.address("printf")


def test_registered_targets_take_precedence(name):
    register_c_call(name, doubles(), result=lambda x: x)
    text = f'ENTRY e {{ x = f64[3] parameter(0) ROOT y = f64[3] custom-call(x), custom_call_target="{name}" }}'
    run = cyxla.compile(text, platform="interpreter", custom_calls={name: lambda ev, ins, x: x + 1})
    np.testing.assert_array_equal(run(np.arange(3.0)), [1, 2, 3])


# -- lines of C


@needs_compiler
def test_ckernel(name):
    saxpy = ckernel(
        name, "for (i64 i = 0; i < n; ++i) o[i] = a * x[i] + y[i];", args="a:f32[], x:f32[n], y:f32[n]", out="o:f32[n]"
    )
    x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    for got in (*on_both_platforms(lambda x, y: saxpy(2.5, x, y) * 2, x, y), saxpy(2.5, x, y) * 2):
        np.testing.assert_array_equal(got, (np.float32(2.5) * x + y) * 2)
        assert got.dtype == np.float32
    for n in (0, 1, 1000):
        np.testing.assert_array_equal(saxpy(1, np.ones(n, np.float32), np.zeros(n, np.float32)), np.ones(n))
    with pytest.raises(ShapeError, match="y has shape"):
        saxpy(1, x, y[1:])
    with pytest.raises(ShapeError, match="dimensions"):
        saxpy(1, x, 2.0)
    with pytest.raises(DTypeError, match="x has dtype float64"):
        jit(lambda x, y: saxpy(1, x, y), platform="interpreter")(x.astype(float), y)
    with pytest.raises(InvalidArgumentError, match="3 arrays"):
        saxpy(1, x)


@needs_compiler
def test_sizes_of_results_are_computed(name):
    body = """
    for (i64 i = 0; i < n; ++i) {
      pairs[2 * i] = x[i]; pairs[2 * i + 1] = sqrt(x[i]);
      flags[i] = x[i] > half(n);
    }
    *total = 0;
    for (i64 i = 0; i < n * m; ++i) *total += t[i];
    """
    kernel = ckernel(
        name, body, args="x:f64[n], t:i32[n, m]", out="pairs:f64[2 * n], flags:bool[n], total:i64[]",
        preamble="static double half(i64 n) { return n / 2.0; }",
    )  # fmt: skip
    x, t = np.arange(4.0), np.arange(12, dtype=np.int32).reshape(4, 3)
    for pairs, flags, total in (*on_both_platforms(lambda x, t: kernel(x, t), x, t), kernel(x, t)):
        np.testing.assert_allclose(pairs, np.stack([x, np.sqrt(x)], 1).ravel())
        np.testing.assert_array_equal(flags, x > 2)
        assert (flags.dtype, total) == (np.bool_, t.sum())


@needs_compiler
def test_ckernel_in_loops_branches_and_on_views(name):
    more = ckernel(
        name, "for (i64 i = 0; i < n; ++i) o[i] = x[i] + 1; *c = n;", args="x:f64[n]", out="o:f64[n], c:i32[]"
    )

    def function(x):
        rows = cyxla.map(lambda row: more(row)[0], x)
        total = cyxla.fori_loop(0, 3, lambda k, s: more(s)[0] * more(s)[1], x[:, 0])
        chosen = cyxla.cond(x[0, 0] > 0, lambda v: more(v)[0], lambda v: v, x.T[1])
        return rows, total, chosen, more(np.expand_dims(x, 1).reshape(-1))[1]

    for got in on_both_platforms(function, X):
        want = [X + 1, ((X[:, 0] + 1) * 2 + 1) * 2, X.T[1], 6]
        want[1] = (want[1] + 1) * 2
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


@needs_compiler
def test_gradients_of_ckernel(name):
    square = ckernel(
        name, "for (i64 i = 0; i < n; ++i) o[i] = x[i] * x[i];", args="x:f64[n]", out="o:f64[n]",
        vjp=lambda inputs, results, c: (2 * inputs[0] * c[0],),
    )  # fmt: skip
    for got in on_both_platforms(cyxla.grad(lambda x: square(x).sum()), np.arange(4.0)):
        np.testing.assert_array_equal(got, 2 * np.arange(4.0))


@needs_compiler
def test_compiler_errors(name):
    with pytest.raises(InvalidArgumentError, match="nonsense"):
        ckernel(name, "o[0] = nonsense;", args="x:f64[n]", out="o:f64[n]")


def test_without_a_compiler(name, monkeypatch):
    monkeypatch.setenv("CYXLA_CC", "none")
    words = {"args": "x:f64[n]", "out": "o:f64[n]"}
    with pytest.raises(cyxla.errors.NoCompilerError, match="no"):
        ckernel(name, "", **words)
    double = ckernel(name, "", **words, fallback=lambda x: 2 * x)
    np.testing.assert_array_equal(double(np.arange(3.0)), [0, 2, 4])
    np.testing.assert_array_equal(jit(lambda x: double(x), platform="interpreter")(np.arange(3.0)), [0, 2, 4])


@pytest.mark.parametrize("args, out", [
    ("x", "o:f64[n]"), ("x:f64", "o:f64[]"), ("x:f99[n]", "o:f64[n]"), ("x:f64[n]", ""), ("x:f64[n]", "o:f64[k]"),
    ("x:f64[n]", "x:f64[n]"), ("n:f64[n]", "o:f64[n]"), ("x:f64[n] y:f64[n]", "o:f64[n]"), ("x:f64[n!]", "o:f64[1]"),
    ("x:f64[n]", "o:f64[n // 0]"), ("x:f64[__import__('os')]", "o:f64[1]"), ("x:f64[n.real]", "o:f64[1]"),
])  # fmt: skip
def test_invalid_declarations(name, args, out):
    with pytest.raises(InvalidArgumentError):
        ckernel(name, "", args=args, out=out)


def test_declarations():
    assert [(a.name, a.type, a.sizes) for a in parse_declarations(" a:f32[], x : i64[n,3 ]", "args")] == [
        ("a", "f32", ()), ("x", "i64", ("n", "3")),
    ]  # fmt: skip


# -- the document


def blocks(language):
    found = re.findall(r"^```(\w*)\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)
    return [code for kind, code in found if kind == language]


def test_the_document_runs():
    known = {}
    try:
        for code in blocks("python"):
            exec(code, known)
        np.testing.assert_allclose(known["x"], [1, 1])
        np.testing.assert_array_equal(known["total"], [3, 3])
        assert known["count"] == 6
        np.testing.assert_array_equal(known["y"], [1, 4, 7])
        np.testing.assert_array_equal(known["slope"], [3, 3, 3])
        np.testing.assert_array_equal(known["twice"], [0, 1, 0, 1])
    finally:
        for target in ("mylib.solve", "mylib.sums", "mylib.saxpy", "mylib.tiled"):
            c_calls.unregister(target)


@needs_compiler
def test_the_c_of_the_document_compiles_against_the_header_alone(name, tmp_path):
    (tmp_path / "scale.c").write_text("\n".join(blocks("c")))
    command = [
        *compiler_search.require().compiler.command,
        "-Wall",
        "-Werror",
        "-shared",
        "-fPIC",
        f"-I{cyxla.get_include()}",
    ]
    subprocess.run([*command, "scale.c", "-o", "scale.so"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "scale.so"))
    scale = cyxla.register_c_call(name, library.scale, result=lambda x: x)
    for got in (*on_both_platforms(lambda x: scale(x), X), scale(X)):
        np.testing.assert_array_equal(got, 2 * X)
    for platform in PLATFORMS:
        with pytest.raises(InvalidArgumentError, match="expected float64"):
            jit(lambda x: scale(x), platform=platform)(X.astype(np.float32))


@needs_compiler
def test_header_matches_its_copies(tmp_path):
    text = """#include <stdio.h>
#include <stddef.h>
#include <cyxla/call.h>
int main(void) {
  printf("%zu %zu %zu %zu %d %d", sizeof(cyxla_array), sizeof(cyxla_call_info), offsetof(cyxla_call_info, opaque),
         offsetof(cyxla_call_info, message), CYXLA_CALL_VERSION, CYXLA_MESSAGE_BYTES);
}
"""
    (tmp_path / "sizes.c").write_text(text)
    command = [*compiler_search.require().compiler.command, f"-I{cyxla.get_include()}", "sizes.c", "-o", "sizes"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "sizes"], capture_output=True, text=True, check=True).stdout
    sizes = ctypes.sizeof(c_calls.Array), ctypes.sizeof(c_calls.Info)
    places = c_calls.Info.opaque.offset, c_calls.Info.message.offset
    assert said == " ".join(map(str, (*sizes, *places, c_calls.VERSION, c_calls.MESSAGE_BYTES)))
