"""Objects of the user's classes, callable ones, generators and iterators from outside: calls change them as plain ones.

A row makes a function, which has a function `state` that shows what calls change, from a shared body. The jitted
function is compiled unless the row gives the reason why it is not.
"""

import collections
import contextlib
import copy
import functools
import itertools
import threading
import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning

X, Y = np.arange(1.0, 7.0), -np.arange(6.0)
CALLS = (X, Y, X)
MAKERS = {}
REASONS = {}


@pytest.fixture(autouse=True)
def fallback(monkeypatch):
    """Use the default, which is to fall back."""
    monkeypatch.delenv("CYXLA_FALLBACK")


class Counter:
    """An object whose methods change it, also those that Python calls by itself."""

    def __init__(self):
        self.n, self.items, self.w = 0, [], np.zeros(3)

    def step(self, x):
        self.n += 1
        self.w[:] += x[:3]
        return x * self.n

    def __call__(self, x):
        return self.step(x) + 1

    def __getitem__(self, key):
        self.n += 1
        return self.n * key

    def __setitem__(self, key, value):
        self.w[key] = self.w[key] + value

    def __len__(self):
        self.n += 1
        return 3

    def __add__(self, x):
        self.n += 1
        self.items.append(self.n)
        return x + self.n

    def __iadd__(self, x):
        self.w = self.w + x[:3]
        return self

    def __eq__(self, other):
        self.n += 1
        return True

    __hash__ = None

    def __bool__(self):
        self.n += 1
        return True

    def __contains__(self, value):
        self.n += 1
        return value == 3

    def __iter__(self):
        self.n += 1
        return iter((1, 2, self.n))

    def __enter__(self):
        self.n += 10
        return self

    def __exit__(self, *_):
        self.n += 100

    @property
    def total(self):
        self.n += 1
        return self.n


class Derived(Counter):
    def step(self, x):
        return super().step(x) + 1


def of_counter(body, kind=Counter):
    """Add a function of an object and an array."""

    def make():
        counter = kind()

        def run(x):
            return body(counter, x)

        run.state = lambda: (counter.n, list(counter.items), counter.w.copy())
        return run

    MAKERS[body.__name__.strip("_")] = make
    return body


def maker(reason=""):
    """Add a function that makes a function of an array."""

    def add(make):
        MAKERS[make.__name__] = make
        if reason:
            REASONS[make.__name__] = reason
        return make

    return add


@of_counter
def called(counter, x):
    return counter(x)


@of_counter
def item(counter, x):
    return x * counter[2]


@of_counter
def length(counter, x):
    return x * len(counter), counter.n


@of_counter
def sum_with_array(counter, x):
    return counter + x


@of_counter
def augmented(counter, x):
    counter += x
    return x.sum()


@of_counter
def item_written(counter, x):
    counter[0] = x[0]
    return x


@of_counter
def entered(counter, x):
    with counter as c:
        return x * c.n


@of_counter
def condition(counter, x):
    return x if counter else -x


@of_counter
def membership(counter, x):
    return x if 3 in counter else -x


@of_counter
def iterated(counter, x):
    return sum(k * x for k in counter)


@of_counter
def property_read(counter, x):
    return x * counter.total


@of_counter
def compared(counter, x):
    return x if counter == 1 else -x


@of_counter
def method_mapped(counter, x):
    return list(map(counter.step, [x, x * 2]))


@of_counter
def method_of_partial(counter, x):
    return functools.partial(Counter.step, counter)(x)


of_counter(lambda c, x: c.step(x), Derived)
MAKERS["method of base class"] = MAKERS.pop("<lambda>")


@maker()
def callable_as_key():
    class Key:
        n = 0

        def __call__(self, v):
            self.n += 1
            return -v

    key = Key()

    def run(x):
        return sorted([3, 1, 2], key=key), x * key.n

    run.state = lambda: key.n
    return run


