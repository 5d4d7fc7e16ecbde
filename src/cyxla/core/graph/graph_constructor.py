"""Import of GraphDefs, with all checks and error codes of TensorFlow's graph constructor."""

from __future__ import annotations

import heapq
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.declarations.op_def import check_op_deprecation
from cyxla.core.framework.declarations.op_def_proto import op_def_from_proto
from cyxla.core.framework.environment.file_access import NO_FILES, UNLIMITED, FileAccess
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.protos import messages as proto
from cyxla.core.graph.function_proto import library_from_proto
from cyxla.core.graph.graph import GRAPH_DEF_VERSION, Graph, Versions
from cyxla.core.graph.meta_graph import read_meta_graph
from cyxla.core.graph.validate import check_node_name, drop_new_defaults, drop_undeclared
from cyxla.errors import InvalidArgumentError, NotFoundError, OpError, UnknownAttributeWarning
from cyxla.gc_pause import fewer_collections

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Node, Tensor

_TEXT = re.compile(rb"\A\s*(#|\w+\s*[{:<])")
_LOOPS = ("NextIteration", "RefNextIteration")
_MERGES = ("Merge", "RefMerge")
_CONTROL = -1  # output number of a control edge
_MAX_PATH = 200  # characters of a path in a message
_MAX_LISTED = 5  # attributes in a warning


