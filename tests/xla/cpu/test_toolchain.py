"""Flags, commands and cache keys of the C compiler."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from support.builds.compiled_text import compile_c, compile_units, load_image, script
from support.interrupts import sending

from cyxla import errors
from cyxla._native import _rt, kernels
from cyxla.xla.cpu.c import isa_levels, prelude
from cyxla.xla.cpu.native import build, cache, compiler_search, toolchain
from cyxla.xla.cpu.native import library as native
from cyxla.xla.cpu.native.toolchain import Compiler, Toolchain, Unit

pytestmark = pytest.mark.skipif(compiler_search.find() is None, reason="needs a C compiler")

EXPORT = '__attribute__((visibility("default")))'
DETECTED = _rt.isa_level()
LEVELS = list(isa_levels.ISA_FEATURES)
SUPPORTED = LEVELS[: LEVELS.index(DETECTED) + 1] if DETECTED else [""]


@pytest.mark.skipif("zig" in str(compiler_search.find()), reason="zig writes names of temporary files into its images")
def test_the_same_text_gives_the_same_bytes():
    text = f"{EXPORT} int f(int x) {{ return x + 1; }}"
    assert compile_c(text) == compile_c(text)


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
def test_runtime_helpers_exist_at_every_level(isa, tmp_path):
    chain = Toolchain(compiler_search.require().compiler, isa)
    library = load_image(build.compile_units(chain, [Unit(NEEDS_LIBC.replace("EXPORT", EXPORT))]), tmp_path)
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
    image = build.compile_units(Toolchain(compiler_search.require().compiler, isa), [Unit(text)])
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
    library = load_image(
        compile_c(f"{EXPORT} double f(double a, double b, double c) {{ return a * b + c; }}", contract=contract),
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
    library = load_image(compile_c(text), tmp_path)
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
    first = compile_units(units, disk)
    assert load_image(first, tmp_path).f() == 3
    assert disk.info()["entries"] == 4
    runs = []
    start = build.Job.start
    monkeypatch.setattr(build.Job, "start", lambda job, c, **how: (runs.append(" ".join(c)), start(job, c, **how))[1])
    assert compile_units(units, disk) == first
    units[1] = Unit("int part1(void) { return 10; }")
    assert load_image(compile_units(units, disk), tmp_path).f() == 12
    assert [build.LIBRARY in run for run in runs] == [True, False, True]  # nothing compiled, then one unit; then a link


@pytest.mark.parametrize("count", [1, 3])
def test_errors_keep_the_text_and_the_message_of_the_compiler(count, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    good = "int x{};\n"
    with pytest.raises(errors.InternalError, match="undeclared") as caught:
        compile_units([good.format(k) for k in range(count - 1)] + ["int f(void) { return undeclared; }"])
    (kept,) = tmp_path.iterdir()
    assert str(kept) in str(caught.value)
    assert "undeclared" in (kept / f"unit{count - 1}.c").read_text()


@pytest.mark.parametrize("text", ["int f(void) { return missing(); }", "#error no", "int f(void) { return 1"])
def test_bad_text_is_an_error(text, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(errors.InternalError):
        compile_c(text)


def test_no_temporary_files_stay(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    compile_c("int x;")
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
            build.compile_units(slow, [Unit(f"int x{k};") for k in range(count)])
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


@pytest.mark.skipif("gcc" not in str(compiler_search.find()), reason="of gcc alone the steps are known")
@pytest.mark.parametrize("units", TEXTS.values(), ids=TEXTS.keys())
def test_steps_give_the_output_of_the_driver(units, tmp_path):
    compiler = compiler_search.require().compiler
    if compiler.steps is None:
        pytest.skip("this driver does not say what it runs")
    codes = []
    for k, chain in enumerate((Toolchain(compiler, DETECTED), Toolchain(whole(compiler), DETECTED))):
        (tmp_path / f"{k}.so").write_bytes(build.compile_units(chain, units))
        command = ["objdump", "-d", "--no-show-raw-insn", "-j", ".text", f"{k}.so"]
        said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        codes.append(re.sub(PLACES, "", said.split("\n", 3)[3]))
    assert codes[0] == codes[1]


def test_a_compiler_that_waited_for_nothing_is_ended(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with build.Build(compiler_search.require()) as begun:
        begun.prepare()
        processes = [process for job in begun._jobs for process in job.processes]
    assert all(process.returncode is not None for process in processes)
    assert not list(tmp_path.iterdir())


def test_a_compiler_that_dies_early_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    steps = toolchain.Steps(("/bin/false",), ("/bin/cat",), ("/bin/true", toolchain.INPUTS, toolchain.OUTPUT))
    with pytest.raises(errors.InternalError, match="refused"):
        build.compile_units(Toolchain(Compiler(("/bin/false",), "gcc", "", steps), ""), [Unit("int x;" * 100_000)])
    steps = toolchain.Steps(("/nonexistent",), ("/bin/cat",), ("/bin/true",))
    with pytest.raises(errors.InternalError, match="cannot run"):
        build.compile_units(Toolchain(Compiler(("/bin/false",), "gcc", "", steps), ""), [Unit("int x;")])


def test_a_slow_compilation_names_its_kernels(monkeypatch, caplog):
    monkeypatch.setattr(build, "SLOW_COMPILE", 0.0)
    head = "typedef int cyx_status;\n"
    short = "/* add -> f32[2] */\nstatic cyx_status k0(void) { return 0; }\n"
    long = f"/* dot -> f32[3] */\nstatic cyx_status k1(int x) {{ {'x = x * x; ' * 50} return x; }}\n"
    compile_c(f"{head}{short}{long}{EXPORT} int f(void) {{ return k0() + k1(2); }}")
    if compiler_search.require().compiler.steps is not None:
        assert "k1, dot -> f32[3]; k0, add -> f32[2]" in caplog.text


def test_the_level_of_optimisation_is_a_setting(monkeypatch):
    monkeypatch.delenv("CYXLA_OPT_LEVEL", raising=False)
    fingerprints = {compiler_search.require().fingerprint}
    for level in ("1", "2", "3"):
        monkeypatch.setenv("CYXLA_OPT_LEVEL", level)
        assert f"-O{level}" in compiler_search.require().flags()
        fingerprints.add(compiler_search.require().fingerprint)
    assert len(fingerprints) == 4
    monkeypatch.setenv("CYXLA_OPT_LEVEL", "fast")
    with pytest.raises(errors.InvalidArgumentError, match="CYXLA_OPT_LEVEL"):
        compiler_search.find()


def test_keys_depend_on_all_that_matters(monkeypatch):
    compiler = compiler_search.require().compiler
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


@pytest.mark.parametrize("key", [Toolchain.module_key, Toolchain.program_key])
def test_keys_depend_on_the_loaded_prebuilt_functions(monkeypatch, key):
    """Recipes call them by number; the module on disk may have been replaced since it was loaded."""
    tools = compiler_search.require()
    before = key(tools, "program", "options")
    monkeypatch.setattr(kernels, "digest", "00" * 8)
    assert key(tools, "program", "options") != before


def test_keys_are_the_same_in_every_process():
    code = """
from cyxla.xla.cpu.native import cache
from cyxla.xla.cpu.native.compiler_search import require
from cyxla.xla.cpu.native.toolchain import Unit
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
    assert f"#define CYX_ABI_VERSION {toolchain.ABI_VERSION}\n" in prelude.abi()


def test_fingerprint_is_readable():
    assert json.loads(compiler_search.require().fingerprint)


def test_threads_may_compile_at_once():
    images = [None] * 4

    def work(k):
        images[k] = compile_c(f"{EXPORT} int f(void) {{ return {k}; }}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(images)) == 4


def test_headers_are_found():
    from cyxla.include_dir import get_include

    assert (Path(get_include()) / "cyxla" / "abi.h").is_file()
