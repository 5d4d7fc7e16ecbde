"""Index maps: arithmetic affine in the loops, with quotients, remainders and guards where need be.

An `Affine` is a constant plus multiples of *atoms*. Atoms are the loops of an iteration space and what is derived from
affine forms: quotient and remainder by a constant (reshapes), values read at run time (dynamic-slice, gather), and an
index that counts only under a condition (pad, concatenate). Every atom knows its range, which is what most
simplifications need.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from cyxla.errors import InternalError


class Atom:
    """A quantity that indices are affine in.

    Attributes
    ----------
    number : int
        Order of creation in its space; gives every text the same order.
    kind : str
        ``loop``, ``quotient``, ``remainder``, ``runtime`` or ``choice``.
    low, high : int
        Least and greatest value.
    data : object
        Of a loop its position; of quotient and remainder (Affine, divisor); of a runtime value its node; of a choice
        (conditions, Affine): the form where the conditions hold, else 0.
    """

    __slots__ = ("data", "high", "kind", "low", "number")

    def __init__(self, number: int, kind: str, low: int, high: int, data: Any) -> None:
        self.number, self.kind, self.low, self.high, self.data = number, kind, low, high, data

    def __repr__(self) -> str:
        return f"{self.kind[0]}{self.number}"


class Affine:
    """``constant + sum(coefficient * atom)``; equal forms are equal and hash alike."""

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
        """Whether no atom occurs."""
        return not self.terms

    def coefficient(self, atom: Atom) -> int:
        """What an atom is multiplied by; 0 if it does not occur."""
        return next((c for a, c in self.terms if a is atom), 0)

    def shifted(self, by: int) -> Affine:
        """The form plus a constant."""
        return Affine(self.constant + by, self.terms) if by else self

    def scaled(self, by: int) -> Affine:
        """The form times a constant."""
        if by == 1:
            return self
        return Affine(self.constant * by, tuple((a, c * by) for a, c in self.terms)) if by else ZERO


ZERO = Affine(0)


class Condition(NamedTuple):
    """``low <= form <= high``."""

    form: Affine
    low: int
    high: int

    @property
    def decided(self) -> bool | None:
        """Whether the range of the form settles it, and how."""
        if self.low <= self.form.low and self.form.high <= self.high:
            return True
        return False if self.form.high < self.low or self.form.low > self.high else None


class Index:
    """A position in an array of some dims, by coordinates or by row-major number; either is made when asked for."""

    __slots__ = ("_coordinates", "_linear", "dims", "space")

    def __init__(
        self, space: Space, dims: tuple[int, ...], coordinates: tuple[Affine, ...] | None, linear: Affine | None
    ) -> None:
        self.space, self.dims, self._coordinates, self._linear = space, dims, coordinates, linear

    @property
    def coordinates(self) -> tuple[Affine, ...]:
        """One form a dimension."""
        if self._coordinates is None:
            self._coordinates = self.space.split(self.linear, self.dims)
        return self._coordinates

    @property
    def linear(self) -> Affine:
        """The row-major number."""
        if self._linear is None:
            assert self._coordinates is not None
            self._linear = self.space.combine(zip(self._coordinates, strides(self.dims), strict=True))
        return self._linear

    def at(self, dims: tuple[int, ...]) -> Index:
        """The same element of the array reshaped to other dims."""
        return self if dims == self.dims else self.space.index_at(dims, self.linear)


class Space:
    """The iteration space of a piece of generated code, and every form over it.

    Parameters
    ----------
    extents : sequence of int
        Sizes of the loops, outermost first.
    """

    def __init__(self, extents: Sequence[int]) -> None:
        self._count = 0
        self._derived: dict[tuple[Any, ...], Atom] = {}
        self._indices: dict[tuple[Any, ...], Index] = {}
        self.loops = [self._atom("loop", 0, max(n - 1, 0), i) for i, n in enumerate(extents)]
        self.scalar = self.index((), ())

    # ------------------------------------------------------------------------------------------------ forms
    def loop(self, position: int) -> Affine:
        """The counter of a loop."""
        atom = self.loops[position]
        return Affine(0, ((atom, 1),)) if atom.high else ZERO

    def combine(self, parts: Any) -> Affine:
        """The sum of (form, factor) pairs."""
        constant, terms = 0, {}  # type: ignore[var-annotated]
        for form, k in parts:
            constant += form.constant * k
            for atom, c in form.terms:
                terms[atom] = terms.get(atom, 0) + c * k
        if len(terms) > 1:
            self._rejoin(terms)
        ordered = sorted(((a, c) for a, c in terms.items() if c), key=_by_number)
        return (
            Affine(constant, tuple(ordered)) if not terms or not self._loose(terms) else self._expand(constant, ordered)
        )

    def add(self, a: Affine, b: Affine) -> Affine:
        """The sum of two forms."""
        return self.combine(((a, 1), (b, 1)))

    def quotient(self, form: Affine, divisor: int) -> Affine:
        """``form // divisor`` of a form that is not negative."""
        whole, rest = self._divide(form, divisor)
        return whole if rest is None else self.add(whole, self._part("quotient", rest, divisor))

    def remainder(self, form: Affine, divisor: int) -> Affine:
        """``form % divisor`` of a form that is not negative."""
        if divisor == 1:
            return ZERO
        whole, rest = self._divide(form, divisor)
        if rest is None:
            return self.combine(((form, 1), (whole, -divisor)))
        return self._part("remainder", rest, divisor)

    def runtime(self, node: Any, high: int) -> Affine:
        """A value known at run time, in [0, high]."""
        return ZERO if high <= 0 else Affine(0, ((self._derive("runtime", 0, high, node), 1),))

    def choice(self, conditions: tuple[Condition, ...], form: Affine, high: int) -> Affine:
        """`form` where the conditions hold (it is then in [0, high]), else 0; conditions must be undecided."""
        return ZERO if high <= 0 else Affine(0, ((self._derive("choice", 0, high, conditions, form), 1),))

    def index(self, dims: tuple[int, ...], coordinates: tuple[Affine, ...]) -> Index:
        """The position with these coordinates."""
        key = (dims, coordinates)
        if key not in self._indices:
            self._indices[key] = Index(self, dims, coordinates, None)
        return self._indices[key]

    def index_at(self, dims: tuple[int, ...], linear: Affine) -> Index:
        """The position with this row-major number."""
        key = (dims, linear)
        if key not in self._indices:
            self._indices[key] = Index(self, dims, None, linear)
        return self._indices[key]

    def split(self, linear: Affine, dims: tuple[int, ...]) -> tuple[Affine, ...]:
        """Coordinates of a row-major number."""
        found = [ZERO] * len(dims)
        if prod(dims) == 1:
            return tuple(found)
        rest = linear
        first = next(i for i, n in enumerate(dims) if n != 1)
        for d in range(len(dims) - 1, first, -1):
            if dims[d] > 1:
                found[d] = self.remainder(rest, dims[d])
                rest = self.quotient(rest, dims[d])
        found[first] = rest
        return tuple(found)

    # ------------------------------------------------------------------------------------------------ inside
    def _atom(self, kind: str, low: int, high: int, data: Any) -> Atom:
        self._count += 1
        return Atom(self._count, kind, low, high, data)

    def _derive(self, kind: str, low: int, high: int, *data: Any) -> Atom:
        key = (kind, *data)
        if key not in self._derived:
            self._derived[key] = self._atom(kind, low, high, data[0] if kind == "runtime" else data)
        return self._derived[key]

    def _divide(self, form: Affine, divisor: int) -> tuple[Affine, Affine | None]:
        """The part that `divisor` divides, over it; and the rest, None if the rest is below the divisor."""
        if divisor <= 0:
            raise InternalError(f"division of an index by {divisor}")
        whole = tuple((a, c // divisor) for a, c in form.terms if c % divisor == 0)
        rest = Affine(form.constant % divisor, tuple((a, c) for a, c in form.terms if c % divisor))
        quotient = Affine(form.constant // divisor, whole)
        if rest.low < 0:  # cannot split without going below zero: take it as it is
            return (ZERO, form) if form.high >= divisor else (ZERO, None)
        return quotient, None if rest.high < divisor else rest

    def _part(self, kind: str, form: Affine, divisor: int) -> Affine:
        if kind == "quotient" and form.constant == 0 and len(form.terms) == 1 and form.terms[0][1] == 1:
            inner = form.terms[0][0]
            if inner.kind == "quotient":  # (x / a) / b = x / (a b)
                return self.quotient(inner.data[0], inner.data[1] * divisor)
        low, high = max(form.low, 0), max(form.high, 0)
        bounds = (low // divisor, high // divisor) if kind == "quotient" else (0, min(divisor - 1, high))
        return Affine(0, ((self._derive(kind, *bounds, form, divisor), 1),))

    def _rejoin(self, terms: dict[Atom, int]) -> None:
        """Turn ``k d (x / d) + k (x % d)`` back to ``k x``, in place; x itself goes in as a loose term."""
        for atom in [a for a in terms if a.kind == "remainder"]:
            k = terms.get(atom, 0)
            twin = self._matching_quotient(*atom.data)
            if k and twin is not None and terms.get(twin) == k * atom.data[1]:
                del terms[atom], terms[twin]
                terms[atom.data[0]] = k  # an Affine as a key, taken apart by _expand

    def _matching_quotient(self, form: Affine, divisor: int) -> Atom | None:
        """The atom ``form / divisor``, if there is one."""
        if (
            form.constant == 0
            and len(form.terms) == 1
            and form.terms[0][1] == 1
            and form.terms[0][0].kind == "quotient"
        ):
            inner, by = form.terms[0][0].data
            return self._derived.get(("quotient", inner, by * divisor))
        return self._derived.get(("quotient", form, divisor))

    @staticmethod
    def _loose(terms: dict[Any, int]) -> bool:
        return any(isinstance(a, Affine) for a in terms)

    def _expand(self, constant: int, ordered: list[tuple[Any, int]]) -> Affine:
        parts = [(a if isinstance(a, Affine) else Affine(0, ((a, 1),)), c) for a, c in ordered]
        return self.combine([(Affine(constant), 1), *parts])


def _by_number(term: tuple[Any, int]) -> int:
    return term[0].number if isinstance(term[0], Atom) else 0


def strides(dims: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    found, step = [0] * len(dims), 1
    for d in range(len(dims) - 1, -1, -1):
        found[d] = step
        step *= dims[d]
    return tuple(found)


def atoms_of(forms: Any) -> list[Atom]:
    """Every atom in some forms, also inside other atoms, in order of creation."""
    found: dict[Atom, None] = {}
    stack = [a for f in forms for a, _ in f.terms]
    while stack:
        atom = stack.pop()
        if atom in found:
            continue
        found[atom] = None
        stack += [a for f in forms_within(atom) for a, _ in f.terms]
    return sorted(found, key=lambda a: a.number)


def forms_within(atom: Atom) -> list[Affine]:
    """The forms that an atom is derived from."""
    if atom.kind in ("quotient", "remainder"):
        return [atom.data[0]]
    if atom.kind == "choice":
        return [atom.data[1], *(c.form for c in atom.data[0])]
    return []
