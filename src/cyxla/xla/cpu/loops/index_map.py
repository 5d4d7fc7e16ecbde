"""Index maps: arithmetic affine in the loops, with quotients, remainders and guards where needed.

An `Affine` is a constant plus multiples of *atoms*. Atoms are the loops of an iteration space and quantities derived
from affine forms: quotient and remainder by a constant (reshapes), values read at run time (dynamic-slice, gather), and
an index that applies only under a condition (pad, concatenate). Every atom has a range, on which most simplifications
rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cyxla.errors import InternalError

if TYPE_CHECKING:
    from cyxla.xla.cpu.loops.nodes import Node


class Atom:
    """Quantity that indices are affine in: a loop counter or a value derived from affine forms.

    Attributes
    ----------
    number : int
        Order of creation in the iteration space; it makes the order of terms deterministic.
    low, high : int
        Least and greatest value, both inclusive.
    """

    __slots__ = ("high", "low", "number")

    def __init__(self, number: int, low: int, high: int) -> None:
        self.number, self.low, self.high = number, low, high

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}{self.number}"

    @property
    def forms(self) -> tuple[Affine, ...]:
        """Forms that the value is derived from."""
        return ()


class Loop(Atom):
    """Counter of a loop, with the loop's position in the iteration space."""

    __slots__ = ("position",)

    def __init__(self, number: int, low: int, high: int, position: int) -> None:
        self.number, self.low, self.high, self.position = number, low, high, position

    @staticmethod
    def unmentioned() -> Loop:
        """Return a loop that belongs to no iteration space, so that no index mentions it."""
        return Loop(0, 0, 1, -1)


class Division(Atom):
    """Quotient or remainder of a form by a constant."""

    __slots__ = ("divisor", "form")

    def __init__(self, number: int, low: int, high: int, form: Affine, divisor: int) -> None:
        self.number, self.low, self.high, self.form, self.divisor = number, low, high, form, divisor

    @property
    def forms(self) -> tuple[Affine, ...]:
        """The dividend."""
        return (self.form,)


class Quotient(Division):
    """Integer ``form // divisor``."""

    __slots__ = ()


class Remainder(Division):
    """Integer ``form % divisor``."""

    __slots__ = ()


class Runtime(Atom):
    """Value of a node, read at run time and clamped to the range."""

    __slots__ = ("node",)

    def __init__(self, number: int, low: int, high: int, node: Node) -> None:
        self.number, self.low, self.high, self.node = number, low, high, node


class InRange(Runtime):
    """Value of a node that is known to be in the range: it needs no clamp."""

    __slots__ = ()


class Choice(Atom):
    """Form where all conditions hold, 0 elsewhere."""

    __slots__ = ("conditions", "form")

    def __init__(self, number: int, low: int, high: int, conditions: tuple[Condition, ...], form: Affine) -> None:
        self.number, self.low, self.high, self.conditions, self.form = number, low, high, conditions, form

    @property
    def forms(self) -> tuple[Affine, ...]:
        """The form, then those of the conditions."""
        return (self.form, *[c.form for c in self.conditions])


class Affine:
    """Affine form ``constant + sum(coefficient * atom)``; equal forms compare equal and have the same hash."""

    __slots__ = ("_hash", "constant", "high", "low", "terms")

    def __init__(self, constant: int, terms: tuple[tuple[Atom, int], ...] = ()) -> None:
        self.constant, self.terms = constant, terms
        self._hash = hash((constant, terms))
        low = high = constant
        for atom, c in terms:
            low += c * (atom.low if c > 0 else atom.high)
            high += c * (atom.high if c > 0 else atom.low)
        self.low, self.high = low, high

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Affine) and self.constant == other.constant and self.terms == other.terms
        )

    def __repr__(self) -> str:
        return " + ".join([*(f"{c}*{a!r}" for a, c in self.terms), str(self.constant)])

    @property
    def is_constant(self) -> bool:
        """True if the form has no atoms."""
        return not self.terms

    def coefficient(self, atom: Atom | None) -> int:
        """Return the coefficient of an atom; 0 if it does not occur."""
        return next((c for a, c in self.terms if a is atom), 0)

    def shift(self, by: int) -> Affine:
        """Return the form plus a constant."""
        return Affine(self.constant + by, self.terms) if by else self

    def scale(self, by: int) -> Affine:
        """Return the form times a constant."""
        if by == 1:
            return self
        return Affine(self.constant * by, tuple((a, c * by) for a, c in self.terms)) if by else ZERO


ZERO = Affine(0)


class Condition(NamedTuple):
    """Condition ``low <= form <= high``."""

    form: Affine
    low: int
    high: int

    @property
    def decided(self) -> bool | None:
        """True or False if the range of the form decides the condition, else None."""
        if self.low <= self.form.low and self.form.high <= self.high:
            return True
        return False if self.form.high < self.low or self.form.low > self.high else None


