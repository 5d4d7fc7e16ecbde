"""Autotuning changes times alone: all variants of a kernel give equal bits, and untuned programs equal C."""

import functools
import os
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

import cyxla
from cyxla.errors import InternalError, InvalidArgumentError
from cyxla.hlo import parse_module
from cyxla.xla.cpu.autotune import search as search_module
from cyxla.xla.cpu.autotune import tuner
from cyxla.xla.cpu.autotune.records import Record, Records, text_of
from cyxla.xla.cpu.autotune.search import arguments, search
from cyxla.xla.cpu.autotune.sites import alone, collector
from cyxla.xla.cpu.c.target import isa_level
from cyxla.xla.cpu.compiler import CpuCompiler
from cyxla.xla.cpu.kernel import variants
from cyxla.xla.cpu.native import compiler_search
from cyxla.xla.cpu.native.cache import DiskCache, default_directory
from cyxla.xla.service import CompileOptions

DOT = "ENTRY e {{ a = {t}[{a}] parameter(0) b = {t}[{b}] parameter(1) ROOT r = {t}[{r}] dot(a, b), {dims} }}"
BIASED = (
    "ENTRY e {{ a = {t}[{m},{k}] parameter(0) b = {t}[{k},{n}] parameter(1) c = {t}[{n}] parameter(2) "
    "d = {t}[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} "
    "e = {t}[{m},{n}] broadcast(c), dimensions={{1}} ROOT r = {t}[{m},{n}] add(d, e) }}"
)
CONVOLUTION = (
    "ENTRY e {{ x = {t}[{x}] parameter(0) w = {t}[{w}] parameter(1) "
    "ROOT r = {t}[{r}] convolution(x, w), window={{{window}}}, dim_labels={labels}{more} }}"
)


def product(t, m, k, n, order="nn"):
    """Return a product whose operands may be transposed in memory, ``t``."""
    a, left = (f"{m},{k}", 1) if order[0] == "n" else (f"{k},{m}", 0)
    b, right = (f"{k},{n}", 0) if order[1] == "n" else (f"{n},{k}", 1)
    dims = f"lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}"
    return DOT.format(t=t, a=a, b=b, r=f"{m},{n}", dims=dims)


def batch(t, count, m, k, n):
    dims = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
    return DOT.format(t=t, a=f"{count},{m},{k}", b=f"{count},{k},{n}", r=f"{count},{m},{n}", dims=dims)


def convolution(t, x, w, r, window, labels="b01f_01io->b01f", more=""):
    return CONVOLUTION.format(t=t, x=x, w=w, r=r, window=window, labels=labels, more=more)


