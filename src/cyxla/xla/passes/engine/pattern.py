"""Patterns over HLO: the language of the left and the right side of a rewriting rule.

`Var` stands for any instruction, `attr` for any attribute value, a number for an array that holds it everywhere::

    x, p, q = Var("x"), attr("p"), attr("q")
    x * 1
    op("transpose", op("transpose", x, dimensions=p), dimensions=q)

A variable that occurs twice stands for one instruction, or one value of an attribute. On the right side an attribute
may be computed from others: ``dimensions=compute(compose, p, q)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from cyxla.errors import InvalidArgumentError
from cyxla.types import ElementType, Literal, Shape
from cyxla.xla.hlo import Computation, Instruction, infer_shape, lookup

#: Opcodes of instructions that may hold one number everywhere.
UNIFORM: Final = frozenset({"constant", "broadcast"})
Bound: TypeAlias = dict[str, Any]


class Match:
    """Values of the variables of a pattern: ``m.x`` is the instruction or attribute value of the variable ``x``.

    Attributes
    ----------
    root : Instruction
        Instruction that matched.
    """

    __slots__ = ("_bound", "root")

    def __init__(self, root: Instruction, bound: Bound) -> None:
        self.root, self._bound = root, bound

    def __getattr__(self, name: str) -> Any:
        try:
            return self._bound[name]
        except KeyError:
            raise AttributeError(f"the pattern has no variable {name!r}") from None


class Pattern(ABC):
    """Base class of patterns of instructions; arithmetic on patterns gives patterns."""

    @abstractmethod
    def match(self, ins: Instruction, bound: Bound) -> bool:
        """Return whether an instruction matches; the values of variables are added to `bound`."""

    @abstractmethod
    def build(self, m: Match, computation: Computation, shape: Shape) -> Instruction:
        """Build the instructions of the pattern; `shape` is the shape of constants, and of stated results."""

    def opcodes(self) -> frozenset[str] | None:
        """Return the opcodes that may match; None for any."""
        return None

    def orders(self) -> Iterator[Pattern]:
        """Yield the pattern with the operands of commutative opcodes in every order."""
        yield self

    def __add__(self, other: Operand) -> Op:
        return op("add", self, other)

    def __sub__(self, other: Operand) -> Op:
        return op("subtract", self, other)

    def __mul__(self, other: Operand) -> Op:
        return op("multiply", self, other)

    def __truediv__(self, other: Operand) -> Op:
        return op("divide", self, other)

    def __mod__(self, other: Operand) -> Op:
        return op("remainder", self, other)

    def __pow__(self, other: Operand) -> Op:
        return op("power", self, other)

    def __and__(self, other: Operand) -> Op:
        return op("and", self, other)

    def __or__(self, other: Operand) -> Op:
        return op("or", self, other)

    def __xor__(self, other: Operand) -> Op:
        return op("xor", self, other)

    def __neg__(self) -> Op:
        return op("negate", self)

    def __invert__(self) -> Op:
        return op("not", self)


Operand: TypeAlias = "Pattern | float"


class Var(Pattern):
    """Variable for any instruction."""

    def __init__(self, name: str) -> None:
        self.name = name

    def match(self, ins: Instruction, bound: Bound) -> bool:
        """Match anything the first time, afterwards the same instruction."""
        return bound.setdefault(self.name, ins) is ins

    def build(self, m: Match, computation: Computation, shape: Shape) -> Instruction:
        """Return the value of the variable."""
        instruction: Instruction = getattr(m, self.name)
        return instruction

    def __str__(self) -> str:
        return self.name


class Uniform(Var):
    """Variable for any array whose elements are one known number."""

    def match(self, ins: Instruction, bound: Bound) -> bool:
        """Match a constant of one element, or the broadcast of one."""
        return uniform_value(ins) is not None and super().match(ins, bound)

    def opcodes(self) -> frozenset[str] | None:
        """Return the opcodes constant and broadcast."""
        return UNIFORM


class Const(Pattern):
    """Array whose elements are a given number; 0 does not match -0.0.

    Parameters
    ----------
    value : number or str
        Number of the elements; ``"lowest"`` or ``"highest"`` for the ends of the element type's order (infinities, if
        it has them); ``"ones"`` for an integer with every bit set, or true.
    """

    def __init__(self, value: float | str) -> None:
        self.value = value

    def match(self, ins: Instruction, bound: Bound) -> bool:
        """Match an array of the number."""
        found = uniform_value(ins)
        if found is None:
            return False
        value = special(self.value, ins.shape.dtype) if isinstance(self.value, str) else self.value
        return value is not None and _is_number(found, value, ins.shape.dtype)

    def build(self, m: Match, computation: Computation, shape: Shape) -> Instruction:
        """Build an array of the number."""
        value = special(self.value, shape.dtype) if isinstance(self.value, str) else self.value
        if value is None:
            raise InvalidArgumentError(f"{shape.dtype} has no number {self.value}")
        return full(computation, value, shape)

    def opcodes(self) -> frozenset[str] | None:
        """Return the opcodes constant and broadcast."""
        return UNIFORM

    def __str__(self) -> str:
        return str(self.value)


class Op(Pattern):
    """Opcode applied to patterns; attributes that it does not name may have any value."""

    def __init__(self, opcode: str, operands: tuple[Pattern, ...], attrs: Mapping[str, Any], name: str = "") -> None:
        self.opcode, self.operands, self.attrs, self.name = opcode, operands, attrs, name
        self._arity = len(operands)
        self._variables = [(k, v.name) for k, v in attrs.items() if isinstance(v, AttrVar)]
        self._values = [(k, v) for k, v in attrs.items() if not isinstance(v, AttrVar)]

    def match(self, ins: Instruction, bound: Bound) -> bool:
        """Match the opcode, then the attributes, then the operands."""
        operands = ins.operands
        if ins.opcode != self.opcode or len(operands) != self._arity:
            return False
        for key, value in self._values:
            if ins.attrs[key] != value:
                return False
        for key, name in self._variables:
            attr = ins.attrs[key]
            if bound.setdefault(name, attr) != attr:
                return False
        for n, pattern in enumerate(self.operands):
            if not pattern.match(operands[n], bound):
                return False
        if self.name:
            bound[self.name] = ins
        return True

    def build(self, m: Match, computation: Computation, shape: Shape) -> Instruction:
        """Build the operands, then the operation; `shape` is the result shape of opcodes that do not imply it."""
        firm = [None if isinstance(p, Const) else p.build(m, computation, shape) for p in self.operands]
        like = next((i.shape.logical for i in firm if i is not None), shape)
        operands = [p.build(m, computation, like) if i is None else i for p, i in zip(self.operands, firm, strict=True)]
        attrs = {k: v.value(m) if isinstance(v, AttrVar | Compute) else v for k, v in self.attrs.items()}
        result = infer_shape(self.opcode, operands, attrs, declared=shape)
        return computation.add(self.opcode, operands, attrs, shape=result)

    def opcodes(self) -> frozenset[str] | None:
        """Return the opcode alone."""
        return frozenset({self.opcode})

    def orders(self) -> Iterator[Pattern]:
        """Yield every order of the operands, at all depths."""
        for operands in product(*(p.orders() for p in self.operands)):
            yield Op(self.opcode, operands, self.attrs, self.name)
            if (lookup(self.opcode).commutes and not isinstance(operands[0], type(operands[1]))) or (
                lookup(self.opcode).commutes and str(operands[0]) != str(operands[1]) and _order_matters(operands)
            ):
                yield Op(self.opcode, operands[::-1], self.attrs, self.name)

    def __str__(self) -> str:
        parts = [str(p) for p in self.operands] + [f"{k}={v}" for k, v in self.attrs.items()]
        return f"{self.opcode}({', '.join(parts)})"


def _order_matters(operands: tuple[Pattern, ...]) -> bool:
    """Return whether exchanging the operands can matter: two plain variables match in either order."""
    return any(type(p) is not Var for p in operands)


class AttrVar:
    """Variable for any value of an attribute."""

    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, m: Match) -> Any:
        """Return the value of the variable."""
        return getattr(m, self.name)

    def __str__(self) -> str:
        return self.name


class Compute:
    """Attribute of the right side, computed from those of the left."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[AttrVar, ...]) -> None:
        self.function, self.arguments = function, arguments

    def value(self, m: Match) -> Any:
        """Compute the value."""
        return self.function(*(a.value(m) for a in self.arguments))

    def __str__(self) -> str:
        return f"{self.function.__name__.strip('_')}({', '.join(map(str, self.arguments))})"


