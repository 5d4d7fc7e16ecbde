"""Calls of functions that come compiled with the package, and kernels made of them.

Adding a function
-----------------
Its C is written by a module of the package `prebuilt`, named in `prebuilt.library.MODULES`, which imports nothing but
`c.writer`, `c.isa_levels`, `c.kernel_header`, `c.scalar`, writers of kernels and others of its kind (the build reads it
before anything is installed). Such a module has

* ``FUNCTIONS``: name -> (C type of the result, C text of the arguments);
* ``text(level)``: C without includes, which defines every function of the table for a `c.isa_levels.Level`, not static,
  under the name ``CYX_PREBUILT(name)``. Everything else in it is static. Headers of ``include/cyxla`` are pasted by
  name.

The build compiles the texts for each level, with the flags of generated code, into ``cyxla._native.kernels``.

Calling one from generated code
-------------------------------
`pointer(name)` is a C expression, a typed pointer, to be called like a function; None if generated code has to define
the function itself: no such function, code under a sanitizer, ``CYXLA_PREBUILT=0`` for text that is complete in itself.
So the same text of an emitter serves the library and programs that define their own.

A whole kernel
--------------
A function of the type `prebuilt.library.KERNEL` runs tasks [begin, end) over ``bufs`` like any kernel, and reads its
sizes and strides from ``CYX_NUMBERS(bufs)``, an array of int64_t. `kernel(name, numbers, ..)` gives the `Kernel` that
calls it, None as above. A program of nothing but such kernels is not even compiled: its steps are a list
(`entry.recipe`). A function with an epilogue takes the epilogue's functions as a last argument, ``const void *const
*after``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from cyxla._native import kernels as library
from cyxla.xla.cpu.kernel.kernel import Kernel, PrebuiltCall
from cyxla.xla.cpu.kernel.prebuilt_numbers import number

__all__ = ["any_cost", "is_long", "kernel", "number", "pointer"]

MIN_PREBUILT_NS = 500.0  # below this cost, sizes known at compile time make code faster
_least_ns: ContextVar[float] = ContextVar("least_ns", default=MIN_PREBUILT_NS)

_TEXT = """{before}/* {note} */
static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {{
{numbers}
  void *const all[] = {{(void *)numbers, {bufs}}};{after}
  return {pointer}(all + 1, begin, end{argument});
}}
"""
_NUMBERS = "  static const int64_t numbers[] = {{{fixed}}};"
# Copied as a whole: an initialiser with values known at run time takes a C compiler as long as an assignment for each.
_RUN_TIME_NUMBERS = """  static const int64_t fixed[{count}] = {{{fixed}}};
  int64_t numbers[{count}];
  __builtin_memcpy(numbers, fixed, sizeof fixed);
{assignments}"""
_AFTER = "\n  const void *const after[] = {{{functions}}};"


@contextmanager
def any_cost() -> Iterator[None]:
    """Take prebuilt functions for short kernels too, where no code is generated."""
    token = _least_ns.set(0.0)
    try:
        yield
    finally:
        _least_ns.reset(token)


def is_long(ns: float) -> bool:
    """Return whether a kernel has so much to do that the sizes may arrive as numbers."""
    return ns >= _least_ns.get()


def pointer(name: str) -> str | None:
    """Return a C expression that points to a prebuilt function; None if generated code defines its own."""
    index = number(name)
    if index is None:
        return None
    result, arguments = library.types[index]
    return f"(({result} (*)({arguments}))cyx_prebuilt[{index}] /* {name}, {library.digest} */)"


def kernel(
    name: str,
    numbers: Sequence[int],
    template: Kernel,
    buffers: int,
    before: str = "",
    after: Sequence[str] = (),
    more_numbers: Sequence[str] = (),
) -> Kernel | None:
    """Return a kernel that calls a prebuilt function; None if generated code defines its own or has little to do.

    Parameters
    ----------
    name : str
        Name of a function of type `KERNEL`.
    numbers : sequence of int
        Integer arguments, which the function reads from ``CYX_NUMBERS(bufs)``.
    template : Kernel
        Kernel to copy everything but the text from; its text becomes the comment.
    buffers : int
        Number of buffers: reads, writes, scratch, phase.
    before : str
        C of the epilogue's functions.
    after : sequence of str
        Names of the epilogue's functions; if there are any, the function gets an array of pointers to them as a last
        argument.
    more_numbers : sequence of str
        C of further integer arguments that are known at run time, in terms of ``bufs``.
    """
    function = pointer(name) if is_long(template.cost) else None
    if function is None:
        return None
    bufs = ", ".join(f"bufs[{k}]" for k in range(buffers))
    functions = ", ".join(f"(const void *){f}" for f in after)
    text = _TEXT.format(
        before=before,
        note=template.text,
        numbers=_table(numbers, more_numbers),
        bufs=bufs,
        pointer=function,
        after=_AFTER.format(functions=functions) if after else "",
        argument=", after" if after else "",
    )
    return replace(template, text=text, call=None if after or more_numbers else PrebuiltCall(name, tuple(numbers)))


def _table(numbers: Sequence[int], more: Sequence[str]) -> str:
    """Return C of the array ``numbers``, whose last elements may be known at run time."""
    if not more:
        return _NUMBERS.format(fixed=", ".join(map(str, numbers)))
    at = len(numbers)
    fixed = ", ".join([*map(str, numbers), *[n if n.isdecimal() else "0" for n in more]])
    assigned = [f"  numbers[{k}] = {n};" for k, n in enumerate(more, at) if not n.isdecimal()]
    return _RUN_TIME_NUMBERS.format(count=at + len(more), fixed=fixed, assignments="\n".join(assigned))
