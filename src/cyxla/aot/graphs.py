"""Programs of TensorFlow graphs and of signatures of SavedModels."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from cyxla.aot.config import Config, Feed, Fetch, TensorId, Variable
from cyxla.aot.modules import bound, of_module
from cyxla.aot.program import Program
from cyxla.autojit.jit_session import Session, load_saved_model
from cyxla.autojit.runtime.compiled_graph import CompiledGraph
from cyxla.autojit.runtime.compiled_runner import HANDLE_OPS, split_handles
from cyxla.core.framework.checkpoint.tensor_bundle import BundleReader
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.variable import Var
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.saved_model import SavedModel
from cyxla.core.runtime.subgraph import executable_graph, needed_nodes, shallow_copy
from cyxla.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from cyxla.tf2xla.argument import Argument, ArgumentKind, CompilationResult
from cyxla.tf2xla.xla_compiler import CompileOptions as GraphOptions
from cyxla.tf2xla.xla_resource import ResourceKind
from cyxla.xla.service import CompileOptions

Array = np.ndarray[Any, Any]

_REFERENCES: Final = frozenset({"Variable", "VariableV2"})
_PLACEHOLDERS: Final = frozenset({"Placeholder", "PlaceholderV2"})


@dataclass(frozen=True)
class _Input:
    """Argument of the compiled graph: a feed, or a variable with the node that holds it."""

    name: str
    argument: Argument
    node: Node | None = None
    readonly: bool = False


def of_graph(
    graph: Graph,
    config: Config,
    *,
    variables: Mapping[str, Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    options: CompileOptions | None = None,
) -> Program:
    """Return the program of a graph.

    Parameters
    ----------
    graph : Graph
        Graph, which is not changed.
    config : Config
        Arguments, results and variables.
    variables : mapping of str to array, optional
        Values of variables, by name in the config, or name of the node or of the resource. They become part of the
        library.
    checkpoint : path, optional
        Prefix of a checkpoint with values of further variables.
    options : CompileOptions, optional
        Options of the compilation.

    Raises
    ------
    InvalidArgumentError
        The config does not fit the graph, a placeholder is not fed, or a node cannot be compiled; the message names it.
    NotFoundError
        A tensor or variable does not exist.
    """
    config.check()
    compiled, inputs = _prepare(graph, config)
    result = compiled.lower([i.argument for i in inputs], GraphOptions(resolve_constants=False))
    program = _named(result, inputs, config, options or CompileOptions())
    reader = None if checkpoint is None else BundleReader(checkpoint)
    return _with_values(program, result, inputs, dict(variables or {}), reader)


def of_signature(
    path: str | os.PathLike[str],
    signature: str = "serving_default",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    options: CompileOptions | None = None,
) -> Program:
    """Return the program of a signature of a SavedModel, with its variables.

    Parameters
    ----------
    path : path
        Folder of the model.
    signature : str
        Name of the signature.
    shapes : mapping of str to sizes, optional
        Sizes of inputs whose shapes the model leaves open.
    options : CompileOptions, optional
        Options of the compilation.

    Raises
    ------
    NotFoundError
        The model or the signature does not exist.
    InvalidArgumentError
        The shape of an input is open, and is not given.
    """
    model = load_saved_model(path)
    if signature not in model.signatures:
        raise NotFoundError(
            f"the model has no signature {signature!r}", hint=f"its signatures are {', '.join(model.signatures)}"
        )
    config = signature_config(model, signature, shapes or {})
    return of_graph(model.graph, config, variables=_variable_values(model.session), options=options)


def signature_config(model: SavedModel, name: str, shapes: Mapping[str, Sequence[int]]) -> Config:
    """Return the config of a signature."""
    signature = model.signatures[name]
    for key in shapes:
        if key not in signature.inputs:
            raise InvalidArgumentError(f"signature {name!r} has no input {key!r}")
    feeds = [
        Feed(TensorId.of(tensor), _sizes(model.graph.tensor(tensor), shapes.get(key)), key)
        for key, tensor in signature.inputs.items()
    ]
    return Config(feeds, [Fetch(TensorId.of(tensor), key) for key, tensor in signature.outputs.items()])


def _sizes(tensor: Tensor, given: Sequence[int] | None) -> tuple[int, ...] | None:
    if given is not None:
        return tuple(given)
    dims = tensor.shape.dims
    return None if dims is None or any(d is None for d in dims) else tuple(d for d in dims if d is not None)


def _variable_values(session: Session) -> dict[str, Any]:
    """Return the values of a session's variables by name."""
    resources = session.engine.resource_manager
    return {name: r.read() for _, _, name, r in resources if isinstance(r, Var) and r.value is not None}


