"""Malicious programs end in an error of `cyxla.errors` or run correctly; none crashes, hangs or exhausts memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cyxla
from cyxla.errors import OpError

EXAMPLES = sorted((Path(__file__).parents[1] / "examples" / "programs").glob("*.hlo"))
CPU_SECONDS, MEGABYTES = 30, 512


def entry(*lines: str) -> str:
    return "HloModule h\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


DEEP = "(" * 20_000 + "f32[]" + ")" * 20_000
ADD = "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"

PROGRAMS = {
    "tuple type 20,000 deep": entry(f"ROOT x = {DEEP} parameter(0)"),
    "literal 20,000 deep": entry("ROOT x = f32[2] constant(" + "{" * 20_000 + "1" + "}" * 20_000 + ")"),
    "operands 20,000 deep": entry("ROOT x = f32[] " + "negate(f32[] " * 20_000 + "parameter(0)" + ")" * 20_000),
    "tuple index out of range": entry("a = (f32[2]) parameter(0)", "ROOT r = f32[2] get-tuple-element(a), index=7"),
    "tuple index 2^63": entry(
        "a = (f32[2]) parameter(0)", "ROOT r = f32[2] get-tuple-element(a), index=9223372036854775808"),
    "parameter 9 alone": entry("ROOT a = f32[2] parameter(9)"),
    "parameter 2^31-1": entry("ROOT a = f32[2] parameter(2147483647)"),
    "parameter -1": entry("ROOT a = f32[2] parameter(-1)"),
    "sum of an iota of 2^40": ADD + entry(
        "i = f32[1099511627776] iota(), iota_dimension=0", "z = f32[] constant(0)",
        "ROOT r = f32[] reduce(i, z), dimensions={0}, to_apply=add"),
    "sizes whose product overflows": entry("ROOT a = f32[4294967296,4294967296] parameter(0)"),
    "a size of 10^30": entry("ROOT a = f32[1000000000000000000000000000000] parameter(0)"),
    "missing computation": entry("a = f32[2] parameter(0)", "ROOT r = f32[2] call(a), to_apply=nowhere"),
    "computation that calls itself": "f { x = f32[] parameter(0) ROOT r = f32[] call(x), to_apply=f }\n" + entry(
        "x = f32[] parameter(0)", "ROOT r = f32[] call(x), to_apply=f"),
    "slice past the end": entry("a = f32[4] parameter(0)", "ROOT r = f32[8] slice(a), slice={[0:8]}"),
    "NUL byte": entry("a = f32[4] parameter(0)", "ROOT r = f32[4] neg\0ate(a)"),
    "padding beyond all memory": entry(
        "a = u8[1] parameter(0)", "z = u8[] constant(0)",
        "ROOT r = u8[4611686018427387904] pad(a, z), padding=0_4611686018427387903"),
    "no text": "",
    "one brace": "{",
}  # fmt: skip

GUARDED = """
import resource, sys
import cyxla
from cyxla.errors import OpError
import cyxla.xla.client, cyxla.xla.cpu.compiler, cyxla.xla.interpreter.compiler
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)  # kills a process that never ends
text = sys.stdin.buffer.read().decode()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for platform in ("interpreter", "cpu"):
    try:
        cyxla.compile(text, platform=platform)
    except OpError as error:
        print(platform, type(error).__name__, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_malicious_text_ends_in_an_error(name):
    run = subprocess.run(
        [sys.executable, "-c", GUARDED, str(CPU_SECONDS)],
        input=PROGRAMS[name].encode(),
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    errors = [line.split() for line in run.stdout.decode().splitlines()]
    assert [platform for platform, _, _ in errors] == ["interpreter", "cpu"]
    assert all(int(kilobytes) < MEGABYTES * 1024 for _, _, kilobytes in errors)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_text_cut_anywhere_is_refused(path):
    text = path.read_text()
    whole = cyxla.hlo.parse_module(text).to_text()
    for cut in range(0, len(text) - 2, 50):
        try:
            got = cyxla.hlo.parse_module(text[:cut])
            got.verify()
        except OpError:
            continue
        assert got.to_text() != whole or not text[cut:].strip()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_protos_cut_or_bent_are_refused_or_read(path):
    data = cyxla.hlo.parse_module(path.read_text()).to_proto()
    for cut in range(0, len(data) - 1, max(len(data) // 60, 1)):
        for bent in (data[:cut], data[:cut] + bytes([data[cut] ^ 0xFF]) + data[cut + 1 :]):
            try:
                cyxla.hlo.HloModule.from_proto(bent).verify()
            except OpError:
                continue


@pytest.mark.slow
def test_a_chain_of_20_000_operations_runs(backend):
    names = ["negate", "abs", "sine", "negate"]
    lines = ["v0 = f32[16] parameter(0)"]
    lines += [f"{'ROOT ' if k == 20_000 else ''}v{k} = f32[16] {names[k % 4]}(v{k - 1})" for k in range(1, 20_001)]
    x = np.linspace(-1, 1, 16, dtype=np.float32)
    want = x
    for k in range(1, 20_001):
        want = {0: np.negative, 1: np.abs, 2: np.sin, 3: np.negative}[k % 4](want)
    got = cyxla.compile(entry(*lines), platform=backend)(x)
    np.testing.assert_allclose(got, want, rtol=1e-3)


def test_limits_leave_room_for_real_work():
    nested = "((((((((f32[2]))))))))"
    module = cyxla.hlo.parse_module(entry(f"ROOT x = {nested} parameter(0)"))
    assert str(module.entry.root.shape) == nested
