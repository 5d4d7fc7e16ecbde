"""Functions on machines without a C compiler: prebuilt functions serve what they cover, and NumPy serves the rest."""

import os
import subprocess
import sys
import textwrap

import pytest

SETUP = """
import warnings
import numpy as np
import cyxla
warnings.simplefilter("error")
x = np.arange(4.0)

def covered(x):
    return np.sin(x).sum()

def evaluated(x):
    x[0] = 0.5
    return np.interp(x, x, x) + len(x)
"""


def run(script, **environment):
    settings = {"CYXLA_CC": "none", "CYXLA_FALLBACK": "numpy", **environment}
    done = subprocess.run(
        [sys.executable, "-c", SETUP + textwrap.dedent(script)],
        env={**os.environ, **settings}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_prebuilt_functions_serve_what_they_cover():
    lines = run("""
        function = cyxla.jit(covered)
        print(abs(function(x) - np.sin(x).sum()) < 1e-12)
        print("map_sine_f64" in function.explain())
    """)
    assert lines == ["True", "True"]


def test_numpy_serves_the_rest():
    lines = run("""
        function, wanted = cyxla.jit(evaluated), x.copy()
        for _ in range(2):
            print(np.array_equal(function(x), evaluated(wanted)), np.array_equal(x, wanted))
        print(function.explain().splitlines()[1])
    """)
    reason = "NumPy runs the function, since it cannot be compiled: native code needs a C compiler and none was found"
    assert lines == ["True True", "True True", reason]


@pytest.mark.parametrize("function, compiled", [("covered", 8), ("evaluated", 0)])
def test_functions_are_not_traced_for_ever(function, compiled):
    lines = run(f"""
        function = cyxla.jit({function})
        for n in range(2, 20):
            assert np.allclose(function(np.ones(n)), {function}(np.ones(n)))
        print(18 - function.explain().count("NumPy runs the function"))
    """)
    assert lines == [str(compiled)]


@pytest.mark.parametrize("options", ["fallback='error'", "bounds='clamp'"])
def test_programs_that_numpy_cannot_stand_for_are_evaluated(options):
    lines = run(f"""
        warnings.simplefilter("ignore", RuntimeWarning)
        function = cyxla.jit(evaluated, {options})
        print(np.array_equal(function(x.copy()), evaluated(x.copy())))
        print("evaluated instruction by instruction" in function.explain())
    """)
    assert lines == ["True", "True"]


@pytest.mark.parametrize("function, by_numpy", [
    ("np.sort(y)", True), ("np.argmax(y)", True), ("y.argmin(axis=1)", True), ("y @ y.T", True),
    ("np.tanh(y)", False), ("y.max()", False), ("y.cumsum()", False),
])  # fmt: skip
def test_numpy_serves_what_it_computes_sooner(function, by_numpy):
    """Sorts, indices of extremes and single products are faster in NumPy than in prebuilt kernels."""
    lines = run(f"""
        y = np.sin(np.arange(20_000.0)).reshape(100, 200)
        function = cyxla.jit(lambda y: {function})
        got, want = function(y), (lambda y: {function})(y)
        print(np.allclose(got, want), type(got) is type(want), got.dtype == want.dtype)
        print("NumPy runs the function" in function.explain())
    """)
    assert lines == ["True True True", str(by_numpy)]
