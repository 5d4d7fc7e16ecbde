"""Plans of loops: the way of each variable and each array from one iteration to the next, learned in passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.results.promotion import Kind
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.user_program.user_frames import HOOKS
from cyxla.records import dataclass

if TYPE_CHECKING:
    from cyxla.numpy.rewriting.parts.parts import Leaves


class Variables(NamedTuple):
    """Local variables that a loop binds and that are read later.

    Attributes
    ----------
    names : sequence of str
        Names of the variables.
    carried : frozenset of int
        Indices of those that an iteration may read from the one before.
    kept : frozenset of int
        Indices of those that may be read after the loop.
    rebound : frozenset of int
        Indices of those that are bound to new values rather than to those of other variables.
    exits : frozenset of int
        Indices of flags that end the loop.
    """

    names: Sequence[str]
    carried: frozenset[int]
    kept: frozenset[int]
    rebound: frozenset[int]
    exits: frozenset[int]

    @staticmethod
    def of(
        names: Sequence[str], carried: Sequence[str], kept: Sequence[str], rebound: Sequence[str], exits: Sequence[str]
    ) -> Variables:
        """Make the facts from names."""
        groups = [frozenset(k for k, n in enumerate(names) if n in group) for group in (carried, kept, rebound, exits)]
        return Variables(names, *groups)

    def is_local(self, k: int) -> bool:
        """Return True for a variable of the user, which may be unbound."""
        return not self.names[k].startswith(HOOKS)


class Learned(NamedTuple):
    """Type of a variable that is bound in the body first."""

    leaves: Leaves
    kinds: tuple[Kind, ...]


@dataclass
class Plan:
    """Plan of the state of a loop.

    Attributes
    ----------
    written : list of TracedArray
        Arrays of enclosing functions that iterations write to.
    overwritten : set of int
        Identities of those which iterations write to other than by a variable whose array is carried as a value.
    traced : set of int
        Identities of arrays of known values that became traced, so that uses of them are seen.
    kinds : dict of (int, int) to Kind
        Types that numbers of the initial state are converted to, by variable and leaf.
    ranks : dict of (int, int) to Rank0
        Whether numbers of the initial state are Python's or NumPy's, where iterations decide it.
    learned : dict of int to Learned
        Types of variables that are not bound before the loop, or only read after it.
    maybe_unbound : set of int
        Variables that iterations may leave unbound.
    doubtful : dict of (int, int) to bool
        Numbers whose class depends on the iterations, by variable and leaf; False if it is only whether there are any.
    as_value, as_object : set of int
        Variables whose array is carried as a value, or stays the same array with another value.
    exchanged : dict of int to list
        Arrays of enclosing functions that variables may name after the loop.
    related : set of ((int, int), (int, int))
        Arrays of the state, by variable and leaf, that may share memory after an iteration.
    flows : dict of (int, int) to set of (int, int)
        Arrays of the state, by variable and leaf, that each may have been before an iteration.
    shared : set of tuple of int
        Paths of the lists, dicts and dataclasses in the state that may have other names; see `Path` of `aliases`.
    may_skip : bool
        Whether there may be no iterations.
    period : int
        Number of iterations after which all variables name the same arrays again.
    """

    written: list[TracedArray] = field(default_factory=list)
    overwritten: set[int] = field(default_factory=set)
    traced: set[int] = field(default_factory=set)
    kinds: dict[tuple[int, int], Kind] = field(default_factory=dict)
    ranks: dict[tuple[int, int], Rank0] = field(default_factory=dict)
    learned: dict[int, Learned] = field(default_factory=dict)
    maybe_unbound: set[int] = field(default_factory=set)
    doubtful: dict[tuple[int, int], bool] = field(default_factory=dict)
    as_value: set[int] = field(default_factory=set)
    as_object: set[int] = field(default_factory=set)
    exchanged: dict[int, list[TracedArray]] = field(default_factory=dict)
    related: set[tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=set)
    flows: dict[tuple[int, int], set[tuple[int, int]]] = field(default_factory=dict)
    shared: set[tuple[int, ...]] = field(default_factory=set)
    may_skip: bool = False
    period: int = 1

    def add_written(self, arrays: Sequence[TracedArray]) -> bool:
        """Add arrays; return True if one is new."""
        known = {id(a) for a in self.written}
        new = [a for a in arrays if id(a) not in known]
        self.written.extend(new)
        return bool(new)

    def knowledge(self) -> tuple[Any, ...]:
        """Return what passes have learned so far, to be compared."""
        kinds = {key: (isinstance(kind, type), kind) for key, kind in self.kinds.items()}
        sets = [
            frozenset(s) for s in (self.maybe_unbound, self.as_value, self.as_object, self.overwritten, self.traced)
        ]
        exchanged = {k: frozenset(map(id, arrays)) for k, arrays in self.exchanged.items()}
        names = frozenset(self.related), sum(map(len, self.flows.values())), len(self.shared)
        return len(self.learned), kinds, dict(self.ranks), dict(self.doubtful), sets, exchanged, names


class LoopDecision(Exception):  # noqa: N818 - no error of the program
    """Decision about a loop that is being recorded."""


class Peel(LoopDecision):
    """Decision to run an iteration before the loop, so that the types of its state settle."""


class Repeat(LoopDecision):
    """Decision to record several iterations as one, after which all variables name the same arrays again.

    Parameters
    ----------
    period : int
        Number of iterations.
    """

    def __init__(self, period: int) -> None:
        super().__init__(period)
        self.period = period


class Unsuitable(LoopDecision):
    """Decision that a loop of the program cannot be made of a body.

    Parameters
    ----------
    reason : str
        Reason.
    hint : str
        Advice for the user.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


def peel_or_fail(can_peel: bool, reason: str) -> NoReturn:
    """Decide to run an iteration before the loop if that can be, or that no loop can be made, for a reason."""
    if can_peel:
        raise Peel
    raise Unsuitable(reason)


def is_shared_array(value: Any) -> bool:
    """Return True for an array to which a write is seen by all who have it, unlike a number."""
    return isinstance(value, TracedArray) and value.weak is None and (value.ndim > 0 or value.rank0.name == "ARRAY")
