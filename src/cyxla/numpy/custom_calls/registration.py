"""User-defined functions, in Python or C, inside traced functions: `custom_call` and `register_c_call`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper
from inspect import Parameter, Signature, signature
from types import MappingProxyType
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.numpy.gradient.composites import composite
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, value_of
from cyxla.numpy.tracing.trace import current, user_line
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.records import dataclass
from cyxla.types import Shape, from_numpy
from cyxla.xla.evaluator import register_custom_call
from cyxla.xla.evaluator.targets import c_calls
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.typed_attributes import TYPED_FFI, read_attributes, text_of

Array = np.ndarray[Any, Any]
_C_FUNCTION: Any = type(ctypes.pythonapi.Py_IncRef).__base__  # base class of all ctypes functions


@dataclass(frozen=True)
class ArraySpec:
    """Shape and dtype of an array.

    Attributes
    ----------
    shape : tuple of int
        Dimension sizes.
    dtype : numpy.dtype
        Element type.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, shape: Any, dtype: Any = np.float64) -> None:
        sizes = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
        object.__setattr__(self, "shape", tuple([n.__index__() for n in sizes]))
        object.__setattr__(self, "dtype", np.dtype(dtype))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


def _shape_of(spec: Any) -> Shape:
    """Return the HLO shape of any object with a shape and a dtype.

    Raises
    ------
    InvalidArgumentError
        The object has no shape or dtype.
    """
    if isinstance(spec, (tuple, list)):
        return Shape.tuple([_shape_of(s) for s in spec])
    if isinstance(spec, Shape):
        return spec
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise InvalidArgumentError(
            f"result= must have a shape and a dtype, unlike {spec!r}",
            hint="use cyxla.spec(shape, dtype), or one of the arguments",
        )
    return Shape.array(from_numpy(np.dtype(spec.dtype)), tuple(spec.shape))


