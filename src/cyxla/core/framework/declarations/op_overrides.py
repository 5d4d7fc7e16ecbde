"""Overrides of the public functions generated from ops, which leave existing graphs valid.

An override hides, renames or aliases the function of an op, sets defaults for new graphs, and renames parameters. The
op itself is unchanged. Files hold ``OpGenOverrides`` messages in the text format::

    op { name: "MatMul" rename_to: "matmul" alias: "mm" input_rename { from: "a" to: "lhs" } }

or ``ApiDefs`` messages, which took their place in TensorFlow::

    op { graph_op_name: "MatMul" endpoint { name: "matmul" } in_arg { name: "a" rename_to: "lhs" } }
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op import OpRegistry, OpRegistryInterface
from cyxla.core.framework.declarations.op_def import OpDef, attr_value_fault
from cyxla.core.framework.protos.attrs import attr_from_proto
from cyxla.core.framework.protos.messages import parse_text
from cyxla.errors import InvalidArgumentError, NotFoundError, UnimplementedError

_log = logging.getLogger(__name__)
_SKIP, _HIDDEN = 2, 3  # of ApiDef.Visibility
_BLOCK = re.compile(r"<<(\w+)\n(.*?)\n\s*\1\b", re.DOTALL)


@dataclass(frozen=True)
class OpGenOverride:
    """Override of the function of one op; mappings are keyed by declared names."""

    name: str
    skip: bool = False
    hide: bool = False
    rename_to: str = ""
    alias: tuple[str, ...] = ()
    attr_default: Mapping[str, AttrValue] = field(default_factory=dict)
    attr_rename: Mapping[str, str] = field(default_factory=dict)
    input_rename: Mapping[str, str] = field(default_factory=dict)
    output_rename: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_proto(cls, proto: Any) -> OpGenOverride:
        """Read an ``OpGenOverride`` message."""
        renames = {
            kind: {getattr(r, "from"): r.to for r in getattr(proto, kind)}
            for kind in ("attr_rename", "input_rename", "output_rename")
        }
        defaults = {d.name: attr_from_proto(d.value) for d in proto.attr_default}
        return cls(proto.name, proto.skip, proto.hide, proto.rename_to, tuple(proto.alias), defaults, **renames)

    @classmethod
    def from_api_def(cls, proto: Any) -> OpGenOverride:
        """Read an ``ApiDef`` message; the first endpoint is the name, and further ones are aliases, without modules.

        Texts of documentation and deprecation are ignored: they come from declarations.

        Raises
        ------
        UnimplementedError
            The message changes the order of the parameters.
        """
        if proto.arg_order and list(proto.arg_order) != [arg.name for arg in proto.in_arg]:
            raise UnimplementedError(
                f"the ApiDef of op {proto.graph_op_name} has arg_order", hint="parameters have the order of the inputs"
            )
        rename_to, *aliases = dict.fromkeys(e.name.rpartition(".")[2] for e in proto.endpoint) or [""]
        renames = {
            f"{kind}_rename": {a.name: a.rename_to for a in getattr(proto, field) if a.rename_to}
            for kind, field in (("attr", "attr"), ("input", "in_arg"), ("output", "out_arg"))
        }
        defaults = {a.name: attr_from_proto(a.default_value) for a in proto.attr if a.HasField("default_value")}
        skip, hide = proto.visibility == _SKIP, proto.visibility == _HIDDEN
        return cls(proto.graph_op_name, skip, hide, rename_to, tuple(aliases), defaults, **renames)


@dataclass(frozen=True)
class ApiDef:
    """Public function of an op.

    Attributes
    ----------
    op_def : OpDef
        Declaration of the op.
    names : tuple of str
        Names of the function; the first is its ``__name__``.
    hidden : bool
        True if the function is for internal use only.
    defaults : mapping of AttrValue
        Defaults of attributes in new graphs, by declared name.
    renamed : mapping of str
        Renamed parameters and results, by declared name.
    """

    op_def: OpDef
    names: tuple[str, ...]
    hidden: bool
    defaults: Mapping[str, AttrValue] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)


class OpGenOverrideMap:
    """Overrides by op; later ones replace earlier ones of the same op."""

    def __init__(self, overrides: Iterable[OpGenOverride] = ()) -> None:
        self._overrides = {override.name: override for override in overrides}

    def load_file(self, paths: str) -> None:
        """Read files of overrides.

        Parameters
        ----------
        paths : str
            Names of files, separated by commas.

        Raises
        ------
        NotFoundError
            A file does not exist.
        InvalidArgumentError
            The text cannot be parsed; the error names the line.
        """
        _load_files(paths, self.load_text)

    def load_api_defs(self, paths: str) -> None:
        """Read files of ``ApiDefs``; see `load_file`, and `OpGenOverride.from_api_def` for the fields."""
        _load_files(paths, self.load_api_defs_text)

    def load_text(self, text: str) -> None:
        """Read overrides from text; an InvalidArgumentError names the line of a fault."""
        self._add(OpGenOverride.from_proto(proto) for proto in parse_text("OpGenOverrides", text).op)

    def load_api_defs_text(self, text: str) -> None:
        """Read ``ApiDefs`` from text, in which ``<<END`` begins a string of several lines, up to ``END``."""
        text = _BLOCK.sub(_quoted, text)
        self._add(OpGenOverride.from_api_def(proto) for proto in parse_text("ApiDefs", text).op)

    def _add(self, overrides: Iterable[OpGenOverride]) -> None:
        self._overrides.update({override.name: override for override in overrides})

    def unknown(self, registry: OpRegistryInterface | None = None) -> list[str]:
        """Return the ops that are not in a registry; each is logged."""
        registry = OpRegistry.global_() if registry is None else registry
        names = []
        for name in self._overrides:
            try:
                registry.look_up(name)
            except NotFoundError:
                _log.warning("an override is for op %s, which is not registered", name)
                names.append(name)
        return names

    @property
    def renames(self) -> dict[str, str]:
        """Return the new names of functions by op."""
        return {name: o.rename_to for name, o in self._overrides.items() if o.rename_to and not o.skip}

    def apply_override(self, op_def: OpDef) -> ApiDef | None:
        """Return the public function of an op, or None if it is hidden.

        Raises
        ------
        InvalidArgumentError
            The override names an unknown attribute, input or output, or an invalid default.
        """
        hidden = op_def.name.startswith("_")
        override = self._overrides.get(op_def.name)
        if override is None:
            return ApiDef(op_def, (op_def.name,), hidden)
        if override.skip:
            return None
        _check_names(op_def, override)
        defaults = {name: _default(op_def, name, value) for name, value in override.attr_default.items()}
        renamed = {**override.attr_rename, **override.input_rename, **override.output_rename}
        names = (override.rename_to or op_def.name, *override.alias)
        return ApiDef(op_def, names, hidden or override.hide, defaults, renamed)


def _load_files(paths: str, load: Callable[[str], None]) -> None:
    """Read files whose names are separated by commas."""
    for path in filter(None, (p.strip() for p in paths.split(","))):
        try:
            text = Path(path).read_text()
        except OSError as e:
            raise NotFoundError(f"cannot read op overrides: {e}") from None
        try:
            load(text)
        except InvalidArgumentError as e:
            raise InvalidArgumentError(e.message, where=f"{path}, {e.where}" if e.where else path) from None


def _quoted(match: re.Match[str]) -> str:
    """Return a block of lines as a quoted string, followed by as many line ends as it had."""
    return json.dumps(match[2]) + "\n" * match[0].count("\n")


def _check_names(op_def: OpDef, override: OpGenOverride) -> None:
    declared = {
        "attr": {a.name for a in op_def.attr},
        "input": {a.name for a in op_def.input_arg},
        "output": {a.name for a in op_def.output_arg},
    }
    overridden = [("attr", override.attr_default), ("attr", override.attr_rename), ("input", override.input_rename),
            ("output", override.output_rename)]  # fmt: skip
    for kind, names in overridden:
        unknown = [name for name in names if name not in declared[kind]]
        if unknown:
            raise InvalidArgumentError(
                f"the override of op {op_def.name} names the {kind} {unknown[0]!r}, which does not exist",
                hint=f"it has {', '.join(sorted(declared[kind])) or 'none'}",
            )


def _default(op_def: OpDef, name: str, value: AttrValue) -> AttrValue:
    attr = op_def.find_attr(name)
    assert attr is not None
    value = replace(value, kind=attr.type) if value.kind == "list" else value
    fault = attr_value_fault(value, attr)
    if fault:
        raise InvalidArgumentError(f"the override of op {op_def.name} has an invalid default: {fault}")
    return value
