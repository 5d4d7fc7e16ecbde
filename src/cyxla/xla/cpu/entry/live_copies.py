"""C of copies of the live elements of arrays, whose sizes are in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.memory.buffers import Copy
from cyxla.xla.cpu.memory.live_parts import LivePart, Size
from cyxla.xla.cpu.memory.locations import Location


def write_copies(c: CWriter, copies: Sequence[Copy], pointer: Callable[[Location], str]) -> None:
    """Write copies in order; the sizes of parts are read first, since a copy may overwrite them.

    Parameters
    ----------
    c : CWriter
        Writer.
    copies : sequence of Copy
        Copies.
    pointer : callable
        Function from a location to its C expression.
    """
    counts: dict[Copy, dict[int, str]] = {copy: {} for copy in copies if copy.part is not None}
    for copy, names in counts.items():
        assert copy.part is not None
        for d, sizes in copy.part.sizes:
            names[d] = c.name("n")
            c.line(f"const int64_t {names[d]} = cyx_live({_size_text(sizes, pointer)}, {copy.part.dims[d]});")
    for copy in copies:
        target, source = pointer(copy.target), pointer(copy.source)
        if copy.part is None:
            c.line(f"__builtin_memcpy({target}, {source}, {copy.nbytes});")
        else:
            _write_part(c, copy.part, counts[copy], target, source)


def _size_text(sizes: Sequence[Size], pointer: Callable[[Location], str]) -> str:
    texts = [f"cyx_size_{size.dtype}({pointer(size.location)})" for size in sizes]
    text = texts[0]
    for other in texts[1:]:
        text = f"cyx_larger_size({text}, {other})"
    return text


def _write_part(c: CWriter, part: LivePart, counts: dict[int, str], target: str, source: str) -> None:
    """Write the copy of a part: a loop over rows, which lie one after the other up to the last dimension cut."""
    axis, _ = part.sizes[-1]
    steps = [prod(part.dims[d + 1 :]) * part.itemsize for d in range(axis + 1)]
    loops = [(d, counts.get(d, str(part.dims[d]))) for d in range(axis) if part.dims[d] > 1]
    names = [c.name("i") for _ in loops]
    heads = [f"for (int64_t {i} = 0; {i} < {n}; ++{i}) " for i, (_, n) in zip(names, loops, strict=True)]
    offset = "".join(f" + {i} * {steps[d]}" for i, (d, _) in zip(names, loops, strict=True))
    ends = [f"(char *)({p}){offset}" for p in (target, source)]
    nbytes = f"(unsigned long)({counts[axis]} * {steps[axis]})"
    c.line(f"{''.join(heads)}__builtin_memcpy({ends[0]}, {ends[1]}, {nbytes});")
