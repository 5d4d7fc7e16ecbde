"""Lists that loops and comprehensions make: long ones become loops of the program, with the elements of NumPy."""
# ruff: noqa: B007, B905, C416, C419, E741, N803, RUF005 - programs as users write them

import math

import numpy as np
import pytest

import cyxla

RNG = np.random.default_rng(0)
V = RNG.normal(size=40)
A, B = RNG.normal(size=(40, 7)), RNG.normal(size=(30, 7))


def pairwise_distances(X, Y):
    return np.array([[np.sum((x - y) ** 2) for x in X] for y in Y])


def doubled(x):
    return [a * 2 for a in x]


def doubled_rows(X):
    return [row * 2 for row in X]


def sum_of_numbers(x):
    return sum([math.exp(a) for a in x])


def greatest_of_generator(x):
    return max(math.exp(a) for a in x)


def lists_in_list(x):
    return np.array([[a, a + 1] for a in x])


def tuples_in_list(x):
    return [(a, a + 1) for a in x]


def by_index(x):
    return np.array([x[i] * i for i in range(len(x))])


def appended_to(x):
    l = [a + 1 for a in x]
    l.append(x[0])
    return l


def item_replaced(x):
    l = [a + 1 for a in x]
    l[3] = x[0]
    return np.array(l), len(l), l[-1]


def written_elements(X):
    l = [r + 1 for r in X]
    for r in l:
        r += 1
    l[2][0] = 7
    return np.array(l)


def two_loops(X, Y):
    return [float(x @ y) for x in X for y in Y]


def unit_rows(X):
    return np.vstack([r / np.linalg.norm(r) for r in X])


def known_elements(x):
    return [i for i in range(30)], [i * 2.0 for i in range(40)]


def growing_slices(x):
    return [x[:i].sum() for i in range(len(x))]


def list_of_list(x):
    l = [a * 2 for a in x]
    m = [b + 1 for b in l]
    return np.mean(m)


def slice_of_list(x):
    return [a * 2 for a in x][::2] + [1.0]


def added_behind(x):
    return [1.0] + [a * 2 for a in x]


def into_dict(x):
    return {k: a for k, a in enumerate([b * 2 for b in x])}


def in_loop(x):
    out = []
    for k in range(20):
        out.append(np.array([a * k for a in x]).sum())
    return np.array(out)


def enumerated(x):
    return [i * a for i, a in enumerate(x)]


def conditional_elements(x, y):
    return [a if a > b else b for a, b in zip(x, y)]


def least(x):
    return min([abs(a) for a in x]), np.min([abs(a) for a in x])


def medians(X):
    return np.array([np.median(c) for c in X.T])


def tuple_of_generator(x):
    return tuple(a * 2 for a in x)


def classes_of_numbers(x):
    return [int(a) for a in x], [bool(a > 0) for a in x], [complex(a, 1) for a in x], [a > 0 for a in x]


def arrays_of_numbers(x):
    return np.array([int(a) for a in x]), np.array([bool(a > 0) for a in x])


def same_name(x):
    return [x for x in x]


def quantified(x):
    return any([a > 2 for a in x]), all([a < 9 for a in x])


def indexed(x):
    t = [a * 2 for a in x]
    s = 0.0
    for k in range(len(t)):
        s += t[k] * x[k]
    return s


def iterated(X):
    t = [r * 2 for r in X]
    s = np.zeros(7)
    for k, r in enumerate(t):
        s += r * k
    for r in t:
        r += 1
    return s, np.array(t), t[0]


def reversed_and_zipped(x):
    t = [a * 2 for a in x]
    u = [p + q for p, q in zip(t, reversed(t))]
    return np.array(u)


def append(x):
    out = []
    for a in x:
        out.append(a * 2)
    return out


def lists_appended(X):
    rows = []
    for i in range(len(X)):
        row = []
        for j in range(len(X)):
            row.append(np.dot(X[i], X[j]))
        rows.append(row)
    return np.array(rows)


def append_state(x):
    out = []
    s = 0.0
    for a in x:
        s = s * 0.9 + a
        out.append(s)
    return np.array(out), s


def append_behind_first(x):
    out = [x[0]]
    for a in x[1:]:
        out.append(a + 1)
    return np.array(out)


def two_loops_append(x):
    out = []
    for a in x:
        out.append(a)
    for a in x:
        out.append(a * 3)
    return np.array(out), len(out)


def read_by_other_name(x):
    out = []
    o = out
    for a in x:
        out.append(a * len(o))
    return np.array(out)


def append_in_both_loops(x):
    out = []
    for i in range(30):
        for j in range(20):
            out.append(x[i] * j)
    return np.array(out)


