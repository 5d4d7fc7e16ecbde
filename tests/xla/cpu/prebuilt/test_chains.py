"""Element-wise calls that follow each other make each task in turn, in chains, with the results of single calls."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.random_steps import arguments, random_steps, same_bits

import cyxla
from cyxla._native import kernels as library
from cyxla._native.launch import Library
from cyxla.xla.cpu.prebuilt import recipe_writer
from cyxla.xla.cpu.prebuilt.program import NotCoveredError, prebuilt_program
from cyxla.xla.service import CompileOptions

N = 600_000  # many tasks for each thread
HEADER = 4  # numbers before the first step

# lines after the parameters x, y: f64[N], and the calls of each chain
PROGRAMS = {
    "two calls": ("a = f64[N] add(x, y) ROOT r = f64[N] multiply(a, x)", [2]),
    "one call": ("ROOT r = f64[N] add(x, y)", []),
    "several results": (
        "a = f64[N] add(x, y) b = f64[N] multiply(a, x) c = f64[N] abs(b) ROOT r = (f64[N], f64[N]) tuple(a, c)", [3]),
    "memory used again": (
        "a = f64[N] add(x, y) b = f64[N] multiply(a, x) c = f64[N] negate(b) d = f64[N] subtract(c, y) "
        "e = f64[N] abs(d) ROOT r = f64[N] add(e, x)", [6]),
    "a value that is read later": (
        "a = f64[N] add(x, y) b = f64[N] multiply(a, x) c = f64[N] reverse(a), dimensions={0} "
        "d = f64[N] add(b, c) ROOT r = f64[N] abs(d)", [2, 2]),
    "neighbours of a value of the chain": (
        "a = f64[N] add(x, y) b = f64[M] slice(a), slice={[1:N]} c = f64[M] slice(a), slice={[0:M]} "
        "d = f64[M] subtract(b, c) ROOT r = f64[M] abs(d)", [2]),
    "memory whose old elements a later task reads": (
        "a = f64[N] add(x, y) z = f64[N] negate(a) b = f64[M] slice(z), slice={[1:N]} c = f64[M] slice(y), "
        "slice={[0:M]} d = f64[M] subtract(b, c) e = f64[M] abs(d) f = f64[M] negate(e) ROOT r = f64[M] sqrt(f)",
        [2, 3]),
    "other rows of a value of the chain": (
        "v = f64[600,1000] reshape(x) w = f64[600,1000] reshape(y) a = f64[600,1000] add(v, w) "
        "b = f64[600,1000] reverse(a), dimensions={0} c = f64[600,1000] subtract(a, b) "
        "ROOT r = f64[600,1000] abs(c)", [2]),
    "memory of a value from before": (
        "z = f64[N] reverse(x), dimensions={0} a = f64[N] add(z, y) b = f64[N] abs(a) c = f64[N] negate(b) "
        "ROOT r = f64[N] add(c, x)", [4]),
    "types of several sizes": (
        "p = pred[N] compare(x, y), direction=LT h = f32[N] convert(x) g = f32[N] abs(h) f = f64[N] convert(g) "
        "ROOT r = f64[N] select(p, f, y)", [5]),
    "a number that is computed between": (
        "a = f64[N] add(x, y) k = f64[] constant(2) s = f64[1] slice(y), slice={[5:6]} t = f64[] reshape(s) "
        "u = f64[] multiply(t, k) b = f64[N] broadcast(u), dimensions={} c = f64[N] multiply(a, b) "
        "ROOT r = f64[N] add(c, a)", [2]),
    "more calls than a chain has": (
        "".join(f"a{k} = f64[N] add({f'a{k - 1}' if k else 'x'}, y) " for k in range(35)) + "ROOT r = f64[N] abs(a34)",
        [16, 16, 4]),
    "rows and columns": (
        "w = f64[600,1000] reshape(x) c = f64[600] slice(y), slice={[7:607]} l = f64[600] abs(c) "
        "b = f64[600,1000] broadcast(l), dimensions={0} d = f64[600,1000] subtract(w, b) "
        "ROOT r = f64[600,1000] multiply(d, b)", [2]),
}  # fmt: skip


def parsed(text):
    text = f"HloModule t\nENTRY e {{ x = f64[N] parameter(0) y = f64[N] parameter(1) {text} }}"
    return cyxla.hlo.parse_module(text.replace("N]", f"{N}]").replace("M]", f"{N - 1}]"))


def prebuilt(module):
    return prebuilt_program(module, CompileOptions(), 1e12, exact=False)


def words(program):
    image = program.library.recipe
    return list(struct.unpack(f"<{len(image) // 8}q", image))


def starts(numbers):
    """Return the places of the steps of a recipe."""
    found, at = [], HEADER
    while at < len(numbers):
        found.append(at)
        n = numbers[at + 4] if numbers[at] == library.CALL else 0
        at += 6 + n + numbers[at + 5 + n] if numbers[at] == library.CALL else 4
    return found


def chains(program):
    """Return the number of calls of each chain."""
    numbers = words(program)
    return [numbers[at + 1] for at in starts(numbers) if numbers[at] == library.CHAIN]


@pytest.mark.parametrize("name", PROGRAMS)
def test_chains(name):
    text, calls = PROGRAMS[name]
    module = parsed(text)
    program, (x, y) = prebuilt(module), np.random.default_rng(0).standard_normal((2, N))
    assert chains(program) == calls
    expected = cyxla.compile(module, platform="interpreter")(x, y)
    for _ in range(2):  # temporaries hold other numbers
        assert same_bits(program(x, y), expected)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_random_programs(seed):
    module = random_steps(seed)
    results = []
    for size in (1 << 40, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(recipe_writer, "TASK", size)
            patch.setattr(recipe_writer, "LINK_TASK", 70)
            try:
                results.append(prebuilt(module)(*arguments(module, seed & 0xFFFF)))
            except NotCoveredError:
                return
    assert same_bits(*results)


DAMAGED = {
    "no calls": {1: 0},
    "more calls than a chain has": {1: library.LINKS + 1},
    "more calls than follow": {1: 3},
    "other tasks than the calls": {2: 1},
    "a call of several phases": {7: 2},
    "a copy in a chain": {4: library.COPY},
    "a chain in a chain": {4: library.CHAIN},
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_chains(name, tmp_path):
    numbers = words(prebuilt(parsed(PROGRAMS["two calls"][0])))
    assert numbers[HEADER] == library.CHAIN
    for at, number in DAMAGED[name].items():
        numbers[HEADER + at] = number
    path = tmp_path / "recipe"
    path.write_bytes(struct.pack(f"<{len(numbers)}q", *numbers))
    assert not library.is_recipe(path.read_bytes())
    with pytest.raises(OSError, match="other prebuilt functions"):
        Library(path)


def test_calls_of_a_chain_have_the_bytes_of_their_tasks(tmp_path):
    """A recipe in which a call has too few numbers for these is refused."""
    numbers = words(prebuilt(parsed(PROGRAMS["two calls"][0])))
    last = starts(numbers)[-1]
    n = numbers[last + 4]
    kept = n - 1
    damaged = [*numbers[: last + 5 + n], kept, *numbers[last + 6 + n : last + 6 + n + kept]]
    damaged[2] = len(damaged)
    assert not library.is_recipe(struct.pack(f"<{len(damaged)}q", *damaged))
