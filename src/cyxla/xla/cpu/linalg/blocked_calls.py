"""Custom calls of factorisations and solves of real numbers that have blocked algorithms."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Final

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.kernel import Step
from cyxla.xla.cpu.kernel.values import own_leaves, resolve
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.cholesky import cholesky
from cyxla.xla.cpu.linalg.lu import lu
from cyxla.xla.cpu.linalg.qr import qr, reflector_product
from cyxla.xla.cpu.linalg.triangular_solve import Form, triangular_solve
from cyxla.xla.evaluator.custom_calls import is_built_in, options_of
from cyxla.xla.hlo import Instruction

Dims = tuple[int, ...]
_AlgorithmOf = Callable[[Instruction, ElementType, list[Dims]], Algorithm]
_REAL: Final = {"s": ElementType.F32, "d": ElementType.F64}


def _has_option(ins: Instruction, option: str, character: str) -> bool:
    value = options_of(ins).get(option, 0)
    return bool(value == (character if isinstance(value, str) else ord(character)))


def _potrf(ins: Instruction, dtype: ElementType, dims: list[Dims]) -> Algorithm:
    return cholesky(dtype, dims[0][0], _has_option(ins, "uplo", "L"), with_info=True)


def _trsm(ins: Instruction, dtype: ElementType, dims: list[Dims]) -> Algorithm:
    left = not _has_option(ins, "side", "R")
    transposed = _has_option(ins, "trans_x", "T") or _has_option(ins, "trans_x", "C")
    n, columns = dims[1] if left else dims[1][::-1]
    return triangular_solve(
        dtype, n, columns, Form(left, _has_option(ins, "uplo", "L"), transposed, _has_option(ins, "diag", "U"))
    )


def _geqrf(_: Instruction, dtype: ElementType, dims: list[Dims]) -> Algorithm:
    return qr(dtype, *dims[0])


def _orgqr(_: Instruction, dtype: ElementType, dims: list[Dims]) -> Algorithm:
    return reflector_product(dtype, *dims[0], *dims[1])


def _getrf(_: Instruction, dtype: ElementType, dims: list[Dims]) -> Algorithm:
    m, n = dims[0]
    return lu(dtype, m, n, with_info=True)


def _lu_decomposition(_: Instruction, dtype: ElementType, dims: list[Dims]) -> Algorithm:
    m, n = dims[0]
    return lu(dtype, m, n, with_info=False)


_LAPACK: Final[dict[str, tuple[_AlgorithmOf, Dims]]] = {
    "potrf": (_potrf, (2,)), "trsm": (_trsm, (2, 2)), "getrf": (_getrf, (2,)), "geqrf": (_geqrf, (2,)),
    "orgqr": (_orgqr, (2, 1)),
}  # fmt: skip
#: Target -> its algorithm, and the ranks of one problem's operands.
_TARGETS: Final[dict[str, tuple[_AlgorithmOf, Dims]]] = {
    "Qr": (_geqrf, (2,)),
    "ProductOfElementaryHouseholderReflectors": (_orgqr, (2, 1)),
    "LuDecomposition": (_lu_decomposition, (2,)),
    **{f"lapack_{letter}{name}_ffi": row for name, row in _LAPACK.items() for letter in _REAL},
}


def is_blocked(ins: Instruction) -> bool:
    """Return whether a call has a blocked algorithm."""
    return _algorithm(ins) is not None


def blocked_step(ins: Instruction) -> Step | None:
    """Emit a call that has a blocked algorithm; return None for others."""
    algorithm = _algorithm(ins)
    if algorithm is None:
        return None
    rank = _TARGETS[ins.attrs["custom_call_target"]][1][0]
    dims = ins.operands[0].shape.dims
    kernel = algorithm.kernel(prod(dims[: len(dims) - rank]))
    return Step(kernel, tuple(resolve(o) for o in ins.operands), tuple(own_leaves(ins)))


def _algorithm(ins: Instruction) -> Algorithm | None:
    """Return the algorithm of a call; None unless it is of real numbers and its shapes are those of the algorithm."""
    target = ins.attrs["custom_call_target"]
    if target not in _TARGETS or not is_built_in(target):
        return None
    make, ranks = _TARGETS[target]
    shapes = [o.shape for o in ins.operands]
    if len(shapes) != len(ranks) or any(not s.is_array or s.rank < r for s, r in zip(shapes, ranks, strict=True)):
        return None
    batch = [s.dims[: s.rank - r] for s, r in zip(shapes, ranks, strict=True)]
    leaves = [leaf.static for leaf in ins.shape.leaves()]
    if any(b != batch[0] for b in batch) or any(leaf.dims[: len(batch[0])] != batch[0] for leaf in leaves):
        return None
    dims = [s.dims[s.rank - r :] for s, r in zip(shapes, ranks, strict=True)]
    if shapes[0].dtype not in _REAL.values() or not all(s.size for s in shapes):
        return None
    algorithm = make(ins, shapes[0].dtype, dims)
    operands = [(s.dtype, prod(d)) for s, d in zip(shapes, dims, strict=True)]
    results = [(leaf.dtype, prod(leaf.dims[len(batch[0]) :])) for leaf in leaves]
    return algorithm if operands == list(algorithm.reads) and results == list(algorithm.writes) else None
