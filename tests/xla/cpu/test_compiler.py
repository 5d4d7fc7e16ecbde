"""Compilation of modules: errors, the disk cache, and the properties of executables."""

# ruff: noqa: E501  programs read best a line at a time

import json

import ml_dtypes
import numpy as np
import pytest
from support.hlo.differential import agree, flat
from support.interrupts import lines_run

import cyxla
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla import hlo
from cyxla.xla.cpu import lowering
from cyxla.xla.cpu.native import build, cache, split_units
from cyxla.xla.evaluator import TOKEN_VALUE

PROGRAM = """HloModule m
ENTRY e {
  x = f32[100] parameter(0)
  y = f32[100] exponential(x)
  z = f32[100] add(x, y)
  ROOT r = (f32[100], (f32[100], f32[100])) tuple(z, t)
}""".replace("  ROOT", "  t = (f32[100], f32[100]) tuple(x, z)\n  ROOT")


def test_everything_without_native_code_is_named_at_once():
    text = """HloModule m
more { s = (s32[], f32[4]) parameter(0) ROOT p = pred[] constant(false) }
step {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] custom-call(x), custom_call_target="nowhere"
  ROOT t = (s32[], f32[4]) tuple(i, y)
}
ENTRY e {
  i = s32[] parameter(0)
  zero = f32[] constant(0)
  one = f32[] constant(1)
  a = f32[2,4,6] parameter(1)
  b = f32[2,6,5] parameter(2)
  sizes = s32[2,3] parameter(3)
  d = f32[3,2,4,5] ragged-dot(a, b, sizes), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={2}
  t = f32[1,1,4,1] slice(d), slice={[0:1], [0:1], [0:4], [0:1]}
  x = f32[4] reshape(t)
  s = (s32[], f32[4]) tuple(i, x)
  w = (s32[], f32[4]) while(s), condition=more, body=step
  ROOT r = f32[4] get-tuple-element(w), index=1
}"""
    with pytest.raises(UnimplementedError) as caught:
        cyxla.compile(text)
    assert "ragged-dot of f32" in str(caught.value)
    assert "custom-call of f32" in str(caught.value)
    assert "interpreter" in caught.value.hint


ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
DOT = "dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
STARTED = {  # program -> whether a compiler is started before there is C for it
    "a dot": (f"ENTRY e {{ x = f32[64,64] parameter(0) ROOT r = f32[64,64] {DOT} }}", False),
    "a dot that is called": (
        f"f {{ x = f32[64,64] parameter(0) ROOT r = f32[64,64] {DOT} }}\nENTRY e {{ x = f32[64,64] parameter(0) ROOT r = f32[64,64] call(x), to_apply=f }}",
        False,
    ),
    "a dot and more": (
        f"ENTRY e {{ x = f32[64,64] parameter(0) d = f32[64,64] {DOT} ROOT r = f32[64,64] tanh(d) }}",
        True,
    ),
    "a reduction": (
        ADD
        + "ENTRY e { x = f32[64] parameter(0) z = f32[] constant(0) ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }",
        True,
    ),
    "nothing to do": ("ENTRY e { ROOT x = f32[64] parameter(0) }", True),
}


@pytest.mark.parametrize("text, started", STARTED.values(), ids=STARTED.keys())
@pytest.mark.parametrize("long", [False, True])
def test_a_compiler_is_started_early_where_one_is_needed(text, started, long, monkeypatch):
    order = []
    prepare, emit = build.Build.prepare, lowering.emit
    monkeypatch.setattr(build.Build, "prepare", lambda self: (order.append("started"), prepare(self))[1])
    monkeypatch.setattr(lowering, "emit", lambda *given: (order.append("emitted"), emit(*given))[1])
    cyxla.compile(text + " " * (5000 if long else 0), cache=False)
    assert order.index("emitted") == (started or long) + (started and long)


@pytest.fixture
def cache_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CYXLA_CACHE", raising=False)
    return tmp_path


