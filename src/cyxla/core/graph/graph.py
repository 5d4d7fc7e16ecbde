"""Graphs: nodes that apply ops, the tensors between them, and a library of functions.

Nodes are added only by `Graph.create_op` (through `apply_op`) and `Graph.add_node`, which check a node against its
declaration and infer the shapes of its outputs. ``graph.nodes`` holds them in the order of their addition.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.apply import apply_op, data_type_of, natural_type, to_array, to_attr_value, use_sink
from cyxla.core.framework.attr_value import AttrValue, TensorValue
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.device_base import DeviceName
from cyxla.core.framework.environment.file_access import UNLIMITED
from cyxla.core.framework.function import FunctionLibraryDefinition
from cyxla.core.framework.node_def import STACK_TRACE_ATTR, NodeDef, arg_types
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.core.graph.algorithm import copy_graph
from cyxla.core.graph.graph_export import to_graph_def
from cyxla.core.graph.operators import Operators
from cyxla.core.graph.shape_refiner import infer_node_shapes
from cyxla.core.graph.validate import check_input, check_inputs, check_node_name, complete_attrs, split_tensor_name
from cyxla.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, OpError

if TYPE_CHECKING:
    from cyxla.core.framework.declarations.op_def import ArgDef, OpDef
    from cyxla.core.framework.declarations.op_def_builder import OpRegistrationData

GRAPH_DEF_VERSION = 2474  # written as the producer, and compared with the consumer versions of a graph that is read
_COLOCATION = "loc:@"


@dataclass
class Versions:
    """The version of the format that a graph was written with, and the versions that may read it."""

    producer: int = GRAPH_DEF_VERSION
    min_consumer: int = 0
    bad_consumers: tuple[int, ...] = ()


class Tensor(Operators):
    """An output of a node."""

    __slots__ = ("__weakref__", "index", "node")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index

    @property
    def op(self) -> Node:
        """The node that computes the tensor."""
        return self.node

    @property
    def graph(self) -> Graph:
        """The graph that holds the tensor."""
        return self.node.graph

    @property
    def name(self) -> str:
        """The name of the node with the index of the output: ``"dense/add:0"``."""
        return f"{self.node.name}:{self.index}"

    @property
    def dtype(self) -> DataType:
        """The type of the elements."""
        return self.node.output_types[self.index]

    @property
    def shape(self) -> TensorShape:
        """The shape, as far as it is known."""
        return self.node.output_shapes[self.index]

    def __repr__(self) -> str:
        return f"<Tensor {self.name} {self.dtype}{self.shape}>"


class Node:
    """An application of an op, created by its graph."""

    __slots__ = (
        "__weakref__", "assigned_device", "attrs", "control_inputs", "debug", "device", "graph", "id", "input_types",
        "inputs", "name", "output_handles", "output_shapes", "output_types", "outputs", "registration",
    )  # fmt: skip

    def __init__(
        self, graph: Graph, number: int, name: str, registration: OpRegistrationData, attrs: dict[str, AttrValue]
    ) -> None:
        self.graph = graph
        self.id = number
        self.name = name
        self.registration = registration
        self.attrs = attrs
        self.device = ""
        self.assigned_device = ""
        self.debug: tuple[tuple[str, ...], tuple[str, ...]] = (
            (),
            (),
        )  # names of the original nodes and of their functions
        self.inputs: list[Tensor] = []
        self.control_inputs: list[Node] = []
        self.input_types = _flat_types(registration.op_def.input_arg, attrs)
        self.output_types = _flat_types(registration.op_def.output_arg, attrs)
        self.output_shapes: list[TensorShape] = []
        self.output_handles: list[Any] = []
        self.outputs = [Tensor(self, i) for i in range(len(self.output_types))]

    @property
    def op_def(self) -> OpDef:
        """The declaration of the op."""
        return self.registration.op_def

    @property
    def op(self) -> str:
        """The name of the op or function."""
        return self.registration.op_def.name

    def attr(self, name: str) -> Any:
        """Return the value of an attribute, in the representation of `cyxla.core.framework.attr_value`.

        Raises
        ------
        NotFoundError
            The node does not have the attribute.
        """
        try:
            return self.attrs[name].value
        except KeyError:
            raise NotFoundError(f"node '{self.name}' ({self.op}) has no attribute '{name}'", node=self.name) from None

    def has_attr(self, name: str) -> bool:
        """Return True if the node has an attribute, declared or not."""
        return name in self.attrs

    @property
    def is_stateful(self) -> bool:
        """True if the op has side effects or depends on state."""
        return self.registration.op_def.is_stateful

    @property
    def colocation(self) -> list[str]:
        """The names of the nodes or groups with which the node is colocated."""
        attr = self.attrs.get("_class")
        names = attr.value if attr is not None and attr.kind == "list(string)" else ()
        return [name.removeprefix(_COLOCATION) for name in names if name.startswith(_COLOCATION)]

    @property
    def node_def(self) -> NodeDef:
        """The node as a NodeDef."""
        inputs = [t.node.name if t.index == 0 else t.name for t in self.inputs]
        controls = [f"^{node.name}" for node in self.control_inputs]
        device = self.assigned_device or self.device
        return NodeDef(self.name, self.op, inputs + controls, device, dict(self.attrs), *self.debug)

    def input_arg(self, name: str) -> list[Tensor]:
        """Return the inputs that belong to an argument of the declaration."""
        start, stop = _range_of(self.op_def.input_arg, self.attrs, name)
        return self.inputs[start:stop]

    def output_arg(self, name: str) -> list[Tensor]:
        """Return the outputs that belong to an argument of the declaration."""
        start, stop = _range_of(self.op_def.output_arg, self.attrs, name)
        return self.outputs[start:stop]

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.op}({', '.join(t.name for t in self.inputs)})>"


def _flat_types(args: Sequence[ArgDef], attrs: Mapping[str, AttrValue]) -> list[DataType]:
    return [dtype for arg in args for dtype in arg_types(arg, attrs)]


def _range_of(args: Sequence[ArgDef], attrs: Mapping[str, AttrValue], name: str) -> tuple[int, int]:
    start = 0
    for arg in args:
        stop = start + len(arg_types(arg, attrs))
        if arg.name == name:
            return start, stop
        start = stop
    raise NotFoundError(f"there is no argument '{name}'", hint=f"they are {', '.join(a.name for a in args)}")


@dataclass
class _Scope:
    """Properties of new nodes, set by the enclosing ``with`` statements."""

    prefix: str = ""
    device: str = ""
    controls: list[Node] = field(default_factory=list)
    colocation: tuple[str, ...] = ()


class Graph:
    """A graph of nodes and a library of functions.

    Attributes
    ----------
    file_access : FileAccess
        Files that the nodes may access; limited if the graph was loaded.
    records_stack_traces : bool
        True to annotate new nodes with the lines that create them, which kernels can read.

    Parameters
    ----------
    registry : optional
        Registry of declarations: any object with ``look_up``; the global registry by default.

    Examples
    --------
    >>> graph = Graph()
    >>> with graph.as_default():
    ...     x = graph.placeholder("float", [2, 3], name="x")
    ...     y = -x
    >>> y
    <Tensor Neg:0 float[2,3]>
    """

    def __init__(self, registry: Any = None) -> None:
        self.nodes: dict[str, Node] = {}
        self.versions = Versions()
        self.library = FunctionLibraryDefinition(registry or OpRegistry.global_())
        self.file_access = UNLIMITED
        self.records_stack_traces = False
        self._next_id = 0
        self._names: dict[str, int] = {}  # number of requests for each name, in lower case
        self._scope = _Scope()

    # building ---------------------------------------------------------------------------------------------------
    def as_default(self) -> AbstractContextManager[None]:
        """Make `apply_op` add nodes to this graph in a ``with`` statement."""
        return use_sink(self)

    def look_up(self, op_name: str) -> OpRegistrationData:
        """Return the declaration of an op, or the signature of a function of the library."""
        return self.library.look_up(op_name)

    def create_op(
        self, registration: OpRegistrationData, inputs: list[Any], attrs: dict[str, AttrValue], name: str | None
    ) -> tuple[Node, Sequence[Tensor]]:
        """Add a node with complete attributes, under a unique name and in the current scopes."""
        scope = self._scope
        base_name = name or registration.op_def.name.replace(">", "_")
        node = Node(self, self._next_id, self.unique_name(f"{scope.prefix}{base_name}"), registration, attrs)
        for tensor in inputs:
            if tensor.node.graph is not self:
                raise InvalidArgumentError(f"{tensor.name} belongs to another graph", node=node.name, op=node.op)
        node.inputs = inputs
        node.control_inputs = [c for c in scope.controls if c is not node]
        node.device = scope.device
        if scope.colocation and "_class" not in attrs:
            attrs["_class"] = AttrValue("list(string)", scope.colocation)
        if self.records_stack_traces:
            attrs[STACK_TRACE_ATTR] = AttrValue("list(string)", _stack_trace())
        self._insert(node)
        return node, node.outputs

    def add_node(
        self,
        node_def: NodeDef,
        inputs: Sequence[Tensor | None] | None = None,
        control_inputs: Sequence[Node] | None = None,
        *,
        registration: OpRegistrationData | None = None,
    ) -> Node:
        """Add a node under its own name.

        Parameters
        ----------
        node_def : NodeDef
            Node to add; missing attributes get the defaults of the declaration.
        inputs, control_inputs : optional
            Inputs of the node; by default the names in ``node_def.input`` are looked up. An input that closes a loop is
            None, and set later with `set_input`.
        registration : OpRegistrationData, optional
            Declaration of the op, if the caller has looked it up already.

        Raises
        ------
        InvalidArgumentError
            The node violates its declaration, or an input is missing or has another type.
        """
        if node_def.name in self.nodes:
            raise AlreadyExistsError(f"node '{node_def.name}' already exists", node=node_def.name, op=node_def.op)
        registration = registration or self.look_up(node_def.op)
        attrs = complete_attrs(node_def, registration.op_def)
        node = Node(self, self._next_id, node_def.name, registration, attrs)
        node.device = node_def.device
        node.debug = (node_def.debug_names, node_def.debug_functions)
        if inputs is None:
            data, controls = self._resolve(node_def)
            inputs, control_inputs = data, controls if control_inputs is None else control_inputs
        node.inputs = list(inputs)  # type: ignore[arg-type]
        node.control_inputs = list(control_inputs or ())
        check_inputs(node)
        self._names.setdefault(node.name.lower(), 1)
        self._insert(node)
        return node

    def _insert(self, node: Node) -> None:
        try:
            infer_node_shapes(node)
        except OpError as error:
            error.node, error.op = error.node or node.name, error.op or node.op
            raise
        self.nodes[node.name] = node
        self._next_id += 1

    def _resolve(self, node_def: NodeDef) -> tuple[list[Tensor], list[Node]]:
        names = [name for name in node_def.input if not name.startswith("^")]
        controls = [self.node(name[1:]) for name in node_def.input if name.startswith("^")]
        return [self.tensor(name) for name in names], controls

    def set_input(self, node: Node, position: int, tensor: Tensor) -> None:
        """Replace an input of a node.

        Raises
        ------
        InvalidArgumentError
            The tensor has another type than the input.
        """
        check_input(node, position, tensor)
        node.inputs[position] = tensor

    def update_node(
        self,
        node: Node,
        attrs: Mapping[str, AttrValue],
        inputs: Sequence[Tensor] | None = None,
        *,
        op_name: str | None = None,
    ) -> None:
        """Change a node in place; it may get further outputs, and existing outputs keep their types.

        Parameters
        ----------
        node : Node
            Node to change; its existing outputs keep their indices and shapes.
        attrs : mapping
            New or changed attributes.
        inputs : sequence of Tensor, optional
            New inputs, if they change.
        op_name : str, optional
            New op, if it changes; `attrs` are then all of its declared attributes.
        """
        if op_name is not None:
            node.registration = self.look_up(op_name)
            node.attrs = {key: value for key, value in node.attrs.items() if key.startswith("_")}
        node.attrs.update(attrs)
        node.input_types = _flat_types(node.op_def.input_arg, node.attrs)
        node.output_types = _flat_types(node.op_def.output_arg, node.attrs)
        node.inputs = node.inputs if inputs is None else list(inputs)
        check_inputs(node)
        shapes = list(node.output_shapes)
        node.outputs += [Tensor(node, i) for i in range(len(node.outputs), len(node.output_types))]
        infer_node_shapes(node)
        node.output_shapes[: len(shapes)] = shapes

    def remove_node(self, node: Node) -> None:
        """Remove a node; the caller must change its remaining users."""
        if self.nodes.pop(node.name, None) is not node:
            raise NotFoundError(f"node '{node.name}' is not in this graph", node=node.name)

    def shallow_node(self, other: Node) -> Node:
        """Add a copy of another graph's node, without inputs, which the caller must set."""
        node = Node(self, self._next_id, other.name, other.registration, dict(other.attrs))
        node.device, node.assigned_device, node.debug = other.device, other.assigned_device, other.debug
        node.output_shapes, node.output_handles = list(other.output_shapes), list(other.output_handles)
        self.nodes[node.name] = node
        self._names.setdefault(node.name.lower(), 1)
        self._next_id += 1
        return node

    # names ------------------------------------------------------------------------------------------------------
    def unique_name(self, name: str) -> str:
        """Return the name, with a suffix ``_1``, ``_2``, … if it is used; names are compared without case."""
        check_node_name(name)
        key = name.lower()
        count = self._names.get(key)
        self._names[key] = (count or 0) + 1
        if count is None and name not in self.nodes:
            return name
        count = count or 1
        while (candidate := f"{name}_{count}").lower() in self._names or candidate in self.nodes:
            count += 1
        self._names[key] = count + 1
        self._names[candidate.lower()] = 1
        return candidate

    def node(self, name: str) -> Node:
        """Return a node by name.

        Raises
        ------
        NotFoundError
            The graph has no such node.
        """
        try:
            return self.nodes[name]
        except KeyError:
            raise NotFoundError(f"there is no node '{name}' in the graph", node=name) from None

    def tensor(self, name: str) -> Tensor:
        """Return a tensor by name: ``"a:0"``, or ``"a"`` for the first output.

        Raises
        ------
        NotFoundError
            The graph has no such node.
        InvalidArgumentError
            The node has fewer outputs.
        """
        node_name, index = split_tensor_name(name)
        node = self.node(node_name)
        if index >= len(node.outputs):
            raise InvalidArgumentError(
                f"'{name}': node '{node_name}' ({node.op}) has {len(node.outputs)} outputs", node=node_name, op=node.op
            )
        return node.outputs[index]

    def __contains__(self, name: object) -> bool:
        return name in self.nodes

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes and {len(self.library)} functions>"

    # scopes -----------------------------------------------------------------------------------------------------
    @contextmanager
    def _scoped(self, **changes: Any) -> Iterator[None]:
        old = self._scope
        self._scope = _Scope(**{**vars(old), **changes})
        try:
            yield
        finally:
            self._scope = old

    @contextmanager
    def name_scope(self, name: str) -> Iterator[str]:
        """Prefix the names of nodes added in the body, and yield the unique prefix."""
        prefix = self.unique_name(f"{self._scope.prefix}{name}") + "/"
        with self._scoped(prefix=prefix):
            yield prefix

    def device(self, name: str) -> AbstractContextManager[None]:
        """Request a device for nodes added in the body; parts of an inner request override those of an outer one."""
        outer = DeviceName.parse(self._scope.device)
        return self._scoped(device=str(outer.override(DeviceName.parse(name))) if name else "")

    def control_dependencies(self, nodes: Sequence[Node | Tensor]) -> AbstractContextManager[None]:
        """Add control inputs to nodes added in the body."""
        extra = [item.node if isinstance(item, Tensor) else item for item in nodes]
        return self._scoped(controls=[*self._scope.controls, *(n for n in extra if n not in self._scope.controls)])

    def colocate_with(self, node: Node | Tensor) -> AbstractContextManager[None]:
        """Colocate nodes added in the body with another node."""
        other = node.node if isinstance(node, Tensor) else node
        groups = other.colocation or [other.name]
        return self._scoped(colocation=tuple(f"{_COLOCATION}{group}" for group in groups))

    # shorthands -------------------------------------------------------------------------------------------------
    def constant(self, value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
        """Add a constant.

        Parameters
        ----------
        value : array_like
            Value of the constant; Python numbers become int32 or float32.
        dtype : optional
            Type of the tensor.
        name : str, optional
            Name of the node.
        """
        data_type = as_data_type(dtype) if dtype is not None else data_type_of(value) or natural_type(value)
        value_attr = AttrValue("tensor", TensorValue(data_type, to_array(value, data_type, "a constant")))
        with self.as_default():
            result: Tensor = apply_op("Const", value=value_attr, dtype=data_type, name=name)
        return result

    def placeholder(self, dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
        """Add a placeholder for a fed value; its rank is unknown if `shape` is None."""
        with self.as_default():
            shape_attr = to_attr_value("shape", TensorShape() if shape is None else shape)
            result: Tensor = apply_op("Placeholder", dtype=dtype, shape=shape_attr, name=name)
            return result

    # whole graphs -----------------------------------------------------------------------------------------------
    def to_graph_def(self, *, strip_defaults: bool = False) -> Any:
        """Return the graph as a GraphDef message.

        Parameters
        ----------
        strip_defaults : bool
            True to omit attributes that have the default value of their declaration.
        """
        return to_graph_def(self, strip_defaults=strip_defaults)

    def copy(self) -> Graph:
        """Return a copy of the graph; functions and constants are shared."""
        return copy_graph(self)


def _stack_trace() -> tuple[str, ...]:
    """Return the lines that create a node as ``file:line in function``, those of this package left out."""
    package = __file__.rpartition("/core/")[0]
    frames = traceback.extract_stack()
    return tuple(f"{f.filename}:{f.lineno} in {f.name}" for f in frames if not f.filename.startswith(package))
