"""Small programs of the kinds that users write: calls of a jitted function against those of the plain one.

Compared are results with their classes and dtypes, exceptions, written arguments, and state. A function is compiled
unless its row gives the reason why it is not.
"""
# ruff: noqa: B006, B007, E741

import collections
import copy
import dataclasses
import functools
import math
import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning

RNG = np.random.default_rng(5)
X = RNG.normal(size=12)
Y = RNG.normal(size=12)
A = RNG.normal(size=(6, 6))
S = A @ A.T + 6 * np.eye(6)
I = RNG.integers(0, 9, 12)
IMG = RNG.integers(0, 255, (8, 9)).astype(np.uint8)
G = (RNG.random((8, 8)) < 0.35) * RNG.integers(1, 9, (8, 8))
D = np.array(["2024-01-01", "2024-03-05"], "datetime64[D]")
ST = np.array([(1, 2.5), (3, 4.5), (0, 1.5)], dtype=[("a", "i4"), ("b", "f8")])
DT = np.dtype([("x", "f8"), ("y", "i4"), ("v", "f4", (2,))])
PROGRAMS = {}
REASONS = {}


@pytest.fixture(autouse=True)
def fallback(monkeypatch):
    """Use the default, which is to fall back."""
    monkeypatch.delenv("CYXLA_FALLBACK")


def prog(*calls, make=False, plain=""):
    """Add a function, or one that makes it, with the arguments of its calls."""

    def add(function):
        name = function.__name__
        PROGRAMS[name] = (function if make else lambda: function, calls)
        if plain:
            REASONS[name] = plain
        return function

    return add


@dataclasses.dataclass
class Particle:
    pos: np.ndarray
    vel: np.ndarray
    mass: float = 1.0

    def step(self, dt):
        self.vel = self.vel - self.pos * dt / self.mass
        self.pos += self.vel * dt


@prog((S,), (S * 2,), (S.T,))
def lu_inplace(a):
    n = a.shape[0]
    piv = np.arange(n)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]] = a[[p, k]]
            piv[k], piv[p] = piv[p], piv[k]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return piv


@prog((S, X[:6]), (S, X[6:]), (S * 3, X[:6]))
def conjugate_gradient(a, b, tol=1e-8, *, maxiter=50):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for it in range(maxiter):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if np.sqrt(new) < tol:
            break
        p = r + (new / rs) * p
        rs = new
    return x, it


@prog((IMG,), (IMG[::-1],), (IMG.T,))
def sobel(img):
    k = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]])
    h, w = img.shape
    out = np.zeros((h - 2, w - 2))
    for i in range(h - 2):
        for j in range(w - 2):
            out[i, j] = np.hypot((img[i : i + 3, j : j + 3] * k).sum(), (img[i : i + 3, j : j + 3] * k.T).sum())
    return out.clip(0, 255).astype(np.uint8)


@prog((IMG,), (IMG[:4],), (IMG,))
def histogram_equalise(img):
    h = np.bincount(img.ravel(), minlength=256)
    cdf = h.cumsum()
    m = cdf[cdf > 0].min()
    lut = np.round((cdf - m) / (img.size - m) * 255).astype(np.uint8)
    return lut[img]


@prog((IMG, IMG), (IMG, IMG[::-1]), (IMG + 200, IMG))
def uint8_overflow(a, b):
    return a + b, a - b, a * b, a << 1, ~a, a // 7, a % 7, -a, a + 1, a**2, np.abs(a - b)


@prog((I, np.zeros(12, int)), (I, I), (I.astype(np.int8), np.zeros(12, np.int8)))
def int_div_zero(a, b):
    return a // b, a % b, np.divmod(a, b), np.floor_divide(a, b), np.remainder(a, b), np.fmod(a, b), a / b


@prog(
    (np.array([1, 5, 3, 9, 2, 8]), np.array([4, 1, 5, 2, 6, 3]), 10),
    (np.array([1, 5, 3]), np.array([4, 1, 5]), 6),
    (np.array([1, 5, 3]), np.array([4, 1, 5]), 7),
)
def knapsack(values, weights, cap):
    dp = np.zeros((len(values) + 1, cap + 1), dtype=int)
    for i in range(1, len(values) + 1):
        for w in range(cap + 1):
            if weights[i - 1] <= w:
                dp[i, w] = max(dp[i - 1, w], dp[i - 1, w - weights[i - 1]] + values[i - 1])
            else:
                dp[i, w] = dp[i - 1, w]
    chosen = []
    w = cap
    for i in range(len(values), 0, -1):
        if dp[i, w] != dp[i - 1, w]:
            chosen.append(i - 1)
            w -= weights[i - 1]
    return dp[-1, -1], chosen


