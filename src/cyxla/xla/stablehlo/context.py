"""Lowering of operations to HLO: a context for each computation, a converter for the module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
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
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.attributes import Metadata
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.limits import MAX_INSTRUCTIONS
from cyxla.xla.stablehlo.attributes import Location, resolve
from cyxla.xla.stablehlo.common_attributes import extras_of
from cyxla.xla.stablehlo.function_order import Function, Functions
from cyxla.xla.stablehlo.lexer import Lexer
from cyxla.xla.stablehlo.registry import HANDLERS, MIN_OPERANDS, Handler
from cyxla.xla.stablehlo.shared_builder import SharedBuilder, SharedModule
from cyxla.xla.stablehlo.sizes.bounded import as_bounded
from cyxla.xla.stablehlo.sizes.evaluator import MAX_STEPS, Allowance, QuickAllowance, SizeEvaluator
from cyxla.xla.stablehlo.sizes.unchanged import Unchanged
from cyxla.xla.stablehlo.sizes.unknown import UnknownSizeError
from cyxla.xla.stablehlo.syntax import Operation, Region, Value

TERMINATORS = frozenset({"return", "yield"})
_COPIED = frozenset({"constant", "broadcast", "iota"})  # recomputed in a region instead of captured
_MAX_COPIED_ELEMENTS = 1024
_DIALECTS = ("stablehlo", "mhlo", "chlo")
_OTHER_OPERATIONS = frozenset(  # of dialects of MLIR that programs in these dialects use
    {
        "arith.constant", "func.call", "func.return", "sdy.manual_computation", "sdy.reshard", "sdy.return",
        "sdy.sharding_constraint", "shape.shape_of", "tensor.dim",
    }
)  # fmt: skip
_MAX_CALL_DEPTH = 32  # depth of calls of functions that are specialised at the call


class Specialisation(NamedTuple):
    """A function specialised for the sizes of one call; `constants` has its constant results, None for others."""

    computation: Computation
    constants: tuple[tuple[Any, ElementType] | None, ...]
    is_called: bool  # because of a result, or of its effects


class Converter:
    """State that the contexts of one module share.

    Attributes
    ----------
    lexer : Lexer
        Lexer of the text, for the line of an error.
    functions : Functions
        Functions by name.
    shared : SharedModule
        The module being built.
    computations : dict of str to Computation
        Functions that are computations already.
    specialisations : dict
        Functions specialised for one call's sizes, by name, argument types and the values of constant arguments.
    respecialised, max_respecialised : int
        Number of operations in all of `specialisations` but the first of each name, and its limit.
    is_dynamic : bool
        True if the text has dynamic sizes.
    unchanged : Unchanged
        Values that operations hand on.
    allowance : Allowance
        Budgets for evaluating sizes.
    """

    def __init__(
        self, lexer: Lexer, functions: Functions, aliases: dict[str, Any], name: str, sizes: Callable[[], Set[Value]]
    ) -> None:
        self.lexer = lexer
        self.functions = functions
        self.aliases = aliases
        self.shared = SharedModule(name)
        self.computations: dict[str, Computation] = {}
        self.specialisations: dict[tuple[Any, ...], Specialisation] = {}
        self.respecialised, self.max_respecialised = 0, functions.max_respecialised
        self.is_dynamic = False
        self.unchanged = Unchanged(functions)
        self.allowance = Allowance()
        self._sizes = sizes
        self.depth = 0
        self._named: set[str] = set()
        self._metadata: dict[Any, Metadata] = {}

    def is_size(self, value: Value) -> bool:
        """Return True if a size may depend on a value."""
        return value in self._sizes()

    def count(self, function: Function) -> None:
        """Count the operations of a repeated specialisation; a short text may ask for any number of them."""
        if function.name not in self._named:
            self._named.add(function.name)
            return
        self.respecialised += function.size
        if self.respecialised > self.max_respecialised:
            raise ResourceExhaustedError(
                f"@{function.name[:60]} and others are called with too many different sizes or numbers"
            )

    def metadata(self, location: Location | str | None) -> Metadata:
        """Return a location as HLO's metadata; aliases are cached."""
        metadata = self._metadata.get(location)
        if metadata is None:
            resolved = resolve(location, self.aliases)
            fields: list[tuple[str, object]] = []
            if resolved.name:
                fields.append(("op_name", resolved.name))
            if resolved.file:
                fields += [("source_file", resolved.file), ("source_line", resolved.line)]
                fields += [("source_column", resolved.column)] if resolved.column else []
            metadata = self._metadata[location] = tuple(fields)
        return metadata

    def with_location(self, error: OpError, op: Operation) -> OpError:
        """Add the operation and its line to an error, and return the error."""
        if not error.where and not isinstance(error, HloParseError):
            error.where = self._location(op)
        return error

    def _location(self, op: Operation) -> str:
        line, column = self.lexer.line_and_column(op.at)
        return f"line {line}, column {column}: {op.name[:80]}"

    def record_location(self, op: Operation, target: str) -> None:
        """Record the location of a custom call, for errors at compile time."""
        custom_call_locations = self.shared.module.custom_call_locations
        if target not in custom_call_locations:
            custom_call_locations[target] = self._location(op)


