"""LAPACK custom calls that JAX emits for the CPU, run by SciPy's LAPACK.

A target is ``lapack_<s|d|c|z><routine>_ffi``. Each routine below solves one problem; `_batched` applies it over the
leading dimensions. Options are LAPACK's character codes, so ``uplo = 76`` is "L".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.records import dataclass
from cyxla.xla.evaluator.custom_calls import options_of, register_custom_call
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.values import Array, Value, array_of, numpy_dtype
from cyxla.xla.hlo.instruction import Instruction


@dataclass(frozen=True)
class _Call:
    """Options and element type of one call.

    Attributes
    ----------
    letter : str
        Letter of the element type: s, d, c or z.
    options : dict
        Options of the backend configuration.
    """

    letter: str
    options: dict[str, Any]

    def routine(self, name: str) -> Callable[..., Any]:
        """Return SciPy's wrapper of a LAPACK or BLAS routine, named without its letter."""
        from scipy.linalg import blas, lapack

        routine_name = self.letter + name
        return getattr(lapack, routine_name, None) or getattr(blas, routine_name)  # type: ignore[no-any-return]

    @property
    def is_complex(self) -> bool:
        """True if elements are complex."""
        return self.letter in "cz"

    def is_set(self, option: str, character: str) -> bool:
        """Return True if an option has this character."""
        value = self.options.get(option, 0)
        return bool(value == (character if isinstance(value, str) else ord(character)))


Results = tuple[Any, ...]
Routine = Callable[..., Results]  # (call, *operands of one problem) -> results of one problem


