"""Autotuning changes times alone: all variants of a kernel give equal bits, and untuned programs equal C."""

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import cyxla
from cyxla.errors import InternalError, InvalidArgumentError
from cyxla.hlo import parse_module
from cyxla.xla.cpu.autotune import search as search_module
from cyxla.xla.cpu.autotune import tuner
from cyxla.xla.cpu.autotune.records import Record, Records
from cyxla.xla.cpu.autotune.search import arguments, search
from cyxla.xla.cpu.autotune.sites import Site, alone, collector
from cyxla.xla.cpu.compiler import CpuCompiler
from cyxla.xla.cpu.kernel import variants
from cyxla.xla.cpu.native import compiler_search
from cyxla.xla.cpu.native.cache import DiskCache
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


#: Programs of one kernel, and parameters that are among their axes.
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
    "tiles or rows": (
        convolution("f32", "2,30,30,16", "3,3,16,32", "2,28,28,32", "size=3x3"), {"tiled", "vectors", "chunk"},
    ),
    "rows or tiles": (
        convolution("f32", "2,40,40,4", "5,5,4,32", "2,36,36,32", "size=5x5"), {"tiled", "positions"},
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


def source(compiler, module, choices):
    """Return the C of an optimised module with some choices."""
    with variants.chosen(choices):
        return compiler.emit(module)[2].text


@pytest.mark.parametrize("name", PROGRAMS)
def test_variants_give_equal_bits(compiler, tools, name):
    text, parameters = PROGRAMS[name]
    (site,) = sites_of(compiler, text)
    assert parameters <= site.axes.keys()
    module = alone(site.group)
    build = partial(compiler._trial, tools, module)
    default, rules = build({}), source(compiler, module, {})
    inputs = arguments(default.inputs)
    want = default(*inputs)
    for parameter, values in site.axes.items():
        for value in values:
            run = build({site.key: {parameter: value}})
            assert source(compiler, module, {site.key: {parameter: value}}) != rules, (parameter, value)
            assert run(*inputs).tobytes() == want.tobytes(), (parameter, value)
