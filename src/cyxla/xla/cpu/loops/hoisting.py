"""C of a loop body with hoisting: every value is computed in the outermost loop in which it is available."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from cyxla.errors import InternalError
from cyxla.types import ElementType
from cyxla.types.dtype import Kind
from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.loops.index_map import Affine, Atom, Choice, Condition, Division, InRange, Quotient, Runtime
from cyxla.xla.cpu.loops.loop_ir import Body
from cyxla.xla.cpu.loops.nodes import Apply, Call, Constant, Guard, IndexValue, Load, Map, Node, Table

INNER_COUNTER = "k"  # counter of the innermost loop, of constant trip count
BLOCK_START = "b"  # offset of the block, if the innermost loop runs in blocks
BLOCK_LEVEL = "block"  # level of the loop over these blocks

Level = Atom | str  # a loop of the iteration space, or the name of another level, such as `BLOCK_LEVEL`


def reachable(
    roots: Sequence[Node], forms: Sequence[Affine] = (), known: Container[Node] = ()
) -> tuple[list[Node], list[Affine]]:
    """Return the nodes that some nodes and forms depend on, operands first, and all index forms in them.

    The operands of `known` nodes are not followed.
    """
    seen: set[Node] = set()
    all_forms: dict[Affine, None] = dict.fromkeys(forms)
    stack = list(roots)
    pending = list(forms)
    atoms: set[Atom] = set()
    while stack or pending:
        if pending:
            for atom, _ in pending.pop().terms:
                if atom in atoms:
                    continue
                atoms.add(atom)
                if isinstance(atom, Runtime):
                    stack.append(atom.node)
                for form in atom.forms:
                    all_forms.setdefault(form)
                    pending.append(form)
            continue
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in known:
            continue
        stack += node.operands
        for form in node.forms:
            all_forms.setdefault(form)
            pending.append(form)
    return sorted(seen, key=lambda n: n.number), list(all_forms)


class LoopNest:
    """Loop nest: turns the nodes of a body into lines of C by loop depth.

    Depth 0 is outside of all loops, depth d + 1 is inside level d. The last level is the innermost loop, of constant
    trip count and counter ``k``. The level `BLOCK_LEVEL` runs over blocks of the innermost loop, whose index is then
    ``b + k``.

    Parameters
    ----------
    body : Body
        Loop IR to emit.
    levels : sequence of Atom or str
        Loops, outermost first.
    names : CWriter
        Source of unique names.
    scalar : bool
        True if the innermost loop is not vectorised: slow paths are then taken element by element.
    """

    def __init__(self, body: Body, levels: Sequence[Level], names: CWriter, *, scalar: bool = False) -> None:
        self.body, self.levels, self.scalar = body, list(levels), scalar
        last = self.levels[-1] if self.levels else None
        self.inner = last if isinstance(last, Atom) else None
        self.depth = len(self.levels)
        self.blocked = BLOCK_LEVEL in self.levels
        self._block_depth = self.levels.index(BLOCK_LEVEL) + 1 if self.blocked else 0
        self._depths = {a: i + 1 for i, a in enumerate(self.levels) if isinstance(a, Atom)}
        self.writers = [names.child() for _ in range(self.depth + 1)]
        self._texts: dict[Node, str] = {}
        self._node_depths: dict[Node, int] = {}
        self._atom_texts: dict[Atom, str] = {a: f"i{i}" for i, a in enumerate(self.levels) if isinstance(a, Atom)}
        if self.inner is not None:
            self._atom_texts[self.inner] = INNER_COUNTER
        self._offsets: dict[tuple[Affine, int, str], str] = {}
        self._conditions: dict[tuple[Condition, ...], str] = {}
        self._inner_tests: dict[str, tuple[Condition, ...]] = {}  # predicates in the innermost loop
        self.dropped: set[Atom] = set()  # loops collapsed into their inner neighbour
        self.slow_lanes: list[str] = []  # predicates of lanes that need a slow path
        self.slow_paths: list[tuple[str, str]] = []  # (fast call, call that handles all arguments)
        self.tables: dict[Any, str] = {}
        # an unrolled level, with a step above 1: its index is its counter plus ``j``, in the innermost loop
        self.stepped: Atom | None = None
        self.by_lanes = False  # whether the innermost loop runs in rounds over the lanes of an accumulator
        self.replaced_loads: dict[Node, str] = {}  # loads that read another C lvalue than their array, such as a tile

    # ------------------------------------------------------------------------------------------------ depth
    def depth_of_atom(self, atom: Atom) -> int:
        """Return the loop depth at which an atom is available."""
        if atom in self.dropped:
            return 0
        if atom is self.stepped:
            return self.depth
        return self._level_depth(atom)

    def _level_depth(self, atom: Atom) -> int:
        if atom not in self._depths:
            inside = [self.depth_of_form(f) for f in atom.forms]
            if isinstance(atom, Runtime):
                inside.append(self.depth_of(atom.node))
            self._depths[atom] = max(inside, default=0)
        return self._depths[atom]

    def depth_of_form(self, form: Affine) -> int:
        """Return the loop depth at which a form is available."""
        return max((self.depth_of_atom(a) for a, _ in form.terms), default=0)

    def is_contiguous(self, form: Affine) -> bool:
        """Return whether a form counts the iterations of the innermost loop, from what is known outside of it."""
        outside = (a for a, _ in form.terms if a is not self.inner)
        return form.coefficient(self.inner) == 1 and all(self.depth_of_atom(a) < self.depth for a in outside)

    def depth_of(self, node: Node) -> int:
        """Return the loop depth at which a node is available; its operands must have been emitted."""
        if node not in self._node_depths:
            depths = [self._node_depths.get(o, 0) for o in node.operands]
            self._node_depths[node] = max([*depths, *(self.depth_of_form(f) for f in node.forms)], default=0)
        return self._node_depths[node]

    def pin(self, node: Node) -> None:
        """Pin a node to the innermost loop, whatever its index depends on."""
        self._node_depths[node] = self.depth

    def counter(self, level: int) -> str:
        """Return the name of a level's counter."""
        atom = self.levels[level]
        return atom if isinstance(atom, str) else self._atom_texts[atom]

    def set_external(self, node: Node, text: str, depth: int) -> None:
        """Set the C of a value that is computed elsewhere, and the depth from which on it is available."""
        self._texts[node], self._node_depths[node] = text, depth

    def set_counter(self, atom: Atom, text: str) -> None:
        """Set the name of a loop's counter, before anything is emitted."""
        self._atom_texts[atom] = text

    def share(self, earlier: LoopNest, depth: int) -> None:
        """Use the locals of an earlier nest, up to a depth, that has the same levels there.

        Its lines of each of these depths are to precede those of this nest in the same scope.
        """
        self._node_depths |= {n: d for n, d in earlier._node_depths.items() if d <= depth}
        self._texts |= {n: text for n, text in earlier._texts.items() if earlier._node_depths.get(n, 0) <= depth}
        self._atom_texts = {
            **{a: text for a, text in earlier._atom_texts.items() if earlier.depth_of_atom(a) <= depth},
            **self._atom_texts,
        }
        self._offsets |= {
            key: text for key, text in earlier._offsets.items() if not key[1] and earlier.depth_of_form(key[0]) <= depth
        }
        self._conditions |= {
            key: text
            for key, text in earlier._conditions.items()
            if all(earlier.depth_of_form(c.form) <= depth for c in key)
        }

    # ------------------------------------------------------------------------------------------------ forms
    def form(self, form: Affine, *, narrow: bool = False) -> str:
        """Return the C of an index, of type int64_t or narrower; loop-invariant parts are hoisted.

        Parameters
        ----------
        form : Affine
            Index.
        narrow : bool
            Whether hoisted parts are of type int32_t if they fit: one that is compared with others, lane by lane,
            would make two vectors of each of them.
        """
        inner: list[tuple[Atom, int]] = []
        outer: list[tuple[Atom, int]] = []
        for atom, c in form.terms:
            if atom is self.stepped:
                outer.append((atom, c))
            elif atom not in self.dropped:
                (inner if self.depth_of_atom(atom) == self.depth and self.depth > 0 else outer).append((atom, c))
        parts = [self._offset(Affine(form.constant, tuple(outer)), self._base(inner), narrow=narrow)]
        parts += [_times(self.atom(a), c) for a, c in inner]
        parts += [_times("j", c) for a, c in form.terms if a is self.stepped]
        return " + ".join(p for p in parts if p != "0") or "0"

    def block_start(self, form: Affine) -> str:
        """Return the C of an index where the innermost counter, of constant trip count, is 0."""
        terms = tuple((a, c) for a, c in form.terms if a is not self.inner and a not in self.dropped)
        invariant = Affine(form.constant, terms)
        return self._offset(invariant, form.coefficient(self.inner) if self.blocked and self.inner is not None else 0)

    def _base(self, inner: list[tuple[Atom, int]]) -> int:
        return sum(c for a, c in inner if a is self.inner) if self.blocked else 0

    def _offset(self, form: Affine, base: int, *, narrow: bool = False) -> str:
        if not form.terms and not base:
            return str(form.constant)
        c_type = "int32_t" if narrow and not base and _fits(form) else "int64_t"
        key = (form, base, c_type)
        if key not in self._offsets:
            depth = max([self._level_depth(a) for a, _ in form.terms] + [self._block_depth if base else 0])
            parts = [_times(self.atom(a), c) for a, c in form.terms] + ([_times(BLOCK_START, base)] if base else [])
            parts += [str(form.constant)] if form.constant else []
            if len(parts) == 1 and "*" not in parts[0]:
                self._offsets[key] = parts[0]
            else:
                writer = self.writers[depth]
                self._offsets[key] = name = writer.name("o")
                writer.line(f"const {c_type} {name} = {' + '.join(parts)};")
        return self._offsets[key]

    def atom(self, atom: Atom) -> str:
        """Return the C of an atom; a local, if it needs one, is emitted at the depth where it is available."""
        if isinstance(atom, InRange):
            return f"(int64_t){self.text(atom.node)}"
        if atom not in self._atom_texts:
            writer = self.writers[self.depth_of_atom(atom)]
            c_type = "int32_t" if atom.high < 2**31 else "int64_t"
            value = self._atom_value(atom)
            self._atom_texts[atom] = name = writer.name("n")
            writer.line(f"const {c_type} {name} = {value};")
        return self._atom_texts[atom]

    def _atom_value(self, atom: Atom) -> str:
        match atom:
            case Runtime():
                return self._clamp(atom)
            case Choice():
                return f"{self.conditions(atom.conditions)} ? {self.form(atom.form, narrow=True)} : 0"
            case Division():
                form = atom.form
                unsigned = "uint32_t" if form.high < 2**31 and form.low > -(2**31) else "uint64_t"
                sign = "/" if isinstance(atom, Quotient) else "%"
                return f"({unsigned})({self.form(form)}) {sign} {atom.divisor}u"
            case _:
                raise InternalError(f"{atom!r} is not a loop of this nest")

    def _clamp(self, atom: Runtime) -> str:
        value = self.text(atom.node)
        if atom.node.dtype.kind is Kind.UNSIGNED:
            return f"{value} > {atom.high}u ? {atom.high} : {value}"
        return f"{value} < 0 ? 0 : {value} > {atom.high} ? {atom.high} : {value}"

    def conditions(self, conditions: Sequence[Condition]) -> str:
        """Return the C predicate that all conditions hold, hoisted as far as possible."""
        key = tuple(conditions)
        depth = max((self.depth_of_form(c.form) for c in conditions), default=0)
        if depth == self.depth:
            text = self._tests(conditions)
            self._inner_tests[text] = key
            return text
        if key not in self._conditions:
            writer = self.writers[depth]
            tests = self._tests(conditions)
            self._conditions[key] = name = writer.name("c")
            writer.line(f"const int {name} = {tests};")
        return f"({self._conditions[key]})"

    def _tests(self, conditions: Sequence[Condition]) -> str:
        tests = []
        for c in conditions:
            text = self.form(c.form, narrow=True)
            tests += [f"({text} >= {c.low})"] if c.form.low < c.low else []
            tests += [f"({text} <= {c.high})"] if c.form.high > c.high else []
        return f"({' & '.join(tests)})" if tests else "1"

    def holds_up_to(self, count: str) -> str:
        """Return the C predicate that all conditions in the innermost loop hold for `count` iterations, at least one.

        It is empty if there are none, or if one of them is not linear in the innermost counter.
        """
        tests = []
        for condition in dict.fromkeys(c for conditions in self._inner_tests.values() for c in conditions):
            form, step = condition.form, condition.form.coefficient(self.inner) if self.inner is not None else 0
            if any(self.depth_of_atom(a) == self.depth for a, _ in form.terms if a is not self.inner):
                return ""
            first = self.block_start(form)
            last = f"{first} + {_times(f'({count} - 1)', step)}" if step else first
            lowest, highest = (first, last) if step >= 0 else (last, first)
            tests += [f"({lowest} >= {condition.low})"] if form.low < condition.low else []
            tests += [f"({highest} <= {condition.high})"] if form.high > condition.high else []
        return " & ".join(tests)

    def without_tests(self, line: str) -> str:
        """Return a line of the innermost loop for iterations in which all conditions hold."""
        for test in self._inner_tests:
            line = line.replace(test, "1")
        return line

    # ------------------------------------------------------------------------------------------------ nodes
    def write(self, nodes: Sequence[Node]) -> None:
        """Emit nodes, operands first."""
        for node in nodes:
            if node not in self._texts:
                self._texts[node] = self._emit_node(node)

    def text(self, node: Node) -> str:
        """Return the C of a node that was emitted."""
        return self._texts[node]

    def _emit_node(self, node: Node) -> str:
        if isinstance(node, Constant):
            return node.text
        depth = self.depth_of(node)
        writer = self.writers[depth]
        if isinstance(node, Map):
            (result,) = scalar_computation.inline(node.computation, [self.text(o) for o in node.operands], writer)
            return result
        note = self.body.quote(node.instruction) if isinstance(node, Apply) else ""
        return writer.local(scalar.local_type(node.dtype), self._expression(node, depth), note)

    def _expression(self, node: Node, depth: int) -> str:
        """Return the C of a node's value; its depth is known."""
        match node:
            case Apply():
                return self._apply(node, depth)
            case Load():
                return self._load(node)
            case Guard():
                inside, outside = (self.text(o) for o in node.operands)
                return f"{self.conditions(node.conditions)} ? {inside} : {outside}"
            case IndexValue():
                return self._index_value(node, depth)
            case Table():
                name = self.tables.setdefault(node.literal, f"KERNEL_t{len(self.tables) + 1}")
                return table_load(node.dtype, f"{name}[{self.form(node.form)}]")
            case Call():
                return node.writer.write(self.writers[depth], [self.text(o) for o in node.operands])
            case _:
                raise InternalError(f"{node!r} cannot be written as C")

    def _apply(self, node: Apply, depth: int) -> str:
        values, types = [self.text(o) for o in node.operands], [o.dtype for o in node.operands]
        if self.by_lanes and depth == self.depth and _selects_by_stored(node):
            return f"cyx_select_f64({', '.join(values)})"
        expression = scalar_computation.expression(node.instruction, node.dtype, types, values)
        if depth == self.depth > 0 and not self.scalar:
            self._note_slow_path(node)
            return expression
        return self._with_slow_path(node, expression)

    def _note_slow_path(self, node: Apply) -> None:
        calls = _slow_path(node, [self.text(o) for o in node.operands])
        if calls is not None:
            predicate, fast, _ = calls
            self.slow_lanes.append(predicate)
            self.slow_paths.append((fast, fast.replace("(", "_full(", 1)))

    def _with_slow_path(self, node: Apply, expression: str) -> str:
        calls = _slow_path(node, [self.text(o) for o in node.operands])
        return expression if calls is None else expression.replace(calls[1], f"({calls[0]} ? {calls[2]} : {calls[1]})")

    def with_slow_paths(self, line: str) -> str:
        """Return a line of C with its fast calls replaced by calls that take the slow path where needed."""
        for fast, full in self.slow_paths:
            line = line.replace(fast, full)
        return line

    def _load(self, node: Load) -> str:
        if node in self.replaced_loads:
            return scalar.load(node.dtype, self.replaced_loads[node])
        form: Affine = node.form.shift(-self.body.starts.get(node.slot, 0))
        conditions: tuple[Condition, ...] = ()
        if not node.dtype.is_complex:  # C compilers vectorise a choice of loaded values, but not one of indices
            form, conditions = self.body.space.split_choices(form, lambda a: self.depth_of_atom(a) == self.depth)
        element = scalar.load(node.dtype, f"p{node.slot}[{self.form(form)}]")
        if not conditions:
            return element
        return f"{self.conditions(conditions)} ? {element} : {scalar.literal(node.dtype, 0)}"

    def _index_value(self, node: IndexValue, depth: int) -> str:
        form = node.form
        is_narrow = form.high < 2**31
        text = f"({'int32_t' if is_narrow else 'int64_t'})({self.form(form)})"
        if form.is_constant:
            return scalar.convert(node.dtype, ElementType.S32 if is_narrow else ElementType.S64, text)
        local = self.writers[depth].local("int32_t" if is_narrow else "int64_t", text)
        return scalar.convert(node.dtype, ElementType.S32 if is_narrow else ElementType.S64, local)


