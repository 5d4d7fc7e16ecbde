"""Signatures of custom calls of factorisations and solvers: LAPACK's, as JAX emits them, and XLA's own.

Those of compactions stand in `compaction_signature`.

Backends pass memory of these sizes to Fortran, which checks little of it: the shape rule of `custom-call` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.backend_config import read_options
from cyxla.xla.hlo.compaction_signature import check_compaction, is_compaction
from cyxla.xla.hlo.opcode import INEXACT, Site

_RULE: Final = "custom-call C4"
_DTYPES: Final = {"s": ElementType.F32, "d": ElementType.F64, "c": ElementType.C64, "z": ElementType.C128}
_LETTERS: Final = {dtype: letter for letter, dtype in _DTYPES.items()}
_COMPLEX: Final = {"s": "c", "d": "z"}

Sizes = dict[str, int]


@dataclass(frozen=True)
class _ArgumentSpec:
    """Type and sizes of one operand or result, without batch dimensions.

    Attributes
    ----------
    kind : str
        T is the routine's type, R its real part, C its complex type, I s32.
    dims : tuple of str
        Names of sizes; ``min`` is the lesser of m and n, ``n-1`` is 0 if n is 0.
    """

    kind: str
    dims: tuple[str, ...]


@dataclass(frozen=True)
class _Signature:
    """One signature of a routine; options choose between several."""

    operands: tuple[_ArgumentSpec, ...]
    results: tuple[_ArgumentSpec, ...]
    bounds: tuple[str, ...]
    options: Mapping[str, Any]
    only: Mapping[str, Any]
    types: frozenset[ElementType]


_SIGNATURES: Final[dict[str, list[_Signature]]] = {}


def _specs(text: str) -> tuple[_ArgumentSpec, ...]:
    """Return the specs of a text such as ``T[m,n] I[]``."""
    return tuple(_ArgumentSpec(word[0], tuple(word[2:-1].split(",")) if word[2:-1] else ()) for word in text.split())


def _lapack(
    routine: str, letters: str, operands: str, results: str, bounds: str = "", only: Any = None, **options: Any
) -> None:
    for letter in letters:
        signature = _Signature(
            _specs(operands), _specs(results), tuple(bounds.split()), options, only or {}, frozenset({_DTYPES[letter]})
        )
        _SIGNATURES.setdefault(f"lapack_{letter}{routine}_ffi", []).append(signature)


def _xla_target(
    target: str, operands: str, results: str, bounds: str = "", types: frozenset[ElementType] = INEXACT
) -> None:
    _SIGNATURES[target] = [_Signature(_specs(operands), _specs(results), tuple(bounds.split()), {}, {}, types)]


# Choices of options; the first is the default.
_LEFT: Final = {"left": (True, False), "transpose": (False, True)}
_SIDES: Final = {"compute_left": "NV", "compute_right": "NV"}
_SOLVE: Final = {"side": "LR", "uplo": "UL", "trans_x": "NTC", "diag": "NU"}
# fmt: off
#       routine  types   operands                      results                               bounds        options
_lapack("potrf", "sdcz", "T[n,n]",                     "T[n,n] I[]",                         uplo="UL")
_lapack("trsm",  "sdcz", "T[m,m] T[m,n]",              "T[m,n]",                           only={"side": "L"}, **_SOLVE)
_lapack("trsm",  "sdcz", "T[n,n] T[m,n]",              "T[m,n]",                           only={"side": "R"}, **_SOLVE)
_lapack("getrf", "sdcz", "T[m,n]",                     "T[m,n] I[min] I[]")
_lapack("geqrf", "sdcz", "T[m,n]",                     "T[m,n] T[min]")
_lapack("orgqr", "sd",   "T[m,n] T[k]",                "T[m,n]",                             "n<=m k<=n")
_lapack("ungqr", "cz",   "T[m,n] T[k]",                "T[m,n]",                             "n<=m k<=n")
_lapack("ormqr", "sd",   "T[m,l] T[k] T[m,n]",         "T[m,n]",                             "k<=m k<=l",
        only={"left": (True,)}, **_LEFT)
_lapack("ormqr", "sd",   "T[n,l] T[k] T[m,n]",         "T[m,n]",                             "k<=n k<=l",
        only={"left": (False,)}, **_LEFT)
_lapack("unmqr", "cz",   "T[m,l] T[k] T[m,n]",         "T[m,n]",                             "k<=m k<=l",
        only={"left": (True,)}, **_LEFT)
_lapack("unmqr", "cz",   "T[n,l] T[k] T[m,n]",         "T[m,n]",                             "k<=n k<=l",
        only={"left": (False,)}, **_LEFT)
_lapack("geqp3", "sdcz", "T[m,n] I[n]",                "T[m,n] I[n] T[min]")
_lapack("syevd", "sd",   "T[n,n]",                     "T[n,n] R[n] I[]",                    mode="NV", uplo="UL")
_lapack("heevd", "cz",   "T[n,n]",                     "T[n,n] R[n] I[]",                    mode="NV", uplo="UL")
for _routine in ("gesdd", "gesvd"):  # without vectors, JAX passes either form of them
    _lapack(_routine, "sdcz", "T[m,n]", "T[m,n] R[min] T[m,min] T[min,n] I[]", only={"mode": "NS"}, mode="NSA")
    _lapack(_routine, "sdcz", "T[m,n]", "T[m,n] R[min] T[m,m] T[n,n] I[]",     only={"mode": "NA"}, mode="NSA")
_lapack("geev",  "sd",   "T[n,n]",                     "T[n] T[n] C[n,n] C[n,n] I[]",     **_SIDES)
_lapack("geev",  "cz",   "T[n,n]",                     "T[n] C[n,n] C[n,n] I[]",          **_SIDES)
_lapack("gees",  "sd",   "T[n,n]",                     "T[n,n] T[n,n] T[n] T[n] I[] I[]", mode="NV", sort="N")
_lapack("gees",  "cz",   "T[n,n]",                     "T[n,n] T[n,n] T[n] I[] I[]",      mode="NV", sort="N")
_lapack("gehrd", "sdcz", "T[n,n]",                     "T[n,n] T[n-1] I[]",               low=int, high=int)
_lapack("sytrd", "sd",   "T[n,n]",                     "T[n,n] R[n] R[n-1] T[n-1] I[]",   uplo="UL")
_lapack("hetrd", "cz",   "T[n,n]",                     "T[n,n] R[n] R[n-1] T[n-1] I[]",   uplo="UL")
_lapack("gtsv",  "sdcz", "T[n] T[n] T[n] T[n,k]",      "T[n] T[n] T[n] T[n,k] I[]")

_xla_target("tridiagonal_solve_perturbed_ffi", "T[n] T[n] T[n] T[n,k]", "T[n,k]", types=frozenset(_LETTERS))
_xla_target("Qr",                                       "T[m,n]",       "T[m,n] T[min]")
_xla_target("ProductOfElementaryHouseholderReflectors", "T[m,n] T[k]",  "T[m,n]", "n<=m k<=n")
_xla_target("LuDecomposition",                          "T[m,n]",       "T[m,n] I[min] I[m]")
_xla_target("Eigh",                                     "T[n,n]",       "T[n,n] R[n]")
# fmt: on


def targets_with_signature() -> list[str]:
    """Return all targets that have a signature, sorted."""
    return sorted(_SIGNATURES)


def check_signature(site: Site) -> None:
    """Raise unless the shapes and options of a custom call fit its routine; other targets pass.

    Raises
    ------
    ShapeError, DTypeError
        An operand or result does not fit; `hint` holds the signature.
    InvalidArgumentError
        An option has an unknown value, or one beyond the sizes.
    UnimplementedError
        Sizes are dynamic.
    """
    target = site.attrs["custom_call_target"]
    if is_compaction(target):
        check_compaction(site)
        return
    forms = _SIGNATURES.get(target)
    if forms is None:
        return
    assert site.declared is not None
    results = site.declared.elements if site.declared.is_tuple else (site.declared,)
    if any(s.is_dynamic for s in (*site.operands, *results)):
        raise UnimplementedError(f"{target} with sizes that are known only at run time", rule=_RULE)
    options = _options(target, forms[0].options, site)
    able = [f for f in forms if all(options[name] in values for name, values in f.only.items())]
    calls = [_Call(target, signature, site.operands, results) for signature in able]
    if len(calls) == 1 or not any(map(_fits, calls)):
        calls[0].check()
    _check_range(target, options, calls[0].sizes)


def _options(target: str, defaults: Mapping[str, Any], site: Site) -> dict[str, Any]:
    """Return the chosen options; the first choice if an option is not written."""
    written = read_options((site.extras or {}).get("backend_config"))
    return {name: _option(target, name, choices, written.get(name)) for name, choices in defaults.items()}


def _option(target: str, name: str, choices: Any, value: Any) -> Any:
    if choices is int:
        if value is None or type(value) is int:
            return value
        raise _invalid_option(target, name, value, "it is a number")
    if value is None:
        return choices[0]
    if isinstance(choices, str):
        option = chr(value) if type(value) is int and 0 < value < 128 else value
        if isinstance(option, str) and len(option) == 1 and option in choices:
            return option
        raise _invalid_option(target, name, value, f"it is {' or '.join(f'{c} ({ord(c)})' for c in choices)}")
    if value in choices:  # 0 and 1 as well
        return bool(value)
    raise _invalid_option(target, name, value, "it is true or false")


def _invalid_option(target: str, name: str, value: Any, hint: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{target}: option {name} = {str(value)[:40]} has no meaning", rule=_RULE, hint=hint)


def _check_range(target: str, options: Mapping[str, Any], sizes: Sizes) -> None:
    """Check options `low` and `high`, counted from 1: the rows between them are not triangular yet."""
    if "low" not in options:
        return
    n = sizes["n"]
    low, high = (default if options[k] is None else options[k] for k, default in (("low", 1), ("high", n)))
    if not (1 <= low <= max(high, 1) and min(n, 1) <= high <= n):
        raise InvalidArgumentError(
            f"{target}: low = {low} and high = {high} of a matrix of {n} rows",
            rule=_RULE,
            hint=f"1 <= low <= high <= {n}" if n else "low = 1 and high = 0",
        )


def _fits(call: _Call) -> bool:
    try:
        call.check()
    except InvalidArgumentError:
        return False
    return True


class _Call:
    """A custom call matched against one signature of its routine."""

    def __init__(
        self, target: str, signature: _Signature, operands: tuple[Shape, ...], results: tuple[Shape, ...]
    ) -> None:
        self.target, self.signature, self.operands, self.results = target, signature, operands, results
        first = operands[0] if operands and operands[0].is_array else None
        stated = [first.dtype] if first is not None else []
        self.dtype = next(d for d in (*stated, *_LETTERS) if d in signature.types)
        self.batch = first.dims[: max(first.rank - len(signature.operands[0].dims), 0)] if first is not None else ()
        self.sizes: Sizes = {}

    def check(self) -> None:
        """Raise unless operands and results fit the signature."""
        self._check_count("takes", "operand", self.operands, self.signature.operands)
        self._check_count("gives", "result", self.results, self.signature.results)
        for k, (shape, part) in enumerate(zip(self.operands, self.signature.operands, strict=True)):
            self._check_argument(f"operand {k}", shape, part)
        for bound in self.signature.bounds:
            self._check_bound(*bound.split("<="))
        self.sizes |= {"min": min(self.sizes.get(s, 0) for s in "mn"), "n-1": max(self.sizes.get("n", 0) - 1, 0)}
        for k, (shape, part) in enumerate(zip(self.results, self.signature.results, strict=True)):
            self._check_argument(f"result {k}", shape, part)

    def _check_count(self, verb: str, noun: str, shapes: tuple[Shape, ...], parts: tuple[_ArgumentSpec, ...]) -> None:
        if len(shapes) != len(parts):
            self._fail(f"{verb} {len(parts)} {noun}{'s' * (len(parts) != 1)}, not {len(shapes)}")

    def _check_argument(self, label: str, shape: Shape, part: _ArgumentSpec) -> None:
        batch, expected = self.batch, self._shape_text(part, self.sizes, self.batch)
        if not shape.is_array or shape.dtype is not self._dtype(part.kind):
            self._fail(f"{label} is {shape}, but must be {expected}", DTypeError)
        fits = shape.rank == len(batch) + len(part.dims) and shape.dims[: len(batch)] == batch
        dim_pairs = zip(part.dims, shape.dims[len(batch) :], strict=False)
        if not fits or any(self.sizes.setdefault(name, size) != size for name, size in dim_pairs):
            self._fail(f"{label} is {shape}, but must be {expected}")

    def _check_bound(self, smaller: str, larger: str) -> None:
        a, b = self.sizes[smaller], self.sizes[larger]
        if a > b:
            self._fail(f"{smaller} = {a}, but {larger} = {b}, and {smaller} is at most {larger}")

    def _dtype(self, kind: str) -> ElementType:
        if kind == "I":
            return ElementType.S32
        if kind == "C" and self.dtype in _LETTERS:
            letter = _LETTERS[self.dtype]
            return _DTYPES[_COMPLEX.get(letter, letter)]
        return self.dtype.real_part if kind == "R" else self.dtype

    def _shape_text(self, part: _ArgumentSpec, sizes: Mapping[str, int | str], batch: tuple[int, ...] = ()) -> str:
        dims = (*map(str, batch), *(str(sizes.get(name, name)) for name in part.dims))
        return f"{self._dtype(part.kind)}[{','.join(dims)}]"

    def _fail(self, message: str, error: type[InvalidArgumentError] = ShapeError) -> None:
        parts = (self.signature.operands, self.signature.results)
        takes, gives = (", ".join(self._shape_text(p, {"min": "min(m,n)"}) for p in part_list) for part_list in parts)
        bounds = f" with {', '.join(self.signature.bounds)}" if self.signature.bounds else ""
        hint = f"it takes {takes} and returns {gives}{bounds}, all with the same leading batch dimensions"
        raise error(f"{self.target}: {message}", rule=_RULE, hint=hint)
