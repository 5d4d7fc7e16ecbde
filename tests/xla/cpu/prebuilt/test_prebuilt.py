"""Prebuilt functions: the same bits as generated code, programs that are not compiled at all, refused recipes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import agree, arguments

import cyxla
from cyxla._native import kernels as library
from cyxla._native.launch import Library
from cyxla.xla.cpu.c.isa_levels import PREBUILT_LEVELS, Level
from cyxla.xla.cpu.dot import inner_products
from cyxla.xla.cpu.kernel import prebuilt_calls
from cyxla.xla.cpu.prebuilt import library as prebuilt_library


def dot(lhs: tuple[int, ...], rhs: tuple[int, ...], contracting: tuple[int, int], dtype: str = "f32") -> str:
    """A product of two matrices, or of batches of them."""
    batch = len(lhs) - 2
    free = [*lhs[:batch], lhs[2 * batch + 1 - contracting[0]], rhs[2 * batch + 1 - contracting[1]]]
    batches = "lhs_batch_dims={0}, rhs_batch_dims={0}, " if batch else ""
    lines = [
        f"a = {dtype}[{','.join(map(str, lhs))}] parameter(0)",
        f"b = {dtype}[{','.join(map(str, rhs))}] parameter(1)",
        f"ROOT d = {dtype}[{','.join(map(str, free))}] dot(a, b), {batches}"
        f"lhs_contracting_dims={{{contracting[0]}}}, rhs_contracting_dims={{{contracting[1]}}}",
    ]
    return "ENTRY e {\n" + "\n".join(lines) + "\n}"


def both(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The program with prebuilt functions, and with all its C."""
    made = []
    for setting in "01":  # the source is written when it is asked for, by the setting of then
        monkeypatch.setenv("CYXLA_PREBUILT", setting)
        made.append(cyxla.compile(text, cache=False))
    return made[1], made[0]


