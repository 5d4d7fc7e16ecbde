"""Index forms against plain integer arithmetic."""

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.xla.cpu.loops.index_map import (
    Affine,
    Atom,
    Choice,
    Condition,
    Loop,
    Quotient,
    Remainder,
    Space,
    atoms_of,
    strides,
)


def value(form: Affine, loops: dict[Atom, int]) -> int:
    """A form at a point."""
    return form.constant + sum(c * atom(a, loops) for a, c in form.terms)


def atom(a: Atom, loops: dict[Atom, int]) -> int:
    match a:
        case Loop():
            return loops[a]
        case Choice(conditions=conditions, form=form):
            holds = all(c.low <= value(c.form, loops) <= c.high for c in conditions)
            return value(form, loops) if holds else 0
        case Quotient(form=form, divisor=divisor):
            return value(form, loops) // divisor
        case Remainder(form=form, divisor=divisor):
            return value(form, loops) % divisor
    raise AssertionError(a)


def points(space: Space, extents):
    for point in itertools.product(*(range(n) for n in extents)):
        yield dict(zip(space.loops, point, strict=True)), point


@st.composite
def dims_of_one_size(draw):
    """Two lists of dims with as many elements."""
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3, 4, 5]), min_size=1, max_size=5))
    other = draw(st.permutations(factors))

    def merged(values):
        found, i = [], 0
        while i < len(values):
            n = draw(st.integers(1, 3))
            found.append(prod(values[i : i + n]))
            i += n
        return tuple(found)

    return merged(factors), merged(list(other))


@settings(max_examples=150, deadline=None)
@given(dims_of_one_size())
def test_reshape_keeps_the_row_major_number(pair):
    of, to = pair
    space = Space(of)
    index = space.index(of, tuple(space.loop(i) for i in range(len(of))))
    other = space.index(to, index.at(to).coordinates)
    back = space.index(of, other.at(of).coordinates)
    for loops, point in points(space, of):
        number = int(np.ravel_multi_index(point, of))
        assert tuple(value(c, loops) for c in other.coordinates) == np.unravel_index(number, to)
        assert value(other.linear, loops) == number
        assert tuple(value(c, loops) for c in back.coordinates) == point
    assert other.linear.terms == index.linear.terms, "quotients and remainders join again"


@settings(max_examples=150, deadline=None)
@given(dims_of_one_size(), st.data())
def test_chains_of_movement(pair, data):
    dims, to = pair
    space = Space(dims)
    array = np.arange(prod(dims)).reshape(dims)
    coordinates = [space.loop(i) for i in range(len(dims))]
    for d, n in enumerate(dims):
        if data.draw(st.booleans()):
            coordinates[d] = coordinates[d].scale(-1).shift(n - 1)
            array = np.flip(array, d)
    # the element of `array` at the loops is the element of the reshaped source at these coordinates
    source = space.index(to, space.index(dims, tuple(coordinates)).at(to).coordinates)
    flat = np.arange(prod(dims)).reshape(to)
    for loops, point in points(space, dims):
        assert flat[tuple(value(c, loops) for c in source.coordinates)] == array[point]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
    st.lists(st.integers(0, 9), min_size=4, max_size=4),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_quotient_and_remainder(extents, numbers, a, b):
    space = Space(extents)
    form = space.combine([(space.loop(i), numbers[i]) for i in range(len(extents))]).shift(numbers[3])
    q, r = space.quotient(form, a), space.remainder(form, a)
    nested = space.quotient(q, b)
    joined = space.combine(((q, a), (r, 1)))
    for loops, _ in points(space, extents):
        x = value(form, loops)
        assert value(q, loops) == x // a
        assert value(r, loops) == x % a
        assert value(nested, loops) == x // a // b
        assert value(joined, loops) == x
        for f in (q, r, nested):
            assert f.low <= value(f, loops) <= f.high


def test_a_reshape_that_merges_needs_no_division():
    space = Space((4, 6))
    index = space.index((4, 6), (space.loop(0), space.loop(1)))
    assert not [a for a in atoms_of(index.at((24,)).coordinates) if not isinstance(a, Loop)]
    assert not [
        a
        for a in atoms_of(index.at((2, 2, 6)).at((4, 6)).coordinates)
        if not isinstance(a, Loop | Quotient | Remainder)
    ]


def test_loops_of_one_step_are_zero():
    space = Space((1, 5))
    assert space.loop(0).is_constant
    assert strides((1, 5)) == (5, 1)


@pytest.mark.parametrize(
    "low,high,decided", [(0, 9, True), (-3, 20, True), (10, 12, False), (-5, -1, False), (0, 8, None), (1, 9, None)]
)
def test_conditions_that_ranges_settle(low, high, decided):
    space = Space((10,))
    assert Condition(space.loop(0), low, high).decided is decided


def test_a_choice_is_safe_to_read():
    space = Space((10,))
    moved = space.loop(0).shift(-3)
    chosen = space.choice((Condition(moved, 0, 4),), moved, 4)
    assert [value(chosen, loops) for loops, _ in points(space, (10,))] == [0, 0, 0, 0, 1, 2, 3, 4, 0, 0]
    assert (chosen.low, chosen.high) == (0, 4)
