"""Short functions of arrays whose sizes masks and bounds decide, beside arrays of known size, against NumPy.

An input is the text of the function; each is called with several masks, which select none, one, some and all elements.
"""

from __future__ import annotations

import copy
import random
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cyxla
from cyxla.numpy.tracing.containers import flatten
from fuzzing.expressions import EPSILON
from fuzzing.kind import DifferenceError, Kind, Stage

OPERANDS = (
    "x[m]", "x[m]", "y[k]", "x[m]", "i[m]", "i[k]", "b[m]", "X[m]", "X[k]", "X[:, q]", "X[m][:, q]", "w",
    "one", "x[:n]", "x[n:]", "y[:n][::-1]", "X[:n]", "X[m].T", "X[m, 1]", "np.nonzero(m)[0]", "np.unique(i)",
    "np.arange(n)", "np.zeros(n)", "np.ones((n, 3))", "np.sort(x[m])", "x[i[m]]", "x[m][:3]", "c[m]", "f[m]",
    "t", "S", "x", "2", "3",
)  # fmt: skip
CALLS = """
abs all any append argmax argmin argwhere array array_equal array_equiv array_split asarray atleast_2d
average bincount broadcast_arrays ceil choose clip column_stack compress concatenate conj convolve copy
corrcoef correlate count_nonzero cov cross cumprod cumsum delete diag diagonal diff divide divmod dot dstack
ediff1d einsum equal expand_dims extract fft.fft flatnonzero flip floor fmax full_like gradient greater hstack
hypot inner insert intersect1d isclose isin kron less lexsort linalg.norm linalg.vecdot logical_and matmul max
maximum mean median meshgrid min mod moveaxis multiply nan_to_num nanargmax nanargmin nancumsum nanmax nanmean
nanmedian nanpercentile nansum nonzero not_equal ones_like outer pad percentile polyval prod ptp quantile ravel
repeat reshape resize roll rot90 round searchsorted_sorted select setdiff1d setxor1d sign sort split square
stack std subtract sum swapaxes take take_along_axis tensordot tile trace transpose trapezoid tril triu union1d
unique var vdot vstack where zeros_like
"""
#: Calls, with places for operands: A, B and C.
FORMS = (
    "np.{f}(A)", "np.{f}(A, B)", "np.{f}(A, B)", "np.{f}(A, B, C)", "np.{f}((A, B))", "np.{f}([A, B])",
    "np.{f}(A, axis=0)", "np.{f}(A, axis=-1)", "np.{f}(A, B, axis=0)", "np.{f}(A, B, axis=-1)",
    "np.{f}((A, B), axis=0)", "np.{f}((A, B), axis=1)", "np.{f}(A, 2)", "np.{f}(A, 3)", "np.{f}(A, (3,))",
    "np.{f}(A, (2, -1))", "np.{f}(A, weights=B)", "np.{f}(A, [0, 1])", "np.{f}(A, [0], axis=0)",
    "np.{f}(A, keepdims=True)", "np.{f}(A, 0.5)", "np.{f}(A, initial=1)", 'np.{f}(A, dtype="f4")',
    "np.sum(A, where=B > 0)", "np.max(A, where=B > 0, initial=0)", "np.{f}(A, B, out=C)",
)  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "//", "%", "<", "==", "&", "@", ">=")
METHODS = (
    "sum()", "sum(0)", "mean(0)", "max()", "std()", 'argsort(kind="stable")', "cumsum()", "clip(0, 1)", "reshape(-1)",
    "reshape(-1, 1)", "reshape(3)", "reshape(1, -1)", "reshape(n)", "reshape(2, -1)", "T", "flatten()",
    "ravel()", "copy()", "astype(int)", "all()", "any(0)", "dot(A)", "take([0])", "repeat(2)", "tolist()",
    "nonzero()", "size", "shape", "conj()", "real", "swapaxes(0, -1)", "squeeze(0)", "item()", "diagonal()",
    "trace()", "argmin(-1)", "sum(where=A > 0)", "fill(2)",
)  # fmt: skip
INDICES = (
    "0", "-1", "1:", ":-1", "::-1", "...", "None", "[0, -1]", "n", ":n", "n:", "b[m]", "b[:n]", "i[m]", "t",
    "..., 0", "1:n", ":, 0", "m[:n]", "A > 0.3", "()", "np.nonzero(m)[0]", "slice(n)", "b[:3]",
)  # fmt: skip
PLACE = re.compile(r"\b[ABC]\b")
COUNTS = ((3, 3, 2, 3), (1, 1, 1, 1), (0, 0, 0, 0), (3, 1, 1, 1), (1, 3, 3, 2), (5, 3, 2, 5), (0, 3, 1, 3))
TRIES = 20  # texts of which one is an input: most raise errors whatever the sizes


