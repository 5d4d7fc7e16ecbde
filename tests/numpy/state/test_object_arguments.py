"""Objects of the user's classes as arguments: read, changed and returned as by the plain function."""

import enum
import gc
import weakref

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning

RNG = np.random.default_rng(0)


class Point:
    def __init__(self, x, y=0.0):
        self.x, self.y = x, y

    def scaled(self, k):
        return self.x * k + self.y


class Slotted:
    __slots__ = ("x", "y")

    def __init__(self, x, y=0):
        self.x, self.y = x, y


class Part:
    def __init__(self, x):
        self.x, self.inner, self.log = x, Point(x + 1), []


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Listed:
    members = []  # noqa: RUF012 - shared on purpose

    def __init__(self, x):
        self.x = x


def array(n=3):
    return RNG.random(n)


def read(p, q):
    return p.x @ q.x + p.scaled(2).sum()


def change(p, q):
    p.x = p.x + q.x
    q.y += 1
    return p.x.sum()


def write_in_place(p, q):
    p.x += q.x
    q.x[1:] = p.x[1:] * 2


def return_objects(p, q):
    p.x = p.x * 2
    return q, [p, p.x], q


def compare_identity(p, q):
    return p is q, p.x + q.x


def use_number(p):
    p.y = p.y * 2 + 1
    return p.x * p.y if p.y > 5 else p.x - p.y


def add_attribute(p):
    if not hasattr(p, "extra"):
        p.extra = p.x * 2
    return p.extra


def delete_attribute(p):
    if hasattr(p, "y"):
        del p.y
    p.z = p.x
    return p.z


def change_in_loop(p):
    for _ in range(5):
        p.x = p.x * 0.5 + 1
        p.y += 1
    return p.y


def link_to_itself(p):
    p.me = p
    return p.me.x * 2


def read_inner(p):
    p.inner.x = p.inner.x * 2
    return p.x + p.inner.x


def append(p):
    p.log.append(p.x.sum())
    return len(p.log)


def choose(mode, x):
    return x * 2 if mode is Mode.FAST else x - 1


def others(p):
    return sum((q.x - p.x for q in Listed.members if q is not p), start=np.zeros(3))


def same_twice(p):
    p.x[0] = 5
    return p.y * 2


def points():
    return Point(array(), array()), Point(array(), 1)


#: Functions, with their arguments, and whether one program serves all objects of the same classes.
CASES = {
    "attributes are read": (read, points, True),
    "attributes are set": (change, points, True),
    "arrays are written": (write_in_place, points, True),
    "objects are returned": (return_objects, points, True),
    "two objects": (compare_identity, points, True),
    "an object twice": (compare_identity, lambda: (p := Point(array()), p), False),
    "slots": (change, lambda: (Slotted(array()), Slotted(array(), 3)), True),
    "numbers": (use_number, lambda: (Point(array(), float(RNG.integers(5))),), False),
    "an attribute is new": (add_attribute, lambda: (Point(array()),), True),
    "an attribute is deleted": (delete_attribute, lambda: (Point(array(), array()),), True),
    "a loop": (change_in_loop, lambda: (Point(array(), 0),), True),
    "an object that refers to itself": (link_to_itself, lambda: (Point(array()),), True),
    "objects in objects": (read_inner, lambda: (Part(array()),), False),
    "lists of objects": (append, lambda: (Part(array()),), False),
    "an array twice": (same_twice, lambda: (Point(x := array(), x),), False),
}


def contents(value):
    """Return attributes, in their order, down to arrays and numbers."""
    if isinstance(value, (Point, Part)):
        return type(value), {k: contents(v) if v is not value else "itself" for k, v in vars(value).items()}
    if isinstance(value, Slotted):
        return contents(value.x), contents(value.y)
    if isinstance(value, (tuple, list)):
        return [type(value), *map(contents, value)]
    return type(value), None if value is None else np.round(np.asarray(value, float), 9).tolist()


def copied(arguments):
    """Return equal arguments, of which the same are the same again."""
    import copy

    return copy.deepcopy(arguments)


