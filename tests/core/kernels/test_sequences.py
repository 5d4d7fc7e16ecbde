"""Recurrent cells, sequences of labels, distances between sequences, and the best of many."""

from itertools import product

import numpy as np
import pytest
from support.graphs.gradient_checks import Case, check_gradient

from cyxla.core.framework.apply import apply_op
from cyxla.errors import OpError

RNG = np.random.default_rng(5)
F32 = np.float32


def draw(*shape):
    return RNG.standard_normal(shape).astype(F32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# Cells

X, CS, H, W, B = draw(3, 2, 4), draw(2, 5), draw(2, 5), draw(9, 20), draw(20)
PEEP = draw(5), draw(5), draw(5)


def lstm(x, cs, h, order, forget, clip, peep):
    gates = dict(zip(order, np.split(np.concatenate([x, h], 1) @ W + B, 4, axis=1), strict=True))
    i, f = sigmoid(gates["i"] + cs * peep[0]), sigmoid(gates["f"] + forget + cs * peep[1])
    ci = np.tanh(gates["c"])
    cs = np.clip(i * ci + f * cs, -clip, clip)
    o = sigmoid(gates["o"] + cs * peep[2])
    return i, cs, f, o, ci, np.tanh(cs), o * np.tanh(cs)


@pytest.mark.parametrize("use", [True, False])
def test_lstm_cell(use):
    got = apply_op("LSTMBlockCell", X[0], CS, H, W, *PEEP, B, forget_bias=0.5, cell_clip=0.3, use_peephole=use)
    want = lstm(X[0], CS, H, "icfo", 0.5, 0.3, PEEP if use else (0, 0, 0))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op, order, forget", [("BlockLSTM", "icfo", 1.0), ("BlockLSTMV2", "ifco", 0.0)])
def test_lstm_over_time(op, order, forget):
    got = apply_op(op, np.int64(2), X, CS, H, W, *PEEP, B, cell_clip=-1.0)
    cs, h = CS, H
    for t in range(2):
        want = lstm(X[t], cs, h, order, forget, np.inf, (0, 0, 0))
        cs, h = want[1], want[6]
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a[t], b, rtol=1e-4, atol=1e-5)
    assert not any(a[2].any() for a in got)


def test_gru_cell():
    w_ru, w_c, b_ru, b_c = draw(9, 10), draw(9, 5), draw(10), draw(5)
    r, u, c, h = apply_op("GRUBlockCell", X[0], H, w_ru, w_c, b_ru, b_c)
    gates = sigmoid(np.concatenate([X[0], H], 1) @ w_ru + b_ru)
    want = np.tanh(np.concatenate([X[0], H * gates[:, :5]], 1) @ w_c + b_c)
    for a, b in ((r, gates[:, :5]), (u, gates[:, 5:]), (c, want), (h, gates[:, 5:] * H + (1 - gates[:, 5:]) * want)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_cells_of_wrong_shapes():
    with pytest.raises(OpError, match="w must have the shape"):
        apply_op("LSTMBlockCell", X[0], CS, H, W[:3], *PEEP, B)


# Labels of frames

LABELS = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]]), np.array([0, 1, 1, 1, 0], np.int32)
LENGTHS = np.array([4, 4, 0], np.int32)


def said(path, blank, merge):
    """Return the labels that a path through the frames stands for."""
    kept = [k for t, k in enumerate(path) if not (merge and t and path[t - 1] == k)]
    return [k for k in kept if k != blank]


@pytest.mark.parametrize("merge", [True, False])
def test_ctc_sums_over_all_paths(merge):
    logits = RNG.standard_normal((4, 3, 3))
    loss, _ = apply_op("CTCLoss", logits, *LABELS, LENGTHS, ctc_merge_repeated=merge)
    odds = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    for b, wanted in ((0, [0, 1]), (1, [1, 1])):
        paths = [p for p in product(range(3), repeat=4) if said(p, 2, merge) == wanted]
        total = sum(np.prod([odds[t, b, k] for t, k in enumerate(p)]) for p in paths)
        np.testing.assert_allclose(loss[b], -np.log(total), rtol=1e-9)
    assert loss[2] == 0  # a sequence of no frames


