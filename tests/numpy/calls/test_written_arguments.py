"""Arguments that a compiled function writes: the caller's arrays get NumPy's values, in any memory layout."""

import threading
import warnings
from collections import namedtuple

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError

Pair = namedtuple("Pair", "first second")


def _vector():
    return np.linspace(-3, 3, 6)


def _assign_all(x, y):
    x[:] = 1.5 * y + x


def _augment(x, y):
    x += y


def _element(x):
    x[0] = 9


def _by_mask(x):
    x[x > 0] = 7


def _add_under_mask(x):
    x[x > 0] *= 2


def _by_indices(x, i):
    x[i] = -1


def _sort(x):
    x.sort()


def _fill(x):
    x.fill(0)


def _ufunc_out(x):
    np.add(x, 1, out=x)


def _add_at(x, i):
    np.add.at(x, i, 1)


def _copyto(x, y):
    np.copyto(x, y[::-1])


def _put(x):
    np.put(x, [0, 2], [8, 9])


def _place(x):
    np.place(x, x > 1, [4, 5])


def _putmask(x):
    np.putmask(x, x < 0, 0)


def _fill_diagonal(a):
    np.fill_diagonal(a, 1)


def _view(x):
    y = x[1:4]
    y *= 10


def _view_of_view(a):
    a.T[0][1:] += 5


def _reshaped(a):
    a.reshape(-1)[3] = 100


def _returned(x):
    x += 1
    return x


def _returned_beside_results(x, y):
    x += y
    return {"x": x, "sum": x.sum(), "y": y}


def _swap(x, y):
    x[:], y[:] = y.copy(), x.copy()


def _rotate(x, y, z):
    t = x.copy()
    x[:] = y
    y[:] = z
    z[:] = t


def _matmul(c, a, b):
    c[:] = 1.5 * a @ b + 1.2 * c


def _stencil(a):
    a[1:-1] = 0.5 * (a[:-2] + a[2:])


def _integers(n):
    n //= 2
    n[0] = 7.9


def _list(arrays):
    for a in arrays:
        a += 1


def _dict(d):
    d["a"] += 1
    d["b"][...] = d["a"]


def _rank_0(x):
    x[...] = 2 * x + 1


def _nothing(x):
    x[:0] = 3


I = np.array([0, 2, 2])  # noqa: E741
M = np.arange(6.0).reshape(2, 3)
CASES = {
    "assign all": (_assign_all, _vector(), _vector()), "augment": (_augment, _vector(), np.float32(2)),
    "element": (_element, _vector()), "mask": (_by_mask, _vector()), "augmented mask": (_add_under_mask, _vector()),
    "indices": (_by_indices, _vector(), I), "sort": (_sort, _vector()[::-1].copy()), "fill": (_fill, _vector()),
    "ufunc out": (_ufunc_out, _vector()), "add.at": (_add_at, _vector(), I), "copyto": (_copyto, _vector(), _vector()),
    "put": (_put, _vector()), "place": (_place, _vector()), "putmask": (_putmask, _vector()),
    "fill_diagonal": (_fill_diagonal, M), "view": (_view, _vector()), "view of view": (_view_of_view, M),
    "reshaped": (_reshaped, M), "returned": (_returned, _vector()),
    "beside results": (_returned_beside_results, np.arange(6.0), np.arange(6.0)),
    "swap": (_swap, _vector(), -_vector() + 1),
    "rotate": (_rotate, _vector(), 2 * _vector(), 3 * _vector()), "matmul": (_matmul, np.ones((2, 2)), M, M.T.copy()),
    "stencil": (_stencil, _vector()), "integers": (_integers, np.arange(5)),
    "bools": (_by_indices, np.ones(4, bool), I),
    "complex": (_augment, np.ones(3, np.complex64), 1j), "half": (_augment, np.ones(3, np.float16), 2),
    "list": (_list, [_vector(), np.arange(3), M]), "dict": (_dict, {"a": _vector(), "b": _vector()}),
    "named tuple": (_list, Pair(_vector(), M)), "rank 0": (_rank_0, np.array(3.0)), "empty": (_fill, np.zeros((0, 3))),
    "no element": (_nothing, _vector()),
}  # fmt: skip


def _copied(value):
    """Copy the arrays of a container."""
    if isinstance(value, np.ndarray):
        return value.copy("K")
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_copied, value))
    return [_copied(v) for v in value] if isinstance(value, list) else value


