"""Arithmetic operations of instructions; a function of an element, such as a tanh, counts as one."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from cyxla.xla.hlo import Computation, Instruction

# Element-wise opcodes that compute nothing.
_MOVES = frozenset({"bitcast-convert", "complex", "copy", "imag", "real"})


def operations(ins: Instruction) -> int:
    """Return the operations of an instruction; 0 for movement, and for custom calls, which are opaque.

    A loop with an unknown trip count counts as one iteration, a conditional as its longest branch.
    """
    count = _COUNTS.get(ins.opcode)
    if count is not None:
        return count(ins)
    return _size(ins) if ins.row.elementwise and ins.operands and ins.opcode not in _MOVES else 0


def _size(ins: Instruction) -> int:
    return sum(leaf.size for leaf in ins.shape.leaves() if leaf.is_array)


def _called(computation: Computation) -> int:
    return sum(operations(i) for i in computation.instructions)


def _dot(ins: Instruction) -> int:
    dims: list[int] = [ins.operands[0].shape.dims[d] for d in ins.attrs["lhs_contracting_dims"]]
    return 2 * ins.shape.size * prod(dims)


def _convolution(ins: Instruction) -> int:
    kernel = ins.operands[1].shape
    features: int = kernel.dims[ins.attrs["dim_labels"].kernel_output_feature]
    return 2 * ins.shape.size * kernel.size // max(1, features)


def _reduce(ins: Instruction) -> int:
    return ins.operands[0].shape.size * _called(ins.called[0])


def _window(ins: Instruction) -> int:
    source = ins.shape.leaves()[0].size if ins.opcode == "reduce-window" else ins.operands[1].shape.size
    sizes: list[int] = [w.size for w in ins.attrs["window"] or ()]
    return source * prod(sizes) * max(1, _called(ins.called[0]))


def _scatter(ins: Instruction) -> int:
    return ins.operands[-1].shape.size * len(ins.operands) // 2 * _called(ins.called[0])


def _sort(ins: Instruction) -> int:
    dims = ins.operands[0].shape.dims
    length = dims[ins.attrs["dimensions"][0]] if dims else 1
    return ins.operands[0].shape.size * max(1, length - 1).bit_length() * _called(ins.called[0])


def _fft(ins: Instruction) -> int:
    length: int = prod(ins.attrs["fft_length"])
    return 5 * ins.shape.size * max(1, length - 1).bit_length()


def _cholesky(ins: Instruction) -> int:
    return ins.shape.size * ins.shape.dims[-1] // 3


def _triangular_solve(ins: Instruction) -> int:
    return ins.shape.size * ins.operands[0].shape.dims[-1]


def _while(ins: Instruction) -> int:
    from cyxla.xla.passes.simplify.trip_count import known_trip_count  # most programs have no loops

    trips = known_trip_count(ins)
    return sum(map(_called, ins.called)) * (1 if trips is None else trips)


_COUNTS: dict[str, Callable[[Instruction], int]] = {
    "call": lambda ins: _called(ins.called[0]),
    "cholesky": _cholesky,
    "conditional": lambda ins: max(map(_called, ins.called)),
    "convolution": _convolution,
    "dot": _dot,
    "fft": _fft,
    "fusion": lambda ins: _called(ins.called[0]),
    "map": lambda ins: ins.shape.size * _called(ins.called[0]),
    "reduce": _reduce,
    "reduce-window": _window,
    "rng": _size,
    "rng-bit-generator": _size,
    "scatter": _scatter,
    "select-and-scatter": _window,
    "sort": _sort,
    "topk": lambda ins: ins.operands[0].shape.size,
    "triangular-solve": _triangular_solve,
    "while": _while,
}