def op(opcode: str, *operands: Operand, name: str = "", **attrs: Any) -> Op:
    """Return a pattern for one opcode; with `name` the instruction that matches is bound to that variable."""
    lookup(opcode)
    wrapped = tuple(o if isinstance(o, Pattern) else Const(o) for o in operands)
    return Op(opcode, wrapped, attrs, name)


def attr(name: str) -> AttrVar:
    """Return a variable for the value of an attribute."""
    return AttrVar(name)


def compute(function: Callable[..., Any], *arguments: AttrVar) -> Compute:
    """Return an attribute of the right side: `function` of attributes of the left side."""
    return Compute(function, arguments)


def uniform_value(ins: Instruction) -> np.ndarray[Any, Any] | None:
    """Return the number that all elements of an instruction are, as an array of one element; None if unknown."""
    if ins.opcode == "broadcast":
        ins = ins.operands[0]
    if ins.opcode != "constant" or not ins.shape.is_array or ins.shape.size != 1:
        return None
    array: np.ndarray[Any, Any] = ins.attrs["literal"].array
    return array


def is_number(ins: Instruction, value: float) -> bool:
    """Return whether all elements of an instruction are `value`; 0 does not match -0.0."""
    array = uniform_value(ins)
    return array is not None and _is_number(array, value, ins.shape.dtype)