class Index:
    """Index of an array element, as coordinates and as a linear row-major index; each is derived when needed."""

    __slots__ = ("_coordinates", "_linear", "dims", "space")

    def __init__(
        self, space: Space, dims: tuple[int, ...], coordinates: tuple[Affine, ...] | None, linear: Affine | None
    ) -> None:
        self.space, self.dims, self._coordinates, self._linear = space, dims, coordinates, linear

    @property
    def coordinates(self) -> tuple[Affine, ...]:
        """Coordinates, one form per dimension."""
        if self._coordinates is None:
            self._coordinates = self.space.split(self.linear, self.dims)
        return self._coordinates

    @property
    def linear(self) -> Affine:
        """Linear row-major index."""
        if self._linear is None:
            assert self._coordinates is not None
            self._linear = self.space.combine(zip(self._coordinates, strides(self.dims), strict=True))
        return self._linear

    def at(self, dims: tuple[int, ...]) -> Index:
        """Return the index of the same element in the array reshaped to other dims."""
        return self if dims == self.dims else self.space.index_at(dims, self.linear)


class Space:
    """Iteration space of a piece of generated code, with all index forms over it.

    Parameters
    ----------
    extents : sequence of int
        Trip counts of the loops, outermost first.
    """

    def __init__(self, extents: Sequence[int]) -> None:
        self._count = 0
        self._derived: dict[tuple[Any, ...], Atom] = {}
        self._indices: dict[tuple[Any, ...], Index] = {}
        self.loops = [Loop(self._next(), 0, max(n - 1, 0), i) for i, n in enumerate(extents)]
        self.scalar = self.index((), ())

    # ------------------------------------------------------------------------------------------------ forms
    def loop(self, position: int) -> Affine:
        """Return the counter of a loop."""
        atom = self.loops[position]
        return Affine(0, ((atom, 1),)) if atom.high else ZERO

    def combine(self, parts: Any) -> Affine:
        """Return the sum of (form, factor) pairs."""
        constant, terms = 0, {}  # type: ignore[var-annotated]
        for form, k in parts:
            constant += form.constant * k
            for atom, c in form.terms:
                terms[atom] = terms.get(atom, 0) + c * k
        if len(terms) > 1:
            self._recombine_divisions(terms)
        ordered = sorted(((a, c) for a, c in terms.items() if c), key=_by_number)
        return (
            Affine(constant, tuple(ordered))
            if not terms or not self._has_forms(terms)
            else self._expand(constant, ordered)
        )

    def add(self, a: Affine, b: Affine) -> Affine:
        """Return the sum of two forms."""
        return self.combine(((a, 1), (b, 1)))

    def quotient(self, form: Affine, divisor: int) -> Affine:
        """Return ``form // divisor`` of a form that is not negative."""
        exact, rest = self._divide(form, divisor)
        return exact if rest is None else self.add(exact, self._division(Quotient, rest, divisor))

    def remainder(self, form: Affine, divisor: int) -> Affine:
        """Return ``form % divisor`` of a form that is not negative."""
        if divisor == 1:
            return ZERO
        exact, rest = self._divide(form, divisor)
        if rest is None:
            return self.combine(((form, 1), (exact, -divisor)))
        return self._division(Remainder, rest, divisor)

    def runtime(self, node: Node, high: int) -> Affine:
        """Return a form for a value in [0, high] that is read at run time."""
        if high <= 0:
            return ZERO
        key = (Runtime, node, high)
        return _term(self._derived.get(key) or self._derive(key, Runtime(self._next(), 0, high, node)))

    def in_range(self, node: Node, high: int) -> Affine:
        """Return a form for a value that is read at run time, and known to be in [0, high]."""
        key = (InRange, node, high)
        return _term(self._derived.get(key) or self._derive(key, InRange(self._next(), 0, high, node)))

    def choice(self, conditions: tuple[Condition, ...], form: Affine, high: int) -> Affine:
        """Return `form` where the conditions hold (it is then in [0, high]), else 0; conditions must be undecided."""
        if high <= 0:
            return ZERO
        key = (Choice, conditions, form)
        return _term(self._derived.get(key) or self._derive(key, Choice(self._next(), 0, high, conditions, form)))

    def split_choices(
        self, form: Affine, selects: Callable[[Choice], bool] = lambda _: True
    ) -> tuple[Affine, tuple[Condition, ...]]:
        """Return the form that holds where the conditions of some choices in it hold, and these conditions."""
        conditions: dict[Condition, None] = {}
        while found := [(a, c) for a, c in form.terms if isinstance(a, Choice) and selects(a)]:
            rest = Affine(form.constant, tuple(t for t in form.terms if t not in found))
            form = self.combine([(rest, 1), *((a.form, c) for a, c in found)])
            conditions.update(dict.fromkeys(condition for a, _ in found for condition in a.conditions))
        return form, tuple(conditions)

    def index(self, dims: tuple[int, ...], coordinates: tuple[Affine, ...]) -> Index:
        """Return the index with given coordinates."""
        key = (dims, coordinates)
        if key not in self._indices:
            self._indices[key] = Index(self, dims, coordinates, None)
        return self._indices[key]

    def index_at(self, dims: tuple[int, ...], linear: Affine) -> Index:
        """Return the index with a given linear row-major index."""
        key = (dims, linear)
        if key not in self._indices:
            self._indices[key] = Index(self, dims, None, linear)
        return self._indices[key]

    def split(self, linear: Affine, dims: tuple[int, ...]) -> tuple[Affine, ...]:
        """Delinearise a row-major index to coordinates."""
        coordinates = [ZERO] * len(dims)
        if prod(dims) == 1:
            return tuple(coordinates)
        rest = linear
        first = next(i for i, n in enumerate(dims) if n != 1)
        for d in range(len(dims) - 1, first, -1):
            if dims[d] > 1:
                coordinates[d] = self.remainder(rest, dims[d])
                rest = self.quotient(rest, dims[d])
        coordinates[first] = rest
        return tuple(coordinates)

    def decided(self, condition: Condition) -> bool | None:
        """Return True or False if a condition is known to hold, or not to, else None."""
        return condition.decided

    # ------------------------------------------------------------------------------------------------ simplification
    def _next(self) -> int:
        self._count += 1
        return self._count

    def _derive(self, key: tuple[Any, ...], atom: Atom) -> Atom:
        self._derived[key] = atom
        return atom

    def _divide(self, form: Affine, divisor: int) -> tuple[Affine, Affine | None]:
        """Return the exact quotient of the divisible terms, and the rest; None if the rest is below the divisor."""
        if divisor <= 0:
            raise InternalError(f"an index cannot be divided by {divisor}")
        exact = tuple((a, c // divisor) for a, c in form.terms if c % divisor == 0)
        rest = Affine(form.constant % divisor, tuple((a, c) for a, c in form.terms if c % divisor))
        quotient = Affine(form.constant // divisor, exact)
        if rest.low < 0:  # splitting would go below zero: keep the form as it is
            return (ZERO, form) if form.high >= divisor else (ZERO, None)
        return quotient, None if rest.high < divisor else rest

    def _division(self, kind: type[Quotient | Remainder], form: Affine, divisor: int) -> Affine:
        inner = _single_quotient(form)
        if inner is not None and kind is Quotient:  # (x / a) / b = x / (a b)
            return self.quotient(inner.form, inner.divisor * divisor)
        low, high = max(form.low, 0), max(form.high, 0)
        low, high = (low // divisor, high // divisor) if kind is Quotient else (0, min(divisor - 1, high))
        key = (kind, form, divisor)
        return _term(self._derived.get(key) or self._derive(key, kind(self._next(), low, high, form, divisor)))

    def _recombine_divisions(self, terms: dict[Atom | Affine, int]) -> None:
        """Rewrite ``k d (x / d) + k (x % d)`` to ``k x`` in place; x goes in as a term that is not an atom."""
        for atom in [a for a in terms if isinstance(a, Remainder)]:
            k = terms.get(atom, 0)
            quotient = self._matching_quotient(atom.form, atom.divisor)
            if k and quotient is not None and terms.get(quotient) == k * atom.divisor:
                del terms[atom], terms[quotient]
                terms[atom.form] = k  # a form as a key, which _expand resolves

    def _matching_quotient(self, form: Affine, divisor: int) -> Atom | None:
        """Return the atom ``form / divisor``, if there is one."""
        inner = _single_quotient(form)
        if inner is not None:
            form, divisor = inner.form, inner.divisor * divisor
        return self._derived.get((Quotient, form, divisor))

    @staticmethod
    def _has_forms(terms: dict[Any, int]) -> bool:
        return any(isinstance(a, Affine) for a in terms)

    def _expand(self, constant: int, ordered: list[tuple[Any, int]]) -> Affine:
        parts = [(a if isinstance(a, Affine) else Affine(0, ((a, 1),)), c) for a, c in ordered]
        return self.combine([(Affine(constant), 1), *parts])


def _term(atom: Atom) -> Affine:
    return Affine(0, ((atom, 1),))


def _single_quotient(form: Affine) -> Quotient | None:
    """Return the quotient that a form is equal to, if it is one."""
    if form.constant == 0 and len(form.terms) == 1:
        atom, coefficient = form.terms[0]
        if coefficient == 1 and isinstance(atom, Quotient):
            return atom
    return None


def _by_number(term: tuple[Any, int]) -> int:
    return term[0].number if isinstance(term[0], Atom) else 0


def strides(dims: Sequence[int]) -> tuple[int, ...]:
    """Return the row-major strides of dims, in elements."""
    steps, step = [0] * len(dims), 1
    for d in range(len(dims) - 1, -1, -1):
        steps[d] = step
        step *= dims[d]
    return tuple(steps)


def atoms_of(forms: Any) -> list[Atom]:
    """Return every atom in some forms, also those inside other atoms, in order of creation."""
    atoms: dict[Atom, None] = {}
    stack = [a for f in forms for a, _ in f.terms]
    while stack:
        atom = stack.pop()
        if atom in atoms:
            continue
        atoms[atom] = None
        stack += [a for f in atom.forms for a, _ in f.terms]
    return sorted(atoms, key=lambda a: a.number)
