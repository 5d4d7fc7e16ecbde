"""Claims: a function of a wheel is called at most 1.2 times as slowly as a jitted one, and starts in 0.25 s."""

import importlib
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import cyxla
from cyxla import aot

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.builds.wheel_programs import PROGRAMS
from support.hlo.residual_network import ResidualNetwork

START = """
import numpy as np
import network
network.main(np.ones((1, 56, 56, 3), np.float32))
"""


def add(x, y, z):
    return x + y * z


def install(folder, *arguments, **options):
    """Build a wheel for this processor, and install it."""
    level = (cyxla.xla.cpu.c.target.isa_level(),)
    made = aot.compile(*arguments, directory=folder, kind="wheel", isa=level, **options)
    with zipfile.ZipFile(made.library) as archive:
        archive.extractall(folder)
    return str(folder)


def ratio(one, other, arguments, rounds=15):
    """Return the median ratio of two calls that are timed in alternation."""
    count = 1 + int(2e-3 / min(_seconds(f, arguments, 1) for f in (one, other)))
    pairs = [[_seconds(f, arguments, count) for f in (one, other)] for _ in range(rounds)]
    return float(np.median([a / b for a, b in pairs])), min(a for a, _ in pairs)


def _seconds(function, arguments, count):
    started = time.perf_counter()
    for _ in range(count):
        function(*arguments)
    return (time.perf_counter() - started) / count


def test_calls(tmp_path, claim, benchmark, monkeypatch):
    import cyxla.xla.cpu.c.target

    x, jitted = np.arange(3.0), cyxla.jit(add)
    monkeypatch.syspath_prepend(install(tmp_path, add, x, x, x, name="tiny"))
    import tiny

    jitted(x, x, x)
    jitted.wait()
    against_jit, seconds = ratio(tiny.add, jitted, (x, x, x))
    claim("wheel: a call with three arrays of 3 elements", seconds * 1e9, "ns")
    claim("  as a multiple of the jitted call", against_jit, "", at_most=1.2)
    benchmark(tiny.add, x, x, x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(tmp_path, claim, monkeypatch, name):
    import cyxla.xla.cpu.c.target

    program, arguments, function = PROGRAMS[name]()
    monkeypatch.syspath_prepend(install(tmp_path, program, name=f"{name}_program"))
    package = importlib.import_module(f"{name}_program")
    function(*arguments)
    if isinstance(function, cyxla.Jitted):
        function.wait()
    against_jit, seconds = ratio(package.f, function, arguments)
    claim(f"wheel: {name} program", seconds * 1e6, "us")
    claim("  as a multiple of the call without a wheel", against_jit, "", at_most=1.2)


def test_network(tmp_path, claim, monkeypatch):
    import cyxla.xla.cpu.c.target

    network = ResidualNetwork(56, (64, 128, 256, 512), 2, 1000, 1, inside=False)
    weights = {k + 1: w for k, w in enumerate(network.weights)}
    folder = install(tmp_path, network.text, bind=weights, name="network")
    monkeypatch.syspath_prepend(folder)
    import network as package

    bound = cyxla.compile(network.text).bind(weights)
    np.testing.assert_array_equal(package.main(network.images), bound(network.images))
    against_jit, seconds = ratio(package.main, bound, (network.images,), rounds=9)
    claim("wheel: residual network of 47 MB", seconds * 1e3, "ms")
    claim("  as a multiple of the compiled program", against_jit, "", at_most=1.1)
    packages = str(Path(np.__file__).parents[1])
    environment = {"PYTHONPATH": os.pathsep.join([folder, packages])}
    whole, numpy_alone = [], []
    for code, seconds in [(START, whole), ("import numpy", numpy_alone)] * 7:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-S", "-c", code], env=environment, check=True)
        seconds.append(time.perf_counter() - started)
    claim("  start of a process that imports NumPy alone", min(numpy_alone), "s")
    claim("  start of a process to its first result", min(whole), "s", at_most=0.25)