def _batched(routine: Routine, letter: str, ranks: tuple[int, ...]) -> Callable[..., Value]:
    def evaluate(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
        arrays = [array_of(o) for o in operands]
        leaves = ins.shape.leaves()
        results = [np.zeros(leaf.dims, numpy_dtype(leaf)) for leaf in leaves]
        call = _Call(letter, options_of(ins))
        batch = arrays[0].shape[: arrays[0].ndim - ranks[0]]
        changed = next(a for a, rank in zip(arrays[::-1], ranks[::-1], strict=True) if rank == 2)
        if changed.size:
            for at in np.ndindex(batch):
                for result, part in zip(results, routine(call, *(a[at] for a in arrays)), strict=True):
                    if part is not None:
                        result[at] = part
        return tuple(results) if ins.shape.is_tuple else results[0]

    return evaluate


def lapack(name: str, *ranks: int, letters: str = "sdcz") -> Callable[[Routine], Routine]:
    """Register a routine whose operands have these ranks, for each of the letters."""

    def register(routine: Routine) -> Routine:
        for letter in letters:
            register_custom_call(f"lapack_{letter}{name}_ffi", _batched(routine, letter, ranks))
        return routine

    return register


@lapack("potrf", 2)
def _potrf(call: _Call, a: Array) -> Results:
    """Return (factor in its triangle, the other triangle unchanged; info)."""
    factor, info = call.routine("potrf")(a, lower=int(call.is_set("uplo", "L")), clean=0)
    return factor, info


@lapack("trsm", 2, 2)
def _trsm(call: _Call, a: Array, b: Array) -> Results:
    """Return (solution,)."""
    transposed = 2 if call.is_set("trans_x", "C") else int(call.is_set("trans_x", "T"))
    solve = call.routine("trsm")
    return (
        solve(
            1.0, a, b, side=int(call.is_set("side", "R")), lower=int(call.is_set("uplo", "L")), trans_a=transposed,
            diag=int(call.is_set("diag", "U")),
        ),
    )  # fmt: skip


@lapack("getrf", 2)
def _getrf(call: _Call, a: Array) -> Results:
    """Return (L and U, pivots counted from 1, info)."""
    lu, pivots, info = call.routine("getrf")(a)
    return lu, pivots + 1, info


@lapack("geqrf", 2)
def _geqrf(call: _Call, a: Array) -> Results:
    """Return (R and reflectors, their factors)."""
    return tuple(call.routine("geqrf")(a)[:2])


@lapack("orgqr", 2, 1, letters="sd")
@lapack("ungqr", 2, 1, letters="cz")
def _orgqr(call: _Call, a: Array, tau: Array) -> Results:
    """Return (Q,)."""
    return (call.routine("ungqr" if call.is_complex else "orgqr")(a, tau)[0],)


@lapack("ormqr", 2, 1, 2, letters="sd")
@lapack("unmqr", 2, 1, 2, letters="cz")
def _ormqr(call: _Call, a: Array, tau: Array, c: Array) -> Results:
    """Return (op(Q) c or c op(Q),)."""
    if not tau.size:
        return (c,)
    is_left = bool(call.options.get("left", True))
    return (
        _multiply_q(call, a[:, : tau.size], tau, c, left=is_left, adjoint=bool(call.options.get("transpose", False))),
    )


def _multiply_q(call: _Call, a: Array, tau: Array, c: Array, *, left: bool, adjoint: bool) -> Array:
    name, op = ("unmqr", "C") if call.is_complex else ("ormqr", "T")
    work = 64 * max(c.shape[1] if left else c.shape[0], 1)
    product: Array = call.routine(name)("L" if left else "R", op if adjoint else "N", a, tau, c, work)[0]
    return product


@lapack("geqp3", 2, 1)
def _geqp3(call: _Call, a: Array, fixed: Array) -> Results:
    """Return (R and reflectors, column order from 1, factors); columns marked in `fixed` are moved to the front."""
    front_order = _move_fixed_first(fixed)
    num_fixed = int(np.count_nonzero(fixed))
    if num_fixed == 0:
        packed, order, tau = call.routine("geqp3")(a)[:3]
        return packed, order, tau
    order = front_order + 1
    packed, tau = np.asfortranarray(a[:, order - 1]), np.zeros(min(a.shape), a.dtype)
    front = min(num_fixed, a.shape[0])
    packed[:, :front], tau[:front] = call.routine("geqrf")(packed[:, :front])[:2]
    if front < a.shape[1]:
        packed[:, front:] = _multiply_q(
            call, packed[:, :front], tau[:front], packed[:, front:], left=True, adjoint=True
        )
    if front < min(a.shape):
        rest, late, tau[front:] = call.routine("geqp3")(packed[front:, front:])[:3]
        packed[:front, front:] = packed[:front, front:][:, late - 1]
        packed[front:, front:], order[front:] = rest, order[front:][late - 1]
    return packed, order, tau


def _move_fixed_first(fixed: Array) -> Array:
    """Move marked columns to the front, each swapped with the first unmarked one, as in LAPACK."""
    order: Array = np.arange(fixed.size)
    for position, column in enumerate(np.flatnonzero(fixed).tolist()):
        order[[position, column]] = order[[column, position]]
    return order


def _is_finite(a: Array) -> bool:
    return bool(np.isfinite(a).all())


_BAD_ARGUMENT = -4  # info for a matrix with infinities or nan, for which LAPACK may not return


@lapack("syevd", 2, letters="sd")
@lapack("heevd", 2, letters="cz")
def _syevd(call: _Call, a: Array) -> Results:
    """Return (eigenvectors, eigenvalues, info)."""
    if not _is_finite(a):
        return np.nan, np.nan, _BAD_ARGUMENT
    name = "heevd" if call.is_complex else "syevd"
    values, vectors, info = call.routine(name)(a, int(call.is_set("mode", "V")), int(call.is_set("uplo", "L")))
    return vectors, values, info


@lapack("geev", 2)
def _geev(call: _Call, a: Array) -> Results:
    """Return (eigenvalues: real and imaginary parts or complex; left and right eigenvectors, complex; info)."""
    left, right = (call.is_set(side, "V") for side in ("compute_left", "compute_right"))
    if not _is_finite(a):
        return (*[np.nan] * (3 if call.is_complex else 4), _BAD_ARGUMENT)
    *values, vl, vr, info = call.routine("geev")(a, compute_vl=int(left), compute_vr=int(right))
    if not call.is_complex:
        vl, vr = (
            _unpack_eigenvectors(v, values[1]) if is_requested else None
            for v, is_requested in ((vl, left), (vr, right))
        )
    return *values, vl if left else None, vr if right else None, info


def _unpack_eigenvectors(packed: Array, imaginary: Array) -> Array:
    """Return complex eigenvectors from LAPACK's packed form: two columns for a conjugate pair, real and imaginary."""
    vectors = packed.astype(np.complex128)
    first = np.flatnonzero(imaginary > 0)
    vectors[:, first] = packed[:, first] + 1j * packed[:, first + 1]
    vectors[:, first + 1] = np.conj(vectors[:, first])
    return vectors


def _svd(call: _Call, a: Array, name: str) -> Results:
    """Return (scratch, singular values, u, vt, info)."""
    if not _is_finite(a):
        return np.nan, np.nan, np.nan, np.nan, _BAD_ARGUMENT
    vectors, is_full = not call.is_set("mode", "N"), call.is_set("mode", "A")
    u, s, vt, info = call.routine(name)(a, compute_uv=int(vectors), full_matrices=int(is_full))
    return a, s, u if vectors else None, vt if vectors else None, info


@lapack("gesdd", 2)
def _gesdd(call: _Call, a: Array) -> Results:
    return _svd(call, a, "gesdd")


@lapack("gesvd", 2)
def _gesvd(call: _Call, a: Array) -> Results:
    return _svd(call, a, "gesvd")


@lapack("gees", 2)
def _gees(call: _Call, a: Array) -> Results:
    """Return (T, Schur vectors, eigenvalues: real and imaginary parts or complex; 0; info), unsorted."""
    if not _is_finite(a):
        return (*[np.nan] * (3 if call.is_complex else 4), 0, _BAD_ARGUMENT)
    vectors = call.is_set("mode", "V")
    t, num_selected, *values, z, _, info = call.routine("gees")(lambda *_: 0, a, compute_v=int(vectors))
    return t, z if vectors else None, *values, num_selected, info


@lapack("gehrd", 2)
def _gehrd(call: _Call, a: Array) -> Results:
    """Return (H and reflectors, their factors, info)."""
    low, high = int(call.options.get("low") or 1) - 1, int(call.options.get("high") or a.shape[0]) - 1
    packed, tau, info = call.routine("gehrd")(a, lo=low, hi=high)
    return packed, tau[: a.shape[0] - 1], info


@lapack("sytrd", 2, letters="sd")
@lapack("hetrd", 2, letters="cz")
def _sytrd(call: _Call, a: Array) -> Results:
    """Return (reflectors, diagonal, off-diagonal, factors, info)."""
    name = "hetrd" if call.is_complex else "sytrd"
    return tuple(call.routine(name)(a, lower=int(call.is_set("uplo", "L"))))


@lapack("gtsv", 1, 1, 1, 2)
def _gtsv(call: _Call, lower: Array, diagonal: Array, upper: Array, b: Array) -> Results:
    """Return (diagonals of U, solution, info); the first element of `lower` and the last of `upper` are not used."""
    if diagonal.size == 1:
        singular = bool(diagonal[0] == 0)
        return lower, diagonal, upper, b if singular else b / diagonal, int(singular)
    second, main, first, x, info = call.routine("gtsv")(lower[1:], diagonal, upper[:-1], b)
    return np.append(lower[:1], second), main, np.append(first, upper[-1:]), x, info


@register_custom_call("tridiagonal_solve_perturbed_ffi")
def tridiagonal_solve_perturbed(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Solve a tridiagonal system, perturbing small pivots so that a singular one has a finite solution."""
    lower, diagonal, upper, b = (array_of(o) for o in operands)
    x = np.zeros(ins.shape.dims, numpy_dtype(ins.shape))
    if x.size:
        for at in np.ndindex(b.shape[:-2]):
            x[at] = _solve_perturbed(lower[at], diagonal[at], upper[at], b[at])
    return x


def _solve_perturbed(lower: Array, diagonal: Array, upper: Array, b: Array) -> Array:
    """Solve by LU with partial pivoting; ``eps * max |U|`` is added to a pivot that is too small to divide by."""
    n = diagonal.size
    d, u, x, second = diagonal.copy(), np.append(upper[:-1], 0 * upper[-1:]), b.copy(), np.zeros_like(upper)
    for i in range(n - 1):
        low, step, after = lower[i + 1], d[i + 1], u[i + 1]
        if abs(low) > abs(d[i]):  # swap rows i and i + 1
            d[i], low, u[i], step, second[i], after = low, d[i], step, u[i], after, 0 * after
            x[[i, i + 1]] = x[[i + 1, i]]
        factor = low / d[i] if d[i] != 0 else 0 * low
        d[i + 1], x[i + 1] = step - factor * u[i], x[i + 1] - factor * x[i]
        u[i + 1] = after - factor * second[i]
    limits = np.finfo(b.dtype)
    least = max(float(limits.eps) * max(float(np.abs(v).max()) for v in (d, u, second)), float(limits.tiny))
    for i in reversed(range(n)):
        value = x[i]
        if i + 1 < n:
            value = value - u[i] * x[i + 1]
        if i + 2 < n:
            value = value - second[i] * x[i + 2]
        x[i] = value / _away_from_zero(d[i], float(np.abs(value).max(initial=0.0)) * float(limits.tiny), least)
    return x


def _away_from_zero(pivot: Any, floor: float, amount: float) -> Any:
    """Perturb a pivot by increasing amounts until the quotient is finite."""
    step = -amount if np.signbit(pivot.real) else amount
    while abs(pivot) <= floor < np.inf:  # with infinities, no pivot is large enough
        pivot, step = pivot + step, 2 * step
    return pivot