def _slow_path(node: Apply, values: list[str]) -> tuple[str, str, str] | None:
    """Return (predicate, fast call, slow call) of a function with a slow path for rare arguments; None without one."""
    dtype = node.operands[0].dtype if node.operands else node.dtype
    names = scalar.slow_path(node.opcode, dtype)
    if names is None:
        return None
    call = f"({', '.join(values)})"
    return names[0] + call, names[1].removesuffix("_slow") + call, names[1] + call


def _selects_by_stored(node: Apply) -> bool:
    """Return whether a node selects doubles by bools in memory."""
    return node.opcode == "select" and node.dtype is ElementType.F64 and _is_stored(node.operands[0])


def _is_stored(condition: Node) -> bool:
    """Return whether a condition is in memory, or consists of conditions that are."""
    if condition.dtype is not ElementType.PRED:
        return False
    return isinstance(condition, Load) or (isinstance(condition, Apply) and all(map(_is_stored, condition.operands)))


def _fits(form: Affine) -> bool:
    """Return True if each partial sum of an index is an int32_t."""
    sizes = [abs(c) * max(abs(atom.low), abs(atom.high)) for atom, c in form.terms]
    return sum(sizes) + abs(form.constant) < 2**31


def _times(text: str, factor: int) -> str:
    if factor == 1:
        return text
    return f"{factor} * {text}" if abs(factor) < 2**31 else f"{factor}ll * {text}"


