"""Instances of the headers of kernels, whose C is the same for every program and whose parameters are macros.

A C preprocessor alone can instantiate these headers. `instantiate` resolves conditions, parameters, joined names and
constant sizes already, which takes a C compiler several times as long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from cyxla.include_dir import get_include
from cyxla.records import dataclass

_BEGIN, _END = "/* instance of ", " */\n"

_INSTANCE_FUNCTION = re.compile(rf"{re.escape(_BEGIN)}[\w.]+: (\w+){re.escape(_END)}")
_COMMENT = re.compile(r"[ \t]*/\*[\s\S]*?\*/")
_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n\s*\n")
_UNDEFINITION = re.compile(r"^#undef (\w+)\n", re.MULTILINE)
_CONDITION = re.compile(r"^#(?:el)?if\b(.*)", re.MULTILINE)
_DIRECTIVE = re.compile(r"#(if|elif|else|endif)\b(.*)\n")
_NAME_MACRO = re.compile(r"^#define (\w+)(?:\((\w+)\))? (CYX_JOIN\(\w+(?:\(\w+\))?, \w+\)|\w+\(\w+\))\n", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO_CALL = re.compile(r"(\w+)\(")
_NAME_CALL = re.compile(r"(?!CYX_JOIN)\b(\w+)\(([\w{}]+)\)")
_JOIN = re.compile(r"CYX_JOIN\(([\w{}]+), ([\w{}]+)\)")


def instantiate(header: str, constants: Mapping[str, int] | None = None, /, **parameters: str | int) -> str:
    """Return the text of a kernel header for some parameters, between two comments.

    Parameters
    ----------
    header : str
        Name of a file under ``include/cyxla/kernels``, with its folder. A template undefines its parameters at its end;
        one that leaves that to a later header is instantiated by definitions of the parameters before it.
    constants : mapping of str to int, optional
        Values of the members that the text reads through the pointer `s`.
    **parameters : str or int
        Macros that the header asks for. Text of a program never stands in them.
    """
    return _instance(header, None if constants is None else tuple(constants.items()), tuple(parameters.items()))


@lru_cache(maxsize=256)
def _instance(
    header: str, constants: tuple[tuple[str, int], ...] | None, parameters: tuple[tuple[str, str | int], ...]
) -> str:
    values = dict(parameters)
    body = _body(header)
    if values and values.keys() <= _undefined_names(header):
        flags = _condition_names(header).intersection(values)
        template = _template(header, tuple(values), tuple((name, values[name]) for name in sorted(flags)))
        body = template.text(values, dict(constants or ()))
    else:
        body = "".join(f"#define {name} {value}\n" for name, value in parameters) + body
    function = next((f": {value}" for name, value in parameters if name.endswith("_NAME")), "")
    name = header.rpartition("/")[2]
    return f"{_BEGIN}{name}{function}{_END}{body}/* end of {name}{_END}"


def instance_function(text: str) -> str:
    """Return the name of the function of an instance of a header that defines one of a given name; else ""."""
    match = _INSTANCE_FUNCTION.match(text)
    return match[1] if match else ""


def is_instance(text: str) -> bool:
    """Return True if a text begins with what `instantiate` returns."""
    return text.startswith(_BEGIN)


def split_instances(text: str) -> list[str]:
    """Cut a text into instances of headers and what stands between them."""
    pieces = []
    start = 0
    while (begin := text.find(_BEGIN, start)) >= 0:
        header = text[begin + len(_BEGIN) : text.index(_END, begin)].partition(":")[0]
        ending = f"/* end of {header}{_END}"
        end = text.index(ending, begin) + len(ending)
        pieces += [text[start:begin], text[begin:end]]
        start = end
    return [piece for piece in (*pieces, text[start:]) if piece]


@dataclass(frozen=True)
class _Template:
    """A header whose conditions are resolved, cut at what depends on its other parameters.

    Attributes
    ----------
    pieces : list of tuple of str
        Fixed text, followed by a macro with its argument, or by a member of the constants.
    end : str
        Fixed text behind the last piece.
    names : dict of str to str
        Bodies of the macros that stand for joined names; ``{}`` is the argument.
    """

    pieces: list[tuple[str, str, str, str]]
    end: str
    names: dict[str, str]

    def text(self, parameters: Mapping[str, str | int], constants: Mapping[str, int]) -> str:
        """Return the text for given parameters and constants."""
        values = {name: str(value) for name, value in parameters.items()}
        for name, body in self.names.items():
            values[name] = _joined(body, values)
        parts = []
        for fixed, macro, argument, member in self.pieces:
            parts.append(fixed)
            if macro:
                parts.append(values[macro].replace("{}", argument))
            elif member in constants:
                parts.append(f"{constants[member]}LL" if constants[member] >= 0 else f"({constants[member]}LL)")
            else:
                parts.append(f"s->{member}")
        return "".join(parts) + self.end


@cache
def _template(header: str, parameters: tuple[str, ...], flags: tuple[tuple[str, str | int], ...]) -> _Template:
    """Cut a header, given the names of its parameters and the values of those in conditions."""
    text = _resolved(_body(header), dict(flags))
    names = _joined_names(text)
    functions = [name for name, body in names.items() if "{}" in body]
    objects = [*parameters, *(name for name in names if name not in functions)]
    known = "|".join((*functions, *objects))
    text = re.sub(rf"^#(?:define|undef) (?:{known})\b(?!\w).*\n", "", text, flags=re.MULTILINE)
    uses = re.compile(rf"\b(?:({'|'.join(functions) or '(?!)'})\(([\w#]+)\)|({'|'.join(objects)})\b|s->(\w+))")
    pieces, start = [], 0
    for use in uses.finditer(text):
        function, argument, name, member = use.groups("")
        pieces.append((text[start : use.start()], function or name, argument, member))
        start = use.end()
    return _Template(pieces, text[start:], names)


def _joined_names(text: str) -> dict[str, str]:
    """Return the bodies of macros that consist of nothing but CYX_JOIN, each other and parameters; ``{}``: argument."""
    names: dict[str, str] = {}
    for name, argument, body in _NAME_MACRO.findall(text):
        if all(macro == "CYX_JOIN" or macro in names for macro in _MACRO_CALL.findall(body)):
            names[name] = re.sub(rf"\b{argument}\b", "{}", body) if argument else body
    return names


def _joined(body: str, values: Mapping[str, str]) -> str:
    """Expand the body of a joined name, given the values of parameters and of names before it."""
    body = _NAME_CALL.sub(lambda m: values[m[1]].replace("{}", m[2]), body)
    return _JOIN.sub(r"\1_\2", _WORD.sub(lambda m: values.get(m[0], m[0]), body))


@cache
def _body(header: str) -> str:
    """Text of a header without comments and includes: `prelude` pastes the blocks that it names."""
    text = Path(get_include(), "cyxla", "kernels", header).read_text(encoding="utf-8")
    return _BLANK_LINES.sub("\n", _INCLUDE.sub("", _COMMENT.sub("", text))).lstrip()


@cache
def _undefined_names(header: str) -> frozenset[str]:
    """Names that a header undefines."""
    return frozenset(_UNDEFINITION.findall(_body(header)))


@cache
def _condition_names(header: str) -> frozenset[str]:
    """Names in the conditions of a header."""
    return frozenset(name for line in _CONDITION.findall(_body(header)) for name in _WORD.findall(line))


@dataclass
class _Condition:
    """An open ``#if``.

    Attributes
    ----------
    is_kept : bool
        True if its directives stay in the text.
    is_outer_used, is_used : bool
        True if the text around it is used, and that of its current branch.
    was_used : bool
        True if a branch was used up to here.
    """

    is_kept: bool
    is_outer_used: bool
    is_used: bool
    was_used: bool


def _resolved(text: str, flags: Mapping[str, str | int]) -> str:
    """Return a text without the conditions that ask for nothing but flags, and without what they leave out."""
    lines: list[str] = []
    conditions: list[_Condition] = []
    for line in text.splitlines(keepends=True):
        directive = _DIRECTIVE.match(line)
        is_used = not conditions or conditions[-1].is_used
        if directive is None:
            if is_used:
                lines.append(line)
            continue
        keyword, expression = directive.groups()
        if keyword == "if":
            is_kept = not flags.keys() >= set(_WORD.findall(expression))
            is_true = is_used and (is_kept or _is_true(expression, flags))
            conditions.append(_Condition(is_kept, is_used, is_true, is_true))
        condition = conditions[-1]
        if keyword == "endif":
            conditions.pop()
        elif keyword != "if" and not condition.is_kept:
            is_next = condition.is_outer_used and not condition.was_used
            condition.is_used = is_next and (keyword == "else" or _is_true(expression, flags))
            condition.was_used |= condition.is_used
        if condition.is_kept and condition.is_outer_used:
            lines.append(line)
    return "".join(lines)


def _is_true(expression: str, flags: Mapping[str, str | int]) -> bool:
    """Evaluate a condition of ``||``, ``&&``, ``!`` and ``==``."""
    return any(all(_holds(term.strip(), flags) for term in terms.split("&&")) for terms in expression.split("||"))


def _holds(term: str, flags: Mapping[str, str | int]) -> bool:
    name, equals, number = term.removeprefix("!").partition(" == ")
    value = int(str(flags[name]).rstrip("lLuU"))
    is_equal = value == int(number) if equals else value != 0
    return is_equal != term.startswith("!")
