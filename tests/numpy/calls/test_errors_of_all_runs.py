"""Functions that raise an error in every run: they do before it what the plain function does, and raise its error."""
# ruff: noqa: NPY002 - programs as users write them

import numpy as np
import pytest

import cyxla

SEEN = []
COUNT = 0


class Log:
    entries = 0


@pytest.fixture(autouse=True)
def fallback(monkeypatch):
    """Use the default, which is to run the plain function where that is needed."""
    monkeypatch.delenv("CYXLA_FALLBACK")


def print_value(x, items):
    print("the sum is", x.sum())
    return x[100]


def print_text(x, items):
    print("start")
    return np.reshape(x, (7, 7))


def rebind_global(x, items):
    global COUNT
    COUNT += 1
    return x[100]


def append_outside(x, items):
    SEEN.append(1)
    return x @ np.ones(77)


def set_attribute(x, items):
    Log.entries += 1
    return np.concatenate([x, np.ones((2, 2))])


def write_argument(x, items):
    x[0] = 5.0
    return x[100]


def append_to_argument(x, items):
    items.append(x[0])
    return x.sum(axis=3)


def draw(x, items):
    np.random.seed(3)
    return x[100] + np.random.rand()


def print_in_loop(x, items):
    for k in range(3):
        print(k)
    return x.reshape(4, 4)


def raise_own_error(x, items):
    items.append(x.sum())
    raise KeyError("no such thing")


def solve(x, items):
    print("solving")
    return np.linalg.cholesky(x)


def look_up(x, items):
    x += 1
    return x.no_such_attribute


FUNCTIONS = [
    print_value, print_text, rebind_global, append_outside, set_attribute, write_argument, append_to_argument, draw,
    print_in_loop, raise_own_error, solve, look_up,
]  # fmt: skip


def outcomes(function, capsys):
    """Return for three calls the error's built-in class, and what has been printed, changed and drawn by then."""
    global COUNT
    SEEN.clear()
    COUNT = Log.entries = 0
    np.random.seed(0)
    found = []
    for _ in range(3):
        x, items = np.arange(5.0), []
        with pytest.raises(Exception) as error:  # noqa: PT011 - the classes are compared below
            function(x, items)
        kinds = {k for k in type(error.value).__mro__ if k.__module__ == "builtins"}
        state = (COUNT, list(SEEN), Log.entries, np.random.rand())
        found.append((kinds, x.tolist(), items, capsys.readouterr().out, state))
    return found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_precedes_an_error_happens(function, capsys):
    for jitted, plain in zip(outcomes(cyxla.jit(function), capsys), outcomes(function, capsys), strict=True):
        assert jitted[1:] == plain[1:]
        assert jitted[0] >= plain[0]


def test_errors_of_cyxla_name_the_line():
    with pytest.raises(IndexError, match=r"index 100 is out of bounds(.|\n)*test_errors_of_all_runs.py:\d+"):
        cyxla.jit(write_argument)(np.arange(5.0), [])


def test_errors_that_only_traces_raise_are_no_errors():
    def function(x):
        return x[100] if "Traced" in object.__repr__(x) else x + 1

    jitted = cyxla.jit(function)
    with pytest.warns(cyxla.errors.FallbackWarning, match="while it is traced, but not when it runs"):
        np.testing.assert_array_equal(jitted(np.ones(3)), np.full(3, 2.0))
    np.testing.assert_array_equal(jitted(np.ones(3)), np.full(3, 2.0))


def test_functions_with_other_bounds_do_not_run_plainly(capsys):
    with pytest.raises(ValueError, match="reshape"):
        cyxla.jit(print_text, bounds="clamp")(np.ones(3), [])
    assert not capsys.readouterr().out
