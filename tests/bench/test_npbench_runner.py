"""The runner of `bench/npbench` tells kernels that are right from those that are not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[2] / "bench" / "npbench" / "run.py"
KERNELS = {
    "right": "def kernel(n, x, y):\n    return x * n + y",
    "raises": "def kernel(n, x, y):\n    raise KeyError('no such thing')",
    "impure": "calls = []\ndef kernel(n, x, y):\n    calls.append(1)\n    return x * len(calls)",
    "dies": "import os, cyxla\n"
    "def kernel(n, x, y):\n    return os._exit(3) if isinstance(x, cyxla.TracedArray) else x + y",
    "hangs": "import time, cyxla\n"
    "def kernel(n, x, y):\n    return time.sleep(1e4) if isinstance(x, cyxla.TracedArray) else x + y",
}


@pytest.fixture
def checkout(tmp_path):
    """Return a folder like a checkout of NPBench, with kernels of two arrays and a number."""
    info = {
        "func_name": "kernel", "parameters": {"S": {"n": 3}}, "input_args": ["n", "x", "y"],
        "init": {"func_name": "initialize", "input_args": ["n"], "output_args": ["x", "y"]},
    }  # fmt: skip
    (tmp_path / "bench_info").mkdir()
    (tmp_path / "npbench").mkdir()
    (tmp_path / "npbench" / "__init__.py").touch()
    for name, source in KERNELS.items():
        folder = tmp_path / "npbench" / "benchmarks" / name
        folder.mkdir(parents=True)
        named = {"benchmark": {**info, "relative_path": name, "module_name": name}}
        (tmp_path / "bench_info" / f"{name}.json").write_text(json.dumps(named))
        (folder / f"{name}.py").write_text(
            "import numpy as np\ndef initialize(n):\n    return np.arange(n) + 0.5, np.ones(n)\n"
        )
        (folder / f"{name}_numpy.py").write_text(source + "\n")
    return tmp_path


def run(checkout, *kernels, timeout):
    command = [sys.executable, RUNNER, checkout, "--kernels", *kernels, "--repeat", "2", "--timeout", str(timeout)]
    path = checkout / "found.json"
    subprocess.run([*command, "--json", path], check=True, capture_output=True)
    return {row["kernel"]: row for row in json.loads(path.read_text())["kernels"]}


@pytest.mark.slow
def test_status(checkout):
    rows = run(checkout, "right", "raises", "impure", "dies", timeout=60)
    assert {name: row["status"] for name, row in rows.items()} == {
        "right": "right", "raises": "error", "impure": "wrong", "dies": "crash",
    }  # fmt: skip
    assert rows["right"]["numpy"] > 0
    assert rows["right"]["ours"] > 0
    assert rows["raises"]["text"] == "KeyError: 'no such thing'"


@pytest.mark.slow
def test_timeout(checkout):
    row = run(checkout, "hangs", timeout=6)["hangs"]
    assert row["status"] == "timeout"
    assert row["text"] == "timeout: over 6 s in cyxla"
