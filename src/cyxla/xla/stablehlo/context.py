"""Operations to HLO: one context for each computation, one converter for the module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cyxla.errors import (
    HloParseError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    ShapeError,
    UnimplementedError,
)
from cyxla.types import TOKEN, UNBOUNDED, ElementType, Shape
from cyxla.xla.evaluator.known_values import ConstantEvaluator
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.attributes import Metadata
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.limits import MAX_INSTRUCTIONS
from cyxla.xla.stablehlo.attributes import Location, resolve
from cyxla.xla.stablehlo.extras import extras_of
from cyxla.xla.stablehlo.functions import Function, Functions
from cyxla.xla.stablehlo.lexer import Lexer
from cyxla.xla.stablehlo.registry import HANDLERS, LEAST
from cyxla.xla.stablehlo.scope import Scope, SharedModule
from cyxla.xla.stablehlo.syntax import Operation, Region, Value

_TERMINATORS = frozenset({"return", "yield"})
_CHEAP = frozenset({"constant", "broadcast", "iota"})  # repeated in a region rather than handed to it
_CHEAP_ELEMENTS = 1024
_DIALECTS = ("stablehlo", "mhlo", "chlo", "func", "sdy", "arith", "shape", "tensor")
_MOST_NESTED = 32  # calls within calls of functions that are made when they are called


class Made(NamedTuple):
    """A function made for the sizes of one call; `known` are results that are constants, None for others."""

    computation: Computation
    known: tuple[tuple[Any, ElementType] | None, ...]
    is_called: bool  # for a result, or for its effects


class Converter:
    """What the contexts of one module share.

    Attributes
    ----------
    lexer : Lexer
        For the line of an error.
    functions : Functions
        By name.
    shared : SharedModule
        The module being built.
    computations : dict of str to Computation
        Functions that are computations already.
    made : dict
        Functions made for one call's sizes, by their name, the types of arguments and the values of those known.
    made_again, most_again : int
        Operations in all of `made` but the first of each name, and how many there may be.
    is_open : bool
        The text leaves sizes open.
    """

    def __init__(self, lexer: Lexer, functions: Functions, aliases: dict[str, Any], name: str) -> None:
        self.lexer = lexer
        self.functions = functions
        self.aliases = aliases
        self.shared = SharedModule(name)
        self.computations: dict[str, Computation] = {}
        self.made: dict[tuple[Any, ...], Made] = {}
        self.made_again, self.most_again = 0, functions.most_again
        self.is_open = False
        self.depth = 0
        self._named: set[str] = set()
        self._metadata: dict[Any, Metadata] = {}

    def count(self, function: Function) -> None:
        """Count what is made of a function again; a short text may ask for any number of sizes."""
        if function.name not in self._named:
            self._named.add(function.name)
            return
        self.made_again += function.size
        if self.made_again > self.most_again:
            raise ResourceExhaustedError(
                f"@{function.name[:60]} and others are called with too many different sizes or numbers"
            )

    def metadata(self, location: Location | str | None) -> Metadata:
        """A location as HLO's metadata; those of aliases are made once."""
        found = self._metadata.get(location)
        if found is None:
            place = resolve(location, self.aliases)
            fields: list[tuple[str, object]] = []
            if place.name:
                fields.append(("op_name", place.name))
            if place.file:
                fields += [("source_file", place.file), ("source_line", place.line)]
                fields += [("source_column", place.column)] if place.column else []
            found = self._metadata[location] = tuple(fields)
        return found

    def located(self, error: OpError, op: Operation) -> OpError:
        """An error that names the operation and its line."""
        if not error.where and not isinstance(error, HloParseError):
            error.where = self._place(op)
        return error

    def _place(self, op: Operation) -> str:
        line, column = self.lexer.place(op.at)
        return f"line {line}, column {column}: {op.name[:80]}"

    def remember(self, op: Operation, target: str) -> None:
        """Keep where a custom call stands: whether anything computes its target shows when the module is compiled."""
        places = self.shared.module.places
        if target not in places:
            places[target] = self._place(op)


