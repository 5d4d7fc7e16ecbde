"""``cyxla op``: the declaration of an op."""

from __future__ import annotations

import argparse

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def import OpDef, summarize_op_def
from cyxla.core.framework.declarations.op_def_proto import op_def_to_proto
from cyxla.core.framework.protos.messages import to_text

_FLAGS = ("is_stateful", "is_commutative", "is_aggregate", "allows_uninitialized_input")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", help="name of an op, such as MatMul")
    parser.add_argument("--pbtxt", action="store_true", help="print an OpDef message in text format")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    registration = OpRegistry.global_().look_up(args.name)
    if args.pbtxt:
        print(to_text(op_def_to_proto(registration.op_def)), end="")
        return 0
    print(describe(registration.op_def))
    print(f"shape function: {'yes' if registration.shape_inference_fn is not None else 'no'}")
    return 0


def describe(op_def: OpDef) -> str:
    """Return a declaration in readable form."""
    lines = [summarize_op_def(op_def)]
    lines += [f"summary: {op_def.summary}"] if op_def.summary else []
    lines += [f"description: {op_def.description}"] if op_def.description else []
    flags = [flag for flag in _FLAGS if getattr(op_def, flag)]
    lines += [f"flags: {', '.join(flags)}"] if flags else []
    if op_def.deprecation is not None:
        lines.append(f"deprecated since graph version {op_def.deprecation.version}: {op_def.deprecation.explanation}")
    lines += [f"  {arg.name}: {arg.description}" for arg in (*op_def.input_arg, *op_def.output_arg) if arg.description]
    return "\n".join(lines)
