"""Transformation of a function's statements into calls of `Hooks`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeGuard, cast

from cyxla.numpy.rewriting.syntax import build
from cyxla.numpy.rewriting.syntax.expressions import GENERATORS, ExpressionTransformer, attribute_of, is_python_test
from cyxla.numpy.rewriting.syntax.jumps import RETURNED, VALUE, remove_jumps
from cyxla.numpy.rewriting.syntax.names import (
    Liveness,
    Names,
    appended_list,
    appends_of,
    bound_names,
    has_own,
    indexed_rows,
    lengths_and_items,
    outer_names,
    parameter_names,
    rebound_names,
    written_elements,
    written_root,
)
from cyxla.numpy.rewriting.syntax.scopes import NameOrigins, Origin
from cyxla.numpy.rewriting.syntax.tree import walk
from cyxla.numpy.rewriting.syntax.unbound_reads import reads_to_check
from cyxla.numpy.tracing.user_program.user_frames import HOOKS


class Transformer(ExpressionTransformer):
    """Transformer of one function; functions defined in it get one of their own.

    Parameters
    ----------
    scope : NameOrigins
        Names visible in the function.
    counter : list of int
        Number of the next name for a branch or loop, shared by nested functions.
    """

    def __init__(self, scope: NameOrigins, counter: list[int] | None = None) -> None:
        super().__init__(scope, counter)
        self._liveness: Liveness | None = None
        self._is_generator = False
        self._kept: set[str] = set()  # names that a branch or loop hands over
        self._unsure: frozenset[ast.Name] = frozenset()  # reads of variables that may be unbound
        self._grown: Names = frozenset()  # lists that loops append to
        self._written: Names = frozenset()  # lists or arrays of which loops write elements
        self._tables: Names = frozenset()  # lists of lists of which loops write elements
        self._appends: dict[ast.stmt, list[str]] = {}  # drivers of the loops that append, from the outermost
        self._always: set[ast.stmt] = set()  # appends of each iteration of the innermost loop

    # -- functions

    def function(self, node: ast.FunctionDef) -> bool:
        """Transform the body of a function in place; return False if that is impossible.

        Of a generator, the expressions alone are transformed, and the assignments to objects from outside.
        """
        self._outer = frozenset(n for n in outer_names(node.body) if self.scope.origin(n) is not Origin.OWN)
        if has_own(node.body, GENERATORS):
            if has_own(node.body, (ast.Await, ast.NamedExpr)) or _yields_inside_expressions(node.body):
                return False
            self._is_generator = True
            node.body = self._block(node.body)
            return True
        body = remove_jumps(node.body)
        self._liveness = Liveness(body)
        self._unsure = reads_to_check(body, self._liveness.at_start, parameter_names(node.args))
        loops = [loop for s in body for loop in walk(s) if isinstance(loop, (ast.For, ast.While))]
        self._grown = frozenset(n for loop in loops for n in appends_of(loop) if self._is_own(n))
        self._written = frozenset(n for loop in loops for n in written_elements(loop) if self._is_own(n))
        self._tables = frozenset(n for loop in loops for n in indexed_rows(loop) if self._is_own(n))
        statements = self._block(body)
        declarations = [s for s in statements if isinstance(s, (ast.Global, ast.Nonlocal))]
        unbound = sorted(self._kept - parameter_names(node.args))
        first = [build.assign(n, build.hook("unbound", build.constant(n))) for n in unbound]
        rest = [s for s in statements if s not in declarations]
        node.body = [*declarations, *build.located(first, node.body[0]), *rest]
        return True

    def _is_own(self, name: str) -> bool:
        return name not in self._outer and self.scope.origin(name) is Origin.OWN

    def lambda_(self, node: ast.Lambda) -> None:
        """Transform the body of a lambda in place."""
        node.body = self.visit(node.body)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Read a variable; one that may be unbound is checked where its value is only handed on."""
        read = super().visit_Name(node)
        if node not in self._unsure or self.scope.origin(node.id) is not Origin.OWN:
            return read
        return build.located_expr(build.hook("bound", cast(ast.expr, read)), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Transform a function defined in this one."""
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        self._visit_defaults(node.args)
        Transformer(self.scope, self._counter).function(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Transform a lambda in this function."""
        self._visit_defaults(node.args)
        if not has_own([ast.Expr(node.body)], GENERATORS):
            node.body = self.visit(node.body)
        return node

    def _visit_defaults(self, arguments: ast.arguments) -> None:
        arguments.defaults = [self.visit(d) for d in arguments.defaults]
        arguments.kw_defaults = [d and self.visit(d) for d in arguments.kw_defaults]

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Leave a coroutine as it is."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Transform the methods of a class, unless they have private names, which depend on it."""
        is_private = any(
            isinstance(n, ast.Attribute) and n.attr.startswith("__") and not n.attr.endswith("__")
            for n in walk(node)
        )  # fmt: skip
        for method in () if is_private else node.body:
            if isinstance(method, ast.FunctionDef):
                self.visit_FunctionDef(method)
        return node

    def _block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for s in body:
            result = self.visit(s)
            made.extend(result if isinstance(result, list) else [result])
        return made

    # -- branches

    def visit_If(self, node: ast.If) -> Any:
        """Transform a branch."""
        if self._is_generator:
            return self.generic_visit(node)
        assert self._liveness is not None
        bound, after = bound_names([*node.body, *node.orelse]), self._liveness.after[node]
        kept = self._state(bound, after)
        names = [*kept, *self._state(bound, self._liveness.before[node] - after)]  # the others begin each side anew
        test = self.visit(node.test)
        body, orelse = self._block(node.body), self._block(node.orelse)
        if is_python_test(test):
            return ast.copy_location(ast.If(test, body, orelse), node)
        self._kept.update(names)
        driver = self._name("if")
        of = build.name(driver)
        state = build.load_all(names)
        end = ast.Expr(build.method(of, "end", state))
        made: list[ast.stmt] = [
            build.assign(driver, build.hook("branch", test, build.texts(kept))),
            ast.If(build.method(of, "first", state), self._side(driver, [*body, end]), []),
            ast.If(
                build.method(of, "second"),
                [build.assign_all(names, attribute_of(of, "entry")), *self._side(driver, [*orelse, end])],
                [],
            ),
            build.assign_all(names, build.method(of, "merged")),
        ]
        return build.located(made, node)

    def visit_Match(self, node: ast.Match) -> Any:
        """Transform a match statement, whose patterns Python compares with known values.

        Patterns stay as they are; the names and attributes in them are read before, as values from outside.
        """
        patterns = [case.pattern for case in node.cases]
        reads = [ast.Expr(self.visit(deepcopy(e))) for pattern in patterns for e in _names_in_pattern(pattern)]
        for case in node.cases:
            case.pattern = ast.MatchAs()
        self.generic_visit(node)
        for case, pattern in zip(node.cases, patterns, strict=True):
            case.pattern = pattern
        node.subject = cast(ast.expr, build.located_expr(build.hook("matched", node.subject), node.subject))
        return [*build.located(reads, node), node]

    def _side(self, driver: str, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of a side, which runs may fail in; those that raise nothing stay as they are."""
        return [ast.Try(statements, [self._handler(driver)], [], [])] if len(statements) > 1 else statements

    def _handler(self, driver: str) -> ast.ExceptHandler:
        """Return the handler of exceptions in a side of a branch or the body of a loop."""
        error = self._name("error")
        failed = build.not_(build.method(build.name(driver), "failed", build.name(error)))
        return ast.ExceptHandler(attribute_of(build.name(HOOKS), "errors"), error, [ast.If(failed, [ast.Raise()], [])])

    def _state(self, bound: Names, live: Names) -> list[str]:
        return sorted((bound & live) - self._outer)

    # -- loops

    def visit_For(self, node: ast.For) -> Any:
        """Transform a loop over an iterable."""
        if self._is_generator:
            return self.generic_visit(node)
        assert self._liveness is not None
        targets = bound_names([node.target])
        live_at_head, live_after = self._liveness.before[node], self._liveness.after[node]
        names = self._state(bound_names(node.body) | targets, live_at_head | live_after)
        item = self._name("item")
        driver = self._name("for")
        element = build.method(build.name(driver), "item", build.name(item))
        assignment = ast.Assign([node.target], cast(ast.expr, build.located_expr(element, node.target)))
        start = build.located(self._assignment(assignment), node.target)
        is_held = not isinstance(node.iter, ast.Call)
        iterable = self.iterable(node.iter)
        stored, facts = self._stored(node.body), self._facts(node, names, live_at_head - targets, live_after)
        self._mark_appends(node, driver)
        made = self._loop(
            node, driver, item, names, live_at_head - targets, stored,
            build.hook("loop", iterable, build.constant(is_held), *facts),
            [*start, *self._block(node.body)],
        )  # fmt: skip
        return build.located(made, node)

    def visit_While(self, node: ast.While) -> Any:
        """Transform a loop with a condition."""
        if self._is_generator:
            return self.generic_visit(node)
        assert self._liveness is not None
        live_at_head, live_after = self._liveness.before[node], self._liveness.after[node]
        names = self._state(bound_names([*node.body, node.test]), live_at_head | live_after)
        driver, item = self._name("while"), self._name("item")
        stored, facts = self._stored(node.body), self._facts(node, names, live_at_head, live_after)
        self._mark_appends(node, driver)
        test = self.visit(node.test)
        guarded = ast.If(build.method(build.name(driver), "test", test), self._block(node.body), [])
        made = self._loop(node, driver, item, names, live_at_head, stored, build.hook("while_loop", *facts), [guarded])
        return build.located(made, node)

    def _mark_appends(self, node: ast.For | ast.While, driver: str) -> None:
        """Let the driver of a loop append to lists that the loop does not use otherwise.

        A `while` may read their lengths and elements: the number of its iterations, too, is known at run time only.
        """
        uses = Counter(n.id for n in walk(node) if isinstance(n, ast.Name))
        if isinstance(node, ast.While):
            uses -= lengths_and_items(node)
        for values, statements in appends_of(node).items():
            if values not in self._grown or uses[values] > len(statements):
                continue
            for statement in statements:
                self._appends.setdefault(statement, []).append(driver)
                if len(statements) == 1 and statement in node.body:
                    self._always.add(statement)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Transform an expression whose value is not used."""
        drivers = self._appends.get(node)
        if drivers is None:
            return self.generic_visit(node)
        call = cast(ast.Call, node.value)
        values = build.name(cast(str, appended_list(node)))
        loops = build.load_all(drivers)
        node.value = build.hook(
            "append", loops, build.constant(node in self._always), values, self.visit(call.args[0])
        )  # fmt: skip
        return build.located([node], node)[0]

    def _facts(self, node: ast.For | ast.While, names: Sequence[str], head: Names, after: Names) -> list[ast.expr]:
        """Return the names of a loop: all, those read from the iteration before, those read later, those rebound."""
        rebound = rebound_names(node.body)
        return [
            build.texts(names),
            build.texts([n for n in names if n in head]),
            build.texts([n for n in names if n in after]),
            build.texts([n for n in names if n in rebound]),
            build.texts(getattr(node, "exits", [])),
        ]

    def _loop(
        self, node: ast.stmt, driver: str, item: str, names: list[str], head: Names, stored: list[str],
        start: ast.expr, body: list[ast.stmt],
    ) -> list[ast.stmt]:  # fmt: skip
        self._kept.update(names)
        of, state = build.name(driver), build.load_all(names)
        protected = [*body, ast.Expr(build.method(of, "leave", state))]
        inside = [
            build.assign_all(names, build.method(of, "enter", state, build.thunk(build.load_all(stored)))),
            ast.Try(protected, [self._handler(driver)], [], []),
        ]
        return [
            build.assign(driver, start),
            ast.For(ast.Name(item, ast.Store()), of, inside, [], None),
            build.assign_all(names, build.method(of, "result", state)),
        ]

    def _stored(self, body: Sequence[ast.stmt]) -> list[str]:
        """Return local names whose arrays the statements of a loop may write to, to spare a pass over it."""
        found = {
            root.id
            for s in body
            for n in walk(s)
            if isinstance(n, (ast.Subscript, ast.AugAssign, ast.Call)) and (root := written_root(n)) is not None
        }
        return sorted(n for n in found if self.scope.origin(n) is Origin.OWN and n not in self._outer)

    def visit_Try(self, node: ast.Try) -> Any:
        """Transform a `try`: an exception inside a branch or loop of the program cannot be handled there."""
        if self._is_generator:
            return self.generic_visit(node)
        self.generic_visit_blocks(node)
        depth = self._name("depth")
        for handler in node.handlers:
            check = ast.Expr(build.hook("handle", build.name(depth)))
            handler.body = [*build.located([check], handler), *self._block(handler.body)]
        return build.located([build.assign(depth, build.hook("depth")), node], node)

    def generic_visit_blocks(self, node: ast.Try) -> None:
        """Transform the parts of a `try` but its handlers."""
        node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        node.finalbody = self._block(node.finalbody)

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Transform an assertion."""
        if self._is_generator:
            return self.generic_visit(node)
        test = self.visit(node.test)
        message = build.thunk(self.visit(node.msg) if node.msg else build.constant(None))
        if is_python_test(test):
            return ast.copy_location(ast.Assert(test, node.msg), node)
        check = ast.If(build.hook("fails", test, message), [ast.Assert(build.constant(False), node.msg)], [])
        return build.located([check], node)

    def visit_Delete(self, node: ast.Delete) -> Any:
        """Transform the deletion of names; those that a branch or loop hands over must have a value."""
        if self._is_generator and all(isinstance(t, ast.Name) and t.id not in self._outer for t in node.targets):
            return node
        made: list[ast.stmt] = []
        for target in node.targets:
            made.append(self._deletion(target))
        return build.located(made, node)

    def _deletion(self, target: ast.expr) -> ast.stmt:
        if isinstance(target, ast.Name) and target.id not in self._outer:
            return build.assign(target.id, build.hook("unbound", build.constant(target.id)))
        if isinstance(target, ast.Name):
            return ast.Expr(build.hook("delete_name", build.constant(target.id)))
        if isinstance(target, ast.Attribute):
            return ast.Expr(build.hook("delete_attr", self.visit(target.value), build.constant(target.attr)))
        if isinstance(target, ast.Subscript) and self._is_outside(target):
            return ast.Expr(build.hook("delete_item", self.visit(target.value), self._key(target.slice)))
        return ast.Delete([self.visit(target)])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Transform an annotation; those with values were made plain assignments."""
        node.target = self.visit(node.target)
        return node

    # -- statements that write to objects from outside

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Transform an assignment; a variable that it only hands on is read here."""
        value = cast(ast.expr, self.visit(node.value))
        if isinstance(value, ast.Name) and self.scope.origin(value.id) is Origin.OWN:
            value = cast(ast.expr, build.located_expr(build.hook("bound", value), value))
        node.value = self._grown_lists(node.targets, value)
        return build.located(self._assignment(node), node)

    def _grown_lists(self, targets: Sequence[ast.expr], value: ast.expr) -> ast.expr:
        """Return the value of an assignment, with its new lists that loops append to or write elements of."""
        if isinstance(value, ast.Tuple):
            for target in targets:
                if _has_as_many(target, value):
                    value.elts = [
                        self._grown_lists([t], v) for t, v in zip(target.elts, value.elts, strict=True)
                    ]  # fmt: skip
        elif _is_list_of(value, {t.id for t in targets if isinstance(t, ast.Name)}, self._grown, self._written):
            return cast(ast.expr, build.located_expr(build.hook("new_list", value), value))
        elif any(isinstance(t, ast.Name) and t.id in self._tables for t in targets) and _is_hook(
            value, "comprehension"
        ):
            cast(ast.Attribute, cast(ast.Call, value).func).attr = "rows"
        return value

    def _assignment(self, node: ast.Assign) -> list[ast.stmt]:
        """Return the statements of an assignment whose value is transformed; stores to outside come last."""
        later: list[ast.stmt] = []
        if len(node.targets) == 1 and (store := self._store(node.targets[0], node.value)) is not None:
            return [store]
        node.targets = [self._target(t, later) for t in node.targets]
        return [node, *later]

    def _target(self, target: ast.expr, later: list[ast.stmt]) -> ast.expr:
        """Return a target without stores to outside; these are added as statements that store a variable."""
        if isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._target(t, later) for t in target.elts]
            return target
        if isinstance(target, ast.Starred):
            target.value = self._target(target.value, later)
            return target
        value = self._name("value")
        store = self._store(target, build.name(value))
        if store is None:
            return cast(ast.expr, self.visit(target))
        later.append(store)
        return ast.Name(value, ast.Store())

    def _store(self, target: ast.expr, value: ast.expr) -> ast.stmt | None:
        """Return the statement that stores to a name, an attribute or an item from outside; None for others."""
        call: ast.expr
        if isinstance(target, ast.Attribute):
            call = build.hook("write_attr", self.visit(target.value), build.constant(target.attr), value)
        elif isinstance(target, ast.Name) and target.id in self._outer:
            call = build.hook("write_name", build.constant(target.id), value)
        elif isinstance(target, ast.Subscript) and self._is_outside(target):
            call = build.hook("write_item", self.visit(target.value), self._key(target.slice), value)
        else:
            return None
        return ast.Expr(call)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Transform an augmented assignment to a name or an attribute from outside."""
        node.value = self.visit(node.value)
        if isinstance(node.op, ast.Add) and not isinstance(node.value, ast.Constant):
            node.value = cast(ast.expr, build.located_expr(build.hook("addend", node.value), node))
        result, target = self._name("value"), node.target
        variable = ast.Name(result, ast.Store())
        if isinstance(target, ast.Name) and target.id in self._outer:
            read = self.visit(ast.copy_location(build.name(target.id), target))
            store = build.hook("write_name", build.constant(target.id), build.name(result))
            made = [build.assign(result, read), ast.AugAssign(variable, node.op, node.value), ast.Expr(store)]
        elif isinstance(target, ast.Attribute):
            made = self._augmented_attribute(node, target, variable)
        else:
            node.target = cast(Any, self.visit(target))
            return node
        return build.located(made, node)

    def _augmented_attribute(self, node: ast.AugAssign, target: ast.Attribute, variable: ast.Name) -> list[ast.stmt]:
        owner = self._name("owner")
        of, attribute = build.name(owner), build.constant(target.attr)
        return [
            build.assign(owner, self.visit(target.value)),
            build.assign(variable.id, build.hook("read_attr", of, attribute)),
            ast.AugAssign(variable, node.op, node.value),
            ast.Expr(build.hook("write_attr", of, attribute, build.name(variable.id))),
        ]


def _yields_inside_expressions(body: Sequence[ast.stmt]) -> bool:
    """Return True if an expression with a `yield` in it would be put into a function of its own."""
    parts = (ast.IfExp, ast.BoolOp, ast.Compare, ast.Assert, ast.ListComp, ast.GeneratorExp)
    inner = [n for s in body for n in walk(s) if isinstance(n, parts)]
    return any(isinstance(n, GENERATORS) for part in inner for n in walk(part))


def _has_as_many(target: ast.expr, value: ast.Tuple) -> TypeGuard[ast.Tuple | ast.List]:
    """Return True if a target has a name for each part of a value."""
    if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != len(value.elts):
        return False
    return not any(isinstance(t, ast.Starred) for t in target.elts)


def _names_in_pattern(pattern: ast.pattern) -> list[ast.expr]:
    """Return the names and attributes with which a pattern compares: those of values and of classes."""
    values = [n.value for n in walk(pattern) if isinstance(n, ast.MatchValue) and isinstance(n.value, ast.Attribute)]
    return [*values, *[n.cls for n in walk(pattern) if isinstance(n, ast.MatchClass)]]


def _is_list_of(value: ast.expr, targets: set[str], grown: Names, written: Names) -> bool:
    """Return True for a new list to which loops append by one of its names, or of which they write elements."""
    if _is_new_list(value):
        return bool(targets & (grown | written))
    return bool(targets & written) and (_is_repetition(value) or _is_hook(value, "comprehension"))


def _is_repetition(node: ast.expr) -> bool:
    """Return True for a list times a number."""
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return is_product and (isinstance(node.left, ast.List) or isinstance(node.right, ast.List))  # type: ignore[attr-defined]


def _is_hook(node: ast.expr, name: str) -> bool:
    """Return True for a call of one of `Hooks`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


def _is_new_list(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return isinstance(node, ast.List)
    return isinstance(node.func, ast.Name) and node.func.id == "list"


__all__ = ["RETURNED", "VALUE", "Transformer"]
