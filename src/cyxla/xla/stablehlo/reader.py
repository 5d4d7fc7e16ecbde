"""Reader of StableHLO text into HLO modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from cyxla.errors import InvalidArgumentError, OpError, ShapeError
from cyxla.types import UNBOUNDED, Shape
from cyxla.xla.hlo import HloModule
from cyxla.xla.hlo.attributes import BufferDonor, InputOutputAlias
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.limits import MAX_INSTRUCTIONS
from cyxla.xla.stablehlo import chlo, collective, contraction, control, data_movement, elementwise, functional
from cyxla.xla.stablehlo.common_attributes import extras_of
from cyxla.xla.stablehlo.context import TERMINATORS, Context, Converter, fits, handler_of
from cyxla.xla.stablehlo.detect import BYTE_ORDER_MARK
from cyxla.xla.stablehlo.function_order import Function, Functions, walk
from cyxla.xla.stablehlo.parser import Parser
from cyxla.xla.stablehlo.sizes.dependence import Dependence
from cyxla.xla.stablehlo.sizes.unknown import UnknownSizeError
from cyxla.xla.stablehlo.syntax import Operation, Region
from cyxla.xla.stablehlo.types import unsupported

_ = (chlo, collective, contraction, control, elementwise, functional, data_movement)  # registers handlers


def read_stablehlo(text: str, arguments: Sequence[Shape] | None = None) -> HloModule:
    """Read StableHLO (or MHLO, or CHLO) in MLIR's text form, pretty or generic.

    Parameters
    ----------
    text : str
        A module, or functions. The entry is `@main`, or the only function that is not private.
    arguments : sequence of Shape, optional
        Shapes of the arguments, for a program with dynamic sizes.

    Returns
    -------
    HloModule
        The module; several results are a tuple.

    Raises
    ------
    HloParseError
        The text is not MLIR; the error has line and column.
    InvalidArgumentError
        The text violates a rule of StableHLO; `where` names the operation and its line.
    UnimplementedError
        The text uses an unsupported feature, which the message names.

    Examples
    --------
    >>> text = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {"
    >>> text += " %0 = stablehlo.negate %x : tensor<3xf32> return %0 : tensor<3xf32> }"
    >>> read_stablehlo(text).entry.root.opcode
    'negate'
    """
    return StableHloProgram(text).module(arguments)


class StableHloProgram:
    """A text that is read once, and lowered for any shapes of its arguments.

    Parameters
    ----------
    text : str
        A module, or functions; see `read_stablehlo`.

    Attributes
    ----------
    entry : Function
        The function that is the program.
    """

    def __init__(self, text: str) -> None:
        parser = self._parser = Parser(text.removeprefix(BYTE_ORDER_MARK))
        with _within_stack(parser):
            module, body = _module_of(parser, parser.read())
            self._attributes = module.attributes if module is not None else {}
            self.functions = Functions(parser.lexer)
            for op in _functions(parser, body):
                self.functions.add(op)
            self.entry = self.functions.entry()
        self._name = str(self._attributes.get("sym_name") or self.entry.name)

    @cached_property
    def dependence(self) -> Dependence:
        """The origins of the program's values."""
        return Dependence(self.functions, self.entry)

    def module(self, arguments: Sequence[Shape] | None = None, values: Mapping[int, Any] | None = None) -> HloModule:
        """Return the program as HLO.

        Parameters
        ----------
        arguments : sequence of Shape, optional
            Shapes of the arguments; by default those that the text states.
        values : mapping of int to array, optional
            Values of some arguments. The module is correct for them alone; it has parameters for these arguments too.

        Raises
        ------
        UnknownSizeError
            A size depends on values of other arguments.
        """
        entry, parser = self.entry, self._parser
        aliases = parser.attributes.aliases
        converter = Converter(parser.lexer, self.functions, aliases, self._name, lambda: self.dependence.sizes)
        converter.is_dynamic = entry.is_dynamic or bool(values)
        try:
            with _within_stack(parser):
                self._build_functions(converter)
                shapes = _argument_shapes(entry, arguments)
                _build_function(converter, entry, shapes, entry.op.attributes.get("arg_attrs") or [], values or {})
        except OpError as e:
            raise converter.with_location(e, entry.op)  # noqa: B904 - the same error
        converted = converter.shared.module
        converted.entry = converter.computations[entry.name]
        converted.computations = {c.name: c for c in converted.post_order()}
        _configure(converted, self._attributes, entry)
        return converted

    def require_supported(self) -> None:
        """Check that all operations are supported, before the sizes of arguments are known.

        Raises
        ------
        UnimplementedError
            An operation is not supported; `where` has its line.
        """
        converter = Converter(self._parser.lexer, self.functions, {}, self._name, set)
        operations = (op for f in self.functions.in_order(self.entry) for op in walk(f.op))
        for op in operations:
            try:
                _ = op.kind in TERMINATORS or handler_of(op)
            except OpError as e:
                raise converter.with_location(e, op)  # noqa: B904 - the same error

    def _build_functions(self, converter: Converter) -> None:
        """Build the functions of known sizes; others are specialised for each call."""
        for function in self.functions.in_order(self.entry)[:-1]:
            if function.op.regions and not function.is_dynamic:
                try:
                    _build_function(converter, function, function.type.inputs, [], {})
                except UnknownSizeError:
                    function.is_dynamic = True


@contextmanager
def _within_stack(parser: Parser) -> Iterator[None]:
    try:
        yield
    except RecursionError:  # the caller used most of the stack
        raise parser.lexer.error("nested too deep") from None


def _module_of(parser: Parser, top: Region) -> tuple[Operation | None, Region]:
    modules = [op for op in top.operations if op.name == "builtin.module"]
    if not modules:
        return None, top
    if len(modules) > 1 or len(top.operations) > 1:
        other = next(op for op in top.operations if op is not modules[0])
        raise parser.lexer.error(f"expected the end after a module, found {other.name[:40]}", other.at)
    if len(modules[0].regions) != 1:
        raise parser.lexer.error("a module has one region", modules[0].at)
    return modules[0], modules[0].regions[0]


_IGNORED = frozenset({"sdy.mesh", "ml_program.global"})


def _functions(parser: Parser, body: Region) -> Iterator[Operation]:
    for op in body.operations:
        if op.name == "func.func":
            yield op
        elif op.name == "builtin.module":
            raise unsupported(parser.lexer, "a module inside a module", op.at)
        elif op.name not in _IGNORED:
            raise parser.lexer.error(f"expected a function, found {op.name[:40]}", op.at)


def _build_function(
    converter: Converter,
    function: Function,
    shapes: Sequence[Shape],
    attributes: Sequence[Any],
    values: Mapping[int, Any],
) -> None:
    """Build the computation of a function; attributes and known values are those of its arguments."""
    context, body = Context(converter, function.name), function.body
    for k, (argument, shape) in enumerate(zip(body.arguments, shapes, strict=True)):
        argument_attributes = attributes[k] if k < len(attributes) else None
        context.builder.describe((), extras_of(argument_attributes) if isinstance(argument_attributes, dict) else {})
        parameter = context.parameter(k, shape)
        context.values[argument] = (
            parameter if k not in values else xla.constant(context.builder, values[k], shape.dtype)
        )
    context.builder.describe((), {})
    results = context.run(body)
    _check_results(function, [r.shape for r in results])
    context.builder.describe((), {})
    converter.computations[function.name] = context.builder.finish(context.tuple_or_single(results))


def _check_results(function: Function, shapes: list[Shape]) -> None:
    stated = function.type.results
    if len(stated) != len(shapes) or not all(map(fits, shapes, stated)):
        texts = [", ".join(map(str, s)) for s in (shapes, stated)]
        raise InvalidArgumentError(f"@{function.name[:60]} returns ({texts[0]}), but its type is ({texts[1]})")


def _argument_shapes(entry: Function, arguments: Sequence[Shape] | None) -> Sequence[Shape]:
    """Return the shapes of the entry's arguments, all of them static."""
    stated = entry.type.inputs
    shapes = stated if arguments is None else arguments
    if len(shapes) != len(stated):
        raise InvalidArgumentError(f"@{entry.name[:60]} takes {len(stated)} arguments, not {len(shapes)}")
    for k, (shape, type_) in enumerate(zip(shapes, stated, strict=True)):
        if not fits(shape, type_):
            raise ShapeError(f"argument {k} of @{entry.name[:60]} is {type_}, not {shape}")
        if any(UNBOUNDED in leaf.dims for leaf in shape.leaves()):
            raise UnknownSizeError(
                f"argument {k} of @{entry.name[:60]} is {shape}, which has no bounds",
                hint="give the shapes of the arguments: cyxla.compile(text, *arrays)",
            )
    return [shape.logical for shape in shapes]


def _configure(module: HloModule, attributes: dict[str, Any], entry: Function) -> None:
    """Set the module's configuration from the attributes of the module and of the entry's arguments."""
    config = module.config
    for name, field in (("mhlo.num_replicas", "replica_count"), ("mhlo.num_partitions", "num_partitions")):
        count = attributes.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and 0 < count < MAX_INSTRUCTIONS:
            setattr(config, field, count)
    argument_attributes = entry.op.attributes.get("arg_attrs") or []
    several = len(entry.type.results) != 1
    aliases, donors = [], []
    for k, attrs in enumerate(argument_attributes):
        target = attrs.get("tf.aliasing_output") if isinstance(attrs, dict) else None
        if isinstance(target, int) and 0 <= target < len(entry.type.results):
            aliases.append(InputOutputAlias((target,) if several else (), k, ()))
        elif isinstance(attrs, dict) and attrs.get("jax.buffer_donor") is True:
            donors.append(BufferDonor(k, ()))
    config.input_output_alias, config.buffer_donor = tuple(aliases), tuple(donors)
