"""``cyxla trace-lowering``: the HLO instructions that each XLA kernel emits."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def import ArgDef, OpDef
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.graph.graph_constructor import load_graph
from cyxla.errors import InvalidArgumentError, OpError
from cyxla.tf2xla.types import data_type, element_type
from cyxla.tf2xla.xla_compiler import XlaCompiler, XlaCompilerOptions
from cyxla.tf2xla.xla_op_kernel import XlaOpKernel
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry
from cyxla.tools.verbs.convert import lowered
from cyxla.xla.hlo import HloModule, Instruction, parse_shape
from cyxla.xla.hlo.text.printer import instruction_to_text, names_of

_GRAPH_SUFFIXES = (".pb", ".pbtxt", ".txt")
_INTERFACE = ("_Arg", "_Retval")
_METADATA = re.compile(r", metadata=\{[^}]*\}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("subject", metavar="OP|GRAPH", help="name of an op, or a .pb or .pbtxt file or a SavedModel")
    parser.add_argument(
        "--input", action="append", default=[], metavar="SHAPE|JSON",
        help="input of the op, in order: a shape such as f32[2,3], or a constant such as [1, 0]; shapes of a list are "
        "separated by ';' (default: f32[2,2] for each input)",
    )  # fmt: skip
    parser.add_argument(
        "--attr", action="append", default=[], metavar="NAME=JSON", help="attribute of the op, such as transpose_a=true"
    )
    parser.add_argument("--feed", action="append", default=[], help="NAME=FILE.npy or NAME=VALUE: an input of a graph")
    parser.add_argument(
        "--fetch", action="append", default=[], help="tensor of a graph to compute (default: all unused outputs)"
    )


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    if os.path.exists(args.subject) or args.subject.endswith(_GRAPH_SUFFIXES):
        _refuse(args, "input", "attr", subject="a graph")
        graph = load_graph(args.subject)
    else:
        _refuse(args, "feed", "fetch", subject="an op")
        graph = graph_of_op(args.subject, args.input, args.attr)
    print(*trace(graph, args.feed, args.fetch), sep="\n")
    return 0


def _refuse(args: argparse.Namespace, *options: str, subject: str) -> None:
    for option in options:
        if getattr(args, option):
            raise InvalidArgumentError(f"{args.subject} is {subject}, which has no --{option}")


# --- one op ---


def graph_of_op(name: str, inputs: Sequence[str], attrs: Sequence[str]) -> Graph:
    """Return a graph of one node with placeholders and constants as inputs.

    Raises
    ------
    NotFoundError
        The op is not declared.
    InvalidArgumentError
        An input or an attribute is malformed, or does not fit the declaration.
    """
    op_def = OpRegistry.global_().look_up(name).op_def
    args = op_def.input_arg
    if inputs and len(inputs) != len(args):
        names = ", ".join(arg.name for arg in args) or "none"
        raise InvalidArgumentError(
            f"{name} has {len(args)} inputs, got {len(inputs)} --input", hint=f"they are {names}"
        )
    constants = XlaOpRegistry.global_().compile_time_constant_input_names(name)
    graph = Graph()
    with graph.as_default():
        values = [
            _input(graph, text, arg, f"{name} takes {arg.name}")
            for text, arg in zip(inputs or [_default(op_def, a, constants) for a in args], args, strict=True)
        ]
        apply_op(name, *values, name=name, **dict(map(_attribute, attrs)))
    return graph


def _default(op_def: OpDef, arg: ArgDef, constants: Sequence[str]) -> str:
    if arg.is_list or arg.name in constants:
        kind = "a list" if arg.is_list else "a compile-time constant"
        raise InvalidArgumentError(
            f"input {arg.name} of {op_def.name} is {kind}", hint="give each input by --input, such as '[1, 0]'"
        )
    allowed = next((a.allowed for a in op_def.attr if a.name == arg.type_attr), None)
    dtype = arg.type if not arg.type_attr else DataType.DT_FLOAT
    if allowed and dtype not in allowed:
        dtype = next(t for t in allowed if isinstance(t, DataType))
    return f"{element_type(dtype)}[2,2]"


def _input(graph: Graph, text: str, arg: ArgDef, where: str) -> Any:
    if arg.is_list:
        return [_one_input(graph, part.strip(), f"{arg.name}_{k}", where) for k, part in enumerate(text.split(";"))]
    return _one_input(graph, text, arg.name, where)


def _one_input(graph: Graph, text: str, name: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        shape = parse_shape(text)
        return graph.placeholder(data_type(shape.dtype), shape.dims, name)
    except OpError as error:
        raise InvalidArgumentError(
            f"{where}: {text!r} is neither a shape nor JSON: {error.message}", hint="such as f32[2,3] or '[1, 0]'"
        ) from error


def _attribute(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidArgumentError(f"--attr {text}: no '='", hint="write NAME=VALUE, such as transpose_a=true")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value  # such as a type


# --- trace ---


class TracingCompiler(XlaCompiler):
    """Compiler that records the kernels of the nodes that it compiles.

    Attributes
    ----------
    kernel_names : dict of (str, str) to str
        Module and name of the kernel by op and name of the node.
    """

    def __init__(self, options: XlaCompilerOptions) -> None:
        super().__init__(options)
        self.kernel_names: dict[tuple[str, str], str] = {}

    def kernel(self, node: Node) -> XlaOpKernel:
        """Return the XLA kernel of a node; see `XlaCompiler.kernel`."""
        kernel = super().kernel(node)
        self.kernel_names[node.op, node.name] = _qualified(kernel.implementation)
        return kernel


def trace(graph: Graph, feeds: list[str], fetches: list[str]) -> list[str]:
    """Return lines with each node and its kernel, followed by the instructions that it emitted."""
    compilers: list[TracingCompiler] = []

    def make(options: XlaCompilerOptions) -> XlaCompiler:
        compilers.append(TracingCompiler(options))
        return compilers[-1]

    module = lowered(graph, feeds, fetches, make)
    kernel_names = compilers[0].kernel_names
    names, emitted = names_of(module), emitted_by(module)
    lines = []
    for key in dict.fromkeys([*emitted, *(k for k in kernel_names if k[0] not in _INTERFACE)]):
        lines.append(_head(*key, kernel_names.get(key, "")))
        lines += [f"  {_METADATA.sub('', instruction_to_text(ins, names))}" for ins in emitted.get(key, ())]
    return lines


def _qualified(function: Any) -> str:
    function = inspect.unwrap(function)
    while isinstance(function, partial):
        function = inspect.unwrap(function.func)
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _head(op: str, node: str, kernel: str) -> str:
    if not node:
        return op
    return f"{node} = {op} by {kernel}" if kernel else f"{node} = {op}"


def emitted_by(module: HloModule) -> dict[tuple[str, str], list[Instruction]]:
    """Return the instructions of a module by op and name of their node, callers before callees.

    Instructions of no node have a description in place of the op, and an empty name.
    """
    emitted: dict[tuple[str, str], list[Instruction]] = {}
    for computation in reversed(module.post_order()):
        for ins in computation.post_order():
            fields = dict(ins.metadata)
            op = fields.get(
                "op_type", "arguments and results" if computation is module.entry else "called computations"
            )
            emitted.setdefault((str(op), str(fields.get("op_name", ""))), []).append(ins)
    return emitted
