"""Transformation of a function's expressions into calls of `Hooks`."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

from cyxla.numpy.rewriting.python_functions.classes import SUBSTITUTES_IN_SCOPE
from cyxla.numpy.rewriting.syntax import build
from cyxla.numpy.rewriting.syntax.names import Names, parameter_names, root_of
from cyxla.numpy.rewriting.syntax.scopes import NameOrigins, Origin, is_called, is_user_function
from cyxla.numpy.rewriting.syntax.tree import walk
from cyxla.numpy.tracing.user_program.user_frames import HOOKS

GENERATORS = (ast.Yield, ast.YieldFrom, ast.Await)
_IDENTITY = (ast.Is, ast.IsNot)
_EQUALITY = (ast.Eq, ast.NotEq)
_MEMBERSHIP = {ast.In: "contains", ast.NotIn: "lacks"}
_HOLDERS = (ast.Name, ast.Attribute, ast.Subscript)  # expressions of which something may hold the value
_TAKING_ALL = (sum, max, min, list, tuple, sorted)
_APPLYING: tuple[tuple[Any, int], ...] = (  # functions that call another one with elements, and its place
    (map, 0), (filter, 0), (functools.reduce, 0), (itertools.starmap, 0), (itertools.accumulate, 1),
)  # fmt: skip
_PLACES = (ast.Attribute, ast.Subscript, ast.Call, ast.IfExp, ast.BoolOp)  # expressions whose value may be a function
_TESTS_OF_PYTHON = ("isinstance", "issubclass", "callable", "hasattr")


class ExpressionTransformer(ast.NodeTransformer):
    """Transformer of the expressions of one function.

    Parameters
    ----------
    scope : NameOrigins
        Names visible in the function.
    counter : list of int
        Number of the next name for a branch or loop, shared by nested functions.
    """

    def __init__(self, scope: NameOrigins, counter: list[int] | None = None) -> None:
        self.scope = scope
        self._counter = counter if counter is not None else [0]
        self._outer: Names = frozenset()  # names that the function declares as global or nonlocal

    def _name(self, kind: str) -> str:
        self._counter[0] += 1
        return f"{HOOKS}_{kind}_{self._counter[0]}"

    def _key(self, node: ast.expr) -> ast.expr:
        """Return the expression of a key; a slice becomes a call of `slice`."""
        if isinstance(node, ast.Slice):
            bounds = [self.visit(b) if b else build.constant(None) for b in (node.lower, node.upper, node.step)]
            return ast.Call(attribute_of(build.name(HOOKS), "slice"), bounds, [])
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self._key(e) for e in node.elts], ast.Load())
        return cast(ast.expr, self.visit(node))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Read an object from outside."""
        is_outside = node.id in self._outer or self.scope.origin(node.id) is Origin.OBJECT
        if not isinstance(node.ctx, ast.Load) or not is_outside:
            return node
        return build.located_expr(build.hook("read_name", node, build.constant(node.id)), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Read an attribute of anything but a module."""
        if not isinstance(node.ctx, ast.Load) or self._module_root(node) is not None:
            return node
        value = self.visit(node.value)
        return build.located_expr(build.hook("read_attr", value, build.constant(node.attr)), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Read an item of a container from outside."""
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        if not self._is_outside(node):
            may_be_traced = not isinstance(node.slice, (ast.Slice, ast.Tuple, ast.Constant))
            self.generic_visit(node)
            if may_be_traced:
                node.value = cast(ast.expr, build.located_expr(build.hook("indexed", node.value), node.value))
            return node
        call = build.hook("read_item", self.visit(node.value), self._key(node.slice))
        return build.located_expr(call, node)

    def _is_outside(self, node: ast.expr) -> bool:
        """Return True if an item may be one of a container from outside, by the name that it begins with."""
        root = root_of(node)
        if not isinstance(root, ast.Name):
            return False
        return root.id in self._outer or self.scope.origin(root.id) is Origin.OBJECT

    def _module_root(self, node: ast.expr) -> str | None:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        is_module = isinstance(root, ast.Name) and self.scope.origin(root.id) is Origin.MODULE
        return cast(ast.Name, root).id if is_module else None

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Transform a call, unless its function is a library's."""
        original = node.func
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp) and self._takes_all(original):
            generator = node.args[0]
            node.args = [ast.copy_location(ast.ListComp(generator.elt, generator.generators), generator)]
        quantified = self._quantified(node)
        if quantified is not None:
            return build.located_expr(quantified, node)
        is_library = self._is_of_library(original)
        node.args = self._arguments(original, self._advanced(original, node.args), is_library)
        node.keywords = [
            ast.copy_location(ast.keyword(k.arg, self._argument(k.value, is_library or k.arg == "key")), k)
            for k in node.keywords
        ]
        if not self._is_called(original):
            return node
        callee = self._callee(original)
        wrapped = build.hook("call", callee)
        for new in (wrapped.func, cast(ast.Attribute, wrapped.func).value):
            _place_behind(new, original)
        node.func = cast(ast.expr, ast.copy_location(wrapped, original))
        return node

    def _quantified(self, node: ast.Call) -> ast.expr | None:
        """Return the hook for `any` or `all` of a generator over one iterable; None for another call."""
        value = self._outside_value(node.func) if isinstance(node.func, ast.Name) else None
        generator = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if value not in (any, all) or not isinstance(generator, ast.GeneratorExp):
            return None
        if len(generator.generators) > 1 or not _is_simple(generator):
            return None
        first = generator.generators[0]
        if isinstance(first.iter, _HOLDERS):
            first.iter = _held(first.iter, build.constant(True))
        made = self._comprehension(generator.elt, generator.generators)
        return build.hook("quantified", build.constant(value is any), *cast(ast.Call, made).args)

    def _advanced(self, function: ast.expr, arguments: list[ast.expr]) -> list[ast.expr]:
        """Mark iterators that functions of Python advance by some elements."""
        if not arguments or not isinstance(function, ast.Name) or self.scope.origin(function.id) is Origin.OWN:
            return arguments
        first, value = arguments[0], self.scope.value(function.id)
        if value is next and isinstance(first, _HOLDERS):
            return [_held(first), *arguments[1:]]
        if (value is any or value is all) and isinstance(first, ast.GeneratorExp):
            generator = first.generators[0]
            if isinstance(generator.iter, _HOLDERS):
                generator.iter = _held(generator.iter, build.constant(True))
        return arguments

    def _arguments(self, function: ast.expr, arguments: list[ast.expr], is_library: bool) -> list[ast.expr]:
        """Transform the arguments of a call; a function that is applied to elements is the one to call in its place."""
        value = self._outside_value(function)
        place = next((k for f, k in _APPLYING if value is f), None)
        return [
            cast(ast.expr, build.located_expr(build.hook("applied", self._callee(a)), a))
            if n == place and self._is_applied(a) else self._argument(a, is_library)
            for n, a in enumerate(arguments)
        ]  # fmt: skip

    def _is_applied(self, function: ast.expr) -> bool:
        """Return True for a function that may have a substitute or be rewritten."""
        if isinstance(function, ast.Name):
            return self.scope.origin(function.id) not in (Origin.PLAIN, Origin.MODULE)
        if self._module_root(function) is None:
            return isinstance(function, _PLACES)
        return is_called(self._outside_value(function), self.scope.package)

    def _is_of_library(self, function: ast.expr) -> bool:
        """Return True for a function from outside that is not rewritten, and may call functions that it is given."""
        value = self._outside_value(function)
        if not callable(value) or is_user_function(value, self.scope.package):
            return False
        try:
            return value not in SUBSTITUTES_IN_SCOPE
        except TypeError:  # not hashable
            return False

    def _outside_value(self, node: ast.expr) -> Any:
        """Return the present value of a name from outside, or of a member of a module; None for anything else."""
        if isinstance(node, ast.Name):
            return None if self.scope.origin(node.id) is Origin.OWN else self.scope.value(node.id)
        module = self._module_root(node)
        value = None if module is None else self.scope.value(module)
        for attribute in _attributes(node) if module is not None else ():
            value = getattr(value, attribute, None)
        return value

    def _argument(self, node: ast.expr, is_called: bool = False) -> ast.expr:
        """Transform an argument of a call; a function is passed as a rewritten one.

        Parameters
        ----------
        node : ast.expr
            Argument.
        is_called : bool
            True if a function that is not rewritten may call it, so that any value may be a function to rewrite.
        """
        if is_called and isinstance(node, (ast.List, ast.Tuple)):
            node.elts = [self._argument(e, is_called) for e in node.elts]
            return node
        made = cast(ast.expr, self.visit(node))
        is_function = isinstance(node, ast.Name) and self.scope.origin(node.id) is Origin.CALLED
        if not is_function and not (is_called and self._may_be_function(node)):
            return made
        return cast(ast.expr, build.located_expr(build.hook("function", made), node))

    def _may_be_function(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return self.scope.origin(node.id) in (Origin.OWN, Origin.OBJECT)
        return isinstance(node, _PLACES) and self._module_root(node) is None

    def _takes_all(self, function: ast.expr) -> bool:
        """Return True for a function of Python that takes all elements of a generator before it returns."""
        if not isinstance(function, ast.Name) or self.scope.origin(function.id) is Origin.OWN:
            return False
        value = self.scope.value(function.id)
        return any(value is f for f in _TAKING_ALL)

    def _callee(self, function: ast.expr) -> ast.expr:
        """Return the function of a call; that of a method is looked up plainly, on the object that it is of."""
        if isinstance(function, ast.Attribute):
            if self._module_root(function) is None and not _is_super(function.value):
                owner = build.hook("owner", self.visit(function.value), build.constant(function.attr))
                function.value = cast(ast.expr, build.located_expr(owner, function.value))
            elif _is_super(function.value):
                of_class = cast(ast.Call, function.value)
                of_class.args = [self._argument(a) for a in of_class.args]
            return function
        return cast(ast.expr, self.visit(function))

    def _is_called(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return self.scope.origin(function.id) not in (Origin.PLAIN, Origin.MODULE)
        if self._module_root(function) is None:
            return True
        return is_called(self._outside_value(function), self.scope.package)

    def iterable(self, node: ast.expr) -> ast.expr:
        """Transform a value that is iterated over."""
        made = cast(ast.expr, self.visit(node))
        return _held(made) if isinstance(node, _HOLDERS) else made

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """Transform a `for` of a comprehension that stays one."""
        node.iter, node.ifs = self.iterable(node.iter), [self.visit(t) for t in node.ifs]
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """Transform a list comprehension; one with several `for` has no conditions."""
        if not _is_simple(node):
            return self.generic_visit(node)
        if node.generators[0].ifs:
            return build.located_expr(self._filtered(node.elt, node.generators[0]), node)
        return build.located_expr(self._comprehension(node.elt, node.generators), node)

    def _filtered(self, element: ast.expr, generator: ast.comprehension) -> ast.expr:
        """Return the list of the elements for values that pass conditions."""
        tests = [self.visit(t) for t in generator.ifs]
        test = tests[0] if len(tests) == 1 else build.hook("all_of", tests[0], *map(build.thunk, tests[1:]))
        iterable = self.iterable(generator.iter)
        names = [n.id for n in _target_names(generator.target)]
        count = [] if isinstance(generator.target, ast.Name) else [build.constant(len(names))]
        functions = [
            ast.Lambda(ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, []), body)
            for body in (test, self.visit(element))
        ]
        return build.hook("filtered", iterable, *functions, *count)

    def _comprehension(self, element: ast.expr, generators: Sequence[ast.comprehension]) -> ast.expr:
        first, *others = generators
        iterable = self.iterable(first.iter)
        inner = self._comprehension(element, others) if others else self.visit(element)
        names = [n.id for n in _target_names(first.target)]
        count = [] if isinstance(first.target, ast.Name) else [build.constant(len(names))]
        parameters = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
        made = build.hook("comprehension", iterable, ast.Lambda(parameters, inner), *count)
        return build.hook("flattened", made) if others else made

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Transform a conditional expression."""
        test, body, orelse = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        if is_python_test(test) or binds(body) or binds(orelse):
            return ast.copy_location(ast.IfExp(test, body, orelse), node)
        return build.located_expr(build.hook("choose", test, build.thunk(body), build.thunk(orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Transform `and` and `or`, whose later operands may not be evaluated."""
        values = [self.visit(v) for v in node.values]
        if any(map(binds, values[1:])) or all(map(is_python_test, values)):
            return ast.copy_location(ast.BoolOp(node.op, values), node)
        hook = "all_of" if isinstance(node.op, ast.And) else "any_of"
        return build.located_expr(build.hook(hook, values[0], *map(build.thunk, values[1:])), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Transform an f-string."""
        return build.located_expr(self._text(node), node)

    def _text(self, node: ast.JoinedStr) -> ast.expr:
        fields = [n for n in node.values if isinstance(n, ast.FormattedValue)]
        if not fields:
            return node
        return build.hook("joined", *[self._field(n) if isinstance(n, ast.FormattedValue) else n for n in node.values])

    def _field(self, node: ast.FormattedValue) -> ast.expr:
        spec = self._text(node.format_spec) if isinstance(node.format_spec, ast.JoinedStr) else build.constant("")
        return build.hook("formatted", self.visit(node.value), build.constant(node.conversion), spec)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Transform a format with ``%``."""
        is_text = isinstance(node.left, ast.JoinedStr) or (
            isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        )
        if not isinstance(node.op, ast.Mod) or not is_text:
            return self.generic_visit(node)
        return build.located_expr(build.hook("percent", self.visit(node.left), self.visit(node.right)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Transform `not`."""
        operand = self.visit(node.operand)
        if not isinstance(node.op, ast.Not) or is_python_test(operand):
            return ast.copy_location(ast.UnaryOp(node.op, operand), node)
        return build.located_expr(build.hook("not_", operand), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Transform chains of comparisons, and `in`."""
        has_tuple = any(map(_may_be_tuple, _compared(node)))
        left = self.visit(node.left)
        others = [self.visit(c) for c in node.comparators]
        if len(others) == 1:
            return self._comparison(node, left, node.ops[0], others[0], has_tuple)
        if any(map(binds, others)):
            return ast.copy_location(ast.Compare(left, node.ops, others), node)
        parameters = [self._name("part") for _ in others[:-1]]
        compare = functools.partial(self._comparison, node, has_tuple=has_tuple)
        return build.located_expr(self._chain(compare, left, list(node.ops), others, parameters), node)

    def _chain(
        self,
        compare: Callable[..., ast.expr],
        left: ast.expr,
        ops: list[ast.cmpop],
        others: list[ast.expr],
        names: list[str],
    ) -> ast.expr:
        """Return ``a < b and b < c`` with `b` evaluated once."""
        if len(ops) == 1:
            return compare(left, ops[0], others[0])
        shared = build.name(names[0])
        first = compare(left, ops[0], shared)
        rest = self._chain(compare, shared, ops[1:], others[1:], names[1:])
        both = build.hook("all_of", first, build.thunk(rest))
        arguments = ast.arguments([], [ast.arg(names[0])], None, [], [], None, [])
        return ast.Call(ast.Lambda(arguments, both), [others[0]], [])

    def _comparison(
        self, node: ast.Compare, left: ast.expr, op: ast.cmpop, right: ast.expr, has_tuple: bool
    ) -> ast.expr:
        hook = _MEMBERSHIP.get(type(op))
        if isinstance(op, _EQUALITY) and has_tuple:
            equal = build.hook("are_equal", left, right)
            is_equal = isinstance(op, ast.Eq)
            return cast(ast.expr, build.located_expr(equal if is_equal else build.hook("not_", equal), node))
        if hook is not None:
            return cast(ast.expr, build.located_expr(build.hook(hook, left, right), node))
        if not isinstance(op, _IDENTITY) or _is_never_traced(left) or _is_never_traced(right):
            return cast(ast.expr, ast.copy_location(ast.Compare(left, [op], [right]), node))
        is_it = build.hook("is_", left, right)
        return cast(ast.expr, build.located_expr(is_it if isinstance(op, ast.Is) else build.hook("not_", is_it), node))


def attribute_of(owner: ast.expr, attribute: str) -> ast.Attribute:
    """Return an expression that reads an attribute."""
    return ast.Attribute(owner, attribute, ast.Load())


def _attributes(node: ast.expr) -> list[str]:
    found: list[str] = []
    while isinstance(node, ast.Attribute):
        found.append(node.attr)
        node = node.value
    return found[::-1]


def _held(node: ast.expr, *facts: ast.expr) -> ast.expr:
    """Return a value that may be an iterator, checked as `iterables.held` does."""
    return cast(ast.expr, build.located_expr(build.hook("held", node, *facts), node))


def _place_behind(new: ast.expr, node: ast.expr) -> None:
    """Give a hook's name the position at the end of the function's, which errors and substitutes look up."""
    new.lineno = new.end_lineno = node.end_lineno or node.lineno
    new.col_offset = new.end_col_offset = node.end_col_offset or node.col_offset


def _is_simple(node: ast.ListComp | ast.GeneratorExp) -> bool:
    """Return True if a function of each item can make the elements of a comprehension."""
    may_filter = isinstance(node, ast.ListComp) and len(node.generators) == 1
    has_names = all(
        (may_filter or not g.ifs) and not g.is_async and all(isinstance(n, ast.Name) for n in _target_names(g.target))
        for g in node.generators
    )
    parts = list(walk(node))
    if not has_names or any(isinstance(n, (*GENERATORS, ast.NamedExpr)) or _is_super(n) for n in parts):
        return False
    targets = {n.id for g in node.generators for n in _target_names(g.target)}
    used_up = {a for call in parts if isinstance(call, ast.Call) for a in call.args if isinstance(a, ast.GeneratorExp)}
    return not any(_is_called_later(n, targets) for n in parts if n is not node and n not in used_up)


def _is_called_later(node: ast.AST, names: set[str]) -> bool:
    """Return True for a function or generator that reads one of these names, whose value is then the last one."""
    if not isinstance(node, (ast.Lambda, ast.GeneratorExp)):
        return False
    own = parameter_names(node.args) if isinstance(node, ast.Lambda) else frozenset()
    body = node.body if isinstance(node, ast.Lambda) else node
    read = {n.id for n in walk(body) if isinstance(n, ast.Name)}
    return bool(read & names - own)


def _target_names(target: ast.expr) -> list[Any]:
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _is_super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def binds(node: ast.AST) -> bool:
    """Return True if an expression binds a name, which a function around it would keep for itself."""
    return any(isinstance(n, ast.NamedExpr) for n in walk(node))


def _compared(node: ast.Compare) -> list[ast.expr]:
    return [node.left, *node.comparators]


def _may_be_tuple(node: ast.expr) -> bool:
    """Return True for tuples, lists and shapes, and for parts of them."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and _may_be_tuple(node.value)
    if isinstance(node, ast.BinOp):
        return _may_be_tuple(node.left) or _may_be_tuple(node.right)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "shape"
    return isinstance(node, (ast.Tuple, ast.List)) or (isinstance(node, ast.Attribute) and node.attr == "shape")


def _is_never_traced(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, (bool, int, float, complex))


def is_python_test(node: ast.expr) -> bool:
    """Return True if a condition is never traced."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Compare):
        compared = _compared(node)
        are_constant = [any(map(_is_never_traced, compared[k : k + 2])) for k in range(len(node.ops))]
        return all(isinstance(op, _IDENTITY) for op in node.ops) and all(are_constant)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return is_python_test(node.operand)
    if isinstance(node, ast.BoolOp):
        return all(map(is_python_test, node.values))
    return False
