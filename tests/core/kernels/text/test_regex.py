r"""Patterns in RE2's language: where Python's means the same, it agrees."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.interrupts import at_most

from cyxla.core.framework.apply import apply_op
from cyxla.core.kernels.lib.regex import Regex
from cyxla.errors import InvalidArgumentError, UnimplementedError

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\b", r"\w", "^", "ab", "(?i:A)"])


def grown(inner):
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda p: f"(?:{'|'.join(p)})"),
        inner.map(lambda p: f"({p})"),
        st.tuples(inner, st.sampled_from(["?", "{2}", "{0,2}", "{1,2}?", "??"])).map(lambda p: f"(?:{p[0]}){p[1]}"),
    )


@given(st.recursive(ATOMS, grown, max_leaves=8), st.text("abA\n ", max_size=7))
def test_as_python_where_the_languages_are_one(pattern, text):
    want = re.search(pattern, text, re.ASCII)
    found = Regex(pattern).search(text)
    assert (found is None) == (want is None)
    if want is not None:
        assert found[:2] == want.span()
    assert Regex(pattern).matches(text) == (re.fullmatch(pattern, text, re.ASCII) is not None)


@pytest.mark.parametrize("pattern", ["a*", "a+?b", "(a|ab)(c|bcd)*", "x{2,}", "[a-c]+(d)?", r"(?P<n>\d+)-(\d*)"])
@pytest.mark.parametrize("text", ["", "aab", "abcd", "xxxx", "abcabd", "12-34"])
def test_groups(pattern, text):
    want = re.search(pattern, text)
    found = Regex(pattern).search(text)
    assert (found and list(found)) == (want and [x for k in range(want.re.groups + 1) for x in (
        want.span(k) if want.span(k) != (-1, -1) else (None, None))])  # fmt: skip


REPLACED = [
    ("a+", "<\\0>", "baac a", "b<aa>c <a>"),
    ("", "-", "ab", "-a-b-"),
    ("a*", "-", "baac", "-b-c-"),
    ("(\\w)(\\w)", "\\2\\1", "abcde", "badce"),
    ("^a", "x", "aa", "xa"),
    ("a$", "x", "a\na", "a\nx"),
    ("(?m)^a", "x", "a\na", "x\nx"),
    ("(?s).", "x", "a\n", "xx"),
    ("(?U)a+", "x", "aa", "xx"),
    ("(?i)ä", "x", "Äa", "xa"),
    ("[[:digit:]\\s]", "", "1 a\t2", "a"),
    ("[^[:alpha:]-]", "", "a-b_c", "a-bc"),
    ("\\Qa.b\\E", "\\\\", "a.b axb", "\\ axb"),
    ("\\x41|\\x{e4}|\\102", "x", "AäB", "xxx"),
    ("\\pL+", "x", "aé1", "x1"),
    ("[\\p{Lu}1]", "x", "aE1", "axx"),
    ("a{,2}", "x", "aa{,2}", "ax"),
    ("\\Ba", "x", "aa a", "ax a"),
    ("é", "e", "caf\u00e9", "cafe"),
]


@pytest.mark.parametrize("pattern, rewrite, text, want", REPLACED, ids=[r[0] for r in REPLACED])
def test_replaced(pattern, rewrite, text, want):
    got = apply_op("RegexReplace", np.array([text.encode()], object), pattern, rewrite)
    assert got.tolist() == [want.encode()]


def test_once_and_bytes_that_are_no_text():
    x = np.array([b"aa", b"\xffa"], object)
    assert apply_op("RegexReplace", x, "a", "b", replace_global=False).tolist() == [b"ba", b"\xffb"]
    assert apply_op("StaticRegexFullMatch", x, pattern="a*").tolist() == [True, False]
    assert apply_op("StaticRegexFullMatch", np.zeros((2, 0), object), pattern="a").shape == (2, 0)


BAD = [
    "(", ")", "a)", "*a", "a**", "[a", "a{2,1}", "a{1001}", "\\", "\\1", "(?=a)", "(?<!a)", "(?P=a)", "[b-a]",
    "(?P<1>a)", "[[:no:]]", "\\y", "(?i)*", "x{1000}{1000}", "(" * 5000, "(?:" * 60 + "a" + ")*{2}" * 60,
]  # fmt: skip


@pytest.mark.parametrize("pattern", BAD, ids=lambda p: p[:12])
def test_no_patterns(pattern):
    with pytest.raises(InvalidArgumentError):
        apply_op("StaticRegexFullMatch", np.array([b"a"], object), pattern=pattern)


def test_missing_groups():
    for pattern in ("\\C", "\\p{Greek}"):
        with pytest.raises(UnimplementedError):
            Regex(pattern)
    for rewrite in ("\\1", "\\x", "\\"):
        with pytest.raises(InvalidArgumentError, match="rewrite"):
            apply_op("RegexReplace", np.array([b"a"], object), "a", rewrite)


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+c", "(a?){25}a{25}b", "(?:(?:(?:){1000}){1000}){1000}"])
def test_no_pattern_takes_for_ever(pattern):
    with at_most(lines=4_000_000):
        try:
            assert not Regex(pattern).matches("a" * 30)
        except InvalidArgumentError:
            assert "1000" in pattern