def test_a_cached_program_runs_no_pass(cache_directory, monkeypatch):
    weights = ", ".join(str(k / 7) for k in range(40))
    text = f"""HloModule m
ENTRY e {{
  x = bf16[40] parameter(0)
  w = bf16[40] constant({{{weights}}})
  ROOT r = bf16[40] multiply(x, w)
}}"""
    first = agree(text)
    monkeypatch.setattr(lowering, "run_passes", None)
    monkeypatch.setattr(lowering, "emit", None)
    second = cyxla.compile(text.replace("HloModule m", "HloModule other").replace("x", "other_name"))
    x = np.linspace(-3, 3, 40).astype(first.inputs[0].dtype.numpy_dtype)
    assert first(x).tobytes() == second(x).tobytes()
    assert (first.inputs, first.outputs, first.memory) == (second.inputs, second.outputs, second.memory)


KNOWN = {
    "nested tuples": (PROGRAM, [np.linspace(0, 1, 100, dtype=np.float32)]),
    "bf16": ("ENTRY e { x = bf16[3] parameter(0) ROOT r = bf16[3] add(x, x) }", [np.ones(3, ml_dtypes.bfloat16)]),
    "tokens": (
        "ENTRY e { k = token[] parameter(0) x = s32[] parameter(1) ROOT r = (s32[], token[]) tuple(x, k) }",
        [TOKEN_VALUE, np.int32(7)],
    ),
    "tuple arguments": (
        "ENTRY e { p = (f32[2], (s8[], f32[0,3])) parameter(0) a = f32[2] get-tuple-element(p), index=0 "
        "ROOT r = f32[2] negate(a) }",
        [(np.ones(2, np.float32), (np.int8(1), np.zeros((0, 3), np.float32)))],
    ),
    "no arguments": ("ENTRY e { ROOT c = f64[] constant(2.5) }", []),
}


@pytest.mark.parametrize("text, arguments", KNOWN.values(), ids=KNOWN.keys())
def test_a_known_text_is_not_read(cache_directory, monkeypatch, text, arguments):
    first = cyxla.compile(text)
    wanted = [np.asarray(a).tobytes() for a in flat(first(*arguments)) if a is not TOKEN_VALUE]
    monkeypatch.setattr(hlo, "parse_module", None)
    second = cyxla.compile(text)
    assert [np.asarray(a).tobytes() for a in flat(second(*arguments)) if a is not TOKEN_VALUE] == wanted
    assert (first.inputs, first.outputs, first.memory) == (second.inputs, second.outputs, second.memory)
    monkeypatch.undo()
    assert (first.hlo("input"), first.explain()) == (second.hlo("input"), second.explain())


def test_a_known_text_under_other_options_is_another(cache_directory, monkeypatch):
    cyxla.compile(PROGRAM)
    monkeypatch.setattr(hlo, "parse_module", None)
    with pytest.raises(TypeError):
        cyxla.compile(PROGRAM, seed=3)


def test_a_damaged_name_is_a_miss(cache_directory):
    wanted = agree(PROGRAM).c_source
    disk = cache.open_cache()
    for path in disk.files():
        if path.stat().st_size < 1000:  # the name, and not the module
            path.write_bytes(path.read_bytes()[:-50] + bytes(50))
    assert agree(PROGRAM).c_source == wanted
    assert not disk.verify()


def test_properties_of_executables():
    executable = agree(PROGRAM)
    assert str(executable.outputs) == "(f32[100], (f32[100], f32[100]))"
    assert [str(s) for s in executable.inputs] == ["f32[100]"]
    assert "exponential" in executable.hlo("optimized")
    assert executable.hlo("input") == cyxla.hlo.parse_module(PROGRAM).to_text()
    with pytest.raises(InvalidArgumentError, match="stage"):
        executable.hlo("nonsense")
    assert "cyx_main" in executable.c_source
    assert executable.memory == {"arguments": 400, "results": 1200, "temporaries": 0, "constants": 0}
    assert executable.cost["ns"] > 0
    assert "k0" in executable.explain()