def _assert_equal(got, want):
    if isinstance(want, dict):
        assert list(got) == list(want)
        got, want = list(got.values()), list(want.values())
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            _assert_equal(g, w)
    elif isinstance(want, (np.ndarray, np.generic)):
        assert (type(got), got.dtype, got.shape) == (type(want), want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-12)
    else:
        assert got == want


@pytest.mark.parametrize("name", CASES)
def test_written_as_by_numpy(name, backend):
    function, *arguments = CASES[name]
    f = cyxla.jit(function, platform=backend)
    for _ in range(3):
        given, wanted = _copied(arguments), _copied(arguments)
        _assert_equal(f(*given), function(*wanted))
        _assert_equal(given, wanted)
    assert f.cache_info().entries == 1


BASE = np.arange(24.0)
LAYOUTS = {
    "every second": lambda b: b[::2], "reversed": lambda b: b[::-1], "columns": lambda b: b.reshape(4, 6)[:, 1::2],
    "column-major": lambda b: b.reshape(4, 6).T, "permuted": lambda b: b.reshape(2, 3, 4).transpose(1, 2, 0),
    "offset": lambda b: b[3:], "misaligned": lambda b: b.view(np.uint8)[1:185].view(np.float64),
    "big-endian": lambda b: b.view(">f8"), "size 1": lambda b: b.reshape(24, 1, 1)[::3],
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name, backend):
    def function(x, y):
        x *= 2
        x[0] = y
        return x

    f = cyxla.jit(function, platform=backend)
    for _ in range(3):
        base, want = BASE.copy(), BASE.copy()
        given = LAYOUTS[name](base)
        assert f(given, 3.5) is given
        function(LAYOUTS[name](want), 3.5)
        np.testing.assert_array_equal(base, want)


def test_written_in_place_without_a_copy():
    @cyxla.jit
    def touch(x, i):
        x[3] = i

    x = np.zeros(1 << 16)
    touch(x, 1.0)
    touch.wait()
    (entry,) = touch.programs.entries.values()
    assert entry.executable.memory["donated"] == x.nbytes
    assert entry.executable.memory["temporaries"] < x.nbytes
    for k in range(3):
        touch(x, float(k))
        assert x[3] == k


@pytest.mark.parametrize("read", [lambda x, y: None, lambda x, y: x + y], ids=["nothing", "sum"])
def test_a_failed_call_writes_nothing(backend, read):
    def function(x, i, y):
        x += 1
        x[i] = 5
        return read(x, y)

    f = cyxla.jit(function, platform=backend)
    for i in (1, 9, 2, 9):
        x, y = np.zeros(3), np.ones(3)
        if i == 9:
            with pytest.raises(IndexError):
                f(x, np.array(i), y)
            np.testing.assert_array_equal(x, np.zeros(3))
        else:
            want = np.zeros(3)
            function(want, i, y)
            f(x, np.array(i), y)
            np.testing.assert_array_equal(x, want)


def test_read_only_arrays_raise_numpys_error(backend):
    def function(x, y):
        y += 1
        x[0] = 1

    f = cyxla.jit(function, platform=backend)
    f(np.zeros(3), np.zeros(3))
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            f(frozen, np.zeros(3))
        assert not frozen.any()


def _both(x, y):
    x += 1
    y += x
    return x.sum()


WEIGHTS = np.arange(6.0)


def _reversed(x, y):
    x[:] = y[::-1] + WEIGHTS
    return y


SAME_ARRAYS = {
    "two arguments": (_both, lambda b: ((b, b), {})),
    "by keyword": (_both, lambda b: ((), {"y": b, "x": b})),
    "returned": (_reversed, lambda b: ((b, b), {})),
    "out": (lambda x, s, o: np.multiply(x, s, out=o), lambda b: ((b, 2.5, b), {})),
    "out, masked": (lambda x, o: np.add(x, 1, out=o, where=x > 2), lambda b: ((b,), {"o": b})),
    "three": (lambda x, y, z: np.add(x, y, out=z), lambda b: ((b, b, b), {})),
    "strided": (_both, lambda b: ((b[::2],) * 2, {})),
}


