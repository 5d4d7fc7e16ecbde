"""A compiler that gets loops wrong is found out when it is tried out, and given flags that keep it from doing so."""

import stat
import subprocess

import pytest

from cyxla import errors
from cyxla.xla.cpu.native import compiler_check, compiler_search

pytestmark = pytest.mark.skipif(compiler_search.find() is None, reason="needs a C compiler")

# Every loop ends after its first turn unless a flag is among the arguments.
WRONG = """#!/bin/sh
case " $* " in *" {cure} "*) exec {real} "$@";; esac
exec {real} -DCYX_VECTORIZATION_BARRIER=break "$@"
"""


@pytest.fixture
def wrong_compiler(monkeypatch, tmp_path):
    """A function that has this process use a compiler that is right only with a flag."""
    real = compiler_search.require().compiler

    def use(cure):
        path = tmp_path / "cc"
        path.write_text(WRONG.format(cure=cure, real=real.command[0]))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("CYXLA_CC", str(path))
        compiler_search.find_compiler.cache_clear()
        return real

    yield use
    compiler_search.find_compiler.cache_clear()


def test_this_machines_compiler_is_right():
    found = compiler_search.require()
    assert compiler_check.miscompiled_loops(found) == []


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_wrong_compiler_is_cured(number, wrong_compiler, caplog):
    caplog.set_level("INFO")
    flags = compiler_check.WORKAROUNDS[compiler_search.require().compiler.kind][number]
    plain = compiler_search.require()
    wrong_compiler(flags[-1])
    found = compiler_search.require()
    assert found.compiler.workaround == flags
    assert "miscompiles loops" in caplog.text
    assert set(flags) <= set(found.flags())
    assert found.fingerprint != plain.fingerprint
    assert compiler_check.miscompiled_loops(found) == []
    assert compiler_check.miscompiled_loops(found._replace(compiler=found.compiler._replace(workaround=(), steps=None)))
    caplog.clear()
    compiler_search.find_compiler.cache_clear()
    assert compiler_search.require() == found  # from the notes
    assert not caplog.text


def test_a_compiler_that_nothing_cures_is_refused(wrong_compiler, caplog):
    wrong_compiler("-no-such-flag")
    with pytest.raises(errors.InvalidArgumentError, match="not a C compiler that works"):
        compiler_search.find()
    assert "with all flags that were tried" in caplog.text


@pytest.mark.skipif("clang" in str(compiler_search.find()), reason="no gcc")
def test_loops_that_gcc_12_gets_wrong_are_among_those_tried(monkeypatch):
    found = compiler_search.require()
    said = subprocess.run([*found.compiler.command, "-dumpversion"], capture_output=True, text=True, check=True).stdout
    if said.split(".")[0].strip() != "12":
        pytest.skip("no gcc 12")
    monkeypatch.setattr(compiler_check, "VECTORIZATION_BARRIER", "")
    monkeypatch.setattr(compiler_check, "independence", lambda trip, dtypes: ["#pragma GCC ivdep"])
    wrong = compiler_check.miscompiled_loops(found)
    assert {text.split("[")[0] for text in wrong} >= {"s16", "u16", "rows of 4 complex numbers"}


@pytest.fixture
def at_level(monkeypatch, tmp_path):
    """A function that has this process compile at a level."""

    def use(level):
        monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path))
        monkeypatch.setenv("CYXLA_OPT_LEVEL", level)
        compiler_search.find_compiler.cache_clear()
        return compiler_search.require()

    yield use
    compiler_search.find_compiler.cache_clear()


@pytest.mark.parametrize("level", ["1", "2", "3"])
def test_every_level_is_tried_out(level, at_level):
    assert compiler_check.miscompiled_loops(at_level(level)) == []
