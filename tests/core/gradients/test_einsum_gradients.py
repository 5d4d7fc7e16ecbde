"""Gradients of Einsum against central differences."""

import numpy as np
import pytest
from support.graphs.gradient_checks import Case, check_gradient, complex_points, points

from cyxla import Graph, Session
from cyxla.core.framework.apply import apply_op

EQUATIONS = {
    "ab,bc->ac": ((2, 3), (3, 4)),
    "ab,bc->": ((2, 3), (3, 2)),
    "ab->ba": ((2, 3),),
    "ab->a": ((2, 3),),
    "abc->b": ((2, 3, 2),),
    "aa->a": ((3, 3),),
    "aab->b": ((2, 2, 3),),
    "aa->": ((3, 3),),
    "ab,cd->ad": ((2, 3), (2, 2)),
    "a,b->ab": ((2,), (3,)),
    "abc,cd->abd": ((2, 2, 3), (3, 2)),
    "bnqd,bnkd->bnqk": ((2, 1, 2, 3), (2, 1, 3, 3)),
    "...ab,...bc->...ac": ((2, 2, 3), (1, 3, 2)),
    "ab...,b->a...": ((2, 3, 2), (3,)),
    "...a,...->...": ((2, 3), (2,)),
    "a...b->b...": ((2, 2, 3),),
    "a...b->...": ((2, 2, 3),),
    ",ab->ba": ((), (2, 3)),
}
CASES = [
    *(Case("Einsum", ([points(*s) for s in shapes],), {"equation": e}, note=e) for e, shapes in EQUATIONS.items()),
    Case("Einsum", ([complex_points(2, 3), complex_points(3, 2)],), {"equation": "ab,bc->ca"}, note="complex"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient_is_the_slope(case):
    check_gradient(case)


REPEATED = {
    "a->aa": ([1, 2], [[1, 0], [0, 2]]),
    "ab->aab": ([[1, 2], [3, 4]], [[[1, 2], [0, 0]], [[0, 0], [3, 4]]]),
    "a...->a...a": ([[1, 2], [3, 4]], [[[1, 0], [2, 0]], [[0, 3], [0, 4]]]),
    "a->aaa": ([5, 6], [[[5, 0], [0, 0]], [[0, 0], [0, 6]]]),
}


@pytest.mark.parametrize("equation", REPEATED)
def test_a_label_that_stands_twice_in_the_result_makes_a_diagonal(equation):
    x, want = REPEATED[equation]
    graph = Graph()
    with graph.as_default():
        y = apply_op("Einsum", [graph.constant(x, "float")], equation=equation)
    np.testing.assert_array_equal(Session(graph).run(y), want)
    assert y.shape.as_list() == list(np.shape(want))
