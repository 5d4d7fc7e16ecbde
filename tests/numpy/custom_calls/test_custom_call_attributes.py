"""Typed attributes of custom calls: keywords of calls and dictionaries of programs, read in Python and in C."""

import ctypes
import subprocess
from itertools import count

import numpy as np
import pytest

import cyxla
from cyxla.errors import DTypeError, InvalidArgumentError
from cyxla.numpy import jit
from cyxla.numpy.custom_calls.registration import ArraySpec, custom_call, register_c_call
from cyxla.xla.cpu.native import compiler_search
from cyxla.xla.evaluator.targets import c_calls
from cyxla.xla.hlo import parse_module

PLATFORMS = ("interpreter", "cpu")
X = np.arange(6.0).reshape(2, 3)
NUMBERS = count()
needs_compiler = pytest.mark.skipif(compiler_search.find() is None, reason="no C compiler")
#: Reads an attribute of each type, and writes numbers made of them.
SOURCE = r"""
#include <cyxla/call_attributes.h>
void read_all(void **out, const void **in, const cyxla_call_info *info) {
  (void)in;
  double *y = (double *)out[0];
  cyxla_call_attrs attrs = cyxla_call_attributes(info), inner, deep;
  uint8_t flag; int8_t a; int16_t b; int32_t c; int64_t d; uint8_t e; uint16_t f; uint32_t g; uint64_t h;
  float s; double t; uint16_t half; const char *text; int64_t bytes, n, m; const int32_t *sizes; const double *weights;
  int32_t dtype;
  if (!cyxla_call_get_bool(&attrs, "flag", &flag) || !cyxla_call_get_i8(&attrs, "a", &a)) return;
  if (!cyxla_call_get_i16(&attrs, "b", &b) || !cyxla_call_get_i32(&attrs, "c", &c)) return;
  if (!cyxla_call_get_i64(&attrs, "d", &d) || !cyxla_call_get_u8(&attrs, "e", &e)) return;
  if (!cyxla_call_get_u16(&attrs, "f", &f) || !cyxla_call_get_u32(&attrs, "g", &g)) return;
  if (!cyxla_call_get_u64(&attrs, "h", &h) || !cyxla_call_get_f32(&attrs, "s", &s)) return;
  if (!cyxla_call_get_f64(&attrs, "t", &t) || !cyxla_call_get_f16(&attrs, "half", &half)) return;
  if (!cyxla_call_get_string(&attrs, "text", &text, &bytes) || !cyxla_call_get_dtype(&attrs, "dtype", &dtype)) return;
  if (!cyxla_call_get_i32_array(&attrs, "sizes", &sizes, &n)) return;
  if (!cyxla_call_get_dict(&attrs, "inner", &inner) || !cyxla_call_get_dict(&inner, "deep", &deep)) return;
  if (!cyxla_call_get_f64_array(&deep, "weights", &weights, &m)) return;
  if (cyxla_call_has(&attrs, "absent") || !cyxla_call_has(&attrs, "flag")) return;
  double values[] = {flag, a, b, c, (double)d, e, f, g, (double)h, s, t, half, (double)bytes, text[0], text[bytes],
                     dtype, (double)n, n ? sizes[n - 1] : -1, (double)m, m ? weights[0] : -1};
  for (int k = 0; k < 20; ++k) y[k] = values[k];
}
void read_scale(void **out, const void **in, const cyxla_call_info *info) {
  float scale;
  cyxla_call_attrs attrs = cyxla_call_attributes(info);
  if (!cyxla_call_get_f32(&attrs, "scale", &scale)) return;
  for (int64_t i = 0; i < info->input[0].size; ++i) ((double *)out[0])[i] = scale * ((const double *)in[0])[i];
}
"""
ATTRIBUTES = {
    "flag": True, "a": np.int8(-1), "b": np.int16(-2), "c": np.int32(-3), "d": -(2**40), "e": np.uint8(200),
    "f": np.uint16(60000), "g": np.uint32(2**31), "h": np.uint64(2**50), "s": np.float32(0.5), "t": 0.1,
    "half": np.float16(1), "text": 'a"\\\n*/ ??)', "dtype": np.float64, "sizes": np.array([4, 5], np.int32),
    "inner": {"deep": {"weights": [2.5]}, "a b\"\\": 1},
}  # fmt: skip
READ = [1, -1, -2, -3, -(2**40), 200, 60000, 2**31, 2**50, 0.5, 0.1, 0x3C00, 10, 97, 0, 12, 2, 5, 1, 2.5]


