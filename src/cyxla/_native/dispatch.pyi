from collections.abc import Callable, Iterator
from enum import IntEnum
from types import TracebackType
from typing import Any, final

class Node(IntEnum):
    ARRAY = 0
    SCALAR = 1
    FLOAT = 2
    INT = 3
    BOOL = 4
    COMPLEX = 5
    NONE = 6
    TUPLE = 7
    LIST = 8
    DICT = 9
    NAMED = 10
    RECORD = 11
    STATIC = 12
    STATIC_KEY = 13
    RECEIVER = 14
    INSTANCE = 15
    OUT = 16
    SAME = 17
    MISSING = 18
    ANY = 19
    NUMBERS = 20
    CLASS = 21
    FUNCTION = 22
    METHOD = 23

class Source(IntEnum):
    ARGUMENT = 0
    GLOBAL = 1
    CELL = 2
    ATTRIBUTE = 3
    ITEM = 4
    FIXED = 5

def install(
    current: Callable[[], Any],
    key_of: Callable[[Any], Any],
    trimmed: Callable[[BaseException], TracebackType | None],
    share_memory: Callable[[Any, Any], bool],
) -> None: ...
def begin_trace() -> None: ...
def end_trace() -> None: ...
def set_traces(count: int) -> None: ...
def axes_of(array: Any) -> tuple[int, ...] | None: ...
def with_layout(array: Any, layout: tuple[tuple[int, ...] | None, bool]) -> Any: ...
def drop_zero_imaginary(results: list[Any], spectra: tuple[tuple[int, int], ...]) -> list[Any]: ...
def enable_vectorcall(cls: type) -> None: ...
def build(plan: tuple[Any, ...], leaves: Iterator[Any], arguments: list[Any] | None = None) -> Any: ...

@final
class Receiver:
    value: Any
    def __init__(self, value: Any) -> None: ...

@final
class ClassGuard:
    def __init__(self, kind: type, is_same: Callable[[], bool]) -> None: ...

class CaughtError(Exception):
    error: Exception
    def __init__(self, error: Exception) -> None: ...

class Compiled:
    executable: Any
    plan: tuple[Any, ...]
    fails: bool
    rank0: bytes
    input_axes: tuple[tuple[int, ...] | None, ...] | None
    layouts: tuple[tuple[tuple[int, ...] | None, bool], ...] | None
    spectra: tuple[tuple[int, int], ...] | None
    writes: tuple[int, ...]
    dense: tuple[int, ...]
    finishes: bool
    takes_passed: bool
    plain: bool
    direct: Callable[..., Any] | None
    stamp: int
    padded_bytes: int
    def __init__(
        self,
        executable: Any,
        plan: tuple[Any, ...],
        fails: bool,
        rank0: bytes,
        input_axes: tuple[tuple[int, ...] | None, ...] | None = None,
        layouts: tuple[tuple[tuple[int, ...] | None, bool], ...] | None = None,
        spectra: tuple[tuple[int, int], ...] | None = None,
        writes: tuple[int, ...] = (),
        finishes: bool = False,
        takes_passed: bool = False,
        plain: bool = False,
        direct: Callable[..., Any] | None = None,
        dense: tuple[int, ...] = (),
    ) -> None: ...
    def use(self, executable: Any) -> None: ...
    def check_inputs(self, leaves: list[Any]) -> bool: ...
    def __call__(self, leaves: list[Any], out: Any = None, results: list[Any] | None = None) -> Any: ...

@final
class CallSignature:
    compiled: Compiled
    def __init__(
        self,
        compiled: Compiled,
        nargs: int,
        kwnames: tuple[str, ...],
        nodes: list[Any],
        inputs: int,
        guards: list[Any] | None = None,
        open_dims: list[tuple[int, int, int, int, bool]] | None = None,
    ) -> None: ...
    def fetch(self, args: tuple[Any, ...]) -> list[Any] | None: ...

class Dispatcher:
    hits: int
    clock: int
    def set_static(self, positions: bytes, rest: bool, names: frozenset[str]) -> None: ...
    def add_signature(self, hash: int, signature: CallSignature) -> None: ...
    def add_open_signature(self, signature: CallSignature) -> None: ...
    def hash_of_call(self, args: tuple[Any, ...], kwnames: tuple[str, ...]) -> int: ...
    def forget(self, compiled: Compiled | None = None) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
