"""Calls of ufuncs on traced arrays: NumPy's type resolution, broadcasting, ``out=`` and ``where=``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from cyxla.errors import ShapeError, TraceError, UnimplementedError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.registry import full_name
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype, Kind, Signature, loop_types, output_error
from cyxla.numpy.tracing.results.result_layout import set_order
from cyxla.numpy.tracing.user_program.user_frames import is_augmented_assignment
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Emit = Callable[..., Any]
_IGNORED = ("subok",)
_WEAK = (int, float, complex)
_EMITTERS: dict[np.ufunc, Emit] = {}
_DIRECT_LOOPS: dict[
    tuple[Any, ...], Dtype | None
] = {}  # loop dtype by operand types, None if operands must be converted


def emitter_of(ufunc: np.ufunc) -> Emit:
    """Return the function that emits a ufunc's loop in HLO, for operands of equal shapes and of the loop's dtypes.

    Raises
    ------
    UnimplementedError
        The ufunc is not supported.
    """
    emitter = _EMITTERS.get(ufunc)
    if emitter is not None:
        return emitter
    from cyxla.numpy.ufuncs.table import find

    emitter = find(ufunc)
    if emitter is None:
        raise UnimplementedError(
            f"{full_name(ufunc)} cannot be traced",
            where=_trace.user_line(),
            hint="docs/numpy.md lists the functions that can",
        )
    _EMITTERS[ufunc] = emitter
    return emitter


def call(
    ufunc: np.ufunc,
    inputs: Sequence[Any],
    *,
    out: Any = None,
    where: Any = True,
    dtype: Any = None,
    signature: Any = None,
    casting: str = "same_kind",
    order: Any = "K",
    **keywords: Any,
) -> Any:
    """Call an element-wise ufunc; the keywords are NumPy's."""
    for name in keywords:
        if name not in _IGNORED:
            raise TypeError(f"{ufunc.__name__}() got an unexpected keyword argument '{name}'")
    if len(inputs) > ufunc.nin:  # outputs may be given by position
        inputs, out = inputs[: ufunc.nin], tuple(inputs[ufunc.nin :])
    requested = None if dtype is None and signature is None else requested_types(ufunc, dtype, signature)
    if casting != "same_kind":
        _check_casting(casting)
    results = compute(ufunc, inputs, requested, casting)
    if order != "K" or not all(type(x) is TracedArray and x._memory is None for x in inputs):
        for result in results:
            set_order(result, order, inputs)
    if out is None and where is True:
        return results[0] if len(results) == 1 else tuple(results)
    return to_outputs(results, out, where, casting, ufunc.__name__)


def requested_types(ufunc: np.ufunc, dtype: Any, signature: Any) -> Dtype | Signature:
    """Return the dtypes that ``dtype=`` or ``signature=`` of a call request.

    Raises
    ------
    TypeError
        Both keywords are given.
    ValueError
        The signature does not have one type for each operand and result.
    """
    if signature is None:
        return _supported_dtype(ufunc, dtype)
    if dtype is not None:
        raise TypeError("cannot specify both 'signature' and 'dtype'")
    if isinstance(signature, (str, bytes)):
        signature = _type_characters(ufunc, signature if isinstance(signature, str) else signature.decode())
    elif not isinstance(signature, tuple):
        raise TypeError("the signature object to ufunc must be a string or a tuple.")
    if len(signature) == 1:
        raise TypeError("a signature of one type is ambiguous: use dtype=")
    if len(signature) != ufunc.nargs:
        raise ValueError(f"a type-tuple must have {ufunc.nargs} items for {ufunc.__name__}, got {len(signature)}")
    return tuple(None if t is None else _supported_dtype(ufunc, t) for t in signature)


def _type_characters(ufunc: np.ufunc, signature: str) -> tuple[str, ...]:
    """Return the type characters of a signature such as ``dd->d``."""
    before, arrow, after = signature.partition("->")
    if len(signature) > 1 and (not arrow or (len(before), len(after)) != (ufunc.nin, ufunc.nout)):
        counts = f"{ufunc.nin} typecode(s) before and {ufunc.nout} after the -> sign"
        raise ValueError(f"a type-string for {ufunc.__name__}, {counts}, not {signature!r}")
    for letter in (letters := tuple(before + after)):
        try:
            np.dtype(letter)
        except TypeError as error:
            raise ValueError(f"Invalid data-type for array: {letter!r} in the type-string {signature!r}") from error
    return letters


