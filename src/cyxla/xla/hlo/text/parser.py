"""Parser of HLO text."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cyxla.errors import ElidedConstantWarning, HloParseError, InvalidArgumentError, OpError, UnimplementedError
from cyxla.types import Literal, Shape
from cyxla.xla.hlo.attributes import Metadata
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.limits import MAX_INSTRUCTIONS, MAX_LEAVES, MAX_NESTING
from cyxla.xla.hlo.module import HloModule
from cyxla.xla.hlo.opcode import OPCODES, Opcode
from cyxla.xla.hlo.shape_inference import infer_shape
from cyxla.xla.hlo.text.attributes import COMMON, kind_of
from cyxla.xla.hlo.text.header import check_aliases, read_header, read_stack_frames
from cyxla.xla.hlo.text.lexer import NAME, WS, Cursor, Pattern, blank_comments
from cyxla.xla.hlo.text.literals import read_literal
from cyxla.xla.hlo.text.shapes import ARRAY, ShapeReader
from cyxla.xla.hlo.text.spellings import (
    ASYNC_ATTRIBUTES,
    IGNORED_ATTRIBUTES,
    IGNORED_VALUES,
    OPTIONAL_CALLS,
    call_names,
    split_async,
)

_HEAD = Pattern(rf"(ROOT[ \t\r\n]++)?+(?:%({NAME}){WS}|([A-Za-z_][\w.\-]*+)[ \t\r\n]++)=(?!=)")
_SHAPE = Pattern(rf"({ARRAY})[ \t\r\n]++(?=[a-z])")
_SHAPE_START = Pattern(r"(?:[a-z][a-z0-9]*+\[|b\()")
_OPCODE = Pattern(rf"([a-z][a-z0-9\-]*+){WS}\(")
_OPERAND = Pattern(rf"(?:({ARRAY})[ \t\r\n]++)?+%?+({NAME}){WS}(?=[,)])")
_OPERAND_NAME = Pattern(rf"%?+({NAME}){WS}(?=[,)])")
_OPERAND_PART = Pattern(rf"(?:({ARRAY})[ \t\r\n]++)?+%?+({NAME})((?:#[0-9]++)++){WS}(?=[,)])")
_NESTED = Pattern(rf"(?=[a-z][a-z0-9\-]*+{WS}\()")
_ATTRIBUTE = Pattern(rf",{WS}([A-Za-z_][\w.\-]*+)=")
_MISPLACED = Pattern(rf"(ROOT[ \t\r\n]++)?+%?+({NAME})")
_SIGNATURE_NAME = Pattern(rf"(%)?+{NAME}{WS}:")
_WORD = Pattern(r"([a-z][a-z0-9\-]*+)")
_ENTRY = Pattern(r"(ENTRY)(?![\w.\-])")
_THREAD = Pattern(rf",{WS}execution_thread=")
_BARE_RHS = Pattern(rf"(?:\(|{ARRAY}|[a-z][a-z0-9\-]*+{WS}\()")
_LINE_START = Pattern(rf"%?+{NAME}{WS}(?:\{{|\({WS}(?:\){WS}->|%?+{NAME}{WS}:))")


class _Attributes(NamedTuple):
    opcode_attrs: dict[str, Any]
    calls: dict[str, tuple[Computation, ...]]
    extras: dict[str, Any]
    metadata: Metadata
    control: tuple[Instruction, ...]


class _Wrapped(NamedTuple):
    """The operation that ``<op>-start`` wraps."""

    row: Opcode
    attrs: dict[str, Any]
    called: tuple[Computation, ...]


class _Scope:
    """A computation that is being read."""

    __slots__ = ("computation", "free", "names", "positions")

    def __init__(self, computation: Computation, *, free: bool = False) -> None:
        self.computation = computation
        self.names: dict[str, Instruction] = {}
        self.positions: dict[Instruction, int] = {}  # positions of parameters
        self.free = free  # unknown operands become parameters


class _Parser:
    """Parser of one module."""

    def __init__(self, text: str) -> None:
        self.cursor = Cursor(text)
        self.shapes = ShapeReader(self.cursor)
        self.module = HloModule("_")
        self.entry: Computation | None = None
        self.count = 0
        self.sizes: dict[Shape, tuple[int, int]] = {}
        self.elided: list[str] = []
        self.wrapped: dict[Instruction, _Wrapped] = {}

    def read(self) -> HloModule:
        """Read the module."""
        c = self.cursor
        headed = read_header(self.shapes, self.module)
        if headed:
            self.module.config.stack_frames = read_stack_frames(c)
        elif not self._starts_computation():
            return self._single()
        while c.skip() < len(c.text):
            self._computation()
        self._choose_entry(headed)
        check_aliases(c, self.module)
        return self.module

    def _choose_entry(self, headed: bool) -> None:
        if not self.module.computations:
            raise self.cursor.error("expected a computation, found the end")
        if self.entry is None:
            self.entry = list(self.module.computations.values())[-1]
        self.module.entry = self.entry
        if not headed:
            self.module.name = f"module_{self.entry.name}"

    def _starts_computation(self) -> bool:
        c = self.cursor
        if _ENTRY.match(c.text, c.pos) or _LINE_START.match(c.text, c.pos) or c.skip() == len(c.text):
            return True
        if _HEAD.match(c.text, c.pos) or _BARE_RHS.match(c.text, c.pos):
            return False
        start = c.skip()
        m = _MISPLACED.match(c.text, start)
        raise c.error("expected HloModule, a computation or an instruction", m.end() if m else start)

    def _single(self) -> HloModule:
        """Read a lone instruction; its operands become parameters."""
        c = self.cursor
        computation = self.module.add_computation(Computation("_"))
        scope = _Scope(computation, free=True)
        if _HEAD.match(c.text, c.pos):
            self._instruction(scope)
        else:
            self._right_hand_side(scope, "_", self._result_shape(), None)
        if c.skip() != len(c.text):
            raise c.error(f"expected the end after a lone instruction, found {c.next_token()}")
        computation.root = list(computation.instructions)[-1]
        self.module.entry = computation
        self.module.config.is_scheduled = True
        self._check_parameters(scope)
        return self.module

    # Computations

    def _computation(self) -> None:
        c = self.cursor
        start = c.skip()
        is_entry = c.match(_ENTRY) is not None
        if is_entry and self.entry is not None:
            raise c.error("a second ENTRY", start)
        start = c.skip()
        name = c.name("a computation")
        if c.text.startswith("=", c.pos):
            raise c.error(f"expected a computation, found the attribute {name}=", start)
        declared = self._signature() if c.at("(") else None
        if not c.at("{"):
            raise c.error(f"expected '{{' of computation {name}, found {c.next_token()}")
        if name in self.module.computations:
            raise c.error(f"a second computation called {name}", start)
        computation = self._body(name, declared)
        if c.match(_THREAD):
            thread = c.string("the name of a thread")
            computation.execution_thread = "" if thread == "main" else thread
        elif c.accept(","):
            raise c.error(f"expected execution_thread= or the next computation, found {c.next_token()}")
        self.module.add_computation(computation)
        if is_entry:
            self.entry = computation

    def _signature(self) -> tuple[Shape, int]:
        """Read ``(p: f32[2]) -> f32[2]``, and return the result shape and its position."""
        c = self.cursor
        c.expect("(", "of a signature")
        first = True
        while not c.accept(")"):
            if not first:
                c.expect(",", "between parameters")
            first = False
            m = c.match(_SIGNATURE_NAME)
            if m is None or m.group(1):
                raise c.error(f"expected 'name: shape' without %, found {c.next_token()}", m.end() - 1 if m else None)
            self.shapes.read()
        c.expect("->", "after the parameters of a computation")
        at = c.skip()
        return self.shapes.read(), at

    def _body(self, name: str, declared: tuple[Shape, int] | None) -> Computation:
        c = self.cursor
        c.enter(3)
        c.expect("{", f"of computation {name}")
        computation = Computation(name)
        scope = _Scope(computation)
        root: Instruction | None = None
        last: Instruction | None = None
        while not c.accept("}"):
            at = c.skip()
            last, is_root = self._instruction(scope)
            if is_root:
                if root is not None:
                    raise c.error(f"a second ROOT in computation {name}", at)
                root = last
        if last is None:
            raise c.error(f"computation {name} is empty", c.pos - 1)
        computation.root = root or last
        if declared and not declared[0].compatible(computation.root.shape):
            raise c.error(f"the result of {name} is {computation.root.shape}, not {declared[0]}", declared[1])
        self._check_parameters(scope)
        c.leave(3)
        return computation

    def _check_parameters(self, scope: _Scope) -> None:
        by_number: dict[int, Instruction] = {}
        for ins, at in scope.positions.items():
            number = ins.attrs["parameter_number"]
            if number in by_number:
                raise self.cursor.error(f"parameter number {number} appears twice in {scope.computation.name}", at)
            if number >= (count := len(scope.positions)):
                raise self.cursor.error(f"the {count} parameter numbers of {scope.computation.name} leave a gap", at)
            by_number[number] = ins

    def _read_computation(self) -> Computation:
        """Read the name of a computation, or a computation in place."""
        c = self.cursor
        if c.at("{"):
            computation = self._body("_", None)
            n = 0
            while computation.name in self.module.computations:  # nested ones were added first
                n += 1
                computation.name = f"_.{n}"
            return self.module.add_computation(computation)
        start = c.skip()
        name = c.name("a computation")
        known_computation = self.module.computations.get(name)
        if known_computation is None:
            raise c.error(f"computation {name} is not defined before its use", start)
        return known_computation

    def _call_list(self, is_list: bool) -> tuple[Computation, ...]:
        c = self.cursor
        if not is_list:
            return (self._read_computation(),)
        c.expect("{", "at the start of a list of computations")
        computations: list[Computation] = []
        while not c.accept("}"):
            if computations:
                c.expect(",", "between computations")
            computations.append(self._read_computation())
        return tuple(computations)

    # Instructions

    def _instruction(self, scope: _Scope) -> tuple[Instruction, bool]:
        """Read ``[ROOT] name = shape opcode(..), ..``."""
        c = self.cursor
        m = c.match(_HEAD)
        if m is None:
            raise self._no_instruction()
        name = m.group(2) or m.group(3)
        if name in scope.names:
            raise c.error(f"a second instruction called {name}", m.start(2) if m.group(2) else m.start(3))
        ins = self._right_hand_side(scope, name, self._result_shape(), name)
        if c.accept(","):
            raise c.error(f"expected an attribute after ',', found {c.next_token()}")
        return ins, m.group(1) is not None

    def _no_instruction(self) -> HloParseError:
        c = self.cursor
        start = c.skip()
        m = c.match(_MISPLACED)
        if m is None or m.group(2) == "ROOT":
            c.pos = start
            return c.error(f"expected an instruction or '}}', found {c.next_token()}", start)
        if c.text.startswith("=", c.pos):
            return c.error("expected a blank between the name and =", m.start(2))
        return c.error(f"expected '=' after {m.group(2)}, found {c.next_token()}")

    def _result_shape(self) -> Shape | None:
        c = self.cursor
        m = c.match(_SHAPE)
        if m is not None:
            return self.shapes.array(m.group(1), m.start(1))
        if c.at("(") or _SHAPE_START.match(c.text, c.pos):
            return self.shapes.read()
        return None

    def _right_hand_side(self, scope: _Scope, name: str, shape: Shape | None, key: str | None) -> Instruction:
        c = self.cursor
        self.count += 1
        if self.count > MAX_INSTRUCTIONS:
            raise c.error(f"more than {MAX_INSTRUCTIONS} instructions")
        start = c.skip()
        m = c.match(_OPCODE)
        if m is None:
            word = c.match(_WORD)
            if word is not None and word.group(1) in OPCODES:
                raise c.error(f"expected '(' after {word.group(1)}, found {c.next_token()}")
            c.pos = start
            raise c.error(f"expected an opcode and '(', found {c.next_token()}", start)
        opcode = m.group(1)
        row = OPCODES.get(opcode)
        if opcode == "async-update":
            ins = self._update(scope, name, shape, m.end() - 1)
        elif row is None:
            stage, wrapped = split_async(opcode)
            if not stage:
                raise c.error(f"unknown opcode {opcode}", m.start(1), _nearest(opcode))
            ins = self._async(scope, name, shape, stage, wrapped, m.end() - 1)
        else:
            ins = self._instruction_of_row(scope, row, name, shape, m)
        if key is not None:
            scope.names[key] = ins
        return ins

    def _instruction_of_row(self, scope: _Scope, row: Opcode, name: str, shape: Shape | None, m: Any) -> Instruction:
        c = self.cursor
        own_attrs: dict[str, Any] = {}
        operands: list[Instruction] = []
        special = _PARENTHESISED.get(row.name)
        if special is not None:
            attr, reader = special
            before = c.elided
            own_attrs[attr] = reader(self, shape)
            if c.elided > before:
                self.elided.append(name)
            at = c.skip()
            c.expect(")", f"after the argument of {row.name}")
        else:
            operands = self._operands(scope, row, m.end() - 1)
        after = c.skip()
        attributes = self._attributes(scope, row, own_attrs)
        called = self._order_calls(row, attributes, after)
        self._check_complete(row, operands, attributes, shape, after)
        if row.name == "outfeed":
            attributes.opcode_attrs.setdefault("outfeed_shape", operands[0].shape)
        shape = self._shape_of(row, operands, attributes.opcode_attrs, called, shape, m.end() - 1)
        ins = self._add(scope, row.name, operands, attributes, shape, called, name)
        if special is not None and row.name == "parameter":
            scope.positions[ins] = at
        return ins

    def _add(
        self, scope: _Scope, opcode: str, operands: Sequence[Instruction], attributes: _Attributes, shape: Shape,
        called: tuple[Computation, ...], name: str,
    ) -> Instruction:  # fmt: skip
        return scope.computation.add(
            opcode, operands, attributes.opcode_attrs, shape=shape, called=called, name=name,
            metadata=attributes.metadata, extras=attributes.extras, control_predecessors=attributes.control,
        )  # fmt: skip

    def _operands(self, scope: _Scope, row: Opcode, at: int) -> list[Instruction]:
        values = self._operand_list(scope)
        low, high = row.arity
        if len(values) < low or (high is not None and len(values) > high):
            expected = str(low) if low == high else f"{low} to {high}" if high is not None else f"{low} or more"
            raise self.cursor.error(f"{row.name} takes {expected} operands, found {len(values)}", at)
        return values

    def _operand_list(self, scope: _Scope) -> list[Instruction]:
        """Read operands up to the closing parenthesis."""
        c = self.cursor
        text, names = c.text, scope.names
        values: list[Instruction] = []
        if c.accept(")"):
            return values
        while True:
            m = _OPERAND.match(text, c.pos)
            if m is None:
                values.append(self._other_operand(scope))
            else:
                c.pos = m.end()
                shape_text, name = m.groups()
                shape = self.shapes.array(shape_text, m.start(1)) if shape_text else None
                value = names.get(name)
                if value is None:
                    value = self._unknown_operand(scope, name, shape, m.start(2))
                elif shape is not None and not shape.compatible(value.shape):
                    raise c.error(f"{name} is {value.shape}, not {shape}", m.start(1))
                values.append(value)
            if not c.accept(","):
                c.expect(")", "at the end of the operands")
                return values

    def _unknown_operand(self, scope: _Scope, name: str, shape: Shape | None, at: int) -> Instruction:
        if not scope.free or shape is None:
            raise self.cursor.error(f"instruction {name} is not defined before its use", at)
        number = {"parameter_number": len(scope.positions)}
        ins = scope.names[name] = scope.computation.add("parameter", (), number, shape=shape, name=name)
        scope.positions[ins] = at
        return ins

    def _other_operand(self, scope: _Scope) -> Instruction:
        """Read an operand with a tuple shape, or a nested instruction."""
        c = self.cursor
        start = c.skip()
        shape: Shape | None = None
        if c.at("(") or (_SHAPE.match(c.text, start) and not _NESTED.match(c.text, start)):
            shape = self.shapes.read()
        m = c.match(_OPERAND_PART)
        if m is not None:
            return self._tuple_element(
                scope, m, self.shapes.array(m.group(1), m.start(1)) if m.group(1) else shape, start
            )
        m = c.match(_OPERAND_NAME)
        if m is not None:
            value = scope.names.get(m.group(1))
            if value is None:
                return self._unknown_operand(scope, m.group(1), shape, m.start(1))
            if shape is not None and not shape.compatible(value.shape):
                raise c.error(f"{m.group(1)} is {value.shape}, not {shape}", start)
            return value
        nested = _OPCODE.match(c.text, c.pos)
        if nested is None:
            raise c.error(f"expected an operand, then ',' or ')', found {c.next_token()}", start)
        c.enter(2)
        ins = self._right_hand_side(scope, f"{nested.group(1)}.anon", shape, None)
        c.leave(2)
        return ins

    def _tuple_element(self, scope: _Scope, m: Any, shape: Shape | None, at: int) -> Instruction:
        """Return the tuple element ``%t#1#0``; its get-tuple-elements are created once."""
        c = self.cursor
        name = m.group(2)
        value = scope.names.get(name)
        if value is None:
            raise c.error(f"instruction {name} is not defined before its use", at)
        for digits in m.group(3)[1:].split("#"):
            name += f"#{digits}"
            index = c.bounded(digits, "the number of an element", at, 0)
            if not (value.shape.is_tuple and index < len(value.shape.elements)):
                raise c.error(f"{value.shape} has no element {index}", at)
            element = scope.names.get(name)
            if element is None:
                element_name, element_shape = name.replace("#", "."), value.shape.elements[index]
                element = scope.computation.add(
                    "get-tuple-element", (value,), {"index": index}, shape=element_shape, name=element_name
                )
                scope.names[name] = element
            value = element
        if shape is not None and not shape.compatible(value.shape):
            raise c.error(f"{name} is {value.shape}, not {shape}", at)
        return value

    def _attributes(
        self, scope: _Scope, row: Opcode, own_attrs: dict[str, Any], extra_names: tuple[str, ...] = ()
    ) -> _Attributes:
        """Read ``, name=value`` repeatedly."""
        c = self.cursor
        text, by_name = c.text, row.attr_by_name
        calls: dict[str, tuple[Computation, ...]] = {}
        extras: dict[str, Any] = {}
        metadata: Metadata = ()
        control: tuple[Instruction, ...] = ()
        names: set[str] = set(own_attrs)
        while (m := _ATTRIBUTE.match(text, c.pos)) is not None:
            name = m.group(1)
            if name in names:
                raise c.error(f"attribute {name} appears twice", m.start(1))
            names.add(name)
            c.pos = m.end()
            attr = by_name.get(name)
            if attr is not None:
                own_attrs[name] = kind_of(attr.kind).read(self.shapes)
            elif name == "metadata":
                metadata = COMMON[name].read(self.shapes)
            elif name in COMMON:
                extras[name] = COMMON[name].read(self.shapes)
            elif name == "control-predecessors":
                control = self._control(scope)
            elif name in call_names(row):
                calls[name] = self._call_list(row.many_calls and name in _LISTS)
            elif name in extra_names:
                own_attrs[name] = kind_of(ASYNC_ATTRIBUTES[name]).read(self.shapes)
            else:
                self._ignored_attribute(row, name, m.start(1))
        return _Attributes(own_attrs, calls, {k: v for k, v in extras.items() if v not in ((), "")}, metadata, control)

    def _ignored_attribute(self, row: Opcode, name: str, at: int) -> None:
        """Read an attribute that has no effect, or raise if its value would have one."""
        c = self.cursor
        if name in IGNORED_ATTRIBUTES.get(row.name, ()):
            c.string("a string")
            return
        if name not in IGNORED_VALUES.get(row.name, ()):
            allowed = sorted({*row.attr_by_name, *call_names(row), *COMMON, "control-predecessors"})
            raise c.error(f"{row.name} has no attribute {name}", at, hint=f"it takes {', '.join(allowed)}")
        word = c.name("a word")
        if word not in IGNORED_VALUES[row.name][name]:
            attribute_text = f"{row.name} with {name}={word[:40]}"
            raise UnimplementedError(f"{attribute_text} is not supported in this release", where=c.line_and_column(at))

    def _control(self, scope: _Scope) -> tuple[Instruction, ...]:
        c = self.cursor
        c.expect("{", "at the start of control-predecessors")
        predecessors: list[Instruction] = []
        while not c.accept("}"):
            if predecessors:
                c.expect(",", "between control predecessors")
            name = c.name("an instruction")
            if name not in scope.names:
                raise c.error(f"instruction {name} is not defined before its use")
            predecessors.append(scope.names[name])
        return tuple(predecessors)

    def _order_calls(self, row: Opcode, attributes: _Attributes, at: int) -> tuple[Computation, ...]:
        """Return the called computations in the row's order."""
        calls = attributes.calls
        if not calls and not row.calls:
            return ()
        if row.name in IGNORED_ATTRIBUTES:
            return ()
        if row.name == "conditional" and "branch_computations" not in calls:
            names: tuple[str, ...] = ("true_computation", "false_computation")
        else:
            names = row.calls
        if row.name in OPTIONAL_CALLS:
            return tuple(comp for group in calls.values() for comp in group)
        for name in names:
            if name not in calls:
                raise self.cursor.error(f"{row.name} needs the attribute {name}", at)
        return tuple(comp for name in names for comp in calls[name])

    def _check_complete(
        self, row: Opcode, operands: list[Instruction], attributes: _Attributes, shape: Shape | None, at: int
    ) -> None:
        """Raise if a required attribute is missing; `at` is the position after the operands."""
        if row.name == "map":
            attributes.opcode_attrs.setdefault("dimensions", tuple(range(operands[0].shape.rank)))
        for attr in row.attrs:
            if attr.required and attr.name not in attributes.opcode_attrs:
                raise self.cursor.error(f"{row.name} needs the attribute {attr.name}", at)
        if row.name == "infeed" and shape is not None and not (shape.is_tuple and len(shape.elements) == 2):
            raise self.cursor.error(f"the result of infeed is a tuple (data, token), not {shape}", at)

    def _shape_of(
        self, row: Opcode, operands: list[Instruction], attrs: dict[str, Any], called: tuple[Computation, ...],
        shape: Shape | None, at: int,
    ) -> Shape:  # fmt: skip
        """Return the stated shape, or the inferred one."""
        if shape is not None:
            return shape
        if row.name == "tuple":
            return self._check_tuple_size(Shape.tuple([o.shape for o in operands]))
        if row.name in _NOT_INFERRED:
            raise self.cursor.error(f"the shape of {row.name} must be written", at)
        try:
            inferred = infer_shape(row.name, operands, attrs, called, None)
        except HloParseError:
            raise
        except OpError as e:
            raise self.cursor.error(f"cannot infer the shape: {e.message}", at) from None
        return self._check_tuple_size(_with_operand_layout(row, operands, attrs, inferred))

    def _check_tuple_size(self, shape: Shape) -> Shape:
        """Raise if a tuple is too deep or too large; a few lines of nested tuples can be huge."""
        if shape.is_tuple:
            parts = [self.sizes.get(e, (0, 1)) for e in shape.elements]
            depth, leaves = 1 + max((d for d, _ in parts), default=0), sum(n for _, n in parts)
            if depth > MAX_NESTING or leaves > MAX_LEAVES:
                raise self.cursor.error("a tuple is nested too deep or has too many leaves")
            self.sizes[shape] = depth, leaves
        return shape

    # Async shorthand

    def _async(self, scope: _Scope, name: str, shape: Shape | None, stage: str, wrapped: str, at: int) -> Instruction:
        """Read ``<op>-start``, ``-update``, ``-done``: a chain around a computation of that operation."""
        c = self.cursor
        if stage != "start":
            row = OPCODES[f"async-{stage}"]
            if stage == "update":
                return self._update(scope, name, shape, at)
            operands = self._operands(scope, row, at)
            attributes = self._attributes(scope, row, {})
            shape = self._shape_of(row, operands, {}, (), shape, at)
            return self._add(scope, row.name, operands, attributes, shape, (), name)
        row = OPCODES[wrapped]
        operands = self._operands(scope, row, at)
        after = c.skip()
        attributes = self._attributes(scope, row, {}, tuple(ASYNC_ATTRIBUTES))
        called = self._order_calls(row, attributes, after)
        self._check_complete(row, operands, attributes, None, after)
        if shape is None or not shape.is_tuple or len(shape.elements) < 2:
            raise c.error(f"{wrapped}-start has a result ((operands), result, ..), not {shape}")
        thread = attributes.opcode_attrs.pop("async_execution_thread", "")
        start = attributes._replace(opcode_attrs={"async_execution_thread": thread})
        if (
            "output_to_operand_aliasing" in attributes.opcode_attrs
            and "output_to_operand_aliasing" not in row.attr_by_name
        ):
            start.opcode_attrs["output_to_operand_aliasing"] = attributes.opcode_attrs.pop("output_to_operand_aliasing")
        inner = self._wrap(row, operands, attributes.opcode_attrs, shape.elements[1], called, thread)
        instruction = self._add(scope, "async-start", operands, start, shape, (inner,), name)
        self.wrapped[instruction] = _Wrapped(row, attributes.opcode_attrs, called)
        return instruction

    def _update(self, scope: _Scope, name: str, shape: Shape | None, at: int) -> Instruction:
        """Read ``async-update``; one with further operands becomes the start of an operation that had none."""
        c = self.cursor
        row = OPCODES["async-update"]
        operands = self._operand_list(scope)
        if not operands:
            raise c.error("async-update takes 1 or more operands, found 0", at)
        attributes = self._attributes(scope, row, {}, ("output_to_operand_aliasing",))
        if len(operands) == 1:
            attributes.opcode_attrs.clear()
            shape = self._shape_of(row, operands, {}, (), shape, at)
            return self._add(scope, row.name, operands, attributes, shape, (), name)
        start, inputs = operands[0], operands[1:]
        if start.opcode != "async-start" or shape is None or len(shape.elements) < 2 or start.users:
            requirement = (
                "an async-update with operands must have its shape written, and be the only user of its async-start"
            )
            raise c.error(requirement, at)
        inputs = [*start.operands, *inputs]
        inner = start.called[0]
        wrapped = self.wrapped.pop(start, None)
        if wrapped is not None:
            thread = str(start.attrs["async_execution_thread"])
            inner = self._wrap(wrapped.row, inputs, wrapped.attrs, shape.elements[1], wrapped.called, thread)
        own_attrs = {"async_execution_thread": start.attrs["async_execution_thread"], **attributes.opcode_attrs}
        control = (*start.control_predecessors, *attributes.control)
        instruction = self._add(
            scope,
            "async-start",
            inputs,
            attributes._replace(opcode_attrs=own_attrs, control=control),
            shape,
            (inner,),
            name,
        )
        scope.computation.remove(start)
        scope.names.pop(start.name, None)
        if wrapped is not None:
            del self.module.computations[start.called[0].name]
            self.wrapped[instruction] = wrapped
        return instruction

    def _wrap(
        self, row: Opcode, operands: list[Instruction], attrs: dict[str, Any], shape: Shape,
        called: tuple[Computation, ...], thread: str,
    ) -> Computation:  # fmt: skip
        computation = self.module.new_computation("async_computation")
        computation.execution_thread = "" if thread == "main" else thread
        parameters = [
            computation.add("parameter", (), {"parameter_number": i}, shape=o.shape, name=f"param_{i}")
            for i, o in enumerate(operands)
        ]
        computation.root = computation.add(row.name, parameters, attrs, shape=shape, called=called, name=row.name)
        return computation

    # Arguments in the parentheses

    def _parameter_number(self, _shape: Shape | None) -> int:
        number = self.cursor.integer("the number of a parameter")
        if number < 0:
            raise self.cursor.error(f"the number of a parameter is {number}")
        return number

    def _constant(self, shape: Shape | None) -> Literal:
        if shape is None:
            raise self.cursor.error("the shape of a constant must be written")
        return read_literal(self.cursor, shape)