class CustomCall:
    """User-defined function that traced functions call: a custom call of the program.

    On arrays, outside of traced functions, it runs at once. Keywords of a call are typed attributes of it: bools,
    integers, floats, texts, one-dimensional arrays of numbers, dtypes, and dicts of these.

    Attributes
    ----------
    name : str
        Custom-call target.
    result : callable or spec
        Spec of the result, a tuple of specs, or a function from the specs of the arguments, and the attributes as
        keywords, to these.
    run : callable
        Function from arrays, the specs of the results and the attributes to the list of results.
    vjp : callable, optional
        Derivative: function from inputs, results and cotangents of the results, each a tuple of arrays, and the
        attributes as keywords, to the cotangents of the inputs, None for zero. It is traced.
    """

    def __init__(
        self, name: str, result: Any, run: Callable[[Sequence[Array], Shape, Mapping[str, Any]], list[Array]],
        vjp: Any = None, *, has_side_effect: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.result, self._run, self._vjp = name, result, run, vjp
        self.has_side_effect = has_side_effect

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @api_boundary
    def __call__(self, *args: Any, **attributes: Any) -> Any:
        """Call the function with these attributes, or record a custom call in the current trace."""
        config = self._config(attributes)
        attributes = read_attributes(config) if config else {}
        if current() is None:
            arrays = [np.ascontiguousarray(a) if np.ndim(a) else np.asarray(a) for a in args]
            shape = self.shape_for(arrays, attributes)
            results = self._run(arrays, shape, attributes)
            return _to_scalars(_unflatten(shape, iter(results)))
        ops = [value_of(as_strong(a)) for a in args]
        shape = self.shape_for([ArraySpec(op.shape.dims, op.shape.dtype.numpy_dtype) for op in ops], attributes)
        outputs = composite(
            ops, lambda *inputs: self._emit(inputs, shape, config), partial(self._backward, attributes=attributes)
        )
        return _unflatten(shape, iter([TracedArray(m) for m in outputs]))

    def _config(self, attributes: Mapping[str, Any]) -> str:
        """Return attributes as text; an empty one if there are none."""
        if "out" in attributes:
            raise InvalidArgumentError(f"{self.name}: no attribute can be called out, which holds the results")
        try:
            return text_of(attributes) if attributes else ""
        except InvalidArgumentError as error:
            error.message, error.where = f"{self.name}: {error.message}", error.where or user_line()
            raise

    def shape_for(self, arguments: Sequence[Any], attributes: Mapping[str, Any] = MappingProxyType({})) -> Shape:
        """Return the shape of the result for a call's arguments and attributes."""
        specs = [ArraySpec(a.shape, a.dtype) for a in arguments]
        return _shape_of(self.result(*specs, **attributes) if callable(self.result) else self.result)

    def _emit(self, inputs: Sequence[XlaOp], shape: Shape, config: str) -> list[XlaOp]:
        builder = _current_builder(inputs)
        op = xla.custom_call(
            builder, self.name, list(inputs), shape, config, has_side_effect=self.has_side_effect,
            api_version=TYPED_FFI if config else "API_VERSION_ORIGINAL",
        )  # fmt: skip
        return _flatten_tuple(op)

    def _backward(
        self, inputs: Sequence[XlaOp], results: Sequence[XlaOp], cotangents: Sequence[XlaOp | None],
        attributes: Mapping[str, Any],
    ) -> list[XlaOp | None]:  # fmt: skip
        if self._vjp is None:
            raise UnimplementedError(
                f"{self.name} has no derivative",
                hint="define one by vjp=, or exclude the call by cyxla.stop_gradient(x)",
            )
        cotangent_arrays: list[Any] = [
            np.zeros_like(TracedArray(r)) if c is None else TracedArray(c)
            for c, r in zip(cotangents, results, strict=True)
        ]
        returned = self._vjp(
            tuple(map(TracedArray, inputs)), tuple(map(TracedArray, results)), tuple(cotangent_arrays), **attributes
        )  # fmt: skip
        gradients = returned if isinstance(returned, (tuple, list)) else (returned,)
        if len(gradients) != len(inputs):
            raise InvalidArgumentError(
                f"vjp of {self.name} returned {len(gradients)} cotangents for {len(inputs)} arguments"
            )
        return [None if p is None else _cotangent(p, x, self.name) for p, x in zip(gradients, inputs, strict=True)]


def _cotangent(value: Any, primal: XlaOp, name: str) -> XlaOp:
    op = value_of(as_strong(value))
    if op.shape != primal.shape.static:
        raise ShapeError(f"vjp of {name} returned a cotangent {op.shape} for an argument {primal.shape}")
    return op


def _current_builder(inputs: Sequence[XlaOp]) -> Any:
    trace = current()
    assert trace is not None or inputs
    return trace.builder if trace is not None else inputs[0].builder


def _flatten_tuple(op: XlaOp) -> list[XlaOp]:
    if not op.shape.is_tuple:
        return [op]
    return [part for k in range(len(op.shape.elements)) for part in _flatten_tuple(xla.get_tuple_element(op, k))]


def _unflatten(shape: Shape, values: Any) -> Any:
    return tuple([_unflatten(e, values) for e in shape.elements]) if shape.is_tuple else next(values)


def _to_scalars(value: Any) -> Any:
    """Convert a result of rank 0 to a NumPy scalar."""
    return tuple(map(_to_scalars, value)) if isinstance(value, tuple) else value[()] if value.ndim == 0 else value


# -- in Python


@api_boundary
def custom_call(
    name: str, *, result: Any, vjp: Any = None, has_side_effect: bool = False, replace: bool = False
) -> Callable[[Callable[..., Any]], CustomCall]:
    """Register a Python function that traced functions call at run time.

    Parameters
    ----------
    name : str
        Custom-call target, which programs in text form may name, too.
    result : callable or spec
        Spec of the result, or a function from the specs of the arguments, which have a shape and a dtype, to such a
        spec, or to a tuple of specs for several results.
    vjp : callable, optional
        Derivative: ``vjp(inputs, results, cotangents)``, each a tuple of traced arrays, returns a tuple of cotangents
        of the inputs, None for zero.
    has_side_effect : bool
        Whether the call must run even if its result is not used.
    replace : bool
        Whether to replace a target of that name.

    Returns
    -------
    callable
        Decorator for a function of read-only arrays. The function returns the results, or fills those given as a
        keyword argument ``out``: an array, or a tuple of arrays for several. Keywords of a call are typed attributes,
        which the function, `result` and `vjp` get as keywords: bools, numbers, texts, arrays of numbers, dtypes, dicts.

    Raises
    ------
    AlreadyExistsError
        The target exists, and `replace` is false.

    Examples
    --------
    >>> @custom_call("doc.ramp", result=lambda x: x)
    ... def ramp(x, *, out):
    ...     np.cumsum(x, out=out)
    >>> ramp(np.ones(3))
    array([1., 2., 3.])
    """

    @api_boundary
    def decorate(function: Callable[..., Any]) -> CustomCall:
        takes_out = _takes_out(function)

        def run(arrays: Sequence[Array], shape: Shape, attributes: Mapping[str, Any]) -> list[Array]:
            return _run_python(partial(function, **attributes), name, arrays, shape, takes_out)

        def evaluate(evaluation: Any, ins: Any, *operands: Any) -> Any:
            return _unflatten(ins.shape, iter(run(operands, ins.shape, c_calls.attributes_of(ins))))

        register_custom_call(name, evaluate, replace=replace)
        call = CustomCall(name, result, run, vjp, has_side_effect=has_side_effect)
        update_wrapper(call, function)
        if takes_out:
            call.__signature__ = _without_out(function)  # type: ignore[attr-defined]
        return call

    return decorate


def _takes_out(function: Callable[..., Any]) -> bool:
    parameters = signature(function).parameters
    return "out" in parameters and parameters["out"].kind is not Parameter.POSITIONAL_ONLY


def _without_out(function: Callable[..., Any]) -> Signature:
    """Return the signature of calls, which do not give the arrays of the results."""
    whole = signature(function)
    return whole.replace(parameters=[p for name, p in whole.parameters.items() if name != "out"])


def _run_python(
    function: Callable[..., Any], name: str, arrays: Sequence[Array], shape: Shape, takes_out: bool
) -> list[Array]:
    leaves = list(shape.leaves())
    buffers = [np.empty(s.static.dims, s.static.dtype.numpy_dtype) for s in leaves] if takes_out else []
    value = function(*map(_read_only, arrays), **({"out": _unflatten(shape, iter(buffers))} if takes_out else {}))
    if value is None and takes_out:
        return buffers
    results = list(_flatten(value)) if shape.is_tuple else [value]
    if len(results) != len(leaves):
        raise ShapeError(f"{name} returned {len(results)} arrays, not {shape}")
    return [_check_result(p, s, name) for p, s in zip(results, leaves, strict=True)]


def _read_only(array: Array) -> Array:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _flatten(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _flatten(part)
    else:
        yield value


def _check_result(value: Any, shape: Shape, name: str) -> Array:
    array = np.asarray(value)
    if array.shape != shape.dims:
        raise ShapeError(f"{name} returned an array of shape {array.shape}, but result= declares {shape}")
    return array.astype(shape.dtype.numpy_dtype, casting="same_kind", copy=False)


# -- in C


@api_boundary
def register_c_call(
    name: str, function: Any, *, result: Any, abi: int = 1, vjp: Any = None, has_side_effect: bool = False,
    replace: bool = False,
) -> CustomCall:  # fmt: skip
    """Register a C function that traced functions call at run time, without Python.

    Parameters
    ----------
    name : str
        Custom-call target, which programs in text form may name, too.
    function : int, PyCapsule, or function of ctypes
        Address of ``void f(void **out, const void **in, const cyxla_call_info *info)``; see cyxla/call.h in
        `cyxla.get_include`, and cyxla/call_attributes.h there for the keywords of a call, its typed attributes. The
        function must outlive programs that call it; it is called without the GIL.
    result, vjp, has_side_effect, replace
        Options as for `custom_call`.
    abi : int
        Version of the calling convention; the only one is 1.

    Returns
    -------
    OwnCall
        Callable on arrays and in traced functions.

    Raises
    ------
    AlreadyExistsError
        The target exists, and `replace` is false.
    InvalidArgumentError
        The version is not 1, or the address is null.
    """
    if abi != c_calls.VERSION:
        raise InvalidArgumentError(f"register_c_call: abi={abi} is not supported; this is version {c_calls.VERSION}")
    address = _address(function)
    c_calls.register(name, address, function, replace=replace)
    call = c_calls.SIGNATURE(address)

    def run(arrays: Sequence[Array], shape: Shape, attributes: Mapping[str, Any]) -> list[Array]:
        opaque = text_of(attributes).encode() if attributes else b""
        return c_calls.call(
            call, name, [np.ascontiguousarray(a) for a in arrays], list(shape.leaves()), opaque, attributes
        )  # fmt: skip

    return CustomCall(name, result, run, vjp, has_side_effect=has_side_effect)


def _address(function: Any) -> int:
    if type(function).__name__ == "PyCapsule":
        return _capsule_address(function)
    if isinstance(function, (_C_FUNCTION, ctypes.c_void_p)):
        function = ctypes.cast(function, ctypes.c_void_p).value
    if not isinstance(function, int) or isinstance(function, bool) or function <= 0:
        raise InvalidArgumentError(
            f"register_c_call: {function!r} is not a C function",
            hint="pass an address, a capsule or a function of ctypes",
        )
    return function


def _capsule_address(capsule: Any) -> int:
    api = ctypes.pythonapi
    name_of, pointer_of = api.PyCapsule_GetName, api.PyCapsule_GetPointer
    name_of.argtypes, name_of.restype = (ctypes.py_object,), ctypes.c_char_p
    pointer_of.argtypes, pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    return int(pointer_of(capsule, name_of(capsule)))