@maker()
def partial_from_outside():
    counter = Counter()
    call = functools.partial(counter.step)

    def run(x):
        return call(x)

    run.state = lambda: (counter.n, counter.w.copy())
    return run


@maker()
def bound_method_from_outside():
    counter = Counter()
    step = counter.step

    def run(x):
        return step(x)

    run.state = lambda: (counter.n, counter.w.copy())
    return run


@maker()
def callback():
    counter, holder = Counter(), Counter()
    holder.callback = counter.step

    def run(x):
        return holder.callback(x)

    run.state = lambda: (counter.n, counter.w.copy(), holder.n)
    return run


@maker()
def function_as_attribute():
    holder, functions = Counter(), itertools.cycle([np.tanh, np.sin, lambda v: v * 3])
    holder.function = next(functions)

    def run(x):
        return holder.function(x)

    run.between = lambda: setattr(holder, "function", next(functions))
    return run


@maker()
def private_attribute():
    class Account:
        def __init__(self):
            self.__n = 0

        def step(self, x):
            self.__n += 1
            return x * self.__n

    account = Account()

    def run(x):
        return account.step(x)

    run.state = lambda: dict(vars(account))
    return run


@maker("h changes an attribute of an argument from outside")
def object_passed_to_function_without_source():
    counter = Counter()
    space = {}
    exec("def h(c, x):\n    c.n += 1\n    return x * c.n\n", space)
    h = space["h"]

    def run(x):
        return h(counter, x)

    run.state = lambda: counter.n
    return run


@maker()
def function_passed_on():
    n = [0]

    def step(v):
        n[0] += 1
        return v * n[0] if v.sum() > 0 else -v

    def run(x):
        return list(map(step, [x, x * 2]))

    run.state = lambda: list(n)
    return run


@maker()
def generator():
    n, w = [0], np.zeros(2)

    def parts(x):
        for v in x[:3]:
            n[0] += 1
            w[0] += v
            yield v * n[0] if v > 2 else v

    def run(x):
        return list(parts(x)), n[0]

    run.state = lambda: (list(n), w.copy())
    return run


@maker()
def context_manager():
    log = []

    @contextlib.contextmanager
    def doubled(x):
        log.append("in")
        try:
            yield x * 2
        finally:
            log.append("out")

    def run(x):
        with doubled(x) as y:
            return y + len(log)

    run.state = lambda: list(log)
    return run


@maker("h changes n from outside")
def without_source():
    space = {"n": 0}
    exec("def h(x):\n    global n\n    n += 1\n    return x * n\n", space)
    h = space["h"]

    def run(x):
        return h(x)

    run.state = lambda: space["n"]
    return run


@maker()
def rebound_name_of_function_without_source():
    space = {"n": 0}
    exec("def h(x):\n    return x * n\n", space)
    h = space["h"]

    def run(x):
        return h(x)

    run.between = lambda: space.update(n=space["n"] + 1)
    return run


@maker("range_iterator from outside")
def iterator():
    numbers = iter(range(100))

    def run(x):
        return x * next(numbers)

    return run


@maker("generator from outside")
def generator_from_outside():
    numbers = (k for k in range(9))

    def run(x):
        return x * next(numbers)

    return run


@maker("count from outside")
def counting():
    numbers = itertools.count()

    def run(x):
        return x * next(numbers)

    return run


@maker("defaultdict from outside")
def defaultdict():
    found = collections.defaultdict(int)

    def run(x):
        found["k"] += 1
        return x * found["k"]

    run.state = lambda: dict(found)
    return run


@maker("Counter from outside")
def counts():
    found = collections.Counter()

    def run(x):
        found.update(["a"])
        return x * found["a"]

    run.state = lambda: dict(found)
    return run


@maker("attributes of a Counter from outside are used as a dict")
def attributes_as_dict():
    counter = Counter()

    def run(x):
        vars(counter)["n"] += 1
        return x * counter.n

    run.state = lambda: counter.n
    return run


