"""Builder of declarations.

The setters only collect; `OpDefBuilder.finalize` parses everything and reports all faults in one error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from cyxla.core.framework.declarations.op_def import AttrDef, OpDef, OpDeprecation, op_def_faults
from cyxla.core.framework.declarations.op_spec import parse_arg, parse_attr
from cyxla.errors import InvalidArgumentError

if TYPE_CHECKING:
    from cyxla.core.framework.shape_inference import InferenceContext

ShapeFn = Callable[["InferenceContext"], None]
T = TypeVar("T")
_DOC_NAME = re.compile(r"[A-Za-z]\w*\s*:")


@dataclass(frozen=True, slots=True)
class OpRegistrationData:
    """Entry of a registry: the declaration of an op, and its shape function or None."""

    op_def: OpDef
    shape_inference_fn: ShapeFn | None = None


class OpDefBuilder:
    """Builder of a declaration by chained setters.

    Examples
    --------
    >>> data = OpDefBuilder("Twice").input("x: T").output("y: T").attr("T: {float, double}").finalize()
    >>> str(data.op_def)
    'Op<name=Twice; signature=x:T -> y:T; attr=T:type,allowed=[DT_FLOAT, DT_DOUBLE]>'
    """

    __slots__ = ("_attrs", "_control", "_deprecation", "_doc", "_errors", "_flags", "_inputs", "_outputs", "_shape_fn",
                 "name")  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self._attrs: list[str] = []
        self._inputs: list[str] = []
        self._outputs: list[str] = []
        self._control: list[str] = []
        self._errors: list[str] = []
        self._flags: dict[str, Any] = {}
        self._doc = ""
        self._deprecation: OpDeprecation | None = None
        self._shape_fn: ShapeFn | None = None

    def attr(self, spec: str) -> OpDefBuilder:
        """Declare an attribute: ``name: type [>= minimum] [= default]``."""
        self._attrs.append(spec)
        return self

    def input(self, spec: str) -> OpDefBuilder:
        """Declare an input: ``name: type``."""
        self._inputs.append(spec)
        return self

    def output(self, spec: str) -> OpDefBuilder:
        """Declare an output: ``name: type``."""
        self._outputs.append(spec)
        return self

    def control_output(self, name: str) -> OpDefBuilder:
        """Declare a control output; only functions have them."""
        self._control.append(name)
        return self

    def doc(self, text: str) -> OpDefBuilder:
        """Set the documentation: summary line, description, then ``name: text`` for arguments and attributes."""
        if self._doc:
            self._errors.append(f"doc() called twice for op {self.name}")
        self._doc = text
        return self

    def set_is_commutative(self) -> OpDefBuilder:
        """Declare that the op of (a, b) equals that of (b, a)."""
        return self.set_flag("is_commutative")

    def set_is_aggregate(self) -> OpDefBuilder:
        """Declare that the op combines any number of inputs of one shape into one output of that shape."""
        return self.set_flag("is_aggregate")

    def set_is_stateful(self) -> OpDefBuilder:
        """Declare that the op has state or side effects, which excludes it from folding and deduplication."""
        return self.set_flag("is_stateful")

    def set_allows_uninitialized_input(self) -> OpDefBuilder:
        """Declare that the op accepts references to uninitialised variables."""
        return self.set_flag("allows_uninitialized_input")

    def set_is_distributed_communication(self) -> OpDefBuilder:
        """Declare that the op communicates with other processes."""
        return self.set_flag("is_distributed_communication")

    def set_flag(self, name: str) -> OpDefBuilder:
        """Set one of the flags of `OpDef` by its name."""
        self._flags[name] = True
        return self

    def deprecated(self, version: int, explanation: str) -> OpDefBuilder:
        """Declare that graphs of this version and later must not contain the op."""
        if self._deprecation:
            self._errors.append(f"deprecated() called twice for op {self.name}")
        self._deprecation = OpDeprecation(version, explanation)
        return self

    def set_shape_fn(self, fn: ShapeFn | None) -> OpDefBuilder:
        """Set the shape function."""
        if self._shape_fn is not None:
            self._errors.append(f"set_shape_fn() called twice for op {self.name}")
        self._shape_fn = fn
        return self

    def finalize(self) -> OpRegistrationData:
        """Parse and check the declaration.

        Raises
        ------
        InvalidArgumentError
            Specs cannot be parsed, or the declaration is invalid; the message lists all faults.
        """
        errors = list(self._errors)
        attrs: dict[str, AttrDef] = {}
        for attr in _read(self._attrs, parse_attr, errors):
            if attr.name in attrs:
                errors.append(f"duplicate name: {attr.name!r}")
            attrs[attr.name] = attr
        inputs, outputs = (
            list(_read(specs, lambda spec: parse_arg(spec, attrs), errors)) for specs in (self._inputs, self._outputs)
        )
        summary, description, notes = _read_doc(self._doc)
        op_def = OpDef(
            self.name, tuple(inputs), tuple(outputs), tuple(attrs.values()), summary, description, self._deprecation,
            control_output=tuple(self._control), **self._flags,
        )  # fmt: skip
        if notes:
            op_def = _add_notes(op_def, notes, errors)
        errors = errors or op_def_faults(op_def)
        if errors:
            raise InvalidArgumentError("\n".join(errors), where=f"the declaration of op {self.name!r}")
        return OpRegistrationData(op_def, self._shape_fn)


def _read(specs: Iterable[str], read: Callable[[str], T], errors: list[str]) -> Iterable[T]:
    for spec in specs:
        try:
            yield read(spec)
        except InvalidArgumentError as e:
            errors.append(e.message)


def _read_doc(text: str) -> tuple[str, str, dict[str, str]]:
    """Split documentation into summary, description, and notes on arguments and attributes."""
    text = text.strip("\n")
    if "\n" not in text:
        return text.strip(), "", {}
    lines = [line.rstrip() for line in text.split("\n")]
    starts = [i for i, line in enumerate(lines) if i and _DOC_NAME.match(line)]
    head = lines[: starts[0]] if starts else lines
    notes = dict(_split_note(lines[i:j]) for i, j in zip(starts, [*starts[1:], len(lines)], strict=False))
    return head[0].strip(), "\n".join(head[1:]).strip("\n"), notes


def _split_note(lines: list[str]) -> tuple[str, str]:
    """Split a note into a name and its text, whose lines may be indented."""
    name, _, first = lines[0].partition(":")
    indent = min((len(line) - len(line.lstrip()) for line in lines[1:] if line), default=0)
    return name.strip(), "\n".join([first, *(line[indent:] for line in lines[1:])]).strip()


def _add_notes(op_def: OpDef, notes: Mapping[str, str], errors: list[str]) -> OpDef:
    """Return the declaration with notes added to its arguments and attributes."""

    def add_notes(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(replace(i, description=notes[i.name]) if i.name in notes else i for i in items)

    names = {arg.name for arg in (*op_def.input_arg, *op_def.output_arg)} | {attr.name for attr in op_def.attr}
    errors += [f"no input, output or attr matches the doc of {name!r}" for name in notes if name not in names]
    return replace(
        op_def,
        input_arg=add_notes(op_def.input_arg),
        output_arg=add_notes(op_def.output_arg),
        attr=add_notes(op_def.attr),
    )