def _supported_dtype(ufunc: np.ufunc, dtype: Any) -> Dtype:
    """Return a requested dtype.

    Raises
    ------
    UnimplementedError
        The dtype is not supported by programs.
    """
    requested: Dtype = np.dtype(dtype)
    if requested.kind == "O" or requested.name in ("float128", "complex256"):
        raise UnimplementedError(
            f"numpy.{full_name(ufunc)} of {requested} cannot be traced", where=_trace.user_line(),
            hint="use numbers of up to 64 bits, or complex128",
        )  # fmt: skip
    return requested


_CASTING_RULES = ("no", "equiv", "safe", "same_kind", "same_value", "unsafe")


def _check_casting(casting: Any) -> None:
    if type(casting) is not str:
        raise TypeError(f"casting must be str, not {type(casting).__name__}")
    if casting not in _CASTING_RULES:
        raise ValueError(f"casting must be one of {', '.join(map(repr, _CASTING_RULES))} (got '{casting}')")


def compute(
    ufunc: np.ufunc, inputs: Sequence[Any], dtype: Dtype | Signature | None = None, casting: str = "same_kind"
) -> list[TracedArray]:
    """Compute an element-wise ufunc of array-like inputs."""
    emit = emitter_of(ufunc)
    direct = _direct_operands(ufunc, inputs) if dtype is None and casting == "same_kind" else None
    if direct is not None:
        outputs = emit(*direct)
        return [TracedArray(m) for m in outputs] if isinstance(outputs, tuple) else [TracedArray(outputs)]
    if ufunc in (np.equal, np.not_equal) and any(map(equals_no_number, inputs)):
        return [_never_equal(ufunc, inputs)]
    if (
        ufunc in _COMPARISONS
        and dtype is None
        and (known_result := compare_with_unrepresentable(ufunc, inputs)) is not None
    ):
        return [known_result]
    converted: list[Any] = [x if type(x) in _WEAK else _convert_operand(x, ufunc) for x in inputs]
    kinds = [type(x) if type(x) in _WEAK else x.kind for x in converted]
    if ufunc in _COMPARISONS:
        kinds = [_comparison_kind(x, k) for x, k in zip(converted, kinds, strict=True)]
    types = loop_types(ufunc, tuple(kinds), dtype, casting)
    ops = [number(x, t) if type(x) in _WEAK else convert_checked(x, t) for x, t in zip(converted, types, strict=False)]
    outputs = emit(*(broadcast_together(ops, ufunc.__name__) if len(ops) > 1 else ops))
    return [TracedArray(m) for m in outputs] if isinstance(outputs, tuple) else [TracedArray(outputs)]


def _direct_operands(ufunc: np.ufunc, inputs: Sequence[Any]) -> list[XlaOp] | None:
    """Return the operands if they need no conversion, the most frequent case: equal shapes, and dtypes of a loop."""
    trace = _trace.require_current()
    reference: XlaOp | None = None
    operands_: list[Any] = []
    for x in inputs:
        if type(x) is TracedArray:
            op = x.op
            reference = op if reference is None else reference
            if x.weak is not None or op.builder is not trace.builder or op.shape != reference.shape:
                return None
            operands_.append(op)
        elif type(x) is float or type(x) is int:
            operands_.append(x)
        else:
            return None
    if reference is None:
        return None
    key = (ufunc, reference.shape.dtype, *map(type, operands_))
    dtype = _DIRECT_LOOPS[key] if key in _DIRECT_LOOPS else _direct_loop(key)
    if dtype is None:
        return None
    return [x if type(x) is XlaOp else trace.number(x, dtype, reference.shape.dims) for x in operands_]


def _direct_loop(key: tuple[Any, ...]) -> Dtype | None:
    """Return the dtype of a loop that takes operands unconverted; Python integers only as floats, without overflow."""
    ufunc, element, *kinds = key
    element_dtype: Dtype = element.numpy_dtype
    types = loop_types(ufunc, tuple([element_dtype if k is XlaOp else k for k in kinds]), None, "same_kind")[
        : len(kinds)
    ]
    is_direct = all(t == element_dtype for t in types) and (element_dtype.kind == "f" or int not in kinds)
    _DIRECT_LOOPS[key] = element_dtype if is_direct else None
    return _DIRECT_LOOPS[key]


def _comparison_kind(value: Any, kind: Kind) -> Kind:
    """Return the kind for comparisons: a Python integer argument compares by value with dtypes that cannot hold it."""
    return np.dtype(np.int64) if kind is int and isinstance(value, TracedArray) else kind


def operands(inputs: Sequence[Any]) -> tuple[list[TracedArray], list[Kind]]:
    """Convert inputs to traced arrays, and return them with their kinds."""
    arrays = [as_traced(x) for x in inputs]
    return arrays, [a.kind for a in arrays]


