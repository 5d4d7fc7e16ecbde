"""The interface of executables: arguments, results, errors, threads, inspection."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cyxla
from cyxla.errors import InvalidArgumentError, OpError, UnimplementedError
from cyxla.testing.compiling import compile_or_skip
from cyxla.xla.hlo import parse_module
from cyxla.xla.service import Executable

SUM = """ENTRY e {
  x = f32[3] parameter(0)
  p = (f32[3], s32[]) parameter(1)
  y = f32[3] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  s = f32[3] add(x, y)
  ROOT r = (f32[3], s32[]) tuple(s, n)
}"""
DOUBLE = "ENTRY e { x = f32[SIZES] parameter(0) ROOT y = f32[SIZES] add(x, x) }"
X, Y = np.array([1, 2, 3], np.float32), np.array([10, 20, 30], np.float32)


@pytest.fixture
def run(backend: str) -> Executable:
    """Return a program with a tuple as argument and result."""
    return compile_or_skip(SUM, backend, ["add", "tuple", "parameter", "get-tuple-element"])


def doubling(backend: str, sizes: str) -> Executable:
    """Return a program that doubles an array."""
    return compile_or_skip(DOUBLE.replace("SIZES", sizes), backend, ["add"])


def test_types(backend: str, run: Executable) -> None:
    """An executable knows its platform and the types of its arguments and results."""
    assert run.platform == backend
    assert [s.to_text(layout=False) for s in run.inputs] == ["f32[3]", "(f32[3], s32[])"]
    assert run.outputs.to_text(layout=False) == "(f32[3], s32[])"


def test_results(run: Executable) -> None:
    """Results are arrays of the declared types, which the caller owns."""
    total, number = run(X, (Y, np.int32(7)))
    np.testing.assert_array_equal(total, X + Y)
    assert (total.dtype, number.dtype, number.shape) == (np.float32, np.int32, ())
    assert total.flags.writeable
    assert total.flags.c_contiguous
    assert not np.may_share_memory(total, run(X, (Y, np.int32(7)))[0])


def test_arguments_are_not_changed(run: Executable) -> None:
    """A call leaves its arguments as they are, also read-only ones."""
    x = X.copy()
    x.flags.writeable = False
    run(x, (Y, np.int32(7)))
    np.testing.assert_array_equal(x, [1, 2, 3])


@pytest.mark.parametrize("sizes", ["", "0", "1", "2,0,3", "5,7", "2,3,4"])
def test_sizes(backend: str, sizes: str) -> None:
    """Scalars, empty arrays and several dimensions."""
    dims = tuple(map(int, sizes.split(","))) if sizes else ()
    x = np.arange(np.prod(dims, dtype=int), dtype=np.float32).reshape(dims)
    got = doubling(backend, sizes)(x)
    assert got.shape == dims
    np.testing.assert_array_equal(got, 2 * x)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "every second": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape),
    "other byte order": lambda x: x.astype(">f4"),
    "lists": lambda x: x.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_arguments(backend: str, layout: str) -> None:
    """Arguments of any strides, and lists of numbers."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(doubling(backend, "3,4")(LAYOUTS[layout](x)), 2 * x)


WRONG: dict[str, tuple[Any, ...]] = {
    "too few": (X,), "too many": (X, (Y, np.int32(7)), X), "another size": (X[:2], (Y, np.int32(7))),
    "another type": (X.astype(np.float64), (Y, np.int32(7))), "no tuple": (X, Y), "a shorter tuple": (X, (Y,)),
    "text": ("abc", (Y, np.int32(7))),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments(run: Executable, wrong: str) -> None:
    """An argument that does not match its parameter is an error, after which the program still runs."""
    with pytest.raises(InvalidArgumentError):
        run(*WRONG[wrong])
    np.testing.assert_array_equal(run(X, (Y, np.int32(7)))[0], X + Y)


def test_given_arrays_for_results(backend: str) -> None:
    """Results are written to arrays of the caller, or the platform says that it does not."""
    run, out = doubling(backend, "3"), np.empty(3, np.float32)
    try:
        got = run(X, out=out)
    except UnimplementedError as error:
        pytest.skip(f"refused: {error.message}")
    assert got is out
    np.testing.assert_array_equal(out, 2 * X)
    with pytest.raises(InvalidArgumentError):
        run(X, out=np.empty(4, np.float32))


def test_bound_arguments(run: Executable) -> None:
    """A bound argument keeps the value that it had."""
    x = X.copy()
    bound = run.bind({0: x})
    x[:] = 0
    np.testing.assert_array_equal(bound((Y, np.int32(7)))[0], X + Y)
    with pytest.raises(InvalidArgumentError):
        run.bind({5: x})


def test_threads(backend: str) -> None:
    """Several threads run one executable at the same time."""
    run = doubling(backend, "64")
    wrong: list[int] = []

    def work(k: int) -> None:
        x = np.full(64, k, np.float32)
        wrong.extend(k for _ in range(50) if not np.array_equal(run(x), 2 * x))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_inspection(run: Executable) -> None:
    """The program can be read again, before and after the passes, and explained."""
    for stage in ("input", "optimized"):
        assert parse_module(run.hlo(stage)).entry.root.shape.compatible(run.outputs)
    assert isinstance(run.explain(), str)
    assert run.memory["arguments"] == 28


def test_passes_leave_the_program(backend: str) -> None:
    """Compilation does not change the module that it is given, nor does a refusal."""
    module = parse_module(SUM)
    before = module.to_text()
    with contextlib.suppress(UnimplementedError):
        cyxla.compile(module, platform=backend)
    assert module.to_text() == before


def test_unsupported_opcodes_are_named(backend: str) -> None:
    """A program that no platform runs is refused by the name of the custom call."""
    text = 'ENTRY e { x = f32[3] parameter(0) ROOT y = f32[3] custom-call(x), custom_call_target="nobody_has_this" }'
    with pytest.raises(OpError, match=r"nobody_has_this|custom-call"):
        cyxla.compile(text, platform=backend)