def same_bits(text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compare the two homes of a kernel; give the prebuilt one."""
    one, other = both(text, monkeypatch)
    generator = np.random.default_rng(1)
    arrays = [generator.standard_normal(s.dims).astype(s.dtype.numpy_dtype) for s in one.inputs]
    np.testing.assert_array_equal(_bits(one(*arrays)), _bits(other(*arrays)))
    return one


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.reshape(-1).view(np.uint8)


DOTS: dict[str, str] = {
    "whole panels": dot((70, 96), (96, 128), (1, 0)),
    "the last vector is cut": dot((65, 33), (33, 201), (1, 0)),
    "less than a vector": dot((301, 130), (130, 3), (1, 0)),
    "f64": dot((61, 47), (47, 53), (1, 0), "f64"),
    "both turned": dot((90, 70), (64, 90), (0, 1)),
    "left turned": dot((90, 70), (90, 64), (0, 0)),
    "right turned": dot((70, 90), (64, 90), (1, 1)),
    "long sums": dot((40, 2500), (2500, 72), (1, 0)),
    "long sums, cut": dot((40, 2500), (2500, 71), (1, 0)),
    "copied panels": dot((256, 64), (64, 1024), (1, 0)),
    "batches": dot((5, 64, 48), (5, 48, 80), (2, 1)),
    "batches, turned": dot((5, 48, 64), (5, 80, 48), (1, 2)),
    "a row": dot((1, 700), (700, 333), (1, 0)),
    "a row, streamed": dot((1, 1000), (1000, 3000), (1, 0)),
    "a row, an end of the sums": dot((1, 703), (703, 129), (1, 0)),
    "a row, left in a column": dot((703, 1), (703, 1041), (0, 0)),
    "a row, two units, f64": dot((1, 301), (301, 1025), (1, 0), "f64"),
    "a row, batches": dot((7, 1, 50), (7, 50, 2049), (2, 1)),
    "a row, far away": dot((1, 3001), (3001, 401), (1, 0)),
    "a row, in one tile": dot((1, 500), (500, 128), (1, 0)),
    "a column": dot((500, 700), (700, 1), (1, 0)),
    "few rows along k": dot((3, 1900), (177, 1900), (1, 1)),
    "few rows along k, a short end": dot((125, 1), (124, 125), (0, 1)),
    "a column, of much": dot((1101, 601), (601, 1), (1, 0)),
    "pairs of copied panels": dot((4, 50, 20), (4, 20, 512), (2, 1)),
    "pairs of copied panels, long sums": dot((40, 1100), (1100, 1024), (1, 0), "f64"),
    "pairs of copied panels, a finer end": dot((780, 9), (9, 2048), (1, 0)),
    "streamed": dot((16, 2100), (2100, 2100), (1, 0)),
    "streamed, f64": dot((7, 1500), (1500, 1501), (1, 0), "f64"),
    "streamed columns": dot((2100, 16), (2100, 2100), (0, 0)),
    "sums of rows, cut": dot((5, 301), (301, 1025), (1, 0)),
    "sums of rows, batches": dot((2, 3, 515), (2, 515, 521), (2, 1), "f64"),
    "fetched ahead, left turned": dot((700, 600), (700, 768), (0, 0)),
    "fetched ahead": dot((600, 700), (700, 768), (1, 0)),
    "fetched ahead, turned": dot((600, 700), (768, 700), (1, 1)),
}  # fmt: skip


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("name", DOTS)
def test_dots(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that arrive at run time change no bit."""
    source = same_bits(DOTS[name], monkeypatch).c_source
    assert "cyx_prebuilt[" in source
    assert "__builtin_prefetch" not in source


@pytest.mark.parametrize("way", range(3))
def test_few_rows_come_any_way(way: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the operands are thought to lie changes no bit."""
    at_hand = same_bits(DOTS["few rows along k"], monkeypatch)
    monkeypatch.setattr(inner_products, "CACHED_BYTES", [1 << 40] * (2 - way) + [0] * way)
    monkeypatch.setattr(inner_products, "LONG_ROW_BYTES", (1 << 40) * (way % 2))
    other = same_bits(DOTS["few rows along k"], monkeypatch)
    arrays = [np.random.default_rng(2).standard_normal(s.dims).astype(s.dtype.numpy_dtype) for s in other.inputs]
    assert other(*arrays).tobytes() == at_hand(*arrays).tobytes()


THREADED = ("long sums, cut", "copied panels", "batches", "streamed", "fetched ahead", "a column", "a column, of much",
            "a row, two units, f64", "pairs of copied panels, a finer end")  # fmt: skip


@pytest.mark.parametrize("name", THREADED)
def test_threads_change_no_bit(name: str) -> None:
    """Tasks are cut by sizes alone."""
    run = cyxla.compile(DOTS[name], cache=False)
    arrays = [np.random.default_rng(2).standard_normal(s.dims).astype(s.dtype.numpy_dtype) for s in run.inputs]
    before, seen = cyxla.threads(), set()
    try:
        for count in (1, 2, 8):
            cyxla.threads(count)
            seen.add(run(*arrays).tobytes())
    finally:
        cyxla.threads(before)
    assert len(seen) == 1


@pytest.mark.parametrize("name", DOTS)
def test_nothing_around_a_result_is_written(name: str) -> None:
    """Results that end in the middle of a vector, a tile, a unit of work."""
    run = cyxla.compile(DOTS[name], cache=False)
    arrays = [np.random.default_rng(2).standard_normal(s.dims).astype(s.dtype.numpy_dtype) for s in run.inputs]
    want = run(*arrays)
    memory = np.full(want.size + 4096, 7.0, want.dtype)
    run(*arrays, out=memory[2048:-2048].reshape(want.shape))
    assert memory[2048:-2048].tobytes() == want.tobytes()
    assert (memory[:2048] == 7.0).all()
    assert (memory[-2048:] == 7.0).all()


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_dot(data: st.DataObject) -> None:
    """Any sizes, both orders of both operands, with a batch or without."""
    m, n, k = (data.draw(st.integers(1, 300)) for _ in range(3))
    left, right = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))
    batch = data.draw(st.sampled_from([(), (1,), (3,)]))
    lhs = (*batch, *((m, k) if left else (k, m)))
    rhs = (*batch, *((n, k) if right else (k, n)))
    dims = (left + len(batch), right + len(batch))
    text = dot(lhs, rhs, dims, data.draw(st.sampled_from(["f32", "f64"])))
    with pytest.MonkeyPatch.context() as patch:
        same_bits(text, patch)


def test_special_values() -> None:
    """NaN and infinities go where they belong."""
    text = dot((65, 70), (70, 90), (1, 0))
    a, b = arguments(cyxla.hlo.parse_module(text))
    a[3, 5], b[7, 8], b[:, 89] = np.nan, np.inf, 0.0
    agree(text, a, b, ulp=1 << 10, floor=16.0)


# --- programs that are not compiled -----------------------------------------------------------------------------------

CHAIN = """ENTRY e {
  a = f32[100,100] parameter(0)
  b = f32[100,100] parameter(1)
  c = f32[100,100] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[100,100] dot(c, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[100,100], f32[100,100], f32[100,100]) tuple(d, c, a)
}"""


def test_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several kernels, a value in between, an argument handed through."""
    one, other = both(CHAIN, monkeypatch)
    assert one.library.recipe is not None
    assert other.library.recipe is None
    a, b = (np.random.default_rng(k).standard_normal((100, 100)).astype(np.float32) for k in range(2))
    for x, y in zip(one(a, b), other(a, b), strict=True):
        np.testing.assert_array_equal(x, y)


def test_no_compiler_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of prebuilt kernels is built without one."""

    def never(*_: Any, **__: Any) -> bytes:
        raise AssertionError("compiled")

    monkeypatch.setattr("cyxla.xla.cpu.native.build.Build.image", never)
    cyxla.compile(CHAIN, cache=False)
    with pytest.raises(AssertionError, match="compiled"):
        cyxla.compile("ENTRY e { a = f32[8] parameter(0) ROOT t = f32[8] tanh(a) }", cache=False)


def test_the_disk_cache_keeps_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe that is read back equals the written one, and runs."""
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path))
    first, second = cyxla.compile(CHAIN), cyxla.compile(CHAIN)
    assert first.library.recipe == second.library.recipe is not None
    assert second.library.path
    a = np.eye(100, dtype=np.float32)
    np.testing.assert_array_equal(second(a, 2 * a)[0], 4 * a)