@pytest.mark.parametrize("name", SAME_ARRAYS)
def test_an_array_passed_twice(name, backend):
    function, arguments = SAME_ARRAYS[name]
    f = cyxla.jit(function, platform=backend, fallback="error")
    for factor in (1, 3):
        base, want = np.arange(6.0) * factor, np.arange(6.0) * factor
        (args, keywords), (plain, plain_keywords) = arguments(base), arguments(want)
        got, wanted = f(*args, **keywords), function(*plain, **plain_keywords)
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(base, want)
        assert (got is (*args, *keywords.values())[0]) == (wanted is (*plain, *plain_keywords.values())[0])


def _add_to_view(x, y):
    y += x
    return y, x


def _reads_after(x, y):
    y += 1
    return x * 1


def _view_from_before(x, y):
    view = x[1:]
    y += 1
    return view


def _copies_after(x, y):
    y += 1
    return x.copy()


def _copies_a_view_after(x, y):
    view = x[1:]
    y += 1
    return view.copy()


def _writes_after_a_loop(x, y):
    for k in range(20):
        y[k % 5] = x[(k + 2) % 5] + 1
    y *= 2


def _writes_both(x, y):
    x[:] = y
    y[:] = x


def _writes_in_a_loop(x, y):
    for k in range(len(x)):
        y[k] = x[k]


def _multiply(x, y):
    square = x[:4].reshape(2, 2)
    np.matmul(square, square, out=y[:4].reshape(2, 2))


SHARED = {
    "assigned": lambda x, y: y.__setitem__(slice(None), x),
    "reversed": lambda x, y: np.multiply(x, 2, out=y),
    "cumulated": lambda x, y: np.cumsum(x, out=y),
    "augmented": _add_to_view,
    "matrices": _multiply,
}
VIEWS = {
    "shifted": lambda b: (b[:-1], b[1:]), "reversed": lambda b: (b, b[::-1]), "a part": lambda b: (b[::2], b[3:8]),
    "another dtype": lambda b: (b, b.view(np.int64)), "same": lambda b: (b[:], b[:]),
}  # fmt: skip


@pytest.mark.parametrize("views", VIEWS)
@pytest.mark.parametrize("name", SHARED)
def test_the_last_thing_is_a_write_to_shared_memory(name, views, backend):
    f = cyxla.jit(SHARED[name], platform=backend, fallback="error")
    for factor in (1, 3):
        base, want = np.arange(10.0) * factor, np.arange(10.0) * factor
        try:
            wanted = SHARED[name](*VIEWS[views](want))
        except (ValueError, TypeError) as error:
            with pytest.raises(type(error)):
                f(*VIEWS[views](base))
        else:
            x, y = VIEWS[views](base)
            got = f(x, y)
            if name == "augmented":
                assert got[0] is y
                assert got[1] is x
            else:
                np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(base, want)


def test_constants_are_returned_beside_shared_memory(backend):
    f = cyxla.jit(lambda x, y: (np.multiply(x, 2, out=y), 3, [None, 1.5]), platform=backend, fallback="error")
    base = np.arange(6.0)
    view = base[::-1]
    result, *others = f(base, view)
    assert result is view
    assert others == [3, [None, 1.5]]
    np.testing.assert_array_equal(view, np.arange(6.0) * 2)


