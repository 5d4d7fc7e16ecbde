"""NumPy while another thread traces: the module is itself; names taken out of it pass for the originals."""

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
TRACED = dict(ORIGINALS)  # the globals of a module that took everything out of NumPy
exec("def traced(x, wait):\n    wait()\n    return x + 1.0\n", TRACED)


@pytest.fixture(scope="module")
def seen():
    """What a module that took its names out of NumPy holds, while a function of it is traced in another thread."""
    reached, go_on = threading.Event(), threading.Event()
    function = cyxla.jit(TRACED["traced"], static=("wait",))
    tracer = threading.Thread(target=lambda: function(np.ones(3), lambda: (reached.set(), go_on.wait(60))))
    tracer.start()
    assert reached.wait(60)
    yield TRACED
    assert function._misses == 0  # it was being traced all the time
    go_on.set()
    tracer.join()
    assert all(TRACED[name] is value for name, value in ORIGINALS.items())
    assert type(np) is type(np.random) is type(np.linalg) is ModuleType


def result(call, *args):
    """What a call gives, or what it raises."""
    try:
        return call(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("name", ORIGINALS)
def test_the_module_has_its_own(name):
    assert attrgetter(name)(np) is ORIGINALS[name]


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("name", OWN_RANDOM)
def test_random_functions_are_their_own(name):
    assert getattr(np.random, name) is OWN_RANDOM[name]
    assert pickle.loads(pickle.dumps(getattr(np.random, name))).__name__ == name


@pytest.mark.usefixtures("seen")
def test_the_module_is_a_module():
    assert isinstance(np, ModuleType)
    assert inspect.ismodule(np)
    assert repr(np).startswith("<module 'numpy' from ")
    assert copy.copy(np) is np
    assert pickle.loads(pickle.dumps(np)) is np  # as picklers expect that know modules by their class
    with pytest.raises(AttributeError, match="module 'numpy' has no attribute 'nothing'"):
        np.nothing  # noqa: B018


@pytest.mark.usefixtures("seen")
def test_attributes_may_be_set_and_deleted(monkeypatch):
    def mine():
        """A function of the user's."""

    monkeypatch.setattr(np, "zeros", mine)
    assert np.zeros is mine
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
def test_names_taken_from_numpy_pass_for_the_originals(seen, way):
    differ = {name: (WAYS[way](seen[name]), WAYS[way](own)) for name, own in ORIGINALS.items()}
    assert not {name: pair for name, pair in differ.items() if repr(pair[0]) != repr(pair[1])}


@pytest.mark.parametrize("name", ORIGINALS)
def test_they_are_equal_but_not_the_same(seen, name):
    """Identity is what cannot be kept."""
    assert seen[name] == ORIGINALS[name]
    assert ORIGINALS[name] == seen[name]
    assert {ORIGINALS[name]: 1}[seen[name]] == 1
    assert seen[name] is not ORIGINALS[name]


def derived(base):
    class Derived(base):
        pass

    return Derived.__mro__[1:]


@pytest.mark.parametrize("name", CLASSES)
def test_classes_taken_from_numpy_pass_for_the_originals(seen, name):
    theirs, own = seen[name], ORIGINALS[name]
    made = theirs(np.arange(3.0))
    assert type(made) is own
    assert isinstance(made, theirs)
    assert isinstance(own(np.arange(3.0)), (str, theirs))
    assert not isinstance(3, theirs)
    assert issubclass(own, theirs)
    assert not issubclass(int, theirs)

    assert result(derived, theirs) == result(derived, own)
    assert isinstance(made, int | theirs)
    assert isinstance(made, theirs | int)


def test_calls_do_what_the_originals_do(seen):
    x = np.arange(6.0).reshape(2, 3)
    for name in ("sum", "transpose", "ravel", "linalg.norm", "sin", "asarray", "zeros_like", "argsort", "cumsum"):
        np.testing.assert_array_equal(seen[name](x), ORIGINALS[name](x))
        assert type(seen[name](x)) is type(ORIGINALS[name](x))
    assert seen["r_"][1:4].tolist() == [1, 2, 3]
    assert seen["add"].reduce([1, 2, 3]) == 6
    assert (seen["add"].nin, seen["add"].signature) == (2, None)
