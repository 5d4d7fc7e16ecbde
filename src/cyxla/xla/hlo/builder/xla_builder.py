"""`XlaBuilder`, which collects instructions, and `XlaOp`, the handle of one.

Errors are deferred: the first one is kept with the caller's file and line, later operations on the missing value do
nothing, and `XlaBuilder.build` raises the error. A program that builds a hundred operations checks for errors once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, ParamSpec

import numpy as np

from cyxla.errors import FailedPreconditionError, InvalidArgumentError, OpError
from cyxla.types import Shape
from cyxla.xla.hlo.attributes import Metadata
from cyxla.xla.hlo.builder.computation import ProgramShape, XlaComputation, copy_computations
from cyxla.xla.hlo.builder.operators import Operators
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule
from cyxla.xla.hlo.shape_inference import infer_shape
from cyxla.xla.hlo.verifier import verify

_HERE = str(Path(__file__).parent)
_METADATA = (
    "op_type", "op_name", "source_file", "source_line", "source_end_line", "source_column", "source_end_column",
    "profile_type", "deduplicated_name", "scheduling_name", "stack_frame_id",
)  # fmt: skip
P = ParamSpec("P")


class XlaOp(Operators):
    """A value of the program being built.

    Attributes
    ----------
    builder : XlaBuilder
        Builder of the program.
    instruction : Instruction or None
        The instruction; None if it could not be created. `XlaBuilder.build` raises the reason.
    """

    __slots__ = ("builder", "instruction")

    def __init__(self, builder: XlaBuilder, instruction: Instruction | None) -> None:
        self.builder = builder
        self.instruction = instruction

    @property
    def valid(self) -> bool:
        """True if the operation could be created."""
        return self.instruction is not None

    @property
    def shape(self) -> Shape:
        """Shape of the value.

        Raises
        ------
        InvalidArgumentError
            The value does not exist because of an earlier error, which is raised again.
        """
        if self.instruction is None:
            self.builder.raise_first_error()
        return self.instruction.shape

    def __repr__(self) -> str:
        return f"XlaOp({self.instruction!r})" if self.valid else "XlaOp(error)"


class XlaBuilder:
    """Builder of one computation from single instructions.

    Parameters
    ----------
    name : str
        Name of the module and of its entry computation.

    Examples
    --------
    >>> from cyxla.xla.hlo.builder import XlaBuilder, functions as f
    >>> b = XlaBuilder("double")
    >>> x = f.parameter(b, 0, Shape.array("f32", (2, 3)), "x")
    >>> str((x + x).shape), str(b.build().program_shape)
    ('f32[2,3]', '(x: f32[2,3]) -> f32[2,3]')
    """

    def __init__(self, name: str = "computation") -> None:
        self.name = name
        self._module: HloModule = HloModule(name)
        self._computation = self._module.new_computation(name)
        self._module.entry = self._computation
        self._imported: dict[XlaComputation, Computation] = {}
        self._copied_computations: dict[Computation, Computation] = {}
        self._error: OpError | None = None
        self._last: XlaOp | None = None
        self._metadata: Metadata = ()
        self._derived_from: Metadata | None = None  # metadata of the instruction that new ones are made from
        self._extras: dict[str, Any] = {}
        self._built = False

    @property
    def first_error(self) -> OpError | None:
        """The first error, or None."""
        return self._error

    def raise_first_error(self) -> NoReturn:
        """Raise the first error."""
        raise self._error or FailedPreconditionError(f"builder {self.name} has no error")

    @property
    def instruction_count(self) -> int:
        """Number of instructions so far."""
        return len(self._computation.instructions)

    def add(
        self,
        opcode: str,
        operands: Sequence[XlaOp] = (),
        attrs: Mapping[str, Any] | None = None,
        *,
        called: Sequence[XlaComputation] = (),
        shape: Shape | None = None,
        name: str = "",
        extras: Mapping[str, Any] | None = None,
    ) -> XlaOp:
        """Append an instruction, and infer its shape.

        Unlike the functions of `cyxla.xla.hlo.builder.functions`, this raises errors at once.

        Parameters
        ----------
        opcode : str
            HLO spelling.
        operands : sequence of XlaOp
            Operands, all of this builder.
        attrs : mapping, optional
            Attributes; defaults are filled in.
        called : sequence of XlaComputation
            Called computations in the order of the opcode's `calls`.
        shape : Shape, optional
            The result shape, if the operands do not determine it.
        name : str, optional
            Suggested name.
        extras : mapping, optional
            Attributes that any instruction may carry; those of the scope are added.

        Raises
        ------
        ShapeError, DTypeError
            A constraint of the opcode is violated.
        """
        if self._built:
            raise FailedPreconditionError(f"builder {self.name} has built its computation already")
        for o in operands:
            if o.instruction is None:
                self.raise_first_error()
        inputs = [o.instruction for o in operands if o.instruction is not None]
        callees = [self._import(c) for c in called]
        attrs = {k: _plain_attribute(v) for k, v in attrs.items()} if attrs else {}
        extras = {**self._extras, **(extras or {})}
        inferred = infer_shape(opcode, inputs, attrs, callees, shape, extras)
        stated = shape if shape is not None and shape.logical is inferred else inferred
        self._last = XlaOp(self, self._computation.add(
            opcode, inputs, attrs, shape=stated, called=callees, name=name, metadata=self._metadata, extras=extras,
        ))  # fmt: skip
        return self._last

    @property
    def instructions(self) -> list[Instruction]:
        """All instructions so far, in order."""
        return list(self._computation.instructions)

    def clone(
        self, instruction: Instruction, operands: Sequence[XlaOp], attrs: Mapping[str, Any] | None = None,
        shape: Shape | None = None,
    ) -> XlaOp:  # fmt: skip
        """Append a copy of an instruction of another builder.

        Parameters
        ----------
        instruction : Instruction
            Instruction of the other builder.
        operands : sequence of XlaOp
            Values of this builder with the shapes of the instruction's operands; the shapes are not checked.
        attrs : mapping, optional
            Attributes that differ from those of the instruction.
        shape : Shape, optional
            Result shape, if it differs; it is not checked.
        """
        inputs = [o.instruction for o in operands if o.instruction is not None]
        called = [self._copy_computation(c) for c in instruction.called]
        return XlaOp(self, self._computation.add(
            instruction.opcode, inputs, {**instruction.attrs, **attrs} if attrs else instruction.attrs,
            shape=instruction.shape if shape is None else shape, called=called,
            name=instruction.name, metadata=instruction.metadata, extras=instruction.extras,
        ))  # fmt: skip

    @contextmanager
    def derived_from(self, instruction: Instruction) -> Iterator[XlaBuilder]:
        """Give the instructions created inside the metadata of another one, which they are made from."""
        before = self._derived_from, self._metadata
        self._derived_from = self._metadata = instruction.metadata
        try:
            yield self
        finally:
            self._derived_from, self._metadata = before

    def order_effects(self) -> None:
        """Make instructions with side effects run in the order in which they were added."""
        effects = [ins for ins in self._computation.instructions if ins.has_side_effect]
        for earlier, later in pairwise(effects):
            if earlier not in later.control_predecessors:
                later.control_predecessors = (*later.control_predecessors, earlier)

    def _copy_computation(self, computation: Computation) -> Computation:
        if computation not in self._copied_computations:
            self._copied_computations[computation] = copy_computations(computation, self._module)
        return self._copied_computations[computation]

    def _import(self, computation: XlaComputation) -> Computation:
        if computation not in self._imported:
            self._imported[computation] = computation.copy_into(self._module)
        return self._imported[computation]

    def report(self, error: OpError, operation: str = "") -> XlaOp:
        """Keep an error for `build`, unless there is one already.

        Returns
        -------
        XlaOp
            A value without an instruction.
        """
        if self._error is None:
            location = _user_location()
            error.where = "; ".join(
                t for t in (f"{location}: {operation}" if operation else location, error.where) if t
            )
            self._error = error
        return XlaOp(self, None)

    @contextmanager
    def metadata(self, **fields: Any) -> Iterator[XlaBuilder]:
        """Set metadata of the instructions created inside.

        Parameters
        ----------
        **fields
            Fields of OpMetadata, such as op_type, op_name, source_file and source_line.
        """
        unknown = [f for f in fields if f not in _METADATA]
        if unknown:
            raise InvalidArgumentError(f"metadata has no field {unknown[0]!r}", hint=f"it has {', '.join(_METADATA)}")
        before, merged = self._metadata, {**dict(self._metadata), **fields}
        self._metadata = tuple((f, merged[f]) for f in _METADATA if f in merged)
        try:
            yield self
        finally:
            self._metadata = before

    @contextmanager
    def attributes(self, **extras: Any) -> Iterator[XlaBuilder]:
        """Set sharding, frontend_attributes or backend_config of the instructions created inside."""
        before = self._extras
        self._extras = {**before, **extras}
        try:
            yield self
        finally:
            self._extras = before

    def program_shape(self, root: XlaOp | None = None) -> ProgramShape:
        """Return the signature of the computation that `build` would return."""
        parameters = self._computation.parameters
        names = tuple(p.name or f"p{i}" for i, p in enumerate(parameters))
        return ProgramShape(tuple(p.shape for p in parameters), names, self._root(root).shape)

    def _root(self, root: XlaOp | None) -> XlaOp:
        root_op = root if root is not None else self._last
        if root_op is None:
            raise FailedPreconditionError(f"builder {self.name} has no instructions")
        if root_op.builder is not self:
            raise InvalidArgumentError(f"the root is of builder {root_op.builder.name}, not of {self.name}")
        return root_op

    def build(self, root: XlaOp | None = None) -> XlaComputation:
        """Finish the computation.

        Parameters
        ----------
        root : XlaOp, optional
            The result; by default the last operation added.

        Raises
        ------
        InvalidArgumentError
            The first error since the builder was created; `where` holds the caller's file and line.
        FailedPreconditionError
            There are no instructions, or the computation has been built.
        """
        if self._error is not None:
            raise self._error
        if self._built:
            raise FailedPreconditionError(f"builder {self.name} has built its computation already")
        root_instruction = self._root(root).instruction
        assert root_instruction is not None  # there is no error, so every operation has an instruction
        self._computation.root = root_instruction
        verify(self._module)
        self._built = True
        return XlaComputation(self._module)

    def __repr__(self) -> str:
        return f"XlaBuilder({self.name}, {self.instruction_count} instructions)"


def _plain_attribute(value: Any) -> Any:
    """Return an attribute value with Python's numbers for NumPy's and tuples for lists."""
    if isinstance(value, (tuple, list)):
        parts = map(_plain_attribute, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value.item() if isinstance(value, np.generic) else value


def _user_location() -> str:
    """Return file and line of the innermost caller outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_inside(filename: str) -> bool:
    return filename.startswith((_HERE, "<frozen")) or filename.endswith("functools.py")