READING_AFTER_A_WRITE = [
    _both, _reads_after, _copies_after, _copies_a_view_after, _view_from_before, _writes_both, _writes_in_a_loop,
    _writes_after_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("function", READING_AFTER_A_WRITE)
def test_reads_of_shared_memory_after_a_write_are_refused(function):
    f = cyxla.jit(function, fallback="error")
    x = np.arange(6.0)
    with pytest.raises(cyxla.errors.InvalidArgumentError, match="share memory"):
        f(x[1:], x[:-1])
    np.testing.assert_array_equal(x, np.arange(6.0))


OVERLAPS = {
    "same": lambda b: (b, b), "shifted": lambda b: (b[:-1], b[1:]), "reversed": lambda b: (b, b[::-1]),
    "contained": lambda b: (b[2:4], b[1:3]), "interleaved": lambda b: (b[::2], b[1::2]),
    "apart": lambda b: (b[:3], b[3:]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("name", OVERLAPS)
def test_arguments_that_share_memory(name, backend):
    f = cyxla.jit(_both, platform=backend, fallback="numpy")
    for _ in range(3):
        base, want = np.arange(6.0), np.arange(6.0)
        result = f(*OVERLAPS[name](base))
        assert result == _both(*OVERLAPS[name](want))
        np.testing.assert_array_equal(base, want)


def test_many_sizes(backend):
    def function(x, y):
        x += y
        x[0] = 7
        return x

    f = cyxla.jit(function, platform=backend)
    for n in (3, 4, 5, 6, 9, 1, 30, 6, 5, 4):
        x, want = np.arange(float(n)), np.arange(float(n))
        assert f(x, want.copy()) is x
        function(want, want.copy())
        np.testing.assert_array_equal(x, want)


def test_functions_called_by_a_traced_function_write_its_arrays(backend):
    @cyxla.jit(platform=backend)
    def inner(x, scale):
        x *= scale

    def outer(x):
        y = np.ones(3)
        inner(x, 2)
        inner(x[1:], 3)
        inner(y, x)
        return y

    f = cyxla.jit(outer, platform=backend)
    for _ in range(2):
        x, want = np.arange(3.0), np.arange(3.0)
        _assert_equal(f(x), outer(want))
        _assert_equal(x, want)


def test_out_of_results_that_are_arguments(backend):
    def function(x):
        x += 1
        return x, x * 2

    f = cyxla.jit(function, platform=backend)
    x, out = np.zeros(3), (np.zeros(3), np.zeros(3))
    for k in range(1, 3):
        one, two = f(x, out=out)
        assert (one is out[0], two is out[1]) == (True, True)
        _assert_equal([x, one, two], [np.full(3, 1.0 * k), np.full(3, 1.0 * k), np.full(3, 2.0 * k)])


def test_generators_shuffle_arguments(backend):
    @cyxla.jit(platform=backend)
    def shuffle(rng, x):
        rng.shuffle(x)

    x = np.arange(50)
    shuffle(np.random.default_rng(1), x)
    assert (x != np.arange(50)).any()
    np.testing.assert_array_equal(np.sort(x), np.arange(50))


def test_donated_arguments_beside_written_ones():
    @cyxla.jit(donate=["y"])
    def function(x, y):
        x += y
        return y + 1

    for _ in range(2):
        x, y = np.zeros(300), np.ones(300)
        result = function(x, y)
        _assert_equal([x, result], [np.ones(300), np.full(300, 2.0)])
        assert np.shares_memory(result, y)


def test_executables_write_their_arguments():
    @cyxla.jit
    def function(x, y):
        x += y
        return x.sum()

    executable = cyxla.compile(function, cyxla.spec((3,)), cyxla.spec((3,)))
    for _ in range(2):
        x = np.zeros(3)
        assert executable(x, np.ones(3)) == 3
        np.testing.assert_array_equal(x, np.ones(3))
    with pytest.raises(cyxla.errors.InvalidArgumentError, match="shares memory"):
        executable(x, x)
    with pytest.raises(cyxla.errors.InvalidArgumentError, match="writeable"):
        executable(np.broadcast_to(1.0, 3), np.ones(3))


def test_threads_write_their_own_arrays():
    f = cyxla.jit(_augment)
    arrays = [np.zeros(1000) for _ in range(4)]

    def run(x):
        for _ in range(200):
            f(x, np.ones(1000))

    threads = [threading.Thread(target=run, args=(x,)) for x in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for x in arrays:
        np.testing.assert_array_equal(x, np.full(1000, 200.0))


def test_prebuilt_kernels_and_native_code_write_alike(monkeypatch):
    monkeypatch.setenv("CYXLA_TIER", "auto")
    f = cyxla.jit(_augment)
    x = np.zeros(5)
    f(x, np.ones(5))
    f.wait()
    f(x, np.ones(5))
    np.testing.assert_array_equal(x, np.full(5, 2.0))


def _sized_by_what_it_writes(x):
    x[0] += 1
    return np.zeros(int(x[1]))


def test_an_array_that_is_written_gives_no_size():
    with pytest.raises(TraceError, match="size"):
        cyxla.jit(_sized_by_what_it_writes, fallback="error")(np.array([1, 2, 3]))
    compiled = cyxla.jit(_sized_by_what_it_writes, fallback="numpy")
    for _ in range(2):
        x = np.array([1, 2, 3])
        with warnings.catch_warnings(action="ignore"):
            np.testing.assert_array_equal(compiled(x), np.zeros(2), strict=True)
        np.testing.assert_array_equal(x, [2, 2, 3])
