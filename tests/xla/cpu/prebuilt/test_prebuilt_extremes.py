"""Without a C compiler, one prebuilt call finds the index of the first extreme, as NumPy does."""

import itertools
from functools import partial

import numpy as np
import pytest

import cyxla
from cyxla._native import kernels as library
from cyxla.xla.cpu.c.isa_levels import PREBUILT_LEVELS, Level
from cyxla.xla.cpu.prebuilt import program as prebuilt_program
from cyxla.xla.cpu.prebuilt import reductions, uncompiled
from cyxla.xla.cpu.prebuilt.program import NotCoveredError
from cyxla.xla.service import CompileOptions

DTYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")
SIZES = (2, 3, 7, 8, 9, 16, 31, 33, 64, 65, 129, 130, 300)
SEARCHES = {"argmax": np.argmax, "argmin": np.argmin}


def prebuilt(function, *arrays):
    """The program of a function on prebuilt kernels, and the names of those."""
    module = cyxla.hlo.parse_module(cyxla.jit(function).lower(*arrays).as_text())
    made = prebuilt_program.prebuilt_program(module, CompileOptions(), 1e12, exact=False)
    return made, {line.split()[0] for line in made.explain().splitlines()[1:]}


def check(function, x):
    made, names = prebuilt(function, x)
    got, want = np.asarray(made(x)), function(x)
    assert all(name.startswith("first_") for name in names), names
    assert len(names) == 1
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def numbers(dtype, shape, seed=0):
    """Random numbers with many ties."""
    rng = np.random.default_rng(seed)
    return (rng.integers(0, 9, shape) - (0 if dtype[0] in "u?" else 4)).astype(dtype)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_any_size(dtype, search):
    for n in SIZES:
        x = numbers(dtype, (3, n), n)
        check(lambda x: SEARCHES[search](x), x[0])
        check(lambda x: SEARCHES[search](x, axis=1), x)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_of_any_number(dtype, search):
    for n in SIZES:
        check(lambda x: SEARCHES[search](x, axis=0), numbers(dtype, (5, n), n))
        check(lambda x: SEARCHES[search](x, axis=1), numbers(dtype, (2, n, 3), n))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_extreme_in_every_place(dtype, search):
    made, _ = prebuilt(SEARCHES[search], np.zeros(70, dtype))
    for place in range(70):
        for value in (np.nan, 5, -5, np.inf, -np.inf):
            x = np.zeros(70, dtype)
            x[place:] = value
            assert made(x) == SEARCHES[search](x)
            x[place + 1 :] = 0
            assert made(x) == SEARCHES[search](x)


SPECIAL = (np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("before, behind", [(0, 0), (3, 1), (30, 40)])
def test_special_values(dtype, search, before, behind):
    """All orders of three special values, in rows and in columns, alone and among others."""
    triples = np.array(list(itertools.product(SPECIAL, repeat=3)), dtype)
    x = np.pad(triples, ((0, 0), (before, behind)), constant_values=-0.0)
    check(lambda x: SEARCHES[search](x, axis=1), x)
    check(lambda x: SEARCHES[search](x, axis=0), np.ascontiguousarray(x.T))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("dtype", ["i1", "i8", "u1", "u8"])
def test_limits_of_integers(dtype, search):
    info = np.iinfo(dtype)
    triples = np.array(list(itertools.product((info.min, info.max, 0, 1), repeat=3)), dtype)
    x = np.pad(triples, ((0, 0), (40, 0)), constant_values=1)
    check(lambda x: SEARCHES[search](x, axis=1), x)
    check(lambda x: SEARCHES[search](x, axis=0), np.ascontiguousarray(x.T))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    "shape", [(1,), (1, 1), (5, 1), (1, 5), (4, 5, 6), (1, 5, 1), (3, 1, 4, 2), (2, 3, 4, 5)], ids=str
)
def test_axes(shape, search):
    x = numbers("f4", shape)
    for axis in (None, *range(-1, len(shape))):
        for keepdims in (False, True):
            function = partial(SEARCHES[search], axis=axis, keepdims=keepdims)
            made, names = prebuilt(function, x)
            np.testing.assert_array_equal(made(x), function(x))
            assert any(name.startswith("first_") for name in names) or 1 in shape


@pytest.mark.parametrize("shape, axis", [((3000, 100), 1), ((300, 3000), 0), ((40, 100, 200), 1)])
def test_tasks(shape, axis):
    check(lambda x: x.argmax(axis=axis), np.random.default_rng(0).standard_normal(shape))


def test_among_other_operations():
    def function(x):
        return x.argmax(axis=1) + 1, x.max(axis=1), (x * 2).argmin(axis=0)

    x = numbers("f8", (3, 40))
    made, names = prebuilt(function, x)
    for got, want in zip(made(x), function(x), strict=True):
        np.testing.assert_array_equal(got, want)
    assert {"first_maximum_f64", "first_minimum_f64", "reduce_maximum_f64"} <= names


def test_types_without_a_search():
    x = numbers("f2", (3, 40))
    made, names = prebuilt(lambda x: x.argmax(axis=1), x)
    np.testing.assert_array_equal(made(x), x.argmax(axis=1))
    assert "reduce_maximum_f16" in names


def test_equal_elements():
    x = np.ones((3, 4))
    got = cyxla.jit(lambda x: np.argmax(np.full((3, 4), x[0, 0]), axis=1))(x)
    np.testing.assert_array_equal(got, np.zeros(3))