@pytest.fixture
def name():
    target = f"test.attributes{next(NUMBERS)}"
    yield target
    c_calls.unregister(target)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attributes")
    (folder / "read.c").write_text(SOURCE)
    command = [*compiler_search.require().compiler.command, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, f"-I{cyxla.get_include()}", "read.c", "-o", "read.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "read.so"))


def on_all(function, *arrays):
    return [function(*arrays), *[jit(function, platform=p)(*arrays) for p in PLATFORMS]]


# -- in Python


def test_keywords_of_a_call_reach_the_function(name):
    seen = []

    @custom_call(name, result=lambda x, **attributes: x)
    def scaled(x, *, out, factor, **others):
        seen.append((factor, others))
        out[...] = factor * x

    for got in on_all(lambda x: scaled(x, factor=np.float32(2), axis=1, label="a", inner={"t": np.int8}), X):
        np.testing.assert_array_equal(got, 2 * X)
    assert seen == [(2, {"axis": 1, "label": "a", "inner": {"t": np.dtype(np.int8)}})] * 3
    assert type(seen[0][0]) is np.float32


def test_results_and_derivatives_know_the_attributes(name):
    def vjp(inputs, results, cotangents, *, times):
        return (np.sum(cotangents[0], 0),)

    @custom_call(name, result=lambda x, *, times: ArraySpec((times, *x.shape), x.dtype), vjp=vjp)
    def repeated(x, *, times):
        return np.repeat(x[None], times, 0)

    for got in on_all(lambda x: repeated(x, times=3), X):
        np.testing.assert_array_equal(got, np.repeat(X[None], 3, 0))
    np.testing.assert_array_equal(cyxla.grad(lambda x: np.sum(repeated(x, times=4)))(X), 4 * np.ones_like(X))
    np.testing.assert_array_equal(cyxla.vmap(lambda x: repeated(x, times=2))(X), np.repeat(X[:, None], 2, 1))


def test_programs_give_a_dictionary(name):
    @custom_call(name, result=lambda x: x)
    def plus(x, *, by, names=None):
        return x + by.sum()

    call = f'custom-call(x), custom_call_target="{name}", api_version=API_VERSION_TYPED_FFI'
    text = f"ENTRY e {{ x = f64[2,3] parameter(0) ROOT y = f64[2,3] {call}, backend_config={{by = array<i64: 1, 2>}} }}"
    module = parse_module(text)
    for program in (text, module.to_text(), module.to_proto()):
        for platform in PLATFORMS:
            np.testing.assert_array_equal(cyxla.compile(program, platform=platform)(X), X + 3)
    stablehlo = f"""func.func @main(%x: tensor<2x3xf64>) -> tensor<2x3xf64> {{
  %0 = stablehlo.custom_call @{name.replace(".", "_")}(%x)
    {{api_version = 4 : i32, backend_config = {{by = array<i64: 4>}}}} : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64> }}"""
    custom_call(name.replace(".", "_"), result=lambda x: x, replace=True)(lambda x, *, by: x + by.sum())
    np.testing.assert_array_equal(cyxla.compile(stablehlo, platform="interpreter")(X), X + 4)


def test_another_version_keeps_its_text(name):
    seen = []

    @custom_call(name, result=lambda x: x)
    def same(x, **attributes):
        seen.append(attributes)
        return x

    call = f'custom-call(x), custom_call_target="{name}", backend_config={{a = 1}}'
    cyxla.compile(f"ENTRY e {{ x = f64[3] parameter(0) ROOT y = f64[3] {call} }}", platform="interpreter")(np.zeros(3))
    assert seen == [{}]


@pytest.mark.parametrize("value, error, text", [
    (1j, DTypeError, "attribute a has dtype complex128"), (np.zeros((2, 2)), DTypeError, "array of rank 2"),
    (None, DTypeError, "attribute a has dtype object"),
])  # fmt: skip
def test_values_that_no_attribute_has(name, value, error, text):
    @custom_call(name, result=lambda x, a: x)
    def same(x, *, a):
        return x

    for function in (lambda x: same(x, a=value), jit(lambda x: same(x, a=value))):
        with pytest.raises(error, match=text):
            function(X)
    with pytest.raises(InvalidArgumentError, match="no attribute can be called out"):
        same(X, out=1)


def test_malformed_dictionaries_of_programs_are_refused(name):
    custom_call(name, result=lambda x: x)(lambda x: x)
    call = f'custom-call(x), custom_call_target="{name}", api_version=API_VERSION_TYPED_FFI, backend_config={{a = }}'
    for platform in PLATFORMS:
        with pytest.raises(InvalidArgumentError, match="expected a value"):
            cyxla.compile(f"ENTRY e {{ x = f64[] parameter(0) ROOT y = f64[] {call} }}", platform=platform)(
                np.zeros(())
            )


# -- in C


@needs_compiler
def test_c_functions_read_every_type(name, library):
    read = register_c_call(name, library.read_all, result=lambda **attributes: ArraySpec(20))
    for got in on_all(lambda: read(**ATTRIBUTES)):
        np.testing.assert_array_equal(got, READ)


@needs_compiler
@pytest.mark.parametrize("attributes, message", [
    ({}, "attribute scale is missing; it is to be f32"), ({"scale": 2.0}, "attribute scale is f64, not f32"),
    ({"scale": "a"}, "attribute scale is a string, not f32"), ({"scale": [1]}, "is an array of i64, not f32"),
    ({"scale": {}}, "is a dictionary, not f32"), ({"scale": np.int8}, "is a dtype, not f32"),
    ({"scal": np.float32(1)}, "attribute scale is missing"),
])  # fmt: skip
def test_absent_names_and_other_types_are_errors(name, library, attributes, message):
    scale = register_c_call(name, library.read_scale, result=lambda x, **attributes: x)
    for function in (lambda x: scale(x, **attributes), *[
        jit(lambda x: scale(x, **attributes), platform=p) for p in PLATFORMS]):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=message):
            function(X)
    np.testing.assert_array_equal(scale(X, scale=np.float32(3)), 3 * X)


@needs_compiler
def test_the_header_matches_its_copy(tmp_path):
    text = """#include <stdio.h>
#include <stddef.h>
#include <cyxla/call_attributes.h>
int main(void) {
  printf("%zu %zu %zu", sizeof(cyxla_call_attr), offsetof(cyxla_call_attr, data), offsetof(cyxla_call_info, attrs));
}
"""
    (tmp_path / "sizes.c").write_text(text)
    command = [*compiler_search.require().compiler.command, f"-I{cyxla.get_include()}", "sizes.c", "-o", "sizes"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "sizes"], capture_output=True, text=True, check=True).stdout
    of_python = ctypes.sizeof(c_calls.Attribute), c_calls.Attribute.data.offset, c_calls.Info.attrs.offset
    assert said == " ".join(map(str, of_python))