# --- arguments --------------------------------------------------------------------------------------------------------


def _prepare(graph: Graph, config: Config) -> tuple[CompiledGraph, list[_Input]]:
    """Return the part of a graph that computes the results, ready to be compiled, and its arguments."""
    feeds = [_tensor(graph, f.id, "feed") for f in config.feed]
    fetches = [_tensor(graph, f.id, "fetch") for f in config.fetch]
    for entries, tensors in ((config.feed, feeds), (config.fetch, fetches)):
        for entry, tensor in zip(entries, tensors, strict=True):
            _check_type(entry, tensor)
    placed = Session(graph, jit="on").engine.place(shallow_copy(graph))
    feeds, fetches = ([placed.tensor(t.name) for t in tensors] for tensors in (feeds, fetches))
    needed = needed_nodes(fetches, [], feeds)
    _check_fed(needed, [t.node for t in feeds])
    references = [n for n in placed.nodes.values() if n in needed and n.op in _REFERENCES]
    part = executable_graph(placed, [*feeds, *(n.outputs[0] for n in references)], fetches)
    handles = [n for n in part.nodes.values() if n.op in HANDLE_OPS]
    _, cluster = split_handles(part)
    compiled = CompiledGraph("graph", cluster, "cpu")
    inputs = [_feed(f, t) for f, t in zip(config.feed, feeds, strict=True)]
    declared = {v.node_name: v for v in config.variable}
    for node_name in declared:
        graph.node(node_name)  # or an error
    inputs += [_variable(n, declared.get(n.name), is_handle=n.op in HANDLE_OPS) for n in (*references, *handles)]
    for k in sorted(compiled.constants):
        raise InvalidArgumentError(
            f"the value of the argument {inputs[k].name} has to be known while the graph is compiled",
            hint="make it a constant of the graph",
        )
    return compiled, inputs


def _tensor(graph: Graph, id: TensorId | str, kind: str) -> Tensor:
    try:
        return graph.tensor(str(TensorId.of(id)))
    except NotFoundError as error:
        raise NotFoundError(f"{kind} {id}: {error.message}", hint=error.hint) from None


def _check_type(entry: Any, tensor: Tensor) -> None:
    """Check the type and shape of a feed or fetch in the config against those of the graph."""
    if entry.type is not None and entry.type != tensor.dtype.base:
        raise InvalidArgumentError(
            f"{tensor.name} is of the type {tensor.dtype.base.name}, but {entry.type.name} in the config"
        )
    if entry.shape is not None and not TensorShape(entry.shape).is_compatible_with(tensor.shape):
        raise InvalidArgumentError(f"{tensor.name} has the shape {tensor.shape}, but {list(entry.shape)} in the config")


def _check_fed(needed: set[Node], fed: Sequence[Node]) -> None:
    missing = sorted(n.name for n in needed if n.op in _PLACEHOLDERS and n not in fed)
    if missing:
        raise InvalidArgumentError(
            f"the results depend on the placeholder {missing[0]}, which the config does not feed", node=missing[0]
        )


def _feed(feed: Feed, tensor: Tensor) -> _Input:
    assert feed.shape is not None
    argument = Argument(ArgumentKind.PARAMETER, tensor.dtype.base, TensorShape(feed.shape))
    return _Input(feed.name or _default_name(TensorId.of(feed.id)), argument)


def _default_name(id: TensorId) -> str:
    return id.node_name if id.output_index == 0 else str(id)


