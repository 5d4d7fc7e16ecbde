"""Every verb of ``cyxla``, as a user calls it."""

import io
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from cyxla import config
from cyxla.tools import main as command
from cyxla.tools.compare import difference
from cyxla.tools.programs import random_value
from cyxla.types import Shape
from cyxla.xla.hlo import OPCODES, HloModule, parse_shape

PROGRAM = """HloModule small

ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  p = f32[4] multiply(x, y)
  ROOT t = (f32[4], f32[4]) tuple(p, x)
}
"""
X, Y = np.arange(4, dtype=np.float32), np.full(4, 2, np.float32)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.hlo"
    path.write_text(PROGRAM)
    return str(path)


@pytest.fixture
def cyxla(capsys, monkeypatch):
    """Run the command; gives status, output and errors."""

    def run(*args, stdin=""):
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capsys.readouterr()
        status = command.main([str(a) for a in args])
        return status, *capsys.readouterr()

    return run


# --- run --------------------------------------------------------------------------------------------------------------
def test_run_prints_results_and_times(cyxla, file, tmp_path, backend):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    inputs = ("--input", tmp_path / "x.npy", "--input", tmp_path / "y.npy")
    status, out, _ = cyxla("run", file, *inputs, "--platform", backend, "--repeat", 3)
    assert status == 0
    assert "result 0: float32[4]\n[0. 2. 4. 6.]\nresult 1: float32[4]\n[0. 1. 2. 3.]\n" in out
    assert re.search(backend + r": compiled in [\d.]+ ms, ran in [\d.]+ us", out)


def test_run_reads_and_writes_archives(cyxla, file, tmp_path):
    np.savez(tmp_path / "in.npz", a=X, b=Y)
    status, out, _ = cyxla("run", file, "--input", tmp_path / "in.npz", "--output", tmp_path / "out.npz", "--quiet")
    assert (status, "result" in out) == (0, False)
    with np.load(tmp_path / "out.npz") as written:
        np.testing.assert_array_equal(written["arr_0"], X * Y)
        np.testing.assert_array_equal(written["arr_1"], X)


def test_run_draws_missing_arguments(cyxla, file):
    outputs = [cyxla("run", file, "--seed", seed)[1].rpartition("cpu:")[0] for seed in (1, 1, 2)]
    assert outputs[0] == outputs[1] != outputs[2]