@pytest.mark.parametrize("merge", [True, False])
def test_ctc_gradient(merge):
    inputs = RNG.standard_normal((4, 3, 3)), *LABELS, LENGTHS
    check_gradient(Case("CTCLoss", inputs, {"ctc_merge_repeated": merge}, outputs=(0,)))


def test_labels_need_frames():
    logits, lengths = np.zeros((4, 3, 3)), np.array([4, 2, 4], np.int32)
    with pytest.raises(OpError, match="need 3"):
        apply_op("CTCLoss", logits, *LABELS, lengths)
    loss, slopes = apply_op("CTCLoss", logits, *LABELS, lengths, ignore_longer_outputs_than_inputs=True)
    assert np.isinf(loss[1])
    assert not slopes[:, 1].any()
    collapsed, _ = apply_op("CTCLoss", logits, *LABELS, lengths, preprocess_collapse_repeated=True)
    assert np.isfinite(collapsed).all()


# Distances


def sparse(rows):
    places = [[r, c] for r, row in enumerate(rows) for c in range(len(row))]
    values = np.array([v.encode() for row in rows for v in row], object)
    return np.array(places, np.int64).reshape(-1, 2), values, np.array([len(rows), 9])


@pytest.mark.parametrize("normalize, want", [(False, [3, 0, 2, 1, 0]), (True, [3 / 7, 0, np.inf, 1, 0])])
def test_edit_distance(normalize, want):
    guess, truth = ["kitten", "same", "ab", "", ""], ["sitting", "same", "", "x", ""]
    found = apply_op("EditDistance", *sparse(guess), *sparse(truth), normalize=normalize)
    np.testing.assert_allclose(found, np.array(want, F32))


# Counts


def test_counts_of_rows():
    splits, values = np.array([0, 3, 3, 5]), np.array([1, 1, 7, 0, 2])
    found = apply_op("RaggedBincount", splits, values, 3, np.zeros(0, np.int64))
    assert found.tolist() == [[0, 2, 0], [0, 0, 0], [1, 0, 1]]
    places = np.array([[0, 0], [0, 1], [2, 0]])
    weighed = apply_op("SparseBincount", places, np.array([1, 1, 0]), np.array([3, 2]), 2, np.array([0.5, 1.0, 4.0]))
    assert weighed.tolist() == [[0, 1.5], [0, 0], [4, 0]]
    with pytest.raises(OpError, match="splits"):
        apply_op("RaggedBincount", np.array([1, 3]), values, 3, np.zeros(0, np.int64))


# The best


def test_best_along_any_dimension():
    x = (RNG.permutation(36) / 9).astype(F32).reshape(3, 6, 2)  # no two as close as steps of differences
    values, places = apply_op("ApproxTopK", x, k=4, reduction_dimension=1)
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :4])
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)
    least, _ = apply_op("ApproxTopK", x, k=2, reduction_dimension=0, is_max_k=False)
    np.testing.assert_array_equal(least, np.sort(x, axis=0)[:2])
    attrs = {"k": 2, "reduction_dimension": 1}
    check_gradient(Case("ApproxTopK", (x,), attrs, outputs=(0,), step=1e-2, tolerance=1e-3))


def test_boxes_of_all_classes():
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]], F32)[None, :, None]
    scores = np.array([[0.9, 0.2], [0.8, 0.7], [0.3, 0.6]], F32)[None]
    how = np.int32(2), np.int32(3), F32(0.5), F32(0.25)
    found, best, classes, valid = apply_op("CombinedNonMaxSuppression", boxes, scores, *how)
    np.testing.assert_allclose(best, [[0.9, 0.7, 0.6]])
    assert classes.tolist() == [[0, 1, 1]]
    assert valid.tolist() == [3]
    np.testing.assert_allclose(found[0], [[0, 0, 1, 1], [0, 0, 1, 0.9], [1, 1, 1, 1]])  # clipped
    more = np.int32(2), np.int32(9), F32(0.5), F32(0.25)
    attrs = {"pad_per_class": True, "clip_boxes": False}
    found, best, _, valid = apply_op("CombinedNonMaxSuppression", boxes, scores, *more, **attrs)
    assert best.shape == (1, 4)
    np.testing.assert_allclose(best, [[0.9, 0.7, 0.6, 0.3]])
    assert found.max() == 3
    assert valid.tolist() == [4]