def places(result, arguments):
    """Return the places in a result of objects that are arguments."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [[p is a for a in arguments] for p in parts]


@pytest.mark.parametrize("name", CASES)
def test_functions_of_objects(name):
    function, make, serves_all = CASES[name]
    jitted = cyxla.jit(function)
    objects = [make() for _ in range(4)]
    for arguments in (*objects, *objects[:2]):
        given = copied(arguments)
        expected = function(*given)
        result = jitted(*arguments)
        assert contents(result) == contents(expected)
        assert contents(arguments) == contents(given)
        assert places(result, arguments) == places(expected, given)
    if serves_all:
        assert jitted.cache_info().misses <= 2  # the second, of an attribute that was set before


@pytest.mark.parametrize("mode", Mode)
def test_members_of_enums(mode):
    jitted, x = cyxla.jit(choose), array()
    for _ in range(2):
        np.testing.assert_array_equal(jitted(mode, x), choose(mode, x))


def test_other_objects_are_not_taken_for_the_argument():
    Listed.members[:] = [Listed(array()) for _ in range(3)]
    jitted = cyxla.jit(others)
    for p in (*Listed.members, *Listed.members):
        np.testing.assert_allclose(jitted(p), others(p))


def test_methods_of_many_objects_share_a_program():
    class Model:
        def __init__(self, n):
            self.w, self.steps = np.full(3, float(n)), 0

        @cyxla.jit
        def step(self, x):
            self.w = self.w * 0.5 + x
            self.steps += 1
            return self

    models = [Model(n) for n in range(20)]
    for _ in range(2):
        for model in models:
            assert model.step(1.0) is model
    assert [m.steps for m in models] == [2] * 20
    np.testing.assert_array_equal([m.w for m in models], [np.full(3, n * 0.25 + 1.5) for n in range(20)])
    assert Model.step.cache_info().misses <= 2


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("slots", "an object that refers to itself")])
def test_programs_do_not_keep_objects_alive(name):
    function, make, _ = CASES[name]
    jitted = cyxla.jit(function)
    for _ in range(3):
        arguments = make()
        references = [weakref.ref(p) for p in arguments]
        gc.disable()  # objects go at once, not when cycles are searched for
        try:
            result = jitted(*arguments)
            del arguments, result
            assert [r() for r in references] == [None] * len(references)
        finally:
            gc.enable()


def test_objects_of_other_packages_are_for_the_plain_function():
    import fractions

    with pytest.warns(FallbackWarning, match="argument f is a Fraction"):
        assert cyxla.jit(lambda f: f + 1, fallback="numpy")(fractions.Fraction(1, 2)) == fractions.Fraction(3, 2)


def test_failed_runs_change_nothing():
    def fail(p, k):
        p.x = p.x * 2
        p.y = p.x[k]

    p = Point(array(), 0)
    before = p.x
    with pytest.raises(IndexError):
        cyxla.jit(fail)(p, 7)
    assert p.x is before


class Statistics:
    """An object whose attributes have names that arrays and NumPy have too."""

    def __init__(self):
        self.mean, self.power = 2.0, [1.0, 2.0]

    def sum(state):  # noqa: N805 - no method that is known by the name of its first parameter
        return state.mean * 2

    def dot(state, x):  # noqa: N805
        return x * state.mean if x[0] > 0 else x

    def __add__(state, x):  # noqa: N805
        return state.mean + x

    @property
    def half(state):  # noqa: N805
        return state.mean / 2


STATISTICS = Statistics()


def mean_of(state):
    return state.mean


NAMED_AS_IN_NUMPY = {
    "attribute": lambda x, c: x * c.mean,
    "method": lambda x, c: x * c.sum(),
    "method_with_a_branch": lambda x, c: c.dot(x),
    "item": lambda x, c: x * c.power[0],
    "property": lambda x, c: x * c.half,
    "operator": lambda x, c: c + x.sum(),
    "of_a_helper": lambda x, c: x * mean_of(c),
    "of_a_helper_in_a_tuple": lambda x, c: x * mean_of((c,)[0]),
    "attribute_of_a_global": lambda x, c: x * STATISTICS.mean,
    "method_of_a_global": lambda x, c: x * STATISTICS.sum(),
    "global_for_a_helper": lambda x, c: x * mean_of(STATISTICS),
    "default": lambda x, c, d=STATISTICS: x * d.mean,
}


@pytest.mark.parametrize("name", NAMED_AS_IN_NUMPY)
def test_attributes_named_as_in_numpy(name):
    function = NAMED_AS_IN_NUMPY[name]
    jitted, x = cyxla.jit(function), np.array([2.0, 3.0])
    for mean in (2.0, 3.0):
        STATISTICS.mean, STATISTICS.power[0] = mean, mean - 1
        np.testing.assert_array_equal(jitted(x, STATISTICS), function(x, STATISTICS))


class Link:
    def __init__(self, after=None):
        self.after, self.total = after, 0.0


LINKS = [Link(Link())]


def drop(head, x):
    dropped = head.after
    head.after = None
    dropped.total = x.sum()  # of an object that nothing else holds
    return dropped.total


@pytest.mark.parametrize("by_argument", [False, True])
def test_change_of_an_object_that_the_function_drops(by_argument):
    LINKS[0].after = Link()
    jitted = cyxla.jit(drop) if by_argument else cyxla.jit(lambda x: drop(LINKS[0], x))
    x = np.array([2.0, 3.0])
    assert jitted(LINKS[0], x) == 5.0 if by_argument else jitted(x) == 5.0
    assert LINKS[0].after is None