@pytest.mark.parametrize("wrong", ["digest", "length", "function", "cut short", "too many numbers", "kind"])
def test_damaged_recipes(wrong: str, tmp_path: Path) -> None:
    """Nothing but a recipe for this very library is run."""
    image = cyxla.compile(CHAIN, cache=False).library.recipe
    words = list(struct.unpack(f"<{len(image) // 8}q", image))
    at = {"digest": 1, "length": 2, "function": 5, "kind": 4, "too many numbers": 4 + 5 + words[8]}.get(wrong)
    if at is None:
        words = words[:-3]
    else:
        words[at] = 1 << 40
    path = tmp_path / "recipe"
    path.write_bytes(struct.pack(f"<{len(words)}q", *words))
    assert not library.is_recipe(path.read_bytes())
    with pytest.raises(OSError, match="other prebuilt functions"):
        Library(path)


# --- the library ------------------------------------------------------------------------------------------------------


def test_every_level_has_every_function() -> None:
    """Names differ by the level alone."""
    levels = [Level(isa) for isa in prebuilt_library.levels_of("x86_64")]
    assert [level.isa for level in levels] == list(PREBUILT_LEVELS)
    sources = prebuilt_library.sources(machine="x86_64")
    assert len(sources) == len(levels) * len(prebuilt_library.MODULES) + 1
    assert sources == prebuilt_library.sources(machine="x86_64")


def test_a_lower_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level has its own functions; the second takes those of the first."""
    found = []
    for isa in ("x86-64-v1", "x86-64-v2", "x86-64-v3"):
        monkeypatch.setenv("CYXLA_ISA", isa)
        found.append(prebuilt_calls.number("dot_tiles_f32"))
        same_bits(DOTS["long sums, cut"], monkeypatch)
        monkeypatch.setenv("CYXLA_PREBUILT", "1")
    assert found[0] == found[1] != found[2]


def test_sanitizers_see_all_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instrumented programs use generated code."""
    assert prebuilt_calls.pointer("dot_tiles_f32")
    monkeypatch.setenv("CYXLA_SANITIZE", "undefined")
    assert prebuilt_calls.pointer("dot_tiles_f32") is None
    assert prebuilt_calls.pointer("no such function") is None
