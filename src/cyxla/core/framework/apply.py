"""One call that applies an op: as a node of the current graph, or at once on arrays.

`apply_op` finds out the attributes that the inputs tell (types, lengths), turns Python numbers into constants of the
type that the other inputs ask for, checks everything against the declaration, and hands the call to a `Sink`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from cyxla.core.framework.attr_value import AttrValue, NameAttrList, TensorValue
from cyxla.core.framework.declarations.op_def import check_attr_value
from cyxla.core.framework.loaders import loader
from cyxla.core.framework.node_def import arg_types
from cyxla.core.framework.repeated_calls import RepeatedCall, inputs_by_name, is_repeatable, key_of
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    from cyxla.core.framework.declarations.op_def import ArgDef, OpDef
    from cyxla.core.framework.declarations.op_def_builder import OpRegistrationData

Array = np.ndarray[Any, Any]


@runtime_checkable
class Sink(Protocol):
    """Receiver of applied ops: a graph under construction, or the eager runtime."""

    def look_up(self, op_name: str) -> OpRegistrationData:
        """Declaration of an op or a function."""

    def constant(self, value: Any, dtype: DataType | None = None, name: str | None = None) -> Any:
        """An input that holds an array."""

    def create_op(
        self, registration: OpRegistrationData, inputs: list[Any], attrs: dict[str, AttrValue], name: str | None
    ) -> tuple[Any, Sequence[Any]]:
        """Apply an op whose attributes are complete; gives the node (or None) and its flat outputs."""


class EagerSink(Sink, Protocol):
    """The runtime that computes at once."""

    def repeated_call(self, key: Hashable) -> RepeatedCall | None:
        """The call that was remembered under a key."""

    def remember(
        self, key: Hashable, registration: OpRegistrationData, attrs: dict[str, AttrValue], names: tuple[str, ...]
    ) -> None:
        """Remember a call: its attributes, and the names of inputs that it gives by name."""


_current: ContextVar[Sink | None] = ContextVar("cyxla_sink", default=None)
_eager: list[EagerSink] = []


def register_eager_sink(sink: EagerSink) -> None:
    """Name the runtime that `apply_op` uses while no graph is current; the last one registered serves."""
    _eager[:] = [sink]


def eager_sink() -> EagerSink:
    """The runtime that computes at once."""
    if not _eager:
        loader("eager_runtime")()
    if not _eager:
        raise FailedPreconditionError("no graph is current and no eager runtime is registered")
    return _eager[0]


def current_sink() -> Sink:
    """The graph of the innermost ``with graph.as_default():``, or the eager runtime."""
    sink = _current.get()  # compare with None: an empty graph is false
    return eager_sink() if sink is None else sink


@contextmanager
def use_sink(sink: Sink | None) -> Iterator[None]:
    """Send ops applied in the body to `sink`; None selects the eager runtime."""
    token = _current.set(sink)
    try:
        yield
    finally:
        _current.reset(token)


def data_type_of(value: Any) -> DataType | None:
    """Type of a graph's tensor, an array or a NumPy scalar; None for a Python value, which fits several."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or isinstance(dtype, DataType):
        return dtype
    if isinstance(value, np.ndarray) and value.dtype.hasobject and value.size:
        first = value.flat[0]
        if not isinstance(first, (bytes, str)):
            return DataType.DT_RESOURCE if hasattr(first, "type_name") else DataType.DT_VARIANT
    return as_data_type(dtype)


class Bound(NamedTuple):
    """Arguments of `apply_op`, and the names by which a call may give the inputs, if they are not the declared ones."""

    op_name: str
    inputs: Sequence[Any]
    arguments: Mapping[str, Any]
    input_names: Sequence[str]


Bind = Callable[[Sequence[Any], Mapping[str, Any]], Bound]


