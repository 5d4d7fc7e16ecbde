from collections.abc import Callable, Iterator
from enum import IntEnum
from types import TracebackType
from typing import Any, final

class Node(IntEnum):
    ARRAY = 0
    FLOAT = 1
    INT = 2
    BOOL = 3
    COMPLEX = 4
    NONE = 5
    TUPLE = 6
    LIST = 7
    DICT = 8
    NAMED = 9
    RECORD = 10
    STATIC = 11
    STATIC_KEY = 12
    RECEIVER = 13
    OUT = 14

def install(
    current: Callable[[], Any],
    key_of: Callable[[Any], Any],
    trimmed: Callable[[BaseException], TracebackType | None],
) -> None: ...
def begin_trace() -> None: ...
def end_trace() -> None: ...
def set_traces(count: int) -> None: ...
def skip_tuples(cls: type) -> None: ...
def build(plan: tuple[Any, ...], leaves: Iterator[Any]) -> Any: ...

@final
class Receiver:
    value: Any
    def __init__(self, value: Any) -> None: ...

class Compiled:
    executable: Any
    plan: tuple[Any, ...]
    fails: bool
    stamp: int
    def __init__(self, executable: Any, plan: tuple[Any, ...], fails: bool) -> None: ...
    def use(self, executable: Any) -> None: ...
    def __call__(self, leaves: list[Any], out: Any = None) -> Any: ...

@final
class Way:
    compiled: Compiled
    def __init__(
        self, compiled: Compiled, nargs: int, kwnames: tuple[str, ...], nodes: list[Any], inputs: int
    ) -> None: ...

class Dispatcher:
    hits: int
    clock: int
    def set_static(self, positions: bytes, rest: bool, names: frozenset[str]) -> None: ...
    def learn(self, hash: int, way: Way) -> None: ...
    def forget(self, compiled: Compiled | None = None) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