#: Programs of one kernel, and parameters that are among their axes on AVX-512.
PROGRAMS = {
    "tiles": (product("f32", 200, 300, 250), {"vectors", "rows", "packs", "ranges", "prebuilt", "tasks"}),
    "tiles, long sums": (product("f32", 40, 2500, 100), {"vectors", "rows", "prebuilt"}),
    "tiles of f64": (product("f64", 130, 1100, 90), {"vectors", "rows", "prebuilt"}),
    "tall": (product("f32", 20000, 30, 17), {"vectors", "rows"}),
    "wide": (product("f64", 40, 40, 5000), {"vectors", "rows"}),
    "left transposed": (product("f32", 150, 260, 120, "tn"), {"vectors", "rows"}),
    "right transposed": (product("f32", 150, 260, 120, "nt"), {"vectors", "rows"}),
    "aliasing rows": (product("f32", 256, 256, 512), {"packs", "prebuilt"}),
    "panels in groups": (product("f32", 600, 600, 2048), {"group", "strip"}),
    "slabs": (product("f32", 6000, 600, 48), {"slabs"}),
    "prefetch": (product("f32", 60, 500, 1100), {"prefetch"}),
    "a batch": (batch("f32", 12, 50, 60, 70), {"vectors", "rows"}),
    "an epilogue": (BIASED.format(t="f32", m=100, k=1200, n=90), {"vectors", "rows", "ranges"}),
    "a row": (product("f32", 1, 1500, 2000), {"width", "locality", "tasks"}),
    "a row in parts": (product("f64", 1, 12000, 300), {"tasks"}),
    "few rows": (product("f32", 6, 1000, 1000), {"width", "tasks"}),
    "inner products": (product("f32", 3, 4000, 700, "nt"), {"form", "width", "tasks"}),
    "inner products of f64": (product("f64", 1, 3000, 900, "nt"), {"form", "width"}),
    "bytes": (product("s8", 200, 300, 250), {"vectors", "rows", "unit", "depth"}),
    "s32": (product("s32", 120, 300, 130), {"vectors", "rows", "unit", "depth"}),
    "u64": (product("u64", 60, 400, 70), {"vectors", "rows"}),
    "integers with an epilogue": (BIASED.format(t="s32", m=90, k=300, n=70), {"vectors", "rows"}),
    "convolution": (
        convolution("f32", "2,20,20,32", "3,3,32,48", "2,20,20,48", "size=3x3 pad=1_1x1_1"),
        {"vectors", "rows", "chunk", "prebuilt", "tasks"},
    ),
    "convolution of f64": (
        convolution("f64", "1,14,14,40", "3,3,40,27", "1,12,12,27", "size=3x3"), {"vectors", "rows", "chunk"},
    ),
    "blocks of taps": (
        convolution("f32", "1,12,12,128", "3,3,128,64", "1,6,6,64", "size=3x3 pad=1_1x1_1 stride=2x2"), {"rows"},
    ),
    "no padding": (
        convolution("f32", "2,30,30,16", "3,3,16,32", "2,28,28,32", "size=3x3"), {"vectors", "chunk"},
    ),
    "long rows": (
        convolution("f32", "2,40,40,4", "5,5,4,32", "2,36,36,32", "size=5x5"), {"positions"},
    ),
    "convolution in rows": (
        convolution("f32", "2,60,60,3", "7,7,3,32", "2,30,30,32", "size=7x7 pad=3_3x3_3 stride=2x2"),
        {"positions", "vectors", "prebuilt", "tasks"},
    ),
    "in rows, of f64": (
        convolution("f64", "1,50,50,3", "3,3,3,20", "1,50,50,20", "size=3x3 pad=1_1x1_1"), {"positions"},
    ),
    "a line": (
        convolution("f32", "4,400,32", "9,32,40", "4,392,40", "size=9", "b0f_0io->b0f"), {"vectors", "rows", "chunk"},
    ),
    "filter": (
        convolution("f32", "16,20,20,32", "16,18,18,48", "3,3,32,48", "size=18x18", "f01b_i01o->01bf"), {"tasks"},
    ),
    "depthwise": (
        convolution("f32", "2,60,60,64", "3,3,1,64", "2,58,58,64", "size=3x3", more=", feature_group_count=64"),
        {"tasks"},
    ),
}  # fmt: skip


@pytest.fixture
def compiler():
    return CpuCompiler()


@pytest.fixture
def tools():
    return compiler_search.find()


def sites_of(compiler, text, min_ns=0.0):
    """Return the kernels of a program that have variants."""
    sites = {}
    with variants.observed(collector(sites, min_ns)):
        compiler.emit(compiler.run_hlo_passes(parse_module(text), CompileOptions()))
    return list(sites.values())


def underflowing(shapes):
    """Return arguments whose products are too small for their types, so that sums are -0."""
    tiny = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-200}
    dtypes = [shape.dtype.numpy_dtype for shape in shapes]
    return [
        np.full(s.dims, tiny.get(t, 1) * (-1) ** k).astype(t)
        for k, (s, t) in enumerate(zip(shapes, dtypes, strict=True))
    ]


def source(compiler, module, choices):
    """Return the C of an optimised module with some choices."""
    with variants.chosen(choices):
        return compiler.emit(module)[2].text


