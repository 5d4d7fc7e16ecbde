"""`XlaBuilder`, which collects instructions, and `XlaOp`, the handle of one.

Errors wait: the first one is kept together with the place in the caller's program, every later use of a value that does
not exist is passed over, and `XlaBuilder.build` raises it. A program that builds a hundred operations needs to check
once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, ParamSpec

import numpy as np

from cyxla.errors import FailedPreconditionError, InvalidArgumentError, OpError
from cyxla.types import Shape
from cyxla.xla.hlo.attributes import Metadata
from cyxla.xla.hlo.builder.computation import ProgramShape, XlaComputation, copy_computations
from cyxla.xla.hlo.builder.operators import Operators
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.infer import infer_shape
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule
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
        Where it is being built.
    instruction : Instruction or None
        None when its making went wrong; `XlaBuilder.build` says how.
    """

    __slots__ = ("builder", "instruction")

    def __init__(self, builder: XlaBuilder, instruction: Instruction | None) -> None:
        self.builder = builder
        self.instruction = instruction

    @property
    def valid(self) -> bool:
        """Whether the operation could be made."""
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
    """Collects the instructions of one computation.

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
        self._copies: dict[XlaComputation, Computation] = {}
        self._repeated: dict[Computation, Computation] = {}
        self._error: OpError | None = None
        self._last: XlaOp | None = None
        self._metadata: Metadata = ()
        self._extras: dict[str, Any] = {}
        self._built = False

    @property
    def first_error(self) -> OpError | None:
        """What went wrong first, if anything did."""
        return self._error

    def raise_first_error(self) -> NoReturn:
        """Raise what went wrong first."""
        raise self._error or FailedPreconditionError(f"nothing went wrong in builder {self.name}")

    @property
    def instruction_count(self) -> int:
        """Instructions so far."""
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
        """Append an instruction, its shape inferred.

        Unlike the functions of `cyxla.xla.hlo.builder.functions`, this raises at once.

        Parameters
        ----------
        opcode : str
            HLO spelling.
        operands : sequence of XlaOp
            All of this builder.
        attrs : mapping, optional
            Attributes; defaults are filled in.
        called : sequence of XlaComputation
            Called computations in the order of the opcode's `calls`.
        shape : Shape, optional
            The result, where the operands do not fix it.
        name : str, optional
            Wished name.
        extras : mapping, optional
            Attributes that any instruction may carry; those of the scope are added.

        Raises
        ------
        ShapeError, DTypeError
            A constraint of the opcode does not hold.
        """
        if self._built:
            raise FailedPreconditionError(f"builder {self.name} has built its computation already")
        for o in operands:
            if o.instruction is None:
                self.raise_first_error()
        inputs = [o.instruction for o in operands if o.instruction is not None]
        callees = [self._import(c) for c in called]
        attrs = {k: _plain(v) for k, v in attrs.items()} if attrs else {}
        extras = {**self._extras, **(extras or {})}
        inferred = infer_shape(opcode, inputs, attrs, callees, shape, extras)
        stated = shape if shape is not None and shape.logical is inferred else inferred
        self._last = XlaOp(self, self._computation.add(
            opcode, inputs, attrs, shape=stated, called=callees, name=name, metadata=self._metadata, extras=extras,
        ))  # fmt: skip
        return self._last

    @property
    def instructions(self) -> list[Instruction]:
        """All of them so far, in order."""
        return list(self._computation.instructions)

    def repeat(self, instruction: Instruction, operands: Sequence[XlaOp]) -> XlaOp:
        """Append an instruction like one of another builder.

        Parameters
        ----------
        instruction : Instruction
            The other.
        operands : sequence of XlaOp
            Of this builder, of the shapes of the other's operands; they are not checked.
        """
        inputs = [o.instruction for o in operands if o.instruction is not None]
        called = [self._copied(c) for c in instruction.called]
        return XlaOp(self, self._computation.add(
            instruction.opcode, inputs, instruction.attrs, shape=instruction.shape, called=called,
            name=instruction.name, metadata=instruction.metadata, extras=instruction.extras,
        ))  # fmt: skip

    def _copied(self, computation: Computation) -> Computation:
        if computation not in self._repeated:
            self._repeated[computation] = copy_computations(computation, self._module)
        return self._repeated[computation]

    def _import(self, computation: XlaComputation) -> Computation:
        if computation not in self._copies:
            self._copies[computation] = computation.copy_into(self._module)
        return self._copies[computation]

    def report(self, error: OpError, what: str = "") -> XlaOp:
        """Keep an error for `build`, unless there was one before.

        Returns
        -------
        XlaOp
            A value that does not exist, for the caller to go on with.
        """
        if self._error is None:
            place = _user_place()
            error.where = "; ".join(t for t in (f"{place}: {what}" if what else place, error.where) if t)
            self._error = error
        return XlaOp(self, None)

    @contextmanager
    def metadata(self, **fields: Any) -> Iterator[XlaBuilder]:
        """Let the instructions made inside say where they come from.

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
        """Give the instructions made inside sharding, frontend_attributes or backend_config."""
        before = self._extras
        self._extras = {**before, **extras}
        try:
            yield self
        finally:
            self._extras = before

    def program_shape(self, root: XlaOp | None = None) -> ProgramShape:
        """The signature that `build` would give."""
        parameters = self._computation.parameters
        names = tuple(p.name or f"p{i}" for i, p in enumerate(parameters))
        return ProgramShape(tuple(p.shape for p in parameters), names, self._root(root).shape)

    def _root(self, root: XlaOp | None) -> XlaOp:
        found = root if root is not None else self._last
        if found is None:
            raise FailedPreconditionError(f"builder {self.name} has no instructions")
        if found.builder is not self:
            raise InvalidArgumentError(f"the root is of builder {found.builder.name}, not of {self.name}")
        return found

    def build(self, root: XlaOp | None = None) -> XlaComputation:
        """Finish the computation.

        Parameters
        ----------
        root : XlaOp, optional
            The result; by default the last operation made.

        Raises
        ------
        InvalidArgumentError
            The first error since the beginning; `where` names the place in the calling program.
        FailedPreconditionError
            There are no instructions, or the builder has built before.
        """
        if self._error is not None:
            raise self._error
        if self._built:
            raise FailedPreconditionError(f"builder {self.name} has built its computation already")
        found = self._root(root).instruction
        assert found is not None  # no error, so every operation exists
        self._computation.root = found
        verify(self._module)
        self._built = True
        return XlaComputation(self._module)

    def __repr__(self) -> str:
        return f"XlaBuilder({self.name}, {self.instruction_count} instructions)"


