"""convolution, channels last: for each place of the result, rows of accumulators along its features.

The window's places and the input features are added in their order, whatever the threads. What the window finds
outside the input, or between its elements where it is spread out, adds nothing and is skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from cyxla.xla.cpu import cost, scalar, sums
from cyxla.xla.cpu.emit_loop import memory_type
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import Kernel, Step, Value
from cyxla.xla.cpu.own_kernel import KernelWriter, describe, dotted, strides
from cyxla.xla.cpu.toolchain import VECTOR_BITS, isa_level
from cyxla.xla.cpu.values import resolve
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.expand_convolution import channels_last

CHAIN = 512  # more products than this are added up in parts
_MAC_NS = {True: 0.03, False: 0.15}  # in vector registers, or not


def _check(ins: Instruction) -> str | None:
    if ins.attrs["dim_labels"] != channels_last(ins.shape.rank - 2):
        return "its dimensions are not in the order that kernels take"
    types = [ins.shape.dtype, *(o.shape.dtype for o in ins.operands)]
    return None if sums.supports(types) else f"no product of {' and '.join(t.text for t in types[1:])} to {types[0]}"


@dataclass(frozen=True)
class _Sizes:
    """The numbers of a convolution."""

    batch: int  # images of the result
    features_in: int  # of the input
    depth: int  # input features that one result sums over
    features: int  # of the result
    groups: int
    by_batch: bool  # groups are of images, not of input features

    @staticmethod
    def of(ins: Instruction) -> _Sizes:
        x, w = (o.shape for o in ins.operands)
        by_batch = ins.attrs["batch_group_count"] > 1
        groups = max(ins.attrs["batch_group_count"], ins.attrs["feature_group_count"])
        return _Sizes(ins.shape.dims[0], x.dims[-1], w.dims[-2], w.dims[-1], groups, by_batch)

    @property
    def group_features(self) -> int:
        """Features of the result in one group."""
        return self.features // self.groups

    @property
    def is_depthwise(self) -> bool:
        """Whether each feature of the result has its own feature of the input."""
        return not self.by_batch and self.depth == 1 and self.group_features == 1


@emits("convolution", check=_check)
def convolution(ins: Instruction) -> Step:
    """The kernel of one convolution; a place of the result, with all its features, is a unit."""
    reads = [resolve(o) for o in ins.operands]
    dtype, window, n = ins.shape.dtype, ins.attrs["window"], _Sizes.of(ins)
    space = ins.shape.dims[1:-1]
    units = n.batch * prod(space)
    is_float = dtype.is_float and not dtype.bits < 32
    ns = ins.shape.size * prod(w.size for w in window) * n.depth * _MAC_NS[is_float]
    tasks = cost.tasks(ns, max(1, units))
    vector_bytes = VECTOR_BITS.get(isa_level(), 128) // 8
    c = KernelWriter(reads, [Value(ins)])
    c.lines(sums.FUSED.splitlines())
    if is_float:
        c.lines(sums.VectorSums.types(dtype, vector_bytes // dtype.itemsize))
    types = [memory_type(v.shape.dtype) for v in (*reads, Value(ins))]
    arguments = f"const {types[0]} *p0, const {types[1]} *p1, {types[2]} *r0, int64_t u"
    with c.block(f"static CYX_FUSED void KERNEL_place({arguments})"):
        c.line("CYX_FUSE")
        c.unravel("u", ["n", *(f"s{d}" for d in range(len(space)))], [n.batch, *space])
        width = n.features if n.is_depthwise else n.group_features
        with c.loops(["g"], [1 if n.is_depthwise else n.groups]):
            for first, pieces, row in sums.cut(width, dtype, [o.shape.dtype for o in ins.operands], vector_bytes):
                with c.block(f"for (int64_t f = {first}; f < {first + pieces * row.columns}; f += {row.columns})"):
                    row.define(c)
                    _sum(c, ins, window, n, row)
                    row.store(c, f"r0 + u * {n.features} + g * {n.group_features} + f")
    with c.kernel(max(units, 1), tasks, describe("convolution", ins.shape)):
        c.line("KERNEL_place(p0, p1, r0, u);")
    return Step(Kernel(c.text(), tasks, ns, 0, "convolution"), tuple(reads), (Value(ins),))


def _sum(c: KernelWriter, ins: Instruction, window: Any, n: _Sizes, row: sums.Sums) -> None:
    """Everything under the window at one place."""
    rank = range(len(window))
    outer, inner = rank[:1], rank[1:]
    with c.loops([f"w{d}" for d in outer], [window[d].size for d in outer]):
        if prod(w.size for w in window) * n.depth > CHAIN:
            row.settle(c)
        with c.loops([f"w{d}" for d in inner], [window[d].size for d in inner]):
            _place(c, ins, window, n, row)


def _place(c: KernelWriter, ins: Instruction, window: Any, n: _Sizes, row: sums.Sums) -> None:
    """What one place of the window adds."""
    x, w = (o.shape for o in ins.operands)
    x_steps, w_steps = strides(x.dims), strides(w.dims)
    for d, dim in enumerate(window):
        place = f"s{d} * {dim.stride} + w{d} * {dim.window_dilation} - ({dim.padding_low})"
        c.line(f"const int64_t e{d} = {place};")
        if dim.base_dilation != 1:
            c.line(f"if (e{d} < 0 || e{d} % {dim.base_dilation}) continue;")
        c.line(f"const int64_t i{d} = e{d} / {dim.base_dilation};")
        c.line(f"if (e{d} < 0 || i{d} >= {x.dims[d + 1]}) continue;")
    turned = [f"({dim.size - 1} - w{d})" if dim.window_reversal else f"w{d}" for d, dim in enumerate(window)]
    image = f"(g * {n.batch} + n)" if n.by_batch else "n"
    channel = "f" if n.is_depthwise else "0" if n.by_batch else f"g * {n.depth}"
    at = dotted([image, *(f"i{d}" for d in range(len(window)))], x_steps[:-1])
    kernel_at = f"{dotted(turned, w_steps[:-2])} + g * {n.group_features} + f"
    c.line(f"const {memory_type(x.dtype)} *const x = p0 + {at} + {channel};")
    c.line(f"const {memory_type(w.dtype)} *const w = p1 + {kernel_at};")
    if n.is_depthwise:
        _depthwise(c, ins, row)
        return
    with c.block(f"for (int64_t k = 0; k < {n.depth}; ++k)"):
        c.line(f"const {scalar.register_type(x.dtype)} a = {scalar.load(x.dtype, 'x[k]')};")
        row.add(c, "a", f"w + k * {n.features}", 1)
        if n.depth > CHAIN:
            with c.block(f"if (k % {CHAIN} == {CHAIN - 1})"):
                row.settle(c)


def _depthwise(c: KernelWriter, ins: Instruction, row: sums.Sums) -> None:
    """Products of neighbours: each feature has its own factor."""
    if isinstance(row, sums.VectorSums):
        c.line(" ".join(
            f"sum{v} += *(const KERNEL_u *)(x + {v * row.lanes}) * *(const KERNEL_u *)(w + {v * row.lanes});"
            for v in range(row.vectors)
        ))  # fmt: skip
        return
    assert isinstance(row, sums.PlainSums)
    dtype = ins.operands[0].shape.dtype
    row.add_pairs(c, dtype, "x", "w")