def test_run_takes_raw_bits_for_types_that_numpy_cannot_store(cyxla, tmp_path):
    values = np.array([0.5, -3], ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", values.view(np.uint16))
    program = "ENTRY e { x = bf16[2] parameter(0) ROOT y = bf16[2] negate(x) }"
    args = ("run", "-", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npz")
    status, out, _ = cyxla(*args, stdin=program)
    assert (status, "bfloat16[2]\n[-0.5 3]" in out) == (0, True)
    with np.load(tmp_path / "y.npz") as written:
        np.testing.assert_array_equal(written["arr_0"].view(ml_dtypes.bfloat16), -values)


def test_run_checks_against_another_platform(cyxla, file):
    status, out, _ = cyxla("run", file, "--check", "interpreter", "--quiet")
    assert status == 0
    assert "results agree: largest difference 0 of the scale" in out


OPEN = """func.func @main(%x: tensor<?x3xf32>, %n: tensor<1xi32>) -> (tensor<?x3xf32>, tensor<?xi32>) {
  %0 = stablehlo.negate %x : tensor<?x3xf32>
  %1 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %0, %1 : tensor<?x3xf32>, tensor<?xi32>
}
"""
OPEN_ROWS = "func.func @main(%x: tensor<?x3xf32>, %y: tensor<3xf32>) -> tensor<?x3xf32> { return %x : tensor<?x3xf32> }"


@pytest.fixture
def open_files(tmp_path):
    """Programs of open sizes, and arguments."""
    files = {name: tmp_path / f"{name}.mlir" for name in ("both", "rows")}
    files["both"].write_text(OPEN)
    files["rows"].write_text(OPEN_ROWS)
    arrays = {"x": np.ones((2, 3), np.float32), "n": np.int32([4]), "wide": np.ones((2, 4), np.float32)}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    return {**files, **{name: tmp_path / f"{name}.npy" for name in arrays}}


@pytest.mark.parametrize("args, parts", [
    (["run", "{both}", "--input", "{x}", "--input", "{n}", "--check", "interpreter"],
     ["result 0: float32[2, 3]", "result 1: int32[4]\n[0 1 2 3]", "results agree"]),
    (["run", "{rows}", "--input", "{x}"],                               ["result 0: float32[2, 3]\n[[1. 1. 1.]"]),
    (["run", "{rows}", "--spec", "f32[5,3]", "--spec", "float32[3]"],   ["result 0: float32[5, 3]"]),
    (["bisect", "{both}", "--input", "{x}", "--input", "{n}"],          ["agree"]),
    (["opt", "{rows}", "--spec", "f32[5,3]", "--spec", "f32[3]"],       ["ENTRY", "f32[5,3]"]),
    (["dump", "{rows}", "--stage", "input", "--spec", "f32[5,3]", "--spec", "f32[3]"], ["ENTRY", "f32[5,3]"]),
])  # fmt: skip
def test_arguments_settle_open_sizes(cyxla, open_files, args, parts):
    status, out, _ = cyxla(*(a.format(**open_files) for a in args))
    assert status == 0
    assert [part for part in parts if part not in out] == []


def test_convert_settles_open_sizes(cyxla, open_files, tmp_path):
    made = tmp_path / "made.hlo"
    assert cyxla("convert", open_files["rows"], made, "--spec", "f32[5,3]", "--spec", "f32[3]")[0] == 0
    assert "f32[5,3]" in made.read_text()


@pytest.mark.parametrize("args, message, hint", [
    (["run", "{both}", "--input", "{wide}", "--input", "{n}"], "argument 0: got float32[2,4], want f32[?,3]", ""),
    (["run", "{both}", "--input", "{n}"],            "argument 0: got int32[1], want f32[?,3]", ""),
    (["run", "{both}"],                              "argument 0 of @main is f32[?,3]", "--spec f32[2,3]"),
    (["opt", "{both}"],                              "argument 0 of @main is f32[?,3]", "--spec f32[2,3]"),
    (["dump", "{both}"],                             "argument 0 of @main is f32[?,3]", "--spec f32[2,3]"),
    (["convert", "{both}", "-", "--to", "hlo"],      "argument 0 of @main is f32[?,3]", "--spec f32[2,3]"),
    (["opt", "{rows}", "--spec", "f32[2,4]", "--spec", "f32[3]"], "argument 0 of @main is f32[?,3], not f32[2,4]", ""),
    (["opt", "{rows}", "--spec", "f32[2,4"],         "--spec f32[2,4", "write a type and sizes"),
    (["opt", "{rows}", "--spec", "f32[2,3]"],        "takes 2 arguments, not 1", ""),
])  # fmt: skip
def test_open_sizes_that_arguments_do_not_settle(cyxla, open_files, args, message, hint):
    status, _, err = cyxla(*(a.format(**open_files) for a in args))
    assert status == 1
    assert message in err
    assert hint in err


DISAGREES = """
ENTRY e {
  low = s32[] constant(0)
  high = s32[] constant(1000000)
  x = f32[3] parameter(0)
  r = s32[3] custom-call(x), custom_call_target="count"
  ROOT t = (f32[3], s32[3]) tuple(x, r)
}
"""


def test_run_reports_results_that_differ(cyxla):
    from cyxla.xla.evaluator import register_custom_call
    from cyxla.xla.evaluator.custom_calls import unregister_custom_call

    calls = []
    register_custom_call("count", lambda ev, ins, x: calls.append(x) or np.full(3, len(calls), np.int32))
    try:
        status, out, _ = cyxla("run", "-", "--platform", "interpreter", "--check", "interpreter", stdin=DISAGREES)
    finally:
        unregister_custom_call("count")
    assert status == 1
    assert out.endswith("result 1 differs: 3 of 3 elements\nresults differ\n")


def test_run_measures_kernels(cyxla, file, tmp_path):
    status, out, _ = cyxla(
        "run", file, "--quiet", "--repeat", "3", "--profile", "--trace", str(tmp_path / "trace.json")
    )
    assert status == 0
    assert out.splitlines()[1].split()[:3] == ["kernel", "kind", "calls"]
    assert out.splitlines()[2].split()[2] == "3"
    assert "traceEvents" in (tmp_path / "trace.json").read_text()


def test_run_shows_and_leaves_out_tokens(cyxla, tmp_path):
    program = "ENTRY e { t = token[] after-all() x = f32[] constant(2) ROOT r = (token[], f32[]) tuple(t, x) }"
    args = ("run", "-", "--platform", "interpreter", "--check", "interpreter", "--output", tmp_path / "out.npz")
    status, out, _ = cyxla(*args, stdin=program)
    assert (status, "result 0: token\n" in out) == (0, True)
    with np.load(tmp_path / "out.npz") as written:
        assert written.files == ["arr_1"]


RUNNING_SUM = """
more { s = (s32[], f32[2], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[2], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  sum = f32[2] get-tuple-element(s), index=1
  t = token[] get-tuple-element(s), index=2
  in = (f32[2], token[]) infeed(t)
  x = f32[2] get-tuple-element(in), index=0
  t1 = token[] get-tuple-element(in), index=1
  new = f32[2] add(sum, x)
  pair = (s32[], f32[2]) tuple(i, new)
  t2 = token[] outfeed(pair, t1), outfeed_shape=(s32[], f32[2])
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[2], token[]) tuple(j, new, t2) }
ENTRY main {
  zero = s32[] constant(0)
  start = f32[2] parameter(0)
  t = token[] after-all()
  s = (s32[], f32[2], token[]) tuple(zero, start, t)
  w = (s32[], f32[2], token[]) while(s), condition=more, body=step
  ROOT sum = f32[2] get-tuple-element(w), index=1
}
"""


@pytest.fixture
def fed(tmp_path):
    """Three values for the infeeds, in two files, and the argument."""
    np.savez(tmp_path / "two.npz", X[:2], X[2:])
    np.save(tmp_path / "third.npy", Y[:2])
    np.save(tmp_path / "start.npy", np.float32([10, 20]))
    return ("--infeed", tmp_path / "two.npz", "--infeed", tmp_path / "third.npy", "--input", tmp_path / "start.npy")


@pytest.mark.parametrize("platform, other", [("cpu", "interpreter"), ("interpreter", "cpu")])
def test_run_feeds_programs_and_shows_what_they_send(cyxla, fed, tmp_path, platform, other):
    """Each of several runs takes the values again; the outfeeds are those of the last one."""
    options = ("--platform", platform, "--check", other, "--repeat", 3, "--output", tmp_path / "out.npz")
    status, out, err = cyxla("run", "-", *fed, *options, stdin=RUNNING_SUM)
    assert (status, err) == (0, "")
    assert out.startswith(
        "result 0: float32[2]\n[14. 26.]\noutfeed 0.0: int32[]\n0\noutfeed 0.1: float32[2]\n[10. 21.]"
    )
    assert "outfeed 2.1: float32[2]\n[14. 26.]\n" in out
    assert "left in the infeed queue" not in out
    assert "results agree" in out
    with np.load(tmp_path / "out.npz") as written:
        assert written.files == ["arr_0", *[f"outfeed_{k}_{j}" for k in range(3) for j in range(2)]]
        np.testing.assert_array_equal(written["outfeed_1_1"], [12, 24])


def test_run_counts_values_of_infeeds(cyxla, fed):
    status, _, err = cyxla("run", "-", *fed[2:], stdin=RUNNING_SUM)
    assert status == 1
    assert "takes more than 1 values from the infeed queue" in err
    assert "--infeed FILE gives the next one" in err
    status, out, _ = cyxla("run", "-", *fed, *fed[2:4], stdin=RUNNING_SUM)
    assert (status, "1 values were left in the infeed queue" in out) == (0, True)


TAKES_PAIR = """
ENTRY main {
  t = token[] after-all()
  in = ((bf16[2], (s32[])), token[]) infeed(t)
  pair = (bf16[2], (s32[])) get-tuple-element(in), index=0
  ROOT x = bf16[2] get-tuple-element(pair), index=0
}
"""


def test_run_feeds_tuples(cyxla, tmp_path):
    """An .npz file is one tuple, raw bits are those of the declared type."""
    values = np.array([0.5, -3], ml_dtypes.bfloat16)
    np.savez(tmp_path / "pair.npz", values.view(np.uint16), np.int32(7))
    np.savez(tmp_path / "wrong.npz", np.int32(7), values.view(np.uint16))
    status, out, _ = cyxla("run", "-", "--infeed", tmp_path / "pair.npz", stdin=TAKES_PAIR)
    assert (status, "bfloat16[2]\n[0.5 -3]" in out) == (0, True)
    status, _, err = cyxla("run", "-", "--infeed", tmp_path / "wrong.npz", stdin=TAKES_PAIR)
    assert (status, "but the program takes (bf16[2], (s32[]))" in err) == (1, True)


def test_programs_without_infeeds_take_no_values(cyxla, file, fed):
    status, _, err = cyxla("run", file, *fed[:2])
    assert (status, "the program has no infeed" in err) == (1, True)


# --- opt --------------------------------------------------------------------------------------------------------------
def test_the_output_of_opt_parses_again(cyxla, file):
    status, out, _ = cyxla("opt", file)
    assert status == 0
    assert HloModule.from_text(out).fingerprint() == HloModule.from_text(PROGRAM).fingerprint()
    assert cyxla("opt", "-", stdin=out)[1] == out


def test_opt_runs_a_platforms_passes(cyxla):
    program = """
        f { x = f32[] parameter(0) ROOT y = f32[] negate(x) }
        ENTRY e { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply=f }"""
    assert "call" in cyxla("opt", "-", stdin=program)[1]
    assert "call" not in cyxla("opt", "-", "--platform", "cpu", stdin=program)[1]
    assert "call" in cyxla("opt", "-", "--platform", "interpreter", stdin=program)[1]


def test_opt_writes_and_reads_protos(cyxla, file, tmp_path):
    text = cyxla("opt", file)[1]
    assert cyxla("opt", file, "--output", tmp_path / "small.pb")[:2] == (0, "")
    assert cyxla("opt", tmp_path / "small.pb")[1] == text
    assert cyxla("opt", tmp_path / "small.pb", "--output", tmp_path / "back.hlo")[0] == 0
    assert (tmp_path / "back.hlo").read_text() == text


def test_opt_prints_fingerprints(cyxla, file):
    status, out, _ = cyxla("opt", file, "--fingerprint")
    renamed = cyxla("opt", "-", "--fingerprint", stdin=PROGRAM.replace("p =", "q =").replace("(p,", "(q,"))[1]
    assert (status, out) == (0, renamed)
    assert re.fullmatch(r"[0-9a-f]{32}\n", out)


# --- dump -------------------------------------------------------------------------------------------------------------
# fmt: off
STAGES = [
    ("input",     "HloModule small"),
    ("optimized", "HloModule small"),
    ("plan",      "1 kernels"),
    ("kernels",   '"kernels": ['),
    ("c",         "cyx_status"),
    ("memory",    "arguments: 32 bytes\nresults: 32 bytes\n"),
]
# fmt: on


@pytest.mark.parametrize("stage, start", STAGES)
def test_dump(cyxla, file, stage, start):
    status, out, _ = cyxla("dump", file, "--stage", stage)
    assert (status, start in out, out.endswith("\n\n")) == (0, True, False)


def test_dump_of_a_platform_without_that_stage(cyxla, file):
    status, _, err = cyxla("dump", file, "--stage", "c", "--platform", "interpreter")
    assert (status, err) == (1, "cyxla dump: UNIMPLEMENTED: platform interpreter generates no C\n")


# --- opcodes ---------------------------------------------------------------------------------------------------------
def test_opcodes_lists_every_opcode(cyxla):
    status, out, _ = cyxla("opcodes")
    assert (status, [line.split()[0] for line in out.splitlines()]) == (0, list(OPCODES))


@pytest.mark.parametrize("name, parts", [
    ("add",         ["add: 2 operands", "pred", "s*", "c*"]),
    ("concatenate", ["concatenate: 1+ operands", "dimensions (dims)", "rule:"]),
    ("while",       ["condition (computation)", "body (computation)"]),
    ("compare",     ["direction (enum:EQ,NE", "type (enum:", "default None"]),
])  # fmt: skip
def test_opcodes_describes_one(cyxla, name, parts):
    status, out, _ = cyxla("opcodes", name)
    assert status == 0
    for part in parts:
        assert part in out


def test_opcodes_names_near_ones(cyxla):
    status, _, err = cyxla("opcodes", "concat")
    assert (status, err) == (
        1,
        "cyxla opcodes: NOT_FOUND: unknown opcode 'concat'\n  mend: did you mean concatenate, convert?\n",
    )


def test_opcodes_as_markdown_is_one_table(cyxla):
    lines = cyxla("opcodes", "--markdown")[1].splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 1 + len(OPCODES)
    assert {row.count("|") for row in rows} == {8}
    (tanh,) = (row for row in rows if row.startswith("| tanh |"))
    assert tanh.split(" | ")[5] == "2"


# --- cache ------------------------------------------------------------------------------------------------------------
def test_cache(cyxla, file, tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path / "cache"))

    def entries():
        status, out, _ = cyxla("cache", "info")
        assert status == 0
        assert f"directory: {tmp_path}/cache" in out
        return int(re.search(r"entries: (\d+)", out)[1])

    assert entries() == 0
    cyxla("run", file, "--quiet")
    assert entries() > 0
    assert cyxla("cache", "verify")[:2] == (0, "0 entries damaged\n")
    victim = next((tmp_path / "cache").rglob("*.so"))
    victim.write_bytes(victim.read_bytes()[:-5])
    status, out, _ = cyxla("cache", "verify")
    assert (status, out) == (1, f"removed damaged {victim}\n1 entries damaged\n")
    assert cyxla("cache", "verify")[0] == 0
    cyxla("run", file, "--quiet")
    assert entries() > 0
    assert cyxla("cache", "clear")[0] == 0
    assert entries() == 0
    assert cyxla("run", file, "--quiet", "--check", "interpreter")[0] == 0


def test_cache_that_is_off(cyxla, monkeypatch):
    monkeypatch.setenv("CYXLA_CACHE", "0")
    assert cyxla("cache")[:2] == (0, "the disk cache is off\n")


# --- doctor -----------------------------------------------------------------------------------------------------------
def test_doctor(cyxla):
    status, out, _ = cyxla("doctor", "--self-test")
    facts = dict(line.split(maxsplit=1) for line in out.replace("C compiler", "C-compiler").splitlines() if " " in line)
    assert status == 0
    assert {"cpu", "interpreter"} <= set(facts["platforms"].split(", "))
    assert re.search(r"self test +passed\n", out)
    assert facts["numpy"] == np.__version__


def test_doctor_without_a_compiler(cyxla, monkeypatch):
    monkeypatch.setenv("CYXLA_CC", "none")
    status, out, _ = cyxla("doctor")
    assert (status, "none: install gcc" in out) == (0, True)
    status, out, _ = cyxla("doctor", "--self-test")
    assert (status, "passed, evaluated" in out) == (0, True)


@pytest.mark.parametrize("name, text", [("CYXLA_THREDS", "3"), ("CYXLA_THREADS", "none")])
def test_doctor_finds_wrong_settings(cyxla, monkeypatch, name, text):
    monkeypatch.setenv(name, text)
    status, out, err = cyxla("doctor")
    assert (status, name in out + err) == (1, True)


# --- settings ---------------------------------------------------------------------------------------------------------
def test_settings(cyxla, monkeypatch):
    monkeypatch.setenv("CYXLA_THREADS", "3")
    monkeypatch.setenv("CYXLA_DISABLE_HLO_PASSES", "cse, dce")
    status, out, _ = cyxla("settings")
    shown = {name: value for name, value, *_ in map(str.split, out.splitlines())}
    assert (status, list(shown)) == (0, [f"CYXLA_{name}" for name in config.FLAGS])
    assert (shown["CYXLA_THREADS"], shown["CYXLA_DISABLE_HLO_PASSES"], shown["CYXLA_DUMP"]) == ("3", "cse,dce", "-")


@pytest.mark.parametrize("name", ["CYXLA_DUMP", "dump"])
def test_settings_shows_one(cyxla, name):
    status, out, _ = cyxla("settings", name)
    assert (status, len(out.splitlines()), out.split()[0]) == (0, 1, "CYXLA_DUMP")


def test_settings_names_the_nearest(cyxla):
    status, _, err = cyxla("settings", "DUMPS")
    assert (status, "did you mean CYXLA_DUMP" in err) == (1, True)


# --- errors -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("args, stdin, message", [
    (["opt", "no-such-file"],                        "", "No such file"),
    (["opt", "-"],                                   "HloModule m\n\nENTRY e { x = f32[ }", "INVALID_ARGUMENT: 3:"),
    (["opt", "-"],                                   b"\xff\xfe", "is not text"),
    (["opt", "-", "--platform", "gpu"],              PROGRAM, "NOT_FOUND: no platform 'gpu'"),
    (["opt", "-", "--output", "/no/such/folder/f"],  PROGRAM, "No such file"),
    (["run", "-", "--input", "{folder}"],            PROGRAM, "Is a directory"),
    (["run", "-", "--input", "{text}"],              PROGRAM, "does not contain arrays"),
    (["run", "-", "--input", "{zip}"],               PROGRAM, "does not contain arrays"),
    (["run", "-", "--input", "{empty}"],             PROGRAM, "does not contain arrays"),
    (["run", "-", "--input", "{three}"],             PROGRAM, "3 arrays for 2 parameters"),
    (["run", "-", "--input", "{wide}"],              PROGRAM, "argument 0: got float64[4]"),
    (["dump", "{text}.pb"],                          "", "No such file"),
])  # fmt: skip
def test_errors_of_the_program_are_1(cyxla, tmp_path, args, stdin, message):
    files = {name: tmp_path / name for name in ("text", "zip", "empty", "three", "wide")}
    files["text"].write_text("no arrays")
    files["zip"].write_bytes(b"PK\x03\x04 and no more")
    files["empty"].touch()
    np.savez(tmp_path / "three.npz", X, X, X)
    np.save(tmp_path / "wide.npy", X.astype(np.float64))
    files |= {"three": tmp_path / "three.npz", "wide": tmp_path / "wide.npy", "folder": tmp_path}
    status, _, err = cyxla(*(a.format(**files) for a in args), stdin=stdin)
    assert status == 1
    assert err.startswith(f"cyxla {args[0]}: ")
    assert message in err


