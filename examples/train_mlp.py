"""Two spirals told apart by layers of neurons, trained by momentum and ``cyxla.value_and_grad``.

Takes the number of training steps as an argument.
"""

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from helpers.judge import compare, size

import cyxla

SIZES = (2, 64, 64, 1)
RATE, KEEP = 0.05, 0.95


@dataclass
class Layer:
    """Weights and offsets of one layer."""

    weights: np.ndarray
    offsets: np.ndarray


def make(rng):
    """Layers to begin with."""
    return [Layer(rng.normal(size=(n, m)) * np.sqrt(2 / n), np.zeros(m)) for n, m in pairwise(SIZES)]


def scores(layers, points):
    """Above 0 for one kind, below for the other."""
    x = points
    for layer in layers[:-1]:
        x = np.tanh(x @ layer.weights + layer.offsets)
    return (x @ layers[-1].weights + layers[-1].offsets)[:, 0]


def loss(layers, points, kinds):
    found = scores(layers, points)
    return np.mean(np.logaddexp(0, np.where(kinds, -found, found)))


@cyxla.jit
def learn(layers, speeds, points, kinds):
    """One step down the slope, with the speed of the steps before."""
    value, slopes = cyxla.value_and_grad(loss)(layers, points, kinds)
    speeds = [
        Layer(KEEP * v.weights - RATE * s.weights, KEEP * v.offsets - RATE * s.offsets)
        for v, s in zip(speeds, slopes, strict=True)
    ]
    moved = [Layer(a.weights + v.weights, a.offsets + v.offsets) for a, v in zip(layers, speeds, strict=True)]
    return moved, speeds, value


def learn_plainly(layers, speeds, points, kinds):
    """The same, with the slopes worked out by hand, from the last layer to the first."""
    seen = [points]
    for layer in layers[:-1]:
        seen.append(np.tanh(seen[-1] @ layer.weights + layer.offsets))
    found = (seen[-1] @ layers[-1].weights + layers[-1].offsets)[:, 0]
    wrong = ((1 / (1 + np.exp(-found)) - kinds) / len(points))[:, None]
    moved, faster = [], []
    for layer, speed, x in zip(layers[::-1], speeds[::-1], seen[::-1], strict=True):
        faster.append(
            Layer(KEEP * speed.weights - RATE * (x.T @ wrong), KEEP * speed.offsets - RATE * wrong.sum(axis=0))
        )
        moved.append(Layer(layer.weights + faster[-1].weights, layer.offsets + faster[-1].offsets))
        wrong = (wrong @ layer.weights.T) * (1 - x * x)
    return moved[::-1], faster[::-1], np.mean(np.logaddexp(0, np.where(kinds, -found, found)))


def spirals(rng, count):
    """Points on two arms that wind round each other."""
    turn = np.sqrt(rng.random(count)) * 3 * np.pi
    kinds = rng.random(count) < 0.5
    side = np.where(kinds, 1.0, -1.0)
    points = np.stack([np.cos(turn), np.sin(turn)], axis=1) * (side * turn / 4)[:, None]
    return points + 0.03 * rng.normal(size=points.shape), kinds


def arrays(result):
    """Layers as plain tuples."""
    return tuple([(a.weights, a.offsets) for a in part] for part in result[:2]), result[2]


def main(turns):
    rng = np.random.default_rng(7)
    points, kinds = spirals(rng, 400)
    layers = make(rng)
    speeds = [Layer(0 * a.weights, 0 * a.offsets) for a in layers]
    compare(
        "a step", lambda *a: arrays(learn(*a)), lambda *a: arrays(learn_plainly(*a)), layers, speeds, points, kinds,
        tolerance=1e-9, repeat=5,
    )  # fmt: skip
    started, before = time.perf_counter(), loss(layers, points, kinds)
    for _ in range(turns):
        layers, speeds, value = learn(layers, speeds, points, kinds)
    took = time.perf_counter() - started
    right = np.mean((scores(layers, points) > 0) == kinds)
    assert value < 0.3 * before
    assert right > 0.95
    print(f"  {turns} steps in {took:.2f} s: loss {before:.3f}, then {value:.3f}; {right:.1%} told apart")


if __name__ == "__main__":
    main(size(1000))
