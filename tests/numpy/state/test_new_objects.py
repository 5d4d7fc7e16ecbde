"""Objects that a function makes and returns: each call gives others, as by the plain function."""

import collections
import copy
import functools
import queue
import types
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning

RNG = np.random.default_rng(0)
T = TypeVar("T")


class Settings:
    def __init__(self):
        self.scale = 2.0


SETTINGS = Settings()
REGISTRY: list = []
FIXED = (types.ModuleType, types.FunctionType, np.ufunc, Settings)


class Vec:
    dimensions = 2

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return type(self)(self.x * k, self.y * k)

    def __neg__(self):
        return self.__class__(-self.x, -self.y)

    def __eq__(self, other):
        return isinstance(other, Vec) and bool((self.x == other.x).all())

    def __hash__(self):
        return 7

    @property
    def norm(self):
        return np.sqrt(self.x**2 + self.y**2)

    @classmethod
    def diagonal(cls, x):
        return cls(x, x)

    @staticmethod
    def zero(n):
        return Vec(np.zeros(n), np.zeros(n))


class Named(Vec):
    def __init__(self, x, y, name="v"):
        super().__init__(x, y)
        self.name = name


class Slotted:
    __slots__ = ("x", "y")

    def __init__(self, x, y=0):
        self.x, self.y = x, y


class Half(Slotted):
    """Class with attributes in slots and in a dict."""

    def __init__(self, x):
        super().__init__(x, 3)
        self.z = x + 1


class Partial:
    __slots__ = ("unset", "x")

    def __init__(self, x):
        self.x = x


class Bag:
    pass


class Node:
    def __init__(self, value, parent=None):
        self.value, self.parent, self.children = value, parent, []
        if parent is not None:
            parent.children.append(self)


class Private:
    def __init__(self, x):
        self.__x = x

    def value(self):
        return self.__x


class Shape(ABC):
    @abstractmethod
    def area(self): ...


class Circle(Shape):
    def __init__(self, r):
        self.r = r

    def area(self):
        return 3 * self.r**2

    def grown(self, k):
        return Circle(self.r * k)


class Box(Generic[T]):
    def __init__(self, item):
        self.item = item


class Outer:
    class Inner:
        def __init__(self, x):
            self.x = x


class Cached:
    def __init__(self, x):
        self.x = x

    @functools.cached_property
    def total(self):
        return self.x.sum()


@dataclass
class Derived:
    x: object
    log: list = field(default_factory=list)

    def __post_init__(self):
        self.double = self.x * 2


class Computed:
    def __init__(self, x):
        self.x = x

    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, value):
        self._x = value * 2


class Guarded:
    def __init__(self, x):
        object.__setattr__(self, "x", x)

    def __setattr__(self, name, value):
        raise AttributeError(name)


class Counted:
    count = 0

    def __init__(self, x):
        Counted.count += 1
        self.x, self.number = x, Counted.count


class Listed:
    members: list = []  # noqa: RUF012 - shared on purpose

    def __init__(self, x):
        self.x = x
        Listed.members.append(self)


class Registered:
    def __init__(self, x):
        self.x = x
        REGISTRY.append(self)


class Tracked:
    members = weakref.WeakSet()  # noqa: RUF012 - shared on purpose

    def __init__(self, x):
        self.x = x
        Tracked.members.add(self)


class Ended:
    def __init__(self, x):
        self.x = x

    def __del__(self):
        self.x = None


class Made:
    def __new__(cls, x):
        made = object.__new__(cls)
        made.x = x
        return made


class Identified:
    def __init__(self, x):
        self.x, self.id = x, id(self)


exec(
    """
class NoSource:
    def __init__(self, x):
        self.x = x
        REGISTRY.append(1)
"""
)


class Defaulted:
    def __init__(self, x, log=[]):  # noqa: B006 - shared on purpose
        self.x, self.log = x, log


class Appending:
    def __init__(self, x, log=[]):  # noqa: B006 - shared on purpose
        self.x = x + len(log)
        log.append(1)


