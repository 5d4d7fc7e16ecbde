"""Python functions generated from declarations of ops: ``MatMul(a=.., b=..)`` applies the op of that name."""

from __future__ import annotations

import inspect
import keyword
import re
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cyxla.core.framework.apply import Bound, apply_repeatable
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def import ArgDef, AttrDef, OpDef, summarize_attr_value
from cyxla.core.framework.declarations.op_overrides import ApiDef, OpGenOverrideMap
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError
from cyxla.forking import new_lock

_EMPTY = inspect.Parameter.empty
_POSITIONAL, _KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
_CODE = re.compile(r"`([^`]+)`")


def make_function(api: ApiDef, renames: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """Generate the function of an op.

    Parameters
    ----------
    api : ApiDef
        Declaration of the op and the public names of its arguments.
    renames : mapping, optional
        Names of functions by op, used in the documentation.

    Returns
    -------
    function
        Function that takes inputs by position or name, attributes by name, and ``name=``. Attributes that can be
        inferred from inputs are optional. Several results are returned as a named tuple.
    """
    op_def, public = api.op_def, _public_names(api)
    signature = _signature(api, public)
    declared_names = {shown: name for name, shown in public.items()}
    inputs = [public[arg.name] for arg in op_def.input_arg]
    results = _result_type(api)

    def bind(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Bound:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as e:
            raise InvalidArgumentError(
                f"{api.names[0]}: {e}", op=op_def.name, hint=f"call {api.names[0]}{signature}"
            ) from None
        values = {declared_names.get(key, key): value for key, value in bound.arguments.items() if key != "name"}
        for name, default in api.defaults.items():
            values.setdefault(name, default.value)
        return Bound(op_def.name, [values.pop(declared_names[i]) for i in inputs], values, inputs)

    def function(*args: Any, **kwargs: Any) -> Any:
        outputs = apply_repeatable(function, args, kwargs, kwargs.get("name"), bind)
        return results(*outputs) if results else outputs

    function.__name__ = function.__qualname__ = api.names[0]
    function.__doc__ = _documentation(api, public, renames or {})
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _public_names(api: ApiDef) -> dict[str, str]:
    """Map declared names to parameter names; Python keywords get an underscore."""
    op_def = api.op_def
    declared = [arg.name for arg in op_def.input_arg] + [attr.name for attr in op_def.attr]
    names = {name: api.renamed.get(name, name) for name in declared}
    return {
        name: shown + "_" if keyword.iskeyword(shown) or shown == "name" else shown for name, shown in names.items()
    }


def inferred_attrs(op_def: OpDef) -> set[str]:
    """Return the attributes that can be inferred from the types and the number of inputs."""
    return {n for arg in op_def.input_arg for n in (arg.type_attr, arg.number_attr, arg.type_list_attr) if n}


def _signature(api: ApiDef, public: Mapping[str, str]) -> inspect.Signature:
    inferred = inferred_attrs(api.op_def)
    parameters = [inspect.Parameter(public[arg.name], _POSITIONAL) for arg in api.op_def.input_arg]
    attrs = sorted(api.op_def.attr, key=lambda attr: _default_of(api, attr, inferred) is not _EMPTY)
    for attr in attrs:
        parameters.append(inspect.Parameter(public[attr.name], _KEYWORD, default=_default_of(api, attr, inferred)))
    return inspect.Signature([*parameters, inspect.Parameter("name", _KEYWORD, default=None)])


def _default_of(api: ApiDef, attr: AttrDef, inferred: set[str]) -> Any:
    if attr.name in inferred:
        return None
    default = api.defaults.get(attr.name, attr.default)
    return _EMPTY if default is None else _python_value(default)


def _python_value(value: AttrValue) -> Any:
    if isinstance(value.value, tuple):
        return [_python_scalar(v) for v in value.value]
    return _python_scalar(value.value)


def _python_scalar(value: Any) -> Any:
    return value.numpy_name if isinstance(value, DataType) else value


def _result_type(api: ApiDef) -> Callable[..., Any] | None:
    """Return the named tuple of several results, or None for a single one."""
    if len(api.op_def.output_arg) < 2:
        return None
    names = [api.renamed.get(arg.name, arg.name) for arg in api.op_def.output_arg]
    return namedtuple(api.names[0].strip("_"), names, rename=True)


# Documentation ---------------------------------------------------------------------------------------------------


def _documentation(api: ApiDef, public: Mapping[str, str], renames: Mapping[str, str]) -> str:
    op_def = api.op_def
    parts = [op_def.summary or f"Apply the op {op_def.name}.", op_def.description]
    results = {arg.name: api.renamed.get(arg.name, arg.name) for arg in op_def.output_arg}
    parts.append(_section("Parameters", [(public[a.name], _arg_text(a), a.description) for a in op_def.input_arg]
                          + [(public[a.name], _attr_text(a), a.description) for a in op_def.attr]))  # fmt: skip
    parts.append(_section("Returns", [(results[a.name], _arg_text(a), a.description) for a in op_def.output_arg]))
    renamed_args = {**renames, **{name: shown for name, shown in {**public, **results}.items() if name != shown}}
    text = "\n\n".join(filter(None, parts)) + "\n"
    return _CODE.sub(lambda match: f"`{renamed_args.get(match[1], match[1])}`", text)


def _section(title: str, rows: list[tuple[str, str, str]]) -> str:
    if not rows:
        return ""
    lines = [f"{name} : {kind}" + "".join(f"\n    {line}" for line in text.splitlines()) for name, kind, text in rows]
    return "\n".join([title, "-" * len(title), *lines])


def _arg_text(arg: ArgDef) -> str:
    return arg.type_text


def _attr_text(attr: AttrDef) -> str:
    text = attr.type
    if attr.allowed is not None:
        text += " of " + ", ".join(a.text if isinstance(a, DataType) else repr(a) for a in attr.allowed)
    text += f", at least {attr.minimum}" if attr.minimum is not None else ""
    return text + (f", default {summarize_attr_value(attr.default)}" if attr.default is not None else "")


# Namespaces ------------------------------------------------------------------------------------------------------


class OpNamespace:
    """Namespace of the functions of a registry's ops, generated on first access.

    Parameters
    ----------
    registry : OpRegistry, optional
        Registry of the ops; the global one by default.
    overrides : OpGenOverrideMap, optional
        Differences from the declarations.
    hidden : bool
        True for the namespace of hidden functions.
    """

    def __init__(
        self, registry: OpRegistry | None = None, overrides: OpGenOverrideMap | None = None, hidden: bool = False
    ) -> None:
        self._registry, self._overrides, self._hidden = registry, overrides or OpGenOverrideMap(), hidden
        self._apis: dict[str, ApiDef] | None = None
        self._functions: dict[str, Callable[..., Any]] = {}
        self._lock = new_lock()
        self._num_ops = -1

    @property
    def internal(self) -> OpNamespace:
        """Namespace of the functions that are hidden here."""
        return OpNamespace(self._registry, self._overrides, hidden=True)

    def _table(self) -> dict[str, ApiDef]:
        """Return the table of functions by name, rebuilt when ops were added."""
        registry = OpRegistry.global_() if self._registry is None else self._registry
        ops = registry.get_registered_ops()
        with self._lock:
            if self._apis is None or self._num_ops != len(ops):
                apis_and_nones = (self._overrides.apply_override(op_def) for op_def in ops)
                apis = [api for api in apis_and_nones if api is not None and api.hidden == self._hidden]
                self._apis, self._num_ops = {name: api for api in apis for name in api.names}, len(ops)
        return self._apis

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in self._functions:
            return self._functions[name]
        api = None if name.startswith("__") else self._table().get(name)
        if api is None:
            raise AttributeError(f"there is no op named {name!r}")
        function = make_function(api, self._overrides.renames)
        with self._lock:
            for api_name in api.names:
                vars(self)[api_name] = self._functions.setdefault(api_name, function)
        return self._functions[name]

    def __dir__(self) -> list[str]:
        return sorted(self._table())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._table()))

    def __contains__(self, name: str) -> bool:
        return name in self._table()
