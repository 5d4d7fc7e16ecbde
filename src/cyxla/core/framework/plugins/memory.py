"""Values of Python as C reads them: arrays, strings, shapes, attributes, nodes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.attr_value import AttrValue, NameAttrList, TensorValue
from cyxla.core.framework.declarations.op_def import OpDef
from cyxla.core.framework.node_def import arg_types, name_ranges
from cyxla.core.framework.plugins.interface import Arg, Attr, Handle, Node, Shape, String, Tensor, dims_of
from cyxla.core.framework.resource_mgr import ResourceHandle
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import UnimplementedError

Array = np.ndarray[Any, Any]
_KINDS = {name: k for k, name in enumerate(("", "string", "int", "float", "bool", "type", "shape", "tensor", "func"))}


class Memory:
    """Owner of memory that C reads; it must be kept as long as C may do so."""

    __slots__ = ("_owned",)

    def __init__(self) -> None:
        self._owned: list[Any] = []

    def keep(self, value: Any) -> Any:
        """Keep an object alive, and return it."""
        self._owned.append(value)
        return value

    def array_of(self, kind: Any, values: Sequence[Any]) -> int:
        """Return the address of a C array with a copy of values, not null even if there are none."""
        array = (kind * max(1, len(values)))(*values)
        return ctypes.addressof(self.keep(array))

    def shape(self, dims: Iterable[int | None] | None) -> Shape:
        """Return a shape; None is an unknown size or rank."""
        if dims is None:
            return Shape(None, -1)
        sizes = [-1 if d is None else d for d in dims]
        return Shape(self.array_of(ctypes.c_int64, sizes), len(sizes))

    def string(self, value: str | bytes) -> String:
        """Return a string."""
        data = self.keep(_as_bytes(value))
        return String(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value, len(data))

    def strings(self, values: Iterable[str | bytes]) -> int:
        """Return the address of an array of strings, which share one buffer."""
        encoded = [_as_bytes(value) for value in values]
        buffer = np.frombuffer(self.keep(b"\0".join(encoded) + b"\0"), np.uint8)
        table = self.keep(np.zeros((max(1, len(encoded)), 2), np.int64))
        sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
        table[: len(encoded), 0] = buffer.ctypes.data + np.cumsum(sizes + 1) - (sizes + 1)
        table[: len(encoded), 1] = sizes
        return int(table.ctypes.data)

    def tensor(self, array: Any, dtype: DataType, name: str) -> Tensor:
        """Return a tensor.

        Raises
        ------
        UnimplementedError
            The elements are variants.
        """
        array = np.asarray(array)
        if array.dtype.hasobject:
            data = self._objects(array, dtype.base, name)
        elif array.flags.c_contiguous and array.flags.aligned:
            data = self.keep(array).ctypes.data
        else:
            data = self.keep(np.require(array, requirements=["C", "A"])).ctypes.data
        return Tensor(data, self.array_of(ctypes.c_int64, array.shape), array.size, array.ndim, int(dtype.base))

    def _objects(self, array: Array, dtype: DataType, name: str) -> int:
        if dtype == DataType.DT_STRING:
            return self.strings(array.ravel().tolist())
        if dtype == DataType.DT_RESOURCE:
            return self.array_of(Handle, [self._handle(item) for item in array.ravel().tolist()])
        raise UnimplementedError(f"{name} is {dtype}, which kernels in C do not support")

    def _handle(self, handle: ResourceHandle) -> Handle:
        texts = (handle.device, handle.container, handle.name, handle.type_name)
        return Handle(*(self.keep(_as_bytes(text)) for text in texts))

    def attr(self, name: str, value: AttrValue) -> Attr:
        """Return an attribute."""
        kind, is_list = value.kind, value.kind.startswith("list")
        items = value.value if is_list else (value.value,)
        kind = kind[5:-1] if is_list else kind
        return Attr(name.encode(), self._values(kind, items), len(items), _KINDS.get(kind, 0), is_list)

    def _values(self, kind: str, items: Sequence[Any]) -> int:
        if kind in ("int", "bool", "type"):
            return self.array_of(ctypes.c_int64, [int(item) for item in items])
        if kind == "float":
            return self.array_of(ctypes.c_double, items)
        if kind == "shape":
            return self.array_of(Shape, [self.shape(item.dims) for item in items])
        if kind == "tensor":
            return self.array_of(Tensor, [self._constant(item) for item in items])
        return self.strings([item.name if isinstance(item, NameAttrList) else item for item in items])

    def _constant(self, value: TensorValue) -> Tensor:
        return self.tensor(value.array, value.dtype, "the tensor of an attribute")


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)


class NodeMemory:
    """A ``cyxla_node``.

    Parameters
    ----------
    op_def : OpDef
        Declaration of the op.
    attrs : mapping of AttrValue
        Attributes of the node; missing ones take their defaults.
    name, device : str
        Name and device of the node; empty for a shape function.

    Attributes
    ----------
    address : int
        Address of the struct.
    input_types, output_types : list of DataType
        Types of the values, lists flattened.
    label : str
        Description of the node in errors.
    """

    def __init__(self, op_def: OpDef, attrs: Mapping[str, AttrValue], name: str = "", device: str = "") -> None:
        defaults = {a.name: a.default for a in op_def.attr if a.default is not None}
        complete = {**defaults, **attrs}
        self.op_def, self.name = op_def, name
        self.label = f"node '{name}' ({op_def.name})" if name else f"op {op_def.name}"
        self.input_types = [t for arg in op_def.input_arg for t in arg_types(arg, complete)]
        self.output_types = [t for arg in op_def.output_arg for t in arg_types(arg, complete)]
        self._memory = memory = Memory()
        rows = [memory.keep(memory.attr(key, value)) for key, value in complete.items() if value.kind != "placeholder"]
        args = [self._args(part, complete) for part in (op_def.input_arg, op_def.output_arg)]
        types = [[int(t.base) for t in part] for part in (self.input_types, self.output_types)]
        self.struct = Node(
            name.encode("utf-8", "surrogateescape"),
            op_def.name.encode(),
            device.encode(),
            memory.array_of(Attr, rows),
            *(memory.array_of(Arg, part) for part in args),
            *(memory.array_of(ctypes.c_int32, part) for part in types),
            len(rows),
            *(len(part) for part in args),
            *(len(part) for part in types),
        )
        self.address = ctypes.addressof(self.struct)

    def _args(self, args: Any, attrs: Mapping[str, AttrValue]) -> list[Arg]:
        ranges, lists = name_ranges(args, attrs), {arg.name for arg in args if arg.is_list}
        return [self._memory.keep(Arg(name.encode(), r.start, len(r), name in lists)) for name, r in ranges.items()]


def shape_of(rank: int, dims: Any) -> TensorShape:
    """Return the possibly unknown shape that C passes.

    Raises
    ------
    InvalidArgumentError
        There are too many dimensions.
    """
    return TensorShape() if rank < 0 else TensorShape(None if d < 0 else d for d in dims_of(rank, dims))