def number(value: int | float | complex, dtype: Dtype) -> XlaOp:
    """Return a Python number as a constant of a loop's dtype.

    Raises
    ------
    OverflowError
        The dtype cannot hold the integer, as in NumPy.
    """
    if type(value) is int and dtype.kind in "iub":
        _check_in_range(value, dtype if dtype.kind != "b" else np.dtype(np.int64))
    return _trace.require_current().number(value, dtype, ())


def _check_in_range(value: int, dtype: Dtype) -> None:
    info = np.iinfo(dtype)
    if not info.min <= value <= info.max:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")


def convert_checked(array: TracedArray, dtype: Dtype) -> XlaOp:
    """Convert an array to a loop's dtype.

    Raises
    ------
    OverflowError
        The dtype cannot hold the Python integer, as in NumPy.
    """
    op = value_of(array)
    if array.weak is int and dtype.kind in "iu" and op.instruction is not None:
        literal = op.instruction.attrs.get("literal")
        if literal is not None:
            _check_in_range(int(literal.array), dtype)
        elif dtype.itemsize < 8 or dtype.kind == "u":
            _fail_if_overflow(op, dtype)
    return convert(op, dtype)


def require_in_range(value: Any, dtype: Dtype) -> None:
    """Raise NumPy's error for Python integers, or those in lists, that a dtype cannot hold, also at run time."""
    if dtype.kind not in "iu" or (dtype.kind == "i" and dtype.itemsize == 8):
        return
    if type(value) in (list, tuple):
        for part in value:
            require_in_range(part, dtype)
    elif type(value) is int:
        _check_in_range(value, dtype)
    elif isinstance(value, TracedArray) and value.weak is int and not value.ndim:
        convert_checked(value, dtype)


def _fail_if_overflow(op: XlaOp, dtype: Dtype) -> None:
    """Make runs raise an error if a Python integer, an argument of the program, is out of range of a dtype."""
    trace = _trace.require_current()
    if trace.program.bounds != "raise" or op.shape.rank:
        return
    info = np.iinfo(dtype)
    out_of_range = xla.lt(op, trace.constant(info.min, np.dtype(np.int64)))
    if info.max < 2**63 - 1:
        out_of_range = xla.or_(out_of_range, xla.gt(op, trace.constant(info.max, np.dtype(np.int64))))
    trace.fail_if(out_of_range, op, lambda n: OverflowError(f"Python integer {n} out of bounds for {dtype}"))


_COMPARISONS: dict[np.ufunc, tuple[bool, bool]] = {
    np.equal: (False, False), np.not_equal: (True, True), np.less: (True, False), np.less_equal: (True, False),
    np.greater: (False, True), np.greater_equal: (False, True),
}  # fmt: skip


def compare_with_unrepresentable(ufunc: np.ufunc, inputs: Sequence[Any]) -> TracedArray | None:
    """Compare integers with a Python integer that their dtype cannot hold: the result is known while tracing."""
    if sum(type(x) is int for x in inputs) != 1:
        return None
    swapped = type(inputs[0]) is int
    python_int, other = (inputs[0], inputs[1]) if swapped else (inputs[1], inputs[0])
    array = as_traced(other)
    if array.weak or array.dtype.kind not in "iu":
        return None
    info = np.iinfo(array.dtype)
    if info.min <= python_int <= info.max:
        return None
    above = (python_int > info.max) != swapped
    return as_traced(np.broadcast_to(np.bool_(_COMPARISONS[ufunc][0 if above else 1]), array.shape))


def _convert_operand(value: Any, ufunc: np.ufunc) -> TracedArray:
    """Convert an input to a traced array.

    Raises
    ------
    UnimplementedError
        The input is a number that NumPy would treat as an object, such as a fraction.
    """
    if isinstance(value, Number) and not isinstance(value, (int, float, complex, np.generic)):
        raise UnimplementedError(
            f"numpy.{full_name(ufunc)} of a {type(value).__name__} cannot be traced", where=_trace.user_line(),
            hint="convert it first: float(value)",
        )  # fmt: skip
    return as_traced(value)


def equals_no_number(value: Any) -> bool:
    """Return True if a value equals no number: None, a set, a dict, an object without its own ``__eq__``."""
    equality: Any = type(value).__eq__
    return value is None or isinstance(value, (set, frozenset, dict)) or equality is object.__eq__


def _never_equal(ufunc: np.ufunc, inputs: Sequence[Any]) -> TracedArray:
    sizes = np.broadcast_shapes(*[as_traced(x).shape for x in inputs if not equals_no_number(x)])
    return as_traced(np.broadcast_to(np.bool_(ufunc == np.not_equal), sizes))


