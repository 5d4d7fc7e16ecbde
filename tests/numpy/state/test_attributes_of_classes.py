"""Lists, dicts and arrays that classes, functions and modules hold, as a function reads and changes them."""
# ruff: noqa: RUF012

import copy
import sys
import types
import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning


class Registry:
    names = []
    table = {}
    array = np.zeros(3)
    number = 2

    def add(self, value):
        self.names.append(value)
        return len(self.names)

    @classmethod
    def add_to_class(cls, value):
        cls.names.append(value)
        return len(cls.names)

    def add_to_type(self, value):
        type(self).table[len(self.table)] = value
        return len(self.__class__.table)


class Derived(Registry):
    pass


def cached(x):
    cached.calls.append(x[0])
    cached.table["last"] = x.sum()
    cached.array[:] += x
    return len(cached.calls), cached.array.sum()


instance = Derived()
settings = types.ModuleType("settings")


def reset():
    """Give everything its first state."""
    Registry.names, Registry.table, Registry.array, Registry.number = [], {}, np.zeros(3), 2
    cached.calls, cached.table, cached.array = [], {}, np.zeros(3)
    settings.names, settings.array, settings.scale = [], np.ones(3), 2.0


def state():
    """Return copies of everything."""
    held = (vars(Registry)[n] for n in ("names", "table", "array", "number"))
    return copy.deepcopy([*held, vars(cached), [settings.names, settings.array]])


def lists(x):
    Registry.names.append(x[0])
    Derived.names.extend([x[1], 1])
    kind = Registry
    kind.names[0] = 5
    return len(instance.names), sum(Registry.names)


def methods(x):
    return instance.add(x[0]), Registry.add_to_class(2), Derived.add_to_class(x[1]), instance.add_to_type(x[2])


def arrays(x):
    Registry.array[:] += x
    np.add(Registry.array, 1, out=Registry.array)
    return Registry.array * Registry.number


def branches(x):
    if x[0] > 0:
        Registry.array[0] += 1
    else:
        Registry.array[1] += 2
    return instance.array.sum()


def modules(x):
    settings.names.append(x[0])
    settings.array[0] += 1
    return settings.array @ x * settings.scale


def by_item(x):
    sys.modules[__name__].Registry.names.append(x[0])
    return len(globals()["settings"].names)


CASES = {
    "lists": (lists, ""), "methods": (methods, ""), "arrays": (arrays, ""), "branches": (branches, ""),
    "functions": (cached, ""), "modules": (modules, ""), "by item": (by_item, ""),
    "rebound": (lambda x: setattr(Registry, "number", 3), "an attribute of Registry is set"),
    "as a dict": (lambda x: vars(Registry)["names"].append(x[0]), "are used as a dict"),
}  # fmt: skip


def history(function):
    """Return results and states of some calls, between which everything changes."""
    reset()
    found = []
    for k in range(4):
        found += [function(np.arange(3.0) + k), state()]
        Registry.number += 1
        settings.scale = settings.scale * 2
        Registry.array[2] = k
    return found


def require_equal(got, expected):
    if isinstance(expected, (list, tuple)):
        assert type(got) is type(expected)
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            require_equal(one, other)
    elif isinstance(expected, dict):
        require_equal([*got, *got.values()], [*expected, *expected.values()])
    else:
        assert type(got) is type(expected)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", CASES)
def test_attributes(name, monkeypatch):
    monkeypatch.delenv("CYXLA_FALLBACK")
    function, reason = CASES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = history(cyxla.jit(function))
    require_equal(got, history(function))
    reasons = [str(w.message) for w in caught if issubclass(w.category, FallbackWarning)]
    assert bool(reasons) == bool(reason), reasons
    assert all(reason in r for r in reasons)