_PARENTHESISED: dict[str, tuple[str, Callable[[_Parser, Shape | None], Any]]] = {
    "parameter": ("parameter_number", _Parser._parameter_number),
    "constant": ("literal", _Parser._constant),
}
_LISTS = ("branch_computations", "called_computations")
# Opcodes whose operands do not determine the result shape.
_NOT_INFERRED = frozenset({
    "parameter", "constant", "iota", "custom-call", "reshape", "bitcast", "bitcast-convert", "convert", "rng",
    "rng-bit-generator", "rng-get-and-update-state", "infeed", "recv", "fusion", "async-start", "stochastic-convert",
    "dynamic-reshape", "broadcast",
})  # fmt: skip


def _with_operand_layout(row: Opcode, operands: list[Instruction], attrs: dict[str, Any], shape: Shape) -> Shape:
    """Return an inferred shape in the layout of the operand that determines it."""
    if row.name == "get-tuple-element":
        return operands[0].shape.subshape((attrs["index"],))
    follows = bool(operands) and (row.elementwise or row.name in _LAYOUT_SOURCES)
    source = operands[_LAYOUT_SOURCES.get(row.name, 0)].shape if follows else shape
    if source.layout is None or source.rank != shape.rank:
        return shape
    return shape.with_layout(source.layout)


