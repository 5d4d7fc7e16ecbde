"""Executables: bound arguments, XLA's way to run, properties."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cyxla
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla import service
from cyxla.xla.service import RunOptions

PLATFORMS = ["interpreter", "cpu"]
PROGRAM = """
ENTRY e {
  a = f32[4] parameter(0)
  b = (f32[4], f32[4]) parameter(1)
  c = f32[4] parameter(2)
  b0 = f32[4] get-tuple-element(b), index=0
  b1 = f32[4] get-tuple-element(b), index=1
  p = f32[4] multiply(a, b0)
  q = f32[4] add(p, b1)
  r = f32[4] subtract(q, c)
  ROOT t = (f32[4], (f32[4])) tuple(r, (f32[4]) tuple(p))
}
"""
A, B0, B1, C = np.arange(16, dtype=np.float32).reshape(4, 4) + 1
WANT = A * B0 + B1 - C


@pytest.fixture
def run(backend):
    return cyxla.compile(PROGRAM, platform=backend)


@pytest.mark.parametrize("fixed, free", [
    ({},                          (A, (B0, B1), C)),
    ({0: A},                      ((B0, B1), C)),
    ({1: (B0, B1)},               (A, C)),
    ({2: C, 0: A},                ((B0, B1),)),
    ({0: A, 1: (B0, B1), 2: C},   ()),
])  # fmt: skip
def test_binding(run, fixed, free):
    bound = run.bind(fixed)
    assert bound.inputs == tuple(s for k, s in enumerate(run.inputs) if k not in fixed)
    assert (bound.platform, bound.outputs) == (run.platform, run.outputs)
    result, (product,) = bound(*free)
    np.testing.assert_array_equal(result, WANT)
    np.testing.assert_array_equal(product, A * B0)
    assert bound.hlo("input") == run.hlo("input")
    assert run.platform != "interpreter" or bound.explain() == run.explain()


def test_binding_remaining_arguments(run):
    result, _ = run.bind({1: (B0, B1)}).bind({1: C})(A)
    np.testing.assert_array_equal(result, WANT)


@pytest.mark.parametrize("number", [-1, 3])
def test_binding_missing_arguments(run, number):
    with pytest.raises(InvalidArgumentError, match=f"no argument {number}"):
        run.bind({number: A})


def test_bound_programs_count_remaining_arguments(run):
    with pytest.raises(InvalidArgumentError, match="takes 1 argument, got 2"):
        run.bind({0: A, 2: C})((B0, B1), C)


def test_execute_on_stream(run):
    out = (np.empty(4, np.float32), (None,))
    result, (product,) = run.execute_on_stream(RunOptions(out=out), [A, (B0, B1), C])
    assert result is out[0]
    np.testing.assert_array_equal(result, WANT)
    np.testing.assert_array_equal(product, A * B0)


def test_stages(run):
    assert cyxla.hlo.parse_module(run.hlo("input")).entry.root.opcode == "tuple"
    assert cyxla.hlo.parse_module(run.hlo()).entry.root.shape.logical is run.outputs
    with pytest.raises(InvalidArgumentError, match="unknown stage 'c'"):
        run.hlo("c")


def test_only_a_platform_that_writes_c_shows_some():
    interpreter, cpu = (cyxla.compile(PROGRAM, platform=p) for p in PLATFORMS)
    assert "cyx_status" in cpu.c_source
    for run in (interpreter, interpreter.bind({0: A})):
        with pytest.raises(UnimplementedError, match="interpreter generates no C"):
            _ = run.c_source


def test_memory(run):
    assert {"arguments": 64, "results": 32}.items() <= run.memory.items()
    assert run.bind({}).memory == run.memory
    assert run.bind({}).cost == run.cost


# --- asynchronous calls ---


def test_asynchronous_calls(run):
    futures = [run.execute_async(A, (B0, k * B1), C) for k in range(4)]
    for k, future in enumerate(futures):
        result, _ = future.result(timeout=20)
        np.testing.assert_array_equal(result, A * B0 + k * B1 - C)
    out = (np.empty(4, np.float32), (None,))
    assert run.execute_async(A, (B0, B1), C, out=out).result(timeout=20)[0] is out[0]
    np.testing.assert_array_equal(out[0], WANT)


def test_errors_of_asynchronous_calls(run):
    with pytest.raises(InvalidArgumentError, match="takes 3 arguments, got 1"):
        run.execute_async(A).result(timeout=20)


def test_asynchronous_calls_run_at_the_same_time():
    """Each waits for what the other sends."""
    text = """ENTRY e {{ x = f32[] parameter(0) t = token[] after-all()
      s = (f32[], u32[], token[]) send(x, t), channel_id={give} st = token[] send-done(s), channel_id={give}
      r = (f32[], u32[], token[]) recv(st), channel_id={take} d = (f32[], token[]) recv-done(r), channel_id={take}
      ROOT y = f32[] get-tuple-element(d), index=0 }}"""
    client = cyxla.LocalClient("cpu")
    one, two = (client.compile(text.format(give=a, take=b)) for a, b in ((1, 2), (2, 1)))
    futures = [one.run_async([np.float32(1)]), two.run_async([np.float32(2)])]
    assert [float(f.result(timeout=20)) for f in futures] == [2, 1]


LOADS = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])).platform)"


def test_pickles_register_the_platforms_that_they_need(run):
    """In a process that has imported nothing; the service itself names no client."""
    words = [sys.executable, "-c", LOADS, pickle.dumps(run).hex()]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (run.platform, "")
    sources = Path(service.__file__).parent.glob("*.py")
    assert [path.name for path in sources if "xla.client" in path.read_text()] == []
