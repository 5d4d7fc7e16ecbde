"""Calls that prebuilt kernels answer until native code is ready: kernels, bits of results, failures to compile."""

import logging
import os
import subprocess
import sys
import threading
from collections import deque
from queue import SimpleQueue

import numpy as np
import pytest

import cyxla
from cyxla.errors import DeadlineExceededError, InternalError
from cyxla.xla.cpu import compiler
from cyxla.xla.cpu.compiler import CpuCompiler
from cyxla.xla.cpu.prebuilt import program as prebuilt_program
from cyxla.xla.service import CompileOptions, background

X = np.linspace(-3.0, 3.0, 200)
Y = np.linspace(0.5, 2.0, 200)


@pytest.fixture(autouse=True)
def automatic(monkeypatch):
    monkeypatch.setenv("CYXLA_TIER", "auto")
    monkeypatch.setenv("CYXLA_CACHE", "0")


def wave(x, y):
    for _ in range(5):
        x = np.tanh(x * y) + 0.5 * np.sin(y)
    return x


def tiers(f):
    """Return the tier of each signature of a function."""
    return [entry.executable.tier for entry in f.programs.entries.values()]


@pytest.fixture
def native_gate(monkeypatch):
    """Block compilation of native code until the event is set."""
    gate = threading.Event()
    compile_now = CpuCompiler.compile

    def compile_later(self, module, options):
        assert gate.wait(60)
        return compile_now(self, module, options)

    monkeypatch.setattr(CpuCompiler, "compile", compile_later)
    yield gate
    gate.set()


def test_prebuilt_kernels_answer_first_with_the_same_bits(native_gate):
    f = cyxla.jit(wave)
    first = f(X, Y)
    assert tiers(f) == ["kernels"]
    assert "until native code, which is being compiled, is ready" in f.explain()
    assert "map_tanh_f64 x5" in f.explain()
    native_gate.set()
    f.wait()
    assert tiers(f) == ["native"]
    assert "until" not in f.explain()
    assert f(X, Y).tobytes() == first.tobytes() == f.compile(X, Y)(X, Y).tobytes()
    np.testing.assert_allclose(first, wave(X, Y), rtol=1e-13)


def test_wait_timeout(native_gate):
    f = cyxla.jit(wave)
    f(X, Y)
    with pytest.raises(DeadlineExceededError, match=r"wave is not ready after 0\.01 s"):
        f.wait(0.01)


def test_every_signature_has_a_tier_of_its_own(native_gate):
    f = cyxla.jit(wave)
    f(X, Y)
    f(X[:7], Y[:7])
    f(X.astype("f4"), Y.astype("f4"))
    assert tiers(f) == ["kernels"] * 3
    native_gate.set()
    f.wait()
    assert tiers(f) == ["native"] * 3


NEEDS_NATIVE_CODE = {
    "a sum along columns": (lambda x, y: (x * y).reshape(20, 10).sum(axis=0), {}),
    "a product": (lambda x, y: x @ y, {}),
    "a donated argument": (wave, {"donate": ("x",)}),
    "a profile": (wave, {"profile": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", NEEDS_NATIVE_CODE)
def test_programs_that_kernels_do_not_support_wait_for_native_code(name):
    function, options = NEEDS_NATIVE_CODE[name]
    f = cyxla.jit(function, **options)
    f(X.copy(), Y)
    assert tiers(f) == ["native"]


def test_much_work_waits_for_native_code():
    x = np.ones(1_000_000)
    f = cyxla.jit(wave)
    f(x, x)
    assert tiers(f) == ["native"]


def test_long_programs_wait_for_native_code(monkeypatch):
    monkeypatch.setattr(compiler, "MAX_PREBUILT_INSTRUCTIONS", 10)
    f = cyxla.jit(wave)
    f(X, Y)
    assert tiers(f) == ["native"]


@pytest.mark.parametrize("tier, there", [("native", "native"), ("kernels", "kernels")])
def test_tier_option(monkeypatch, tier, there):
    monkeypatch.setenv("CYXLA_TIER", tier)
    f = cyxla.jit(wave)
    f(X, Y)
    f.wait()
    assert tiers(f) == [there]


def test_an_unknown_tier(monkeypatch):
    monkeypatch.setenv("CYXLA_TIER", "fast")
    with pytest.raises(cyxla.errors.InvalidArgumentError, match=r"CYXLA_TIER=.fast.: expected one of auto, kernels"):
        cyxla.jit(wave)(X, Y)


def test_native_code_from_the_disk_answers_at_once(monkeypatch, tmp_path):
    monkeypatch.setenv("CYXLA_CACHE", "1")
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path))
    f = cyxla.jit(wave)
    f(X, Y)
    f.wait()
    again = cyxla.jit(wave)
    again(X, Y)
    assert tiers(again) == ["native"]


def test_compile_failures_are_logged_and_keep_results(monkeypatch, caplog):
    def refuse(self, module, options):
        raise InternalError("the C compiler refused generated code")

    monkeypatch.setattr(CpuCompiler, "compile", refuse)
    f = cyxla.jit(wave)
    first = f(X, Y)
    with caplog.at_level(logging.WARNING), pytest.raises(InternalError, match="refused generated code"):
        f.wait()
    assert tiers(f) == ["kernels"]
    assert f(X, Y).tobytes() == first.tobytes()
    assert "native code could not be compiled: " in f.explain()


def test_unreachable_functions_are_not_compiled(native_gate, monkeypatch):
    compiled = []
    compile_later = CpuCompiler.compile
    monkeypatch.setattr(CpuCompiler, "compile", lambda *a: compiled.append(a) or compile_later(*a))
    kept, gone = cyxla.jit(wave), cyxla.jit(wave)
    kept(X, Y)  # blocks the next job
    gone(X, Y)
    job = next(iter(gone.programs.entries.values())).job
    del gone
    native_gate.set()
    assert job.wait(60)
    assert len(compiled) == 1


def test_threads_during_the_switch_to_native_code():
    f = cyxla.jit(wave)
    wanted, wrong = f(X, Y).tobytes(), []

    def call():
        for _ in range(3000):
            if f(X, Y).tobytes() != wanted:
                wrong.append(True)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for t in threads:
        t.start()
    f.wait()
    for t in threads:
        t.join()
    assert not wrong
    assert tiers(f) == ["native"]


def test_results_of_every_kind_are_the_same_in_native_code(native_gate):
    def many(x, y, k):
        return {"a": x + k, "b": (x.max(), [y[::-1], x[3] * k]), "c": np.where(x > y, x, y), "d": 7}

    f = cyxla.jit(many)
    first = f(X, Y, 2)
    assert tiers(f) == ["kernels"]
    out = {"a": np.empty(200), "b": (None, [np.empty(200), None]), "c": None, "d": None}
    into = f(X, Y, 2, out=out)
    assert into["a"] is out["a"]
    native_gate.set()
    f.wait()
    for one, other, written in zip(parts(first), parts(f(X, Y, 2)), parts(into), strict=True):
        assert type(one) is type(other)
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes() == np.asarray(written).tobytes()


def parts(made):
    return [made["a"], made["b"][0], *made["b"][1], made["c"], made["d"]]


def test_arguments_of_any_kind(native_gate):
    f = cyxla.jit(wave)
    wide = np.repeat(X, 2)
    unaligned = np.frombuffer(b"?" + X.tobytes(), np.uint8)[1:].view(np.float64)
    wanted = f(X, Y).tobytes()
    assert f(wide[::2], Y).tobytes() == f(unaligned, Y).tobytes() == f(X.astype(">f8"), Y).tobytes() == wanted
    assert tiers(f) == ["kernels"]


CHILD = """
import os, sys
import numpy as np
import cyxla
f = cyxla.jit(lambda x: np.tanh(x) * 2.0 + 1.0)
x = np.linspace(-1.0, 1.0, 50)
first = f(x).tobytes()
{rest}
"""


def run(rest, tmp_path, **env):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "CYXLA_TIER": "auto", **env}
    return subprocess.run(
        [sys.executable, "-c", CHILD.format(rest=rest)], capture_output=True, text=True, timeout=600, env=environment
    )