_LAYOUT_SOURCES = {"select": 1, "clamp": 1, "reverse": 0, "copy": 0}


_LEADING_COMMENTS = re.compile(r"(?:[ \t\r]*+(?:#[^\n]*+)?+\n)++")


def _blank_leading_comments(text: str) -> str:
    """Blank out leading lines that begin with ``#``; XLA's test files have them for their runner."""
    m = _LEADING_COMMENTS.match(text)
    if m is None or "#" not in m.group():
        return text
    return re.sub(r"[^\n]", " ", m.group()) + text[m.end() :]


def _nearest(opcode: str) -> str:
    from difflib import get_close_matches

    close_matches = get_close_matches(opcode[:60], OPCODES, n=3)
    return f"did you mean {', '.join(close_matches)}?" if close_matches else ""


def parse_module(text: str) -> HloModule:
    """Read HLO text.

    Parameters
    ----------
    text : str
        A module, a lone computation, or a lone instruction.

    Returns
    -------
    HloModule
        The module; result shapes are not checked, see `cyxla.xla.hlo.verifier`.

    Raises
    ------
    HloParseError
        The text is not HLO; the error holds line and column.

    Warns
    -----
    ElidedConstantWarning
        Constants are elided as ``{...}``; they become zeros.

    Examples
    --------
    >>> parse_module("ROOT %y = f32[3] negate(f32[3] %x)").entry.root.opcode
    'negate'
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"HLO text is a str, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise Cursor(text).error("a lone surrogate is not a character", e.start) from None
    parser = _Parser(blank_comments(_blank_leading_comments(text)))
    try:
        module = parser.read()
    except RecursionError:  # the caller used most of the stack
        raise parser.cursor.error("nested too deep") from None
    if parser.elided:
        _warn_about_elided(module, parser.elided)
    return module


def _warn_about_elided(module: HloModule, names: list[str]) -> None:
    rest_text = f" and {len(names) - 1} more" if len(names) > 1 else ""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cyxla":
        frame, level = frame.f_back, level + 1
    warnings.warn(
        f"the values of constant {names[0][:60]}{rest_text} of module {module.name[:60]} were left out "
        "where it was printed "
        "({...}); they are replaced by zeros, so the results differ from those of the program: print large "
        "constants, too",
        ElidedConstantWarning,
        stacklevel=level,
    )