def apply_op(op_name: str, *inputs: Any, name: str | None = None, **arguments: Any) -> Any:
    """Apply an op.

    Parameters
    ----------
    op_name : str
        A declared op, or a function of the current graph's library.
    *inputs
        Values of the op's inputs in order: tensors of the graph, arrays, or Python numbers and lists. An input that
        is a list takes a list.
    name : str, optional
        Name of the node; made unique. The op's name by default.
    **arguments
        More inputs by name, and attributes; types and lengths that the inputs tell may be left out.

    Returns
    -------
    Tensor, ndarray, list or tuple
        The only output; a tuple of several; an output that is a list is a list. The node where there is none.

    Raises
    ------
    NotFoundError
        No such op.
    InvalidArgumentError
        The inputs or attributes break the declaration.
    """
    return apply_repeatable(op_name, inputs, arguments, name)


def apply_repeatable(
    function: Hashable, args: Sequence[Any], kwargs: Mapping[str, Any], name: str | None, bind: Bind | None = None
) -> Any:
    """Apply an op as `apply_op` does; the eager runtime finds calls again whose arrays have the types of earlier ones.

    Parameters
    ----------
    function : hashable
        Name of the op, or the function of an op that `bind` knows.
    args, kwargs
        Arguments of the call: inputs by position or name, and attributes.
    name : str, optional
        Name of the node.
    bind : callable, optional
        Function that makes the arguments of `apply_op` of those of `function`; they are the same by default.
    """
    key = key_of(function, args, kwargs) if name is None else None
    if key is not None and _eager and _current.get() is None:
        repeated = _eager[0].repeated_call(key)
        if repeated is not None:
            return repeated.run([*args, *[kwargs[n] for n in repeated.names]])
    bound = Bound(str(function), args, kwargs, ()) if bind is None else bind(args, kwargs)
    call = complete(bound.op_name, bound.inputs, bound.arguments)
    outputs = apply_complete(*call, name)
    if key is not None:
        _remember(key, call, args, kwargs, bound.input_names or [arg.name for arg in call[1].op_def.input_arg])
    return outputs


def complete(
    op_name: str, inputs: Sequence[Any], arguments: Mapping[str, Any]
) -> tuple[Sink, OpRegistrationData, list[Any], dict[str, AttrValue]]:
    """Return the sink of a call, the declaration of its op, its flat inputs, and all attributes; see `apply_op`."""
    sink = _sink_of(inputs, arguments)
    registration = sink.look_up(op_name)
    call = _Call(registration.op_def, inputs, arguments)
    call.infer_attrs()
    return sink, registration, call.convert_inputs(sink), call.attrs


def apply_complete(
    sink: Sink, registration: OpRegistrationData, flat: list[Any], attrs: dict[str, AttrValue], name: str | None
) -> Any:
    """Apply an op to flat inputs with complete attributes, and return its outputs as `apply_op` does."""
    node, outputs = sink.create_op(registration, flat, attrs, name)
    return group_outputs(registration.op_def.output_arg, attrs, node, outputs)


def _remember(
    key: Hashable,
    call: tuple[Sink, OpRegistrationData, list[Any], dict[str, AttrValue]],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    input_names: Sequence[str],
) -> None:
    """Let the eager runtime find a call again, if it was the one that ran it, with its arguments as they are."""
    sink, registration, flat, attrs = call
    names = inputs_by_name(input_names, args, kwargs)
    if names is None or not _eager or sink is not _eager[0] or registration.op_def.is_stateful:
        return
    if is_repeatable([*args, *[kwargs[n] for n in names]], flat):
        _eager[0].remember(key, registration, attrs, names)


def _sink_of(inputs: Sequence[Any], arguments: Mapping[str, Any]) -> Sink:
    """The graph that a symbolic input belongs to, else the current sink."""
    for value in (*inputs, *arguments.values()):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            graph = getattr(item, "graph", None)
            if graph is not None and isinstance(data_type_of(item), DataType):
                return graph  # type: ignore[no-any-return]
    return current_sink()


