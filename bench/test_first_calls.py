"""Claims: the first call of a function takes at most half a second in the median, and none takes a second.

Nothing is cached, and nothing but `cyxla.jit` is imported before: the call imports the compiler, traces, runs the
passes, and compiles C. NPBench's kernels have their first calls in the table of `npbench/run.py`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from first_calls import CASES

SCRIPT = Path(__file__).with_name("first_calls.py")


def first_call(name, folder):
    """Return the figures of a first call in a new process, which finds bytecode, as that of an installed package."""
    environment = {
        **os.environ, "CYXLA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }  # fmt: skip
    for path in (folder / "cache").glob("v*/??/*"):
        path.unlink()  # compiled programs; what is known of the compiler stays
    out = subprocess.run([sys.executable, SCRIPT, name], env=environment, capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def test_first_calls(benchmark, claim, tmp_path):
    for name in CASES:  # finds the compiler and writes bytecode
        first_call(name, tmp_path)
    best = {name: min((first_call(name, tmp_path) for _ in range(3)), key=lambda f: f["wall"]) for name in CASES}
    for name, figures in best.items():
        claim(f"first call: {name}", figures["wall"] * 1e3, "ms")
        claim("  CPU time of Python", figures["python"] * 1e3, "ms")
        claim("  CPU time of compilers until the result", figures["compilers"] * 1e3, "ms")
        claim("  modules imported", figures["modules"], "")
    claim("first call: median", median(f["wall"] for f in best.values()) * 1e3, "ms", at_most=500)
    claim("first call: slowest", max(f["wall"] for f in best.values()) * 1e3, "ms", at_most=1000)
    benchmark.pedantic(first_call, args=("elementwise", tmp_path), rounds=1)
