import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

@final
class Block: ...

@final
class Library:
    path: str
    recipe: bytes | None
    def __init__(self, path: str | os.PathLike[str]) -> None: ...
    @staticmethod
    def from_bytes(image: bytes) -> Library: ...

class Program:
    library: Library
    inputs: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]
    outputs: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]
    parameters: tuple[Any, ...]
    results: Any
    def __init__(
        self,
        library: Library | str | os.PathLike[str],
        entry: str,
        inputs: Iterable[tuple[DTypeLike, Sequence[int]]],
        outputs: Iterable[tuple[DTypeLike, Sequence[int]]],
        results: Any,
        *,
        parameters: Sequence[Any] | None = None,
        constants: Iterable[NDArray[Any]] = (),
        bound: Mapping[int, Any] | None = None,
        arena_bytes: int = 0,
        sparse: bool = False,
        functions: Iterable[int] = (),
        keep: object = None,
        release_gil: bool = True,
        watched: bool = False,
        abandonable: bool = False,
        donations: Mapping[int, int] | None = None,
    ) -> None: ...
    def __call__(self, *args: Any, out: Any = None) -> Any: ...
    def cancel(self) -> None: ...
