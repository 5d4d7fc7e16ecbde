"""Logistic regression: a line between two kinds of points, by the gradient of the loss.

Takes the number of points as an argument.
"""

import numpy as np
from helpers.judge import compare, size

import cyxla

RATE, TURNS = 0.5, 200


def loss(weights, points, kinds):
    """How badly the weights tell the kinds apart; `logaddexp` stays finite for points that are far off."""
    scores = points @ weights["slope"] + weights["offset"]
    return np.mean(np.logaddexp(0, np.where(kinds, -scores, scores)))


@cyxla.jit
def train(weights, points, kinds):
    """Weights after many steps down the slope, and the loss at each."""

    def step(now, _):
        value, slope = cyxla.value_and_grad(loss)(now, points, kinds)
        return {name: now[name] - RATE * slope[name] for name in now}, value

    return cyxla.scan(step, weights, np.arange(TURNS))


def train_plainly(weights, points, kinds):
    """The same with the slope worked out by hand."""
    slope, offset, losses = weights["slope"], weights["offset"], []
    for _ in range(TURNS):
        scores = points @ slope + offset
        losses.append(loss({"slope": slope, "offset": offset}, points, kinds))
        wrong = 1 / (1 + np.exp(-scores)) - kinds
        slope, offset = slope - RATE * points.T @ wrong / len(points), offset - RATE * np.mean(wrong)
    return {"slope": slope, "offset": offset}, np.array(losses)


def main(count):
    rng = np.random.default_rng(2)
    points = rng.normal(size=(count, 4))
    kinds = points @ np.array([1.0, -2, 0.5, 0]) + 0.3 + 0.3 * rng.normal(size=count) > 0
    start = {"slope": np.zeros(4), "offset": np.float64(0)}
    weights, losses = compare(
        f"{count} points, {TURNS} steps", train, train_plainly, start, points, kinds, tolerance=1e-9, repeat=1
    )
    right = np.mean((points @ weights["slope"] + weights["offset"] > 0) == kinds)
    assert losses[-1] < losses[0] / 3
    assert right > 0.9
    print(f"  loss {losses[0]:.4f} at first, {losses[-1]:.4f} at last, {right:.1%} told apart")


if __name__ == "__main__":
    main(size(2_000))
