"""Fingerprints: 128 bits that identify the computation of a program.

Two programs with the same fingerprint differ at most in names, metadata, shardings and the order of independent
instructions are written. The number depends on nothing else, neither on the process nor on the hash seed, so that
caches on disk may use it as their key.
"""

from __future__ import annotations

from typing import Any

from cyxla.hashing import blake2b
from cyxla.types import Literal, Shape
from cyxla.xla.hlo import ops
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule, computations_post_order
from cyxla.xla.hlo.opcode import OPCODES

# Extras that may change the result; the others are annotations.
HASHED_EXTRAS = ("backend_config", "frontend_attributes")
_ = ops  # registers every opcode
# Opcodes with attributes whose repr is incomplete: literals, and shapes with layouts.
LOSSY_REPR = frozenset(
    r.name for r in OPCODES.values() if any(a.kind in ("literal", "shape", "shapes") for a in r.attrs)
)


def fingerprint(module: HloModule) -> str:
    """Hash the computation of a module, and the layouts of its arguments and results.

    Computations that the entry does not reach are ignored.

    Returns
    -------
    str
        32 hex digits.
    """
    shapes: dict[Shape, str] = {}
    digests: dict[Computation, str] = {}
    for comp in module.post_order():
        digests[comp] = _digest(_lines(comp, digests, shapes))
    return _digest([digests[module.entry], *_config(module)])


def fingerprint_computation(comp: Computation, known: dict[Computation, str] | None = None) -> str:
    """Hash one computation with all that it calls.

    Parameters
    ----------
    comp : Computation
        Computation to hash.
    known : dict of Computation to str, optional
        Known fingerprints, to which those of `comp` and of all that it calls are added.

    Returns
    -------
    str
        32 hex digits.
    """
    shapes: dict[Shape, str] = {}
    digests = {} if known is None else known
    for c in computations_post_order(comp):
        if c not in digests:
            digests[c] = _digest(_lines(c, digests, shapes))
    return digests[comp]


def _digest(lines: list[str]) -> str:
    return blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _lines(comp: Computation, digests: dict[Computation, str], shapes: dict[Shape, str]) -> list[str]:
    """Return one line for each instruction, with operands as line numbers."""
    order = comp.post_order()
    number = {ins: str(i) for i, ins in enumerate(order)}
    lines = []
    for ins in order:
        shape = shapes.get(ins.shape)
        if shape is None:
            shape = shapes[ins.shape] = ins.shape.to_text()
        line = f"{ins.opcode} {shape} {','.join([number[o] for o in ins.operands])}"
        if ins.attrs:
            values = tuple(ins.attrs.values())
            line += _canonical(values) if ins.opcode in LOSSY_REPR else repr(values)
        if ins.called or ins.control_predecessors or not ins.extras.keys().isdisjoint(HASHED_EXTRAS):
            line += _calls_and_extras(ins, number, digests)
        lines.append(line)
    lines.append(f"root {number[comp.root]}")
    return lines


def _calls_and_extras(ins: Instruction, number: dict[Instruction, str], digests: dict[Computation, str]) -> str:
    after = ",".join(sorted(number[p] for p in ins.control_predecessors))
    extras = ";".join(f"{k}={_canonical(ins.extras[k])}" for k in HASHED_EXTRAS if k in ins.extras)
    return f" calls {','.join([digests[c] for c in ins.called])} after {after} {extras}"


def _canonical(value: Any) -> str:
    """Return the text of an attribute value, the same in every process."""
    if isinstance(value, Literal):
        return value.digest().hex()
    if isinstance(value, Shape):
        return value.to_text()
    if isinstance(value, tuple):
        return "(" + ",".join(map(_canonical, value)) + ")"
    return repr(value)


def _config(module: HloModule) -> list[str]:
    config, entry = module.config, module.entry
    if config.entry_layout is not None:
        parameters, result = config.entry_layout
    else:
        parameters, result = tuple(p.shape for p in entry.parameters), entry.root.shape
    counts = f"{config.replica_count} replicas {config.num_partitions} partitions"
    aliases = (tuple(sorted(config.input_output_alias)), tuple(sorted(config.buffer_donor)))
    return [*(p.to_text() for p in parameters), result.to_text(), counts, _canonical(aliases)]