def append_until(x):
    out = []
    for a in x:
        if a > 100:
            break
        out.append(a)
    return out


def append_to_two_lists(x):
    xs = []
    ys = []
    for k, a in enumerate(x):
        xs.append(k * 0.5)
        ys.append((a, k))
    return xs, ys


def history(x):
    hist = []
    w = np.zeros(5)
    for k in range(50):
        w = w - 0.1 * (w - x[:5])
        hist.append(w.copy())
    return np.array(hist), hist[-1]


def same_array_appended(x):
    hist = []
    w = np.zeros(5)
    for k in range(50):
        w -= 0.1 * (w - x[:5])
        hist.append(w)
    return np.array(hist), hist[-1]


def element_written_later(x):
    hist = []
    for k in range(50):
        hist.append(x * k)
    hist[0][0] = 5
    return np.mean(hist, axis=0), hist


def append_some(x):
    out = []
    for a in x:
        y = a * 2
        if y < 0:
            continue
        out.append(y)
    return np.array(out)


def pairs_of_nested_loops(x):
    out = []
    for i in range(20):
        for j in range(i):
            if x[i] < x[j]:
                out.append((i, j, x[i] - x[j]))
    return out, len(out) > 3


def append_several(x):
    out = []
    for a in x:
        out.append(a)
        if a > 0:
            out.append(-a)
    return np.array(out)


def append_to_one_of_two(x):
    above, below = [], []
    for k, a in enumerate(x):
        if a > 0:
            above.append(a)
        else:
            below.append((k, a))
    return above, below, sum(above), len(below)


def append_peaks(x):
    found = []
    last = 0
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] > x[i + 1] and i - last >= 2:
            found.append(i)
            last = i
    return np.array(found), x[np.array(found, dtype=int)]


def append_rows(x):
    rows = []
    for i in range(20):
        r = x[i : i + 3] * 2
        if r[0] > 0:
            rows.append(r)
    return rows, np.array(rows)


def lists_of_many_lengths(x):
    rows = []
    for i in range(20):
        row = []
        for j in range(20):
            if x[i] > x[j]:
                row.append(j)
        rows.append(row)
    return rows


def rows_of_some_neighbours(x):
    rows = []
    for i in range(1, len(x) - 1):
        row = []
        for step in range(-1, 2):
            if step == 0:
                continue
            row.append(x[i + step])
        rows.append(row)
    return np.array(rows), np.array(rows, dtype=np.float32), np.mean(rows, axis=0)


def used_when_not_empty(x):
    out = []
    for a in x:
        if a > 0:
            out.append(a)
    s = np.float64(0)
    for b in out:
        s += b * 2
    if out:
        s += 100
    return s, out[-1] if out else np.float64(-1)


def append_known(x):
    out = []
    for a in x:
        if a > 0:
            out.append(1)
    return out, sum(out)


def functions_of_list(x):
    out = []
    for a in x:
        if a > -9:
            out.append(a)
    return np.mean(out), np.max(out), np.sqrt(np.abs(out)), np.asarray(out, dtype=np.float32)


def filtered(x):
    return [a * 2 for a in x if a > 0], [i for i, a in enumerate(x) if a > 0], [a for a in x[:3] if a > 0]


def filtered_twice(x):
    return [x[i] for i in range(30) if i % 3 == 0 if x[i] > 0], [i for i in range(30) if i % 3 == 0]


def reduced_filtered(x):
    return sum(a * a for a in x if a > 0), sum(1 for a in x if a > 0), len([a for a in x if a < 0])


def filtered_in_list(x):
    return [[j for j in range(20) if x[j] > x[i]] for i in range(20)]


def append_behind(x):
    out = []
    for a in x:
        if a > 0:
            out.append(a)
    out.append(3.0)
    return out


def append_different(x):
    out = []
    for a in x:
        if a > 0:
            out.append(a)
        elif a < -1:
            out.append(0)
    return out


def written_behind_append_of_some(x):
    rows = []
    for i in range(20):
        r = x[i : i + 3] * 2
        if r[0] > 0:
            rows.append(r)
            r += 1
    return rows


def views_of_some_rows(x):
    rows = []
    for i in range(20):
        r = x[i : i + 3]
        if r[0] > 0:
            rows.append(r)
    x[:] = 7
    return rows


def append_until_full(x):
    out = []
    for a in x:
        if a > 0:
            out.append(a)
        if len(out) == 5:
            break
    return out


