"""``cyxla aot --wheel``."""

import importlib
import inspect

import numpy as np
import pytest
from support.builds.ahead_of_time import LEVEL
from support.builds.wheels import install
from support.hlo.residual_network import ResidualNetwork

import cyxla
from cyxla.tools import main as command

FUNCTION = """
import numpy as np

def scale(x, y):
    "Scale x."
    return np.tanh(x) * y
"""


def run(tmp_path, monkeypatch, name, *arguments):
    """Build a wheel by the command; return its package."""
    monkeypatch.chdir(tmp_path)
    words = ["aot", *arguments, "--wheel", "--name", name, "--out", "wheels", "--target-cpu", LEVEL[0]]
    assert command.main(words) == 0
    [wheel] = (tmp_path / "wheels").glob("*.whl")
    monkeypatch.syspath_prepend(install(wheel, tmp_path / "installed"))
    return importlib.import_module(name), wheel


def test_a_function_of_a_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "functions.py").write_text(FUNCTION)
    package, wheel = run(
        tmp_path,
        monkeypatch,
        "scaling",
        "functions.py:scale",
        "--spec",
        "f32[3]",
        "--spec",
        "f32[]",
        "--version",
        "2.0",
    )
    assert wheel.name.startswith("scaling-2.0-")
    assert "scaling (wheel): 1 files" in capsys.readouterr().out
    assert str(inspect.signature(package.scale)) == "(x, y, *, out=None)"
    x = np.array([1, 2, np.nan], np.float32)
    np.testing.assert_array_equal(package.scale(x, 2.0), cyxla.jit(np.tanh)(x) * np.float32(2))
    assert "set_threads" in package.__all__


@pytest.mark.parametrize("weights", ["embed", "file"])
def test_a_network_without_threads(tmp_path, monkeypatch, weights):
    network = ResidualNetwork()
    (tmp_path / "network.mlir").write_text(network.text)
    package, _ = run(tmp_path, monkeypatch, f"network_{weights}", "network.mlir", "--no-threads", "--weights", weights)
    np.testing.assert_array_equal(package.main(network.images), cyxla.compile(network.text)(network.images))
    assert package.__all__ == ["main"]
