"""Options of a compilation: keywords over the environment."""

import pytest

from cyxla.errors import InvalidArgumentError
from cyxla.xla.service import CompileOptions


def test_keywords_come_before_the_environment(monkeypatch):
    monkeypatch.setenv("CYXLA_CACHE", "0")
    monkeypatch.setenv("CYXLA_DISABLE_HLO_PASSES", "dce, inline")
    assert CompileOptions.of({}) == CompileOptions(cache=False, disabled_passes=("dce", "inline"))
    assert CompileOptions.of({"cache": True, "disabled_passes": ()}) == CompileOptions()


@pytest.mark.parametrize("options, hint", [
    ({"sed": 1}, "did you mean seed?"), ({"max_trip": 1}, "did you mean max_trips?"),
    ({"disabled_passes": "dce"}, "tuple of names"), ({"donate": "x"}, "give a tuple"), ({"donate": 0}, "give a tuple"),
])  # fmt: skip
def test_wrong_options_are_refused(options, hint):
    with pytest.raises(InvalidArgumentError) as caught:
        CompileOptions.of(options)
    assert hint in caught.value.hint


def test_misspelt_environment_is_refused(monkeypatch):
    monkeypatch.setenv("CYXLA_CASHE", "0")
    with pytest.raises(InvalidArgumentError, match="CYXLA_CACHE"):
        CompileOptions.of({})


@pytest.mark.parametrize("one, other, same", [
    ({"disabled_passes": ("a", "b")}, {"disabled_passes": ("b", "a")}, True), ({"seed": 1}, {"seed": 2}, False),
    ({"donate": (0,)}, {}, False), ({"donate": True}, {"donate": (0,)}, False),
    ({"donate": [0]}, {"donate": (0,)}, True),
    ({"disabled_passes": ("a",)}, {}, False), ({"cache": False}, {}, True), ({"max_trips": 3}, {}, True),
])  # fmt: skip
def test_keys_differ_where_code_does(one, other, same):
    assert (CompileOptions.of(one).key() == CompileOptions.of(other).key()) == same