class Queued:
    waiting = queue.SimpleQueue()

    def __init__(self, x):
        self.x = x
        Queued.waiting.put(self)


class Written:
    def __init__(self, x):
        self.x, self.text = x, repr(self)


class Calling:
    def __init__(self, x):
        self.x, self.calls = x, [self.value]

    def value(self):
        return self.x


def array(n=3):
    return RNG.random(n)


def pair(n=3):
    return array(n), array(n)


def attributes(value):
    slots = [n for k in type(value).__mro__ for n in getattr(k, "__slots__", ()) if hasattr(value, n)]
    return {**getattr(value, "__dict__", {}), **{n: getattr(value, n) for n in slots}}


def check(found, wanted, pairs):
    """Compare two values with all that they hold; each object of one stands for one object of the other."""
    assert type(found) is type(wanted)
    if isinstance(wanted, (np.generic, int, float, complex, str, tuple, type(None))):
        pass
    elif id(wanted) in pairs or id(found) in pairs.values():
        assert pairs.get(id(wanted)) == id(found)
        return
    else:
        pairs[id(wanted)] = id(found)
    if isinstance(wanted, (np.ndarray, np.generic)):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-14, strict=True)
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            check(a, b, pairs)
    elif isinstance(wanted, (int, float, complex, str, type(None))):
        assert found == wanted
    elif isinstance(wanted, FIXED):
        assert found is wanted
    else:
        a, b = (v if isinstance(v, dict) else attributes(v) for v in (found, wanted))
        assert list(a) == list(b)
        for name in b:
            check(a[name], b[name], pairs)


def keep_arguments(x, p):
    v = Vec(x, p)
    v.same, v.part = x, p.x
    return v, p


def with_everything(x, n):
    v = Vec(x * 2, n)
    v.text, v.none, v.function, v.module, v.sizes = f"n{1}", None, np.sin, np, (x.shape, n * 2)
    v.settings, v.flag, v.inner = SETTINGS, n > 2, {"a": [Vec(x, 1)], "b": Slotted(n)}
    return v


def tree(x):
    root = Node(x)
    for k in range(3):
        Node(x * k, Node(x + k, root))
    return root


def linked(x):
    v = Bag()
    v.x, v.me = x + 1, v
    v.items = [v, (v, v.x)]
    return v, v.items


def same_twice(x):
    v = Vec(x + 1, x)
    return [v, v], {"v": v, "w": Vec(x + 1, x)}


def by_loop(x, n):
    found = []
    for k in range(3):
        found.append(Vec(x * k, k))
    return found, [Slotted(x[k], n) for k in range(2)], list(map(Circle, (x, n)))


def list_of_loop(x):
    found, counts = [], collections.defaultdict(list)
    for k in range(3):
        found.append(x - k)
    counts["x"].append(x + 1)
    return found, Vec(found, counts), [counts]


def changed_later(x):
    v = Vec(x, 0)
    for k in range(10):
        v.y = v.y + k * x.sum()
    v.x = v.x + 1
    del v.y
    v.z = v.x
    return v


def by_condition(x):
    v = Vec(x, 0.0)
    if x.sum() > 1:
        v.y = x[0]
    else:
        v.y = x[1]
    return v


def choose(x):
    return Vec(x + 1, 1) if x[0] > 0.5 else Vec(-x, 2)


def choose_early(x):
    if x[0] > 0.6:
        return [Named(x + 1, 1)]
    if x[1] > 0.5:
        return [Named(-x, 2)]
    return [Named(x * 3, 3)]


def choose_inner(x):
    v = Vec(x, None)
    if x[0] > 0.5:
        v.inner = Slotted(x * 2, x[1])
    else:
        v.inner = Slotted(x * 3, x[0])
    v.inner.x[0] = 9
    return v


def choose_with_list(x):
    y = [x + 1]
    v = Vec(y, 1) if x[0] > 0.5 else Vec(y, 2)
    v.x.append(3)
    return v, y


def choose_tuple(x, y):
    return (y, 1) if x[0] > 0.5 else (y, 2)