class Context:
    """The values of a computation that is being built.

    Parameters
    ----------
    converter : Converter
        Shared state of the module.
    name : str
        Suggested name of the computation.
    parent : Context, optional
        Context around the region that becomes the computation.
    """

    def __init__(self, converter: Converter, name: str, parent: Context | None = None) -> None:
        self.converter = converter
        self.builder = SharedBuilder(converter.shared, name)
        self.parent = parent
        self.values: dict[Value, XlaOp] = {}
        self.constants = SizeEvaluator(allowance=converter.allowance)
        self._quick_constants = SizeEvaluator(allowance=QuickAllowance())

    # Values

    def value(self, value: Value) -> XlaOp:
        """Return a value in this computation; a constant from an outer region is copied."""
        op = self.values.get(value)
        if op is None:
            if self.parent is None:
                raise InvalidArgumentError("a value is used outside of its region")
            op = self.values[value] = self._copy_operation(self.parent.value(value))
        return op

    def _copy_operation(self, op: XlaOp) -> XlaOp:
        assert self.parent is not None
        assert op.instruction is not None
        if is_copied(op.instruction):
            return self._copy(op.instruction)
        constant = self.parent.constants.value(op)
        if constant is None:
            raise UnimplementedError("a region that is run for each element uses a value from around it")
        return xla.constant(self.builder, constant, op.shape.dtype)

    def _copy(self, ins: Instruction) -> XlaOp:
        return self.builder.add(ins.opcode, [self._copy(o) for o in ins.operands], ins.attrs, shape=ins.shape)

    def constant_value(self, op: XlaOp) -> Any:
        """Return the value of an operation that depends on no argument, else None."""
        return self.constants.value(op)

    def constant_ints(self, op: XlaOp, name: str) -> tuple[int, ...]:
        """Return the integers of an operand that must be constant."""
        require_integers(op, name)
        value = self.constant_value(op)
        if value is None:
            hint = "export it for fixed sizes"
            if self.constants.has_given_up:
                hint += f", or compute it in fewer iterations: loops are followed for {MAX_STEPS} instructions"
            raise UnknownSizeError(f"{name} depends on the arguments of the program", hint=hint)
        return tuple(int(x) for x in value.ravel().tolist())

    def constant_int(self, op: XlaOp, name: str) -> int:
        """Return the integer of an operand that must be constant."""
        numbers = self.constant_ints(op, name)
        if len(numbers) != 1:
            raise InvalidArgumentError(f"{name} is given by {op.shape}, which is not one integer")
        return numbers[0]

    # Operations

    def run(self, region: Region) -> list[XlaOp]:
        """Lower the operations of a region, and return the values that it returns."""
        for op in region.operations:
            if op.kind in TERMINATORS:
                return [self.value(v) for v in op.operands]
            self.operation(op)
        raise InvalidArgumentError("a region ends without a return")

    def operation(self, op: Operation) -> None:
        """Lower one operation."""
        converter = self.converter
        try:
            handler = handler_of(op)
            if len(op.operands) < MIN_OPERANDS[op.kind]:
                raise InvalidArgumentError(
                    f"{op.name} has {len(op.operands)} operands, it needs {MIN_OPERANDS[op.kind]}"
                )
            operands = [self.value(v) for v in op.operands]
            self.builder.describe(converter.metadata(op.location), extras_of(op.attributes))
            results = handler(self, op, operands)
            self.bind(op, [results] if isinstance(results, XlaOp) else list(results))
        except OpError as e:
            if isinstance(e, UnknownSizeError):
                e.operation = e.operation or op
            raise converter.with_location(e, op)  # noqa: B904 - the same error
        if self.builder.instruction_count > MAX_INSTRUCTIONS:
            raise ResourceExhaustedError(f"more than {MAX_INSTRUCTIONS} instructions")

    def bind(self, op: Operation, results: Sequence[XlaOp]) -> None:
        """Set the values of an operation's results, which must have the stated types."""
        if len(results) != len(op.results):
            raise InvalidArgumentError(f"{op.name} gives {len(results)} results, but the text states {len(op.results)}")
        for value, result in zip(op.results, results, strict=True):
            if result.shape is not value.type and not fits(result.shape, value.type):
                result = as_bounded(result, value.type)
            if result.shape is not value.type and not fits(result.shape, value.type):
                raise ShapeError(f"{op.name} gives {result.shape}, but the text states {value.type}")
            self.values[value] = result

    def stated(self, op: Operation, index: int = 0) -> Shape:
        """Return the stated type of a result."""
        if index >= len(op.results):
            raise InvalidArgumentError(f"{op.name} has {len(op.results)} results")
        return op.results[index].type

    def stated_statically(self, op: Operation, index: int = 0, instead: str = "") -> Shape:
        """Return the stated type of a result that no operand gives sizes; bounds are sizes, too.

        Raises
        ------
        InvalidArgumentError
            A size is open; `instead` is an operation that takes sizes as an operand.
        """
        stated = self.stated(op, index)
        if any(UNBOUNDED in leaf.dims for leaf in stated.leaves()):
            hint = f"state the sizes, or use {instead}, which takes them as an operand" if instead else ""
            raise InvalidArgumentError(f"{op.name} has a result {stated} of open sizes", hint=hint)
        return stated

    # Computations

    def tuple_elements(self, op: XlaOp, count: int) -> list[XlaOp]:
        """Return the elements of a tuple, or a list of a single value."""
        return [op] if not op.shape.is_tuple else [xla.get_tuple_element(op, k) for k in range(count)]

    def tuple_or_single(self, ops: Sequence[XlaOp]) -> XlaOp:
        """Return a single value as it is, others as a tuple."""
        return ops[0] if len(ops) == 1 else xla.tuple_(self.builder, ops)

    def inner(self, name: str) -> Context:
        """Return a context for a region of this one."""
        return Context(self.converter, name, self)

    def parameter(self, number: int, shape: Shape, name: str = "") -> XlaOp:
        """Return argument `number` of the computation."""
        return xla.parameter(self.builder, number, shape, name or f"arg{number}")

    def embed(self, region: Region, shapes: Sequence[Shape], name: str) -> Computation:
        """Return a region as a computation with one parameter for each argument."""
        inside = self.inner(name)
        if len(region.arguments) != len(shapes):
            raise InvalidArgumentError(f"a region of {name} takes {len(region.arguments)} values, not {len(shapes)}")
        for k, (argument, shape) in enumerate(zip(region.arguments, shapes, strict=True)):
            inside.values[argument] = inside.parameter(k, shape)
        return inside.builder.finish(inside.tuple_or_single(inside.run(region)))

    def on_tuple(self, name: str, values: Sequence[Value], shapes: Sequence[Shape]) -> Context:
        """Return a context with one parameter that holds the values, in a tuple unless there is only one."""
        inside = self.inner(name)
        shape = shapes[0] if len(shapes) == 1 else Shape.tuple(list(shapes))
        parameter = inside.parameter(0, shape)
        parts = [parameter] if len(shapes) == 1 else [xla.get_tuple_element(parameter, k) for k in range(len(shapes))]
        inside.values.update(zip(values, parts, strict=True))
        return inside

    def captures(self, regions: Iterable[Region]) -> list[Value]:
        """Return the values that regions capture, except constants, which are copied."""
        used = dict.fromkeys(v for region in regions for v in region.captures)
        return [v for v in used if not self._is_copied(self.value(v), v)]

    def _is_copied(self, op: XlaOp, value: Value) -> bool:
        """Return True for constants, and for sizes of a dynamic program, which regions must know."""
        return is_copied(op.instruction) or (
            self.converter.is_dynamic and self._constant_operand(op, value) is not None
        )

    def sizes_of_loop(self, op: Operation, operands: Sequence[XlaOp]) -> frozenset[int]:
        """Return the elements of a loop's state that are sizes, or constants, and stay as they are."""
        if not self.converter.is_dynamic:
            return frozenset()
        is_kept = self.converter.unchanged.of_loop
        kept = [k for k, x in enumerate(operands) if is_kept(op, k) and self._is_copied(x, op.operands[k])]
        return frozenset(kept if len(kept) < len(operands) else kept[1:])  # a loop has a state

    def known_sizes(self, region: Region, results: Sequence[XlaOp]) -> list[Any]:
        """Return the values of a region's results that are sizes of a dynamic program and known, None for others."""
        if not self.converter.is_dynamic:
            return [None] * len(results)
        pairs = zip(results, _returned(region), strict=True)
        return [self._constant_operand(x, v) if x.shape.dtype.is_integer else None for x, v in pairs]

    def copy_from_around(self, value: Value, op: XlaOp) -> None:
        """Let a value be the copy of a constant from an outer region."""
        self.values[value] = self._copy_operation(op)

    # Functions

    def function(self, name: str, operands: Sequence[XlaOp]) -> list[XlaOp]:
        """Call a function; a dynamic one is specialised for the sizes of this call."""
        converter = self.converter
        function = converter.functions.find(name)
        if len(operands) != len(function.body.arguments):
            raise InvalidArgumentError(f"@{name} takes {len(function.body.arguments)} values, not {len(operands)}")
        done = converter.computations.get(name)
        arguments = function.body.arguments
        if done is not None and not self._has_constant_sizes(operands, arguments):
            return self._results(done, operands, len(function.type.results))
        constants = [self._constant_operand(x, v) for x, v in zip(operands, arguments, strict=True)]
        specialisation = self._specialise(function, [x.shape.logical for x in operands], constants)
        return self._call_results(
            specialisation, [x for x, value in zip(operands, constants, strict=True) if value is None]
        )

    def _has_constant_sizes(self, operands: Sequence[XlaOp], arguments: Sequence[Value]) -> bool:
        """Return True if a dynamic function is called with constant sizes."""
        return self.converter.is_dynamic and all(
            x.shape.size < 2 and self._evaluator(v).value(x) is not None
            for x, v in zip(operands, arguments, strict=True)
        )

    def _evaluator(self, value: Value) -> SizeEvaluator:
        """Return the evaluator for a value; it takes less time if no size depends on the value."""
        return self.constants if self.converter.is_size(value) else self._quick_constants

    def _constant_operand(self, op: XlaOp, value: Value) -> Any:
        """Return the value of a possible size or a constant; None if it is large or depends on arguments."""
        shape = op.shape
        if not shape.is_array or shape.is_dynamic or shape.size > _MAX_COPIED_ELEMENTS:
            return None
        is_size = shape.size < 2 or shape.dtype.is_integer
        return self._evaluator(value).value(op) if is_size or is_copied(op.instruction) else None

    def _results(self, computation: Computation, operands: Sequence[XlaOp], count: int) -> list[XlaOp]:
        call = self.builder.call("call", operands, [computation])
        return [call] if count == 1 else self.tuple_elements(call, count)

    def _call_results(self, specialisation: Specialisation, operands: Sequence[XlaOp]) -> list[XlaOp]:
        """Return the results of a call; constant ones as constants."""
        results = (
            self._results(specialisation.computation, operands, len(specialisation.constants))
            if specialisation.is_called
            else []
        )
        return [
            results[k] if value is None else xla.constant(self.builder, *value)
            for k, value in enumerate(specialisation.constants)
        ]

    def _specialise(self, function: Function, shapes: Sequence[Shape], constants: Sequence[Any]) -> Specialisation:
        converter = self.converter
        values = (None if v is None else np.asarray(v).tobytes() for v in constants)
        key = (function.name, *zip(shapes, values, strict=True))
        specialisation = converter.specialisations.get(key)
        if specialisation is None:
            converter.count(function)
            converter.depth += 1
            if converter.depth > _MAX_CALL_DEPTH:
                raise ResourceExhaustedError("calls of functions of dynamic sizes are nested too deep")
            specialisation = converter.specialisations[key] = self._build_specialisation(function, shapes, constants)
            converter.depth -= 1
        return specialisation

    def _build_specialisation(
        self, function: Function, shapes: Sequence[Shape], known: Sequence[Any]
    ) -> Specialisation:
        inside, number = Context(self.converter, function.name), 0
        for argument, shape, value in zip(function.body.arguments, shapes, known, strict=True):
            if value is not None:
                inside.values[argument] = xla.constant(inside.builder, value, shape.dtype)
                continue
            inside.values[argument] = inside.parameter(number, shape)
            number += 1
        results = inside.run(function.body)
        pairs = zip(results, _returned(function.body), strict=True)
        values = [inside._constant_operand(r, v) for r, v in pairs]
        computation = inside.builder.finish(inside.tuple_or_single(results))
        constants = tuple(None if v is None else (v, r.shape.dtype) for v, r in zip(values, results, strict=True))
        return Specialisation(computation, constants, None in constants or computation.has_side_effect)


