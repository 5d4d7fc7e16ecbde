"""Generated C quotes its HLO in words of the compiler alone, and quotes change neither kernels nor machine code."""

# ruff: noqa: E501  programs read best a line at a time

import re

import pytest

import cyxla
from cyxla.xla.cpu.c.quote_comments import without_quotes
from cyxla.xla.cpu.lowering import emit
from cyxla.xla.cpu.native import compiler_search, split_units
from cyxla.xla.cpu.native.build import compile_units
from cyxla.xla.cpu.native.toolchain import Unit
from cyxla.xla.hlo import parse_module

COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
near { a = f32[] parameter(0) b = f32[] parameter(1) n = f32[] abs(a) m = f32[] multiply(b, b) ROOT c = pred[] compare(n, m), direction=LT }
small { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(9) ROOT c = pred[] compare(i, n), direction=LT }
turned { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[4] get-tuple-element(s), index=1 one = s32[] constant(1) j = s32[] add(i, one) y = f32[4] reverse(x), dimensions={0} z = f32[4] add(x, y) ROOT t = (s32[], f32[4]) tuple(j, z) }
straight { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[4] get-tuple-element(s), index=1 one = s32[] constant(1) j = s32[] add(i, one) z = f32[4] add(x, x) ROOT t = (s32[], f32[4]) tuple(j, z) }
"""
WHILE = "x = f32[4] parameter(0) i = s32[] constant(0) s = (s32[], f32[4]) tuple(i, x) ROOT w = (s32[], f32[4]) while(s), condition=small, body="
X = "x = f32[64,256] parameter(0) zero = f32[] constant(0) "

#: name: (program, lines of the list above the kernel, quotes behind statements)
QUOTES = {
    "a chain": (
        X + "b = f32[256] parameter(1) c = f32[64,256] broadcast(b), dimensions={1} a = f32[64,256] add(x, c) ROOT t = f32[64,256] tanh(a)",
        ["reads p0 f32[64,256], p1 f32[256]", "%0 = f32[64,256] broadcast(p1), dimensions={1}", "%1 = f32[64,256] add(p0, %0)", "%2 = f32[64,256] tanh(%1)", "writes r0 f32[64,256]"],
        ["%1 = f32[64,256] add(p0, %0)", "%2 = f32[64,256] tanh(%1)"],
    ),
    "a number and a comparison": (
        X + "k = f32[] constant(2.5) b = f32[64,256] broadcast(k), dimensions={} ROOT c = pred[64,256] compare(x, b), direction=GT",
        ["%0 = f32[64,256] broadcast(2.5)", "%1 = pred[64,256] compare(p0, %0), direction=GT"],
        ["%1 = pred[64,256] compare(p0, %0)"],
    ),
    "a reduction": (
        X + "t = f32[64,256] tanh(x) ROOT r = f32[64] reduce(t, zero), dimensions={1}, to_apply=add",
        ["%0 = f32[64,256] tanh(p0)", "%1 = f32[64] reduce(%0, 0.0), dimensions={1}"],
        ["%0 = f32[64,256] tanh(p0)", "%1 = f32[64] reduce(%0, 0.0)"],
    ),
    "columns": (
        X + "t = f32[64,256] tanh(x) ROOT r = f32[256] reduce(t, zero), dimensions={0}, to_apply=add",
        ["%1 = f32[256] reduce(%0, 0.0), dimensions={0}"],
        ["%0 = f32[64,256] tanh(p0)", "%1 = f32[256] reduce(%0, 0.0)"],
    ),
    "rows": (
        X + "e = f32[64,256] exponential(x) r = f32[64] reduce(e, zero), dimensions={1}, to_apply=add b = f32[64,256] broadcast(r), dimensions={0} ROOT d = f32[64,256] divide(e, b)",
        ["%1 = f32[64] reduce(%0, 0.0), dimensions={1}", "%3 = f32[64,256] divide(%0, %2)"],
        ["%0 = f32[64,256] exponential(p0)", "%1 = f32[64] reduce(%0, 0.0)", "%3 = f32[64,256] divide(%0, %2)"],
    ),
    "two parts": (
        "x = f32[300,3000] parameter(0) zero = f32[] constant(0) t = f32[300,3000] tanh(x) ROOT r = f32[3000] reduce(t, zero), dimensions={0}, to_apply=add",
        ["last part: combines the results of the first"],
        ["%0 = f32[300,3000] tanh(p0)", "%1 = f32[3000] reduce(%0, 0.0)"],
    ),
    "a scan": (
        "x = f32[512] parameter(0) zero = f32[] constant(0) ROOT r = f32[512] reduce-window(x, zero), window={size=512 pad=511_0}, to_apply=add",
        ["%0 = f32[512] reduce-window(p0, 0.0), window={{512,1,511,0,1,1,false}}"],
        ["%0 = f32[512] reduce-window(p0, 0.0)"],
    ),
    "a dot": (
        X + "ROOT d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        ["reads p0 f32[64,256]", "%0 = f32[64,64] dot(p0, p0), lhs_contracting_dims={1}, rhs_contracting_dims={1}"],
        ["%0 = f32[64,64] dot(p0, p0)"],
    ),
    "an epilogue": (
        X + "y = f32[256,128] parameter(1) d = f32[64,128] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT t = f32[64,128] tanh(d)",
        ["%0 = f32[64,128] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "%1 = f32[64,128] tanh(%0)"],
        ["%0 = f32[64,128] dot(p0, p1)", "%1 = f32[64,128] tanh(%0)", "%0 in sums"],
    ),
    "complex numbers": (
        "x = c64[9,7] parameter(0) y = c64[7,5] parameter(1) ROOT d = c64[9,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ["reads p0 c64[9,7], p1 c64[7,5]"],
        ["%0 = c64[9,5] dot(p0, p1)", "%0: operand 0, c64[9,7]", "%0: operand 1, c64[7,5]"],
    ),
    "a convolution": (
        "x = f32[2,8,3] parameter(0) w = f32[2,3,5] parameter(1) c = f32[2,7,5] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f ROOT r = f32[2,7,5] tanh(c)",
        ["%1 = f32[2,7,5] tanh(%0)"],
        ["%1 = f32[2,7,5] tanh(%0)", "%0 in sums", "%0 = f32[2,7,5] convolution(p0, p1)", "%0: operand 0, f32[2,8,3]", "%0: operand 1, f32[2,3,5]"],
    ),
    "a transform": (
        "x = c64[64] parameter(0) ROOT r = c64[64] fft(x), fft_type=FFT, fft_length={64}",
        [],
        ["%0 = c64[64] fft(p0)"],
    ),
    "a sort": (
        X + "ROOT s = f32[64,256] sort(x), dimensions={1}, to_apply=near",
        ["reads p0 f32[64,256]"],
        ["%0 = f32[64,256] sort(p0)", "%0: operand 0, f32[64,256]"],
    ),
    "a factor": (
        "x = f32[8,8] parameter(0) ROOT r = f32[8,8] cholesky(x)",
        ["reads p0 f32[8,8]"],
        ["%0 = f32[8,8] cholesky(p0)"],
    ),
    "one array twice": (
        "x = c64[9,9] parameter(0) ROOT d = c64[9,9] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ["reads p0 c64[9,9]"],
        ["%0 = c64[9,9] dot(p0, p0)", "%0: operands 0, 1, c64[9,9]"],
    ),
    "a loop in locals": (
        WHILE + "turned",
        ["%0 = (s32[], f32[4]) while((0, p0))", "%1 = s32[] add(parameter.0, 1)", "%2 = f32[4] reverse(parameter.1), dimensions={0}", "%3 = f32[4] add(parameter.1, %2)", "%4 = pred[] compare(parameter.0, 9), direction=LT"],
        ["%1 = s32[] add(parameter.0, 1)", "%3 = f32[4] add(parameter.1, %2)"],
    ),
    "a loop of blocks": (
        WHILE.replace("f32[4]", "f32[4000]") + "straight",
        ["%0 = (s32[], f32[4000]) while((p1, p0))", "%2 = f32[4000] add(parameter.1, parameter.1)"],
        ["%1 = s32[] add(parameter.0, 1)", "%2 = f32[4000] add(parameter.1, parameter.1)"],
    ),
    "small ones together": (
        "x = f32[2] parameter(0) y = f32[3] parameter(1) a = f32[2] tanh(x) b = f32[3] tanh(y) ROOT t = (f32[2], f32[3]) tuple(a, b)",
        ["%0 = f32[2] tanh(f32[2])", "%0 = f32[3] tanh(f32[3])"],
        ["%0 = f32[2] tanh(p0)", "%0 = f32[3] tanh(p0)"],
    ),
}  # fmt: skip


def program(body):
    text = COMPUTATIONS.replace("f32[4]", "f32[4000]") if "f32[4000]" in body else COMPUTATIONS
    return f"HloModule m {text} ENTRY e {{ {body} }}"


def sources(text):
    return emit(parse_module(text))[2]


@pytest.mark.parametrize("name", QUOTES)
def test_quotes(name):
    body, listed, quoted = QUOTES[name]
    c = sources(program(body)).text
    heads = re.findall(r"^ \* (.*)$", c, re.MULTILINE)
    assert [line for line in listed if line not in heads] == []
    assert list(dict.fromkeys(re.findall(r"  /\* (%.*) \*/$", c, re.MULTILINE))) == quoted
    assert "%" not in re.sub(r" % ", "", without_quotes(c))


def test_nothing_of_a_program_but_its_opcodes_and_shapes_is_quoted():
    body = """x = f32[8] parameter(0), metadata={op_name="*/ hidden() /*" source_file="secret.py"}
  intruder = f32[8] tanh(x), frontend_attributes={note="*/ secret"}, metadata={op_name="*/ secret"}
  ROOT secret = f32[8] add(intruder, x)"""
    c = sources(
        f"HloModule secret, frontend_attributes={{s='secret'}}\nENTRY secret {{ {body} }}".replace("'", '"')
    ).text
    assert "tanh(p0)" in c
    assert "secret" not in c
    assert "intruder" not in c
    assert "hidden" not in c


def test_comments_are_not_nested():
    body = """x = f64[3,3] parameter(0)
  ROOT r = (f64[3,3], f64[3,3], f64[3], f64[3], s32[], s32[]) custom-call(x), custom_call_target="lapack_dgees_ffi",
    backend_config={mode="V", sort="N"}"""
    assert re.findall(r"/\*(?:(?!\*/)[\s\S])*/\*", sources(program(body)).text) == []


def test_names_do_not_change_the_c():
    body = QUOTES["rows"][0]
    assert sources(program(body)).text == sources(program(re.sub(r"\b([xerbd])\b", r"\1\1", body))).text


def test_kernels_that_differ_by_their_quotes_are_one():
    body = """x = f32[4096] parameter(0) t = f32[4096] tanh(x) n = f32[4096] negate(t)
  y = f32[64,64] parameter(1) u = f32[64,64] tanh(y) v = f32[4096] reshape(u) m = f32[4096] negate(v)
  ROOT r = (f32[4096], f32[4096]) tuple(n, m)"""
    source = sources(program(body))
    assert len(source.kernels) == 1
    assert source.text.count("/* HLO") == 1


def test_long_lists_are_cut():
    chain = " ".join(f"v{k + 1} = f32[8] {('negate', 'sign')[k % 2]}(v{k})" for k in range(150))
    c = sources(program(f"v0 = f32[8] parameter(0) {chain} ROOT r = f32[8] abs(v150)")).text
    assert " * .. 91 more\n" in c
    assert len(re.findall(r"^ \* %", c, re.MULTILINE)) == 60


@pytest.mark.parametrize("name", ["rows", "two parts", "a loop in locals"])
def test_quotes_change_no_machine_code(name):
    tools = compiler_search.find()
    if tools is None:
        pytest.skip("no C compiler")
    units = sources(program(QUOTES[name][0])).units
    plain = [without_quotes(text) for text in units]
    assert list(units) != plain
    images = [compile_units(tools, [Unit(text) for text in texts]) for texts in (units, plain)]
    assert images[0] == images[1]
    assert [split_units.compile_cost(t) for t in units] == [split_units.compile_cost(t) for t in plain]


def test_the_c_of_an_executable_is_the_compiled_text(tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_DUMP", str(tmp_path))
    executable = cyxla.compile(program(QUOTES["rows"][0]))
    units = [path.read_text() for path in sorted(tmp_path.glob("*/unit*.c"))]
    assert "\n".join(units) == executable.c_source
    assert "/* %3 = f32[64,256] divide(%0, %2) */" in executable.c_source