def broadcast_together(ops: Sequence[XlaOp], name: str) -> list[XlaOp]:
    """Broadcast operands to their common shape.

    Raises
    ------
    ShapeError
        There is no common shape.
    """
    sizes = {op.shape.dims for op in ops}
    if len(sizes) == 1:
        return list(ops)
    try:
        common = np.broadcast_shapes(*sizes)
    except ValueError:
        shapes = " ".join(str(op.shape.dims) for op in ops)
        raise ShapeError(
            f"{name}: operands could not be broadcast together with shapes {shapes}", where=_trace.user_line()
        ) from None
    return [broadcast_to(op, common) for op in ops]


def broadcast_to(op: XlaOp, sizes: Sequence[int]) -> XlaOp:
    """Broadcast an operand to a shape by NumPy's rules."""
    if op.shape.dims == tuple(sizes):
        return op
    first = len(sizes) - op.shape.rank
    return xla.broadcast_in_dim(op, tuple(sizes), tuple(range(first, len(sizes))))


def to_outputs(results: Sequence[TracedArray], out: Any, where: Any, casting: str, name: str) -> Any:
    """Return the results of a ufunc, masked by ``where=`` and written to ``out=`` if given."""
    targets = out if isinstance(out, tuple) else (out,)
    targets = (*targets, *[None] * (len(results) - len(targets)))
    outputs = [
        _to_output(r, t, where, casting, name) for r, t in zip(_stretched(results, targets), targets, strict=True)
    ]
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _stretched(results: Sequence[TracedArray], targets: Sequence[Any]) -> Sequence[TracedArray]:
    """Broadcast the results of a ufunc, of which one has a larger array as output, to its shape."""
    larger = [np.shape(t) for t in targets if t is not None and np.shape(t) != results[0].shape]
    if len(results) == 1 or not larger:
        return results
    for shape in larger:
        _check_output_shape(results[0].shape, shape)
    return [TracedArray(broadcast_to(value_of(r), larger[0])) for r in results]


def _to_output(result: TracedArray, target: Any, where: Any, casting: str, name: str) -> Any:
    if target is None:
        return result if where is True else _select_where(result, as_traced(0, result.dtype), where)
    if not isinstance(target, (np.ndarray, TracedArray)):
        raise TypeError("return arrays must be of ArrayType")
    if not np.can_cast(result.kind if isinstance(result.kind, np.dtype) else result.dtype, target.dtype, casting):  # type: ignore[arg-type]
        raise output_error(name, result.dtype, target.dtype, casting)
    if not isinstance(target, TracedArray):
        target = _copy_output(target, name)
    value = convert(value_of(result), target.dtype)
    if value.shape.dims != target.shape:
        _check_output_shape(value.shape.dims, target.shape)
        value = broadcast_to(value, target.shape)
    if where is not True:
        value = value_of(_select_where(TracedArray(value), target, where))
        if value.shape.dims != target.shape:
            raise ShapeError(
                f"{name}: where= cannot be broadcast to out= of shape {target.shape}", where=_trace.user_line()
            )
    target.overwrite(value)
    return target


def _check_output_shape(sizes: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Refuse an ``out=`` to whose shape a result cannot be broadcast."""
    try:
        common = np.broadcast_shapes(sizes, target)
    except ValueError:
        raise ShapeError(f"operands could not be broadcast together with shapes {sizes} {target}") from None
    if common != target:
        raise ShapeError(
            f"non-broadcastable output operand with shape {target} doesn't match the broadcast shape {common}"
        )


def _copy_output(target: np.ndarray[Any, Any], name: str) -> TracedArray:
    """Return a traced copy of a NumPy array given as ``out=``; allowed in ``+=`` and its like, which use the result."""
    if not is_augmented_assignment():
        raise TraceError(
            f"{name}: out= is a NumPy array, which traced values cannot be written to", where=_trace.user_line(),
            hint="use the result, or pass a traced array: np.empty_like(x)",
        )  # fmt: skip
    return as_traced(target.copy())


def to_mask(where: Any) -> TracedArray:
    """Convert a ``where=`` to bools; numbers in a list are converted, arrays of numbers are refused.

    Raises
    ------
    TypeError
        The mask is an array of numbers.
    """
    if where is None or (isinstance(where, (bool, int, float, list, tuple)) and not is_traced(where)):
        where = np.asarray(where, dtype=bool)
    mask = as_traced(where)
    if mask.dtype.kind != "b":
        raise TypeError(f"Cannot cast array data from {mask.dtype!r} to dtype('bool') according to the rule 'safe'")
    return mask


def _select_where(result: TracedArray, other: TracedArray, where: Any) -> TracedArray:
    mask, if_true, if_false = broadcast_together([value_of(to_mask(where)), value_of(result), value_of(other)], "where")
    return TracedArray(xla.select(mask, if_true, if_false))
