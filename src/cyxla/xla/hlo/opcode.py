"""The registry of opcodes: one row each, written in `cyxla.xla.hlo.ops`.

A row holds the facts that the rest of this layer needs: arity, attributes, called computations, accepted element types,
shape rule, algebra. Evaluation and code generation each have a table of their own under the same names.

The docstring of a shape rule describes the result and lists the constraints; ``docs/opcodes.md`` is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from cyxla.config import similar
from cyxla.errors import AlreadyExistsError, NotFoundError, ShapeError
from cyxla.records import dataclass
from cyxla.types import ElementType, Shape

if TYPE_CHECKING:
    from cyxla.xla.hlo.computation import Computation

REQUIRED: Final = object()
VARIADIC: Final = (0, None)

# fmt: off
_A = [e for e in ElementType if e.is_array]
PRED     = frozenset({ElementType.PRED})
SIGNED   = frozenset(e for e in _A if e.is_signed)
UNSIGNED = frozenset(e for e in _A if e.is_unsigned)
INTEGER  = SIGNED | UNSIGNED
FLOAT    = frozenset(e for e in _A if e.is_float)
COMPLEX  = frozenset(e for e in _A if e.is_complex)
INEXACT  = FLOAT | COMPLEX
REAL     = INTEGER | FLOAT
NUMBER   = REAL | COMPLEX
ANY      = NUMBER | PRED
# fmt: on


@dataclass(frozen=True)
class Attr:
    """One attribute of an opcode.

    Attributes
    ----------
    name : str
        Spelling in HLO text and key in `Instruction.attrs`.
    kind : str
        Type of the value, a key of the reader's and the printer's tables: int, bool, float, string, dims, slice,
        padding, window, dim_labels, precision, replica_groups, pairs, aliasing, shapes, literal, domain, accuracy,
        tristate, or ``enum:A,B,C``.
    default : object
        Value when absent; `REQUIRED` if absence is an error.
    """

    name: str
    kind: str
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        """True if the attribute must be written."""
        return self.default is REQUIRED


@dataclass(frozen=True)
class Site:
    """The parts of an instruction that its shape rule reads.

    Attributes
    ----------
    opcode : str
        Name of the opcode.
    operands : tuple of Shape
        Shapes of the operands, without layouts.
    attrs : mapping
        Attributes, defaults filled in.
    called : tuple of Computation
        Called computations, in the row's order.
    declared : Shape or None
        The result shape that the program states, without layouts; opcodes such as `reshape` need it.
    extras : mapping or None
        Attributes that any instruction may carry, such as backend_config.
    """

    opcode: str
    operands: tuple[Shape, ...]
    attrs: Mapping[str, Any]
    called: tuple[Computation, ...] = ()
    declared: Shape | None = None
    extras: Mapping[str, Any] | None = None

    def require(self, holds: bool, constraint: str, message: str, error: type[ShapeError] | Any = ShapeError) -> None:
        """Raise the error of a numbered constraint, such as ``"C4"``, unless it holds."""
        if not holds:
            shapes = ", ".join(map(str, self.operands))
            raise error(f"{self.opcode}({shapes}): {message}", rule=f"{self.opcode} {constraint}")


ShapeRule = Callable[[Site], Shape]


@dataclass
class Opcode:
    """The row of one opcode.

    Attributes
    ----------
    name : str
        Spelling in HLO text.
    arity : (int, int or None)
        Least and greatest number of operands; None is no limit.
    accepts : frozenset of ElementType
        Element types of the first operand (of the result, for opcodes without operands).
    attrs : tuple of Attr
        The opcode's attributes in print order.
    calls : tuple of str
        Attribute names of its called computations, in the order of `Instruction.called` (and of the proto).
    many_calls : bool
        True if the (single) name in `calls` holds a list of computations.
    elementwise : bool
        True if each result element depends only on the operands' elements at the same index.
    movement : bool
        True if each result element is an element of an operand, or of a sequence, chosen by its index alone or by
        integers among the operands.
    many_steps : bool
        True if a result element takes many operations, by which long instructions are told from short ones.
    side_effect : bool
        True if the instruction must run even when its result is unused.
    commutes : bool
        True if the two operands may be swapped.
    unit : int or None
        Identity: the value of an operand that makes the result equal to the other operand.
    ulp : int
        Allowed error of compiled code, in units in the last place; 0 is exact.
    rule : callable
        Shape rule.
    xla : str
        Name of XLA's builder function; by default the opcode's, as in ``CountLeadingZeros``.
    dialect : str
        Dialect of the operation of the opcode's name, ``"stablehlo"``, ``"chlo"`` or ``"mhlo"``; empty if no operation
        takes the same operands and attributes. Used for element-wise opcodes.
    cost : float
        Estimated time of one element in ns, for f32 in vector registers on one core. Used for element-wise opcodes.
    """

    name: str
    arity: tuple[int, int | None]
    accepts: frozenset[ElementType] = ANY
    attrs: tuple[Attr, ...] = ()
    calls: tuple[str, ...] = ()
    many_calls: bool = False
    elementwise: bool = False
    movement: bool = False
    many_steps: bool = False
    side_effect: bool = False
    commutes: bool = False
    unit: int | None = None
    ulp: int = 0
    rule: ShapeRule | None = None
    xla: str = ""
    dialect: str = "stablehlo"
    cost: float = 0.05
    attr_by_name: dict[str, Attr] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.attr_by_name = {a.name: a for a in self.attrs}
        self.xla = self.xla or self.name.title().replace("-", "")

    @property
    def identifier(self) -> str:
        """Name with underscores, as used by StableHLO operations, C functions and builder functions."""
        return self.name.replace("-", "_")

    def infer(self, site: Site) -> Shape:
        """Apply the shape rule.

        Raises
        ------
        ShapeError, DTypeError
            A numbered constraint is violated.
        """
        if self.rule is None:
            raise NotFoundError(f"opcode {self.name} has no shape rule")
        return self.rule(site)


OPCODES: dict[str, Opcode] = {}


def opcode(name: str, arity: int | tuple[int, int | None], **facts: Any) -> Callable[[ShapeRule], ShapeRule]:
    """Register an opcode's row, and return a decorator for its shape rule."""
    if name in OPCODES:
        raise AlreadyExistsError(f"opcode {name} is registered twice")
    row = Opcode(name, (arity, arity) if isinstance(arity, int) else arity, **facts)
    OPCODES[name] = row

    def attach(rule: ShapeRule) -> ShapeRule:
        row.rule = rule
        return rule

    return attach


