from typing import Final

digest: Final[str]
numbers: Final[dict[str, int]]
types: Final[list[tuple[str, str]]]
head: Final[tuple[int, int]]
table: Final[int]
entry: Final[int]

COPY: int
CALL: int
CHAIN: int
LINKS: int

def recipe(words: list[int], steps: int) -> bytes: ...
def called_functions(recipe: bytes) -> list[int]: ...
def is_recipe(image: bytes) -> bool: ...
def address(image: bytes) -> int: ...