def choose_lists(x):
    y = [x + 1]
    found = [y, x * 2] if x[0] > 0.5 else [y, x * 3]
    found[0].append(3)
    return found, y


def choose_dataclass(x):
    return Derived(x + 1) if x[0] > 0.5 else Derived(x - 1)


def choose_or_raise(x):
    if x[0] < 0:
        raise ValueError("negative")
    return Vec(x * 2, x)


def choose_in_loop(x):
    found = []
    for k in range(3):
        found.append(Vec(x * k, k) if x[k] > 0.5 else Vec(x - k, k))
    return found


def without_init(x):
    v = Bag.__new__(Bag)
    w = object.__new__(Vec)
    v.x, w.y, v.w = x + 1, x - 1, w
    return v


def copies(x):
    v = Vec(x + 1, [Slotted(x), x])
    w, u = copy.copy(v), copy.deepcopy([v, v])
    w.x = w.x * 2
    return v, w, u


def methods(p, q):
    return p + q, p * 2.5, -q, Vec.diagonal(p.x), Named.diagonal(q.x), Vec.zero(2), (p + q).norm


def compare(p, q):
    r = p + q
    return r, r == r, {r: 1}[r], hash(r)


def settings(x):
    v = Vec(SETTINGS, x)
    v.y = v.y * SETTINGS.scale
    return v


def maker(kind):
    def make(*args):
        return kind(*args)

    return make


def vecs():
    return Vec(*pair()), Vec(*pair())


def make_counted(x):
    return Counted(x + 1)


def make_listed(x):
    return Listed(x + 1)


def make_registered(x):
    return Registered(x + 1)


def make_tracked(x):
    return Tracked(x + 1)


def make_ended(x):
    return Ended(x + 1)


def one_of_two_outer_lists(x):
    y = [x]
    one, other = [y, 1.0], [y, 2.0]
    found = one if x.sum() > 0 else other
    found.append(3.0)
    return found, one, other


def one_of_two_old_dataclasses(x):
    one, other = Derived(x + 1), Derived(x - 1)
    found = one if x.sum() > 0 else other
    found.double = x
    return found, one, other


def without_source(x):
    return globals()["NoSource"](x + 1)


def make_by_new(x):
    return Made(x + 1)


def make_identified(x):
    return Identified(x + 1)


def make_guarded(x):
    return Guarded(x + 1)


def make_defaulted(x):
    return Defaulted(x + 1)


def make_appending(x):
    return Appending(x + 1)


def make_queued(x):
    return Queued(x + 1)


def make_written(x):
    return Written(x + 1)


def make_calling(x):
    return Calling(x + 1)


def local_class():
    class Local:
        def __init__(self, x):
            self.x = x

    return lambda x: Local(x + 1)


def two_classes(x):
    return Vec(x, 1) if x.sum() > 0 else Slotted(x, 2)


def new_or_old(x):
    v = Vec(x, 1)
    if x.sum() > 0:
        v = Vec(x, 2)
    return v


def two_names(x):
    if x.sum() > 0:
        v = w = Vec(x, 1)
    else:
        v = w = Vec(x, 2)
    return v, w


def two_names_of_dataclass(x):
    if x.sum() > 0:
        v = w = Derived(x)
    else:
        v = w = Derived(x + 1)
    return v, w


def name_in_list(x):
    found = []
    if x.sum() > 0:
        v = Vec(x, 1)
        found.append(v)
    else:
        v = Vec(-x, 1)
        found.append(v)
    return v, found


def one_of_two_lists(x):
    one, other = [x], [x + 1]
    v = Vec(one, 1) if x.sum() > 0 else Vec(other, 2)
    return v, one, other


def as_key(x):
    return {Bag(): x + 1}


def with_attributes(x):
    v = Vec(x + 1, 2)
    return v, vars(v)


def method(x):
    return Circle(2.0).area, x + 1


def store(p, x):
    p.inner = Vec(x, 1)
    return p.inner


