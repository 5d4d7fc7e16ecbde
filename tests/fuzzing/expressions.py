"""Random functions of NumPy, written line by line; each line is tried at once, so that most functions give a value."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

EPSILON = {"e": 2**-8, "f": 2**-15, "d": 2**-36, "F": 2**-15, "D": 2**-36}  # rounding errors, of the largest element
DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "f4", "f8", "i4", "i8")
SHAPES = (
    (), (0,), (1,), (3,), (5,), (16,), (2, 3), (3, 1), (1, 3), (3, 3), (0, 3), (4, 5), (2, 3, 4), (1, 1, 3),
    (2, 1, 3, 2),
)  # fmt: skip
FORMS = ("", "", "", "strided", "turned", "reversed")
MOST_ELEMENTS, MOST_LINES = 4000, 5
TOKEN = re.compile(r'"[^"]*"|(?<![\w.])[A-Za-z_]\w*|[\w.]+|.')
PLACEHOLDERS = set("xyzankpsdvi")

# x, y, z: values; a: axis; n, k: small integers; p: permutation; s: shape; d: dtype; v: Python number; i: index
ROUNDED = (
    "np.sin(x)", "np.cos(x)", "np.tan(x)", "np.exp(x)", "np.log(x)", "np.sqrt(x)", "np.tanh(x)", "np.arctan(x)",
    "np.sinh(x)", "np.cosh(x)", "np.arcsin(x)", "np.arccos(x)", "np.arcsinh(x)", "np.arccosh(x)", "np.arctanh(x)",
    "np.log1p(x)", "np.expm1(x)", "np.exp2(x)", "np.log2(x)", "np.log10(x)", "np.cbrt(x)", "np.arctan2(x,y)",
    "np.hypot(x,y)", "np.power(x,y)", "x**n", "x**v", "np.float_power(x,y)", "np.logaddexp(x,y)", "np.logaddexp2(x,y)",
    "np.deg2rad(x)", "np.rad2deg(x)", "np.sinc(x)", "np.i0(x)", "np.sum(x)", "np.sum(x,axis=a)",
    "np.sum(x,axis=a,keepdims=True)", "np.sum(x,dtype=np.float64)", "np.prod(x,axis=a)", "np.mean(x)",
    "np.mean(x,axis=a)",
    "np.std(x,axis=a)", "np.var(x,ddof=n)", "np.nansum(x,axis=a)", "np.nanmean(x)", "np.nanstd(x,axis=a)",
    "np.nanvar(x)", "np.nanprod(x)", "np.cumsum(x,axis=a)", "np.cumprod(x)", "np.dot(x,y)", "np.matmul(x,y)", "x@y",
    "np.inner(x,y)", "np.outer(x,y)", "np.tensordot(x,y,axes=n)", "np.vdot(x,y)", "np.kron(x,y)",
    'np.einsum("...i,...i->...",x,y)', 'np.einsum("ij,jk->ik",x,y)', "np.trace(x)", "np.linalg.norm(x)",
    "np.linalg.norm(x,axis=a)", "np.convolve(x,y)", 'np.correlate(x,y,"full")', "np.average(x,axis=a)",
    "np.average(x,weights=np.tanh(y)+2)", "np.median(x)", "np.median(x,axis=a)", "np.percentile(x,k)",
    "np.quantile(x,0.3,axis=a)",
    "np.cov(x)", "np.interp(x,np.arange(y.size),y.ravel())", "np.cross(x,y)", "np.gradient(x)",
    "np.trapezoid(x)", "np.polyval(x,y)",
    "np.fft.fft(np.tanh(x))", "np.fft.rfft(np.tanh(x),axis=a)", "np.fft.ifft2(np.tanh(x))",
    "np.linspace(x,y,n)", "np.unwrap(x)", "np.angle(x)",
    "np.linalg.det(np.tanh(x))", "np.abs(x)", "x*y", "x/y", "np.square(x)", "np.reciprocal(x)",
    "np.vander(x,k)", "np.poly(x)",
    "np.nancumsum(x)", "np.nanmedian(x,axis=a)", "np.corrcoef(x)", "np.histogram(x,k)", "np.logspace(x,y,k)",
)  # fmt: skip
EXACT = (
    "x+y", "x-y", "x//y", "x%y", "x&y", "x|y", "x^y", "~x", "-x", "+x", "x<<n", "x>>n", "x<y", "x<=y", "x==y", "x!=y",
    "x>y", "x>=y", "x+v", "x-v", "v-x", "x//v", "x%v", "v%x", "x&n", "x|n", "x<v", "x==v", "v//x", "np.add(x,y)",
    "np.subtract(x,y)", "np.fmod(x,y)", "np.remainder(x,y)", "np.floor_divide(x,y)", "np.divmod(x,y)",
    "np.maximum(x,y)", "np.minimum(x,y)", "np.fmax(x,y)", "np.fmin(x,y)", "np.left_shift(x,y)", "np.right_shift(x,y)",
    "np.bitwise_and(x,y)", "np.logical_and(x,y)", "np.logical_or(x,y)", "np.logical_xor(x,y)", "np.logical_not(x)",
    "np.negative(x)", "np.positive(x)", "np.sign(x)", "np.floor(x)", "np.ceil(x)", "np.trunc(x)", "np.rint(x)",
    "np.fix(x)", "np.isnan(x)", "np.isinf(x)", "np.isfinite(x)",
    "np.signbit(np.where(x==x,x,0))", "np.copysign(x,np.where(y==y,y,0))",  # the sign of a computed NaN is open
    "np.nextafter(x,y)", "np.spacing(x)", "np.ldexp(x,n)", "np.frexp(x)", "np.modf(x)", "np.heaviside(x,y)",
    "np.gcd(x,y)", "np.lcm(x,y)", "np.conjugate(x)", "np.real(x)", "np.imag(x)", "x.real", "x.imag", "np.where(x,y,z)",
    "np.where(x>y,y,z)", "np.clip(x,y,z)", "np.clip(x,v,None)", "np.nan_to_num(x)", "np.max(x)", "np.max(x,axis=a)",
    "np.min(x,axis=a,keepdims=True)", "np.argmax(x)", "np.argmax(x,axis=a)", "np.argmin(x,axis=a)", "np.any(x)",
    "np.any(x,axis=a)", "np.all(x,axis=a)", "np.count_nonzero(x)", "np.count_nonzero(x,axis=a)", "np.ptp(x)",
    "np.nanmax(x)", "np.nanmin(x,axis=a)", "np.nanargmax(x)", "np.sort(x)", "np.sort(x,axis=a)",
    'np.argsort(x,kind="stable")', 'np.argsort(x,axis=a,kind="stable")', "np.sort(np.partition(x,k))",
    "np.searchsorted(np.sort(x),y)", "np.digitize(x,np.sort(y))", "np.bincount(x)", "np.bitwise_count(x)",
    "np.maximum.reduce(x)", "np.minimum.accumulate(x)", "np.isin(x,y)", "np.array_equal(x,y)",
    "np.bitwise_or.reduce(x)", "np.maximum.outer(x,y)", "np.add.outer(x,y)", "np.lexsort((x,y))", "np.isclose(x,y)",
    "np.allclose(x,y)", "np.round(x)", "np.round(x,n)", "np.unravel_index(x,(2,5))",
    "np.ravel_multi_index((x,y),(20,20))",
    "np.packbits(x)", "np.unpackbits(x)", "np.isposinf(x)", "np.select([x>y,x<y],[x,y],z)",
    "np.piecewise(x,[x>v],[1,2])", "x.astype(d)", "x.astype(d).astype(x.dtype)", "np.result_type(x,y).itemsize",
    "x.dtype.itemsize", "x.ndim", "x.size", "x.sum(dtype=np.int64)", "np.array(x,dtype=d)",
)  # fmt: skip
MOVES = (
    "np.reshape(x,-1)", "np.reshape(x,s)", "x.reshape(s)", "np.transpose(x)", "np.transpose(x,p)", "x.T", "np.ravel(x)",
    'x.ravel("F")', "np.squeeze(x)", "np.expand_dims(x,a)", "np.flip(x)", "np.flip(x,a)", "np.roll(x,n)",
    "np.roll(x,n,axis=a)", "np.repeat(x,k)", "np.repeat(x,n,axis=a)", "np.tile(x,k)", "np.concatenate((x,y))",
    "np.concatenate((x,y),axis=a)", "np.stack((x,x),axis=a)", "np.hstack((x,y))", "np.vstack((x,y))",
    "np.dstack((x,y))", "np.broadcast_to(x,s)", "np.broadcast_arrays(x,y)", "np.pad(x,k)", 'np.pad(x,1,mode="edge")',
    'np.pad(x,1,mode="wrap")', 'np.pad(x,k,mode="reflect")', "np.take(x,n)", "np.take(x,[0,-1],axis=a)",
    'np.take(x,np.argsort(y,axis=None,kind="stable"),mode="clip")',
    "np.swapaxes(x,0,a)", "np.moveaxis(x,0,a)", "np.rot90(x)", "np.diag(x)",
    "np.diagonal(x)", "np.tril(x,n)", "np.triu(x)", "np.atleast_2d(x)", "np.split(x,k)", "np.array_split(x,k)",
    "np.append(x,y)", "np.delete(x,n)", "np.insert(x,n,v)", "np.resize(x,s)", "np.full_like(x,n)", "np.zeros_like(x)",
    "np.ones_like(x,dtype=d)", "np.array([x,y])", "np.asarray([x,v])", "np.copy(x)",
    "np.diff(x,axis=a)", "np.ediff1d(x)",
    'np.take_along_axis(x,np.argsort(x,axis=a,kind="stable"),axis=a)',
    "np.compress([True,False,True],x,axis=a)", "np.choose(k,[x,y,z])", "np.meshgrid(x,y)", "np.fliplr(x)",
    "np.atleast_3d(x)", "np.rollaxis(x,a)", "x[i]", "x[i]", "x[i]", "x[i]", "x[::-1]", "x[...,0]", "x[n]", "x[n:]",
    "x[:n]", "x[k::-2]", "x[None]", "x[...,None]", "x[n,...]", "x[[0,-1]]", "x[x>y]", "x[y]", "x[0,1]",
    "x[[0,1],[1,0]]", "x[:,None]", "x[np.array([0,1,0])]", "put(x,i,v)", "put(x,i,y)", "put(x,n,v)", "put(x,x>y,v)",
    "put(x,[0,0],y)", "augment(x,i,y)",
)  # fmt: skip
INDICES = (
    "0", "-1", "5", "1:", ":-1", "::2", "::-1", "..., 0", "0, ..., None", "None", "0, 0", ":, 1:2", "[0]", "[-1, 0], 0",
    "1:1", "(0,)", "()", "np.newaxis, 0", "True", "np.int8(-1)", "slice(None, None, -2)",
)  # fmt: skip
NUMBERS = (
    "0", "1", "-1", "2", "3", "7", "255", "300", "2**40", "-128", "0.5", "2.5", "-1.5", "1e10", "1j", "True", "np.nan",
    "np.inf", "np.int8(3)", "np.float32(1.5)", "np.uint64(5)", "-0.0", "2**64", "2**63",
)  # fmt: skip
LOSSY = {
    "x*y", "x/y", "np.square(x)", "np.reciprocal(x)", "np.abs(x)", "np.sign(x)",
}  # fmt: skip
ROUNDS = {*ROUNDED} - LOSSY
HELPERS = """
def put(x, index, value):
    x = x.copy()
    x[index] = value
    return x
