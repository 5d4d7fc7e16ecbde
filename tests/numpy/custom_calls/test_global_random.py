"""Random numbers of NumPy's global state: runs draw, and leave the state, as the plain function does."""
# ruff: noqa: NPY002 - programs as users write them

import random
import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import UnimplementedError

X = np.random.default_rng(0).normal(size=(50, 4))


def shuffled(x):
    np.random.shuffle(x)
    return x[0]


def shuffled_indices(x):
    order = np.arange(x.shape[0])
    np.random.shuffle(order)
    return x[order]


def seeded(x):
    np.random.seed(7)
    first = np.random.rand(80)
    np.random.seed(7)
    return first - np.random.rand(80) + x[0, 0]


def in_a_loop(x):
    total = np.zeros(100)
    for k in range(40):
        total = total + np.random.rand(100) * k
    return total


def in_a_branch(x):
    if x[0, 0] > 0:
        return np.random.rand(100)
    return np.random.rand(100) * 2


def weighted(x):
    return np.random.choice(50, 70, p=np.abs(x[:, 0]) / np.abs(x[:, 0]).sum())


FUNCTIONS = {
    "normal": lambda x: x + np.random.normal(0, 1, x.shape),
    "rand": lambda x: x * np.random.rand(50, 4),
    "a number of NumPy": lambda x: np.random.choice(x[:, 0]),
    "a float": lambda x: np.random.random(),
    "an int": lambda x: np.random.randint(10),
    "traced parameters": lambda x: np.random.normal(x, np.abs(x) + 1),
    "traced bounds": lambda x: np.random.uniform(x[0, 0], high=x[0, 0] + 1, size=(3, 30)),
    "indices": lambda x: x[np.random.randint(0, 50, 80)],
    "choice": lambda x: x[np.random.choice(50, size=40, replace=False)],
    "choice of an array": lambda x: np.random.choice(x[:, 0], 70),
    "weights": weighted,
    "permutation": lambda x: x[np.random.permutation(len(x))],
    "permutation of an array": lambda x: np.random.permutation(x),
    "order of draws": lambda x: (np.random.rand(100), np.random.normal(size=100), np.random.rand(100)),
    "binomial": lambda x: np.random.binomial(10, 0.3, size=100) + x[0, 0],
    "int32": lambda x: np.random.randint(0, 5, size=100, dtype=np.int32),
    "uint8": lambda x: np.random.randint(0, 5, size=100, dtype="uint8"),
    "unused": lambda x: (np.random.rand(100), x)[1],
    "multivariate": lambda x: np.random.multivariate_normal(np.zeros(4), np.eye(4), size=30) + x[:30],
    "none drawn": lambda x: np.random.rand(0, 3),
    "shuffle": shuffled,
    "shuffle of indices": shuffled_indices,
    "seed": seeded,
    "loop": in_a_loop,
    "branch": in_a_branch,
}


