"""What the documents show runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cyxla
from cyxla.tools import functions, opcodes
from cyxla.xla.service import register_compiler

ROOT = Path(__file__).parents[1]


def blocks(name, language):
    found = re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE)
    return [code for kind, code in found if kind == language]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(path, tmp_path):
    words = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_the_readme_runs(capsys):
    known, checks = {}, {
        "attention": check_attention, "train(": check_training, "exported": check_exported, "gelu": check_gelu,
        "saxpy": check_saxpy, "activations": check_layer, "raw_ops": check_graph,
    }  # fmt: skip
    found = blocks("README.md", "python")
    assert len(found) == len(checks)
    for code, (mark, check) in zip(found, checks.items(), strict=True):
        assert mark in code
        exec(compile(code, f"README: {mark}", "exec"), known)
        check(known)
    assert "1 kernels" in capsys.readouterr().out


def check_attention(known):
    y = known["attention"].__wrapped__(known["q"], known["k"], known["v"])
    assert known["y"].dtype == np.float32
    np.testing.assert_allclose(known["y"], y, rtol=1e-4, atol=1e-5)


def check_training(known):
    x, y, w = np.eye(3), np.array([0.1, 0.2, 0.3]), np.zeros(3)
    for _ in range(100):
        t = np.tanh(x @ w)
        w = w - 0.1 * (2 / 3) * x.T @ ((t - y) * (1 - t * t))
    np.testing.assert_allclose(known["w"], w, rtol=1e-12)


def check_exported(known):
    np.testing.assert_allclose(known["z"], np.full(3, np.tanh(1), np.float32), rtol=1e-6)


def check_gelu(known):
    interpreted = cyxla.compile(known["program"], platform="interpreter")
    want = interpreted(np.linspace(-3, 3, 1000, dtype=np.float32))
    np.testing.assert_allclose(known["g"], want, rtol=1e-5, atol=1e-6)


def check_saxpy(known):
    np.testing.assert_array_equal(known["s"], np.full(1000, 2, np.float32))


def check_layer(known):
    np.testing.assert_allclose(known["activations"], np.full((8, 128), np.tanh(1)), rtol=1e-6)


def check_graph(known):
    np.testing.assert_allclose(known["loss_value"], 4 * np.tanh(1) ** 2, rtol=1e-6)
    np.testing.assert_allclose(known["slopes"], np.full((4, 2), np.tanh(1) / np.cosh(1) ** 2), rtol=1e-5)
    np.testing.assert_array_equal(known["norms"], [3, 3])


def test_the_readme_names_real_verbs():
    from cyxla.tools.main import parser

    commands = [line for block in blocks("README.md", "") for line in block.splitlines() if line.startswith("cyxla ")]
    assert len(commands) >= 5
    for line in commands:
        assert parser().parse_args(line.split()[1:]).verb == line.split()[1]


def test_the_plugin_of_the_documents_works():
    known = {}
    exec(blocks("docs/plugins.md", "python")[0], known)
    register_compiler("documented", known["ToyCompiler"])
    run = cyxla.compile("ENTRY e { x = f32[3] parameter(0) ROOT y = f32[3] add(x, x) }", platform="documented")
    np.testing.assert_array_equal(run(np.arange(3, dtype=np.float32)), [0, 2, 4])
    assert run.explain() == "evaluated on NumPy"


@pytest.mark.parametrize("page, markdown", [("opcodes.md", opcodes.markdown), ("numpy.md", functions.markdown)])
def test_generated_pages_are_up_to_date(page, markdown):
    """``make docs`` writes them."""
    assert (ROOT / "docs" / page).read_text() == markdown()


DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(path):
    prose = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (path.parent / target).exists(), target
