"""Custom calls of registered C functions, which get the arrays in place and a constant description of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from cyxla.include_dir import get_include
from cyxla.types import Shape
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.calls.host_functions import C_CALL
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.values import leaves, own_leaves
from cyxla.xla.evaluator.targets.c_calls import attributes_of, opaque_of
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.typed_attributes import Entry, entries

# ns of a call, and per byte of its arrays; assumed, since the function is the user's. A call is always one task: the
# estimate only decides whether its program releases the GIL and is watched for signals.
CALL_NS, BYTE_NS = 1_000.0, 0.5


def c_call(ins: Instruction) -> Step:
    """Emit a call."""
    reads, writes = [v for o in ins.operands for v in leaves(o)], own_leaves(ins)
    # Shapes of the operands, not of the values: an operand may be a reshaped view of its value.
    inputs, outputs = [s for o in ins.operands for s in _arrays_of(o.shape)], _arrays_of(ins.shape)
    count = len(reads) + len(writes)
    opaque, rows = opaque_of(ins), entries(attributes_of(ins))
    text = f"""\
{_header()}{instantiate("calls/call_status.h", CALL_PREFIX="KERNEL")}
static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {{
  (void)begin; (void)end;
{_arrays("input", inputs)}
{_arrays("output", outputs)}{_attributes("attrs", rows)}
  char message[CYXLA_MESSAGE_BYTES] = {{0}};
  const cyxla_call_info info = {{CYXLA_CALL_VERSION, sizeof(cyxla_call_info), {len(inputs)}, {len(outputs)},
    input, output, {_quoted(opaque)}, {len(opaque)}, message, attrs, {len(rows)}}};
  const void *in[] = {{{_pointers(0, len(reads))}}};
  void *out[] = {{{_pointers(len(reads), count)}}};
  ((cyxla_call)bufs[{count}])(out, in, &info);
  return KERNEL_status(bufs[{count + 1}], {_quoted(ins.attrs["custom_call_target"][:80].encode())}, message);
}}
"""
    cost = CALL_NS + BYTE_NS * sum(s.nbytes for s in (*inputs, *outputs))
    name = C_CALL + ins.attrs["custom_call_target"]
    return Step(
        Kernel(text, 1, cost, 0, KernelKind.C_CALL), tuple(reads), tuple(writes), functions=(name,), context=True
    )


def _arrays_of(shape: Shape) -> list[Shape]:
    return [leaf.static for leaf in shape.leaves() if leaf.is_array]


@cache
def _header() -> str:
    return (Path(get_include()) / "cyxla" / "call.h").read_text()


def _pointers(start: int, stop: int) -> str:
    return ", ".join(f"bufs[{k}]" for k in range(start, stop)) or "0"


def _arrays(name: str, shapes: Sequence[Shape]) -> str:
    """Return C constants that describe arrays."""
    dims = [
        f"  static const int64_t {name}_dims{k}[] = {{{', '.join(map(str, s.dims)) or '0'}}};"
        for k, s in enumerate(shapes)
    ]
    rows = [f"{{{s.dtype.value}, {s.rank}, {name}_dims{k}, {s.size}}}" for k, s in enumerate(shapes)]
    return "\n".join([*dims, f"  static const cyxla_array {name}[] = {{{', '.join(rows) or '{0, 0, 0, 0}'}}};"])


def _attributes(name: str, rows: Sequence[Entry]) -> str:
    """Return C constants for attributes; all of their text and numbers are bytes of tables."""
    lines, cells = [], []
    for k, row in enumerate(rows):
        data = f"{name}_{k}"
        if isinstance(row.data, list):
            lines.append(_attributes(data, row.data))
        else:
            numbers = ", ".join(map(str, row.data)) + (", 0" if row.data else "0")
            lines.append(f"  static const _Alignas(16) unsigned char {data}[] = {{{numbers}}};")
        cells.append(f"{{{_quoted(row.name)}, {row.kind}, {row.dtype}, {row.size}, {data}}}")
    table = ", ".join(cells) or "{0, 0, 0, 0, 0}"
    return "\n".join(["", *lines, f"  static const cyxla_call_attr {name}[] = {{{table}}};"])


def _quoted(text: bytes) -> str:
    return '"' + "".join(f"\\{b:03o}" for b in text) + '"'
