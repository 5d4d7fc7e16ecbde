"""Arguments of classes derived from dict, which may have attributes, constructors and methods of their own."""

import warnings
from collections import OrderedDict

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning

X = np.ones(2)


class OtherConstructor(dict):
    def __init__(self, names=None):
        super().__init__()


class Scaled(dict):
    scale = 1.0


class Numbered(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.scale = 7.0


class Reading(dict):
    def __getitem__(self, key):
        return dict.__getitem__(self, key) * 10


class Writing(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value + 1)


class ByAttribute(dict):
    __slots__ = ()
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class OwnAttributes(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


def items(p, x):
    return {k: v * x for k, v in p.items()}


def scaled(p, x):
    return p.scale * p["a"] * x


def written(p, x):
    p["a"] = p["a"] + x.sum()
    return p["a"]


def _filled(kind, scale=None):
    made = kind()
    made["a"] = 1.0
    made["b"] = 2.0
    if scale is not None:
        made.scale = scale
    return made


#: Class, attribute of the instance, and whether the functions are compiled.
CLASSES = {
    "dict's own": (OrderedDict, None, True),
    "constructor": (OtherConstructor, None, False),
    "attribute of the class": (Scaled, None, True),
    "attribute": (Scaled, 5.0, False),
    "attribute by constructor": (Numbered, None, False),
    "__getitem__": (Reading, None, False),
    "__setitem__": (Writing, None, False),
    "items by attribute": (ByAttribute, 3.0, True),
    "its own attributes": (OwnAttributes, 3.0, True),
}


@pytest.mark.parametrize("function", [items, scaled, written])
@pytest.mark.parametrize("name", CLASSES)
def test_classes(name, function):
    kind, scale, is_compiled = CLASSES[name]
    if function is scaled and not hasattr(_filled(kind, scale), "scale"):
        pytest.skip("the class has no such attribute")
    passed, plain = _filled(kind, scale), _filled(kind, scale)
    f = cyxla.jit(function, fallback="numpy")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", FallbackWarning)
        results = [f(passed, X) for _ in range(2)]
    assert repr(results) == repr([function(plain, X) for _ in range(2)])
    assert repr(passed) == repr(plain)
    assert bool(found) is not is_compiled
