"""Select-and-scatter with any window: one loop finds the element that each window selects and combines there."""

from __future__ import annotations

from math import prod

from cyxla.types import Shape
from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe, linear_index, strides
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import Window
from cyxla.xla.service.refusal import Refusal

_SELECT_NS = 1.5  # ns of an element of a window; assumed, since it only decides about the GIL and signals
_FILL_NS = 0.1  # ns of an element that is set to the initial value; assumed


def _check(ins: Instruction) -> str | None:
    return scalar_computation.unsupported_reason(ins.called[0]) or scalar_computation.unsupported_reason(ins.called[1])


@emits("select-and-scatter", check=_check)
def select_and_scatter(ins: Instruction) -> Step:
    """Emit a kernel of one task, since windows may overlap; elements outside the operand are never selected."""
    operand, source, _ = (o.shape for o in ins.operands)
    dtype, window = operand.dtype, ins.attrs["window"]
    reads = [resolve(o) for o in ins.operands]
    ns = source.size * prod(w.size for w in window) * _SELECT_NS + operand.size * _FILL_NS
    c = KernelWriter(reads, [Value(ins)])
    rank = range(operand.rank)
    source_counters, window_counters, coordinates = ([f"{x}{d}" for d in rank] for x in "swi")
    with c.kernel(1, 1, describe("select-and-scatter", operand)):
        c.line(f"for (int64_t k = 0; k < {operand.size}; ++k) r0[k] = p2[0];")
        with c.loops(source_counters, source.dims):
            c.line("int64_t found = -1;")
            best = c.variable(dtype, f"cyx_{dtype}_of(0, 0)" if dtype.is_complex else "0")
            with c.loops(window_counters, [w.size for w in window]):
                _write_coordinates(c, operand, window)
                c.line(f"const int64_t here = {linear_index(coordinates, strides(operand.dims))};")
                candidate = c.element(dtype, "p0[here]")
                with c.block("if (found >= 0)"):
                    (keep,) = scalar_computation.inline(ins.called[0], [best, candidate], c)
                    c.line(f"if ({keep}) continue;")
                c.line(f"found = here; {best} = {candidate};")
            with c.block("if (found >= 0)"):
                old = c.element(dtype, "r0[found]")
                new = c.element(dtype, f"p1[{linear_index(source_counters, strides(source.dims))}]")
                (result,) = scalar_computation.inline(ins.called[1], [old, new], c)
                c.line(f"r0[found] = {scalar.store(dtype, result)};")
    refusal = Refusal.of("vectorisation", ins, "its windows are searched one after the other, since they may overlap")
    kernel = Kernel(c.text(), 1, ns, 0, KernelKind.SELECT_AND_SCATTER, refusals=(refusal,))
    return Step(kernel, tuple(reads), (Value(ins),))


def _write_coordinates(c: KernelWriter, operand: Shape, window: Window) -> None:
    """Write the coordinates in the operand of an element of a window, and skip those outside the operand."""
    for d, w in enumerate(window):
        offset = f"w{d}" if not w.window_reversal else f"{w.size - 1} - w{d}"
        c.line(f"const int64_t e{d} = s{d} * {w.stride} + ({offset}) * {w.window_dilation} - {w.padding_low};")
        if w.base_dilation != 1:
            c.line(f"if (e{d} < 0 || e{d} % {w.base_dilation}) continue;")
        c.line(f"const int64_t i{d} = e{d} / {w.base_dilation};")
        c.line(f"if (e{d} < 0 || i{d} >= {operand.dims[d]}) continue;")
