"""Gradients that central differences cannot check: of random numbers, printed values and references."""

import numpy as np
import pytest

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op


@pytest.mark.parametrize("op", ["RandomGamma", "StatelessRandomGammaV2", "StatelessRandomGammaV3"])
def test_samples_move_with_their_distribution(op):
    graph = Graph()
    key, counter = np.array([3], np.uint64), np.array([1, 2], np.uint64)
    before = {
        "RandomGamma": (),
        "StatelessRandomGammaV2": ([1, 2],),
        "StatelessRandomGammaV3": (key, counter, np.array(1, np.int32)),
    }[op]
    with graph.as_default():
        alpha = graph.placeholder("double", [2])
        shape = [500] if op == "RandomGamma" else [500, 2]  # the older op adds the shape of alpha itself
        sample = apply_op(op, shape, *before, alpha)
        [slope] = gradients(sample * np.array([1.0, 3.0]), alpha)
    assert slope.shape.as_list() == [2]
    drawn = np.random.default_rng(1).gamma(at := np.array([2.5, 0.8]), size=(500, 2))
    found = Session(graph).run(slope, {alpha: at, sample: drawn})
    # the mean of a gamma distribution is its parameter, so samples move by 1 on average
    np.testing.assert_allclose(found / [500, 1500], 1.0, atol=0.2)


def test_gradients_pass_through_prints(capfd):
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("double", [2])
        [dx] = gradients(apply_op("Print", x * 2.0, [x], message="seen "), x)
    np.testing.assert_array_equal(Session(graph).run(dx, {x: np.ones(2)}), [2, 2])


def test_a_variable_of_version_1_passes_gradients_through_its_reference():
    graph = Graph()
    with graph.as_default():
        ref = apply_op("VariableV2", shape=[2], dtype="double", name="v")
        init = apply_op("Assign", ref, np.array([2.0, 3.0]))
        read = apply_op("Identity", apply_op("RefIdentity", ref))
        [dv] = gradients(read * read, ref)
    session = Session(graph)
    session.run(init)
    np.testing.assert_array_equal(session.run(dv), [4, 6])
