"""Uses of arrays of run-time size that are not compiled: an error names the use, the line and a mend."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError

X = np.array([3.0, -1, 2])

REFUSED = {
    "indices of a split": (lambda x: np.split(x, np.nonzero(x)[0]), "be the indices of np.split"),
    "a split of its kind": (lambda x: np.split(x[x > 0], np.nonzero(x)[0]), "be the indices of np.split"),
    "unstack": (lambda x: np.unstack(x[x > 0]), "be unstacked along that dimension"),
    "iteration": (lambda x: list(map(abs, x[x > 0])), "be iterated over"),
    "length": (lambda x: len(x[x > 0]) + 0 if x[x > 0].__len__() else 0, "have a length while tracing"),
    "condition": (lambda x: 1 if x[x > 0].__bool__() else 2, "be used as a condition"),
    "search": (lambda x: x[x > 0].__contains__(3), "be searched by `in`"),
    "insertion of several": (lambda x: np.insert(x[x > 0], [0, 1], 2.0), "with other indices than one integer"),
    "output": (lambda x: np.concatenate([x[x > 0], x], out=np.zeros(5)), "be concatenated with out="),
    "array as a flag": (lambda x: np.isin(x[x > 0], x, x > 0), "tell whether elements are unique"),
    "array as a flag of known arrays": (lambda x: np.isin(x[x > 0], x, x), "tell whether elements are unique"),
    "arrays to choose from": (lambda x: np.choose([0, 1], x[x > 0]), "be iterated over"),
    "larger view": (lambda x: x[x > 0].view(np.complex128), "be viewed as elements of another size"),
    "attribute": (lambda x: x[x > 0].strides, "have .strides"),
    "function": (lambda x: np.roots(x[x > 0]), "be passed to np.roots"),
}


@pytest.mark.parametrize("function, use", REFUSED.values(), ids=REFUSED)
def test_refusals(function, use):
    with pytest.raises(TraceError, match="whose size is known at run time only cannot") as caught:
        cyxla.jit(function)(X)
    assert use in str(caught.value)
    assert "test_sized_refusals.py" in caught.value.where
    assert caught.value.hint


def test_squeeze_of_a_size_of_one_is_left_to_numpy():
    def squeezed(x):
        return np.squeeze(x[x > 0])

    compiled = cyxla.jit(squeezed, fallback="numpy")
    for x in (np.array([3.0, -1, 2]), np.array([-3.0, 1, -2]), -X * 0):
        np.testing.assert_array_equal(compiled(x), squeezed(x), strict=True)
    assert compiled.cache_info().misses == 1


@pytest.mark.parametrize("name", ["data", "strides", "ctypes", "base"])
def test_attributes_of_memory_are_refused(name):
    with pytest.raises(TraceError, match=rf"cannot have \.{name}"):
        cyxla.jit(lambda x: getattr(x[x > 0], name), fallback="error")(np.arange(4.0))
