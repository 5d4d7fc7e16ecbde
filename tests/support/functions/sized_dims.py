"""Random functions of arrays of which several dimensions have sizes known at run time."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import cyxla
from support.functions.sized import alike, function_of, outcome

ROWS, COLUMNS = 8, 7
SIZES = ((3, 4), (5, 2), (1, 3), (2, 1), (4, 4), (7, 7), (3, 0), (0, 2))
NAMES = ("x", "y", "v", "w", "k")
PARTS = {"x": "a[:n, :m]", "y": "a[1 : m + 1, :n]", "v": "a[0, :n]", "w": "a[1, :m]", "k": "n // 2"}

# z: the array so far; d: one of its dimensions, counted from the end; p: a permutation of all
STARTS = (
    "x", "y", "x.T", "x @ y", "y @ x", "x @ x.T", "np.outer(v, w)", "v[:, None] + w", "x[:, None, :] - y.T[None]",
    "x[:k]", "x[:k, k:]", "np.tri(x.shape[0]) * v", "np.eye(x.shape[0], x.shape[1])", "np.ones(x.shape) * w",
    "np.zeros((x.shape[1], x.shape[0], 2))", "x[v > 0]", "x[:, w > 0]", "x[:, :, None] * np.arange(1.0, 4.0)",
    "np.add.outer(v, w)", "np.einsum('ij,kj->ik', x, y.T)", "np.stack([x, y.T])", "np.diag(v)", "np.full(y.shape, 2.5)",
    "np.arange(x.shape[1]) - np.arange(x.shape[0])[:, None] * 1.0", "v", "w", "np.meshgrid(v, w)[1]",
    "np.broadcast_to(w, x.shape)", "np.concatenate([x, y.T])", "x.reshape(-1)", "np.repeat(x, 2, 0)", "x.astype(int)",
    "x > 0", "y.astype(np.int8)", "x + 1j * x[::-1]",
)  # fmt: skip
STEPS = (
    "z * 2 - 1", "z + z", "z - z.mean(d, keepdims=True)", "z / (1 + np.abs(z).sum(d, keepdims=True))", "np.abs(z)",
    "z - z.max(d, keepdims=True)", "np.exp(z / 50)", "np.where(z > 0, z, 0)", "np.clip(z, -3, 5)", "z * (z > 1)",
    "z.transpose(p)", "np.swapaxes(z, d, 0)", "np.moveaxis(z, d, 0)", "np.flip(z, d)", "z[::-1]", "z[..., ::-1]",
    "z[1:]", "z[..., 1:]", "z[:k]", "z[..., k:]", "z[k:, ..., :-1]", "z[..., ::2]", "z[-2:]", "z[None]", "z[..., None]",
    "z[:, None]", "np.expand_dims(z, d)", "z.sum(d)", "z.sum(d, keepdims=True)", "z.mean(d)", "z.max(d)", "z.min(d)",
    "z.var(d)", "np.sort(z, d)", "np.argsort(z, d, kind='stable') * 1.0", "np.cumsum(z, d)", "np.diff(z, axis=d)",
    "np.roll(z, 1, d)", "np.roll(z, k, d)", "z.ravel()", "z.reshape(-1)", "z.reshape(z.shape[0], -1)",
    "z.reshape(-1, z.shape[-1])", "z.reshape(z.shape[::-1])", "z.reshape(*z.shape, 1)", "z.reshape(z.size)",
    "np.concatenate([z, z], d)", "np.concatenate([z[:k], z])", "np.stack([z, z * 2], d)", "np.stack([z, -z])",
    "np.append(z, z)", "np.vstack([z, z])", "np.hstack([z, z])", "np.repeat(z, 2, d)", "np.tile(z, 2)",
    "z @ np.swapaxes(z, -1, -2)", "np.swapaxes(z, -1, -2) @ z", "np.einsum('...i,...i->...', z, z)",
    "np.einsum('i...->...i', z)", "np.tensordot(z, z, ((d,), (d,)))", "np.inner(z, z)", "np.outer(z, v)",
    "np.tril(z)", "np.triu(z, 1)", "np.tril(z, -1)", "np.trace(z)", "np.diagonal(z)", "np.diagonal(z, 1)",
    "z[z.sum(tuple(range(1, z.ndim))) > 0]", "z[z > 0]", "z[z[..., 0] > 0]",
    "z[np.argsort(z.ravel()[: z.shape[0]], kind='stable')]",
    "z[0]", "z[..., -1]", "z[:, 0]", "z[[0, -1]]", "z[..., [0, 0]]", "np.take(z, 0, d)", "np.take(z, [0, -1], d)",
    "np.take_along_axis(z, np.argsort(z, d, kind='stable'), d)", "np.argmax(z, d) * 1.0", "np.count_nonzero(z, d)",
    "np.median(z, d)", "np.quantile(z, 0.3, d)", "np.pad(z, 1)", "np.pad(z, 1, mode='edge')", "np.squeeze(z, d)",
    "np.split(z, [1], d)[1]", "np.array_split(z, 2, d)[0]", "np.linalg.norm(z, axis=d)", "np.atleast_3d(z)",
    "np.broadcast_to(z, (2, *z.shape))", "np.nonzero(z > 0)[0] * 1.0", "np.unique(np.round(z, 9))",
    "np.delete(z, 0, d)",
    "np.add.reduce(z, d)", "np.maximum.accumulate(z, d)", "np.subtract.outer(z, w)", "np.rot90(z)", "np.ptp(z, d)",
    "np.average(z, d, weights=z * 0 + 2)", "cyxla.fori_loop(0, 2, lambda j, c: c * 0.5 + j, z * 1.0)", "z + e", "z * e",
    "np.where(z > e, z, e)", "np.concatenate([z, e])", "z @ e", "np.maximum(z, e)", "z[:, : e.shape[0]]",
    "z[: e.shape[-1]]", "z - e.sum()", "np.isin(z, e) * 1.0", "np.kron(z, e)", "z.astype(int) % 3",
)  # fmt: skip
WRITES = (
    "z[...] = 1", "z[0] = 2", "z[..., -1] = 3", "z[:k] = 4", "z[..., k:] += 1", "z[z > 1] = -1", "z[::-1] *= 2",
    "z[1:] = z[:-1]", "z[:, 0] = v[0]", "z[..., 0] -= z[..., -1]", "z[[0, -1]] = 5", "z[..., : e.shape[-1]] = 0",
    "z += e", "z[:k] = z[:k] * 2", "z[np.flatnonzero(v > 0) % z.shape[0]] = 7", "z[v > 0] = 1", "z[1:, ..., 1:] = 8",
)  # fmt: skip
ENDS = (  # argmax, as unique: elements that differ by their rounding alone are equal
    "z", "z", "z", "z.sum()", "z.mean()", "z.shape", "z.size", "(z, e)", "z.max()", "np.median(z)",
    "np.argmax(np.round(z, 9))", "np.linalg.norm(z)", "[z.T, z.ndim]", "np.array_equal(z, e)",
    "np.histogram(z, np.arange(-9.0, 9.0, 3))[0]",
)  # fmt: skip
MOST_ELEMENTS, MOST_RANK = 4000, 4


def values(rows: int, columns: int, seed: int = 0) -> dict[str, Any]:
    """Return the array that functions take parts of, and the sizes of these."""
    a = np.random.default_rng(seed).integers(-9, 10, (ROWS, COLUMNS)).astype(float)
    return {"a": a, "n": np.int64(rows), "m": np.int64(columns)}


def parts(rows: int, columns: int) -> dict[str, Any]:
    """Return the parts that functions take for sizes."""
    known = values(rows, columns)
    found = {name: eval(text, {**known, "np": np}) for name, text in PARTS.items()}
    return {name: part.copy() for name, part in found.items()}


def random_body(seed: int) -> str:
    """Return the body of a function of the names of `parts`; its lines do not fail for usual sizes."""
    rng = random.Random(seed)
    space: dict[str, Any] = {"np": np, "cyxla": cyxla, **parts(5, 4)}
    lines: list[str] = []
    _extend(lines, [f"z = {rng.choice(STARTS)}", "e = z"], space)
    wanted = rng.randint(1, 5)
    for _ in range(40):
        if len(lines) - 2 >= wanted:
            break
        rank = np.ndim(space["z"])
        draw = rng.random()
        if draw < 0.15:
            added = ["z = z.copy()", rng.choice(WRITES)] if rank else []
        elif draw < 0.25:
            added = [f"z, e = {rng.choice(STARTS)}, z"]
        elif draw < 0.3:
            added = [f"e = {rng.choice(STARTS)}"]
        else:
            added = [f"z = {_filled(rng.choice(STEPS), rank, rng)}"]
        _extend(lines, added, space)
    for _ in range(20):
        if _extend(lines, [f"return {rng.choice(ENDS)}"], space):
            break
    else:
        lines.append("return z")
    return "\n".join([*lines, ""])


def _filled(form: str, rank: int, rng: random.Random) -> str:
    axes = list(range(rank))
    rng.shuffle(axes)
    axis = str(rng.randrange(-rank, 0) if rank else 0)
    tokens = {"d": axis, "p": str(tuple(axes))}
    text, word = "", ""
    for letter in form + " ":
        if letter.isalnum() or letter in "._'":
            word += letter
        else:
            text, word = text + tokens.get(word, word) + letter, ""
    return text.rstrip()


def _extend(lines: list[str], added: Sequence[str], space: dict[str, Any]) -> bool:
    """Add lines unless they fail, or make a large array; return whether they were added."""
    names = dict(space)
    names["z"] = np.copy(names["z"]) if "z" in names else None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for line in added:
                exec(line.replace("return ", "result = ", 1), names)
    except Exception:
        return False
    if np.size(names["z"]) > MOST_ELEMENTS or np.ndim(names["z"]) > MOST_RANK:
        return False
    space.update(names)
    lines += added
    return True


def function_of_sizes(body: str) -> Any:
    """Return a function of an array and two sizes, which are known at run time."""
    lines = [f"{name} = {text}" for name, text in PARTS.items()]
    limits = f"n, m = np.minimum(n, {ROWS - 1}), np.minimum(m, {COLUMNS})"
    return function_of("\n".join([limits, *lines, body]), values(1, 1))


def check_sizes(body: str, platform: str, sizes: Sequence[tuple[int, int]] = SIZES) -> None:
    """Check a function against NumPy for sizes known at run time, and for open dimensions of its arguments."""
    function = function_of_sizes(body)
    compiled = cyxla.jit(function, platform=platform)
    for n, m in sizes:
        compare(function, compiled, values(n, m), f"{body} with sizes {n}, {m}")


def check_any_size(body: str, platform: str, sizes: Sequence[tuple[int, int]] = SIZES) -> Any:
    """Check a function of arrays that is compiled for any size against NumPy; return the compiled function.

    One of the arrays is in column-major order.
    """
    function = function_of(body, dict.fromkeys(NAMES))
    compiled = cyxla.jit(function, platform=platform)
    for n, m in sizes:
        found = parts(n, m)
        compare(function, compiled, {**found, "y": np.asfortranarray(found["y"])}, f"{body} of sizes {n}, {m}")
    return compiled


def compare(function: Any, compiled: Any, arguments: Mapping[str, Any], text: str) -> None:
    """Check that a compiled function gives NumPy's result, or fails with a class of NumPy's error."""
    want, failure = outcome(function, arguments)
    got, ours = outcome(compiled, arguments)
    if failure is not None:
        assert isinstance(ours, (IndexError, TypeError, ValueError, ArithmeticError)), (
            f"{text}: NumPy raises {failure!r}, we {got!r}, {ours!r}"
        )
    elif ours is not None:
        raise AssertionError(f"{text}: {ours}") from ours
    else:
        alike(got, want, text)
