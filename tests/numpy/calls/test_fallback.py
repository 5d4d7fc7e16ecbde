"""Functions that cannot be compiled: NumPy runs them, with a warning, or the reason is raised."""

import contextlib
import gc
import inspect
import types
import warnings
import weakref

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning, RecompileWarning, TraceError, UnimplementedError

H = np.zeros(3)
TOTAL = 0.0
SEEN = []


@pytest.fixture(autouse=True)
def fallback(monkeypatch):
    """Use the default, which is to fall back."""
    monkeypatch.delenv("CYXLA_FALLBACK")


def _without_source(function):
    """Return a function that cannot be rewritten."""
    if isinstance(function, types.MethodType):
        return types.MethodType(_without_source(function.__func__), function.__self__)
    code = function.__code__.replace(co_filename="<no file>", co_name=f"{function.__name__}_")
    return types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


def _branch(x):
    return x * 2 if x.sum() > 0 else -x


def _to_list(x):
    return list(x.tobytes())


def _swallowed(x):
    try:
        s = float(x.max())
    except (TypeError, ValueError):
        s = 1.0
    return x / s


def _swallowed_branch(x):
    try:
        if x.sum() > 0:
            return x
    except Exception:
        pass
    return -x


def _bare_except(x):
    try:
        return [v for v in x.tobytes() if v > 1]
    except:  # noqa: E722
        return []


def _object_that_is_no_array(x):
    return dict.fromkeys(x.tolist(), 1)


def _raises(x):
    if x.min() < 0:
        raise ValueError("negative")
    return np.sqrt(x)


X = np.array([1.0, 2.0, 4.0])
CASES = {
    "branch": (_branch, X), "list": (_to_list, X), "swallowed": (_swallowed, X),
    "swallowed branch": (_swallowed_branch, X), "bare except": (_bare_except, X), "dict": (_object_that_is_no_array, X),
    "raise": (_raises, X), "random": (lambda x: x + np.random.RandomState(0).rand(3), X),
}  # fmt: skip


@pytest.mark.parametrize("value", [3, 2.5, True, np.float32(3), X])
def test_numpy_runs_what_returns_the_class_of_a_traced_value(value):
    f = cyxla.jit(_without_source(lambda x: (x, {"class": x.__class__})))
    with pytest.warns(FallbackWarning, match="the class of a traced value"):
        assert f(value)[1] == {"class": type(value)}


@pytest.mark.parametrize("name", CASES)
def test_numpy_runs_what_cannot_be_compiled(name):
    function, *arguments = CASES[name]
    f = cyxla.jit(_without_source(function))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(3):
            want = function(*arguments)
            got = f(*arguments)
            assert type(got) is type(want), k
            np.testing.assert_equal(got, want)
    if "random" not in name:
        assert [w.category for w in caught] == [FallbackWarning]
        assert caught[0].filename == __file__
        assert "<no file>:" in str(caught[0].message)
        assert "NumPy runs the function" in f.explain()
        assert f.cache_info().misses == 1


def test_the_users_own_errors_are_raised_as_they_are():
    f = cyxla.jit(_without_source(_raises))
    with pytest.warns(FallbackWarning), pytest.raises(ValueError, match="negative"):
        f(-X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="negative"):
            f(-X)