@maker("attributes of a Counter from outside are used as a dict")
def attributes_in_dict():
    counter = Counter()

    def run(x):
        counter.__dict__["n"] = counter.n + 1
        return x * counter.n

    run.state = lambda: counter.n
    return run


@maker()
def class_in_function():
    def run(x):
        class Vector:
            n = 0

            def __init__(self, a):
                self.a = a if a.sum() > 0 else -a

            def __add__(self, other):
                return Vector(self.a + other.a)

            def __getitem__(self, key):
                self.n += 1
                return self.a[key] * self.n

        v = Vector(x) + Vector(x * 2)
        return v.a, v[0], v[0], v.n

    return run


def call(function, x):
    """Return a result, or the error in its place."""
    x = x.copy()
    try:
        return function(x), x
    except Exception as error:
        return repr(error), x


def history(make, decorate):
    """Return results, arguments and states of some calls."""
    plain = make()
    function, seen = decorate(plain), []
    for x in CALLS:
        seen.append((call(function, x), copy.deepcopy(getattr(plain, "state", lambda: None)())))
        getattr(plain, "between", lambda: None)()
    return seen


def require_equal(got, expected):
    assert type(got) is type(expected)
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            require_equal(one, other)
    elif isinstance(expected, np.ndarray):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    else:
        assert got == expected


@pytest.mark.parametrize("name", MAKERS)
def test_state(name):
    expected = history(MAKERS[name], lambda f: f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = history(MAKERS[name], cyxla.jit)
    require_equal(got, expected)
    reasons = [str(w.message) for w in caught if issubclass(w.category, FallbackWarning)]
    assert len(reasons) == (name in REASONS), reasons
    assert all(REASONS[name] in r for r in reasons)


def test_classes_get_their_methods_back():
    before = dict(vars(Counter))
    counter = Counter()
    cyxla.jit(lambda x: counter + x)(X)
    assert dict(vars(Counter)) == before
    with pytest.raises(ZeroDivisionError):
        cyxla.jit(lambda x: counter + x / (counter.n - counter.n))(3)
    assert dict(vars(Counter)) == before


def test_methods_of_other_threads():
    """A class has rewritten methods while one thread traces; another one gets the plain results."""
    counter, other = Counter(), Counter()
    entered, left, seen = threading.Event(), threading.Event(), []

    def waiting(x):
        counter + x
        entered.set()
        left.wait(10)
        return counter + x

    thread = threading.Thread(target=lambda: seen.append(cyxla.jit(waiting)(X)))
    thread.start()
    assert entered.wait(10)
    np.testing.assert_array_equal(other + X, X + 1)
    assert len(other) == 3
    left.set()
    thread.join()
    np.testing.assert_array_equal(seen[0], X + 2)
    assert (counter.n, counter.items, other.n, other.items) == (2, [1, 2], 2, [1])


class Cached:
    def __init__(self):
        self.factor = np.arange(3.0)

    @functools.cached_property
    def table(self):
        return np.ones(3) + self.factor

    @cyxla.jit
    def scaled(self, x):
        return x * self.table

    @cyxla.jit
    def scaled_anew(self, x):
        self.factor = self.factor * x[0]
        return x * self.table


def test_cached_property():
    cached = Cached()
    x = np.ones(3) * 2
    np.testing.assert_array_equal(cached.scaled(x), [2, 4, 6])
    assert type(vars(cached)["table"]) is np.ndarray
    cached.table[0] = 9
    np.testing.assert_array_equal(cached.scaled(x), [18, 4, 6])
    cached.table = np.zeros(3)
    np.testing.assert_array_equal(cached.scaled(x), [0, 0, 0])
    del cached.table
    cached.factor = np.ones(3)
    np.testing.assert_array_equal(cached.scaled(x), [4, 4, 4])


def test_cached_property_of_changed_object():
    cached = Cached()
    with pytest.warns(FallbackWarning, match="computed for the first time after objects have changed"):
        np.testing.assert_array_equal(cached.scaled_anew(np.ones(3) * 2), [2, 6, 10])
