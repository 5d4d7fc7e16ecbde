"""C++ class of a program, with the interface of TensorFlow's tfcompile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Final

from cyxla.aot import ctext
from cyxla.aot.program import NamedArray, Program, is_identifier
from cyxla.errors import InvalidArgumentError
from cyxla.types import Shape, from_numpy
from cyxla.xla.hlo.proto.schema import messages, utf8
from cyxla.xla.hlo.proto.values import write_shape

_TYPES: Final = {
    "bool": "bool", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "uint8": "uint8_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float16": "uint16_t", "bfloat16": "uint16_t",
    "float32": "float", "float64": "double", "complex64": "std::complex<float>", "complex128": "std::complex<double>",
}  # fmt: skip

_SECTION = """
#ifdef __cplusplus
#include <complex>

#include "cyxla/aot/function.h"

{opened}/* The program {name}. */
class {cls} final : public cyxla::aot::Function {{
 public:
  static constexpr int kNumArgs = {num_args}, kNumResults = {num_results}, kNumVariables = {num_variables};

  explicit {cls}(AllocMode mode = AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS)
      : Function(::{name}_info(), &::{name}, mode, Updates(), {num_updates}) {{}}
{members}
 private:
  static const int *Updates() {{
    static const int updates[] = {updates};
    return updates;
  }}
}};

{closed}#endif
"""
_WRITABLE = "  void set_{accessor}_data(const void *data) {{ set_arg_data({index}, data); }}\n"
_ACCESSORS = """  {type} *{accessor}_data() {{ return static_cast<{type} *>({kind}_data({index})); }}
  const {type} *{accessor}_data() const {{ return static_cast<const {type} *>({kind}_data({index})); }}
  {type} &{accessor}({parameters}) {{ return {accessor}_data()[{offset}]; }}
  const {type} &{accessor}({parameters}) const {{ return {accessor}_data()[{offset}]; }}
  static constexpr std::size_t {accessor}_size() {{ return {nbytes}; }}
  static constexpr std::size_t {accessor}_count() {{ return {count}; }}
"""
_NAMES = """
  static const char *const *{function}() {{
    static const char *const names[] = {{{names}nullptr}};
    return names;
  }}
"""
_SHAPE = """
  /* Types of the arguments and results: as text, and as a serialised xla.ProgramShapeProto. */
  static const char *ProgramShape() {{ return {text}; }}
  static const unsigned char *ProgramShapeProto(std::size_t *size) {{
    static const unsigned char proto[] = {proto};
    *size = sizeof(proto);
    return proto;
  }}
"""


def section(program: Program, cpp_class: str, *, program_shape: bool) -> str:
    """Return the C++ part of a header.

    Parameters
    ----------
    program : Program
        Program of the class.
    cpp_class : str
        Name of the class, with its namespaces, such as ``"ns::Model"``.
    program_shape : bool
        Whether the class tells the types of the program.

    Raises
    ------
    InvalidArgumentError
        The name is not one of a class.
    """
    *namespaces, name = split_class(cpp_class)
    if not namespaces and name == program.name:
        raise InvalidArgumentError(
            f"the class and the program are both named {name}", hint="give the class a namespace"
        )
    opened = "".join(f"namespace {n} {{\n" for n in namespaces)
    closed = "".join(f"}}  // namespace {n}\n" for n in reversed(namespaces))
    updates = [k for pair in sorted(program.written.items()) for k in pair]
    return _SECTION.format(
        name=program.name,
        cls=name,
        opened=opened + "\n" * bool(opened),
        closed=closed + "\n" * bool(closed),
        num_args=len(program.arguments),
        num_results=len(program.results),
        num_variables=len(program.variables),
        num_updates=len(updates) // 2,
        updates=ctext.numbers(updates),
        members="".join(_members(program)) + (_program_shape(program) if program_shape else ""),
    )


def split_class(cpp_class: str) -> list[str]:
    """Split the name of a class at its namespaces.

    Raises
    ------
    InvalidArgumentError
        A part is not an identifier.
    """
    parts = cpp_class.removeprefix("::").split("::")
    if not all(map(is_identifier, parts)):
        raise InvalidArgumentError(f"{cpp_class!r} is not the name of a C++ class", hint="such as ns::Model")
    return parts


def _members(program: Program) -> Iterator[str]:
    arguments, results = identifiers(program.arguments), identifiers(program.results)
    for k, array in enumerate(program.arguments):
        prefix = "var" if k in program.variables else "arg"
        yield f"\n  /* {ctext.comment(array.name)} */\n"
        for accessor in (f"arg{k}", f"{prefix}_{arguments[k]}"):
            yield _WRITABLE.format(accessor=accessor, index=k) + _accessors(array, accessor, "arg", k)
    for k, array in enumerate(program.results):
        yield f"\n  /* {ctext.comment(array.name)} */\n"
        named = [] if array.name.startswith("result") else [f"result_{results[k]}"]
        for accessor in (f"result{k}", *named):
            yield _accessors(array, accessor, "result", k)
    yield _names("ArgNames", program.arguments)
    yield _names("ResultNames", program.results)


def _accessors(array: NamedArray, accessor: str, kind: str, index: int) -> str:
    sizes = [f"dim{d}" for d in range(len(array.dims))]
    offset = "0"
    for size, n in zip(sizes, array.dims, strict=True):
        offset = size if offset == "0" else f"{offset if offset.isalnum() else f'({offset})'} * {n} + {size}"
    return _ACCESSORS.format(
        type=_TYPES.get(array.dtype.name, "uint8_t"),
        accessor=accessor,
        kind=kind,
        index=index,
        parameters=", ".join(f"std::size_t {s}" for s in sizes),
        offset=offset,
        nbytes=array.nbytes,
        count=array.nbytes // array.dtype.itemsize,
    )


def _names(function: str, arrays: Sequence[NamedArray]) -> str:
    return _NAMES.format(function=function, names="".join(f"{ctext.string(a.name)}, " for a in arrays))


def identifiers(arrays: Sequence[NamedArray]) -> list[str]:
    """Return identifiers, without a prefix, made of the names of arrays; all accessors made of them are different."""
    found: list[str] = []
    taken = {"data", "size"}  # methods of the base class
    for array in arrays:
        base = re.sub(r"[^A-Za-z0-9]+", "_", array.name).strip("_") or "unnamed"
        names = chain([base], (f"{base}_{number}" for number in count(2)))
        name = next(n for n in names if taken.isdisjoint(_accessor_names(n)))
        taken |= _accessor_names(name)
        found.append(name)
    return found


def _accessor_names(name: str) -> set[str]:
    return {name, *(f"{name}_{part}" for part in ("data", "size", "count"))}


def _program_shape(program: Program) -> str:
    shapes = [_shape(a) for a in program.arguments]
    result = Shape.tuple([_shape(a) for a in program.results])
    names = [a.name for a in program.arguments]
    text = ", ".join(f"{n}: {s}" for n, s in zip(names, shapes, strict=True))
    proto = messages()["ProgramShapeProto"]()
    for shape in shapes:
        write_shape(proto.parameters.add(), shape)
    write_shape(proto.result, result)
    proto.parameter_names.extend(utf8(n) for n in names)
    data = proto.SerializeToString(deterministic=True)
    return _SHAPE.format(text=ctext.string(f"({text}) -> {result}"), proto=ctext.numbers(data))


def _shape(array: NamedArray) -> Shape:
    return Shape.array(from_numpy(array.dtype), array.dims)