def arguments(counts: Sequence[int], seed: int = 0) -> dict[str, Any]:
    """Masks of which some elements are true, a bound, and arrays."""
    rng = np.random.default_rng(seed)

    def mask(size: int, count: int) -> np.ndarray:
        made = np.zeros(size, bool)
        made[rng.permutation(size)[:count]] = True
        return made

    m, k, q, n = mask(7, counts[0]), mask(6, counts[1]), mask(3, counts[2]), counts[3]
    x, y, table = rng.normal(size=7), rng.normal(size=6), rng.normal(size=(7, 3))
    return {
        "m": m, "k": k, "q": q, "n": n, "x": x, "y": y, "X": table, "i": rng.integers(0, 5, 7),
        "b": rng.random(7) < 0.5,
        "c": x + 1j * rng.normal(size=7), "f": x.astype("f4"), "w": rng.random(3), "one": rng.random(1),
        "t": np.array([2, 0, 1]), "S": rng.normal(size=(3, 3)),
    }  # fmt: skip


class Writer:
    """Random functions.

    Parameters
    ----------
    rng : Random
        Decides everything.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.calls = rng, CALLS.split()

    def text(self) -> str:
        """A function that returns a value and the arrays that it may have written."""
        lines = [f"v = {self.expression(1)}"]
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            target = self.rng.choice(("v", "v", "x", "X"))
            at = self.filled(self.rng.choice(INDICES))
            operator = self.rng.choice(("", "", "+", "*"))
            lines.append(f"{target}[{at}] {operator}= {self.expression(1)}")
        lines.append(f"return v, {self.expression(2)}, x, X, y")
        return f"def function({', '.join(arguments((0, 0, 0, 0)))}):\n" + "".join(f"    {line}\n" for line in lines)

    def expression(self, depth: int) -> str:
        """An operand, or an operation on some."""
        kind = self.rng.random() if depth else 0.0
        if kind < 0.2:
            return self.rng.choice(OPERANDS)
        if kind < 0.5:
            form = self.rng.choice(FORMS).replace("{f}", self.rng.choice(self.calls))
            return self.filled(form).replace("searchsorted_sorted(", "searchsorted(np.sort(x[m]), ")
        value = f"({self.expression(depth - 1)})"
        if kind < 0.65:
            return f"{value} {self.rng.choice(OPERATORS)} ({self.expression(depth - 1)})"
        if kind < 0.85:
            return f"{value}.{self.filled(self.rng.choice(METHODS))}"
        return f"{value}[{self.filled(self.rng.choice(INDICES))}]"

    def filled(self, form: str) -> str:
        """A form with operands in its places."""
        return PLACE.sub(lambda _: self.rng.choice(OPERANDS), form)


def defined(text: str) -> Any:
    """The function of a text."""
    namespace: dict[str, Any] = {"np": np}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of an index of a number
        code = compile(text, "<input>", "exec")
    exec(code, namespace)  # a text of this module, or one given for a replay
    return namespace["function"]


def wanted(text: str) -> list[Any]:
    """NumPy's outcomes."""
    function = defined(text)
    return [outcome(function, arguments(counts)) for counts in COUNTS]


def outcome(function: Any, given: dict[str, Any]) -> Any:
    """A call's result, or its error."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(**copy.deepcopy(given))
        except Exception as error:
            return error


def compare(got: Any, want: Any, epsilon: float) -> None:
    """Raise unless a traced function gives NumPy's results, or an error where NumPy does."""
    if isinstance(want, Exception) or isinstance(got, Exception):
        if not (isinstance(want, Exception) and isinstance(got, Exception)):
            raise DifferenceError(f"NumPy: {want!r}\ntraced: {got!r}")
        return
    (ours, form), (theirs, wanted) = flatten(got), flatten(want)
    told = f"NumPy: {want!r}\ntraced: {got!r}"
    if form != wanted:
        raise DifferenceError(told)
    for one, other in zip(ours, theirs, strict=True):
        g, w = np.asarray(one), np.asarray(other)
        if (g.dtype, g.shape) != (w.dtype, w.shape):
            raise DifferenceError(told)
        scale = np.abs(w[np.isfinite(w)]).max(initial=1.0) if w.dtype.kind in "fc" else 0.0
        if w.dtype != object and not np.allclose(g, w, rtol=0, atol=epsilon * scale, equal_nan=True):
            raise DifferenceError(told)


class Selections(Kind):
    """Functions as texts."""

    name, suffix = "selections", ".py"
    stages = ("plain", "interpreter", "cpu")
    runs = stages
    deep = 0.05
    seconds = 60.0

    def prepare(self, folders: Sequence[Path]) -> None:
        pass

    def make(self, rng: random.Random) -> bytes:
        writer, text = Writer(rng), ""
        for _ in range(TRIES):
            text = writer.text()
            if not all(isinstance(want, Exception) for want in wanted(text)):
                break
        return text.encode()

    def attempt(self, data: bytes, deep: bool, stage: Stage) -> None:
        stage("plain")
        try:
            results, function = wanted(data.decode()), defined(data.decode())
        except Exception:  # a text that was cut
            return
        if all(isinstance(want, Exception) for want in results):
            return
        stage("cpu" if deep else "interpreter")
        compiled = cyxla.jit(function, platform="cpu" if deep else "interpreter", fallback="numpy")
        epsilon = EPSILON["f"] if b"f[" in data or b'"f4"' in data else EPSILON["d"]
        for counts, want in zip(COUNTS, results, strict=True):
            compare(outcome(compiled, arguments(counts)), want, epsilon)

    def cuts(self, data: bytes) -> list[list[bytes]]:
        return [data.splitlines(keepends=True)]
