"""A small transformer that learns to write a rhyme, letter by letter: attention, layer norms, Adam, all in NumPy.

Takes the number of training steps as an argument.
"""

import time

import numpy as np
from helpers.judge import compare, size

import cyxla

RHYME = """twinkle, twinkle, little star, how i wonder what you are!
up above the world so high, like a diamond in the sky.
"""
LETTERS = sorted(set(RHYME))
WIDTH, HEADS, LAYERS, LENGTH, BATCH, RATE = 48, 4, 2, 32, 16, 3e-3


def make(rng):
    """Weights to begin with."""

    def normal(*sizes):
        return (rng.normal(size=sizes) / np.sqrt(sizes[0])).astype(np.float32)

    weights = {"letters": normal(len(LETTERS), WIDTH), "places": 0.1 * normal(LENGTH, WIDTH)}
    for k in range(LAYERS):
        weights |= {f"attend {k}": normal(WIDTH, 3 * WIDTH), f"join {k}": normal(WIDTH, WIDTH)}
        weights |= {f"widen {k}": normal(WIDTH, 4 * WIDTH), f"narrow {k}": normal(4 * WIDTH, WIDTH)}
    return weights


def normalise(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x):
    return x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x**3))) / 2


def attend(x, into, back):
    """Each letter looks at itself and at those before it."""
    batch, length, width = x.shape
    parts = (x @ into).reshape(batch, length, 3, HEADS, width // HEADS)
    query, key, value = parts.transpose(2, 0, 3, 1, 4)
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(np.float32(width // HEADS))
    weights = softmax(np.where(np.tri(length, dtype=bool), scores, np.float32(-1e9)))
    return (weights @ value).swapaxes(1, 2).reshape(batch, length, width) @ back


def scores(weights, letters):
    """How likely each letter is to come next, before `softmax`."""
    x = weights["letters"][letters] + weights["places"][: letters.shape[1]]
    for k in range(LAYERS):
        x = x + attend(normalise(x), weights[f"attend {k}"], weights[f"join {k}"])
        x = x + gelu(normalise(x) @ weights[f"widen {k}"]) @ weights[f"narrow {k}"]
    return normalise(x) @ weights["letters"].T


def loss(weights, text):
    """Surprise at each letter after the first, on average."""
    given = scores(weights, text[:, :-1])
    given = given - given.max(-1, keepdims=True)
    likely = given - np.log(np.sum(np.exp(given), axis=-1, keepdims=True))
    return -np.mean(np.take_along_axis(likely, text[:, 1:, None], axis=-1))


@cyxla.jit
def learn(weights, first, second, turn, text):
    """One step of Adam; `first` and `second` are the moments of the slopes."""
    value, slopes = cyxla.value_and_grad(loss)(weights, text)
    first = {n: 0.9 * first[n] + 0.1 * s for n, s in slopes.items()}
    second = {n: 0.99 * second[n] + 0.01 * s * s for n, s in slopes.items()}
    rate = RATE * np.sqrt(1 - 0.99**turn) / (1 - 0.9**turn)
    return {n: w - rate * first[n] / (np.sqrt(second[n]) + 1e-8) for n, w in weights.items()}, first, second, value


@cyxla.jit
def next_letter(weights, letters):
    """The letter that comes next most likely."""
    return np.argmax(scores(weights, letters[None])[0, -1])


def check_slopes(weights, text):
    """The gradient along a direction against the difference of plain NumPy's losses, in float64."""
    rng = np.random.default_rng(5)
    exact = {n: w.astype(np.float64) for n, w in weights.items()}
    way = {n: rng.normal(size=w.shape) for n, w in weights.items()}
    slopes = cyxla.grad(loss)(exact, text)
    along = sum(float(np.sum(slopes[n] * way[n])) for n in way)
    up, down = (loss({n: w + s * way[n] for n, w in exact.items()}, text) for s in (1e-6, -1e-6))
    assert abs(along - (up - down) / 2e-6) < 1e-5 * max(abs(along), 1)


def main(turns):
    rng = np.random.default_rng(4)
    rhyme = np.array([LETTERS.index(c) for c in RHYME])
    starts = rng.integers(0, len(rhyme) - LENGTH - 1, (turns, BATCH))
    weights = make(rng)
    held = rhyme[np.arange(LENGTH + 1) + 10 * np.arange(5)[:, None]]
    before = compare("loss", cyxla.jit(loss), loss, weights, held, tolerance=1e-5)
    check_slopes(weights, held[:2])
    first = {n: np.zeros_like(w) for n, w in weights.items()}
    second, now = dict(first), weights
    started = time.perf_counter()
    for turn in range(turns):
        text = rhyme[starts[turn][:, None] + np.arange(LENGTH + 1)]
        now, first, second, value = learn(now, first, second, np.float32(turn + 1), text)
    took = time.perf_counter() - started
    after = loss(now, held)
    assert after < 0.2 * before
    print(f"  {turns} steps in {took:.1f} s: loss {before:.3f}, then {after:.3f}, in the last step {value:.3f}")
    text = list(rhyme[:LENGTH])
    for _ in range(40):
        text.append(int(next_letter(now, np.array(text[-LENGTH:]))))
    print("  " + "".join(LETTERS[c] for c in text).replace("\n", " / "))


if __name__ == "__main__":
    main(size(120))
