"""Compile and run kernels of emitters one by one, without planner and launcher."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from cyxla.xla.cpu import emitters
from cyxla.xla.cpu.c.prelude import prelude
from cyxla.xla.cpu.kernel.kernel import Step, Value
from cyxla.xla.cpu.kernel.values import leaves
from cyxla.xla.cpu.loops import elementwise
from cyxla.xla.cpu.plan import fusion
from cyxla.xla.cpu.reduce import emit as reduce
from cyxla.xla.cpu.reduce.rows import emit as rows
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import HloModule

FLAGS = [
    "-std=gnu11", "-O2", "-ftree-vectorize", "-march=native", "-mprefer-vector-width=512", "-fno-math-errno",
    "-fno-trapping-math", "-ffp-contract=off", "-fPIC", "-shared", "-Wall", "-Wno-unused", "-Werror",
    "-nostdlib", "-x", "c", "-", "-lgcc",
]  # fmt: skip
_ = (elementwise, reduce, rows)


@dataclass
class Compiled:
    """The groups of a module as machine code."""

    module: HloModule
    groups: list[fusion.Group]
    steps: list[Step]
    text: str
    library: ctypes.CDLL

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """Run all kernels, the last task first, with every array at an odd address."""
        arrays: dict[Value, np.ndarray] = {}
        for p in self.module.entry.parameters:
            arrays[Value(p)] = inputs[p.attrs["parameter_number"]]
        for i, step in enumerate(self.steps):
            self._run(i, step, arrays)
        root = self.module.entry.root
        return [_value(v, arrays).reshape(s.dims) for v, s in zip(leaves(root), root.shape.leaves(), strict=True)]

    def _run(self, number: int, step: Step, arrays: dict[Value, np.ndarray]) -> None:
        bufs = [_value(v, arrays) for v in step.reads]
        for w in step.writes:
            arrays[w] = _misaligned(w)
        for w, r in step.must_alias:
            arrays[step.writes[w]][...] = bufs[r]
        for w, r in step.must_alias:
            bufs[r] = arrays[step.writes[w]]
        bufs = [np.ascontiguousarray(b) if b.size else np.zeros(1) for b in bufs] + [arrays[w] for w in step.writes]
        scratch = np.zeros(step.kernel.scratch + 64, np.uint8)
        starts = [b.ctypes.data + n for b, n in zip(bufs, step.offsets_of(len(bufs)), strict=True)]
        table = (ctypes.c_void_p * (len(bufs) + 1))(*starts, -(-scratch.ctypes.data // 64) * 64)
        for task in reversed(range(step.kernel.tasks)):
            status = getattr(self.library, f"run_{number}")(table, ctypes.c_int64(task), ctypes.c_int64(task + 1))
            assert status == 0


def _value(v: Value, arrays: dict[Value, np.ndarray]) -> np.ndarray:
    if v.instruction.opcode == "constant":
        literal = v.instruction.attrs["literal"]
        for i in v.index:
            literal = literal.elements[i]
        return literal.array
    return arrays[v]


def _misaligned(v: Value) -> np.ndarray:
    raw = np.full(v.shape.nbytes + 1, 0xA5, np.uint8)
    return raw[1 : v.shape.nbytes + 1].view(v.shape.dtype.numpy_dtype).reshape(v.shape.dims)


def build(text: str, *flags: str, apart: bool = False) -> Compiled:
    """Compile the groups of a module's entry; `apart` splits row groups into their parts."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    module = HloModule.from_text(text)
    groups = fusion.fuse(module.entry)
    if apart:
        groups = [p for g in groups for p in g.parts or [g]]
    steps = [s for g in groups for s in emitters.emit(g)]
    parts = []
    for i, s in enumerate(steps):
        parts.append(s.kernel.text.replace("KERNEL", f"kernel_{i}"))
        parts.append(f"cyx_status run_{i}(void *const *b, int64_t s, int64_t e) {{ return kernel_{i}(b, s, e); }}\n")
    c = "".join(parts)
    c = prelude(c) + c
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "kernels.so")
        command = ["gcc", *FLAGS, *flags, "-o", str(out)]
        result = subprocess.run(command, input=c, text=True, capture_output=True, check=False)
        assert result.returncode == 0, result.stderr[:3000] + c[-6000:]
        return Compiled(module, groups, steps, c, ctypes.CDLL(str(out)))


def check(text: str, *inputs: np.ndarray, ulp: float = 0, near: float = 1e-3) -> Compiled:
    """Compile a module and compare it with the evaluator: bit for bit, or within `ulp` or `near` of the largest."""
    compiled = build(text)
    judge(compiled, *inputs, ulp=ulp, near=near)
    return compiled


def judge(compiled: Compiled, *inputs: np.ndarray, ulp: float = 0, near: float = 1e-3) -> None:
    """Compare compiled kernels with the evaluator."""
    wanted = flat(evaluate(compiled.module, list(inputs)))
    for got, want in zip(compiled(*inputs), wanted, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        compare(got, np.asarray(want), ulp, near)


def flat(value: object) -> list[np.ndarray]:
    """Return the leaves of a value."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in flat(part)]
    return [np.asarray(value)]


def compare(got: np.ndarray, want: np.ndarray, ulp: float, near: float) -> None:
    """Check that two arrays differ by no more than the tolerance."""
    got, want = (x.astype(np.float32) if x.dtype.kind == "V" or x.dtype.name == "bfloat16" else x for x in (got, want))
    close = (got == want) | ((got != got) & (want != want))
    if ulp and want.dtype.kind in "fc":
        eps = 2.0**-7 if got.dtype != want.dtype else np.finfo(want.dtype).eps
        with np.errstate(all="ignore"):
            x, y = got.astype(np.complex128), want.astype(np.complex128)
            finite = np.abs(y[np.isfinite(y)])
            close |= np.abs(x - y) <= ulp * eps * np.maximum(np.abs(y), near * finite.max(initial=0))
    assert close.all(), (np.argwhere(~close)[:5], got[~close][:5], want[~close][:5])
