"""Platform cpu without a C compiler: the same results and errors, and one warning."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import cyxla
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.cpu.native import compiler_search
from cyxla.xla.cpu.prebuilt import uncompiled

ADD = "ENTRY e { x = f32[3] parameter(0) y = f32[3] parameter(1) ROOT s = f32[3] add(x, y) }"

# Nothing of this is prebuilt.
ROUNDED = """ENTRY e { x = f32[3] parameter(0) y = f32[3] parameter(1) s = f32[3] add(x, y)
 ROOT r = f32[3] reduce-precision(s), exponent_bits=8, mantissa_bits=20 }"""


def in_new_process(script, **environment):
    import os

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


TWO_PROGRAMS = f"""
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import cyxla
    first = cyxla.compile({ROUNDED!r})
    second = cyxla.compile({ROUNDED.replace("add", "multiply")!r})
print(first([1, 2, 3], [4, 5, 6]).tolist(), second([1, 2, 3], [4, 5, 6]).tolist(), first.platform)
print([(w.category.__name__, "gcc" in str(w.message)) for w in caught])
print("install gcc" in first.explain())
"""


def test_a_process_is_warned_once():
    assert in_new_process(TWO_PROGRAMS, CYXLA_CC="none").splitlines() == [
        "[5.0, 7.0, 9.0] [4.0, 10.0, 18.0] cpu",
        "[('RuntimeWarning', True)]",
        "True",
    ]


@pytest.mark.skipif(compiler_search.find() is None, reason="needs a C compiler")
def test_with_a_compiler_there_is_no_warning():
    assert in_new_process(TWO_PROGRAMS, CYXLA_CC="").splitlines()[1:] == ["[]", "False"]


def test_no_compiler_in_the_path():
    said = in_new_process(TWO_PROGRAMS, CYXLA_CC="", CC="", PATH="/nowhere")
    zig = "ziglang" in str(compiler_search.CANDIDATES) and __import__("importlib.util").util.find_spec("ziglang")
    assert zig or said.splitlines()[1] == "[('RuntimeWarning', True)]"


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setenv("CYXLA_CC", "none")
    monkeypatch.setattr(uncompiled, "_warn", lambda: None)


def test_calls_follow_the_same_rules(no_compiler):
    run = cyxla.compile(ADD)
    out = np.empty(3, "f4")
    assert run([1, 2, 3], [1, 1, 1], out=out) is out
    np.testing.assert_array_equal(out, [2, 3, 4])
    np.testing.assert_array_equal(run.bind({0: np.ones(3, "f4")})([1, 2, 3]), [2, 3, 4])
    assert [str(s) for s in run.inputs] == ["f32[3]", "f32[3]"]
    assert run.memory == {"arguments": 24, "results": 12, "temporaries": 0, "constants": 0}
    assert "add" in run.hlo()
    assert run.tier == "kernels"
    assert "map_add_f32 x1" in run.explain()
    assert "install gcc" in run.explain()
    with pytest.raises(InvalidArgumentError):
        run(np.ones(4, "f4"), np.ones(3, "f4"))
    with pytest.raises(InvalidArgumentError):
        run(np.ones(3), np.ones(3, "f4"))


def test_evaluated_programs_follow_the_same_rules(no_compiler):
    run = cyxla.compile(ROUNDED)
    out = np.empty(3, "f4")
    assert run([1, 2, 3], [1, 1, 1], out=out) is out
    np.testing.assert_array_equal(run.bind({0: np.ones(3, "f4")})([1, 2, 3]), out)
    assert run.memory == {"arguments": 24, "results": 12}
    assert run.tier == "interpreter"
    with pytest.raises(InvalidArgumentError):
        run(np.ones(4, "f4"), np.ones(3, "f4"))


DOT = """ENTRY e { x = f32[70,80] parameter(0) y = f32[80,90] parameter(1)
 ROOT d = f32[70,90] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""


def test_prebuilt_kernels_need_none(no_compiler):
    run = cyxla.compile(DOT)
    x, y = (np.random.default_rng(k).standard_normal((70, 80)).astype("f4") for k in range(2))
    y = np.ascontiguousarray(np.pad(y, ((0, 10), (0, 10))))
    np.testing.assert_allclose(run(x, y), x @ y, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(run.bind({1: y})(x), run(x, y))
    np.testing.assert_array_equal(run.bind({1: y}).bind({0: x})(), run(x, y))
    assert "prebuilt" in run.explain()
    assert "cyx_prebuilt[" in run.c_source
    assert run.library.recipe is not None


COMPACT = """ENTRY e { m = pred[90] parameter(0) x = f32[90,3] parameter(1)
 ROOT c = (f32[90,3], s64[]) custom-call(m, x), custom_call_target="cyxla_compact" }"""


def test_compaction_needs_none(no_compiler):
    run = cyxla.compile(COMPACT)
    mask, x = np.arange(90) % 3 == 1, np.random.default_rng(0).random((90, 3), np.float32)
    rows, count = run(mask, x)
    assert count == 30
    np.testing.assert_array_equal(rows, np.concatenate([x[mask], np.zeros((60, 3), "f4")]))
    assert run.library.recipe is not None


@pytest.mark.parametrize("text", [DOT.replace("f32", "s32"), DOT.replace("f32", "bf16"), ROUNDED])
def test_instructions_without_prebuilt_kernels_are_evaluated(no_compiler, text):
    run = cyxla.compile(text)
    assert isinstance(run, uncompiled.UncompiledExecutable)
    run(*(np.ones(s.dims, s.dtype.numpy_dtype) for s in run.inputs))


@pytest.mark.parametrize("text", [ADD, ROUNDED])
def test_missing_properties(no_compiler, text):
    with pytest.raises(UnimplementedError, match="C compiler") as caught:
        _ = cyxla.compile(text).c_source
    assert "gcc" in caught.value.hint
    with pytest.raises(UnimplementedError, match="nowhere"):
        cyxla.compile('ENTRY e { x = f32[] parameter(0) ROOT y = f32[] custom-call(x), custom_call_target="nowhere" }')


@pytest.mark.parametrize("compiler", ["", "none"])
def test_passes_that_do_not_exist(monkeypatch, compiler):
    monkeypatch.setenv("CYXLA_CC", compiler)
    monkeypatch.setattr(uncompiled, "_warn", lambda: None)
    with pytest.raises(InvalidArgumentError, match="expand_dots") as caught:
        cyxla.compile(ADD, disabled_passes=("expand_dots",))
    assert "expand_dot?" in caught.value.hint
    monkeypatch.setenv("CYXLA_DISABLE_HLO_PASSES", "dce, cde")
    with pytest.raises(InvalidArgumentError, match="cde") as caught:
        cyxla.compile(ADD)
    assert "dce" in caught.value.hint
