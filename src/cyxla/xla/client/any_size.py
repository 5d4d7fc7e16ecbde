"""Programs of open sizes: one executable that compiles itself for the sizes of its arguments when it is called."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from cyxla import forking
from cyxla._native import arguments
from cyxla.errors import InvalidArgumentError, OpError, ShapeError, UnimplementedError
from cyxla.types import UNBOUNDED, Shape
from cyxla.xla.service import CompileOptions, Executable, LocalService
from cyxla.xla.service.bound_arguments import check_bound, private_copy
from cyxla.xla.stablehlo.reader import StableHloProgram
from cyxla.xla.stablehlo.sizes.unknown import UnknownSizeError

if TYPE_CHECKING:
    from cyxla.xla.feeds import Feeds
    from cyxla.xla.hlo import HloModule
    from cyxla.xla.service.explanation import Explanation
    from cyxla.xla.service.profile import Profile

MAX_SPECIALISATIONS: Final = 64  # executables that are kept, those of the latest calls
MAX_LISTED: Final = 8  # of their sizes, in a description

Key = tuple[Any, ...]
_Made = TypeVar("_Made")


def executable_of_any_size(
    error: UnimplementedError, text: str, platform: str, options: CompileOptions
) -> AnySizeExecutable:
    """Return the executable of a StableHLO program that cannot be compiled alone because its sizes are open.

    Raises
    ------
    UnimplementedError
        The error of the compilation, if it has another cause, or if the arguments do not settle the sizes.
    """
    if not isinstance(error, UnknownSizeError):
        raise error
    executable = AnySizeExecutable(text, platform, options)
    executable.program.require_supported()
    if error.operation is not None:  # the arguments have known sizes
        executable.find_values()
    return executable


class Specialisation(NamedTuple):
    """The executable for a key: the sizes of all arguments, then the bytes of those whose values are read."""

    key: Key | None
    executable: Any


class AnySizeExecutable(Executable):
    """A StableHLO program of open sizes, which is compiled for each new combination of the sizes of its arguments.

    Sizes may also depend on values of integer arguments, which are then read at each call. The executables of the last
    64 combinations are kept. What describes generated code (`hlo`, `c_source`, `memory`, `cost`, `profile`) is that of
    the last call's sizes.

    Parameters
    ----------
    text : str
        The program.
    platform : str
        Name of a registered platform.
    options : CompileOptions
        Options of each compilation.
    fixed : mapping of int to array, optional
        Bound arguments.
    """

    def __init__(
        self, text: str, platform: str, options: CompileOptions, fixed: Mapping[int, Any] | None = None
    ) -> None:
        self._open(text, StableHloProgram(text), platform, options, fixed or {})

    def _open(
        self, text: str, program: StableHloProgram, platform: str, options: CompileOptions, fixed: Mapping[int, Any]
    ) -> None:
        self._text, self.program, self._options = text, program, options
        self._fixed: dict[Any, Any] = dict(fixed)  # by number
        self._service, self.platform = LocalService(platform), platform
        self._stated, results = program.entry.type.inputs, program.entry.type.results
        for k, shape in enumerate(self._stated):
            if not shape.is_array or shape.dtype.numpy_dtype is None:
                raise UnimplementedError(
                    f"argument {k} is {shape}, in a program of open sizes", hint="give cyxla.compile specs"
                )
        self._free = [k for k in range(len(self._stated)) if k not in self._fixed]
        self.inputs = tuple(self._stated[k] for k in self._free)
        self.outputs = results[0] if len(results) == 1 else Shape.tuple(results)
        self._dtypes = [s.dtype.numpy_dtype for s in self.inputs]
        self._needed: set[int] = set()  # arguments, bound ones included, on whose values sizes depend
        self._read: tuple[int, ...] = ()  # positions in a call of those that are not bound
        self._recent = Specialisation(None, None)
        self._kept: OrderedDict[Key, Specialisation] = OrderedDict()
        self._lock = forking.new_lock()

    def __reduce__(self) -> tuple[Any, ...]:
        values = {f.name: getattr(self._options, f.name) for f in fields(self._options)}
        return _rebuild, (
            self._text,
            self.platform,
            {**values, "custom_calls": dict(self._options.custom_calls)},
            self._fixed,
        )

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.inputs))
        return f"<AnySizeExecutable @{self.program.entry.name}({types}) -> {self.outputs} on {self.platform}>"

    # Calls

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run the program, which is compiled first if these sizes are new; see `Executable`."""
        try:
            key = tuple([x.shape for x in args])
            if self._read:
                key = self._with_values(key, args)
        except AttributeError:  # lists and numbers
            args, key = self._converted(args)
        recent = self._recent
        if recent.key != key:
            recent = self._find(key, args)
        return recent.executable(*args, out=out)

    def _with_values(self, key: Key, args: Sequence[Any]) -> Key:
        """Return a key with the values that are read."""
        for k in self._read:
            if k >= len(args) or args[k].dtype != self._dtypes[k]:
                _, key = self._converted(args)  # reports the problem, or converts
                return key
        return key + tuple([args[k].tobytes() for k in self._read])

    def _converted(self, args: Sequence[Any]) -> tuple[tuple[Any, ...], Key]:
        """Return arguments as arrays of the declared types, and their key.

        Raises
        ------
        InvalidArgumentError
            An argument does not match its parameter.
        """
        if len(args) != len(self.inputs):
            trees = tuple(range(len(self.inputs)))
            raise InvalidArgumentError(f"the program takes {arguments.count(trees)}, got {len(args)}")
        pairs = zip(args, self.inputs, strict=True)
        arrays = tuple([_conform(x, shape, f"argument {k}") for k, (x, shape) in enumerate(pairs)])
        return arrays, tuple([x.shape for x in arrays]) + tuple([arrays[k].tobytes() for k in self._read])

    def _find(self, key: Key, args: Sequence[Any]) -> Specialisation:
        """Return the executable of a key, which becomes the most recent one."""
        kept = self._kept.get(key)
        if kept is None:
            return self._specialise(self._converted(args)[0])
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            self._recent = kept
        return kept

    def _specialise(self, arrays: Sequence[Any]) -> Specialisation:
        """Compile the program for these arguments, unless another thread has done so."""
        with self._lock:
            _, key = self._converted(arrays)
            made = self._kept.get(key)
            if made is None:
                executable = self._build(arrays)
                _, key = self._converted(arrays)  # with all the values that were read
                made = self._kept[key] = Specialisation(key, executable)
                if len(self._kept) > MAX_SPECIALISATIONS:
                    self._kept.popitem(last=False)
            self._recent = made
            return made

    # Compilation

    def module_for(self, args: Sequence[Any]) -> HloModule:
        """Return the program for the sizes of arguments; it is correct for other values where sizes depend on none."""
        arrays, _ = self._converted(args)
        with self._lock:
            return self._made_for(arrays, self._lower)

    def _build(self, arrays: Sequence[Any]) -> Executable:
        def build(shapes: Sequence[Shape], values: Mapping[int, Any]) -> Executable:
            executable = self._service.build_executable(self._lower(shapes, values), self._options)
            return executable.bind(self._fixed) if self._fixed else executable

        return self._made_for(arrays, build)

    def _made_for(self, arrays: Sequence[Any], make: Callable[[Sequence[Shape], Mapping[int, Any]], _Made]) -> _Made:
        """Return what is made for the sizes and values of arguments; errors name their types."""
        values = {**dict(zip(self._free, arrays, strict=True)), **self._fixed}
        shapes = [_with_sizes(shape, np.shape(values[k])) for k, shape in enumerate(self._stated)]
        try:
            return make(shapes, values)
        except OpError as error:
            error.message = f"{error.message} (arguments {', '.join(map(str, shapes))})"
            raise

    def _lower(self, shapes: Sequence[Shape], values: Mapping[int, Any]) -> HloModule:
        """Return the program for these shapes, and read the values on which its sizes turn out to depend."""
        while True:
            try:
                return self.program.module(shapes, {k: values[k] for k in self._needed})
            except UnknownSizeError as error:
                more = self._arguments_of(error) - self._needed
                if not more:
                    raise
                self._need(more)

    def find_values(self) -> None:
        """Find arguments on whose values sizes depend in a program whose arguments have known sizes.

        Raises
        ------
        UnknownSizeError
            The sizes depend on something else.
        """
        try:
            self.program.module()
        except UnknownSizeError as error:
            numbers = self._arguments_of(error)
            if not numbers:
                raise
            self._need(numbers)

    def _arguments_of(self, error: UnknownSizeError) -> set[int]:
        """Return the numbers of the integer arguments on which the unknown sizes depend."""
        numbers = self.program.dependence.arguments_of(error)
        return {k for k in numbers if _is_readable(self._stated[k])}

    def _need(self, numbers: set[int]) -> None:
        """Read the values of more arguments from now on; executables that were made without them are dropped."""
        self._needed |= numbers
        self._read = tuple([n for n, k in enumerate(self._free) if k in self._needed])
        self._kept.clear()
        self._recent = Specialisation(None, None)

    # Binding and inspection

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments in the program."""
        return tuple(f"arg{k}" for k in self._free)

    def bind(self, arguments: Mapping[int | str, Any]) -> Executable:
        """Fix some arguments, such as weights; see `Executable.bind`."""
        checked = check_bound(arguments, self.names, self.inputs)
        if not checked:
            return self
        fixed = {
            self._free[k]: private_copy(_conform(v, self.inputs[k], f"bound argument {k}")) for k, v in checked.items()
        }
        bound = object.__new__(type(self))
        bound._open(self._text, self.program, self.platform, self._options, {**self._fixed, **fixed})
        return bound

    @property
    def tier(self) -> str:  # type: ignore[override]
        """The tier of the last call's executable; ``"unspecialised"`` before the first call."""
        executable = self._recent.executable
        return "unspecialised" if executable is None else str(executable.tier)

    @property
    def feeds(self) -> Feeds:
        """The other end of the program's transfers, for calls of all sizes; see `Executable.feeds`."""
        return self._options.feeds

    @property
    def _transfers(self) -> None:
        """None: the shapes may depend on the sizes of a call."""
        return None

    def _last(self) -> Executable:
        executable: Executable | None = self._recent.executable
        if executable is None:
            raise InvalidArgumentError(
                "the program has open sizes and was not called", hint="call it, or give cyxla.compile specs"
            )
        return executable

    def hlo(self, stage: str = "optimized") -> str:
        """Return the HLO text for the last call's sizes; see `Executable.hlo`."""
        return self._last().hlo(stage)

    @property
    def c_source(self) -> str:
        """The generated C code for the last call's sizes."""
        return self._last().c_source

    @property
    def memory(self) -> dict[str, int]:
        """The bytes by use for the last call's sizes."""
        return self._last().memory

    @property
    def cost(self) -> dict[str, float]:
        """The estimated cost of a call of the last call's sizes."""
        return self._last().cost

    def profile(self, *, reset: bool = False) -> Profile:
        """Return the time of each kernel for the last call's sizes; see `Executable.profile`."""
        return self._last().profile(reset=reset)

    def explain(self) -> str:
        """Describe the sizes for which the program is compiled, and the kernels for those of the last call."""
        kept = list(self._kept.values())
        lines = [f"{self!r}, compiled for {len(kept)} of at most {MAX_SPECIALISATIONS} combinations of sizes"]
        if self._read:
            names = ", ".join(str(k) for k in self._read)
            lines.append(f"sizes depend on the values of arguments: {names}")
        for each in kept[: -MAX_LISTED - 1 : -1]:
            lines.append(f"  {', '.join(str(s) for s in each.executable.inputs)}")
        executable = self._recent.executable
        return "\n".join([*lines, *(["", executable.explain()] if executable is not None else [])])

    def explanation(self) -> Explanation:
        """Return the kernels and refusals for the last call's sizes; see `Executable.explanation`."""
        return self._last().explanation()