def results(function, count=3):
    """Return the results of some calls, with what they leave of the argument and of the state."""
    np.random.seed(1)
    found = []
    for _ in range(count):
        x = X.copy()
        found += [function(x), x]
    return [*found, np.random.rand()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_draws(name, backend):
    expected = results(FUNCTIONS[name])
    got = results(cyxla.jit(FUNCTIONS[name], platform=backend))
    for one, other in zip(got, expected, strict=True):
        assert type(one) is type(other)
        for mine, plain in zip(one, other, strict=True) if isinstance(other, tuple) else [(one, other)]:
            assert np.asarray(mine).dtype == np.asarray(plain).dtype
            np.testing.assert_allclose(mine, plain, rtol=1e-14, atol=1e-14)


def outside(x):
    return np.random.rand(80) + x[int(x[0, 0] * 1e9), 0]


def test_a_failed_run_leaves_the_state_that_the_plain_function_leaves():
    states = []
    for function in (outside, cyxla.jit(outside, fallback="numpy")):
        np.random.seed(1)
        for _ in range(2):
            with pytest.raises(IndexError):
                function(X)
        states.append(np.random.rand())
    assert states[0] == states[1]


def many_small(x):
    for k in range(30):
        x = x + k * np.random.rand()
    return x


REFUSED = {
    "many small draws": (many_small, "many small draws"),
    "bytes": (lambda x: x + len(np.random.bytes(3)), "no array"),
    "state": (lambda x: x + np.random.get_state()[2], "no array"),
    "list": (lambda x: np.random.shuffle([1, 2, 3]), "changes a list"),
    "values that count": (lambda x: np.random.multinomial(10, np.abs(x[:, 0])), "with other values"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_draws_name_the_line(name):
    function, reason = REFUSED[name]
    with pytest.raises(UnimplementedError, match=rf"numpy\.random\.\w+ cannot be traced: .*{reason}") as caught:
        cyxla.jit(function)(X)
    assert f"at:   {__file__}" in str(caught.value)


def test_errors_are_those_of_numpy():
    with pytest.raises(ValueError, match="Cannot take a larger sample than population"):
        cyxla.jit(lambda x: np.random.choice(5, 10, replace=False) + x[0, 0])(X)


def test_programs_name_functions_of_the_global_state_alone():
    text = """
        HloModule m
        ENTRY e { ROOT d = f64[] custom-call(), custom_call_target="numpy.random", custom_call_has_side_effect=true,
          api_version=API_VERSION_TYPED_FFI, backend_config={function = "__init__", positional = "", named = "",
          shape = array<i64>, result = "f64"} }"""
    cyxla.jit(FUNCTIONS["rand"])(X)
    with pytest.raises(cyxla.errors.InvalidArgumentError, match="has no function '__init__'"):
        cyxla.compile(text, platform="interpreter")()


def test_runs_remember_the_state_only_if_they_can_fail():
    texts = [str(cyxla.jit(f).lower(X).as_text()) for f in (outside, FUNCTIONS["rand"])]
    assert ["remember" in text for text in texts] == [True, False]


def test_gradients():
    def loss(w):
        return (w * np.random.rand(100)).sum()

    np.random.seed(0)
    expected = np.random.rand(100)
    np.random.seed(0)
    np.testing.assert_array_equal(cyxla.grad(loss)(np.ones(100)), expected)
    with pytest.raises(UnimplementedError, match="no derivative with respect to its arguments"):
        cyxla.grad(lambda loc: np.random.normal(loc, 1).sum())(np.ones(100))


rand, shuffle, ranf = np.random.rand, np.random.shuffle, np.random.ranf  # as `from numpy.random import ..` binds them


def shuffled(x):
    shuffle(x)
    return x


NAMED = {
    "global": (lambda x: rand(3) + x, ""),
    "another name": (lambda x: ranf(3) + x, ""),
    "default": (lambda x, draw=np.random.rand: draw(3) + x, ""),
    "shuffle": (shuffled, ""),
    "map": (lambda x: sum(map(rand, [3, 3])) + x, ""),
    "map of Python's": (lambda x: sum(map(random.uniform, [1, 2], [3, 3])) + x, "gives another result in each call"),
    "key": (lambda x: min([1, 1, 1], key=rand) + x, "are drawn while it is traced"),
    "key of Python's": (lambda x: min([1, 2, 3], key=random.randrange) + x, "are drawn while it is traced"),
}


@pytest.mark.parametrize("name", NAMED)
def test_functions_by_their_own_names(name, monkeypatch):
    monkeypatch.delenv("CYXLA_FALLBACK")
    plain, reason = NAMED[name]
    function, results = cyxla.jit(plain), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for call in (function, plain):
            np.random.seed(3)
            random.seed(3)
            results.append([call(np.arange(3.0)) for _ in range(3)])
    np.testing.assert_array_equal(*results)
    reasons = [str(w.message) for w in caught]
    assert bool(reasons) == bool(reason), reasons
    assert all(reason in r for r in reasons)


SIZES = {
    "shapes": lambda n, p: (np.random.uniform(p, 1.0, size=(n, 2)), np.random.normal(0, 1, [3, n + 1])),
    "rand": lambda n, p: np.random.rand(n, n),
    "ranf, sample": lambda n, p: (np.random.ranf(n), np.random.sample((n, 2))),
    "randint": lambda n, p: (np.random.randint(10, size=n), np.random.randint(2, n, 3), np.random.randint(n)),
    "choice": lambda n, p: (np.random.choice(n, 3), np.random.choice(5, n), np.random.choice(n)),
    "permutation": lambda n, p: np.random.permutation(n),
    "distributions": lambda n, p: (np.random.binomial(7, p, n), np.random.normal(p, 1.0, n), np.random.poisson(n, n)),
    "vectors": lambda n, p: (np.random.multinomial(n, [0.2, 0.8]), np.random.dirichlet([1, 2, 3], n)),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_among_the_arguments(name):
    plain, function = SIZES[name], cyxla.jit(SIZES[name])
    for n, p in ((5, 0.3), (5, 0.4), (7, 0.3)):
        got, expected = [], []
        for call, results in ((function, got), (plain, expected)):
            np.random.seed(n)
            made = call(n, p)
            results += made if isinstance(made, tuple) else [made]
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_array_equal(one, other)