def many_known(x):
    n = 60
    return (
        [i * 0.5 for i in np.arange(n * n)], [i + 1 for i in range(n * n)], [x[0] * i for i in np.linspace(0, 1, n)],
        [[(i - j) ** 2 for i in np.arange(n)] for j in np.arange(n)],
        [(i, j, i < j) for i in np.arange(n) for j in range(n)],
    )  # fmt: skip


def mixed_with_known(x):
    return [(a, i, 7) for i, a in enumerate(x)]


def known_that_are_needed(x):
    sizes = [i // 2 for i in range(1200)]
    return np.zeros(sizes[7]) + x[0], sizes[-1]


def known_with_effects(x):
    out = []
    made = [out.append(i) for i in range(1200)]
    return x[0], out, len(made)


def without_duplicates(x):
    seen = set()
    return [i for i in (x[:3] * 0).astype(int) + 1] + [
        k % 5 for k in range(40) if not (k % 5 in seen or seen.add(k % 5))
    ]


def elements_that_write(x):
    counts = np.zeros(3)

    def count(i):
        counts[0] += 1
        return counts[0] * 1.0

    return [(i, count(i)) for i in range(40)], counts


def condition_that_writes(x):
    counts = np.zeros(3)

    def count(a):
        counts[0] += 1
        return a > counts[0] - 30

    return [a for a in x if count(a)], counts


def order_of_effects(x):
    log = []
    return [log.append((0, i)) or i for i in range(30) if log.append((1, i)) or i % 2], log


def append_in_while(x):
    r = []
    i = 0
    while i < 20:
        r.append(x[i])
        i += 1
    return r


def rows_are_views(X):
    rows = [r for r in X]
    for r in rows:
        r += 1
    return X, rows[0]


def rows_appended(X):
    rows = []
    for r in X:
        rows.append(r)
    X[0] = 3
    return X, rows


def written_after_append(x):
    hist = []
    w = x[:5] * 1
    for k in range(30):
        w = w * 0.9
        hist.append(w)
        w += 1
    return np.array(hist)


def written_by_next(x):
    hist = []
    w = x[:5] * 1
    for k in range(30):
        hist.append(w)
        w += 1
        w = w * 0.5
    return np.array(hist)


def new_array_each_time(x):
    hist = []
    w = x[:5] * 1
    for k in range(30):
        w = w * 0.9 + k
        hist.append(w)
    return np.array(hist)


def exchanged(x):
    hist = []
    a = x[:5] * 1
    b = x[5:10] * 1
    for k in range(30):
        a, b = b, a * 0.9
        hist.append(a)
    return np.array(hist)


ONE_VECTOR = [
    doubled, sum_of_numbers, greatest_of_generator, lists_in_list, tuples_in_list, by_index, growing_slices,
    list_of_list, in_loop, enumerated, least, classes_of_numbers, arrays_of_numbers, same_name, quantified, indexed,
    reversed_and_zipped, append, append_state, two_loops_append, append_to_two_lists, history, new_array_each_time,
    append_behind_first, appended_to, item_replaced, slice_of_list, added_behind, into_dict, tuple_of_generator,
    element_written_later, append_some, append_until, append_in_both_loops, pairs_of_nested_loops, append_several,
    append_to_one_of_two, append_peaks, append_rows, lists_of_many_lengths, rows_of_some_neighbours,
    used_when_not_empty, append_known,
    functions_of_list, filtered, filtered_twice, reduced_filtered, filtered_in_list, many_known, mixed_with_known,
]  # fmt: skip
LOOPS = [
    *[(f, (V,)) for f in ONE_VECTOR],
    *[(f, (A,)) for f in (doubled_rows, unit_rows, iterated, written_elements, lists_appended)],
    (pairwise_distances, (A, B)),
    (two_loops, (A, B)),
    (conditional_elements, (V, V[::-1].copy())),
]
# Whose elements share memory with other arrays, or are known.
UNROLLED = [
    *[
        (f, (V,))
        for f in (
            known_elements,
            same_array_appended,
            written_after_append,
            written_by_next,
            exchanged,
            read_by_other_name,
            known_that_are_needed,
            known_with_effects,
            without_duplicates,
            elements_that_write,
            order_of_effects,
            append_in_while,
        )
    ],
    (medians, (A,)),
    (rows_are_views, (A,)),
    (rows_appended, (A,)),
]
REFUSED = (append_behind, append_different, written_behind_append_of_some, views_of_some_rows, append_until_full)
WRITING = [(condition_that_writes, (V,))]
PLAIN = [(f, (V,)) for f in REFUSED]


def require_equal(got, expected):
    """Compare containers, classes, dtypes and values."""
    assert type(got) is type(expected)
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            require_equal(one, other)
    elif isinstance(expected, dict):
        assert got.keys() == expected.keys()
        require_equal(list(got.values()), list(expected.values()))
    else:
        assert np.asarray(got).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def require_like_numpy(function, arguments):
    """Compare the results of two calls, and what they leave in the arguments, with NumPy's."""
    jitted = cyxla.jit(function)
    for _ in range(2):
        copies, others = [a.copy() for a in arguments], [a.copy() for a in arguments]
        require_equal(jitted(*copies), function(*others))
        require_equal(copies, others)
    return jitted


def named(rows):
    return [pytest.param(*row, id=row[0].__name__) for row in rows]


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("function, arguments", named(LOOPS))
def test_becomes_a_loop(function, arguments):
    jitted = require_like_numpy(function, arguments)
    assert "while(" in str(jitted.lower(*arguments).as_text())


@pytest.mark.filterwarnings("ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("function, arguments", named(UNROLLED))
def test_runs_in_python_while_it_is_traced(function, arguments):
    require_like_numpy(function, arguments)


@pytest.mark.parametrize("function, arguments", named(PLAIN))
def test_lists_that_loops_cannot_make(function, arguments, monkeypatch):
    monkeypatch.setenv("CYXLA_FALLBACK", "numpy")
    with pytest.warns(cyxla.errors.FallbackWarning, match="list"):
        require_like_numpy(function, arguments)
    monkeypatch.setenv("CYXLA_FALLBACK", "error")
    with pytest.raises(cyxla.errors.TraceError, match="list"):
        cyxla.jit(function)(*arguments)


@pytest.mark.parametrize("function, arguments", named(WRITING))
def test_conditions_that_write(function, arguments, monkeypatch):
    monkeypatch.setenv("CYXLA_FALLBACK", "numpy")
    with pytest.warns(cyxla.errors.FallbackWarning):
        require_like_numpy(function, arguments)


@pytest.mark.parametrize("function", [append_some, append_to_one_of_two, filtered, append_rows, used_when_not_empty])
def test_lists_without_elements(function, monkeypatch):
    """An array of an empty list is one of floats; NumPy runs where the elements are others."""
    monkeypatch.setenv("CYXLA_FALLBACK", "numpy")
    jitted = require_like_numpy(function, (-np.abs(V),))
    require_equal(jitted(V), function(V))


@pytest.mark.parametrize("count", [0, 1, 2, 16, 17, 18])
def test_short_lists(count):
    require_like_numpy(doubled, (V[:count],))
    require_like_numpy(append_state, (V[:count],))


def test_too_many_targets():
    with pytest.raises(ValueError, match="too many values to unpack"):
        cyxla.jit(lambda x: [a for a, b in x])(A)
    with pytest.raises(ValueError, match="not enough values to unpack"):
        cyxla.jit(lambda x: [a for a, b, c in x])(A[:, :2].copy())


def test_gradient():
    def loss(x):
        return np.sum(np.array([np.sin(a) * k for k, a in enumerate(x)]))

    got = cyxla.grad(loss)(V)
    np.testing.assert_allclose(got, np.cos(V) * np.arange(40), rtol=1e-12)


def test_errors_name_the_line_of_an_element():
    def f(x, k):
        return [x[k + i] for i in range(40)]

    with pytest.raises(IndexError) as caught:
        cyxla.jit(f)(V, 20)
    assert str(caught.value).startswith("index 40 is out of bounds for axis 0 with size 40")


def appended_a_traced_number_of_times(x, y):
    count = 0
    while True:
        count += 1
        if count >= 3 or np.all(y < np.dot(x, x)):
            break
    made = []
    for _ in range(1, 2):
        for _ in range(count):
            made.append(x.mean())
    return made


def test_loops_that_append_a_traced_number_of_times():
    compiled = cyxla.jit(appended_a_traced_number_of_times, fallback="error")
    for y in (np.full(3, 5.0), np.full(3, 2.0), np.array([1.0, 9.0, 9.0])):
        assert compiled(np.ones(3), y) == appended_a_traced_number_of_times(np.ones(3), y)
    assert compiled.cache_info().misses == 1


def test_a_list_that_is_empty_by_the_values_is_named():
    def f(x):
        made = []
        for v in x:
            if v > 5:
                made.append(v)
        return 0.5 + sum(made)

    run = cyxla.jit(f, fallback="error")
    assert run(np.arange(9.0)) == f(np.arange(9.0))
    with pytest.raises(ValueError, match=r"a list of numbers is empty by the values.*\n  at: .*test_lists_of_loops"):
        run(np.arange(4.0))
