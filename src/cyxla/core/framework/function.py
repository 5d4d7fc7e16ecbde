"""Functions: signatures with bodies of nodes, and the library that a graph keeps them in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.declarations.op_def_builder import OpRegistrationData
from cyxla.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from cyxla.core.framework.attr_value import AttrValue
    from cyxla.core.framework.declarations.op_def import OpDef
    from cyxla.core.framework.node_def import NodeDef


@dataclass
class FunctionDef:
    """Definition of a function: its signature and the nodes of its body.

    Inputs in the body are written ``"argument"`` or ``"node:output_argument:index"``.

    Parameters
    ----------
    signature : OpDef
        Name, arguments and attributes, as of an op.
    node_def : list of NodeDef
        The body, in any order; attributes may name attributes of the signature (kind ``"placeholder"``).
    ret : dict of str
        Source of each output of the signature.
    control_ret : dict of str
        Nodes that must run, by the name of a control output.
    attr : dict of AttrValue
        Remarks about the whole function, such as ``_noinline``.
    arg_attr : dict of dicts of AttrValue
        Remarks about arguments, by number.
    """

    signature: OpDef
    node_def: list[NodeDef] = field(default_factory=list)
    ret: dict[str, str] = field(default_factory=dict)
    control_ret: dict[str, str] = field(default_factory=dict)
    attr: dict[str, AttrValue] = field(default_factory=dict)
    arg_attr: dict[int, dict[str, AttrValue]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.signature.name


class FunctionLibraryDefinition:
    """Functions by name, over a registry of ops; a function hides an op of the same name.

    Parameters
    ----------
    default_registry : object with ``look_up``
        Registry for names that are not functions.
    """

    def __init__(self, default_registry: Any) -> None:
        self.default_registry = default_registry
        self._functions: dict[str, FunctionDef] = {}
        self._registrations: dict[str, OpRegistrationData] = {}
        self._gradients: dict[str, str] = {}
        self._derived: dict[str, FunctionDef] = {}

    def add(self, function: FunctionDef) -> None:
        """Add a function; adding an equal one again changes nothing.

        Raises
        ------
        InvalidArgumentError
            Another function has that name.
        """
        existing = self._functions.get(function.name)
        if existing is not None and existing is not function and existing != function:
            raise InvalidArgumentError(f"another function '{function.name}' already exists", hint="rename one of them")
        self.replace(function)

    def replace(self, function: FunctionDef) -> None:
        """Add a function, or put it in place of the one of its name."""
        self._functions[function.name] = function
        self._registrations[function.name] = OpRegistrationData(function.signature, _unknown_outputs)

    def add_derived(self, function: FunctionDef) -> None:
        """Add a function that a rewriting of graphs made: it is found by name, but not listed, counted or copied.

        Raises
        ------
        AlreadyExistsError
            A function has that name.
        """
        if self.find(function.name) is not None:
            raise AlreadyExistsError(f"function '{function.name}' already exists")
        self._derived[function.name] = function
        self._registrations[function.name] = OpRegistrationData(function.signature, _unknown_outputs)

    def remove(self, name: str) -> None:
        """Take a function out."""
        if name not in self._functions:
            raise NotFoundError(f"function '{name}' does not exist")
        del self._functions[name], self._registrations[name]
        self._gradients.pop(name, None)

    def find(self, name: str) -> FunctionDef | None:
        """A function, or None."""
        return self._functions.get(name) or self._derived.get(name)

    def look_up(self, name: str) -> OpRegistrationData:
        """Signature of a function, or declaration of an op.

        Raises
        ------
        NotFoundError
            Neither is there.
        """
        registration = self._registrations.get(name)
        if registration is not None:
            return registration
        data: OpRegistrationData = self.default_registry.look_up(name)
        return data

    def look_up_op_def(self, name: str) -> OpDef:
        """As `look_up`, without the shape function."""
        return self.look_up(name).op_def

    def add_gradient(self, name: str, gradient: str) -> None:
        """Say which function is the gradient of another.

        Raises
        ------
        InvalidArgumentError
            It has another gradient already.
        """
        if self._gradients.setdefault(name, gradient) != gradient:
            raise InvalidArgumentError(f"function '{name}' already has another gradient: '{self._gradients[name]}'")

    def gradient_of(self, name: str) -> str:
        """Name of a function's gradient function; empty where none was given."""
        return self._gradients.get(name, "")

    @property
    def gradients(self) -> dict[str, str]:
        """Gradient functions by the function they belong to."""
        return dict(self._gradients)

    def unique_name(self, prefix: str) -> str:
        """A name that no function has yet."""
        number = 0
        while (name := f"{prefix}_{number}") in self._functions:
            number += 1
        return name

    def copy(self) -> FunctionLibraryDefinition:
        """A library that may grow apart from this one; the functions are shared."""
        new = FunctionLibraryDefinition(self.default_registry)
        new._functions.update(self._functions)
        new._registrations.update({name: self._registrations[name] for name in self._functions})
        new._gradients.update(self._gradients)
        return new

    def update(self, other: FunctionLibraryDefinition) -> None:
        """Add all functions and gradients of another library."""
        for function in other:
            self.add(function)
        for name, gradient in other._gradients.items():
            self.add_gradient(name, gradient)

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __iter__(self) -> Iterator[FunctionDef]:
        return iter(self._functions.values())

    def __len__(self) -> int:
        return len(self._functions)


def _unknown_outputs(context: Any) -> None:
    """Leave the output shapes of a call unknown: they depend on the body of the function."""
    for i in range(context.num_outputs):
        context.set_output(i, context.unknown_shape())