def load_graph(source: str | bytes | os.PathLike[str], *, allow_file_access: bool = False) -> Graph:
    """Read a graph from a file, bytes or a SavedModel.

    Parameters
    ----------
    source : path or bytes
        GraphDef, binary or text; or the folder of a SavedModel, whose serving graph is read without the values of its
        variables, which `load_saved_model` restores.
    allow_file_access : bool
        True to let the graph's nodes access any file; otherwise only files in the folder of a SavedModel.

    Raises
    ------
    NotFoundError
        The file does not exist, or an op is not declared.
    InvalidArgumentError
        The file is not a GraphDef, or the graph is invalid.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return import_graph_def(bytes(source), allow_file_access=allow_file_access)
    path = Path(source)
    if os.path.isdir(path):
        return import_meta_graph(read_meta_graph(path), path, allow_file_access=allow_file_access)
    return import_graph_def(_read(path), allow_file_access=allow_file_access)


def read_graph_def(path: str | os.PathLike[str]) -> Any:
    """Read the GraphDef message of a file or of a SavedModel, whose ops need not be declared.

    Raises
    ------
    NotFoundError
        The file does not exist.
    InvalidArgumentError, DataLossError
        The file is not a GraphDef.
    """
    return read_meta_graph(path).graph_def if os.path.isdir(path) else parse_graph_def(_read(Path(path)))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a zero byte
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NotFoundError(
            f"cannot read the graph '{str(path)[:_MAX_PATH]}': {reason}", hint="give the path of a file"
        ) from error


def import_meta_graph(meta_graph: Any, folder: Path, *, allow_file_access: bool = False) -> Graph:
    """Build the graph of a SavedModel, whose nodes may access the files in its folder, or any file."""
    producer_op_list = meta_graph.meta_info_def.stripped_op_list
    graph = import_graph_def(meta_graph.graph_def, producer_op_list=producer_op_list)
    graph.file_access = UNLIMITED if allow_file_access else FileAccess.inside(folder)
    return graph


def parse_graph_def(source: bytes | str) -> Any:
    """Parse a GraphDef message from its binary or text form."""
    if isinstance(source, str) or _TEXT.match(source):
        return proto.parse_text("GraphDef", source if isinstance(source, str) else source.decode("utf-8", "replace"))
    return proto.parse_binary("GraphDef", source)


def import_graph_def(
    source: Any, *, graph: Graph | None = None, producer_op_list: Any = None, allow_file_access: bool = False
) -> Graph:
    """Build a graph from a GraphDef.

    Parameters
    ----------
    source : bytes, str or GraphDef message
        GraphDef in binary or text form, or parsed.
    graph : Graph, optional
        Graph to which the nodes are added; a new graph by default.
    producer_op_list : OpList message, optional
        Declarations of the version that wrote the graph. Attributes that only it declares are dropped if they have
        their default value, and rejected otherwise. Attributes that are declared nowhere are ignored with a warning.
    allow_file_access : bool
        True to let the nodes access files; otherwise all nodes of the graph, including earlier ones, lose access.

    Raises
    ------
    InvalidArgumentError
        A name is duplicate or malformed, an input is missing, a control input precedes a data input, a cycle is not a
        loop, an attribute violates the declaration, or the version is not supported.
    NotFoundError
        An op is neither declared nor a function of the graph.
    UnimplementedError
        An op is no longer allowed in graphs of this version.
    """
    with fewer_collections():
        message = parse_graph_def(source) if isinstance(source, (bytes, str)) else source
        graph = Graph() if graph is None else graph
        graph.versions = _versions(message)
        library = library_from_proto(message.library, graph.library.default_registry)
        node_defs = [NodeDef.from_proto(node) for node in message.node]
        if producer_op_list is not None:
            producer_ops = {op.name: op_def_from_proto(op) for op in producer_op_list.op}
            for nodes in (node_defs, *(function.node_def for function in library)):
                drop_new_defaults(nodes, library, producer_ops)
        graph.library.update(library)
        if not allow_file_access:
            graph.file_access = NO_FILES
        import_nodes(graph, node_defs, check_colocation=True)
    return graph


def _versions(message: Any) -> Versions:
    """Return the versions of a graph, after a check that they are supported."""
    versions = message.versions
    producer = versions.producer if message.HasField("versions") else message.version
    if versions.min_consumer > GRAPH_DEF_VERSION:
        raise InvalidArgumentError(
            f"the graph (version {producer}) requires readers of version {versions.min_consumer} or newer; this is "
            f"one of version {GRAPH_DEF_VERSION}"
        )
    if GRAPH_DEF_VERSION in versions.bad_consumers:
        raise InvalidArgumentError(f"the graph forbids readers of version {GRAPH_DEF_VERSION}")
    if producer < 0:
        raise InvalidArgumentError(f"the graph's version {producer} is negative")
    return Versions(producer, versions.min_consumer, tuple(versions.bad_consumers))


def import_nodes(graph: Graph, node_defs: Sequence[NodeDef], *, check_colocation: bool = False) -> None:
    """Add nodes to a graph, given in any order.

    Colocation is not checked for nodes of a function, which may name nodes of the graph that it was outlined from.
    """
    _Importer(graph, node_defs).run(check_colocation=check_colocation)


class _Importer:
    """Adds nodes so that inputs precede their users; the edges that close loops are added last."""

    def __init__(self, graph: Graph, node_defs: Sequence[NodeDef]) -> None:
        self.graph = graph
        self.node_defs = node_defs
        self.index = self._index()
        self.edges = [self._edges(node_def) for node_def in node_defs]
        self.back_edges: list[tuple[Node, int, int, int]] = []
        self.ignored: list[tuple[NodeDef, str]] = []  # undeclared attributes

    def run(self, *, check_colocation: bool) -> None:
        for i in self._order():
            self._add(i)
        for node, position, source, output in self.back_edges:
            tensor = self._tensor(self.node_defs[source].name, output, node.name)
            self.graph.set_input(node, position, tensor)
        if check_colocation:
            self._check_colocation()
        if self.ignored:
            self._warn_ignored()

    def _warn_ignored(self) -> None:
        attrs_text = "; ".join(
            f"'{attr}' of node '{node.name}' ({node.op})" for node, attr in self.ignored[:_MAX_LISTED]
        )
        rest_text = f" and {len(self.ignored) - _MAX_LISTED} more" if len(self.ignored) > _MAX_LISTED else ""
        warnings.warn(
            f"undeclared attributes are ignored: {attrs_text}{rest_text}; the nodes may mean something else to "
            "the newer version that wrote the graph",
            UnknownAttributeWarning,
            stacklevel=6,  # of load_graph
        )

    def _index(self) -> dict[str, int]:
        index: dict[str, int] = {}
        for i, node_def in enumerate(self.node_defs):
            check_node_name(node_def.name)
            if node_def.name in index or node_def.name in self.graph.nodes:
                raise InvalidArgumentError(f"two nodes are named '{node_def.name}'", node=node_def.name, op=node_def.op)
            index[node_def.name] = i
        return index

    def _edges(self, node_def: NodeDef) -> list[tuple[int, int]]:
        """Return the sources of a node's inputs as (number of the node def, output index)."""
        edges: list[tuple[int, int]] = []
        for text in node_def.input:
            name, output = split_input(text, node_def)
            if output != _CONTROL and edges and edges[-1][1] == _CONTROL:
                raise InvalidArgumentError(
                    f"node '{node_def.name}': data input '{text}' comes after control input '{node_def.input[0]}'",
                    node=node_def.name,
                    op=node_def.op,
                    hint="control inputs come last",
                )
            source = self.index.get(name)
            if source is None:
                if name not in self.graph.nodes:
                    raise InvalidArgumentError(
                        f"node '{node_def.name}': its input '{text}' is not a node of the graph",
                        node=node_def.name,
                        op=node_def.op,
                    )
                source = ~self.graph.nodes[name].id
            edges.append((source, output))
        return edges

    def _is_back_edge(self, source: int, user: int) -> bool:
        return self.node_defs[user].op in _MERGES and source >= 0 and self.node_defs[source].op in _LOOPS

    def _order(self) -> Iterable[int]:
        """Return the numbers of the node defs, inputs before users, otherwise in the given order."""
        waits = [0] * len(self.edges)
        users: dict[int, list[int]] = {}
        in_order = True
        for user, edges in enumerate(self.edges):
            for source, _ in edges:
                if source < 0 or self._is_back_edge(source, user):
                    continue
                waits[user] += 1
                users.setdefault(source, []).append(user)
                in_order &= source < user
        return range(len(self.edges)) if in_order else self._sort_nodes(waits, users)

    def _sort_nodes(self, pending: list[int], users: dict[int, list[int]]) -> list[int]:
        ready = [i for i, count in enumerate(pending) if not count]
        order: list[int] = []
        while ready:
            i = heapq.heappop(ready)
            order.append(i)
            for user in users.get(i, ()):
                pending[user] -= 1
                if not pending[user]:
                    heapq.heappush(ready, user)
        if len(order) < len(pending):
            stuck = [self.node_defs[i].name for i, count in enumerate(pending) if count]
            raise InvalidArgumentError(
                f"{len(stuck)} nodes cannot be ordered: the graph has a cycle outside of its loops, among "
                f"{', '.join(repr(name) for name in stuck[:4])}",
                node=stuck[0],
            )
        return order

    def _add(self, i: int) -> None:
        node_def = self.node_defs[i]
        try:
            registration = self.graph.look_up(node_def.op)
            check_op_deprecation(registration.op_def, self.graph.versions.producer)
            self.ignored += [(node_def, attr) for attr in drop_undeclared(node_def, registration.op_def)]
            inputs: list[Tensor | None] = []
            controls: list[Node] = []
            back_edges: list[tuple[int, int, int]] = []
            for (source, output), text in zip(self.edges[i], node_def.input, strict=True):
                if output == _CONTROL:
                    controls.append(self.graph.nodes[text[1:]])
                elif self._is_back_edge(source, i):
                    back_edges.append((len(inputs), source, output))
                    inputs.append(None)
                else:
                    inputs.append(self._tensor(split_input(text, node_def)[0], output, node_def.name))
            node = self.graph.add_node(node_def, inputs, controls, registration=registration)
        except OpError as error:
            error.node, error.op = error.node or node_def.name, error.op or node_def.op
            error.where = error.where or f"node '{node_def.name}' ({node_def.op})"
            raise
        self.back_edges += [(node, *edge) for edge in back_edges]

    def _tensor(self, name: str, output: int, user: str) -> Tensor:
        outputs = self.graph.nodes[name].outputs
        if output >= len(outputs):
            raise InvalidArgumentError(
                f"node '{user}' takes output {output} of '{name}', which has {len(outputs)} outputs", node=user
            )
        return outputs[output]

    def _check_colocation(self) -> None:
        for node_def in self.node_defs:
            if "_class" not in node_def.attr:
                continue
            node = self.graph.nodes[node_def.name]
            for other in node.colocation:
                if other not in self.graph.nodes:
                    raise InvalidArgumentError(
                        f"node '{node.name}' is colocated with the unknown node '{other}'", node=node.name, op=node.op
                    )


def split_input(text: str, node_def: NodeDef) -> tuple[str, int]:
    """Return name and output index of a GraphDef input: ``"a"``, ``"a:1"``, or ``"^a"`` with the index -1."""
    if text.startswith("^"):
        return text[1:], _CONTROL
    name, colon, number = text.rpartition(":")
    if not colon:
        return text, 0
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise InvalidArgumentError(
            f"node '{node_def.name}': '{text}' is not an output of a node", node=node_def.name, op=node_def.op
        )
    return name, int(number)