def _plain(value: Any) -> Any:
    """An attribute value with Python's numbers for NumPy's and tuples for lists."""
    if isinstance(value, (tuple, list)):
        parts = map(_plain, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value.item() if isinstance(value, np.generic) else value


def _user_place() -> str:
    """File and line of the innermost caller outside this package."""
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


def _check_builders(builder: XlaBuilder, values: Iterable[XlaOp], what: str) -> None:
    for v in values:
        if v.builder is not builder:
            raise InvalidArgumentError(
                f"{what}: operands are of two builders, {builder.name} and {v.builder.name}", where=_user_place()
            )


def _are_of_one(args: tuple[Any, ...]) -> bool:
    """Whether these are operations of one builder and nothing else, as mostly."""
    builder = getattr(args[0], "builder", None) if args else None
    for a in args:
        if type(a) is not XlaOp or a.builder is not builder:
            return False
    return builder is not None


def deferred(make: Callable[P, XlaOp]) -> Callable[P, XlaOp]:
    """Let a function that makes operations keep its errors for `build`.

    Its builder is its first argument if that is one, else the one of its operands.
    """

    @wraps(make)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> XlaOp:
        if not kwargs and _are_of_one(args):
            return _kept(args[0].builder, make, args, kwargs)  # type: ignore[attr-defined]
        values = list(_values((*args, *kwargs.values())))
        first = args[0] if args else kwargs.get("builder")
        builder = first if isinstance(first, XlaBuilder) else next((v.builder for v in values), None)
        if builder is None:
            raise InvalidArgumentError(f"{make.__name__} needs an operand that is an XlaOp", where=_user_place())
        return _guarded(builder, values, make, args, kwargs)

    return wrapper


def _guarded(builder: XlaBuilder, values: Iterable[XlaOp], make: Callable[..., XlaOp], args: Any, kwargs: Any) -> XlaOp:
    _check_builders(builder, values, make.__name__)
    return _kept(builder, make, args, kwargs)


def _kept(builder: XlaBuilder, make: Callable[..., XlaOp], args: Any, kwargs: Any) -> XlaOp:
    try:
        return make(*args, **kwargs)
    except OpError as e:
        if e is builder.first_error:
            return XlaOp(builder, None)
        return builder.report(e, f"{make.__name__}({', '.join(map(_spell, args))})")


def _spell(value: Any) -> str:
    if isinstance(value, XlaOp):
        ins = value.instruction
        return f"%{ins.name or ins.opcode} {ins.shape}" if ins is not None else "an earlier error"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_spell, value))}]"
    return getattr(value, "name", None) or repr(value)[:40]
