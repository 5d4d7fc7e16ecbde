"""The pretty forms of operations, which differ mostly in the names of their attributes.

A pretty form is operands, words and ``key = value`` in any order, a dictionary, and types after a colon. Other forms
have
functions of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cyxla.types import Shape
from cyxla.xla.stablehlo.attributes import Keyword, Symbol
from cyxla.xla.stablehlo.lexer import symbol, unquote
from cyxla.xla.stablehlo.syntax import Operation, Region, Value
from cyxla.xla.stablehlo.types import FunctionType

if TYPE_CHECKING:
    from cyxla.xla.stablehlo.parser import Argument, Parser

# fmt: off
#: Attribute name by name in the pretty form, for each operation.
KEYS: Final[dict[str, dict[str, str]]] = {
    "broadcast":                {"sizes": "broadcast_sizes"},
    "broadcast_in_dim":         {"dims": "broadcast_dimensions"},
    "concatenate":              {"dim": "dimension"},
    "dot":                      {"precision": "precision_config"},
    "dot_general":              {"precision": "precision_config"},
    "dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "dynamic_iota":             {"dim": "iota_dimension"},
    "dynamic_slice":            {"sizes": "slice_sizes"},
    "einsum":                   {"config": "einsum_config"},
    "fft":                      {"type": "fft_type", "length": "fft_length"},
    "get_dimension_size":       {"dim": "dimension"},
    "iota":                     {"dim": "iota_dimension"},
    "pad":                      {"low": "edge_padding_low", "high": "edge_padding_high",
                                 "interior": "interior_padding"},
    "reverse":                  {"dims": "dimensions"},
    "rng":                      {"distribution": "rng_distribution"},
    "rng_bit_generator":        {"algorithm": "rng_algorithm"},
    "set_dimension_size":       {"dim": "dimension"},
    "torch_index_select":       {"dim": "dim"},
    "transpose":                {"dims": "permutation"},
    "unary_einsum":             {"config": "einsum_config"},
}
#: Attributes of bare words and strings, in order.
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "compare": ("comparison_direction", "compare_type"), "broadcast_compare": ("comparison_direction", "compare_type"),
    "composite": ("name",), "trace": ("tag",),
}
# fmt: on
_BATCH = {"batching_dims": "batching_dimensions", "contracting_dims": "contracting_dimensions"}
_PUNCTUATION = ("(", ")", ",")


def read_pretty(parser: Parser, op: Operation) -> list[Shape]:
    """Read an operation after its name, and return the types of its results."""
    special = _SPECIAL.get(op.name.partition(".")[2] if op.name.partition(".")[0] in _DIALECTS else op.name)
    if special is not None:
        return special(parser, op)
    _items(parser, op)
    return _signature(parser, op)


_DIALECTS = ("stablehlo", "mhlo", "chlo")


def _items(parser: Parser, op: Operation) -> None:
    lexer, words, open_ = parser.lexer, list(WORDS.get(op.kind, ())), 0
    while True:
        token = lexer.token
        if token in _PUNCTUATION:
            open_ += (token == "(") - (token == ")")
            if open_ < 0:
                raise lexer.error(f"')' without '(' in {op.name}")
            lexer.next()
        elif token in ("{", "attributes"):
            lexer.accept("attributes")
            _dictionary(parser, op)
        elif not _item(parser, op, words):
            break
    if open_:
        raise lexer.error(f"expected ')' of {op.name}, found {lexer.next_token()}")


def _item(parser: Parser, op: Operation, words: list[str]) -> bool:
    """Read an operand, an attribute or a word; return False if none is next."""
    lexer = parser.lexer
    first = lexer.token[:1]
    is_named = first.isalpha() or first == "_"
    if first == "%":
        op.operands.append(parser.use())
    elif first == "@":
        key = "call_target_name" if op.kind == "custom_call" else "callee"
        op.attributes[key] = Symbol(symbol(lexer.next()))
    elif is_named and lexer.peek() == "=":
        _key_value(parser, op)
    elif words and (is_named or first == '"'):
        op.attributes[words.pop(0)] = Keyword(lexer.next()) if is_named else unquote(lexer.next())
    else:
        return False
    return True


def _dictionary(parser: Parser, op: Operation) -> None:
    at = parser.lexer.start
    for key, value in parser.attributes.dictionary().items():
        if key in op.attributes:
            raise parser.lexer.error(f"attribute {key[:40]!r} of {op.name} appears twice", at)
        op.attributes[key] = value


def _key_value(parser: Parser, op: Operation) -> None:
    lexer, at = parser.lexer, parser.lexer.start
    key = lexer.next()
    lexer.expect("=", f"after {key[:40]}")
    if key in op.attributes:
        raise lexer.error(f"{key[:40]!r} of {op.name} appears twice", at)
    if key in _BATCH:
        keys = parser.attributes.list()
        lexer.expect("x", f"between the two lists of {key}")
        op.attributes[f"lhs_{_BATCH[key]}"], op.attributes[f"rhs_{_BATCH[key]}"] = keys, parser.attributes.list()
    elif key == "dim_numbers":
        op.attributes["dimension_numbers"] = parser.attributes.conv_dims()
    elif key == "window" and lexer.token == "{":
        op.attributes.update(_window(parser))
    elif key == "precision":
        op.attributes["precision_config"] = _words(parser)
    else:
        op.attributes[KEYS.get(op.kind, {}).get(key, key)] = parser.attributes.untyped()


def _words(parser: Parser) -> list[Any]:
    """Read a list of words, such as ``[DEFAULT, HIGHEST]``."""
    lexer = parser.lexer
    lexer.expect("[", "before a list")
    words = []
    while lexer.token != "]":
        words.append(parser.attributes.value())
        if not lexer.accept(","):
            break
    lexer.expect("]", "after a list")
    return words


_WINDOW = {
    "stride": "window_strides", "pad": "padding", "lhs_dilate": "lhs_dilation", "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}  # fmt: skip


def _window(parser: Parser) -> dict[str, Any]:
    at = parser.lexer.start
    window = parser.attributes.dictionary()
    unknown = [k for k in window if k not in _WINDOW]
    if unknown:
        raise parser.lexer.error(f"a window has no {unknown[0][:40]!r}", at)
    return {_WINDOW[k]: v for k, v in window.items()}


# Types


def signature(parser: Parser) -> tuple[list[Shape], list[Shape] | None]:
    """Read types after a colon: of operands, and of results if there is an arrow."""
    lexer, types = parser.lexer, parser.types
    operand_types = types.type_list() if lexer.token == "(" else types.types()
    return operand_types, types.results() if lexer.accept("->") else None


_ALL = ("optimization_barrier", "while")


def _signature(parser: Parser, op: Operation) -> list[Shape]:
    lexer, at = parser.lexer, parser.lexer.start
    if op.kind == "return" or op.name == "return":
        if lexer.accept(":"):
            operand_types, _ = signature(parser)
            parser.check_types(op, operand_types, at)
        return []
    lexer.expect(":", f"before the types of {op.name}")
    operand_types, results = signature(parser)
    if results is not None:
        parser.check_types(op, operand_types, at)
        return results
    if op.kind in _ALL:
        parser.check_types(op, operand_types, at)
        return operand_types
    if op.kind in ("send", "outfeed", "trace") and not operand_types:
        return []
    if not operand_types:
        return []
    return operand_types[-1:]


# Operations with pretty forms of their own


def _constant(parser: Parser, op: Operation) -> list[Shape]:
    lexer = parser.lexer
    if lexer.token == "(":
        _items(parser, op)
        return _signature(parser, op)
    if lexer.token == "{":
        _dictionary(parser, op)
    if op.name == "arith.constant" and lexer.token not in ("dense", "dense_resource"):
        op.attributes["value"] = parser.attributes.untyped()
        lexer.expect(":", "before the type of a constant")
        return [parser.types.type()]
    op.attributes["value"] = value = parser.attributes.attribute()
    shape = getattr(value, "shape", None)
    if not isinstance(shape, Shape):
        raise lexer.error(f"{op.name} needs a dense attribute", op.at)
    return [shape]


def _slice(parser: Parser, op: Operation) -> list[Shape]:
    lexer = parser.lexer
    op.operands.append(parser.use())
    ranges = []
    lexer.expect("[", "before the ranges of a slice")
    while lexer.token != "]":
        start = lexer.integer("a start")
        lexer.expect(":", "after a start")
        limit = lexer.integer("a limit")
        ranges.append((start, limit, lexer.integer("a stride") if lexer.accept(":") else 1))
        if not lexer.accept(","):
            break
    lexer.expect("]", "after the ranges of a slice")
    for k, name in enumerate(("start_indices", "limit_indices", "strides")):
        op.attributes[name] = tuple(r[k] for r in ranges)
    _items(parser, op)
    return _signature(parser, op)


def _element(parser: Parser, op: Operation) -> list[Shape]:
    lexer = parser.lexer
    op.operands.append(parser.use())
    lexer.expect("[", "before an index")
    op.attributes["index"] = lexer.integer("an index")
    lexer.expect("]", "after an index")
    _items(parser, op)
    return _signature(parser, op)


def _while(parser: Parser, op: Operation) -> list[Shape]:
    lexer = parser.lexer
    lexer.expect("(", "after while")
    names = []
    while lexer.token != ")":
        names.append((lexer.start, lexer.expect_token("%", "an argument")))
        lexer.expect("=", "after an argument of while")
        op.operands.append(parser.use())
        if not lexer.accept(","):
            break
    lexer.expect(")", "after the arguments of while")
    at = lexer.start
    types = signature(parser)[0] if lexer.accept(":") else []
    parser.check_types(op, types, at)
    if lexer.accept("attributes"):
        _dictionary(parser, op)
    for word in ("cond", "do"):
        lexer.expect(word, "in while")
        arguments = [(at, name, Value(t)) for (at, name), t in zip(names, types, strict=True)]
        op.regions.append(parser.region(arguments))
    return types


def _reduce(parser: Parser, op: Operation) -> list[Shape]:
    lexer = parser.lexer
    inputs, inits = [], []
    while lexer.accept("("):
        inputs.append(parser.use())
        lexer.expect("init", "after an array of reduce")
        lexer.expect(":", "after init")
        inits.append(parser.use())
        lexer.expect(")", "after an initial value")
        if not lexer.accept(","):
            break
    op.operands += inputs + inits
    applied = ""
    if lexer.accept("applies"):
        applied = unquote(lexer.next()) if lexer.token[:1] == '"' else lexer.word("an operation")
    lexer.expect("across", "in reduce")
    lexer.expect("dimensions", "after across")
    lexer.expect("=", "after dimensions")
    op.attributes["dimensions"] = parser.attributes.list()
    if lexer.token == "{":
        _dictionary(parser, op)
    results = _signature(parser, op) if lexer.token == ":" else []
    if applied:
        op.attributes["applies"] = Keyword(applied)
    else:
        op.regions.append(_reducer(parser, len(inputs)))
    return results


def _reducer(parser: Parser, count: int) -> Region:
    lexer = parser.lexer
    lexer.expect("reducer", "after the types of reduce")
    left, right = [], []
    for _ in range(count):
        lexer.expect("(", "before two arguments of a reducer")
        left.append(parser.block_argument())
        lexer.expect(",", "between two arguments of a reducer")
        right.append(parser.block_argument())
        lexer.expect(")", "after two arguments of a reducer")
    return parser.region(left + right)


def _scan(parser: Parser, op: Operation) -> list[Shape]:
    """Read ``(arrays) inits (carries) dimension = 0 attributes {..} {region} : (types) -> (types)``."""
    lexer = parser.lexer
    counts: list[int] = []
    for context in ("after scan", "after inits"):
        if counts:
            lexer.expect("inits", "after the arrays of scan")
        lexer.expect("(", context)
        first = len(op.operands)
        while lexer.token != ")":
            op.operands.append(parser.use())
            if not lexer.accept(","):
                break
        lexer.expect(")", "after operands")
        counts.append(len(op.operands) - first)
    lexer.expect("dimension", "after the carries of scan")
    lexer.expect("=", "after dimension")
    op.attributes["dimension"] = lexer.integer("a dimension")
    op.attributes["operandSegmentSizes"] = tuple(counts)
    if lexer.accept("attributes"):
        _dictionary(parser, op)
    op.regions.append(parser.region([]))
    return _signature(parser, op)


def _function(parser: Parser, op: Operation) -> list[Shape]:
    lexer = parser.lexer
    if lexer.token in ("public", "private", "nested"):
        op.attributes["sym_visibility"] = lexer.next()
    op.attributes["sym_name"] = symbol(lexer.expect_token("@", "the name of a function"))
    arguments: list[Argument] = []
    function_arguments: list[Any] = []
    lexer.expect("(", "before the arguments of a function")
    while lexer.token != ")":
        if lexer.token[:1] == "%":
            arguments.append(parser.block_argument(function_arguments))
        else:  # of a function without a body
            arguments.append((lexer.start, "", Value(parser.types.type())))
            function_arguments.append(parser.optional_dictionary())
        if not lexer.accept(","):
            break
    lexer.expect(")", "after the arguments of a function")
    results, res_attrs = _function_results(parser) if lexer.accept("->") else ([], [])
    op.attributes["function_type"] = FunctionType(tuple(a[2].type for a in arguments), tuple(results))
    op.attributes["arg_attrs"], op.attributes["res_attrs"] = function_arguments, res_attrs
    if lexer.accept("attributes"):
        _dictionary(parser, op)
    if lexer.token == "{":
        op.regions.append(parser.region(arguments, isolated=True))
    return []


def _function_results(parser: Parser) -> tuple[list[Shape], list[Any]]:
    lexer = parser.lexer
    if not lexer.accept("("):
        return [parser.types.type()], []
    types, attrs = [], []
    while lexer.token != ")":
        types.append(parser.types.type())
        attrs.append(parser.optional_dictionary())
        if not lexer.accept(","):
            break
    lexer.expect(")", "after the results of a function")
    return types, attrs


def _module(parser: Parser, op: Operation) -> list[Shape]:
    lexer = parser.lexer
    if lexer.token[:1] == "@":
        op.attributes["sym_name"] = symbol(lexer.next())
    if lexer.accept("attributes"):
        _dictionary(parser, op)
    op.regions.append(parser.region([], isolated=True))
    return []


def _mesh(parser: Parser, op: Operation) -> list[Shape]:
    lexer = parser.lexer
    op.attributes["sym_name"] = symbol(lexer.expect_token("@", "the name of a mesh"))
    lexer.expect("=", "after the name of a mesh")
    lexer.balanced("a mesh")
    if lexer.token == "{":
        _dictionary(parser, op)
    return []


def _sharding_constraint(parser: Parser, op: Operation) -> list[Shape]:
    op.operands.append(parser.use())
    parser.lexer.balanced("a sharding")
    return _signature(parser, op)


def _manual_computation(parser: Parser, op: Operation) -> list[Shape]:
    lexer = parser.lexer
    lexer.expect("(", "before operands")
    while lexer.token[:1] == "%":
        op.operands.append(parser.use())
        lexer.accept(",")
    lexer.expect(")", "after operands")
    for key in ("in_shardings", "out_shardings", "manual_axes"):
        lexer.expect(key, "in a manual computation")
        lexer.expect("=", f"after {key}")
        lexer.balanced(key)
    arguments = []
    lexer.expect("(", "before the arguments of a manual computation")
    while lexer.token[:1] == "%":
        arguments.append(parser.block_argument())
        lexer.accept(",")
    lexer.expect(")", "after the arguments of a manual computation")
    op.regions.append(parser.region(arguments))
    return _signature(parser, op)


_SPECIAL: Final[dict[str, Callable[[Parser, Operation], list[Shape]]]] = {
    "constant": _constant, "arith.constant": _constant, "slice": _slice, "get_tuple_element": _element,
    "while": _while, "reduce": _reduce, "scan": _scan, "func.func": _function, "module": _module,
    "builtin.module": _module, "sdy.mesh": _mesh, "sdy.sharding_constraint": _sharding_constraint,
    "sdy.reshard": _sharding_constraint, "sdy.manual_computation": _manual_computation,
}  # fmt: skip