class _Call:
    """The arguments of one call, sorted by the declaration."""

    def __init__(self, op_def: OpDef, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> None:
        self.op_def = op_def
        self.values = self._bind(inputs, arguments)
        self.attrs = self._explicit_attrs(arguments)

    def _fail(self, message: str, hint: str = "") -> InvalidArgumentError:
        return InvalidArgumentError(f"{self.op_def.name}: {message}", op=self.op_def.name, hint=hint)

    def _bind(self, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        names = [arg.name for arg in self.op_def.input_arg]
        if len(inputs) > len(names):
            raise self._fail(f"{len(inputs)} inputs were given, but it takes {len(names)}: {', '.join(names)}")
        values = dict(zip(names, inputs, strict=False))
        for key in names:
            if key in arguments:
                if key in values:
                    raise self._fail(f"input '{key}' was given twice")
                values[key] = arguments[key]
        missing_names = [key for key in names if key not in values]
        if missing_names:
            raise self._fail(f"input '{missing_names[0]}' is missing", hint=f"inputs are {', '.join(names)}")
        return values

    def _explicit_attrs(self, arguments: Mapping[str, Any]) -> dict[str, AttrValue]:
        attr_defs = {attr.name: attr for attr in self.op_def.attr}
        attrs = {}
        for key, value in arguments.items():
            if key in self.values or value is None:
                continue
            if key in attr_defs:
                attrs[key] = to_attr_value(attr_defs[key].type, value, f"attr '{key}' of {self.op_def.name}")
            elif key.startswith("_"):
                attrs[key] = value if isinstance(value, AttrValue) else guess_attr_value(value, key)
            else:
                raise self._fail(
                    f"there is no input or attribute '{key}'", hint=f"attributes are {', '.join(attr_defs)}"
                )
        return attrs

    def infer_attrs(self) -> None:
        """Infer attributes from the inputs, then apply defaults; raise for attributes that remain missing."""
        for arg in self.op_def.input_arg:
            self._infer_length(arg)
        for literals in (False, True):  # typed values determine attributes first, Python numbers only those that remain
            for arg in self.op_def.input_arg:
                self._infer_types(arg, literals)
        for attr in self.op_def.attr:
            if attr.name not in self.attrs:
                if attr.default is None:
                    raise self._fail(f"attribute '{attr.name}' ({attr.type}) is missing")
                self.attrs[attr.name] = attr.default
            else:
                check_attr_value(self.attrs[attr.name], attr, self.op_def.name)

    def _infer_length(self, arg: ArgDef) -> None:
        value = self.values[arg.name]
        if not (arg.number_attr or arg.type_list_attr):
            return
        if not isinstance(value, (list, tuple)):
            raise self._fail(f"input '{arg.name}' takes a list", hint="wrap the single value in a list")
        if arg.number_attr:
            self._set_attr(arg.number_attr, AttrValue("int", len(value)), arg)

    def _set_attr(self, attr: str, value: AttrValue, arg: ArgDef) -> None:
        existing = self.attrs.setdefault(attr, value)
        if existing.value != value.value:
            raise self._fail(
                f"input '{arg.name}' implies {attr} = {_value_text(value)}, but another input implies "
                f"{_value_text(existing)}"
            )

    def _infer_types(self, arg: ArgDef, literals: bool) -> None:
        value = self.values[arg.name]
        if arg.type_list_attr:
            if literals and arg.type_list_attr not in self.attrs:
                types = tuple(natural_type(item) for item in value)
                self.attrs[arg.type_list_attr] = AttrValue("list(type)", types)
            return
        if not arg.type_attr or arg.type_attr in self.attrs:
            return
        for item in value if arg.number_attr else [value]:
            dtype = natural_type(item) if literals else _known_type(item)
            if dtype is not None:
                self.attrs[arg.type_attr] = AttrValue("type", self._preferred_type(arg.type_attr, item, dtype))
                return

    def _preferred_type(self, name: str, item: Any, dtype: DataType) -> DataType:
        """A Python number takes the attribute's default type where that holds it, else its usual type."""
        attr = self.op_def.find_attr(name)
        if _known_type(item) is None and attr is not None and attr.default is not None:
            default: DataType = attr.default.value
            return default if _can_represent(default, item) else dtype
        return dtype.base

    def convert_inputs(self, sink: Sink) -> list[Any]:
        """The flat inputs, everything a tensor or an array of the type that the attributes say."""
        flat: list[Any] = []
        for arg in self.op_def.input_arg:
            value = self.values[arg.name]
            items = list(value) if arg.number_attr or arg.type_list_attr else [value]
            types = arg_types(arg, self.attrs)
            if len(types) != len(items):
                raise self._fail(f"input '{arg.name}' takes {len(types)} values, {len(items)} were given")
            flat += [self._convert_input(sink, item, dtype, arg) for item, dtype in zip(items, types, strict=True)]
        return flat

    def _convert_input(self, sink: Sink, value: Any, dtype: DataType, arg: ArgDef) -> Any:
        found_type = data_type_of(value)
        if found_type is None and _has_symbols(value):
            return apply_op("Pack", list(value), T=dtype.base)
        if isinstance(getattr(value, "dtype", None), DataType):
            if found_type is not None and found_type.base != dtype.base:
                raise self._fail(f"input '{arg.name}' takes {dtype.base}, but '{value.name}' is {found_type.base}")
            return value
        if found_type is not None and found_type.numpy != dtype.numpy:
            raise self._fail(
                f"input '{arg.name}' takes {dtype}, but the array is {found_type}", hint="use Cast or astype"
            )
        return sink.constant(to_array(value, dtype, f"input '{arg.name}' of {self.op_def.name}"), dtype.base)


def group_outputs(args: Sequence[ArgDef], attrs: Mapping[str, AttrValue], node: Any, outputs: Sequence[Any]) -> Any:
    """Outputs as the declaration groups them."""
    if not args:
        return node
    grouped: list[Any] = []
    start = 0
    for arg in args:
        if arg.number_attr or arg.type_list_attr:
            attr = attrs[arg.number_attr or arg.type_list_attr].value
            count = attr if arg.number_attr else len(attr)
            grouped.append(list(outputs[start : start + count]))
        else:
            count = 1
            grouped.append(outputs[start])
        start += count
    return grouped[0] if len(grouped) == 1 else tuple(grouped)


# Python values ------------------------------------------------------------------------------------------------------
_PYTHON_TYPES: tuple[tuple[Any, DataType], ...] = (
    (bool, DataType.DT_BOOL),
    (int, DataType.DT_INT32),
    (float, DataType.DT_FLOAT),
    (complex, DataType.DT_COMPLEX128),
    ((str, bytes), DataType.DT_STRING),
)


_NO_LEAF = object()


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _has_symbols(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(getattr(v, "dtype", None), DataType) for v in value)


def _known_type(value: Any) -> DataType | None:
    """Type that a value has beyond doubt."""
    types = [data_type_of(leaf) for leaf in _leaves(value)]
    return next((dtype for dtype in types if dtype is not None), None)


def natural_type(value: Any) -> DataType:
    """Type of any value; Python numbers get TensorFlow's usual ones: int32, float32."""
    known_type = _known_type(value)
    if known_type is not None:
        return known_type.base
    leaves = list(_leaves(value))
    ranks = [next((i for i, (kind, _) in enumerate(_PYTHON_TYPES) if isinstance(leaf, kind)), -1) for leaf in leaves]
    if -1 in ranks:
        raise InvalidArgumentError(f"a value of {type(leaves[ranks.index(-1)]).__name__} cannot become a tensor")
    if not ranks:
        return DataType.DT_FLOAT
    dtype = _PYTHON_TYPES[max(ranks)][1]
    if dtype == DataType.DT_INT32 and not all(-(2**31) <= leaf < 2**31 for leaf in leaves):
        return DataType.DT_INT64
    return dtype


def _can_represent(dtype: DataType, value: Any) -> bool:
    """Return True if a Python value converts to a type without losing its kind."""
    if next(_leaves(value), _NO_LEAF) is _NO_LEAF:
        return True
    ranks = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    natural = natural_type(value)
    if natural == DataType.DT_STRING or dtype == DataType.DT_STRING:
        return natural == dtype
    kind = "f" if dtype.numpy.kind == "V" else dtype.numpy.kind
    needed_rank = ranks[natural.numpy.kind]
    return kind in ranks and (needed_rank == 0) == (ranks[kind] == 0) and ranks[kind] >= needed_rank


def to_array(value: Any, dtype: DataType, description: str = "a value") -> Array:
    """An array of a data type.

    Raises
    ------
    InvalidArgumentError
        The value does not fit the type, or its parts do not form a box.
    """
    if dtype.base == DataType.DT_STRING:
        return _string_array(value, description)
    if isinstance(value, np.ndarray):
        return value if value.dtype == dtype.numpy else value.astype(dtype.numpy)
    if not isinstance(value, np.generic) and not _can_represent(dtype.base, value):
        raise InvalidArgumentError(f"{description}: {value!r} does not fit {dtype.base}")
    try:
        return np.asarray(value, dtype.numpy)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"{description}: {value!r} cannot be converted to {dtype.base}: {error}") from None


def _string_array(value: Any, description: str) -> Array:
    out = np.empty(
        value.shape if isinstance(value, (np.ndarray, np.generic)) else _nested_shape(value, description), object
    )
    flat = value.ravel() if isinstance(value, (np.ndarray, np.generic)) else _leaves(value)
    for i, item in enumerate(flat):
        if not isinstance(item, (str, bytes)):
            raise InvalidArgumentError(f"{description}: {item!r} is not a string", hint="pass bytes or str")
        out.flat[i] = item.encode("utf-8", "surrogateescape") if isinstance(item, str) else bytes(item)
    return out


def _nested_shape(value: Any, description: str) -> tuple[int, ...]:
    """Sizes of nested lists."""
    if not isinstance(value, (list, tuple)):
        return ()
    inner = {_nested_shape(item, description) for item in value}
    if len(inner) > 1:
        raise InvalidArgumentError(f"{description}: nested lists must have equal sizes")
    return (len(value), *(inner.pop() if inner else ()))


# Attributes ----------------------------------------------------------------------------------------------------------
def _value_text(value: AttrValue) -> str:
    return str(value.value)


def _string(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value.__str__())


def _integer(value: Any) -> int:
    if isinstance(value, (bool, np.bool_, float)):
        raise TypeError("not an integer")
    return int(value.__index__())


def _real(value: Any) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError("not a number")
    return float(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError("not a bool")
    return bool(value)


def _shape(value: Any) -> TensorShape:
    if isinstance(value, TensorShape):
        return value
    return TensorShape(None if d is None or d == -1 else d for d in value)


def _tensor(value: Any) -> TensorValue:
    if isinstance(value, TensorValue):
        return value
    dtype = natural_type(value)
    return TensorValue(dtype, to_array(value, dtype))


def _function(value: Any) -> NameAttrList:
    if isinstance(value, NameAttrList):
        return value
    if isinstance(value, str):
        return NameAttrList(value)
    signature = getattr(value, "signature", None)  # a FunctionDef
    if signature is None:
        raise TypeError("not a function")
    return NameAttrList(signature.name)


_CONVERTERS = {
    "string": _string, "int": _integer, "float": _real, "bool": _boolean, "type": as_data_type, "shape": _shape,
    "tensor": _tensor, "func": _function,
}  # fmt: skip


def to_attr_value(kind: str, value: Any, description: str = "an attribute") -> AttrValue:
    """A Python value as an attribute of a kind such as ``"int"`` or ``"list(type)"``.

    Raises
    ------
    InvalidArgumentError
        The value is not of that kind.
    """
    if isinstance(value, AttrValue):
        return value
    try:
        if kind.startswith("list("):
            if isinstance(value, (str, bytes)):
                raise TypeError("not a list")
            return AttrValue(kind, tuple(_CONVERTERS[kind[5:-1]](item) for item in value))
        return AttrValue(kind, _CONVERTERS[kind](value))
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise InvalidArgumentError(f"{description} must be {kind}, not {value!r}") from None


def guess_attr_value(value: Any, description: str = "an attribute") -> AttrValue:
    """An attribute that no declaration knows, by the look of its value."""
    if isinstance(value, (list, tuple)):
        kind = guess_attr_value(value[0], description).kind if value else "int"
        return to_attr_value(f"list({kind})" if value else "list(int)", value, description)
    kinds = (
        (bool, "bool"), (DataType, "type"), (int, "int"), (float, "float"), ((str, bytes), "string"),
        (TensorShape, "shape"), (NameAttrList, "func"), ((TensorValue, np.ndarray), "tensor"),
    )  # fmt: skip
    for python, kind in kinds:
        if isinstance(value, python):
            return to_attr_value(kind, value, description)
    raise InvalidArgumentError(f"{description}: {value!r} cannot be the value of an attribute")