class Context:
    """The values of a computation while it is made.

    Parameters
    ----------
    converter : Converter
        Shared.
    name : str
        Wished name of the computation.
    parent : Context, optional
        What is around the region that becomes the computation.
    """

    def __init__(self, converter: Converter, name: str, parent: Context | None = None) -> None:
        self.converter = converter
        self.builder = Scope(converter.shared, name)
        self.parent = parent
        self.values: dict[Value, XlaOp] = {}
        self.known = ConstantEvaluator()

    # Values

    def value(self, value: Value) -> XlaOp:
        """What a value is in this computation; a constant from around it is repeated."""
        found = self.values.get(value)
        if found is None:
            if self.parent is None:
                raise InvalidArgumentError("a value is used outside of its region")
            found = self.values[value] = self._repeated(self.parent.value(value))
        return found

    def _repeated(self, op: XlaOp) -> XlaOp:
        assert self.parent is not None
        assert op.instruction is not None
        if is_cheap(op.instruction):
            return self._copy(op.instruction)
        known = self.parent.known.value(op)
        if known is None:
            raise UnimplementedError("a region that is run for each element uses a value from around it")
        return xla.constant(self.builder, known, op.shape.dtype)

    def _copy(self, ins: Instruction) -> XlaOp:
        return self.builder.add(ins.opcode, [self._copy(o) for o in ins.operands], ins.attrs, shape=ins.shape)

    def array(self, op: XlaOp) -> Any:
        """The value of an operation that depends on no argument, else None."""
        return self.known.value(op)

    def numbers(self, op: XlaOp, what: str) -> tuple[int, ...]:
        """The integers of an operand that must be known."""
        found = self.array(op)
        if found is None:
            raise UnimplementedError(
                f"{what} depends on the arguments of the program", hint="export it for fixed sizes"
            )
        return tuple(int(x) for x in found.ravel().tolist())

    # Operations

    def run(self, region: Region) -> list[XlaOp]:
        """Make the operations of a region; returns what it returns."""
        for op in region.operations:
            if op.kind in _TERMINATORS:
                return [self.value(v) for v in op.operands]
            self.operation(op)
        raise InvalidArgumentError("a region ends without a return")

    def operation(self, op: Operation) -> None:
        """Make one operation."""
        converter = self.converter
        try:
            handler = HANDLERS.get(op.kind) if op.name.partition(".")[0] in _DIALECTS else None
            if handler is None:
                raise UnimplementedError(f"operation {op.name[:80]} is not read by this release")
            if len(op.operands) < LEAST[op.kind]:
                raise InvalidArgumentError(f"{op.name} has {len(op.operands)} operands, it needs {LEAST[op.kind]}")
            operands = [self.value(v) for v in op.operands]
            self.builder.describe(converter.metadata(op.location), extras_of(op.attributes))
            made = handler(self, op, operands)
            self.bind(op, [made] if isinstance(made, XlaOp) else list(made))
        except OpError as e:
            raise converter.located(e, op)  # noqa: B904 - the same error
        if self.builder.instruction_count > MAX_INSTRUCTIONS:
            raise ResourceExhaustedError(f"more than {MAX_INSTRUCTIONS} instructions")

    def bind(self, op: Operation, made: Sequence[XlaOp]) -> None:
        """Give an operation's results their values, which must have the types that the text states."""
        if len(made) != len(op.results):
            raise InvalidArgumentError(f"{op.name} gives {len(made)} results, but the text states {len(op.results)}")
        for value, found in zip(op.results, made, strict=True):
            if found.shape is not value.type and not fits(found.shape, value.type):
                raise ShapeError(f"{op.name} gives {found.shape}, but the text states {value.type}")
            self.values[value] = found

    def stated(self, op: Operation, index: int = 0) -> Shape:
        """The type that the text gives a result."""
        if index >= len(op.results):
            raise InvalidArgumentError(f"{op.name} has {len(op.results)} results")
        return op.results[index].type

    # Computations

    def parts(self, op: XlaOp, count: int) -> list[XlaOp]:
        """The elements of a tuple; of one value, the value."""
        return [op] if not op.shape.is_tuple else [xla.get_tuple_element(op, k) for k in range(count)]

    def bundle(self, ops: Sequence[XlaOp]) -> XlaOp:
        """One value as it is, others as a tuple."""
        return ops[0] if len(ops) == 1 else xla.tuple_(self.builder, ops)

    def inner(self, name: str) -> Context:
        """A context for a region of this one."""
        return Context(self.converter, name, self)

    def parameter(self, number: int, shape: Shape, name: str = "") -> XlaOp:
        """Argument `number` of the computation."""
        return xla.parameter(self.builder, number, shape, name or f"arg{number}")

    def embed(self, region: Region, shapes: Sequence[Shape], name: str) -> Computation:
        """A region as a computation of its own, each argument a parameter."""
        inside = self.inner(name)
        if len(region.arguments) != len(shapes):
            raise InvalidArgumentError(f"a region of {name} takes {len(region.arguments)} values, not {len(shapes)}")
        for k, (argument, shape) in enumerate(zip(region.arguments, shapes, strict=True)):
            inside.values[argument] = inside.parameter(k, shape)
        return inside.builder.finish(inside.bundle(inside.run(region)))

    def on_tuple(self, name: str, values: Sequence[Value], shapes: Sequence[Shape]) -> Context:
        """A context whose one parameter holds values, in a tuple unless it is one."""
        inside = self.inner(name)
        whole = shapes[0] if len(shapes) == 1 else Shape.tuple(list(shapes))
        given = inside.parameter(0, whole)
        parts = [given] if len(shapes) == 1 else [xla.get_tuple_element(given, k) for k in range(len(shapes))]
        inside.values.update(zip(values, parts, strict=True))
        return inside

    def captures(self, regions: Iterable[Region]) -> list[Value]:
        """What regions use from around them and must be handed; constants they repeat."""
        used = dict.fromkeys(v for region in regions for v in region.captures)
        return [v for v in used if not is_cheap(self.value(v).instruction)]

    # Functions

    def function(self, name: str, operands: Sequence[XlaOp]) -> list[XlaOp]:
        """Call a function; one whose sizes depend on its arguments is made for those of this call."""
        converter = self.converter
        function = converter.functions.find(name)
        if len(operands) != len(function.body.arguments):
            raise InvalidArgumentError(f"@{name} takes {len(function.body.arguments)} values, not {len(operands)}")
        done = converter.computations.get(name)
        if done is not None and not self._settles(operands):
            return self._results(done, operands, len(function.type.results))
        known = [self._known(x) for x in operands]
        made = self._made(function, [x.shape.logical for x in operands], known)
        return self._called(made, [x for x, value in zip(operands, known, strict=True) if value is None])

    def _settles(self, operands: Sequence[XlaOp]) -> bool:
        """Whether a function of sizes is called with sizes that are known."""
        return self.converter.is_open and all(x.shape.size < 2 and self.array(x) is not None for x in operands)

    def _known(self, op: XlaOp) -> Any:
        """The value of what may be a size, or is a constant; None where it is large or depends on arguments."""
        shape = op.shape
        if not shape.is_array or shape.is_dynamic or shape.size > _CHEAP_ELEMENTS:
            return None
        is_size = shape.size < 2 or shape.dtype.is_integer
        return self.array(op) if is_size or is_cheap(op.instruction) else None

    def _results(self, computation: Computation, operands: Sequence[XlaOp], count: int) -> list[XlaOp]:
        made = self.builder.call("call", operands, [computation])
        return [made] if count == 1 else self.parts(made, count)

    def _called(self, made: Made, operands: Sequence[XlaOp]) -> list[XlaOp]:
        """The results, those known as constants."""
        results = self._results(made.computation, operands, len(made.known)) if made.is_called else []
        return [
            results[k] if value is None else xla.constant(self.builder, *value) for k, value in enumerate(made.known)
        ]

    def _made(self, function: Function, shapes: Sequence[Shape], known: Sequence[Any]) -> Made:
        converter = self.converter
        values = (None if v is None else np.asarray(v).tobytes() for v in known)
        key = (function.name, *zip(shapes, values, strict=True))
        found = converter.made.get(key)
        if found is None:
            converter.count(function)
            converter.depth += 1
            if converter.depth > _MOST_NESTED:
                raise ResourceExhaustedError("calls of functions of dynamic sizes are nested too deep")
            found = converter.made[key] = self._make(function, shapes, known)
            converter.depth -= 1
        return found

    def _make(self, function: Function, shapes: Sequence[Shape], known: Sequence[Any]) -> Made:
        inside, number = Context(self.converter, function.name), 0
        for argument, shape, value in zip(function.body.arguments, shapes, known, strict=True):
            if value is not None:
                inside.values[argument] = xla.constant(inside.builder, value, shape.dtype)
                continue
            inside.values[argument] = inside.parameter(number, shape)
            number += 1
        results = inside.run(function.body)
        values = [inside._known(r) for r in results]
        computation = inside.builder.finish(inside.bundle(results))
        constants = tuple(None if v is None else (v, r.shape.dtype) for v, r in zip(values, results, strict=True))
        return Made(computation, constants, None in constants or computation.has_side_effect)


def is_cheap(ins: Instruction | None) -> bool:
    """Whether an instruction is better repeated in a region than handed to it."""
    if ins is None or ins.opcode not in _CHEAP or ins.shape.is_tuple:
        return False
    if ins.opcode == "broadcast":
        return ins.operands[0].opcode == "constant" and ins.operands[0].shape.size == 1
    return ins.opcode == "iota" or ins.shape.size <= _CHEAP_ELEMENTS


def fits(found: Shape, stated: Shape) -> bool:
    """Whether a value may have the type that the text states, where sizes may be open."""
    if found.is_tuple or stated.is_tuple:
        same = len(found.elements) == len(stated.elements) and found.is_tuple and stated.is_tuple
        return same and all(map(fits, found.elements, stated.elements))
    if found is TOKEN or stated is TOKEN or found.dtype is not stated.dtype:
        return found is stated
    return found.rank == stated.rank and all(
        UNBOUNDED in (a, b) or a == b for a, b in zip(found.dims, stated.dims, strict=True)
    )
