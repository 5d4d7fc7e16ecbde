"""Programs whose HLO and C must be the same in every process; run as a script, it prints a digest of each.

The argument is a seed of the layout of memory: objects of random sizes come and go before each program, and leave their
contents in the memory that the next ones get.
"""

import hashlib
import json
import random
import sys

import numpy as np

import cyxla
from cyxla.xla.cpu.compiler import CpuCompiler
from cyxla.xla.service import CompileOptions


def branches(x):
    low, high, total = x * 2, x - 1, 0.0
    if x[0, 0] > 0:
        low, total = np.exp(low), x.sum()
        if x[0, 1] > x[1, 0]:
            high = high + low
    elif x[1, 1] < 0:
        low, high = high, low
    return low, high, total


def carried_arrays(x):
    p, q, r, s = x.copy(), np.zeros_like(x), np.empty(x.shape), np.empty_like(x)
    for k in range(1, 10):
        q[k] = p[k - 1] + r.sum() if k > 1 else p[0]
        r[:] = q * 0.5
        s[k - 1 : k + 1] = np.sqrt(np.abs(p[:2]))
        p = p * 0.9 + q
    return p, q, r, s


def convolution(x):
    image, weights = x.reshape(1, 10, 10, 1), np.ones((3, 3, 1, 4))
    output = np.empty((1, 8, 8, 4))
    for i in range(8):
        for j in range(8):
            window = image[:, i : i + 3, j : j + 3, :, np.newaxis]
            output[:, i, j, :] = np.sum(window * weights[np.newaxis], axis=(1, 2, 3))
    return output


def sparse_products(x):
    rows, columns = np.arange(0, 60, 6, np.int32), np.arange(60, dtype=np.int32) % 10
    y = np.empty(rows.size - 1)
    for k in range(rows.size - 1):
        part = columns[rows[k] : rows[k + 1]]
        y[k] = x[k, part] @ x[part, k]
    return y


def network(x):
    hidden = np.maximum(x @ np.full((10, 16), 0.1) + np.linspace(0, 1, 16), 0)
    centred = hidden - hidden.mean(axis=1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    scores = normal @ np.full((16, 10), 0.2)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def gradients(x):
    return cyxla.grad(lambda y: np.sum(network(y) ** 2))(x)


def masks(x):
    chosen = np.add(np.ones((8, 8)), 1, out=None, where=np.eye(8, dtype=bool))
    return x[x > 0], np.unique(x), np.pad(chosen, 1, mode="empty") + x


def sorted_spectrum(x):
    spectrum = np.fft.fft(x)
    order = np.argsort(np.abs(spectrum), axis=1)
    return np.take_along_axis(spectrum, order, 1), np.linalg.solve(x + 20 * np.eye(10), x), np.cumsum(x, 1)


PROGRAMS = (
    branches, carried_arrays, convolution, sparse_products, network, gradients, masks, sorted_spectrum,
)  # fmt: skip


def texts(function):
    """Return the HLO of a function, before and after the passes, and its C."""
    module = cyxla.jit(function).lower(np.zeros((10, 10)))
    compiler, options = CpuCompiler(), CompileOptions()
    optimised = compiler.run_hlo_passes(module, options)
    return module.to_text(), optimised.to_text(), compiler.emit(optimised, options)[2].text


def main(seed):
    numbers, kept, digests = random.Random(seed), [], {}
    for function in PROGRAMS:
        kept.append([bytearray(numbers.randrange(600)) for _ in range(numbers.randrange(20000))])
        kept += [np.full(n, numbers.random()) for n in (100, 256, 9, 59, 144)] * 8
        numbers.shuffle(kept)
        del kept[::2]
        digests[function.__name__] = [hashlib.sha256(text.encode()).hexdigest() for text in texts(function)]
    print(json.dumps(digests))


if __name__ == "__main__":
    main(int(sys.argv[1]))