@pytest.mark.parametrize("error", [TraceError, UnimplementedError, ValueError])
def test_errors_of_numpy_do_not_fall_back(error):
    f = cyxla.jit(lambda x: x.reshape(2, 5) if error is ValueError else x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if error is ValueError:
            with pytest.raises(error):
                f(X)
        else:
            assert f(X) is X


def test_the_reason_is_raised_where_it_is_asked_for(monkeypatch):
    with pytest.raises(TraceError, match="condition"):
        cyxla.jit(_without_source(_branch), fallback="error")(X)
    with pytest.raises(TraceError, match="float"):
        cyxla.jit(_without_source(_swallowed), fallback="error")(X)
    monkeypatch.setenv("CYXLA_FALLBACK", "error")
    with pytest.raises(TraceError, match="condition"):
        cyxla.jit(_without_source(_branch))(X)
    with pytest.warns(FallbackWarning):
        cyxla.jit(_without_source(_branch), fallback="numpy")(X)
    with pytest.raises(cyxla.errors.InvalidArgumentError, match="fallback"):
        cyxla.jit(_without_source(_branch), fallback="none")


def _singular(a):
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return np.zeros_like(a)


def _out_of_range(a):
    with contextlib.suppress(IndexError):
        return a[a[0, 0].astype(int) + 5]
    return a


def _zero(a):
    return _divided(3, int(a.shape[0]) - 2)


def _divided(n, d):
    try:
        return n // d
    except ZeroDivisionError:
        return -1


CAUGHT = {
    "singular": (_singular, np.ones((2, 2))), "regular": (_singular, np.eye(2)), "index": (_out_of_range, np.eye(2)),
    "shape": (_zero, np.eye(2)), "zero": (_divided, 3, 0), "not zero": (_divided, 3, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CAUGHT)
def test_errors_of_a_run_are_caught_by_the_function(name):
    function, *arguments = CAUGHT[name]
    f = cyxla.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            np.testing.assert_array_equal(f(*arguments), function(*arguments))
    assert f.cache_info().misses == 1


def test_exceptions_of_the_plain_function_have_no_other_context():
    def function(x):
        if x.sum() < 0:
            raise ValueError(f"negative: {x.sum()}")
        return x

    f = cyxla.jit(function, fallback="numpy")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"negative: -7\.0") as caught:
            f(-X)
        assert caught.value.__context__ is None


def test_one_warning_for_each_cause():
    def function(x, flag):
        if flag:
            return x.tobytes()
        return float(x[0])

    f = cyxla.jit(_without_source(function), static="flag")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(1, 4):
            f(np.ones(n), True)
            f(np.ones(n), False)
    assert len(caught) == 2


def test_swallowed_values_that_may_be_static_become_static():
    def function(x, n):
        try:
            return x[: int(n)].sum()
        except TypeError:
            return x

    f = cyxla.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(X, 2) == 3


def test_methods_and_out_fall_back():
    class Model:
        @cyxla.jit
        def run(self, x, *, flag=True):
            return np.frombuffer(x.tobytes()) + 1 if flag else x

    out = np.zeros(3)
    with pytest.warns(FallbackWarning):
        np.testing.assert_array_equal(Model().run(X), X + 1)
    f = cyxla.jit(_without_source(_branch))
    with pytest.warns(FallbackWarning):
        assert f(X, out=out) is out
    np.testing.assert_array_equal(out, 2 * X)


# --- what is changed outside of a function ----------------------------------------------------------------------------


def _in_place():
    H[:] += 1
    return H.sum()


def _global_array(x):
    global H
    H += 1
    return H.sum() + x


def _global_name(x):
    global TOTAL
    TOTAL = TOTAL + x.sum()
    return TOTAL


def _appended(x):
    SEEN.append(x.sum())
    return len(SEEN)


class _Counter:
    def __init__(self):
        self.w, self.calls = np.zeros(3), 0

    def step(self, x):
        self.w = self.w + x
        self.calls += 1
        return self.w.sum()

    def step_in_place(self, x):
        self.w += x
        return self.w.sum()


def _closure():
    state = {"n": 0, "sum": np.zeros(3)}

    def function(x):
        state["n"] += 1
        state["sum"] = state["sum"] + x
        return state["sum"].sum()

    return function, lambda: (state["n"], state["sum"])


def _module():
    global H, TOTAL
    H, TOTAL = np.zeros(3), 0.0
    SEEN.clear()
    return lambda: (H.copy(), TOTAL, list(SEEN))


def _method(name):
    counter = _Counter()
    return getattr(counter, name), lambda: (counter.w, counter.calls)


def _with_x(function, state):
    return (function, X), state


STATE = {
    "global array": lambda: ((_in_place,), _module()), "augmented global": lambda: ((_global_array, X), _module()),
    "global name": lambda: ((_global_name, X), _module()), "list": lambda: ((_appended, X), _module()),
    "closure": lambda: _with_x(*_closure()), "attribute": lambda: _with_x(*_method("step")),
    "attribute in place": lambda: _with_x(*_method("step_in_place")),
}  # fmt: skip


def _run(case, jit):
    (function, *arguments), state = STATE[case]()
    f = jit(function)
    return [f(*arguments) for _ in range(3)], state()


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("has_source", [True, False])
@pytest.mark.parametrize("case", STATE)
def test_state_outside_is_that_of_numpy(case, has_source):
    want = _run(case, lambda f: f)
    got = _run(case, lambda f: cyxla.jit(f if has_source else _without_source(f)))
    np.testing.assert_equal(got, want)
    assert "TracedArray" not in repr(got)


@pytest.mark.parametrize("case", STATE)
def test_a_refused_trace_changes_nothing(case, monkeypatch):
    monkeypatch.setenv("CYXLA_FALLBACK", "error")
    (function, *arguments), state = STATE[case]()
    before = repr(state())
    with pytest.raises((TraceError, UnimplementedError)):
        cyxla.jit(_without_source(function))(*arguments)
    assert repr(state()) == before


class _Stubborn:
    """A number that cannot stand beside traced values."""

    __array_ufunc__ = None

    def __radd__(self, other):
        if inspect.getattr_static(other, "__array_struct__", None) is None:
            raise ValueError("an array of NumPy is needed")
        return other + 1


def _only_of_numpy(x):
    return x + _Stubborn()


def test_errors_of_a_trace_alone_fall_back():
    x = np.arange(3.0)
    function = cyxla.jit(_only_of_numpy)
    with pytest.warns(FallbackWarning, match=r"ValueError is raised while it is traced, but not.*\n.*:\d+"):
        np.testing.assert_array_equal(function(x), x + 1)
    np.testing.assert_array_equal(function(x), x + 1)
    with pytest.raises(ValueError, match="an array of NumPy is needed"):
        cyxla.jit(_only_of_numpy, fallback="error")(x)


def test_dtypes_inside_a_function_are_a_reason():
    def structured(x):
        pairs = x.view([("a", x.dtype), ("b", x.dtype)])
        return np.unique(pairs).view(x.dtype)

    f = cyxla.jit(structured, fallback="numpy")
    with pytest.warns(FallbackWarning, match="cannot be compiled"):
        np.testing.assert_array_equal(f(np.array([3, 4, 1, 2, 3, 4])), [1, 2, 3, 4])


def test_warnings_that_are_errors_are_raised():
    jitted = cyxla.jit(lambda x: x + 1, sizes="exact", platform="interpreter")

    def call_with_many_sizes():
        for n in range(1, 100):
            jitted(np.ones(n))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RecompileWarning, match="argument x changes"):
            call_with_many_sizes()