def test_results_in_given_arrays():
    executable = cyxla.compile(PROGRAM)
    x = np.linspace(0, 1, 100, dtype=np.float32)
    out = (np.empty(100, np.float32), (np.empty(100, np.float32), np.empty(100, np.float32)))
    assert executable(x, out=out)[1][1] is out[1][1]
    for a, b in zip(flat(out), flat(executable(x)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_bound_arguments():
    text = """HloModule m
ENTRY e {
  p = (f32[3], f32[3]) parameter(0)
  x = f32[3] parameter(1)
  y = f32[3] parameter(2)
  a = f32[3] get-tuple-element(p), index=0
  b = f32[3] get-tuple-element(p), index=1
  ax = f32[3] multiply(a, x)
  by = f32[3] multiply(b, y)
  ROOT r = f32[3] subtract(ax, by)
}"""
    executable = agree(text)
    pair = (np.full(3, 2, np.float32), np.full(3, 3, np.float32))
    x, y = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    bound = executable.bind({0: pair})
    np.testing.assert_array_equal(bound(x, y), 2 * x - 3 * y)
    np.testing.assert_array_equal(bound.bind({1: y})(x), 2 * x - 3 * y)
    assert len(bound.bind({1: y}).inputs) == 1
    with pytest.raises(InvalidArgumentError, match="no argument 2"):
        bound.bind({2: y})


def test_equal_kernels_are_compiled_once():
    lines = ["  x0 = f32[8,8] parameter(0)"]
    for k in range(12):
        lines.append(f"  x{k + 1} = f32[8,8] dot(x{k}, x{k}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
    executable = cyxla.compile(
        "HloModule m\nENTRY e {\n" + "\n".join(lines)[: -len(lines[-1])] + "  ROOT " + lines[-1].strip() + "\n}"
    )
    assert executable.c_source.count("static cyx_status k0(") == 1
    assert "static cyx_status k1(" not in executable.c_source


def test_many_kernels_are_compiled_in_several_units(monkeypatch):
    monkeypatch.setattr(split_units, "MIN_UNIT_COST", 300)
    monkeypatch.setattr(split_units, "max_compilers", lambda: 8)
    lines = [
        f"  y{k} = f32[{k + 5}] iota(), iota_dimension=0\n  z{k} = f32[{k + 5}] sort(y{k}), dimensions={{0}}, to_apply=up"
        for k in range(8)
    ]
    shapes = ", ".join(f"f32[{k + 5}]" for k in range(8))
    text = (
        "HloModule m\nup { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GT }\n"
        "ENTRY e {\n" + "\n".join(lines) + f"\n  ROOT r = ({shapes}) tuple({', '.join(f'z{k}' for k in range(8))})\n}}"
    )
    executable = cyxla.compile(text, cache=False, disabled_passes=("constant_folding",))
    assert executable.c_source.count("typedef struct cyx_ctx cyx_ctx;") > 1
    for k, array in enumerate(executable()):
        np.testing.assert_array_equal(array, np.arange(k + 4, -1, -1, dtype=np.float32))


@pytest.mark.slow
def test_a_chain_of_twenty_thousand():
    executable = cyxla.compile(chain_text(20_000), cache=False)
    assert abs(executable(np.ones(8, np.float32))).tolist() == [1.0] * 8


def test_work_grows_with_a_chain():
    def work(count):
        return lines_run(lambda: cyxla.compile(chain_text(count), cache=False))

    work(10)
    assert work(2000) < 2.3 * work(1000)


def chain_text(count):
    lines = ["  x0 = f32[8] parameter(0)"]
    lines += [
        f"  {'ROOT ' if k == count - 1 else ''}x{k + 1} = f32[8] {('negate', 'abs', 'floor')[k % 3]}(x{k})"
        for k in range(count)
    ]
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"


def test_a_dump_shows_every_stage(tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_DUMP", str(tmp_path))
    text = """HloModule m
f { x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }
ENTRY e { x = f32[4] parameter(0) ROOT r = f32[4] call(x), to_apply=f }"""
    for _ in range(2):  # a program from the cache has no stages
        cyxla.compile(text)
        (folder,) = tmp_path.iterdir()
        names = sorted(p.name for p in folder.iterdir())
        assert names == [
            "00_input.hlo",
            "01_inline.hlo",
            "01_inline.rewrites.txt",
            "02_simplify.dce.hlo",
            "02_simplify.dce.rewrites.txt",
            "buffers.txt",
            "explain.json",
            "explain.txt",
            "k0.loops.txt",
            "seconds.json",
            "unit0.c",
        ]
        assert folder.name.startswith("m.")
        assert "call" not in (folder / "02_simplify.dce.hlo").read_text()
        assert "negate f32 $0" in (folder / "k0.loops.txt").read_text()
        assert {"inline", "emit", "compile", "unit0.c"} <= set(json.loads((folder / "seconds.json").read_text()))
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
