"""Estimates of reductions: operations on results cost nothing for each element that is reduced."""

import re

import numpy as np
import pytest

import cyxla

X = np.random.default_rng(0).standard_normal((600, 500))
FORMS = {
    "columns": (lambda x: x.sum(axis=0), lambda x: (x.sum(axis=0) / 3.0) ** 0.3),
    "all": (lambda x: x.sum(), lambda x: np.exp(x.sum() / 7.0)),
    "of products": (lambda x: (x * x).sum(axis=0), lambda x: np.sqrt((x * x).sum(axis=0) / 600.0)),
}


def parts(function):
    """Return the sizes of the partial results of a program."""
    text = cyxla.compile(function, X).c_source
    return re.findall(r"writes r0 (f64\[[\d,]*\])", text)[0]


@pytest.mark.parametrize("name", FORMS)
def test_sums_are_cut_alike_whatever_follows_them(name):
    alone, followed = FORMS[name]
    assert parts(alone) == parts(followed)