def check_parameters(site, parameters):
    """Check the names of the axes, which depend on the size and the number of registers."""
    assert site.axes
    if isa_level() == "x86-64-v4":
        assert parameters <= site.axes.keys()


def check_variants(compiler, tools, site):
    """Check that every variant of a kernel is another one, and gives the bits of the kernel of the rules."""
    module = alone(site.group)
    build = partial(compiler._trial, tools, module)
    default, rules = build({}), source(compiler, module, {})
    inputs = arguments(default.inputs), underflowing(default.inputs)
    want = [default(*some).tobytes() for some in inputs]
    for parameter, values in site.axes.items():
        for value in values:
            assert source(compiler, module, {site.key: {parameter: value}}) != rules, (parameter, value)
            run = build({site.key: {parameter: value}})
            assert [run(*some).tobytes() for some in inputs] == want, (parameter, value)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_variants_give_equal_bits(compiler, tools, name):
    text, parameters = PROGRAMS[name]
    (site,) = sites_of(compiler, text)
    check_parameters(site, parameters)
    check_variants(compiler, tools, site)


#: Programs whose weights are packed once they are known, and parameters that are among the axes.
PACKED = {
    "product": (product("f32", 40, 1000, 1280), {"rows", "ranges"}),
    "convolution": (
        convolution("f32", "1,14,14,256", "3,3,256,256", "1,14,14,256", "size=3x3 pad=1_1x1_1"), {"rows", "chunk"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PACKED)
def test_variants_of_packed_weights(compiler, tools, name):
    text, parameters = PACKED[name]
    program = cyxla.compile(text)
    weights = arguments(program.inputs)[1]
    sites = {}
    with variants.observed(collector(sites, 0.0)):
        compiler.emit(program.bind({1: weights}).optimized)
    (site,) = sites.values()
    assert len(site.group.root.operands[1].shape.dims) > weights.ndim
    check_parameters(site, parameters)
    check_variants(compiler, tools, site)


# ---------------------------------------- the search
class Program:
    """Program that takes some seconds and returns its result."""

    inputs = ()

    def __init__(self, seconds, result=0.0):
        self.seconds, self.result = seconds, np.float64(result)

    def __call__(self):
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:
            pass
        return self.result


SLOW, FAST, FASTEST = 6e-4, 3e-4, 1.5e-4
AXES = {"rows": (2, 4), "tasks": (1,)}


def refuse():
    raise InternalError("the C compiler crashed")


#: Programs by choice, the one that is found, and the reasons for which others are not measured.
SEARCHES = {
    "the fastest": ({"rows=2": FASTEST, "rows=4": FAST}, {"rows": 2}, {}),
    "the rules": ({"rows=2": 2 * SLOW}, {}, {}),
    "two together": ({"rows=4": FAST, "tasks=1": FAST, "rows=4, tasks=1": FASTEST}, {"rows": 4, "tasks": 1}, {}),
    "one alone": ({"rows=4": FASTEST, "tasks=1": FAST, "rows=4, tasks=1": SLOW}, {"rows": 4}, {}),
    "other bits": ({"rows=2": Program(FASTEST, -0.0)}, {}, {"rows=2": "its results have other bits"}),
    "no code": ({"rows=2": refuse, "rows=4": FAST}, {"rows": 4}, {"rows=2": "the C compiler crashed"}),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_search(name):
    programs, choice, rejected = SEARCHES[name]

    def build(choice):
        made = programs.get(text_of(dict(sorted(choice.items()))), SLOW)
        return made() if made is refuse else made if isinstance(made, Program) else Program(made)

    found = search(build, AXES)
    assert (dict(found.choice), found.rejected) == (choice, rejected)
    assert (found.gain > 1) == bool(choice)


def test_one_candidate_is_not_measured():
    assert search(lambda choice: pytest.fail("it was built"), {}) == search_module.Finding({}, 1.0, 0, {})


@pytest.mark.parametrize(
    "pairs, want",
    [
        ([(1.0, 2.0)], 0.5),
        ([(1.0, 2.0), (1.0, 2.0), (9.0, 1.0)], 1.0),  # the least times decide
        ([(0.1, 2.0), (2.0, 2.0), (2.0, 2.0)], 1.0),  # the median does
    ],
)
def test_ratio(pairs, want):
    assert search_module.ratio(pairs) == want


# ---------------------------------------- the records
@pytest.fixture
def records(tmp_path, tools):
    return Records(DiskCache(tmp_path / "cache"), tools)


@pytest.fixture
def site(compiler):
    (site,) = sites_of(compiler, PROGRAMS["tiles"][0])
    return site


def record_of(site, machine, **changes):
    facts = {"kernel": site.key, "machine": machine, "label": site.label, "choice": {"vectors": 1}, "gain": 1.25}
    return Record(**{**facts, "measured": 9, "rejected": {}, **changes})


#: Fields of records that are not for this kernel, machine or version.
FOREIGN = {
    "another kernel": {"kernel": "0"},
    "another machine": {"machine": "a processor, 64 threads, x86-64-v3"},
    "a value that is not offered": {"choice": {"vectors": 99}},
    "a parameter that is not offered": {"choice": {"k_block": 2}},
    "a truth value": {"choice": {"tasks": True}},
    "a gain of another type": {"gain": "1.25"},
}


def test_records_go_in_and_come_out(records, site):
    assert records.get(site) is None
    record = record_of(site, records.machine)
    records.put(record, site)
    assert records.get(site) == record


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_records_are_ignored(records, site, name):
    records.put(record_of(site, **{"machine": records.machine, **FOREIGN[name]}), site)
    assert records.get(site) is None


DAMAGES = {"cut": lambda data: data[:-9], "changed": lambda data: b"x" + data[1:], "empty": lambda data: b""}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_records_are_ignored(records, site, name):
    records.put(record_of(site, records.machine), site)
    path = records.disk.path(records.key(site))
    path.write_bytes(DAMAGES[name](path.read_bytes()))
    assert records.get(site) is None


@pytest.mark.parametrize("manifest", [[], {}, {"kernel": 1}, "text"], ids=str)
def test_other_data_are_ignored(records, site, manifest):
    records.disk.put_module(records.key(site), manifest, b"")
    assert records.get(site) is None


def test_what_is_known_is_not_measured(records, compiler, site):
    module = compiler.run_hlo_passes(parse_module(PROGRAMS["tiles"][0]), CompileOptions())
    records.put(record_of(site, records.machine), site)
    found = tuner.tune(module, CompileOptions(), records, lambda *_: pytest.fail("it was measured"))
    assert {key: record.choice for key, record in found.items()} == {site.key: {"vectors": 1}}


# ---------------------------------------- the options
@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Use an empty disk cache."""
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path / "cache"))


X, Y = np.random.default_rng(0).standard_normal((2, 300, 300)).astype(np.float32)
SQUARE = product("f32", 300, 300, 300)
#: Ways to ask for it.
REQUESTS = {
    "compile": lambda: cyxla.compile(SQUARE, autotune=True),
    "jit": lambda: cyxla.jit(np.matmul, autotune=True),
    "compile a function": lambda: cyxla.compile(np.matmul, X, Y, autotune=True),
}


def tuning_lines(executable):
    return [line for line in executable.explain().splitlines() if line.startswith("    tuned: ")]


@pytest.mark.parametrize("name", REQUESTS)
def test_tuned_programs_tell_and_give_equal_bits(cache, name):
    run = REQUESTS[name]()
    assert run(X, Y).tobytes() == cyxla.compile(SQUARE)(X, Y).tobytes()
    (line,) = tuning_lines(run)
    assert "by the rules" in line


def test_setting(cache, monkeypatch):
    assert tuning_lines(cyxla.compile(SQUARE)) == []
    monkeypatch.setenv("CYXLA_AUTOTUNE", "1")
    assert len(tuning_lines(cyxla.compile(SQUARE))) == 1
    assert tuning_lines(cyxla.compile(SQUARE, autotune=False)) == []


def test_choices_are_in_the_code_and_in_the_cache(cache, tools, compiler, site):
    """Kept choices make the code of programs in this process, and of those that a later one finds."""
    records = Records(DiskCache(default_directory()), tools)
    records.put(record_of(site, records.machine), site)
    text = PROGRAMS["tiles"][0]
    plain, built, found = cyxla.compile(text), *(cyxla.compile(text, autotune=True) for _ in range(2))
    assert plain.c_source != built.c_source == found.c_source
    assert tuning_lines(built) == tuning_lines(found) == ["    tuned: vectors=1, 1.25 times as fast as by the rules"]
    (report,) = found.explanation().kernels
    assert report.tuning.startswith("vectors=1")
    inputs = arguments(plain.inputs)
    assert plain(*inputs).tobytes() == built(*inputs).tobytes() == found(*inputs).tobytes()


@pytest.mark.parametrize("name", ["tiles", "few rows", "bytes", "convolution", "an epilogue"])
def test_untuned_programs_do_not_change(compiler, name):
    module = compiler.run_hlo_passes(parse_module(PROGRAMS[name][0]), CompileOptions())
    text = source(compiler, module, {})
    with variants.observed(collector({}, 0.0)):
        assert compiler.emit(module)[2].text == text
    assert "autotune" not in CompileOptions().key()


def test_short_kernels_are_not_measured(cache):
    assert tuning_lines(cyxla.compile(product("f32", 64, 64, 64), autotune=True)) == []


@pytest.mark.parametrize("value", [1, "yes", None])
def test_wrong_values(value):
    with pytest.raises(InvalidArgumentError, match="autotune is a"):
        cyxla.compile(SQUARE, autotune=value)


def test_another_process_measures_nothing(tmp_path):
    """The second process compiles another program with the same kernel; its search would fail."""
    script = (
        "import sys, cyxla; from cyxla.xla.cpu.autotune import tuner; tuner._search = None if sys.argv[1] else "
        "tuner._search; run = cyxla.compile(sys.stdin.read(), autotune=True); print('tuned: ' in run.explain())"
    )
    more = SQUARE.replace("ROOT r", "r")[:-1] + "n = f32[3] parameter(2) ROOT t = (f32[300,300], f32[3]) tuple(r, n) }"
    for text, failing in ((SQUARE, ""), (more, "1")):
        done = subprocess.run(
            [sys.executable, "-c", script, failing], input=text, capture_output=True, text=True, check=True,
            env={**os.environ, "CYXLA_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        assert done.stdout == "True\n"


#: Functions with kernels inside loops, with epilogues, or with several results.
FUNCTIONS = {
    "a loop": lambda x, y: functools.reduce(lambda z, _: np.tanh(z @ y), range(40), x),
    "an epilogue": lambda x, y: np.maximum(x @ y + y[0], 0) * x,
    "several results": lambda x, y: (np.exp(x @ y), (x @ y).sum(0)),
    "one array twice": lambda x, y: x @ x + y,
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_inside_programs(cache, name):
    plain, tuned = (cyxla.compile(FUNCTIONS[name], X, Y, autotune=on) for on in (False, True))
    assert [line for line in tuning_lines(tuned) if "variants" in line or "times as fast" in line]
    for want, got in zip(plain(X, Y), tuned(X, Y), strict=True):
        assert want.tobytes() == got.tobytes()


@pytest.mark.parametrize(
    "tasks, units, ns, want",
    [
        (8, 64, 1.5e5, [1, 2, 32]),
        (8, 16, 1.5e5, [1, 2]),  # no more tasks than units
        (32, 1000, 6e5, [2, 8, 128]),  # a single task of a long kernel is no variant
        (256, 1000, 1e9, []),  # tasks of 5 ms and more would delay Ctrl-C
        (1, 64, 1.2e5, [2, 4]),
    ],
)
def test_numbers_of_tasks(tasks, units, ns, want):
    assert variants.other_tasks(tasks, units, ns) == want
