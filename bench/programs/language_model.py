"""A language model in NumPy as people write it: tokens are a list that grows by one with each call."""

import numpy as np

WIDTH, HEADS, BLOCKS, VOCABULARY, CONTEXT = 64, 4, 2, 1000, 256


def normalised(x, scale, shift):
    """Normalise rows."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return scale * centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) + shift


def smooth_relu(x):
    """Return GELU by its usual approximation (Hendrycks and Gimpel, 2016)."""
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def softmax(x):
    """Return softmax along rows."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(x, into_heads, from_heads):
    """Return causal self-attention with several heads."""
    queries, keys, values = np.split(x @ into_heads, 3, axis=-1)
    allowed = np.tri(x.shape[0], dtype=bool)
    heads = []
    for q, k, v in zip(*[np.split(part, HEADS, axis=-1) for part in (queries, keys, values)], strict=True):
        scores = np.where(allowed, q @ k.T / np.sqrt(q.shape[-1]), -1e9)
        heads.append(softmax(scores) @ v)
    return np.hstack(heads) @ from_heads


def logits(tokens, embedding, positions, blocks):
    """Return the scores of the next token behind each of those in a list."""
    x = embedding[tokens] + positions[range(len(tokens))]
    for block in blocks:
        x = x + attention(normalised(x, *block["norm1"]), *block["attention"])
        up, down = block["network"]
        x = x + smooth_relu(normalised(x, *block["norm2"]) @ up) @ down
    return x @ embedding.T


def generate(model, tokens, count, weights):
    """Append the best next token, several times; return the new ones."""
    tokens = list(tokens)
    for _ in range(count):
        tokens.append(int(np.argmax(model(tokens, *weights)[-1])))
    return tokens[-count:]


def random_weights(seed=0):
    """Return weights of the model."""
    rng = np.random.default_rng(seed)

    def matrix(*shape):
        return (0.1 * rng.standard_normal(shape)).astype(np.float32)

    def norm():
        return 1 + matrix(WIDTH), matrix(WIDTH)

    blocks = [
        {
            "norm1": norm(), "attention": (matrix(WIDTH, 3 * WIDTH), matrix(WIDTH, WIDTH)),
            "norm2": norm(), "network": (matrix(WIDTH, 4 * WIDTH), matrix(4 * WIDTH, WIDTH)),
        }
        for _ in range(BLOCKS)
    ]  # fmt: skip
    return matrix(VOCABULARY, WIDTH), matrix(CONTEXT, WIDTH), blocks
