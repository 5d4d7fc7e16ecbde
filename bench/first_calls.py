"""Functions of many kinds, and the time of the first call of one of them: ``python first_calls.py stencil``.

It prints JSON: wall seconds of the first call, CPU seconds of this process and of its compilers, and how many modules
the call has imported.
"""

import json
import os
import sys
import time

import numpy as np


def elementwise(x, y):
    return np.tanh(x) * y + np.sqrt(np.abs(x - y))


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def products(a, b, c):
    return np.maximum(a @ b + c, 0.0) @ b.T


def stencil(a, b):
    for _ in range(20):
        b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = 0.25 * (b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])
    return a


def statistics(data):
    mean, deviation = np.mean(data, axis=0), np.std(data, axis=0)
    deviation[deviation <= 0.1] = 1.0
    data = (data - mean) / deviation
    return data.T @ data


def triangular(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def histogram(x, bins):
    counts = np.zeros(bins)
    for k in range(bins):
        inside = np.logical_and(x >= k / bins, x < (k + 1) / bins)
        counts[k] = x[inside].mean()
    return counts


def escape(c, steps):
    z, count = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for k in range(steps):
        inside = np.less(np.abs(z), 2.0)
        count[inside] = k
        z[inside] = z[inside] ** 2 + c[inside]
    return count


def bodies(position, mass, velocity, steps):
    for _ in range(steps):
        delta = position[np.newaxis] - position[:, np.newaxis]
        distance = np.sum(delta**2, axis=-1) + 0.01
        velocity += 0.1 * np.sum(delta * (mass * distance**-1.5)[:, :, np.newaxis], axis=1)
        position += 0.1 * velocity
    return position, 0.5 * np.sum(mass * np.sum(velocity**2, axis=1))


def layers(x, *weights):
    for w in weights:
        x = np.maximum(x @ w, 0.0)
    return x / np.sum(x, axis=-1, keepdims=True)


def numbers(*shape):
    return np.random.default_rng(1).random(shape)


CASES = {
    "elementwise": (elementwise, lambda: (numbers(1000), numbers(1000))),
    "softmax": (softmax, lambda: (numbers(16, 16, 64),)),
    "products": (products, lambda: (numbers(64, 32), numbers(32, 48), numbers(48))),
    "stencil": (stencil, lambda: (numbers(64, 64), numbers(64, 64))),
    "statistics": (statistics, lambda: (numbers(120, 80),)),
    "triangular": (triangular, lambda: (numbers(40, 40) + 40 * np.eye(40),)),
    "histogram": (histogram, lambda: (numbers(1000), 20)),
    "escape": (escape, lambda: (numbers(32, 32) + 1j * numbers(32, 32), 20)),
    "bodies": (bodies, lambda: (numbers(24, 3), numbers(24), numbers(24, 3), 10)),
    "layers": (layers, lambda: (numbers(8, 30), numbers(30, 40), numbers(40, 20), numbers(20, 10))),
}


def main():
    import cyxla

    function, arguments = CASES[sys.argv[1]]
    arguments, jitted, modules = arguments(), cyxla.jit(function), len(sys.modules)
    before, started = os.times(), time.perf_counter()
    jitted(*arguments)
    wall, after, modules = time.perf_counter() - started, os.times(), len(sys.modules) - modules
    jitted.wait()
    print(json.dumps({
        "wall": wall,
        "python": after.user + after.system - before.user - before.system,
        "compilers": after.children_user + after.children_system - before.children_user - before.children_system,
        "modules": modules,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
