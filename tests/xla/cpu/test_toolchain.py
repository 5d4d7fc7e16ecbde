"""Finding the C compiler and driving it."""

import ctypes
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from support.unclocked import sending

from cyxla import errors
from cyxla._native import _rt
from cyxla.xla.cpu.c import isa_levels
from cyxla.xla.cpu.native import build, cache, compiler_probe, toolchain
from cyxla.xla.cpu.native import library as native
from cyxla.xla.cpu.native.toolchain import Compiler, Toolchain, Unit

pytestmark = pytest.mark.skipif(toolchain.find() is None, reason="needs a C compiler")

EXPORT = '__attribute__((visibility("default")))'
DETECTED = _rt.isa_level()
LEVELS = list(isa_levels.ISA_FEATURES)
SUPPORTED = LEVELS[: LEVELS.index(DETECTED) + 1] if DETECTED else [""]


@pytest.fixture
def fresh_search(monkeypatch, tmp_path):
    """Forget which compiler was found, here and on disk."""
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CYXLA_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    toolchain.find_compiler.cache_clear()
    yield monkeypatch
    toolchain.find_compiler.cache_clear()


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def load(image, tmp_path):
    path = tmp_path / f"library{time.monotonic_ns()}.so"
    path.write_bytes(image)
    return ctypes.CDLL(str(path))


@pytest.mark.skipif("zig" in str(toolchain.find()), reason="zig writes names of temporary files into its images")
def test_the_same_text_gives_the_same_bytes():
    text = f"{EXPORT} int f(int x) {{ return x + 1; }}"
    assert toolchain.compile_c(text) == toolchain.compile_c(text)


NEEDS_LIBC = """
typedef struct { char bytes[5000]; } big;
EXPORT void copy(big *to, const big *from) { *to = *from; }
EXPORT void clear(big *to) { *to = (big){0}; }
EXPORT void shift(char *p) { __builtin_memmove(p + 1, p, 4000); }
#ifdef __FLT16_MAX__
EXPORT float half(float x) { return (_Float16)x; }
#endif
EXPORT long long divide(long long a, long long b) { return (long long)((__int128)a * 3 / b); }
EXPORT float root(float x) { return __builtin_sqrtf(x); }
"""


@pytest.mark.parametrize("isa", SUPPORTED)
def test_what_the_compiler_itself_calls_is_there_at_every_level(isa, tmp_path):
    chain = Toolchain(toolchain.require().compiler, isa)
    library = load(chain.compile([Unit(NEEDS_LIBC.replace("EXPORT", EXPORT))]), tmp_path)
    source, target = ctypes.create_string_buffer(b"x" * 5000, 5000), ctypes.create_string_buffer(5000)
    library.copy(target, source)
    assert target.raw == source.raw
    library.clear(target)
    assert target.raw == bytes(5000)
    library.root.restype = ctypes.c_float
    if chain.compiler.kind == "gcc" or hasattr(library, "half"):  # clang has the type from 15 on
        library.half.restype = ctypes.c_float
        assert library.half(ctypes.c_float(1.0001)) == 1.0
    assert library.root(ctypes.c_float(9)) == 3.0
    library.divide.restype = ctypes.c_longlong
    assert library.divide(ctypes.c_longlong(1 << 62), ctypes.c_longlong(3)) == 1 << 62


@pytest.mark.parametrize("isa", SUPPORTED)
def test_loops_of_constant_length_use_the_vectors_of_the_level(isa, tmp_path):
    if not isa:
        pytest.skip("levels are a matter of x86-64")
    body = "for (int k = 0; k < 1024; ++k) y[k] = x[k] * x[k];"
    text = f"{EXPORT} void f(float *restrict y, const float *restrict x) {{ {body} }}"
    image = Toolchain(toolchain.require().compiler, isa).compile([Unit(text)])
    (tmp_path / "f.so").write_bytes(image)
    code = subprocess.run(["objdump", "-d", tmp_path / "f.so"], capture_output=True, text=True, check=True).stdout
    register = {128: "xmm", 256: "ymm", 512: "zmm"}[isa_levels.VECTOR_BITS[isa]]
    assert "mulps" in code
    assert f"%{register}" in code


