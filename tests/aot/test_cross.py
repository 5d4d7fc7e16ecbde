"""Libraries for another machine: their C is free of instruction sets; they are compiled and run where tools are."""

import platform
import shutil
import subprocess

import numpy as np
import pytest
from support.builds.ahead_of_time import needs_gcc, run_command, shared

from cyxla import aot
from cyxla.aot import build
from cyxla.errors import UnimplementedError

RNG = np.random.default_rng(0)
W, X = RNG.standard_normal((64, 48), np.float32), RNG.standard_normal((20, 64), np.float32)
MACHINE = "aarch64" if platform.machine() != "aarch64" else "x86_64"


def network(x):
    y = np.tanh(x @ W)
    for _ in range(3):
        y = np.maximum(y @ W.T @ W / 64, 0) + np.sort(y, axis=1)
    return y, np.argmax(y, axis=0), np.exp(y).sum()


def has_tools():
    try:
        return bool(build.tools(MACHINE))
    except UnimplementedError:
        return False


needs_tools = pytest.mark.skipif(not has_tools(), reason=f"needs {MACHINE}-linux-gnu-gcc or zig")


def test_c_for_any_machine_runs_here(tmp_path):
    library = shared(tmp_path, network, X, isa=("",))
    for actual, expected in zip(library(X), network(X), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=1e-5)


def test_sources_for_another_machine_have_no_instruction_sets():
    files = aot.sources.write(aot.program(network, X, name="net"), isa=("",))
    units = [name for name in files if name.startswith("net.any.")]
    assert units
    assert not [flag for name in units for flag in build.flags_of(name, "gcc") if flag.startswith("-m")]
    assert not [name for name in files if b"immintrin" in files[name]]


@pytest.mark.skipif(has_tools(), reason="there are tools")
def test_missing_tools_are_named(tmp_path):
    with pytest.raises(UnimplementedError, match=f"no C compiler for {MACHINE}") as caught:
        aot.compile(network, X, directory=tmp_path, name="net", machine=MACHINE)
    assert "ziglang" in caught.value.hint


@needs_tools
@needs_gcc
@pytest.mark.parametrize("kind", ["static", "shared", "object"])
def test_libraries_of_another_machine(tmp_path, kind):
    product = aot.compile(network, X, directory=tmp_path, name="net", kind=kind, machine=MACHINE, threads="pthreads")
    symbols = run_command("strings", "-a", product.library, cwd=tmp_path)
    assert "net_info" in symbols
    if kind != "static":
        header = product.library.read_bytes()[:20]
        assert int.from_bytes(header[18:20], "little") == {"aarch64": 183, "x86_64": 62}[MACHINE]


@needs_tools
@pytest.mark.skipif(shutil.which(f"qemu-{MACHINE}") is None, reason=f"needs qemu-{MACHINE}")
def test_the_generated_test_runs_under_qemu(tmp_path):
    aot.compile(network, X, directory=tmp_path, name="net", kind="static", machine=MACHINE, test=True)
    command = build.tools(MACHINE).compiler.command
    subprocess.run(
        [*command, "-O1", "-static", "net.test.c", "libnet.a", "-lm", "-o", "main"], cwd=tmp_path, check=True
    )
    assert run_command(f"qemu-{MACHINE}", "./main", cwd=tmp_path) == "net: ok\n"