def augment(x, index, value):
    x = x.copy()
    x[index] += value
    return x
"""


class Function:
    """A function that is being written.

    Parameters
    ----------
    rng : Random
        Decides everything.
    values : callable
        Makes arguments.
    """

    def __init__(self, rng: random.Random, values: Callable[..., np.ndarray]) -> None:
        self.rng = rng
        self.known: dict[str, Any] = {}
        self.rounded: dict[str, str] = {}  # the coarsest type in which something behind a value was rounded, or ""
        self.places = {"np": np}
        exec(HELPERS, self.places)
        self.made: list[str] = []
        for name in ("a", "b", "c")[: rng.randint(1, 3)]:
            shape = rng.choice(SHAPES) if not self.known or rng.random() < 0.4 else self.known["a"].shape
            dtype = rng.choice(DTYPES) if not self.known or rng.random() < 0.5 else self.known["a"].dtype.str[1:]
            text = f"values({rng.randrange(10**6)}, {dtype!r}, {shape}, {rng.choice(FORMS)!r})"
            self.made.append(text)
            self.known[name], self.rounded[name] = eval(text, {"values": values}), ""

    def text(self) -> str:
        """The whole input."""
        parameters, lines = ", ".join(self.known), []
        wanted = self.rng.randint(1, MOST_LINES)
        for _ in range(40):
            line = self._line(f"v{len(lines)}")
            if line:
                lines.append(line)
                if len(lines) == wanted or isinstance(self.known.get(f"v{len(lines) - 1}"), Exception):
                    break
        results = [f"v{k}" for k in range(len(lines))]
        rounded = tuple(self.rounded[name] for name in results)
        if any(isinstance(self.known[name], (tuple, list)) for name in results):
            rounded = (coarsest(rounded),)
        body = "\n    ".join([*lines, f"return {', '.join(results) or '0'}"])
        return f"{HELPERS}args = ({', '.join(self.made)},)\nrounded = {rounded}\ndef f({parameters}):\n    {body}\n"

    def _line(self, name: str) -> str | None:
        """Add a line unless its expression fails or is too large; now and then a failing one is kept, as the last."""
        form = self.rng.choice(self.rng.choice((ROUNDED, EXACT, EXACT, MOVES)))
        arrays = [k for k, v in self.known.items() if isinstance(v, (np.ndarray, np.generic))]
        settled = arrays if form in MOVES else [k for k in arrays if not self.rounded[k]]
        words = {key: self.rng.choice(settled) for key in "xyz"}
        text = self._filled(form, words)
        used = [words[key] for key in "xyz" if key in _letters(form)]
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.filterwarnings("error", message=".*in cast")  # any number will do as its result
                value = eval(text, self.places, dict(self.known))
        except Exception as error:
            if self.rng.random() > 0.04:
                return None
            value = error
        if sum(np.size(part) for part in (value if isinstance(value, (tuple, list)) else (value,))) > MOST_ELEMENTS:
            return None
        self.known[name] = value
        own = _types_of(value) if self._rounds(form, used, value) else []
        if "np.tanh(x)" in form or "np.tanh(y)" in form:  # which is rounded in the type of the array
            own += [self.known[u].dtype.char for u in used]
        self.rounded[name] = coarsest([*[self.rounded[u] for u in used], *own])
        return f"{name} = {text}"

    def _rounds(self, form: str, used: list[str], value: Any) -> bool:
        """Whether a line has more than one right answer."""
        whole = isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biu"
        complex_ = any(self.known[u].dtype.kind == "c" for u in used)
        return not whole and (form in ROUNDS or (complex_ and (form in LOSSY or "v" in _letters(form) or "//" in form)))

    def _filled(self, form: str, words: dict[str, str]) -> str:
        rng = self.rng
        x = self.known[words["x"]]
        rank, size = np.ndim(x), np.size(x)
        axes = list(range(rank))
        rng.shuffle(axes)
        shapes = (size,), (-1,), (1, size), (size, 1), (-1, 2), np.shape(x)[::-1], (2, *np.shape(x))
        draw = {
            "a": lambda: str(rng.choice((*range(-rank, rank), *range(-rank, rank), None, 1))),
            "n": lambda: str(rng.choice((0, 1, 2, 3, -1, -2, 4, 7))),
            "k": lambda: str(rng.choice((1, 2, 2, 3, 0))),
            "p": lambda: str(tuple(axes)),
            "s": lambda: str(rng.choice(shapes)),
            "d": lambda: f"np.dtype({rng.choice(DTYPES)!r})",
            "v": lambda: rng.choice(NUMBERS),
            "i": lambda: rng.choice(INDICES),
        }
        return "".join(words.get(t) or (draw[t]() if t in draw else t) for t in _tokens(form))


def coarsest(types: Iterable[str]) -> str:
    """The type with the largest rounding errors among the types of floats; "" if there is none."""
    return max((t for t in types if t in EPSILON), key=EPSILON.__getitem__, default="")


def _types_of(value: Any) -> list[str]:
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return [part.dtype.char for part in parts if isinstance(part, (np.ndarray, np.generic))] or ["d"]


def _tokens(form: str) -> list[str]:
    """Pieces of a form; placeholders are letters on their own."""
    return TOKEN.findall(form)


def _letters(form: str) -> set[str]:
    return {token for token in _tokens(form) if token in PLACEHOLDERS}