def _rebuild(text: str, platform: str, options: Mapping[str, Any], fixed: Mapping[int, Any]) -> AnySizeExecutable:
    return AnySizeExecutable(text, platform, CompileOptions(**options), fixed)


def _is_readable(shape: Shape) -> bool:
    """Return True for arguments whose values may give sizes: integers and booleans."""
    return shape.dtype.is_integer or str(shape.dtype) == "pred"


def _with_sizes(shape: Shape, dims: tuple[int, ...]) -> Shape:
    """Return a stated type with the sizes of an argument for its open sizes; bounded ones keep their bounds."""
    if len(dims) != shape.rank:
        return Shape.array(shape.dtype, dims)  # which the reader refuses
    known = [n if stated == UNBOUNDED else stated for n, stated in zip(dims, shape.dims, strict=True)]
    bounded = [d and stated != UNBOUNDED for d, stated in zip(shape.dynamic, shape.dims, strict=True)]
    return Shape.array(shape.dtype, known, dynamic=bounded)


def _conform(value: Any, shape: Shape, where: str) -> Any:
    """Return an argument as an array of the declared element type, rank and known sizes."""
    dims = np.shape(value)
    fits = len(dims) == shape.rank and all(
        stated == UNBOUNDED or n == stated or (dynamic and n <= stated)
        for n, stated, dynamic in zip(dims, shape.dims, shape.dynamic, strict=True)
    )
    if not fits:
        raise ShapeError(f"{where}: got {arguments.describe(value)}, want {shape}")
    assert shape.dtype.numpy_dtype is not None
    return arguments.convert(value, shape.dtype.numpy_dtype, dims, where)
