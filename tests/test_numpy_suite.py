"""The script that runs NumPy's own tests through `cyxla.jit` detects differences."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / ".ci"


@pytest.fixture(scope="module")
def suite():
    return load("numpy_suite")


@pytest.fixture
def plugin(monkeypatch):
    settings = {"mode": "strict", "platform": "interpreter", "calls": 9, "seconds": 9, "texts": False, "only": None}
    monkeypatch.setenv("NUMPY_SUITE", json.dumps(settings))
    made = load("jitted_numpy")
    made.STATE.begin()
    return made


def load(name):
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    made = module_from_spec(spec)
    sys.modules[name] = made  # where dataclasses look
    spec.loader.exec_module(made)
    return made


X = np.arange(6.0).reshape(2, 3)
DIFFERENCES = {
    "same": (X, X.copy()), "same nan": (np.array([np.nan]), np.array([np.nan])), "same int": (1, 1),
    "close": (X, X * (1 + 1e-14)), "value": (X, X + 1), "value of ints": (np.int8(1), np.int8(2)),
    "value of text": (np.array(["a"]), np.array(["b"])),
    "same objects": (np.array([10**6], object), np.array([10**6], object)),
    "shape": (X, X[:1]), "dtype": (X, X.astype("f4")), "type": (np.float64(1), np.array(1.0)),
    "type of list": ([1], (1,)), "sign of zero": (np.array([0.0]), np.array([-0.0])),
    "sign of zero, imaginary": (np.array([0j]), np.array([complex(0, -0.0)])), "layout": (X, np.asfortranarray(X)),
    "value in a tuple": ((X, X), (X, -X)), "value, nan": (np.array([np.nan]), np.array([1.0])),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences_have_names(plugin, name):
    found = plugin.difference(*DIFFERENCES[name], defined=True)[0]
    assert name.startswith(found)


def test_calls_are_made_twice_and_compared(plugin):
    seen = plugin.seen(np)
    assert type(seen.sum(X, axis=0)) is np.ndarray
    out = np.zeros(3)
    assert seen.add(X[0], [1, 2, 3], out=out) is out
    np.testing.assert_array_equal(out, [1, 3, 5])
    assert seen.add(out, 1, out=out) is out
    np.testing.assert_array_equal(out, [2, 4, 6])
    with pytest.raises(ValueError, match="broadcast"):
        seen.add(X, X[:, :2])
    np.testing.assert_array_equal(seen.blackman(3), np.blackman(3))
    seen.sum(np.array(["a"], dtype=object))
    assert plugin.STATE.counts == {"same": 6, "other arguments": 1}
    assert not plugin.STATE.notes


def test_wrong_results_are_noted_and_handed_on(plugin):
    wrong = plugin.Wrapper(np.negative)
    wrong.name = "positive"  # by which the jitted function is found
    np.testing.assert_array_equal(wrong(X), X)
    assert plugin.STATE.counts == {"value": 1}
    assert plugin.STATE.notes[0]["call"].startswith("positive(array([[0., 1., 2.]")


def test_calls_that_cyxla_refuses_are_numpys(plugin):
    assert plugin.seen(np).pad(X, 1, lambda *vectors: None).shape == (4, 5)
    assert plugin.STATE.counts == {"refused": 1}


def test_known_differences_have_reasons(suite):
    known = {"lib/tests/a.py::T::test_b*": "layout", "lib/tests/a.py::test_c[x-1]": "views"}
    assert suite.reason("lib/tests/a.py::T::test_bc[1]", known) == "layout"
    assert suite.reason("lib/tests/a.py::test_c[x-1]", known) == "views"
    assert suite.reason("lib/tests/a.py::test_c[x-2]", known) is None


def test_the_files_are_there(suite):
    assert suite.test_files(suite.FILES, [])
    assert set(suite.test_files(suite.SHORT, [])) <= set(suite.test_files(suite.FILES, []))
    patterns = json.loads(suite.KNOWN.read_text()).values()
    assert all((suite.numpy_folder() / p.partition("::")[0]).exists() for some in patterns for p in some)