#: Functions, and their arguments.
CASES = {
    "attributes": (lambda x, y: Vec(x + y, y * 2), pair),
    "numbers": (lambda n, m: Vec(n + 1, m * 2), lambda: (3, 2.5)),
    "inheritance": (lambda x, y: Named(x + y, y, "sum"), pair),
    "slots": (lambda x, y: Slotted(x + y), pair),
    "slots and attributes": (lambda x: Half(x * 2), lambda: (array(),)),
    "a slot without a value": (lambda x: Partial(x * 2), lambda: (array(),)),
    "a class without methods": (linked, lambda: (array(),)),
    "arguments": (keep_arguments, lambda: (array(), Vec(*pair()))),
    "all kinds of attributes": (with_everything, lambda: (array(), 3)),
    "a tree": (tree, lambda: (array(),)),
    "the same twice": (same_twice, lambda: (array(),)),
    "loops": (by_loop, lambda: (array(), 2)),
    "a list of a loop twice": (list_of_loop, lambda: (array(),)),
    "changes": (changed_later, lambda: (array(),)),
    "a branch": (by_condition, lambda: (array(),)),
    "one of two": (choose, lambda: (array(),)),
    "early returns": (choose_early, lambda: (array(),)),
    "one of two in another object": (choose_inner, lambda: (array(),)),
    "one of two with the same list": (choose_with_list, lambda: (array(),)),
    "a list of the arguments": (choose_tuple, lambda: (array(), [array()])),
    "one of two lists with the same list": (choose_lists, lambda: (array(),)),
    "one of two dataclasses with more attributes": (choose_dataclass, lambda: (array(),)),
    "one or an exception": (choose_or_raise, lambda: (array(),)),
    "one of two in a loop": (choose_in_loop, lambda: (array(),)),
    "object.__new__": (without_init, lambda: (array(),)),
    "copies": (copies, lambda: (array(),)),
    "methods": (methods, vecs),
    "equality": (compare, vecs),
    "private names": (lambda x: Private(x + 1), lambda: (array(),)),
    "abstract classes": (lambda x: Circle(x + 1).grown(2), lambda: (array(),)),
    "generic classes": (lambda x: Box([x + 1]), lambda: (array(),)),
    "nested classes": (lambda x: Outer.Inner(x + 1), lambda: (array(),)),
    "cached properties": (lambda x: (c := Cached(x + 1), c.total), lambda: (array(),)),
    "a dataclass with more attributes": (lambda x: Derived(x + 1), lambda: (array(),)),
    "a property with a setter": (lambda x: Computed(x + 1), lambda: (array(),)),
    "an object from outside": (settings, lambda: (array(),)),
    "functions that get the class": (lambda x: maker(Slotted)(x + 1), lambda: (array(),)),
    "a default": (make_defaulted, lambda: (array(),)),
    "nothing traced": (lambda x: (Vec(1, "a"), x + 1), lambda: (array(),)),
}