def _element_or_zero(x, rng):
    values = x + rng.random(2)
    try:
        return values, values[int(x[0])]
    except IndexError:
        return values, 0.0


def _checked_generator(n, rng):
    sizes = [0] * n
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"{rng} is no generator")
    return sizes, rng.random(2)


#: Functions of an array and generators that NumPy runs: it draws what it would without compilation.
GENERATORS = {
    "refused": lambda x, rng: (rng.random(3), _to_list(x)),
    "refused after a trace for numbers": lambda n, rng: (np.zeros(n), _to_list(rng.random(n))),
    "a run that fails": _element_or_zero,
    "text of a generator after a trace for numbers": _checked_generator,
    "two generators": lambda x, a, b: (a.random(3), b.random(2), _to_list(x)),
    "writes to a read-only array": lambda x, rng: x.__setitem__(0, rng.random()),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_generators_of_plain_functions(name):
    function = GENERATORS[name]
    f = cyxla.jit(function)
    x = 3 if "numbers" in name else np.full(2, 7.0)
    if "read-only" in name:
        x.flags.writeable = False
    for _ in range(3):
        plain, jitted = (_outcome_with_generators(g, x, 2 if name == "two generators" else 1) for g in (function, f))
        assert jitted == plain


def _outcome_with_generators(function, x, count):
    """Return the result or the error of a function, and the next number of each generator."""
    generators = [np.random.default_rng(seed) for seed in range(count)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        try:
            result = repr(function(x, *generators))
        except ValueError as error:
            result = str(error)
    return result, [g.random() for g in generators]


def _index_out_of_range(x):
    return x[len(x)]


def _set_of_elements(x):
    return sorted(set(x))


@pytest.mark.parametrize("function", [_to_list, _index_out_of_range, _set_of_elements, _bare_except])
@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
def test_refused_arguments_are_not_kept_alive(function):
    f = cyxla.jit(function)
    for _ in range(2):
        x = np.ones(3)
        reference = weakref.ref(x)
        with contextlib.suppress(IndexError):
            f(x)
        del x
        gc.collect()
        assert reference() is None
