"""Search for the C compiler and its probe."""

import os
import subprocess
import sys
import threading

import pytest
from support.builds.compiled_text import compile_c, load_image, script

from cyxla import errors
from cyxla._native import _rt
from cyxla.xla.cpu.c import isa_levels
from cyxla.xla.cpu.native import compiler_probe, compiler_search

pytestmark = pytest.mark.skipif(compiler_search.find() is None, reason="needs a C compiler")

EXPORT = '__attribute__((visibility("default")))'
DETECTED = _rt.isa_level()
LEVELS = list(isa_levels.ISA_FEATURES)
SUPPORTED = LEVELS[: LEVELS.index(DETECTED) + 1] if DETECTED else [""]


def end_searches():
    for thread in threading.enumerate():
        if thread.name == compiler_search.SEARCH_THREAD:
            thread.join()


@pytest.fixture
def fresh_search(monkeypatch, tmp_path):
    """Forget which compiler was found, here and on disk."""
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CYXLA_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    compiler_search.find_compiler.cache_clear()
    yield monkeypatch
    end_searches()
    compiler_search.find_compiler.cache_clear()


def test_none_means_none(fresh_search):
    fresh_search.setenv("CYXLA_CC", "none")
    assert compiler_search.find() is None
    with pytest.raises(errors.UnimplementedError, match="C compiler") as caught:
        compiler_search.require()
    assert "CYXLA_CC" in caught.value.hint


def test_a_named_compiler_that_does_not_work_is_an_error(fresh_search, tmp_path):
    for command in (
        "/nonexistent/cc",
        script(tmp_path / "broken", "exit 1"),
        script(tmp_path / "liar", "echo gcc; exit 0"),
    ):
        fresh_search.setenv("CYXLA_CC", command)
        with pytest.raises(errors.InvalidArgumentError, match="CYXLA_CC"):
            compiler_search.find()


def test_cc_is_tried_before_the_rest_and_passed_over_when_broken(fresh_search, tmp_path):
    real = compiler_search.require().compiler.command[0]
    wrapper = script(tmp_path / "mycc", f'exec {real} "$@"')
    fresh_search.setenv("CC", f"{wrapper} -DX=1")
    assert compiler_search.require().compiler.command == (wrapper, "-DX=1")
    fresh_search.setenv("CC", "/nonexistent/cc")
    assert compiler_search.require().compiler.command[0] != "/nonexistent/cc"
    fresh_search.setenv("CYXLA_CC", wrapper)
    assert compiler_search.require().compiler.command == (wrapper,)


def test_the_probe_is_remembered_until_the_file_changes(fresh_search, tmp_path):
    real = compiler_search.require().compiler.command[0]
    text = f'echo run >> {tmp_path}/runs; exec {real} "$@"'
    fresh_search.setenv("CYXLA_CC", script(tmp_path / "mycc", text))

    def runs():
        compiler_search.find_compiler.cache_clear()
        identity = compiler_search.require().compiler.identity
        return len((tmp_path / "runs").read_text().split()), identity

    first, identity = runs()
    assert runs() == (first, identity)
    os.utime(tmp_path / "mycc", (0, 0))
    more, other = runs()
    assert more > first
    assert other != identity


@pytest.mark.parametrize("is_early", [False, True], ids=["when needed", "in the background"])
def test_a_compiler_is_probed_once(is_early, fresh_search, tmp_path):
    real = compiler_search.require().compiler.command[0]
    fresh_search.setenv("CC", script(tmp_path / "mycc", f'echo "$*" >> {tmp_path}/runs; exec {real} "$@"'))
    fresh_search.setenv("CYXLA_CACHE_DIR", str(tmp_path / "another"))
    compiler_search.find_compiler.cache_clear()
    assert not compiler_search.is_known()
    for _ in range(2 * is_early):
        compiler_search.find_in_background()
    found = compiler_search.require().compiler
    runs = (tmp_path / "runs").read_text().splitlines()
    assert runs.count("--version") == 1
    if found.steps is not None:  # the programs that the driver runs are tested, not the driver
        assert not [run for run in runs if "unit0" in run]
    compiler_search.find_in_background()  # it is known
    assert compiler_search.require().compiler == found
    assert len((tmp_path / "runs").read_text().splitlines()) == len(runs)


FORKED = """
import os, signal, sys, time
from cyxla.xla.cpu.native import compiler_search
compiler_search.find_in_background()
time.sleep(float(sys.argv[1]))  # the search imports modules, or runs the compiler
pid = os.fork()
if not pid:
    signal.alarm(60)
found = compiler_search.require()
if not pid:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""


@pytest.mark.parametrize("seconds", ["0.002", "0.005", "0.01", "0.05"])
def test_a_fork_waits_for_a_search_in_the_background(seconds, fresh_search, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FORKED, seconds], capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_search_in_the_background_leaves_errors_to_others(fresh_search, tmp_path, caplog):
    monitored = script(tmp_path / "broken", f"echo run >> {tmp_path}/runs; exit 1")
    fresh_search.setenv("CC", monitored)
    fresh_search.setattr(compiler_search, "is_known", lambda: False)
    fresh_search.setenv("CYXLA_CC", monitored)
    compiler_search.find_in_background()
    with pytest.raises(errors.InvalidArgumentError, match="CYXLA_CC"):
        compiler_search.find()
    end_searches()
    assert (tmp_path / "runs").read_text().split() == ["run", "run"]
    assert not caplog.text


def test_the_level_can_be_lowered_but_not_raised(monkeypatch):
    monkeypatch.setenv("CYXLA_ISA", SUPPORTED[0])
    assert compiler_search.find().isa == SUPPORTED[0]
    monkeypatch.setenv("CYXLA_ISA", "x86-64-v9")
    with pytest.raises(errors.InvalidArgumentError, match="CYXLA_ISA"):
        compiler_search.find()
    monkeypatch.setattr(_rt, "isa_level", lambda: "x86-64-v2")
    monkeypatch.setenv("CYXLA_ISA", "x86-64-v3")
    with pytest.raises(errors.InvalidArgumentError, match="x86-64-v2"):
        compiler_search.find()


@pytest.mark.parametrize(
    "said",
    ["", "nothing", " cc1 a.c -o a.s\n as a.s -o a.o\n", " 'unbalanced", " cc1 - -o - |\n as -o elsewhere.o\n"],
)
def test_an_unknown_driver_is_run_as_a_whole(said, fresh_search, tmp_path):
    real = compiler_search.require().compiler.command[0]
    (tmp_path / "said").write_text(said)
    text = f'case "$*" in *-###*) cat {tmp_path}/said >&2;; *) exec {real} "$@";; esac'
    fresh_search.setenv("CYXLA_CC", script(tmp_path / "mycc", text))
    compiler_search.find_compiler.cache_clear()
    assert compiler_search.require().compiler.steps is None
    assert load_image(compile_c(f"{EXPORT} int f(void) {{ return 5; }}"), tmp_path).f() == 5


def test_steps_that_do_not_work_are_not_taken(fresh_search, tmp_path):
    found = compiler_search.require()
    if found.compiler.steps is None:
        pytest.skip("this driver does not say what it runs")
    fresh_search.setattr(compiler_probe, "_program", lambda command, name: script(tmp_path / "broken", "exit 1"))
    compiler_search.find_compiler.cache_clear()
    facts = compiler_probe.probe_compiler(found.compiler.command, DETECTED)
    assert facts["steps"] is None