#: Functions that NumPy runs, with their argument, and what the warning says.
REFUSED = {
    "a count": (make_counted, "Counted"),
    "a list of the class": (make_listed, "Listed"),
    "a global list": (make_registered, "Registered"),
    "weak references": (make_tracked, "weak reference"),
    "__del__": (make_ended, "Ended"),
    "__new__": (make_by_new, "Made"),
    "a queue": (make_queued, "put of a SimpleQueue from outside is called"),
    "an address": (make_written, "the text of a new Written"),
    "methods of the object": (make_calling, "new object"),
    "a class in a function": (local_class(), "Local"),
    "id": (make_identified, "id of a new Identified"),
    "__setattr__": (make_guarded, "Guarded"),
    "two classes": (two_classes, "leaves the result"),
    "a new or an old one": (new_or_old, "leaves v"),
    "one of two lists with the same list": (one_of_two_outer_lists, "is another list or a new one"),
    "one of two old dataclasses": (one_of_two_old_dataclasses, "chooses which Derived"),
    "no source": (without_source, "whose __init__ has no source"),
    "two names": (two_names, "several names"),
    "two names of a dataclass": (two_names_of_dataclass, "several names"),
    "names in a list": (name_in_list, "several names"),
    "one of two lists": (one_of_two_lists, "chooses which list"),
    "a key": (as_key, "has a new Bag as a key"),
    "attributes as a dict": (with_attributes, "__dict__"),
    "a method": (method, "new object"),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    function, make = CASES[name]
    jitted = cyxla.jit(function)
    for _ in range(5):
        args = make()
        pairs = {id(a): id(a) for v in args for a in (v, *getattr(v, "__dict__", {}).values())}
        wanted, found, again = function(*args), jitted(*args), jitted(*args)
        check(found, wanted, dict(pairs))
        check(again, wanted, dict(pairs))
        assert found is not again
    assert jitted.cache_info().misses <= 5


def test_changed_default():
    jitted, x = cyxla.jit(make_appending), array()
    for k in range(3):
        np.testing.assert_allclose(jitted(x).x, make_appending(x).x - 1)
        assert Appending.__init__.__defaults__ == ([1] * (2 * k + 2),)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    function, text = REFUSED[name]
    jitted = cyxla.jit(function, fallback="numpy")
    x = array()
    with pytest.warns(FallbackWarning, match=text):
        found = jitted(x)
    again = jitted(x)
    assert type(found) is type(again) is type(function(x))
    assert found is not again


def test_side_effects_of_refused():
    before = Counted.count, len(Listed.members), len(REGISTRY), len(Appending.__init__.__defaults__[0])
    with pytest.warns(FallbackWarning):
        made = [
            cyxla.jit(f, fallback="numpy")(array())
            for f in (make_counted, make_listed, make_registered, make_tracked, make_appending, make_defaulted)
        ]
    now = Counted.count, len(Listed.members), len(REGISTRY), len(Appending.__init__.__defaults__[0])
    assert now == tuple(n + 1 for n in before)
    assert made[0].number == Counted.count
    assert made[1] is Listed.members[-1]
    assert made[2] is REGISTRY[-1]
    assert made[3] in Tracked.members
    assert made[5].log is Defaulted.__init__.__defaults__[0]


def test_class_that_is_bound_anew(monkeypatch):
    jitted = cyxla.jit(lambda x: Vec(x + 1, x))
    assert type(jitted(array())) is Vec
    monkeypatch.setitem(globals(), "Vec", Slotted)
    assert type(jitted(array())) is Slotted


def test_any_size():
    jitted = cyxla.jit(lambda x: Vec([x * 2], x.shape[0]))
    for n in range(2, 12):
        x = array(n)
        found = jitted(x)
        assert found.y == n
        np.testing.assert_array_equal(found.x[0], x * 2)
    assert jitted.cache_info().misses == 3


def test_size_known_at_run_time():
    jitted = cyxla.jit(lambda x: Vec(x[x > 0.5], (x > 0.5).sum()))
    for _ in range(3):
        x = array(9)
        found = jitted(x)
        assert type(found) is Vec
        assert len(found.x) == found.y == (x > 0.5).sum()


def test_results_are_arguments_of_other_calls():
    @cyxla.jit
    def step(v, dt):
        return Vec(v.x + v.y * dt, v.y - v.x * dt)

    v = w = Vec(*pair())
    for _ in range(5):
        v, w = step(v, 0.5), step.function(w, 0.5)
        check(v, w, {})
    assert step.cache_info().misses == 1


def test_object_that_is_kept_in_an_argument():
    def store(p, x):
        p.inner = Vec(x, 1)
        return p.inner

    p = Vec(1, 2)
    with pytest.warns(FallbackWarning, match="becomes a Vec"):
        assert cyxla.jit(store, fallback="numpy")(p, array()) is p.inner


def test_jitted_functions_call_each_other():
    @cyxla.jit
    def inner(v):
        return Vec(v.x + 1, v)

    @cyxla.jit
    def outer(x):
        v = Vec(x, 1)
        return inner(v), v

    found, v = outer(array())
    assert found.y is v