# ------------------------------------------------------------------------------------------------------------ constants
_BITS = {16: "uint16_t", 32: "uint32_t", 64: "uint64_t", 8: "uint8_t"}


def table_load(dtype: ElementType, source: str) -> str:
    """Return the C that loads an element of a constant table: floats are stored as their bits, to be exact."""
    if dtype in (ElementType.F32, ElementType.F64):
        return f"cyx_from_bits_{dtype}({source})"
    return scalar.load(dtype, source)


def table_definition(name: str, dtype: ElementType, array: Any) -> str:
    """Return the C definition of a constant array."""
    if dtype.is_float:
        c_type = _BITS[array.itemsize * 8]
        values = [f"{int(v):#x}u" for v in array.reshape(-1).view(f"u{array.itemsize}")]
        values = [v + "ll" for v in values] if array.itemsize == 8 else values
    else:
        c_type, values = scalar.storage_type(dtype), [scalar.literal(dtype, v) for v in array.reshape(-1)]
    return f"static const {c_type} {name}[{len(values)}] __attribute__((aligned(64))) = {{{', '.join(values)}}};"


# --------------------------------------------------------------------------------------------------------------- loops
def collapse(
    loops: Sequence[tuple[Atom, int]], forms: Sequence[Affine], outermost: Container[Atom] = ()
) -> tuple[list[tuple[Atom, int]], set[Atom]]:
    """Collapse neighbouring loops over which every form is affine in the joint index.

    Parameters
    ----------
    loops : sequence of (Atom, int)
        Loops with their extents, outermost first.
    forms : sequence of Affine
        Index forms.
    outermost : container of Atom
        Loops that are not collapsed with a loop around them.

    Returns
    -------
    loops : list of (Atom, int)
        Remaining loops, outermost first, with their new extents; loops of one iteration are removed.
    dropped : set of Atom
        Loops that were collapsed into another.
    """
    remaining: list[tuple[Atom, int]] = []
    dropped: set[Atom] = set()
    for atom, extent in loops:
        if extent == 1:
            continue
        is_joint = remaining and all(f.coefficient(remaining[-1][0]) == f.coefficient(atom) * extent for f in forms)
        if is_joint and atom not in outermost:
            dropped.add(remaining[-1][0])
            remaining[-1] = (atom, remaining[-1][1] * extent)
        else:
            remaining.append((atom, extent))
    return remaining, dropped
