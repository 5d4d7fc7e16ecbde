"""Custom calls of registered C functions, with the arrays in place and a constant description of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from cyxla.include_dir import get_include
from cyxla.types import Shape
from cyxla.xla.cpu.calls.host_functions import C_CALL
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.values import leaves, own_leaves
from cyxla.xla.evaluator.targets.c_calls import opaque_of
from cyxla.xla.hlo import Instruction

CALL_NS = 1_000.0  # of a call beside what its arrays cost
BYTE_NS = 0.5


def c_call(ins: Instruction) -> Step:
    """The kernel of one call."""
    reads, writes = [v for o in ins.operands for v in leaves(o)], own_leaves(ins)
    # Not the shapes of the values, which may be those of what the operands are other views of.
    inputs, outputs = [s for o in ins.operands for s in _arrays_of(o.shape)], _arrays_of(ins.shape)
    at = len(reads) + len(writes)
    opaque = opaque_of(ins)
    text = f"""\
{_header()}
static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {{
  (void)begin; (void)end;
{_arrays("input", inputs)}
{_arrays("output", outputs)}
  char message[CYXLA_MESSAGE_BYTES] = {{0}};
  const cyxla_call_info info = {{CYXLA_CALL_VERSION, sizeof(cyxla_call_info), {len(inputs)}, {len(outputs)},
    input, output, {_quoted(opaque)}, {len(opaque)}, message}};
  const void *in[] = {{{_pointers(0, len(reads))}}};
  void *out[] = {{{_pointers(len(reads), at)}}};
  ((cyxla_call)bufs[{at}])(out, in, &info);
  if (!message[0]) return CYX_OK;
  const char prefix[] = {_quoted((ins.attrs["custom_call_target"][:80] + ": ").encode())};
  char *text = ((const cyx_ctx *)bufs[{at + 1}])->message;
  int n = 0;
  for (; prefix[n]; ++n) text[n] = prefix[n];
  for (int k = 0; n < CYX_MESSAGE_BYTES - 1 && k < CYXLA_MESSAGE_BYTES && message[k]; ++k) text[n++] = message[k];
  text[n] = 0;
  return CYX_INVALID_ARGUMENT;
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
    """Constants that describe arrays."""
    dims = [
        f"  static const int64_t {name}_dims{k}[] = {{{', '.join(map(str, s.dims)) or '0'}}};"
        for k, s in enumerate(shapes)
    ]
    rows = [f"{{{s.dtype.value}, {s.rank}, {name}_dims{k}, {s.size}}}" for k, s in enumerate(shapes)]
    return "\n".join([*dims, f"  static const cyxla_array {name}[] = {{{', '.join(rows) or '{0, 0, 0, 0}'}}};"])


def _quoted(text: bytes) -> str:
    return '"' + "".join(f"\\{b:03o}" for b in text) + '"'
