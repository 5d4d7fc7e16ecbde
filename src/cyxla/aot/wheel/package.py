"""Python files of a wheel's package: ``__init__.py``, its types, the calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cyxla.aot.program import Program
from cyxla.aot.wheel import descriptions
from cyxla.aot.wheel.runtime import calls
from cyxla.aot.wheel.trees import Record, Signature
from cyxla.types import from_numpy

#: Name of the extension module.
EXTENSION: Final = "_programs"
#: Numbers that the extension has for the kinds of results without dimensions.
RANK0: Final = {"array": 0, "scalar": 1, "python": 2}

_INIT: Final = '''"""{summary}"""

{imports}

__all__ = {names!r}
__version__ = {version!r}
{classes}{load}

def _bind(number, names, trees, function, rank0, written, finishes):  # type: ignore[no-untyped-def]
    types, result_types = (tuple([a.dtype for a in arrays]) for arrays in function[1:3])
    {extension}._bind(
        number, names, trees, types, function.result, result_types, rank0, written, finishes, function
    )

{bindings}{threads}'''
_BINDING: Final = """
_bind(
    {number}, {names!r}, {trees!r},
    _Function(
        {name!r},
        {arguments},
        {results},
        {result},
        {written!r},
        {checks!r},
    ),
    {rank0!r}, {targets!r}, {finishes!r},
)
"""
_LOAD: Final = """
_status = {extension}._load(_os.path.join(_os.path.dirname(__file__), {file!r}))
if _status:
    raise ImportError(f"{file} beside {{__file__}} is missing or of another version (status {{_status}})")