def _returned(region: Region) -> Sequence[Value]:
    """Return the values that a region, which was run, returns."""
    return next(op for op in region.operations if op.kind in TERMINATORS).operands


def handler_of(op: Operation) -> Handler:
    """Return the function that lowers an operation."""
    is_known = op.name.partition(".")[0] in _DIALECTS or op.name in _OTHER_OPERATIONS
    handler = HANDLERS.get(op.kind) if is_known else None
    if handler is None:
        raise UnimplementedError(f"operation {op.name[:80]} is not supported in this release")
    return handler


def require_integers(op: XlaOp, name: str) -> None:
    """Raise if an operand that gives sizes is not an array of integers."""
    if not op.shape.is_array or not op.shape.dtype.is_integer:
        raise InvalidArgumentError(f"{name} is given by {op.shape}, which is not of integers")


def is_copied(ins: Instruction | None) -> bool:
    """Return True if an instruction is copied into a region instead of captured."""
    if ins is None or ins.opcode not in _COPIED or ins.shape.is_tuple:
        return False
    if ins.opcode == "broadcast":
        return ins.operands[0].opcode == "constant" and ins.operands[0].shape.size == 1
    return ins.opcode == "iota" or ins.shape.size <= _MAX_COPIED_ELEMENTS


def fits(actual: Shape, stated: Shape) -> bool:
    """Return True if a value has the stated type, which may be dynamic."""
    if actual.is_tuple or stated.is_tuple:
        same = len(actual.elements) == len(stated.elements) and actual.is_tuple and stated.is_tuple
        return same and all(map(fits, actual.elements, stated.elements))
    if actual is TOKEN or stated is TOKEN or actual.dtype is not stated.dtype:
        return actual is stated
    return actual.rank == stated.rank and all(
        UNBOUNDED in (a, b) or a == b for a, b in zip(actual.dims, stated.dims, strict=True)
    )
