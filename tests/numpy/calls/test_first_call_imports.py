"""A first call imports no part of the package that its function does not need."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
import numpy as np
import cyxla

def steps(x):
    for _ in range(100):
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
    return x

def mapped(x):
    return cyxla.vmap(lambda y: y * 2)(x)

def derived(x):
    return cyxla.grad(lambda y: (y * y).sum())(x)

f = cyxla.jit(globals()[sys.argv[1]])
f(np.ones(16))
f.wait()
print(json.dumps(sorted(sys.modules)))
"""
PARTS = {
    "cyxla.numpy.control.mapped_functions", "cyxla.numpy.gradient.api", "cyxla.xla.batching",
    "cyxla.xla.passes.expand.scan", "cyxla.xla.passes.expand.ragged_dot",
}  # fmt: skip
NEEDED = {
    "steps": set(),
    "mapped": {"cyxla.numpy.control.mapped_functions", "cyxla.numpy.gradient.api", "cyxla.xla.batching"},
    "derived": {"cyxla.numpy.gradient.api"},
}


@pytest.mark.parametrize("name", NEEDED)
def test_imports(name, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    environment = {**os.environ, "CYXLA_CACHE": "0"}
    out = subprocess.run([sys.executable, file, name], env=environment, capture_output=True, text=True, check=True)
    assert PARTS & set(json.loads(out.stdout)) == NEEDED[name]