@pytest.mark.parametrize("args", [
    [], ["unknown"], ["run"], ["dump", "f", "--stage", "wasm"], ["run", "f", "--repeat", "x"], ["cache", "burn"],
])  # fmt: skip
def test_wrong_usage_is_2(cyxla, capsys, args):
    with pytest.raises(SystemExit) as caught:
        cyxla(*args)
    assert caught.value.code == 2
    assert "usage: cyxla" in capsys.readouterr().err


def test_the_package_is_the_command():
    words = [sys.executable, "-m", "cyxla", "opcodes"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "all-reduce " in done.stdout
    assert subprocess.run([*words[:3], "unknown"], capture_output=True, check=False).returncode == 2


def test_a_reader_that_leaves_is_no_error():
    """As in ``cyxla opcodes | head``."""
    words = [sys.executable, "-m", "cyxla.tools.main", "opcodes"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    _, errors = process.communicate(timeout=600)
    assert (process.returncode, errors) == (0, b"")


# --- parts ------------------------------------------------------------------------------------------------------------
SHAPES = ["f32[]", "f32[0]", "pred[3]", "s4[2,2]", "u2[5]", "c64[3]", "bf16[]", "f8e4m3fn[4]", "(f32[2], (s8[]))"]


@pytest.mark.parametrize("text", SHAPES)
def test_random_values_have_the_shape(text):
    def shape_of(value):
        return Shape.tuple([shape_of(v) for v in value]) if isinstance(value, tuple) else Shape.of(value)

    shape = parse_shape(text)
    value = random_value(shape, np.random.default_rng(0))
    assert shape_of(value) is shape


ONES = np.ones(3, np.float32)


@pytest.mark.parametrize("got, want, problem", [
    (ONES, ONES, ""),
    (ONES * np.nan, ONES * np.nan, ""),
    (ONES + 1e-6, ONES, ""),
    (ONES + 1e-3, ONES, "off by 0.001 of the scale 1"),
    (ONES, ONES * np.nan, "3 infinities or NaNs"),
    (ONES * np.inf, -ONES * np.inf, "3 infinities or NaNs"),
    (ONES[:2], ONES, "float32[2] instead of float32[3]"),
    (ONES, ONES.astype("f8"), "float32[3] instead of float64[3]"),
    (np.array([1, 2]), np.array([1, 3]), "1 of 2 elements"),
    (np.array([True]), np.array([False]), "1 of 1 elements"),
    (ONES * 1j, ONES * 1j, ""),
    (ONES * 1j, ONES + 1j, "off by 0.707 of the scale 1.41"),
    (ONES.astype(ml_dtypes.bfloat16), ONES.astype(ml_dtypes.bfloat16), ""),
    (np.zeros(0), np.zeros(0), ""),
])  # fmt: skip
def test_differences(got, want, problem):
    assert difference(got, want).problem == problem