@pytest.mark.parametrize("level", ["", "1", "2", "3"])
@pytest.mark.parametrize("contract, fused", [(False, False), (True, True)])
def test_contraction_is_the_choice_of_the_unit(contract, fused, level, tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_OPT_LEVEL", level)
    if "x86-64-v3" not in SUPPORTED:
        pytest.skip("needs fma")
    library = load(
        toolchain.compile_c(
            f"{EXPORT} double f(double a, double b, double c) {{ return a * b + c; }}", contract=contract
        ),
        tmp_path,
    )
    library.f.restype = ctypes.c_double
    x = 1 + 2.0**-30
    residue = library.f(ctypes.c_double(x), ctypes.c_double(x), ctypes.c_double(-(x * x)))
    assert (residue != 0) is fused


def test_floating_point_is_strict(tmp_path):
    text = f"""
    {EXPORT} float reassociate(float a, float b) {{ return (a + b) - a; }}
    {EXPORT} int is_nan(float a) {{ return a != a; }}
    {EXPORT} float zero(float a) {{ return a + 0.0f; }}
    {EXPORT} float denormal(float a) {{ return a * 0.5f; }}
    """
    library = load(toolchain.compile_c(text), tmp_path)
    for name in ("reassociate", "zero", "denormal"):
        getattr(library, name).restype = ctypes.c_float
    assert library.reassociate(ctypes.c_float(1e10), ctypes.c_float(1.0)) == 0.0
    assert library.is_nan(ctypes.c_float(float("nan"))) == 1
    assert str(library.zero(ctypes.c_float(-0.0))) == "0.0"
    assert library.denormal(ctypes.c_float(1e-39)) > 0


def test_units_are_linked_and_their_objects_kept(tmp_path, monkeypatch):
    units = [Unit(f"int part{k}(void) {{ return {k}; }}") for k in range(3)]
    units.append(
        Unit(
            f"int part0(void), part1(void), part2(void); {EXPORT} int f(void) {{ return part0() + part1() + part2(); }}"
        )
    )
    disk = cache.DiskCache(tmp_path / "cache")
    first = toolchain.compile_units(units, disk)
    assert load(first, tmp_path).f() == 3
    assert disk.info()["entries"] == 4
    runs = []
    start = build.Job.start
    monkeypatch.setattr(build.Job, "start", lambda job, c, **how: (runs.append(" ".join(c)), start(job, c, **how))[1])
    assert toolchain.compile_units(units, disk) == first
    units[1] = Unit("int part1(void) { return 10; }")
    assert load(toolchain.compile_units(units, disk), tmp_path).f() == 12
    assert [build.LIBRARY in run for run in runs] == [True, False, True]  # nothing compiled, then one unit; then a link


@pytest.mark.parametrize("count", [1, 3])
def test_an_error_keeps_the_text_and_says_what_the_compiler_said(count, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    good = "int x{};\n"
    with pytest.raises(errors.InternalError, match="undeclared") as caught:
        toolchain.compile_units([good.format(k) for k in range(count - 1)] + ["int f(void) { return undeclared; }"])
    (kept,) = tmp_path.iterdir()
    assert str(kept) in str(caught.value)
    assert "undeclared" in (kept / f"unit{count - 1}.c").read_text()


@pytest.mark.parametrize("text", ["int f(void) { return missing(); }", "#error no", "int f(void) { return 1"])
def test_bad_text_is_an_error(text, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(errors.InternalError):
        toolchain.compile_c(text)


def test_no_temporary_files_stay(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    toolchain.compile_c("int x;")
    native.build_library(["int y;"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", [1, 4])
def test_an_interruption_ends_the_compilers(count, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    slow = Toolchain(
        Compiler((script(tmp_path / "cc", f"echo $$ >> {tmp_path}/pids; exec sleep 30"),), "gcc", ""), DETECTED
    )

    class Interrupted(BaseException):
        pass

    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interrupted), sending(signal.SIGALRM, (tmp_path / "pids").exists):
            slow.compile([Unit(f"int x{k};") for k in range(count)])
    finally:
        signal.signal(signal.SIGALRM, before)
    for pid in (tmp_path / "pids").read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
    assert not list(tmp_path.glob("cyxla-*"))


def whole(compiler):
    """The compiler with its driver doing all."""
    return Compiler(compiler.command, compiler.kind, compiler.identity)


TEXTS = {
    "one unit": [Unit(NEEDS_LIBC.replace("EXPORT", EXPORT))],
    "two units": [
        Unit(f"double g(double); {EXPORT} double f(double a) {{ return g(a) + 1; }}"),
        Unit("double g(double a) { return a * a + a; }", contract=True),
    ],
}


PLACES = r" *\b[0-9a-f]+(?=:| <)|0x[0-9a-f]+(?=\(%rip\))|# .*"  # of instructions and data


@pytest.mark.skipif("gcc" not in str(toolchain.find()), reason="of gcc alone the steps are known")
@pytest.mark.parametrize("units", TEXTS.values(), ids=TEXTS.keys())
def test_steps_make_what_the_driver_makes(units, tmp_path):
    compiler = toolchain.require().compiler
    if compiler.steps is None:
        pytest.skip("this driver does not say what it runs")
    codes = []
    for k, chain in enumerate((Toolchain(compiler, DETECTED), Toolchain(whole(compiler), DETECTED))):
        (tmp_path / f"{k}.so").write_bytes(chain.compile(units))
        command = ["objdump", "-d", "--no-show-raw-insn", "-j", ".text", f"{k}.so"]
        said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        codes.append(re.sub(PLACES, "", said.split("\n", 3)[3]))
    assert codes[0] == codes[1]


@pytest.mark.parametrize(
    "said",
    ["", "nothing", " cc1 a.c -o a.s\n as a.s -o a.o\n", " 'unbalanced", " cc1 - -o - |\n as -o elsewhere.o\n"],
)
def test_a_driver_that_says_something_else_is_run_whole(said, fresh_search, tmp_path):
    real = toolchain.require().compiler.command[0]
    (tmp_path / "said").write_text(said)
    text = f'case "$*" in *-###*) cat {tmp_path}/said >&2;; *) exec {real} "$@";; esac'
    fresh_search.setenv("CYXLA_CC", script(tmp_path / "mycc", text))
    toolchain.find_compiler.cache_clear()
    assert toolchain.require().compiler.steps is None
    assert load(toolchain.compile_c(f"{EXPORT} int f(void) {{ return 5; }}"), tmp_path).f() == 5


def test_steps_that_do_not_work_are_not_taken(fresh_search, tmp_path):
    found = toolchain.require()
    if found.compiler.steps is None:
        pytest.skip("this driver does not say what it runs")
    fresh_search.setattr(compiler_probe, "_program", lambda command, name: script(tmp_path / "broken", "exit 1"))
    toolchain.find_compiler.cache_clear()
    facts = compiler_probe.probe_compiler(found.compiler.command, DETECTED)
    assert facts["steps"] is None


def test_a_compiler_that_waited_for_nothing_is_ended(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with toolchain.require().build() as begun:
        begun.prepare()
        processes = [process for job in begun._jobs for process in job.processes]
    assert all(process.returncode is not None for process in processes)
    assert not list(tmp_path.iterdir())


def test_a_compiler_that_dies_early_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    steps = toolchain.Steps(("/bin/false",), ("/bin/cat",), ("/bin/true", toolchain.INPUTS, toolchain.OUTPUT))
    with pytest.raises(errors.InternalError, match="refused"):
        Toolchain(Compiler(("/bin/false",), "gcc", "", steps), "").compile([Unit("int x;" * 100_000)])
    steps = toolchain.Steps(("/nonexistent",), ("/bin/cat",), ("/bin/true",))
    with pytest.raises(errors.InternalError, match="cannot run"):
        Toolchain(Compiler(("/bin/false",), "gcc", "", steps), "").compile([Unit("int x;")])


def test_a_slow_compilation_names_its_kernels(monkeypatch, caplog):
    monkeypatch.setattr(build, "SLOW_COMPILE", 0.0)
    head = "typedef int cyx_status;\n"
    short = "/* add -> f32[2] */\nstatic cyx_status k0(void) { return 0; }\n"
    long = f"/* dot -> f32[3] */\nstatic cyx_status k1(int x) {{ {'x = x * x; ' * 50} return x; }}\n"
    toolchain.compile_c(f"{head}{short}{long}{EXPORT} int f(void) {{ return k0() + k1(2); }}")
    if toolchain.require().compiler.steps is not None:
        assert "k1, dot -> f32[3]; k0, add -> f32[2]" in caplog.text


# --- the search -------------------------------------------------------------------------------------------------------


def test_none_means_none(fresh_search):
    fresh_search.setenv("CYXLA_CC", "none")
    assert toolchain.find() is None
    with pytest.raises(errors.UnimplementedError, match="C compiler") as caught:
        toolchain.require()
    assert "CYXLA_CC" in caught.value.hint


def test_a_named_compiler_that_does_not_work_is_an_error(fresh_search, tmp_path):
    for command in (
        "/nonexistent/cc",
        script(tmp_path / "broken", "exit 1"),
        script(tmp_path / "liar", "echo gcc; exit 0"),
    ):
        fresh_search.setenv("CYXLA_CC", command)
        with pytest.raises(errors.InvalidArgumentError, match="CYXLA_CC"):
            toolchain.find()


def test_cc_is_tried_before_the_rest_and_passed_over_when_broken(fresh_search, tmp_path):
    real = toolchain.require().compiler.command[0]
    wrapper = script(tmp_path / "mycc", f'exec {real} "$@"')
    fresh_search.setenv("CC", f"{wrapper} -DX=1")
    assert toolchain.require().compiler.command == (wrapper, "-DX=1")
    fresh_search.setenv("CC", "/nonexistent/cc")
    assert toolchain.require().compiler.command[0] != "/nonexistent/cc"
    fresh_search.setenv("CYXLA_CC", wrapper)
    assert toolchain.require().compiler.command == (wrapper,)


def test_the_probe_is_remembered_until_the_file_changes(fresh_search, tmp_path):
    real = toolchain.require().compiler.command[0]
    text = f'echo run >> {tmp_path}/runs; exec {real} "$@"'
    fresh_search.setenv("CYXLA_CC", script(tmp_path / "mycc", text))

    def runs():
        toolchain.find_compiler.cache_clear()
        identity = toolchain.require().compiler.identity
        return len((tmp_path / "runs").read_text().split()), identity

    first, identity = runs()
    assert runs() == (first, identity)
    os.utime(tmp_path / "mycc", (0, 0))
    more, other = runs()
    assert more > first
    assert other != identity


def test_the_level_can_be_lowered_but_not_raised(monkeypatch):
    monkeypatch.setenv("CYXLA_ISA", SUPPORTED[0])
    assert toolchain.find().isa == SUPPORTED[0]
    monkeypatch.setenv("CYXLA_ISA", "x86-64-v9")
    with pytest.raises(errors.InvalidArgumentError, match="CYXLA_ISA"):
        toolchain.find()
    monkeypatch.setattr(_rt, "isa_level", lambda: "x86-64-v2")
    monkeypatch.setenv("CYXLA_ISA", "x86-64-v3")
    with pytest.raises(errors.InvalidArgumentError, match="x86-64-v2"):
        toolchain.find()


def test_the_level_of_optimisation_is_a_setting(monkeypatch):
    monkeypatch.delenv("CYXLA_OPT_LEVEL", raising=False)
    fingerprints = {toolchain.require().fingerprint}
    for level in ("1", "2", "3"):
        monkeypatch.setenv("CYXLA_OPT_LEVEL", level)
        assert f"-O{level}" in toolchain.require().flags()
        fingerprints.add(toolchain.require().fingerprint)
    assert len(fingerprints) == 4
    monkeypatch.setenv("CYXLA_OPT_LEVEL", "fast")
    with pytest.raises(errors.InvalidArgumentError, match="CYXLA_OPT_LEVEL"):
        toolchain.find()


def test_keys_depend_on_all_that_matters(monkeypatch):
    compiler = toolchain.require().compiler
    a = Toolchain(compiler, "x86-64-v3")
    chains = [
        a,
        Toolchain(compiler, "x86-64-v2"),
        Toolchain(Compiler(compiler.command, compiler.kind, "another"), "x86-64-v3"),
    ]
    keys = [chain.key([Unit("int x;")]) for chain in chains]
    keys += [
        a.key([Unit("int y;")]),
        a.key([Unit("int x;", contract=True)]),
        a.key([Unit("int "), Unit("x;")]),
        a.key([]),
    ]
    monkeypatch.setattr(toolchain, "ABI_VERSION", 2)
    keys.append(a.key([Unit("int x;")]))
    assert len(set(keys)) == len(keys)
    modules = [a.module_key(*pair) for pair in [("p", "q"), ("pq", ""), ("", "pq"), ("q", "p")]]
    assert len({*keys, *modules}) == len(keys) + 4


def test_keys_are_the_same_in_every_process():
    code = """
from cyxla.xla.cpu.native import cache
from cyxla.xla.cpu.native.toolchain import Unit, require
cache.code_fingerprint = lambda: "whatever the sources are"
print(require().key([Unit("int x;")]), require().module_key("a", "b"))
"""
    seen = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code]
        seen.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(seen) == 1


def test_header_and_python_agree_on_the_abi_version():
    assert f"#define CYX_ABI_VERSION {toolchain.ABI_VERSION}\n" in toolchain.abi_header()


def test_fingerprint_is_readable():
    assert json.loads(toolchain.require().fingerprint)


def test_threads_may_compile_at_once():
    images = [None] * 4

    def work(k):
        images[k] = toolchain.compile_c(f"{EXPORT} int f(void) {{ return {k}; }}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(images)) == 4


def test_headers_are_found():
    from cyxla.include_dir import get_include

    assert (Path(get_include()) / "cyxla" / "abi.h").is_file()
