"""Programs in every form that users hold, and those that this release does not read."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import DataLossError, ElidedConstantWarning, HloParseError, InvalidArgumentError, UnimplementedError
from cyxla.xla.client import compile_program, read_program
from cyxla.xla.hlo import XlaBuilder, builder

TEXT = "HloModule m\n\nENTRY e {\n  x = f32[3] parameter(0)\n  ROOT y = f32[3] add(x, x)\n}\n"
MODULE = cyxla.hlo.parse_module(TEXT)


STABLEHLO = """module @jit_f {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}"""


def computation():
    b = XlaBuilder("e")
    x = builder.functions.parameter(b, 0, cyxla.Shape.array("f32", (3,)), "x")
    return b.build(x + x)


@pytest.mark.parametrize("make", [
    lambda: TEXT, lambda: MODULE, computation, MODULE.to_proto, lambda: bytearray(MODULE.to_proto()),
    lambda: memoryview(MODULE.to_proto()), lambda: TEXT.replace("HloModule m\n", ""),
    lambda: STABLEHLO, lambda: f"  // exported\n{STABLEHLO}", lambda: STABLEHLO.partition("{")[2].rpartition("}")[0],
    lambda: TEXT.replace("add(x, x)", 'add(x, x), metadata={op_name="stablehlo.add"}').replace("HloModule m\n", ""),
])  # fmt: skip
def test_forms(make):
    assert read_program(make()).fingerprint() == MODULE.fingerprint()


@pytest.mark.parametrize("program, match", [
    (b"ML\xefR\x01StableHLO_v1", "MLIR bytecode"), (lambda x: x + x, "Python functions"),
])  # fmt: skip
def test_unsupported_formats_raise_errors(program, match):
    with pytest.raises(UnimplementedError, match=match) as caught:
        compile_program(program)
    assert (caught.value.code, bool(caught.value.hint)) == ("UNIMPLEMENTED", True)


@pytest.mark.parametrize("program, error", [
    (3, InvalidArgumentError), (None, InvalidArgumentError), ("nonsense", HloParseError), ("", HloParseError),
    (b"\xff\xff\xff", DataLossError), (TEXT.replace("add", "stablehlo.add"), HloParseError),
])  # fmt: skip
def test_objects_that_are_no_program(program, error):
    with pytest.raises(error):
        read_program(program)


def test_specs_are_for_functions():
    with pytest.raises(InvalidArgumentError, match="has its own shapes"):
        cyxla.compile(TEXT, cyxla.Shape.array("f32", (3,)))
    with pytest.raises(UnimplementedError, match="Python functions"):
        compile_program(lambda x: x, cyxla.Shape.array("f32", (3,)))


def test_the_stablehlo_reader_is_imported_when_needed():
    code = f"import cyxla, sys; cyxla.compile({TEXT!r}, platform='interpreter'); print(sys.modules.keys())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "cyxla.xla.stablehlo.detect" in found
    assert "cyxla.xla.stablehlo.reader" not in found


ELIDED = """HloModule big
ENTRY e { x = f32[2,2] parameter(0) w = f32[2,2] constant({...}) v = f32[2] constant({ ... })
  b = f32[2,2] broadcast(v), dimensions={0} y = f32[2,2] add(x, w) ROOT z = f32[2,2] add(y, b) }"""


@pytest.mark.parametrize("again", [False, True])
def test_constants_without_values_are_zeros_with_a_warning(backend, again):
    with pytest.warns(ElidedConstantWarning, match="constant w and 1 more of module big") as caught:
        compiled = cyxla.compile(ELIDED, platform=backend)  # from the disk cache, the second time
    assert [w.filename for w in caught] == [__file__]
    np.testing.assert_array_equal(compiled(np.ones((2, 2), np.float32)), np.ones((2, 2)))


def test_constants_without_values_can_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ElidedConstantWarning)
        with pytest.raises(ElidedConstantWarning):
            cyxla.compile(ELIDED)
        cyxla.hlo.parse_module(ELIDED.replace("constant({...})", "constant({{1,2},{3,4}})").replace("{ ... }", "{1,2}"))
        cyxla.hlo.parse_module("ENTRY e { ROOT x = f32[0,2] constant({...}) }")