def test_process_exit_leaves_no_files(tmp_path):
    done = run("print(next(iter(f.programs.entries.values())).executable.tier)", tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "kernels\n")
    assert not list(tmp_path.iterdir())


def test_process_exit_finishes_running_jobs(tmp_path):
    folder, temporary = tmp_path / "cache", tmp_path / "temporary"
    temporary.mkdir()
    for tier in ("kernels", "native"):
        done = run(
            "print(next(iter(f.programs.entries.values())).executable.tier)", temporary, CYXLA_CACHE="1",
            CYXLA_CACHE_DIR=str(folder),
        )  # fmt: skip
        assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{tier}\n")


FORKED = """
codes = []
for k in range(4):
    pid = os.fork()
    if pid == 0:
        same = f(x).tobytes() == first
        if k % 2:
            f.wait(60)
            entry = next(iter(f.programs.entries.values()))
            same = same and entry.executable.tier == "native" and f(x).tobytes() == first
        g = cyxla.jit(lambda x: x - 1.0)
        same = same and (g(x) == x - 1.0).all()
        g.wait(60)
        os._exit(0 if same else 1)
    codes.append(os.waitpid(pid, 0)[1])
f.wait(60)
print(codes, f(x).tobytes() == first)
"""


def test_forked_children_compile_pending_jobs(tmp_path):
    done = run(FORKED, tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "[0, 0, 0, 0] True\n")


WAITED_FOR = """
import threading, time
from cyxla.xla.service import background
f.wait()
done, begun = [], threading.Event()
background.submit(lambda: (begun.set(), time.sleep(0.3), done.append(True)))
begun.wait()
pid = os.fork()
if pid == 0:
    os._exit(0 if done else 1)
print(os.waitpid(pid, 0)[1])
"""


def test_fork_waits_for_running_jobs(tmp_path):
    done = run(WAITED_FOR, tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "0\n")


def test_jobs_run_sequentially():
    done = []
    jobs = [background.submit(lambda k=k: done.append(k)) for k in range(20)]
    assert all(job.wait(60) for job in jobs)
    assert done == list(range(20))


def test_failing_jobs_do_not_block_others(caplog):
    done = []
    failing, next_one = background.submit(lambda: 1 / 0), background.submit(lambda: done.append(True))
    assert failing.wait(60)
    assert next_one.wait(60)
    assert done
    assert "work in the background failed" in caplog.text


def test_kernels_stay_without_threads(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background, "_running", False)
    monkeypatch.setattr(background, "_queue", SimpleQueue())
    monkeypatch.setattr(background, "_jobs", deque())
    monkeypatch.setattr(background, "start_new_thread", refuse)
    f = cyxla.jit(wave)
    np.testing.assert_allclose(f(X, Y), wave(X, Y), rtol=1e-13)
    with pytest.raises(DeadlineExceededError):
        f.wait(0.01)
    assert tiers(f) == ["kernels"]


def test_disabled_prebuilt_kernels(monkeypatch):
    monkeypatch.setenv("CYXLA_PREBUILT", "0")
    f = cyxla.jit(wave)
    module = f.lower(X, Y)
    with pytest.raises(prebuilt_program.NotCoveredError, match="options"):
        prebuilt_program.prebuilt_program(module, CompileOptions(), 1e9)
    f(X, Y)
    assert tiers(f) == ["native"]