def _variable(node: Node, declared: Variable | None, *, is_handle: bool) -> _Input:
    """Return the argument of a variable."""
    if is_handle and node.op == "_VarHandlesOp":
        raise UnimplementedError("variables of a _VarHandlesOp", where=node.name)
    declared = declared or Variable(node.name)
    dtype, shape = node.attr("dtype"), node.attr("shape")
    if declared.type is not None and declared.type != dtype:
        raise InvalidArgumentError(f"the variable {node.name} is of the type {dtype.name}, not {declared.type.name}")
    if declared.shape is not None:
        if not shape.is_compatible_with(TensorShape(declared.shape)):
            raise InvalidArgumentError(f"the variable {node.name} has the shape {shape}, not {list(declared.shape)}")
        shape = TensorShape(declared.shape)
    if not shape.is_fully_defined:
        raise InvalidArgumentError(f"the variable {node.name} has no shape", hint="the config gives it")
    name = declared.name or node.name
    if is_handle:
        argument = Argument(
            ArgumentKind.RESOURCE, dtype, shape, resource_kind=ResourceKind.VARIABLE, initialized=True, name=name
        )
    else:
        argument = Argument(ArgumentKind.PARAMETER, dtype, shape)
    return _Input(name, argument, node, declared.readonly)


# --- the program ------------------------------------------------------------------------------------------------------


def _named(result: CompilationResult, inputs: Sequence[_Input], config: Config, options: CompileOptions) -> Program:
    """Return the program with the names of the config."""
    program = of_module(result.computation.module(), options)
    positions = {index: k for k, index in enumerate(result.input_mapping)}
    arguments = [
        replace(a, name=inputs[index].name) for a, index in zip(program.arguments, result.input_mapping, strict=True)
    ]
    names = [""] * len(program.results)
    for fetch, output in zip(config.fetch, result.outputs, strict=True):
        if output.tensor_list is not None or output.input_index >= 0:
            raise UnimplementedError(f"the fetch {fetch.id} is no array")
        first, *sizes = output.tuple_indices
        names[first] = fetch.name or _default_name(TensorId.of(fetch.id))
        for d, k in zip(output.dynamic, sizes, strict=True):
            names[k] = f"size {d} of {names[first]}"
    if result.size_checks:
        names[-1] = "sizes that differ"  # zeros if all agree; see `size_checks`
    written = {}
    for update in result.resource_updates:
        variable = inputs[update.input_index]
        if variable.readonly:
            raise InvalidArgumentError(f"the variable {variable.name} is read-only, but the graph assigns it")
        written[positions[update.input_index]] = update.tuple_indices[0]
        names[update.tuple_indices[0]] = f"new {variable.name}"
    return replace(
        program,
        arguments=tuple(arguments),
        results=tuple([replace(r, name=n) for r, n in zip(program.results, names, strict=True)]),
        parameters=tuple([a.name for a in arguments]),
        written=written,
        variables=frozenset(positions[k] for k, i in enumerate(inputs) if i.node is not None and k in positions),
    )


def _with_values(
    program: Program,
    result: CompilationResult,
    inputs: Sequence[_Input],
    given: Mapping[str, Any],
    checkpoint: BundleReader | None,
) -> Program:
    """Return a program that holds the values of variables, as far as they are known and not assigned."""
    values: dict[int | str, Any] = {}
    for number, index in enumerate(result.input_mapping):
        value = _value(inputs[index], given, checkpoint)
        if value is not None and number not in program.written:
            values[number] = value
    return bound(program, values) if values else program


def _value(variable: _Input, given: Mapping[str, Any], checkpoint: BundleReader | None) -> Any:
    if variable.node is None:
        return None
    shared: str = variable.node.attr("shared_name")
    names = list(dict.fromkeys(n for n in (variable.name, variable.node.name, shared) if n))
    sources: list[tuple[Any, Callable[[str], Any]]] = [(given, given.__getitem__)]
    sources += [] if checkpoint is None else [(checkpoint, checkpoint.read)]
    return next((read(n) for source, read in sources for n in names if n in source), None)
