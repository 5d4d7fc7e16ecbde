"""NumPy while another thread traces: the module is unchanged, and imported names resemble the originals."""

import copy
import inspect
import pickle
import threading
from operator import attrgetter
from types import FunctionType, ModuleType

import numpy as np
import pytest

import cyxla
from cyxla.numpy.substitutes import patched_numpy

_, OWN_RANDOM = patched_numpy._random_functions()
ORIGINALS = patched_numpy._originals
CLASSES = [name for name, value in ORIGINALS.items() if isinstance(value, type)]
TRACED = dict(ORIGINALS)  # globals of a module that imported all of NumPy's names
exec("def traced(x, wait):\n    wait()\n    return x + 1.0\n", TRACED)


@pytest.fixture(scope="module")
def traced_globals():
    """Yield the globals of a module that imported NumPy's names, while another thread traces one of its functions."""
    reached, go_on = threading.Event(), threading.Event()
    function = cyxla.jit(TRACED["traced"], static=("wait",))
    tracer = threading.Thread(target=lambda: function(np.ones(3), lambda: (reached.set(), go_on.wait(60))))
    tracer.start()
    assert reached.wait(60)
    yield TRACED
    assert function.programs.misses == 0  # it was being traced throughout
    go_on.set()
    tracer.join()
    assert all(TRACED[name] is value for name, value in ORIGINALS.items())
    assert type(np) is type(np.random) is type(np.linalg) is ModuleType


def result(call, *args):
    """Return the result of a call, or its error."""
    try:
        return call(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.usefixtures("traced_globals")
@pytest.mark.parametrize("name", ORIGINALS)
def test_module_exposes_originals(name):
    assert attrgetter(name)(np) is ORIGINALS[name]


@pytest.mark.usefixtures("traced_globals")
@pytest.mark.parametrize("name", OWN_RANDOM)
def test_random_functions(name):
    assert getattr(np.random, name) is OWN_RANDOM[name]
    assert pickle.loads(pickle.dumps(getattr(np.random, name))).__name__ == name


@pytest.mark.usefixtures("traced_globals")
def test_the_module_is_a_module():
    assert isinstance(np, ModuleType)
    assert inspect.ismodule(np)
    assert repr(np).startswith("<module 'numpy' from ")
    assert copy.copy(np) is np
    assert pickle.loads(pickle.dumps(np)) is np  # picklers recognise modules by their class
    with pytest.raises(AttributeError, match="module 'numpy' has no attribute 'nothing'"):
        np.nothing  # noqa: B018


@pytest.mark.usefixtures("traced_globals")
def test_attributes_may_be_set_and_deleted(monkeypatch):
    def user_function():
        """Docstring of a user's function."""

    monkeypatch.setattr(np, "zeros", user_function)
    assert np.zeros is user_function
    monkeypatch.undo()
    monkeypatch.delattr(np, "zeros")
    with pytest.raises(AttributeError, match="zeros"):
        np.zeros  # noqa: B018
    monkeypatch.undo()
    assert np.zeros is ORIGINALS["zeros"]


def pickled(value):
    return pickle.loads(pickle.dumps(value))


WAYS = {
    "repr": repr,
    "hash": hash,
    "dir": dir,
    "pickle": lambda f: pickled(f) == f or type(pickled(f)),
    "copy": lambda f: copy.copy(f) == copy.deepcopy(f) == f,
    "signature": lambda f: result(inspect.signature, f),
    "isroutine": inspect.isroutine,
    "isfunction": inspect.isfunction,
    "isclass": inspect.isclass,
    "is of its type": lambda f: (f.__class__, isinstance(f, FunctionType)),
    "name": lambda f: (f.__name__, f.__qualname__) if hasattr(f, "__qualname__") else getattr(f, "__name__", None),
    "module": lambda f: f.__module__,
    "doc": lambda f: f.__doc__,
    "callable": callable,
    "a method": lambda f: callable(f) and type("Class", (), {"f": f})().f.__class__,
    "a wrong call": lambda f: result(lambda: f(no_such_argument=1)) if callable(f) else result(f.__getitem__, ()),
}


@pytest.mark.parametrize("way", WAYS)
def test_proxies_resemble_the_originals(traced_globals, way):
    differ = {name: (WAYS[way](traced_globals[name]), WAYS[way](own)) for name, own in ORIGINALS.items()}
    assert not {name: pair for name, pair in differ.items() if repr(pair[0]) != repr(pair[1])}


@pytest.mark.parametrize("name", ORIGINALS)
def test_proxies_are_equal_but_not_identical(traced_globals, name):
    """A substitute cannot be identical to the original."""
    assert traced_globals[name] == ORIGINALS[name]
    assert ORIGINALS[name] == traced_globals[name]
    assert {ORIGINALS[name]: 1}[traced_globals[name]] == 1
    assert traced_globals[name] is not ORIGINALS[name]


def derived(base):
    class Derived(base):
        pass

    return Derived.__mro__[1:]


@pytest.mark.parametrize("name", CLASSES)
def test_class_proxies_resemble_the_originals(traced_globals, name):
    theirs, own = traced_globals[name], ORIGINALS[name]
    made = theirs((3,))  # a value, or a shape
    assert type(made) is own
    assert isinstance(made, theirs)
    assert isinstance(own((3,)), (str, theirs))
    assert not isinstance(3, theirs)
    assert issubclass(own, theirs)
    assert not issubclass(int, theirs)

    assert result(derived, theirs) == result(derived, own)
    assert isinstance(made, int | theirs)
    assert isinstance(made, theirs | int)


def test_calls_equal_the_originals(traced_globals):
    x = np.arange(6.0).reshape(2, 3)
    for name in ("sum", "transpose", "ravel", "linalg.norm", "sin", "asarray", "zeros_like", "argsort", "cumsum"):
        np.testing.assert_array_equal(traced_globals[name](x), ORIGINALS[name](x))
        assert type(traced_globals[name](x)) is type(ORIGINALS[name](x))
    assert traced_globals["r_"][1:4].tolist() == [1, 2, 3]
    assert traced_globals["add"].reduce([1, 2, 3]) == 6
    assert (traced_globals["add"].nin, traced_globals["add"].signature) == (2, None)


@pytest.mark.parametrize(
    "keys", [lambda a, b: (a, b), lambda a, b: [a, b], lambda a, b: [a[a > 0], b[a > 0]], lambda a, b: (list(a), b)],
    ids=["tuple", "list", "arrays of run-time size", "nested list"],
)  # fmt: skip
def test_keys_of_several_dtypes_are_sorted_by_their_own(keys):
    integers, floats = 2**60 + np.array([1, 0, 3, 2]), np.array([1.0, 1, 1, 0])  # no floats tell these integers apart
    got = cyxla.jit(lambda a, b: np.lexsort(keys(a, b)))(integers, floats)
    np.testing.assert_array_equal(got, np.lexsort(keys(integers, floats)))
