"""Writer of HLO as StableHLO text: functions, mostly in MLIR's generic form, which every reader accepts.

Tuples are flattened: a tuple is a list of values, loops carry and functions return several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from cyxla.errors import UnimplementedError
from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.stablehlo.write_values import type_of

Value: TypeAlias = "str | list[Value]"
Attributes: TypeAlias = dict[str, str]
Write: TypeAlias = "Callable[[Block, Instruction], Value]"
#: Writer of each opcode; importing `write_ops` fills the table.
WRITERS: dict[str, Write] = {}


def write_stablehlo(module: HloModule) -> str:
    """Return the StableHLO text of a module.

    Parameters
    ----------
    module : HloModule
        A verified module.

    Returns
    -------
    str
        A function ``@main`` with one result for each array of a tuple root, and one function for each computation that
        is called.

    Raises
    ------
    UnimplementedError
        An opcode has no form in StableHLO; the message names it.
    """
    writer = Writer()
    entry = writer.function(module.entry, "main", public=True)
    functions = [entry]
    while writer.pending:
        computation = writer.pending.pop()
        functions.append(writer.function(computation, writer.functions[computation], public=False))
    name = _symbol(module.name) or "module"
    return "\n".join([f"module @{name} {{", *functions, "}", ""])


def _symbol(text: str) -> str:
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text)
    return f"_{name}" if name[:1].isdigit() else name


def leaves(value: Value) -> list[str]:
    """Return the values in a nested list."""
    return [value] if isinstance(value, str) else [leaf for part in value for leaf in leaves(part)]


def shapes_of(shape: Shape) -> list[Shape]:
    """Return the shapes of the values in a tuple, also nested ones."""
    return [s for e in shape.elements for s in shapes_of(e)] if shape.is_tuple else [shape]


def nested(shape: Shape, names: Iterable[str]) -> Value:
    """Return names as the elements of a nested tuple."""
    rest = iter(names)

    def build(part: Shape) -> Value:
        return [build(e) for e in part.elements] if part.is_tuple else next(rest)

    return build(shape)


def result_types(types: Sequence[str]) -> str:
    """Return the result types of a function type."""
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


@dataclass
class Writer:
    """Writer of a module, one function at a time.

    Attributes
    ----------
    functions : dict of Computation to str
        Names of the functions that are called.
    pending : list of Computation
        Functions that are not written yet.
    """

    functions: dict[Computation, str] = field(default_factory=dict)
    pending: list[Computation] = field(default_factory=list)

    def callee(self, computation: Computation) -> str:
        """Return the name of a function, and schedule it for writing."""
        if computation not in self.functions:
            name = _symbol(computation.name) or "function"
            used = {"main", *self.functions.values()}
            unique = next(n for n in [name, *(f"{name}_{k}" for k in range(len(used) + 1))] if n not in used)
            self.functions[computation] = unique
            self.pending.append(computation)
        return self.functions[computation]

    def function(self, computation: Computation, name: str, *, public: bool) -> str:
        """Return the text of a function."""
        block = Block(self, "    ")
        parameters: list[str] = []
        arguments: list[Value] = []
        for p in computation.parameters:
            names = [f"%arg{len(parameters) + k}" for k in range(len(shapes_of(p.shape)))]
            parameters += [f"{n}: {type_of(s)}" for n, s in zip(names, shapes_of(p.shape), strict=True)]
            arguments.append(nested(p.shape, names))
        root = leaves(block.run(computation, arguments))
        types = [type_of(s) for s in shapes_of(computation.root.shape)]
        block.lines.append(f"    func.return {', '.join(root)} : {', '.join(types)}" if root else "    func.return")
        kind = "public" if public else "private"
        head = f"  func.func {kind} @{name}({', '.join(parameters)}) -> ({', '.join(types)}) {{"
        return "\n".join([head, *block.lines, "  }"])


class Block:
    """The operations of one region.

    Parameters
    ----------
    writer : Writer
        Writer of the module, which names functions.
    indent : str
        Indentation of each line.
    outer : Block, optional
        The outer block, whose names are taken.
    """

    def __init__(self, writer: Writer, indent: str, outer: Block | None = None) -> None:
        self.writer, self.indent = writer, indent
        self.lines: list[str] = []
        self.values: dict[Instruction, Value] = {}
        self.counter: list[int] = outer.counter if outer is not None else [0]

    def unused_name(self) -> str:
        """Return an unused name."""
        self.counter[0] += 1
        return f"%{self.counter[0] - 1}"

    def run(self, computation: Computation, parameters: Sequence[Value]) -> Value:
        """Write the operations of a computation, and return its result."""
        for ins in computation.post_order():
            if ins.opcode == "parameter":
                self.values[ins] = parameters[ins.attrs["parameter_number"]]
            else:
                self.values[ins] = self._write(ins)
        return self.values[computation.root]

    def _write(self, ins: Instruction) -> Value:
        write = WRITERS.get(ins.opcode)
        if write is None:
            raise UnimplementedError(f"{ins.opcode} has no form in StableHLO", where=repr(ins))
        return write(self, ins)

    def operands(self, ins: Instruction) -> list[str]:
        """Return the names of an instruction's operands, with tuples flattened."""
        return [leaf for o in ins.operands for leaf in leaves(self.values[o])]

    def emit(
        self, name: str, ins: Instruction, attributes: Attributes | None = None, regions: Sequence[Region] = (),
        operands: Sequence[tuple[str, Shape]] | None = None, result: Shape | None = None,
    ) -> Value:  # fmt: skip
        """Write an operation in the generic form.

        Parameters
        ----------
        name : str
            Name with its dialect.
        ins : Instruction
            The instruction, whose operands and result shape are the defaults.
        attributes : dict, optional
            Texts of attributes by name.
        regions : sequence of Region
            Regions of the operation.
        operands : sequence of (str, Shape), optional
            Names and shapes of the operands.
        result : Shape, optional
            Result shape, a tuple for several results.
        """
        operand_pairs = operands if operands is not None else [
            (n, s) for o in ins.operands for n, s in zip(leaves(self.values[o]), shapes_of(o.shape), strict=True)
        ]  # fmt: skip
        shape = result if result is not None else ins.shape
        types = [type_of(s) for s in shapes_of(shape)]
        attribute_text = ", ".join(f"{k} = {v}" if v else k for k, v in (attributes or {}).items())
        parts = [
            f'"{name}"({", ".join(n for n, _ in operand_pairs)})', f" <{{{attribute_text}}}>" if attribute_text else "",
            self._regions(regions), f" : ({', '.join(type_of(s) for _, s in operand_pairs)}) -> {result_types(types)}",
        ]  # fmt: skip
        return self.assign("".join(parts), shape)

    def assign(self, text: str, shape: Shape) -> Value:
        """Write a line that defines the values of a shape."""
        count = len(shapes_of(shape))
        if not count:
            self.lines.append(f"{self.indent}{text}")
            return nested(shape, ())
        name = self.unused_name()
        self.lines.append(f"{self.indent}{name}{f':{count}' if count > 1 else ''} = {text}")
        return nested(shape, [name] if count == 1 else [f"{name}#{k}" for k in range(count)])

    def _regions(self, regions: Sequence[Region]) -> str:
        if not regions:
            return ""
        return f" ({', '.join(self._region(r) for r in regions)})"

    def _region(self, region: Region) -> str:
        inner = Block(self.writer, self.indent + "  ", self)
        names = [inner.unused_name() for _ in region.arguments]
        head = ", ".join(f"{n}: {type_of(s)}" for n, s in zip(names, region.arguments, strict=True))
        root = leaves(inner.run(region.computation, region.parameters(names)))
        types = ", ".join(type_of(s) for s in shapes_of(region.computation.root.shape))
        lines = [f"{self.indent}^bb0({head}):"] if names else []
        lines += [*inner.lines, f'{inner.indent}"stablehlo.return"({", ".join(root)}) : ({types}) -> ()']
        return "\n".join(["{", *lines, f"{self.indent}}}"])


@dataclass(frozen=True)
class Region:
    """A computation as a region of an operation.

    Attributes
    ----------
    computation : Computation
        Computation with the region's operations.
    arguments : sequence of Shape
        Shapes of the region's arguments.
    parameters : callable
        Function from the names of the arguments to the parameters of the computation.
    """

    computation: Computation
    arguments: Sequence[Shape]
    parameters: Callable[[list[str]], Sequence[Any]]

    @staticmethod
    def of(computation: Computation) -> Region:
        """Return a region with the parameters of the computation as arguments, tuples flattened."""
        shapes = [p.shape for p in computation.parameters]
        flat = [s for shape in shapes for s in shapes_of(shape)]

        def parameters(names: list[str]) -> list[Value]:
            rest = iter(names)
            return [nested(shape, rest) for shape in shapes]

        return Region(computation, flat, parameters)