def _values(args: Iterable[Any]) -> Iterator[XlaOp]:
    for a in args:
        if isinstance(a, XlaOp):
            yield a
        elif isinstance(a, (tuple, list)):
            yield from _values(a)


def _check_builders(builder: XlaBuilder, values: Iterable[XlaOp], description: str) -> None:
    for v in values:
        if v.builder is not builder:
            raise InvalidArgumentError(
                f"{description}: operands belong to different builders, {builder.name} and {v.builder.name}",
                where=_user_location(),
            )


def _share_builder(args: tuple[Any, ...]) -> bool:
    """Return True if all arguments are operations of one builder, the common case."""
    builder = getattr(args[0], "builder", None) if args else None
    for a in args:
        if type(a) is not XlaOp or a.builder is not builder:
            return False
    return builder is not None


def deferred(make: Callable[P, XlaOp]) -> Callable[P, XlaOp]:
    """Make a function that creates operations defer its errors to `build`.

    The builder is the first argument if that is one, else the builder of the operands.
    """

    @wraps(make)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> XlaOp:
        if not kwargs and _share_builder(args):
            return _call_or_report(args[0].builder, make, args, kwargs)  # type: ignore[attr-defined]
        values = list(_values((*args, *kwargs.values())))
        first = args[0] if args else kwargs.get("builder")
        builder = first if isinstance(first, XlaBuilder) else next((v.builder for v in values), None)
        if builder is None:
            raise InvalidArgumentError(f"{make.__name__} needs an operand that is an XlaOp", where=_user_location())
        return _checked_call(builder, values, make, args, kwargs)

    return wrapper


def _checked_call(
    builder: XlaBuilder, values: Iterable[XlaOp], make: Callable[..., XlaOp], args: Any, kwargs: Any
) -> XlaOp:
    _check_builders(builder, values, make.__name__)
    return _call_or_report(builder, make, args, kwargs)


def _call_or_report(builder: XlaBuilder, make: Callable[..., XlaOp], args: Any, kwargs: Any) -> XlaOp:
    try:
        return make(*args, **kwargs)
    except OpError as e:
        if e is builder.first_error:
            return XlaOp(builder, None)
        return builder.report(e, f"{make.__name__}({', '.join(map(_argument_text, args))})")


def _argument_text(value: Any) -> str:
    if isinstance(value, XlaOp):
        ins = value.instruction
        return f"%{ins.name or ins.opcode} {ins.shape}" if ins is not None else "an earlier error"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_argument_text, value))}]"
    return getattr(value, "name", None) or repr(value)[:40]
