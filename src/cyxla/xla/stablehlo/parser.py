"""Parser of MLIR text into operations."""

from __future__ import annotations

from typing import Any

from cyxla.types import Shape
from cyxla.xla.stablehlo.attributes import AttributeReader
from cyxla.xla.stablehlo.lexer import Lexer, unquote
from cyxla.xla.stablehlo.pretty_forms import read_pretty
from cyxla.xla.stablehlo.syntax import Operation, Region, Value
from cyxla.xla.stablehlo.types import TypeReader, unsupported

Argument = tuple[int, str, Value]  # position, name, value

_TERMINATORS = ("return", "func.return", "stablehlo.return", "mhlo.return", "chlo.return", "sdy.return")
_BARE = {"return": "func.return", "call": "func.call", "module": "builtin.module"}


class _Scope:
    """The names of a region."""

    __slots__ = ("isolated", "names", "region")

    def __init__(self, region: Region, isolated: bool) -> None:
        self.region = region
        self.isolated = isolated
        self.names: dict[str, list[Value]] = {}


class Parser:
    """Parser of one text.

    Attributes
    ----------
    lexer : Lexer
        Lexer of the text.
    types, attributes : TypeReader, AttributeReader
        Parsers of parts of operations.
    """

    def __init__(self, text: str) -> None:
        self.lexer = Lexer(text)
        self.types = TypeReader(self.lexer)
        self.attributes = AttributeReader(self.lexer, self.types)
        self._scopes: list[_Scope] = []

    def read(self) -> Region:
        """Read the text, and return a region of its top-level operations."""
        lexer, top = self.lexer, Region()
        self._scopes.append(_Scope(top, True))
        while lexer.token and lexer.token != "{-#":
            if lexer.token[:1] in "#!" and lexer.peek() == "=":
                self._alias()
            else:
                top.operations.append(self.operation())
        return top

    def _alias(self) -> None:
        lexer = self.lexer
        if lexer.token[0] == "!":
            self.types.define()
            return
        name = lexer.next()
        lexer.expect("=", "after an alias")
        self.attributes.aliases[name[1:]] = self.attributes.attribute()

    # Values

    def use(self) -> Value:
        """Read a value that is already defined."""
        lexer, at = self.lexer, self.lexer.start
        return self._find(lexer.expect_token("%", "a value"), at)

    def _find(self, token: str, at: int) -> Value:
        name, _, number = token.partition("#")
        index = int(number) if number and len(number) < 10 else 0
        between: list[Region] = []
        for scope in reversed(self._scopes):
            values = scope.names.get(name)
            if values is not None:
                if index >= len(values):
                    raise self.lexer.error(f"{name} has {len(values)} results, no number {number}", at)
                value = values[index]
                for region in between:
                    region.captures[value] = None
                return value
            if scope.isolated:
                break
            between.append(scope.region)
        raise self.lexer.error(f"{token[:40]} is not defined here", at)

    def _define(self, name: str, values: list[Value], at: int) -> None:
        names = self._scopes[-1].names
        if name in names:
            raise self.lexer.error(f"{name[:40]} is defined twice", at)
        names[name] = values

    def check_types(self, op: Operation, types: list[Shape], at: int) -> None:
        """Raise if types are not those of an operation's operands."""
        if len(types) != len(op.operands):
            raise self.lexer.error(f"{op.name} has {len(op.operands)} operands, but {len(types)} types", at)
        for k, (value, stated) in enumerate(zip(op.operands, types, strict=True)):
            if value.type is not stated:
                raise self.lexer.error(f"operand {k} of {op.name} is {value.type}, not {stated}", at)

    # Operations

    def operation(self) -> Operation:
        """Read one operation."""
        lexer = self.lexer
        names = self._result_names() if lexer.token[:1] == "%" else []
        op = Operation("", lexer.start)
        if lexer.token[:1] == '"':
            op.name = unquote(lexer.next())
            self._set_dialect(op)
            types = self._generic(op)
        else:
            word = lexer.word("an operation")
            op.name = _BARE.get(word, word)
            if "." not in op.name:
                raise lexer.error(f"expected an operation, found {word[:40]!r}", op.at)
            self._set_dialect(op)
            types = read_pretty(self, op)
        op.results = [Value(t, op) for t in types]
        if lexer.token == "loc":
            op.location = self.attributes.location()
        self._bind(op, names)
        return op

    def _set_dialect(self, op: Operation) -> None:
        dialect, _, op.kind = op.name.partition(".")
        if dialect == "vhlo":
            raise unsupported(self.lexer, f"operation {op.name[:40]}", op.at, "print the module as StableHLO")

    def _result_names(self) -> list[tuple[int, str, int]]:
        lexer = self.lexer
        names = []
        while True:
            at, name = lexer.start, lexer.expect_token("%", "a result")
            if "#" in name:
                raise lexer.error("a result must not have a number", at)
            count = lexer.integer("a number of results") if lexer.accept(":") else 1
            names.append((at, name, count))
            if not lexer.accept(","):
                break
        lexer.expect("=", "after the names of results")
        return names

    def _bind(self, op: Operation, names: list[tuple[int, str, int]]) -> None:
        num_names = sum(count for _, _, count in names)
        if names and num_names != len(op.results):
            raise self.lexer.error(f"{op.name} has {len(op.results)} results, but {num_names} names", names[0][0])
        position = 0
        for at, name, count in names:
            if count < 1:
                raise self.lexer.error(f"{name[:40]} is not the name of a result", at)
            self._define(name, op.results[position : position + count], at)
            position += count

    def _generic(self, op: Operation) -> list[Shape]:
        """Read ``(operands) <{properties}> ({regions}) {attributes} : (types) -> types``."""
        lexer = self.lexer
        lexer.expect("(", f"after the name of {op.name[:40]}")
        while lexer.token != ")":
            op.operands.append(self.use())
            if not lexer.accept(","):
                break
        lexer.expect(")", "after operands")
        if lexer.token == "[":
            raise unsupported(lexer, "control flow between blocks", lexer.start)
        if lexer.accept("<"):
            op.attributes.update(self.attributes.dictionary())
            lexer.expect(">", "after properties")
        if lexer.token == "(":
            self._regions(op)
        if lexer.token == "{":
            op.attributes.update(self.attributes.dictionary())
        lexer.expect(":", f"before the type of {op.name[:40]}")
        at = lexer.start
        kind = self.types.function_type()
        self.check_types(op, list(kind.inputs), at)
        return list(kind.results)

    def _regions(self, op: Operation) -> None:
        lexer = self.lexer
        lexer.expect("(", "before regions")
        isolated = op.name in ("func.func", "builtin.module")
        while lexer.token != ")":
            op.regions.append(self.region([], isolated=isolated))
            if not lexer.accept(","):
                break
        lexer.expect(")", "after regions")

    # Regions

    def region(self, arguments: list[Argument], *, isolated: bool = False) -> Region:
        """Read ``{...}``; arguments that a pretty form has named already come first."""
        lexer, region = self.lexer, Region()
        lexer.enter()
        lexer.expect("{", "before a region")
        self._scopes.append(_Scope(region, isolated))
        self._arguments(region, arguments)
        if lexer.token[:1] == "^":
            self._block_head(region)
        while lexer.token != "}":
            if lexer.token[:1] == "^":
                raise unsupported(lexer, "a region of several blocks", lexer.start)
            if not lexer.token:
                raise lexer.error("expected '}' of a region, found the end")
            if lexer.token[:1] in "#!" and lexer.peek() == "=":
                self._alias()
                continue
            region.operations.append(self.operation())
            if region.operations[-1].name in _TERMINATORS and lexer.token[:1] not in "}^":
                raise lexer.error(f"expected '}}' after {region.operations[-1].name}, found {lexer.next_token()}")
        self._scopes.pop()
        lexer.next()
        lexer.leave()
        return region

    def _arguments(self, region: Region, arguments: list[Argument]) -> None:
        for at, name, value in arguments:
            self._define(name, [value], at)
            region.arguments.append(value)

    def _block_head(self, region: Region) -> None:
        lexer = self.lexer
        lexer.next()
        if lexer.accept("("):
            arguments = []
            while lexer.token != ")":
                arguments.append(self.block_argument())
                if not lexer.accept(","):
                    break
            lexer.expect(")", "after the arguments of a block")
            self._arguments(region, arguments)
        lexer.expect(":", "after the head of a block")

    def block_argument(self, attributes: list[Any] | None = None) -> Argument:
        """Read ``%name: type``, its attributes and its location."""
        lexer, at = self.lexer, self.lexer.start
        name = lexer.expect_token("%", "an argument")
        lexer.expect(":", "after an argument")
        value = Value(self.types.type())
        argument_attributes = self.optional_dictionary()
        if attributes is not None:
            attributes.append(argument_attributes)
        if lexer.token == "loc":
            self.attributes.location()
        return at, name, value

    def optional_dictionary(self) -> dict[str, Any]:
        """Read a dictionary, if there is one."""
        return self.attributes.dictionary() if self.lexer.token == "{" else {}