@pytest.mark.parametrize("axis", [0, 1])
def test_empty_arrays_are_refused_as_by_numpy(axis):
    x = np.ones((0, 0))
    with pytest.raises(ValueError, match="empty sequence"):
        x.argmax(axis=axis)
    with pytest.raises(ValueError, match="empty sequence"):
        cyxla.jit(lambda x: x.argmax(axis=axis))(x)


def lowered(function, x):
    return cyxla.jit(function).lower(x).as_text()


X = np.ones((4, 9), "f4")
#: Programs that look like a search, by what is changed in the text of one.
LIKE = {
    "another start": ("constant(-inf)", "constant(3)"),
    "another comparison": ("direction=EQ", "direction=GE"),
    "another axis of the indices": ("iota_dimension=1", "iota_dimension=0"),
    "a start of the indices": ("constant(2147483647)", "constant(5)"),
    "numbers as odd ones": ("direction=NE", "direction=EQ"),
    "another combiner": ("ROOT %minimum = s32[] minimum", "ROOT %minimum = s32[] maximum"),
}


@pytest.mark.parametrize("name", LIKE)
def test_programs_that_look_like_searches(name):
    text = lowered(lambda x: x.argmax(axis=1), X)
    assert LIKE[name][0] in text
    module = cyxla.hlo.parse_module(text.replace(*LIKE[name]))
    made = prebuilt_program.prebuilt_program(module, CompileOptions(), 1e12, exact=False)
    assert "first_" not in made.explain()
    x = np.random.default_rng(0).standard_normal(X.shape).astype("f4")
    x[2, 3] = np.nan
    np.testing.assert_array_equal(made(x), cyxla.compile(module, platform="interpreter")(x))


@pytest.mark.parametrize("old, new", [
    ("constant(-inf)", "constant(3)"), ("direction=GT", "direction=GE"), ("constant(0)", "constant(1)"),
    ("iota_dimension=0", "iota_dimension=1"), ("index=1", "index=1 "),
])  # fmt: skip
def test_pairs_that_look_like_searches(old, new):
    text = lowered(lambda x: x.argmax(axis=0), X)
    assert old in text
    module = cyxla.hlo.parse_module(text.replace(old, new))
    if new.strip() == old:
        assert (
            "first_maximum_f32 x1"
            in prebuilt_program.prebuilt_program(module, CompileOptions(), 1e12, exact=False).explain()
        )
        return
    with pytest.raises(NotCoveredError):
        prebuilt_program.prebuilt_program(module, CompileOptions(), 1e12, exact=False)


# sizes, axis, type, whether it runs on prebuilt kernels
QUICK = [
    ((1024,), 0, "f8", True), ((1025,), 0, "f8", False), ((2048,), 0, "f4", True), ((2049,), 0, "f4", False),
    ((25, 40), None, "f8", True), ((32, 32), 1, "f8", True), ((32, 33), 1, "f8", False),
    ((33, 8), 1, "f8", False), ((8, 127), 1, "i8", False), ((8, 64), 1, "f8", True), ((7, 128), 1, "f8", False),
    ((20, 50), 1, "f8", True), ((20, 51), 1, "f8", False), ((25, 40), 1, "f4", True), ((40, 15), 1, "f4", False),
    ((40, 16), 1, "f4", True), ((40, 32), 1, "f4", False), ((25, 129), 1, "f4", False), ((25, 40), 1, "i4", True),
    ((25, 40), 0, "f8", True), ((64, 2), 0, "f8", True), ((65, 2), 0, "f8", False), ((1000, 16), 0, "f4", True),
    ((1000, 15), 0, "f8", False), ((1000, 63), 0, "u1", False), ((1000, 64), 0, "?", True),
    ((8, 8, 5), 1, "i8", True), ((9, 8, 5), 1, "i8", False),
]  # fmt: skip


@pytest.mark.parametrize("shape, axis, dtype, is_prebuilt", QUICK)
def test_numpy_serves_what_it_finds_sooner(monkeypatch, shape, axis, dtype, is_prebuilt):
    monkeypatch.setenv("CYXLA_CC", "none")
    monkeypatch.setattr(uncompiled, "_warn", lambda: None)
    x = numbers(dtype, shape)
    jitted = cyxla.jit(lambda x: x.argmax(axis=axis))
    np.testing.assert_array_equal(jitted(x), x.argmax(axis=axis))
    assert (jitted.compile(x).missing is None) == is_prebuilt


def test_every_level_has_every_function():
    wanted = {name + Level(isa).suffix for isa in PREBUILT_LEVELS for name in reductions.first_forms().values()}
    assert wanted <= set(library.numbers) or "_v1" not in " ".join(library.numbers)


@pytest.mark.parametrize("isa", PREBUILT_LEVELS)
def test_levels(isa, monkeypatch):
    try:
        monkeypatch.setenv("CYXLA_ISA", isa)
        check(lambda x: x.argmax(axis=1), numbers("f4", (3, 200)))
    except cyxla.errors.InvalidArgumentError:
        pytest.skip("this processor lacks the level")
    for dtype in DTYPES:
        for n in (5, 16, 33, 100, 200):
            x = numbers(dtype, (3, n), n)
            check(lambda x: x.argmax(axis=1), x)
            check(lambda x: x.argmin(axis=0), x)