def _is_number(array: np.ndarray[Any, Any], value: float, dtype: ElementType) -> bool:
    if dtype.is_float:
        number = float(array.reshape(()))
        return number == value and bool(np.signbit(number)) == bool(np.signbit(value))
    if dtype.is_complex:
        z = complex(array.reshape(()))
        return z == value and not np.signbit(z.imag) and bool(np.signbit(z.real)) == bool(np.signbit(value))
    return int(array.reshape(())) == value and not (isinstance(value, float) and bool(np.signbit(value)) and value == 0)


def special(name: str, dtype: ElementType) -> float | None:
    """Return the number that ``"lowest"``, ``"highest"`` or ``"ones"`` names for an element type; None without one."""
    if dtype is ElementType.PRED:
        return {"lowest": 0, "highest": 1, "ones": 1}[name]
    if dtype.is_integer:
        low, high = (
            (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.is_signed else (0, (1 << dtype.bits) - 1)
        )
        return {"lowest": low, "highest": high, "ones": -1 if dtype.is_signed else high}[name]
    if dtype.is_float and name != "ones" and dtype.bits >= 16:
        return {"lowest": -np.inf, "highest": np.inf}[name]
    return None


def full(computation: Computation, value: Any, shape: Shape) -> Instruction:
    """Build an array of one number."""
    kind = shape.dtype.numpy_dtype
    with np.errstate(all="ignore"):
        array = np.asarray(value, object if shape.dtype.is_integer else None).astype(kind).reshape(())
    scalar = Shape.array(shape.dtype)
    scalar_constant = computation.add("constant", (), {"literal": Literal(array, scalar)}, shape=scalar)
    return (
        computation.add("broadcast", (scalar_constant,), {"dimensions": ()}, shape=shape.logical)
        if shape.rank
        else scalar_constant
    )