@prog((np.array([1, 2, 3, 4]), np.array([2, 3, 5, 4])), (np.array([1]), np.array([1])), (I, I[::-1]))
def edit_distance(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    d[:, 0] = np.arange(len(a) + 1)
    d[0] = np.arange(len(b) + 1)
    for i, ca in enumerate(a, 1):
        for j, cb in enumerate(b, 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (ca != cb))
    return int(d[-1, -1])


@prog((G, 0), (G, 3), (G.T, 0))
def dijkstra(g, s):
    n = len(g)
    dist = np.full(n, np.inf)
    dist[s] = 0
    done = np.zeros(n, bool)
    for _ in range(n):
        u = np.argmin(np.where(done, np.inf, dist))
        if np.isinf(dist[u]):
            break
        done[u] = True
        for v in range(n):
            if g[u, v] and dist[u] + g[u, v] < dist[v]:
                dist[v] = dist[u] + g[u, v]
    return dist


@prog((G,), (G.T,), (G * 0,))
def connected_components(g):
    adj = (g + g.T) > 0
    label = np.arange(len(g))
    changed = True
    while changed:
        changed = False
        for i in range(len(g)):
            m = label[adj[i] | (np.arange(len(g)) == i)].min()
            if m < label[i]:
                label[i] = m
                changed = True
    return label, len(np.unique(label))


@prog((RNG.random((6, 7)) < 0.4, 3), (RNG.random((6, 7)) < 0.4, 1), (np.ones((3, 3), bool), 2))
def life(board, steps):
    for _ in range(steps):
        n = sum(np.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        board = (n == 3) | (board & (n == 2))
    return board


@prog((X,), (Y,), (X * 0,))
def horner(c):
    return [functools.reduce(lambda a, b: a * 2.0 + b, c), np.polyval(c, 2.0), np.polynomial.polynomial.polyval(2.0, c)]


@prog((X,), (X[:5],), (np.array([1.0, np.nan, 2]),))
def describe(x):
    q = np.percentile(x, [25, 50, 75])
    return {
        "n": len(x),
        "mean": x.mean(),
        "std": x.std(ddof=1),
        "q": q,
        "skew": ((x - x.mean()) ** 3).mean() / x.std() ** 3,
        "nan": bool(np.isnan(x).any()),
        "max": float(x.max()),
        "arg": int(x.argmax()),
    }


@prog((X,), (Y,), (np.array([1.0, 1, 2]),))
def run_lengths(x):
    s = (x > 0).astype(int)
    change = np.flatnonzero(np.diff(s)) + 1
    idx = np.concatenate(([0], change, [len(x)]))
    return np.diff(idx), s[idx[:-1]]


@prog((X,), (Y,), (X,), make=True)
def class_call():
    class Filter:
        def __init__(self, a):
            self.a = a
            self.y = 0.0
            self.n = 0

        def __call__(self, x):
            out = np.empty_like(x)
            for i in range(len(x)):
                self.y = self.a * x[i] + (1 - self.a) * self.y
                out[i] = self.y
            self.n += 1
            return out

    f = Filter(0.3)

    def run(x):
        return f(x), f.n, f.y

    run.state = lambda: (f.y, f.n)
    return run


@prog((X,), (Y,), (X,), make=True)
def closure_counter():
    n = 0
    acc = np.zeros(12)

    def step(x):
        nonlocal n, acc
        n += 1
        acc = acc + x * n
        return acc.sum(), n

    step.state = lambda: (n, acc)
    return step


@prog((X,), (Y,), (X,), make=True)
def mutable_default_dict():
    def f(x, cache={}):
        k = len(x)
        if k not in cache:
            cache[k] = np.arange(k) * 2.0
        return x + cache[k]

    f.state = lambda: dict(f.__defaults__[0])
    return f


@prog((X,), (Y[:5],), (X,))
def generator_use(x):
    def pairs(v):
        for i in range(len(v) - 1):
            yield v[i], v[i + 1]

    s = 0.0
    for a, b in pairs(x):
        s += abs(b - a)
    return s, sum(v * v for v in x), max((v for v in x), default=0)


@prog((X, 0.0), (Y, 2.0), (X, 1))
def try_zero(x, d):
    try:
        r = 1 / d
    except ZeroDivisionError:
        r = math.inf
    else:
        r = r * 2
    return x * r


@prog((X,), (-np.abs(Y),), (X * 10,))
def early_return_int(x):
    for i, v in enumerate(x):
        if v > 1:
            return i
    return -1


@prog((X,), (Y,), (X * 3,))
def while_true(x):
    s = 0
    n = 0
    while True:
        s += x[n] ** 2
        n += 1
        if s > 4 or n == len(x):
            break
    return s, n


@prog((X, Y), (X,), (X, Y, X))
def varargs(*arrays, scale=2, **kw):
    return sum(arrays) * scale, len(arrays), sorted(kw)


@prog((8,), (9,), (3,))
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@prog((X, np.array([0, 0, 3, 3, 3])), (Y, np.array([1, 1, 2, 2, 2])), (I, np.array([1, -1, 2, -2, 2])))
def duplicate_writes(x, idx):
    x[idx] += 1
    x[idx] = np.arange(5)
    np.add.at(x, idx, 10)
    np.maximum.at(x, idx, 3)
    return x[idx]


@prog((X,), (I,), (Y,))
def views_of_views(x):
    v = x[2:10]
    w = v[::-2]
    w *= 2
    w[1:] = w[:-1]
    v[:3] += v[2:5]
    return v, w.sum()


@prog((X,), (I,), (Y[::-1],))
def overlapping(x):
    x[1:] = x[:-1]
    x[:-2] += x[2:]
    x[::-1] = x
    x[3:8] -= x[2:7]
    return x.copy()


@prog((A,), (np.asfortranarray(A),), (A[::-1, ::-1],))
def fortran(a):
    a[1] += a[0]
    return (
        a.ravel(),
        a.ravel("F"),
        a.ravel("K"),
        a.reshape(-1, order="F"),
        a.flatten("A"),
        a.T.copy("K"),
        np.zeros_like(a),
        a.flags.f_contiguous,
    )


@prog((np.array(3.0),), (np.array(4),), (np.float64(2.0),))
def zero_dim(x):
    return (
        x + 1,
        x * x,
        np.sqrt(x),
        x[()],
        x.sum(),
        np.asarray(x),
        x.item() if hasattr(x, "item") else x,
        float(x),
        -x,
        x.reshape(1),
        x.astype(int),
        np.atleast_1d(x),
        x > 2,
        x.T,
    )


@prog((np.array(3.0),), (np.array(4),), (np.array(2.0, np.float32),))
def zero_dim_inplace(x):
    x += 1
    x[...] = x * 2
    y = x
    y *= 3
    return x, y, x[()]


@prog((X, X > 0), (Y, Y > 0), (I, I > 4))
def masked_writes(x, m):
    x[m] = x[~m].mean()
    x[x > 3] -= 3
    np.putmask(x, m, [1, 2, 3])
    np.place(x, ~m, [7, 8])
    np.copyto(x, 9, where=x == 7)
    return x[m], m.sum()


@prog((I, 3), (I, 5), (I.astype(np.uint16), 3))
def uint_shift(x, n):
    h = np.uint32(2166136261)
    for v in x:
        h = np.uint32((int(h) ^ int(v)) * 16777619 & 0xFFFFFFFF)
    return h, x >> n, x & 3, x ^ 5, np.left_shift(x, n)


@prog(
    (Particle(X[:3].copy(), Y[:3].copy()), 0.1),
    (Particle(Y[:3].copy(), Y[:3].copy(), 2.0), 0.1),
    (Particle(X[:3].copy(), Y[:3].copy()), 0.2),
)
def dataclass_step(p, dt):
    for _ in range(4):
        p.step(dt)
    return p, (p.vel**2).sum() * p.mass / 2


@prog((X,), (Y,), (-np.abs(X),))
def peaks(x):
    found = []
    for i in range(1, len(x) - 1):
        if x[i - 1] < x[i] > x[i + 1]:
            found.append((i, x[i]))
    return found


@prog((IMG,), (IMG,), (IMG[:3],))
def rle(img):
    out = []
    for row in img > 120:
        prev = row[0]
        n = 0
        for v in row:
            if v == prev:
                n += 1
            else:
                out.append((bool(prev), n))
                prev, n = v, 1
        out.append((bool(prev), n))
    return out


@prog((X,), (I,), (X[:3],))
def list_of_lists(x):
    m = [[0.0] * 3 for _ in range(4)]
    for i in range(4):
        for j in range(3):
            m[i][j] = x[i % len(x)] * j
    return m, np.array(m)


@prog((3,), (5,), (3,))
def structured_inside(n):
    t = np.zeros(n, dtype=[("x", "f8"), ("y", "i4")])
    t["x"] = np.arange(n) / 2
    t["y"][1] = 7
    return t, t["x"].sum()


@prog((X, 1), (X, 2), (Y, 0))
def match_stmt(x, mode):
    match mode:
        case 0:
            return x
        case 1:
            return x * 2
        case _:
            return x.sum()


@prog((X,), (Y,), (I,))
def walrus(x):
    if (m := x.mean()) > 0:
        return m
    return m * 2


@prog((X,), (Y,), (I,))
def unpack(x):
    a, b, *rest = x
    (c, d), e = x[:2], x[2]
    return a, b, len(rest), rest[-1], c, d, e


@prog((np.float32(2.5),), (np.int8(100),), (np.uint8(200),))
def numpy_scalars(a):
    return (
        a + 1,
        a * 2,
        a + np.float64(1),
        a / 3,
        -a,
        np.sqrt(a),
        a + np.int8(1),
        a.astype(np.int16),
        a.dtype,
        type(a).__name__,
    )


@prog((1.5,), (2,), (np.float32(2.5),))
def python_numbers(a):
    return (
        a * 2,
        a + 1,
        a / 2,
        a**2,
        a // 1,
        a % 1,
        -a,
        abs(a),
        a == 2,
        a > 1,
        int(a),
        float(a),
        [a, 1],
        {"a": a},
        a if a > 2 else 0,
    )


@prog((X.astype(np.float16),), (X.astype(np.float32),), (I.astype(np.int8),))
def narrow(x):
    return (
        x.sum(),
        x.mean(),
        x.cumsum(),
        x * 1.5,
        x @ x,
        x + np.float32(1),
        np.sum(x, dtype=np.float64),
        x.prod(),
        x.var(),
    )


@prog((X, Y), (Y, X), (X, X))
def bool_ops(x, y):
    m = (x > 0) & (y > 0) | ~(x < y)
    return (
        m,
        m.sum(),
        m.mean(),
        m.any(),
        m + m,
        m * 2,
        np.logical_xor(m, x > 0),
        np.count_nonzero(m),
        m.astype(int),
        True + m.sum(),
    )


@prog((X, 3), (Y, 3), (X, 2))
def kmeans(x, k):
    c = x[:k].copy()
    for _ in range(10):
        lab = np.argmin(np.abs(x[:, None] - c[None]), axis=1)
        for j in range(k):
            if np.any(lab == j):
                c[j] = x[lab == j].mean()
    return c, lab


@prog((A, X[:6]), (S, X[:6]), (S, Y[:6]))
def gauss_seidel(a, b):
    x = np.zeros(6)
    d = S
    for it in range(30):
        old = x.copy()
        for i in range(6):
            x[i] = (b[i] - d[i, :i] @ x[:i] - d[i, i + 1 :] @ x[i + 1 :]) / d[i, i]
        if np.allclose(x, old, atol=1e-10):
            break
    else:
        it = -1
    return x, it


@prog((A, 0), (A, 1), (A, -1))
def swap_rows(a, k):
    a[[0, k]] = a[[k, 0]]
    tmp = a[1].copy()
    a[1] = a[2]
    a[2] = tmp
    a[:, 0], a[:, 1] = a[:, 1], a[:, 0].copy()
    return a


@prog((IMG,), (IMG[::2],), (IMG,))
def summed_area(img):
    s = img.astype(np.int64).cumsum(0).cumsum(1)
    s = np.pad(s, ((1, 0), (1, 0)))
    return s[2:, 2:] - s[:-2, 2:] - s[2:, :-2] + s[:-2, :-2]


@prog((X, "sum"), (X, "mean"), (X, "nope"))
def dispatch_by_name(x, how):
    table = {"sum": np.sum, "mean": np.mean}
    if how not in table:
        raise KeyError(how)
    return table[how](x), getattr(x, how)()


@prog((A,), (X,), (I,))
def flat_writes(x):
    x.flat[2] = 9
    x.flat[::3] = 1
    return x.flat[4], list(x.flat)[:3], x.flat[1:4]


@prog((X, 1), (X, 0), (X, 1))
def unbound_if(x, k):
    if k:
        y = x * 2
    return y


@prog((X,), (Y,), (X,))
def unbound_traced(x):
    if x[0] > 5:
        y = x * 2
    return y


@prog((X[:0],), (Y,), (X,))
def unbound_for2(x):
    for v in x:
        y = v * 2
    return x.sum(), y


@prog((X,), (np.array([1.0]),), (Y,))
def catch_index(x):
    try:
        return x[5]
    except IndexError as e:
        return str(e)


@prog((X,), (Y,), (X,))
def nested_try(x):
    out = []
    for k in range(3):
        try:
            if k == 1:
                raise ValueError("k")
            out.append(x[k])
        except ValueError as e:
            out.append(str(e))
            continue
        finally:
            out.append(k)
    return out


@prog((X,), (Y,), (X,))
def star_unpack(x):
    a, *b, c = x[:4]
    d = [*b, a]
    e = {**{"k": c}, "m": a}

    def f(*args, k=0, **kw):
        return sum(args) + k + kw["m"]

    return d, e, f(*d, **e)


@prog((np.array([-128, 5], np.int8),), (np.array([-(2**63), 5]),), (np.array([True, False]),))
def int_edges(a):
    return (
        np.abs(a),
        a // -1 if a.dtype != bool else a,
        a * a,
        np.sign(a) if a.dtype != bool else a,
        a.astype(np.uint8),
        a.astype(float),
        ~a,
        a >> 1,
        a.max(),
        a.sum(),
    )


@prog(
    (np.arange(24).reshape(2, 3, 4),), (np.arange(24.0).reshape(4, 3, 2),), (np.arange(24).reshape(4, 3, 2)[::-1, ::2],)
)
def indexing_mix(a):
    return (
        a[0, :, [0, 1]],
        a[:, [0, 1], 0],
        a[..., -1],
        a[:, None, 0],
        a[[0, 1], :, 0],
        a[a > 5],
        a[a[:, 0, 0] > 3],
        a[::-1, ::-1].ravel()[:3],
        a[1, ...].shape,
        a[np.ix_([0, 1], [1, 0])],
        a[(0, 1)],
        a.take([0, 2]),
        a[-1][-1][-1],
        a[np.array(0)],
        a[True].shape,
        a[:, :, -1:],
    )


@prog((X,), (A,), (X,), plain="is a flatiter")
def returns_flat(x):
    return x.flat


@prog((4,), (5,), (4,), plain="is a flatiter")
def returns_flat_known(n):
    return np.arange(n).flat


@prog((4,), (5,), (4,), plain="is a nditer")
def returns_nditer_known(n):
    return np.nditer(np.arange(n)), np.ndenumerate(np.arange(n))


@prog((X,), (A,), (X,), plain="is a numpy.ndenumerate")
def returns_ndenumerate(x):
    return np.ndenumerate(x)


@prog((ST,), (ST[::-1],), (ST[:2],), plain="cannot be compiled")
def structured(a):
    a["b"] *= 2
    return a["a"].sum() + a["b"].mean(), a["b"], a[a["a"] > 0]


@prog((ST.view(np.recarray),), (ST[::-1].view(np.recarray),), (ST.view(np.recarray),), plain="cannot be compiled")
def recarr(a):
    a.b += 1
    return a.a + a.b


@prog((X,), (Y,), (X[:3],), plain="is used with traced values")
def field_written(x):
    t = np.zeros(len(x), dtype=DT)
    t["x"] = x
    t["y"] = np.arange(len(x))
    return t["x"] * 2, t["y"].sum()


@prog((X, I), (Y, I), (X, I), plain="is used with traced values")
def struct_sort(x, i):
    t = np.empty(len(x), [("k", "i8"), ("v", "f8")])
    t["k"], t["v"] = i, x
    t.sort(order="k")
    return t["v"]


@prog((X,), (Y,), (X[:3],), plain="is used with traced values")
def record_item(x):
    t = np.zeros(len(x), DT)
    t[0] = (x[0], 3, 1)
    t[1]["x"] = 4
    return t["x"]


@prog((D,), (D[::-1],), (D,), plain="datetime64")
def dates(d):
    return d + np.timedelta64(1, "D"), d - d[0], d.astype("datetime64[M]"), d.max()


@prog(((1, 2, 3, 1, 1, 2),), (np.array([0, 1, 1, 0, 2]),), ([0, 0],), plain="leaves state as str")
def state_machine(events):
    state = "idle"
    log = []
    count = 0
    for e in events:
        if state == "idle":
            if e == 1:
                state = "run"
        elif state == "run":
            count += 1
            if e == 2:
                state = "stop"
        else:
            state = "idle"
        log.append(state)
    return state, count, log


@prog((X,), (Y,), (X[:0],), plain="cannot be handled")
def try_finally(x):
    log = []
    try:
        log.append("in")
        if x.sum() > 0:
            return x.sum(), log
        x[100] += 1
    except IndexError:
        log.append("index")
        return -1.0, log
    finally:
        log.append("out")


@prog((G, 0), (G, 5), (np.zeros((3, 3)), 0), plain="cannot be iterated over")
def bfs(g, s):
    seen = {s}
    queue = collections.deque([s])
    order = []
    while queue:
        u = queue.popleft()
        order.append(u)
        for v in np.flatnonzero(g[u]):
            if v not in seen:
                seen.add(v)
                queue.append(v)
    return order


@prog((X,), (A,), (I,), plain="nditer cannot be traced")
def uses_nditer(x):
    s = 0
    for v in np.nditer(x):
        s += v * v
    it = np.nditer(x, flags=["multi_index"])
    t = 0
    while not it.finished:
        t += it[0] * sum(it.multi_index)
        it.iternext()
    return s, t


def call(function, args):
    """Return a result, or the exception in its place, and the arguments afterwards."""
    args = copy.deepcopy(args)
    try:
        return function(*args), args
    except Exception as error:
        return error, args


def history(make, calls, decorate):
    """Return everything that can be seen of some calls."""
    plain = make()
    function = decorate(plain)
    return [(*call(function, args), copy.deepcopy(getattr(plain, "state", lambda: None)())) for args in calls]


def require_equal(got, expected, where):
    if isinstance(expected, Exception):
        assert isinstance(got, type(expected)), f"{where}: {got!r} is not {expected!r}"
        assert str(got).partition("\n")[0] == str(expected), where
        return
    assert type(got) is type(expected), f"{where}: {got!r} is not {expected!r}"
    if dataclasses.is_dataclass(expected):
        require_equal(vars(got), vars(expected), where)
    elif isinstance(expected, dict):
        require_equal([*got, *got.values()], [*expected, *expected.values()], where)
    elif isinstance(expected, (tuple, list)):
        assert len(got) == len(expected), where
        for k, value in enumerate(expected):
            require_equal(got[k], value, f"{where}[{k}]")
    elif isinstance(expected, np.ndarray) and expected.dtype.names:
        assert (got.dtype, got.tobytes()) == (expected.dtype, expected.tobytes()), where
    elif isinstance(expected, (np.ndarray, np.generic, float)):
        assert np.asarray(got).dtype == np.asarray(expected).dtype, where
        tolerance = {2: 2e-3, 4: 1e-5}.get(np.asarray(expected).itemsize, 1e-9)
        assert_equal = np.testing.assert_allclose if np.asarray(expected).dtype.kind in "fc" else None
        if assert_equal is None:
            np.testing.assert_array_equal(got, expected, err_msg=where)
        else:
            assert_equal(got, expected, rtol=tolerance, atol=1e-12, err_msg=where)
    elif not isinstance(expected, (np.flatiter, np.nditer, np.ndenumerate)):
        assert got == expected, where


@pytest.mark.slow_but_every(6)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the plain function
@pytest.mark.parametrize("tier", ["tiers", "native"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, tier, monkeypatch):
    monkeypatch.setenv("CYXLA_TIER", "native") if tier == "native" else monkeypatch.delenv("CYXLA_TIER", raising=False)
    make, calls = PROGRAMS[name]
    expected = history(make, calls, lambda f: f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = history(make, calls, cyxla.jit)
    for k, (one, other) in enumerate(zip(got, expected, strict=True)):
        for part, mine, plain in zip(("result", "arguments", "state"), one, other, strict=True):
            require_equal(mine, plain, f"call {k}: {part}")
    reasons = [str(w.message) for w in caught if issubclass(w.category, FallbackWarning)]
    assert bool(reasons) == (name in REASONS), reasons
    assert all(REASONS[name] in r for r in reasons)
