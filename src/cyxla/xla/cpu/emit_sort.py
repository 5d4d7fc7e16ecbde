"""sort: each row into a block of records, a stable merge sort there by the comparator, and back."""

from __future__ import annotations

from math import log2, prod

from cyxla.types import ElementType
from cyxla.xla.cpu import cost, emit_scalar, scalar
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import Kernel, Step
from cyxla.xla.cpu.own_kernel import KernelWriter, describe, strides
from cyxla.xla.cpu.values import own_leaves, resolve
from cyxla.xla.hlo import Instruction

RUN = 12  # this many records are sorted by insertion
SCRATCH_BYTES = 8 << 20  # for the records of all tasks; at least eight tasks if there are rows enough
_COMPARE_NS = 3.0


def _check(ins: Instruction) -> str | None:
    return emit_scalar.reason(ins.called[0])


@emits("sort", check=_check)
def sort(ins: Instruction) -> Step:
    """The kernel of one sort; a row is a unit of work."""
    shape = ins.operands[0].shape
    (axis,) = ins.attrs["dimensions"]
    length, rows = shape.dims[axis], prod(d for i, d in enumerate(shape.dims) if i != axis)
    reads, writes = [resolve(o) for o in ins.operands], own_leaves(ins)
    types = [o.shape.dtype for o in ins.operands]
    ns = rows * length * (log2(max(length, 2)) * _COMPARE_NS + len(types))
    record = _record_bytes(types)
    tasks = min(cost.tasks(ns, max(1, rows)), max(8, SCRATCH_BYTES // max(1, 2 * record * length)))
    c = KernelWriter(reads, writes)
    _record(c, types)
    _less(c, ins, types)
    _merge_sort(c)
    step = strides(shape.dims)[axis]
    with c.kernel(rows, tasks, describe("sort", shape)):
        c.line(f"const int64_t at = u / {step} * {step * length} + u % {step};")
        # The scratch of a task: its records twice.
        c.line(
            f"KERNEL_t *const x = (KERNEL_t *)({c.scratch()} + begin * {2 * record * length}), *const y = x + {length};"
        )
        with c.block(f"for (int64_t k = 0; k < {length}; ++k)"):
            for n in range(len(types)):
                c.line(f"x[k].f{n} = p{n}[at + k * {step}];")
        c.line(f"const KERNEL_t *const sorted = KERNEL_sort(x, y, {length});")
        with c.block(f"for (int64_t k = 0; k < {length}; ++k)"):
            for n in range(len(types)):
                c.line(f"r{n}[at + k * {step}] = sorted[k].f{n};")
    kernel = Kernel(c.text(), tasks, ns, tasks * 2 * record * length, "sort")
    return Step(kernel, tuple(reads), tuple(writes), in_place=tuple((n, n) for n in range(len(reads))))


def _record_bytes(types: list[ElementType]) -> int:
    """At least the size of a record: its fields, each as wide as the widest."""
    return max(t.itemsize for t in types) * len(types)


def _record(c: KernelWriter, types: list[ElementType]) -> None:
    fields = " ".join(f"{scalar.storage_type(t)} f{n};" for n, t in enumerate(types))
    c.line(f"typedef struct {{ {fields} }} KERNEL_t;")


def _less(c: KernelWriter, ins: Instruction, types: list[ElementType]) -> None:
    with c.block("static inline int KERNEL_less(const KERNEL_t *x, const KERNEL_t *y)"):
        sides = [c.element(t, f"{side}->f{n}") for n, t in enumerate(types) for side in ("x", "y")]
        (result,) = emit_scalar.inline(ins.called[0], sides, c)
        c.line(f"return {result} != 0;")


def _merge_sort(c: KernelWriter) -> None:
    """Sort n records in x with y as long; the result is one of the two. Equal records keep their order."""
    c.lines(
        f"""\
static void KERNEL_insert(KERNEL_t *x, int64_t n) {{
  for (int64_t i = 1; i < n; ++i) {{
    const KERNEL_t v = x[i];
    int64_t j = i;
    for (; j > 0 && KERNEL_less(&v, &x[j - 1]); --j) x[j] = x[j - 1];
    x[j] = v;
  }}
}}
typedef const KERNEL_t *KERNEL_p;
static void KERNEL_merge(KERNEL_p a, KERNEL_p a_end, KERNEL_p b, KERNEL_p b_end, KERNEL_t *to) {{
  while (a < a_end && b < b_end) *to++ = KERNEL_less(b, a) ? *b++ : *a++;
  while (a < a_end) *to++ = *a++;
  while (b < b_end) *to++ = *b++;
}}
static KERNEL_t *KERNEL_sort(KERNEL_t *x, KERNEL_t *y, int64_t n) {{
  for (int64_t i = 0; i < n; i += {RUN}) KERNEL_insert(x + i, n - i < {RUN} ? n - i : {RUN});
  for (int64_t width = {RUN}; width < n; width *= 2) {{
    for (int64_t i = 0; i < n; i += 2 * width) {{
      const int64_t middle = n - i < width ? n : i + width, end = n - i < 2 * width ? n : i + 2 * width;
      KERNEL_merge(x + i, x + middle, x + middle, x + end, y + i);
    }}
    KERNEL_t *const t = x; x = y; y = t;
  }}
  return x;
}}""".splitlines()
    )
