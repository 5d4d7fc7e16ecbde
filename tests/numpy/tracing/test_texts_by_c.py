"""Texts of traced values that functions of C or unknown code make: the plain function runs where they are used."""

import pprint
import textwrap
import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning


class Shown:
    def __init__(self, a):
        self.a = a

    def __repr__(self):
        return f"Shown({self.a})"

    def __format__(self, spec):
        return "shown as %s" % self.a  # noqa: UP031


FUNCTIONS = {
    "array_str": lambda x, n: np.array_str(x),
    "array2string": lambda x, n: [np.array2string(x), np.array2string(x, precision=2)],
    "array_repr": lambda x, n: np.array_repr(x),
    "map of arrays": lambda x, n: list(map(np.array2string, np.split(x, 2))),
    "map of containers": lambda x, n: list(map(str, [(x[0], 2), [n]])),
    "map of formats": lambda x, n: list(map("a{:.2f}b".format, x)),
    "a mask's elements": lambda x, n: list(map(str, [x[x > 0]])),
    "texts made after each run": lambda x, n: str(x.astype(str)),
    "an exception's text": lambda x, n: str(KeyError([x[0]])),
    "an object's text": lambda x, n: [str(Shown(n + 1)), repr(Shown(x)), f"{Shown(n)}"],
    "a list's own text": lambda x, n: [x[0]].__repr__(),
    "pprint": lambda x, n: pprint.pformat([x[0]]),
    "textwrap": lambda x, n: textwrap.dedent(str(n + 1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_used(name, monkeypatch):
    monkeypatch.delenv("CYXLA_FALLBACK")
    plain = FUNCTIONS[name]
    function = cyxla.jit(plain)
    with pytest.warns(FallbackWarning):
        got = [function(np.arange(4.0), 3), function(np.arange(4.0) + 1, 4)]
    assert got == [plain(np.arange(4.0), 3), plain(np.arange(4.0) + 1, 4)]


def test_printed(capfd):
    @cyxla.jit
    def shown(x):
        print(np.array_str(x), np.array2string(x + 1), np.array_repr(x * 2), " ".join(map(str, [x, x + 1])))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown(np.arange(2.0))
    assert capfd.readouterr().out == "[0. 1.] [1. 2.] array([0., 2.]) [0. 1.] [1. 2.]\n"