def lookup(name: str) -> Opcode:
    """Return the row of an opcode.

    Raises
    ------
    NotFoundError
        The opcode is unknown; the message names similar ones.
    """
    try:
        return OPCODES[name]
    except KeyError:
        raise NotFoundError(f"unknown opcode {name!r}", hint=similar(name, OPCODES)) from None


def complete_attrs(row: Opcode, attrs: Mapping[str, Any], operands: Sequence[Shape]) -> dict[str, Any]:
    """Return all attributes in the row's order, defaults filled in.

    Raises
    ------
    ShapeError
        A required attribute is missing, or an attribute is unknown.
    """
    unknown = [a for a in attrs if a not in row.attr_by_name]
    if unknown:
        raise ShapeError(
            f"{row.name} has no attribute {unknown[0]!r}", hint=f"it takes {', '.join(row.attr_by_name) or 'none'}"
        )
    complete = {}
    for a in row.attrs:
        value = attrs.get(a.name, a.default)
        if value is REQUIRED:
            raise ShapeError(f"{row.name} needs the attribute {a.name!r}")
        complete[a.name] = value
    if row.name == "compare" and complete["type"] is None and operands:
        complete["type"] = default_comparison(operands[0].dtype)
    return complete


def default_comparison(dtype: ElementType) -> str:
    """Return the comparison type that `compare` has if none is written."""
    if dtype.is_signed:
        return "SIGNED"
    return "UNSIGNED" if dtype.is_unsigned or dtype is ElementType.PRED else "FLOAT"


def req(name: str, kind: str) -> Attr:
    """Return a required attribute."""
    return Attr(name, kind)


def opt(name: str, kind: str, default: Any = None) -> Attr:
    """Return an optional attribute."""
    return Attr(name, kind, default)


def names(rows: Iterable[Opcode]) -> list[str]:
    """Return the names of opcodes, sorted."""
    return sorted(r.name for r in rows)