"""
_THREADS: Final = '''

def set_threads(count: int) -> None:
    """Set the number of threads of further calls; 0 stands for one for each processor."""
    {extension}._set_threads(count)
'''
_STUB: Final = '''"""{summary}"""

{imports}

__version__: str
{classes}{functions}{threads}'''
_STUB_FUNCTION: Final = '''
def {name}({parameters}) -> {result}:
    """{doc}
    """
'''


def files(
    name: str, programs: Sequence[tuple[Program, Signature]], *, version: str, weights: str, threads: bool
) -> dict[str, bytes]:
    """Return the Python files of a package by name.

    Parameters
    ----------
    name : str
        Name of the package.
    programs : sequence of (Program, Signature)
        Functions and their signatures.
    version : str
        Version of the package.
    weights : str
        Name of the file of weights beside the module; empty if they are inside.
    threads : bool
        Whether the functions have threads of their own.
    """
    has_setter = threads and all(p.name != "set_threads" for p, _ in programs)
    runtime = Path(calls.__file__).read_bytes()
    return {
        "__init__.py": _init(name, programs, version, weights, has_setter).encode(),
        "__init__.pyi": _stub(name, programs, has_setter).encode(),
        "_calls.py": runtime,
        "py.typed": b"",
    }


def summary_of(name: str, programs: Sequence[tuple[Program, Signature]]) -> str:
    """Return a line about a package."""
    return f"Functions of {name}, compiled ahead of time: {', '.join(p.name for p, _ in programs)}."


def uses_ml_dtypes(programs: Sequence[tuple[Program, Signature]]) -> bool:
    """Return True if an array has an element type of ml_dtypes."""
    return any(a.dtype.isbuiltin != 1 for p, _ in programs for a in (*p.arguments, *p.results))


def _init(
    name: str, programs: Sequence[tuple[Program, Signature]], version: str, weights: str, has_setter: bool
) -> str:
    records = _records(programs)
    imports = ["import os as _os"] if weights else []
    imports += ["from collections import namedtuple as _namedtuple"] if any(r.is_tuple for r in records) else []
    imports += ["from dataclasses import dataclass as _dataclass"] if any(not r.is_tuple for r in records) else []
    imports += ["from typing import Any"] if any(not r.is_tuple for r in records) else []
    imports += ["", "import ml_dtypes as _ml_dtypes"] if uses_ml_dtypes(programs) else [""]
    imports += ["import numpy as _np", "", f"from . import {EXTENSION}"]
    imports += ["from ._calls import Array as _Array", "from ._calls import Function as _Function"]
    imports += [f"from .{EXTENSION} import {', '.join(sorted(p.name for p, _ in programs))}"]
    names = sorted([p.name for p, _ in programs] + [r.name for r in records] + ["set_threads"] * has_setter)
    return _INIT.format(
        summary=summary_of(name, programs),
        imports="\n".join(imports).strip(),
        names=names,
        version=version,
        extension=EXTENSION,
        classes="".join(map(_class, records)),
        load=_LOAD.format(extension=EXTENSION, file=weights) if weights else "",
        bindings="".join(_binding(k, p, s) for k, (p, s) in enumerate(programs)),
        threads=_THREADS.format(extension=EXTENSION) if has_setter else "",
    )


def _records(programs: Sequence[tuple[Program, Signature]]) -> list[Record]:
    return list(dict.fromkeys(r for _, s in programs for r in s.records))


def _class(record: Record) -> str:
    if record.is_tuple:
        return f"\n{record.name} = _namedtuple({record.name!r}, {record.fields!r})\n"
    fields = "\n".join(f"    {field}: Any" for field in record.fields) or "    pass"
    return f"\n\n@_dataclass\nclass {record.name}:\n{fields}\n\n"


def _binding(number: int, program: Program, signature: Signature) -> str:
    targets = [-1] * len(program.results)
    for argument, result in program.written.items():
        targets[result] = argument
    return _BINDING.format(
        number=number,
        names=signature.names,
        trees=signature.trees,
        name=program.name,
        arguments=_arrays(program.arguments),
        results=_arrays(program.results),
        result=_tree(signature.result),
        written=tuple(program.written),
        checks=tuple([(c.kind, c.text) for c in program.checks]),
        rank0=tuple([RANK0[kind] for kind in descriptions.rank0_of(program)]),
        targets=tuple(targets),
        finishes=signature.finishes,
    )


def _tree(tree: Any) -> str:
    """Return the text of a tree, with the names of classes."""
    if isinstance(tree, int):
        return repr(tree)
    kind, keys, children, text = tree
    names = f"({keys[0].name}, {keys[1]!r})" if kind == calls.RECORD else repr(keys)
    inner = "".join(f"{_tree(child)}, " for child in children)
    return f"({kind}, {names}, ({inner}), {text!r})"


def _arrays(arrays: Sequence[Any]) -> str:
    inner = "".join(f"_Array({a.name!r}, {_dtype(a.dtype)}, {tuple(a.dims)!r}), " for a in arrays)
    return f"({inner.rstrip()})"


def _dtype(dtype: Any) -> str:
    if dtype.isbuiltin == 1:
        return f"_np.dtype({dtype.name!r})"
    assert from_numpy(dtype) is not None  # one of ml_dtypes, under its own name
    return f"_np.dtype(_ml_dtypes.{dtype.name})"


def _stub(name: str, programs: Sequence[tuple[Program, Signature]], has_setter: bool) -> str:
    functions = "".join(_stub_function(p, s) for p, s in programs)
    imports = ["from collections.abc import Sequence"] if "Sequence[" in functions else []
    classes = "".join(
        f"\nclass {r.name}{'(NamedTuple)' if r.is_tuple else ''}:\n" + "".join(f"    {f}: Any\n" for f in r.fields)
        for r in _records(programs)
    )
    imports += [f"from typing import Any{', NamedTuple' if 'NamedTuple' in classes else ''}"]
    imports += ["", "import numpy as np"] if "np." in functions else [""]
    typing = [t for t in ("ArrayLike", "NDArray") if t in functions]
    imports += [f"from numpy.typing import {', '.join(typing)}"] if typing else []
    setter = '\ndef set_threads(count: int) -> None:\n    """Set the number of threads of further calls."""\n'
    return _STUB.format(
        summary=summary_of(name, programs), imports="\n".join(imports).strip(), classes=classes, functions=functions,
        threads=setter if has_setter else "",
    )  # fmt: skip


def _stub_function(program: Program, signature: Signature) -> str:
    typed = [f"{n}: {descriptions.argument_type(t)}" for n, t in zip(signature.names, signature.trees, strict=True)]
    typed += ["*", "out: Any = ..."] if "out" not in signature.names else []
    doc = descriptions.docstring(program, signature).replace("\\", "\\\\").replace('"""', "'''")
    return _STUB_FUNCTION.format(
        name=program.name,
        parameters=", ".join(typed),
        result=descriptions.result_type(signature.result, program),
        doc="\n".join(f"    {line}" if n and line else line for n, line in enumerate(doc.splitlines())),
    )
