"""Tokens as arguments and results of compiled programs, as the interpreter has them."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import InvalidArgumentError
from cyxla.xla.evaluator import TOKEN_VALUE

TEXT = """ENTRY e {
  k = token[] parameter(0)
  p = (f32[3], token[]) parameter(1)
  x = f32[3] get-tuple-element(p), index=0
  l = token[] get-tuple-element(p), index=1
  both = token[] after-all(k, l)
  y = f32[3] add(x, x)
  ROOT r = (token[], (f32[3], token[])) tuple(both, inner)
}""".replace("  ROOT", "  inner = (f32[3], token[]) tuple(y, k)\n  ROOT")
X = np.arange(3, dtype="f4")


def test_tokens_pass_through(backend):
    run = cyxla.compile(TEXT, platform=backend)
    token, (y, other) = run(TOKEN_VALUE, (X, TOKEN_VALUE))
    assert token is TOKEN_VALUE
    assert other is TOKEN_VALUE
    np.testing.assert_array_equal(y, 2 * X)


def test_bound_and_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CYXLA_CACHE", "1")
    for _ in range(2):
        run = cyxla.compile(TEXT).bind({0: TOKEN_VALUE})
        np.testing.assert_array_equal(run((X, TOKEN_VALUE))[1][0], 2 * X)


def test_results_in_given_arrays():
    out = np.empty(3, "f4")
    cyxla.compile(TEXT)(TOKEN_VALUE, (X, TOKEN_VALUE), out=(None, (out, None)))
    np.testing.assert_array_equal(out, 2 * X)


def test_a_token_alone():
    run = cyxla.compile("ENTRY e { k = token[] parameter(0) ROOT r = token[] after-all(k) }")
    assert run(TOKEN_VALUE) is TOKEN_VALUE


def test_wrong_arguments_are_refused():
    run = cyxla.compile(TEXT)
    for wrong in [(TOKEN_VALUE,), (TOKEN_VALUE, X), (TOKEN_VALUE, (np.ones(4, "f4"), TOKEN_VALUE))]:
        with pytest.raises(InvalidArgumentError):
            run(*wrong)


def test_around_a_call_of_python():
    text = """ENTRY e {
      k = token[] parameter(0)
      x = f32[3] parameter(1)
      ROOT c = (f32[3], token[]) custom-call(x, k), custom_call_target="note", custom_call_has_side_effect=true
    }"""
    seen = []

    def note(ev, ins, x, token):
        seen.append(token is TOKEN_VALUE)
        return x + 1, token

    got, token = cyxla.compile(text, custom_calls={"note": note})(TOKEN_VALUE, X)
    np.testing.assert_array_equal(got, X + 1)
    assert token is TOKEN_VALUE
    assert seen == [True]
