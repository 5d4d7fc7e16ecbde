"""`Jitted.lower`: the program of a function, which prints and compiles itself."""

import copy
import pickle

import numpy as np
import pytest

import cyxla
from cyxla.errors import InvalidArgumentError

X = np.arange(12.0, dtype=np.float32).reshape(3, 4) / 7


@cyxla.jit
def layer(x, w, b=0.5):
    return {"y": np.tanh(x @ w + b), "rows": np.sum(x, axis=1)}


@pytest.fixture(scope="module")
def lowered():
    return layer.lower(X, X.T)


def test_a_lowered_function_is_a_module(lowered):
    assert isinstance(lowered, cyxla.hlo.HloModule)
    assert lowered.entry.module is lowered
    assert lowered.to_text() == lowered.as_text() == cyxla.hlo.HloModule.from_text(lowered.as_text()).to_text()
    assert lowered.fingerprint() == layer.trace(X, X.T).module.fingerprint()
    y, rows = cyxla.compile(lowered)(X, X.T)
    np.testing.assert_array_equal(y, layer(X, X.T)["y"])
    np.testing.assert_array_equal(rows, layer(X, X.T)["rows"])


def test_compile_gives_what_the_function_compiles_to(lowered):
    for executable in (lowered.compile(), layer.compile(X, X.T), pickle.loads(pickle.dumps(lowered.compile()))):
        for got, want in zip(executable(X, X.T), layer(X, X.T).values(), strict=True):
            np.testing.assert_array_equal(got, want)
    assert copy.deepcopy(lowered).to_text() == lowered.to_text()


def test_compile_takes_options(lowered):
    executable = lowered.compile(profile=True)
    executable(X, X.T)
    assert executable.profile().kernels
    with pytest.raises(InvalidArgumentError, match="profiel"):
        lowered.compile(profiel=True)


def test_options_and_platform_of_the_function_hold():
    for platform in ("cpu", "interpreter"):
        executable = cyxla.jit(lambda x: x + x, platform=platform).lower(X).compile()
        assert executable.platform == platform
        np.testing.assert_array_equal(executable(X), X + X)


@cyxla.jit
def row(x, i):
    return x[i]


def test_compiled_programs_raise_the_errors_of_the_function():
    lowered = row.lower(X, np.int64(0))
    for executable in (lowered.compile(), pickle.loads(pickle.dumps(lowered.compile()))):
        np.testing.assert_array_equal(executable(X, 2), X[2])
        with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
            executable(X, 3)


def test_text_in_two_dialects(lowered):
    assert lowered.as_text("hlo").startswith("HloModule layer")
    text = lowered.as_text("stablehlo")
    np.testing.assert_array_equal(cyxla.compile(text)(X, X.T)[0], layer(X, X.T)["y"])
    with pytest.raises(InvalidArgumentError, match="unknown dialect 'mhlo'"):
        lowered.as_text("mhlo")


@pytest.mark.parametrize("function, specs, flops, moved", [
    (lambda x: x + 1, [X], 12, None),
    (lambda x, y: x @ y, [X, X.T], 2 * 3 * 3 * 4, 4 * (12 + 12 + 9)),
    (lambda x: cyxla.fori_loop(0, 10, lambda i, y: y * 2.0, x), [X], 10 * 12, None),
    (lambda x: x[1:2], [X], 0, 2 * 4 * 4),
    (lambda x: x, [np.zeros((0, 3))], 0, 0),
])  # fmt: skip
def test_cost(function, specs, flops, moved):
    cost = cyxla.jit(function).lower(*specs).cost_analysis()
    assert flops <= cost["flops"] <= flops + 30  # counters of loops
    assert moved in (None, cost["bytes accessed"])


def test_analyses_of_executables(backend):
    executable = cyxla.jit(lambda x, y: np.exp(x @ y), platform=backend).lower(X, X.T).compile()
    assert executable.as_text() == executable.hlo("optimized")
    assert executable.cost_analysis()["flops"] == 2 * 3 * 3 * 4 + 9
    memory = executable.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.alias_size_in_bytes) == (96, 36, 0)
    bound = executable.bind({1: X.T}).memory_analysis()
    assert bound.argument_size_in_bytes in (48, 96)


def test_donated_memory_is_an_alias():
    lowered = cyxla.jit(lambda x: x + 1, donate=(0,)).lower(X)
    assert lowered.compile().memory_analysis().alias_size_in_bytes == X.nbytes


class Model:
    def __init__(self):
        self.weight = 3.0

    @cyxla.jit
    def run(self, x):
        return x * self.weight


def test_methods():
    np.testing.assert_array_equal(Model().run.lower(X).compile()(X), X * np.float32(3))


@cyxla.jit
def powers(x, count, shape=(2, 2)):
    return np.stack([x**k for k in range(count)]).reshape(shape)


def test_numbers_that_the_function_needs_are_static():
    """As in calls."""
    x = np.array([1.0, 2.0])
    for executable in (powers.lower(x, 2).compile(), powers.compile(x, 2), cyxla.compile(powers, x, 2)):
        np.testing.assert_array_equal(executable(x), powers(x, 2))
    assert powers.lower(x, 4, (4, 2)).entry.root.shape.dims == (4, 2)
    assert powers.trace(((2,), "f4"), 2).module.entry.root.shape.dims == (2, 2)
