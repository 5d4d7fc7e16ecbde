"""Header of a library: the interface of its programs in C."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.aot import ctext
from cyxla.aot.program import NamedArray, Program

_HEADER = """/* {title}
 *
{text}
 */
#ifndef {guard}
#define {guard}

#include "cyxla/aot/library.h"

#ifdef __cplusplus
extern "C" {{
#endif

{declarations}
#ifdef __cplusplus
}}
#endif
{cxx}
#endif
"""
_PROGRAM = """const cyx_aot_info *{name}_info(void);

/* {name}: returns 0, or a code of library.h. The temporaries of a call have {name}_info()->temp_bytes bytes.
{sizes}{arrays}
{doc} */
int32_t {name}(const void *const *args, void *const *results, const cyx_aot_run *run);
"""
_SIZES = " * A size outside of its range is CYX_INVALID_ARGUMENT (3), and nothing is written.\n"
_LOAD = """/* Load the file of weights, once and before any other call; returns 0, 5 (no file) or 15 (not its file). */
int32_t {name}_load(const char *path);

"""


def text(name: str, programs: Sequence[Program], *, in_file: bool, cxx: str = "") -> str:
    """Return the header of a library.

    Parameters
    ----------
    name : str
        Name of the library.
    programs : sequence of Program
        Programs of the library.
    in_file : bool
        Whether the weights are in a file.
    cxx : str
        Part for C++.
    """
    load = _LOAD.format(name=name) if in_file else ""
    names = ", ".join(p.name for p in programs)
    return _HEADER.format(
        title=f"Interface of the library {name}, made by cyxla.",
        text=f" * Programs: {names}. See cyxla/aot/library.h for the types.",
        guard=f"CYXLA_AOT_{name.upper()}_H",
        cxx=cxx,
        declarations=load + "\n".join(map(_declaration, programs)),
    )


def _declaration(program: Program) -> str:
    rows = [f" *   args[{k}]: {describe(a)}" for k, a in enumerate(program.arguments)]
    rows += [f" *   results[{k}]: {describe(a)}" for k, a in enumerate(program.results)]
    sizes = _SIZES if any(a.bound is not None for a in program.arguments) else ""
    doc = "".join(f" * {ctext.comment(line)}\n" for line in program.doc.splitlines())
    return _PROGRAM.format(name=program.name, sizes=sizes, arrays="\n".join(rows), doc=f" *\n{doc}" if doc else "")


def describe(array: NamedArray) -> str:
    """Describe an array in a comment."""
    bound = "" if array.bound is None else f", 0 to {array.bound}"
    return ctext.comment(f"{array.dtype.name}[{','.join(map(str, array.dims))}] {array.name}{bound}")
