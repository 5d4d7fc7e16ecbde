"""A backend in a package of its own: found by its entry point, down to a device of sessions."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parent / "sample_backend"
PAGE = Path(__file__).parents[2] / "docs" / "backend.md"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Run Python in a process that has the sample installed, and return its output."""
    site = tmp_path_factory.mktemp("site")
    about = tomllib.loads((SAMPLE / "pyproject.toml").read_text())["project"]
    info = site / f"cyxla_toy-{about['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    points = about["entry-points"]["cyxla.backends"]
    lines = ["[cyxla.backends]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    path = os.pathsep.join([str(site), str(SAMPLE), str(SAMPLE.parents[1]), str(SAMPLE.parents[2] / "src")])

    def run(*words):
        done = subprocess.run(
            [sys.executable, "-W", "error", *words], env={**os.environ, "PYTHONPATH": path}, cwd=site,
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_network_is_fitted(installed):
    """Node by node, as a whole, and in clusters; as on the host."""
    lines = installed(str(SAMPLE / "fit.py")).splitlines()
    assert len(lines) == 3


def test_the_device_comes_first(installed):
    """Priority 500."""
    lines = installed("-c", "from cyxla.tools.main import main; main(['devices'])").splitlines()
    assert lines == [
        "/job:localhost/replica:0/task:0/device:XLA_TOY:0  type XLA_TOY  priority 500",
        "/job:localhost/replica:0/task:0/device:CPU:0  type CPU  priority 60",
    ]


KERNELS = """
import json
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry
registry = XlaOpRegistry.global_()
registry.register_compilation_kernels()
rows = [r for r in KernelRegistry.global_().registrations("MaxPoolGrad") if r.class_name == "XlaJitOp"]
print(json.dumps({
    "homes": {r.kernel_def.device_type: getattr(r.factory, "keywords", {})["function"].__module__ for r in rows},
    "types": [t.name for k in registry.device_kernels("XLA_TOY_JIT") if k.op == "Relu" for t in k.constraints["T"]],
    "fft": {b: sum("FFT" in k.op for k in registry.device_kernels(b)) > 0 for b in registry.backend_names()},
}))
"""


def test_its_kernel_goes_before_the_generic_one(installed):
    """Its types and its filter restrict those of the kernels."""
    found = json.loads(installed("-c", KERNELS))
    assert found["homes"]["XLA_TOY_JIT"] == "cyxla_toy.kernels"
    assert {found["homes"][b] for b in ("XLA_CPU_JIT", "XLA_INTERPRETER_JIT")} == {
        "cyxla.tf2xla.kernels.nn.nn_pool_ops"
    }
    assert found["types"] == ["DT_FLOAT", "DT_INT32", "DT_INT64"]
    assert found["fft"] == {"XLA_CPU_JIT": True, "XLA_INTERPRETER_JIT": True, "XLA_TOY_JIT": False}


FEW = """
import json
import numpy as np
import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla_toy.executable import OPCODES
from support.graphs.symbolic import *
rng = np.random.default_rng(0)
def network(x, kernel, scale):
    y = apply_op("Conv2D", x, kernel, strides=[1, 1, 2, 1], padding="SAME")
    y = apply_op("FusedBatchNormV3", y, scale, scale, scale, scale, is_training=False)[0]
    y = apply_op("Relu6", y * apply_op("Rsqrt", y * y + np.float32(1)))
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "VALID"}
    pooled = apply_op("MaxPool", y, **window)
    mean = apply_op("AvgPool", y, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
    slope = apply_op("MaxPoolGrad", y, pooled, apply_op("Sigmoid", pooled), **window)
    return mean, slope, apply_op("Softmax", apply_op("Sign", pooled))
values = [rng.normal(size=s).astype(np.float32) for s in ((2, 6, 7, 3), (3, 3, 3, 4), (4,))]
values[2] = np.abs(values[2])
graph = graph_of(network, "float", "float", "float")
results = {}
for platform, device in (("toy", "XLA_TOY_JIT"), ("interpreter", "XLA_INTERPRETER_JIT")):
    result = compiled(graph, *(parameter("float", *v.shape) for v in values), device=device)
    program = cyxla.compile(result.computation, platform=platform)
    results[platform] = program(*values)
    if platform == "toy":
        used = {i.opcode for c in cyxla.hlo.parse_module(program.hlo()).computations.values() for i in c.instructions}
for found, wanted in zip(results["toy"], results["interpreter"], strict=True):
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
try:
    cyxla.compile("ENTRY e { x = f32[4] parameter(0) y = f32[4] sine(x) ROOT z = f32[4] erf(y) }", platform="toy")
except cyxla.errors.UnimplementedError as error:
    refused = error.message
print(json.dumps([len(OPCODES), sorted(used), used <= OPCODES, refused]))
"""


def test_few_opcodes_suffice(installed):
    """Fewer than 40 opcodes; convolutions, pooling, norms are said in terms of them."""
    count, used, known, refused = json.loads(installed("-c", FEW))
    assert count < 40
    assert known
    assert {"dot", "slice", "custom-call"} <= set(used)
    assert not {"convolution", "reduce-window", "select-and-scatter", "logistic", "rsqrt", "clamp"} & set(used)
    assert refused == "the toy has no erf, sine"


@pytest.mark.slow
def test_it_conforms_but_for_a_list(installed):
    """Three in four tests need opcodes or types that it lacks."""
    out = installed("-m", "cyxla.testing", "--backend=toy", f"--backend-list={SAMPLE / 'conformance.txt'}", "-q")
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|skipped|xfailed)", out)}
    assert counts["passed"] >= 150
    assert counts["xfailed"] == 21
    assert "no test that was collected matches" not in out


def test_excluded_ops_are_refused_by_name(installed):
    code = """
import cyxla
from cyxla.core.framework.apply import apply_op
graph = cyxla.Graph()
with graph.as_default():
    apply_op("FFT", graph.placeholder("complex64", [4], name="x"), name="transformed")
try:
    cyxla.Session(graph, jit="on", platform="toy").run(["transformed:0"], {"x:0": [1, 2, 3, 4]})
except cyxla.errors.InvalidArgumentError as error:
    print(error.message)
"""
    assert "node 'transformed' (FFT)" in installed("-c", code)


# The page


def test_the_page_shows_the_sample():
    """Each block stands in a file of the package as it stands there."""
    sources = [path.read_text() for path in sorted(SAMPLE.rglob("*")) if path.suffix in (".py", ".toml")]
    blocks = re.findall(r"^```(?:python|toml)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 9
    assert [block for block in blocks if not any(block in source for source in sources)] == []


def test_the_page_runs(installed):
    (code,) = re.findall(r"^```python run\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    out = installed("-c", code)
    for opcode in ("divide", "add", "exponential", "negate"):
        assert f" {opcode}(" in out
