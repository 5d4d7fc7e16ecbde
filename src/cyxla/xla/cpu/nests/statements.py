"""C of single statements of a nest: loops over the elements of an array, reductions, products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.c.independence import independence
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.kernel.carried_products import barrier_if, combiner_carries_product
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, BLOCK_START, INNER_COUNTER, Level, collapse, reachable
from cyxla.xla.cpu.loops.index_map import Affine, Atom, Choice, Condition, Division, Index, atoms_of
from cyxla.xla.cpu.loops.loop_ir import start_requests
from cyxla.xla.cpu.loops.nodes import Apply, External, Guard, Load, Node
from cyxla.xla.cpu.loops.straight_line import UnsuitableLoopError
from cyxla.xla.cpu.nests.bounds import Bounds, bounds_of, overlap
from cyxla.xla.cpu.nests.lines import NestLines
from cyxla.xla.cpu.nests.memory import Array, NestState
from cyxla.xla.cpu.nests.space import NestBody, NestSpace
from cyxla.xla.cpu.reduce.accumulators import Accumulator, accumulator
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.combiners import combiner
from cyxla.xla.passes.simplify.index_ranges import limits

MAX_NODES = 3000  # nodes of one nest, a bound on gcc's time
_FAR = 1 << 62  # elements, beyond all arrays
_NODE_NS = 0.15  # time of a node in a vectorised loop
_LANES = {ElementType.F64: 16, ElementType.F32: 32}  # accumulators of a float sum
_MAX_DOT_OPS = 1 << 15  # multiply-adds of a product that a nest computes

MAX_GUARDED = 1 << 14  # conditions on indices that a statement evaluates
#: Time of a statement from which several threads, or the kernels of larger arrays, run it better.
MAX_STATEMENT_NS = 2 * machine.TASK_NS
#: The same, of a statement whose loops have bounds known at run time: kernels compute all points, with conditions.
MAX_BOUNDED_NS = 16 * MAX_STATEMENT_NS

#: Function that makes the body of a statement over an iteration space.
MakeBody = Callable[[NestSpace], NestBody]
#: Form and value of the element that is stored at a point of the iteration space.
Lower = Callable[[NestBody], tuple[Affine, Node]]


@dataclass
class StatementWriter:
    """Writer of the statements of one scope.

    Attributes
    ----------
    state : NestState
        State of the nest.
    c : CWriter
        Writer of the scope.
    make_body : callable
        Function that makes the body of a statement, which knows the values of the scope.
    text_of : callable
        Function from a scalar of the scope to its C.
    """

    state: NestState
    c: CWriter
    make_body: MakeBody
    text_of: Callable[[Value], str]
    bodies: list[NestBody] = field(default_factory=list)

    # ------------------------------------------------------------------------------------------------ stores
    def fill(self, ins: Instruction, target: Array) -> float:
        """Compute all elements of an array; those that the target holds already are left."""
        dims = ins.shape.dims

        def lower(body: NestBody) -> tuple[Affine, Node]:
            index = _whole(body.space, dims)
            return index.linear, body.value(ins, index)

        return self.store(dims, lower, target)

    def update(self, ins: Instruction, target: Array) -> float:
        """Compute an update of an array in place."""
        operand, new, *starts = ins.operands

        def lower(body: NestBody) -> tuple[Affine, Node]:
            space, index = body.space, _whole(body.space, new.shape.dims)
            nodes = [body.value(i, at) for i, at in start_requests(body, tuple(starts), operand.shape.rank)]
            most = [n - size for n, size in zip(operand.shape.dims, new.shape.dims, strict=True)]
            coordinates = [
                space.add(c, body.clamp_start(s, high))
                for c, s, high in zip(index.coordinates, nodes, most, strict=True)
            ]
            return space.index(operand.shape.dims, tuple(coordinates)).linear, body.value(new, index)

        return self.store(new.shape.dims, lower, target)

    def store(self, dims: tuple[int, ...], lower: Lower, target: Array) -> float:
        """Write the loops that store a value at every point of an iteration space; return the time in ns."""
        space = NestSpace(dims)
        body = self.make_body(space)
        form, node = lower(body)
        bounds: Bounds | None = None
        while (wider := self._kept(body, form, node, target, bounds)) is not None:
            bounds = wider
            form, node = lower(body)
        order = self._order(body, form, node, target)
        if order is None:  # elements would be overwritten before they are read
            return self._store_twice(dims, lower, target, body, bounds)
        return self._write_store(body, bounds or Bounds(), form, node, target, independent=order)

    def _store_twice(
        self, dims: tuple[int, ...], lower: Lower, target: Array, body: NestBody, bounds: Bounds | None
    ) -> float:
        """Store to working memory first, and copy from there."""
        form, node = lower(body)
        temporary = self.state.new_array(target.dtype, max(prod(dims), 1))
        at = _whole(body.space, dims).linear
        bounds = bounds or Bounds()
        ns = self._write_store(body, bounds, at, node, temporary, independent=True)
        copy = self.make_body(body.space)
        element = copy.load(target.dtype, self.state.slot_of(temporary), at)
        return ns + self._write_store(copy, bounds, form, element, target, independent=True)

    def _write_store(
        self,
        body: NestBody,
        bounds: Bounds,
        form: Affine,
        node: Node,
        target: Array,
        *,
        independent: bool,
    ) -> float:
        nodes, forms = reachable([node], [form, *bounds.forms])
        _check_guards(nodes, forms, body.space)
        loops: list[tuple[Atom, int]] = [(a, a.high + 1) for a in body.space.loops]
        remaining, dropped = ([(a, n) for a, n in loops if n > 1], {a for a, n in loops if n == 1})
        if not bounds.conditions:
            remaining, collapsed = collapse(loops, forms)
            dropped |= collapsed
        slow = any(
            isinstance(n, Apply) and scalar.slow_path(n.opcode, n.operands[0].dtype) for n in nodes if n.operands
        )
        nest = self._nest(body, [a for a, _ in remaining], nodes, scalar=slow or not independent)
        nest.dropped = dropped
        nest.write(nodes)
        value = scalar.store(target.dtype, nest.text(node))
        nest.writers[-1].line(f"{target.pointer}[{nest.form(form)}] = {value};")
        with self.c.block(""):
            self._open(nest, remaining, bounds, independent=independent)
            self._close(len(remaining))
        return _time(prod(n for _, n in remaining) * (1 + len(nodes)) * _NODE_NS, bounds)

    def _nest(
        self, body: NestBody, levels: Sequence[Level], nodes: Sequence[Node], *, scalar: bool = False
    ) -> NestLines:
        self.state.count(len(nodes), MAX_NODES)
        nest = NestLines(body, levels, self.state.names.child(), self.state.pointers, scalar=scalar)
        nest.tables = self.state.tables
        for node in nodes:
            if isinstance(node, External):
                nest.set_external(node, self.text_of(node.key), 0)  # type: ignore[arg-type]
        self.bodies.append(body)
        return nest

    def _open(
        self, nest: NestLines, loops: Sequence[tuple[object, int]], bounds: Bounds, *, independent: bool = False
    ) -> None:
        """Open the loops of a nest, and write the lines of each level."""
        heads = [self._head(nest, level, atom, extent, bounds) for level, (atom, extent) in enumerate(loops)]
        self.c.lines(nest.writers[0].written)
        for level, head in enumerate(heads):
            if independent and level == len(heads) - 1:
                self.c.lines(independence(loops[level][1], nest.body.dtypes))
            self.c.line(head)
            self.c.open()
            self.c.lines(nest.writers[level + 1].written)

    def _head(self, nest: NestLines, level: int, atom: object, extent: int, bounds: Bounds) -> str:
        name = nest.counter(level)
        low, high = self._ends(nest, atom, extent, bounds)
        c_type = "int64_t" if bounds.conditions or extent >= 2**31 - 64 else "int"
        return f"for ({c_type} {name} = {low}; {name} < {high}; ++{name}) {{"

    def _ends(self, nest: NestLines, atom: object, extent: int, bounds: Bounds) -> tuple[str, str]:
        """Return the C of the first index of a loop, and of the index at which it stops."""
        lows, highs = bounds.of(atom)  # type: ignore[arg-type]
        lows, highs = [f for f in lows if f.high > 0], [f for f in highs if f.low < extent]
        depth = max([nest.depth_of_form(f) for f in (*lows, *highs)], default=0)
        writer, low, high = nest.writers[depth], "0", str(extent)
        for form in lows:
            at = nest.form(form)
            low = writer.local("int64_t", f"{at} > {low} ? {at} : {low}" if form.low < 0 or low != "0" else at)
        for form in highs:
            at = nest.form(form)
            high = writer.local(
                "int64_t", f"{at} < {high} ? {at} : {high}" if form.high > extent or high != str(extent) else at
            )
        return low, high

    def _close(self, count: int) -> None:
        for _ in range(count):
            self.c.close()
            self.c.line("}")

    # ------------------------------------------------------------------------------------------------ what is stored
    def _kept(self, body: NestBody, form: Affine, node: Node, target: Array, known: Bounds | None) -> Bounds | None:
        """Return the bounds outside of which a store leaves its target as it is, which are assumed from now on.

        Elements that are known to be inside of some bounds may show further ones. None if there are no new bounds.
        """

        def is_old(other: Node) -> bool:
            return isinstance(other, Load) and other.form == form and self._reads(other, target)

        conditions = _neutral_outside(body, node, is_old)
        return _assumed(body, conditions, known) if conditions else None

    def _reads(self, node: Load, target: Array) -> bool:
        return self.state.pointers.get(node.slot) == target.pointer

    def _order(self, body: NestBody, form: Affine, node: Node, target: Array) -> bool | None:
        """Return whether the iterations are independent; None if in order they read what they have overwritten."""
        independent = True
        for load in reachable([node], [form])[0]:
            if isinstance(load, Load) and self._reads(load, target) and load.form != form:
                distance = overlap(body.space, form, load.form)
                if distance is None or distance < 0:
                    return None
                independent = independent and distance == 0
        return independent

    # ------------------------------------------------------------------------------------------------ reductions
    def reduce(self, ins: Instruction, targets: Sequence[Array | str]) -> float:
        """Write a reduction, to arrays or to locals that are declared."""
        count = len(ins.operands) // 2
        arrays, inits = ins.operands[:count], ins.operands[count:]
        dims, reduced = arrays[0].shape.dims, tuple(ins.attrs["dimensions"])
        kept = [d for d in range(len(dims)) if d not in reduced]
        order = [*kept, *reduced]

        def lower(body: NestBody) -> list[Node]:
            at: list[Affine] = [Affine(0)] * len(dims)
            for position, d in enumerate(order):
                at[d] = body.space.loop(position)
            index = body.space.index(dims, tuple(at))
            return [body.value(a, index) for a in arrays]

        fold = _combined(ins)
        if fold is None and scalar_computation.unsupported_reason(ins.called[0]) is not None:
            raise UnsuitableLoopError("a combiner that is no scalar computation")
        reduction = _Reduction(ins, [dims[d] for d in order], len(kept), lower, fold, [self._init(i) for i in inits])
        return self._reduction(reduction, targets)

    def _init(self, ins: Instruction) -> str:
        """Return the C of a scalar."""
        value = resolve(ins)
        if value.instruction.opcode == "constant":
            array = value.instruction.attrs["literal"].array
            return scalar.literal(value.shape.dtype, array.reshape(-1)[0])
        return self.text_of(value)

    def dot(self, ins: Instruction, targets: Sequence[Array | str]) -> float:
        """Write a product of vectors or matrices."""
        lhs, rhs = ins.operands
        dtype = ins.shape.dtype
        if {lhs.shape.dtype, rhs.shape.dtype} != {dtype} or scalar.is_narrow(dtype) or dtype is ElementType.PRED:
            raise UnsuitableLoopError(f"dot of {lhs.shape.dtype} to {dtype}")
        batch = [list(ins.attrs.get(f"{side}_batch_dims") or ()) for side in ("lhs", "rhs")]
        inner = [list(ins.attrs.get(f"{side}_contracting_dims") or ()) for side in ("lhs", "rhs")]
        free = [[d for d in range(o.shape.rank) if d not in (*batch[k], *inner[k])] for k, o in enumerate((lhs, rhs))]
        groups = [
            [lhs.shape.dims[d] for d in batch[0]], [lhs.shape.dims[d] for d in free[0]],
            [rhs.shape.dims[d] for d in free[1]], [lhs.shape.dims[d] for d in inner[0]],
        ]  # fmt: skip
        flat = [n for group in groups for n in group]
        if prod(flat) > _MAX_DOT_OPS and ins.shape.size > 1:
            raise UnsuitableLoopError("a large dot")
        first = [0, len(batch[0]), len(batch[0]) + len(free[0]), len(flat) - len(inner[0])]

        def lower(body: NestBody) -> list[Node]:
            nodes = []
            for k, operand in enumerate((lhs, rhs)):
                at: list[Affine] = [Affine(0)] * operand.shape.rank
                for start, dims in ((first[0], batch[k]), (first[1 + k], free[k]), (first[3], inner[k])):
                    for position, d in enumerate(dims):
                        at[d] = body.space.loop(start + position)
                nodes.append(body.value(operand, body.space.index(operand.shape.dims, tuple(at))))
            return nodes

        kept = len(flat) - len(inner[0])
        reduction = _Reduction(ins, flat, kept, lower, accumulator("add", dtype), [], product=True)
        return self._reduction(reduction, targets)

    def _reduction(self, r: _Reduction, targets: Sequence[Array | str]) -> float:
        into_memory = r.kept and not r.unordered and r.extents[r.kept - 1] > 1
        if into_memory and isinstance(targets[0], Array) and r.runs_along_result(self):
            return self._sum_rows(r, targets[0])
        space = NestSpace(r.extents)
        body = self.make_body(space)
        nodes = r.lower(body)
        bounds: Bounds | None = None
        while (wider := self._stops(body, r, nodes, bounds)) is not None:
            bounds = wider
            nodes = r.lower(body)
        return self._fold(body, bounds or Bounds(), r, nodes, targets)

    def _stops(self, body: NestBody, r: _Reduction, nodes: Sequence[Node], known: Bounds | None) -> Bounds | None:
        """Return the bounds outside of which the elements of a reduction change nothing; see `_kept`."""
        if r.fold is None or r.fold.opcode not in ("add", "maximum", "minimum", "multiply"):
            return None

        def is_neutral(node: Node) -> bool:
            value = body.value_of(node)
            return value is not None and r.is_neutral(value)

        found = [_neutral_outside(body, node, is_neutral) for node in nodes]
        common = [c for c in found[0] if all(c in other for other in found[1:])]
        return _assumed(body, common, known) if common else None

    def _fold(
        self, body: NestBody, bounds: Bounds, r: _Reduction, nodes: Sequence[Node], targets: Sequence[Array | str]
    ) -> float:
        """Write a reduction with its innermost loop over reduced elements."""
        all_nodes, forms = reachable(nodes, bounds.forms)
        _check_guards(all_nodes, forms, body.space)
        loops: list[tuple[Atom, int]] = [(a, a.high + 1) for a in body.space.loops]
        kept = [(a, n) for a, n in loops[: r.kept] if n > 1]
        reduced, dropped = [(a, n) for a, n in loops[r.kept :] if n > 1], {a for a, n in loops if n == 1}
        if not bounds.conditions:
            reduced, collapsed = collapse(loops[r.kept :], forms)
            dropped |= collapsed
        lanes = r.lanes if reduced and reduced[-1][1] >= 2 * r.lanes else 1
        levels: list[Level] = [a for a, _ in (*kept, *reduced)]
        if lanes > 1:
            levels.insert(len(levels) - 1, BLOCK_LEVEL)
        nest = self._nest(body, levels, all_nodes, scalar=True)
        nest.dropped = dropped
        nest.write(all_nodes)
        at = [body.space.combine((a, s) for a, s in r.result_forms(body.space))]
        variables = [[self.c.name("s") for _ in group] for group in r.variables]
        outer = [*kept, *reduced[:-1]] if reduced else kept
        with self.c.block(""):
            heads = [self._head(nest, level, a, n, bounds) for level, (a, n) in enumerate(outer)]
            ends = self._ends(nest, reduced[-1][0], reduced[-1][1], bounds) if reduced else ("0", "1")
            final = [] if isinstance(targets[0], str) else [nest.form(at[0])]
            self.c.lines(nest.writers[0].written)
            for level in range(len(kept)):
                self._open_level(nest, heads, level)
            self._start(r, variables, lanes)
            for level in range(len(kept), len(outer)):
                self._open_level(nest, heads, level)
            if reduced:
                self._innermost(nest, r, nodes, variables, lanes, ends)
            else:
                self._combine(self.c, nest, r, nodes, variables, "")
            self._close(len(outer) - len(kept))
            for target, text in zip(targets, r.totals(self.c, variables, lanes), strict=True):
                if isinstance(target, str):
                    self.c.line(f"{target} = {text};")
                else:
                    self.c.line(f"{target.pointer}[{final[0]}] = {scalar.store(target.dtype, text)};")
            self._close(len(kept))
        node_ns = _NODE_NS if lanes > 1 else 4 * _NODE_NS
        return _time(prod(r.extents) * (1 + len(all_nodes)) * node_ns, bounds)

    def _open_level(self, nest: NestLines, heads: Sequence[str], level: int) -> None:
        self.c.line(heads[level])
        self.c.open()
        self.c.lines(nest.writers[level + 1].written)

    def _start(self, r: _Reduction, variables: list[list[str]], lanes: int) -> None:
        for names, group in zip(variables, r.variables, strict=True):
            for name, (c_type, start) in zip(names, group, strict=True):
                if lanes == 1:
                    self.c.line(f"{c_type} {name} = {start};")
                else:
                    self.c.line(f"{c_type} {name}[{lanes}] __attribute__((aligned(64)));")
                    self.c.line(f"for (int k = 0; k < {lanes}; ++k) {name}[k] = {start};")

    def _innermost(
        self,
        nest: NestLines,
        r: _Reduction,
        nodes: Sequence[Node],
        variables: list[list[str]],
        lanes: int,
        ends: tuple[str, str],
    ) -> None:
        c = self.c
        if lanes == 1:
            name = nest.counter(len(nest.levels) - 1)
            with c.block(f"for (int64_t {name} = {ends[0]}; {name} < {ends[1]}; ++{name})"):
                c.lines(barrier_if(r.carries_product))
                c.lines(nest.writers[-1].written)
                self._combine(c, nest, r, nodes, variables, "")
            return
        b, k = BLOCK_START, INNER_COUNTER
        c.line(f"int64_t {b} = {ends[0]};")
        with c.block(f"for (; {b} + {lanes} <= {ends[1]}; {b} += {lanes})"):
            c.lines(nest.writers[-2].written)
            with c.block(f"for (int {k} = 0; {k} < {lanes}; ++{k})"):
                c.lines(nest.writers[-1].written)
                self._combine(c, nest, r, nodes, variables, f"[{k}]")
        with c.block(f"for (; {b} < {ends[1]}; ++{b})"):
            c.line(f"const int {k} = 0;")
            c.lines(nest.writers[-2].written)
            c.lines(nest.writers[-1].written)
            self._combine(c, nest, r, nodes, variables, "[0]")

    def _combine(
        self, c: CWriter, nest: NestLines, r: _Reduction, nodes: Sequence[Node], variables: list[list[str]], at: str
    ) -> None:
        """Write the combination of the accumulators with one element."""
        texts = [nest.text(n) for n in nodes]
        if r.fold is None:
            old = [v for (v,) in variables]
            new = scalar_computation.inline(r.ins.called[0], [*old, *texts], c)
            saved = [c.local(f"__typeof__({o})", n) for o, n in zip(old, new, strict=True)]
            c.lines([f"{o} = {n};" for o, n in zip(old, saved, strict=True)])
            return
        names = [f"{v}{at}" for v in variables[0]]
        if r.product and r.dtype.is_float:
            c.line(f"{names[0]} = CYX_FMA_{str(r.dtype).upper()}({texts[0]}, {texts[1]}, {names[0]});")
            return
        element = texts[0]
        if r.product:
            types = [r.dtype, r.dtype]
            element = c.local(scalar.register_type(r.dtype), scalar.expression("multiply", r.dtype, types, {}, texts))
        new = r.fold.update(names, element)
        saved = new if len(new) == 1 else [c.local(f"__typeof__({o})", n) for o, n in zip(names, new, strict=True)]
        c.lines([f"{o} = {n};" for o, n in zip(names, saved, strict=True)])

    def _sum_rows(self, r: _Reduction, target: Array) -> float:
        """Write a reduction whose innermost loop runs along the result, which holds the accumulators."""
        space = NestSpace([*r.extents[: r.kept - 1], *r.extents[r.kept :], r.extents[r.kept - 1]])
        body = self.make_body(space)
        moved = _Moved(space, r.kept, len(r.extents))
        nodes = r.lower(moved.view(body))
        form = space.combine(moved.result_forms(r))
        all_nodes, _ = reachable(nodes, [form])
        loops = [(a, a.high + 1) for a in space.loops]
        remaining = [(a, n) for a, n in loops if n > 1]
        nest = self._nest(body, [a for a, _ in remaining], all_nodes)
        nest.dropped = {a for a, n in loops if n == 1}
        nest.write(all_nodes)
        at = f"{target.pointer}[{nest.form(form)}]"
        assert r.fold is not None
        start = r.inits[0] if r.inits else scalar.literal(r.dtype, r.dtype.numpy_dtype.type(0))  # type: ignore[union-attr]
        self.c.line(f"for (int k = 0; k < {target.size}; ++k) {target.pointer}[k] = {start};")
        self._combine(nest.writers[-1], nest, r, nodes, [[at]], "")
        with self.c.block(""):
            self._open(nest, remaining, Bounds(), independent=True)
            self._close(len(remaining))
        return _time(prod(r.extents) * (1 + len(all_nodes)) * _NODE_NS)


@dataclass
class _Reduction:
    """Reduction over the last loops of an iteration space.

    Attributes
    ----------
    ins : Instruction
        Reduction or dot.
    extents : list of int
        Sizes of the kept dimensions, in the order of the result, then of the reduced ones.
    kept : int
        Number of kept dimensions.
    lower : callable
        Function from a body to the elements, or to both factors of a product.
    fold : Accumulator or None
        Accumulator; None if the combiner is called for each element, in order.
    inits : list of str
        C of the initial values; none for a product.
    product : bool
        True if the elements are products of two factors.
    """

    ins: Instruction
    extents: list[int]
    kept: int
    lower: Callable[[NestBody], list[Node]]
    fold: Accumulator | None
    inits: list[str]
    product: bool = False

    @property
    def dtype(self) -> ElementType:
        """Element type."""
        return self.ins.operands[0].shape.dtype

    @property
    def unordered(self) -> bool:
        """True if the elements cannot be combined in the memory of the result."""
        return self.fold is None or len(self.fold.variables) > 1 or scalar.is_narrow(self.dtype)

    @property
    def lanes(self) -> int:
        """Number of accumulators side by side."""
        return _LANES.get(self.dtype, 1) if self.fold is not None and self.fold.opcode in ("add", "multiply") else 1

    @property
    def carries_product(self) -> bool:
        """True if gcc's vectoriser must not touch the loop."""
        return not self.product and combiner_carries_product(self.ins.called[0])

    @property
    def variables(self) -> list[list[tuple[str, str]]]:
        """C type and start value of the accumulators."""
        if self.fold is not None:
            return [list(self.fold.variables)]
        dtypes = [o.shape.dtype for o in self.ins.operands[: len(self.inits)]]
        return [[(scalar.register_type(d), i)] for d, i in zip(dtypes, self.inits, strict=True)]

    def is_neutral(self, value: object) -> bool:
        """Return whether an element leaves the accumulators as they are."""
        assert self.fold is not None
        if self.product or self.fold.opcode == "add":
            return not self.dtype.is_complex and value == 0
        if self.fold.opcode == "multiply":
            return not self.dtype.is_complex and value == 1
        init = self.initial
        if init is not None and value == init:
            return True
        if self.dtype.is_integer:
            bounds = limits(self.dtype)
            return bounds is not None and int(value) == bounds[self.fold.opcode == "minimum"]  # type: ignore[call-overload]
        return self.dtype.is_float and value == (float("-inf") if self.fold.opcode == "maximum" else float("inf"))

    @property
    def initial(self) -> object:
        """Initial value, if it is a constant."""
        ins = resolve(self.ins.operands[-1]).instruction
        return ins.attrs["literal"].array.reshape(-1)[0] if ins.opcode == "constant" and ins.shape.size == 1 else None

    def totals(self, c: CWriter, variables: list[list[str]], lanes: int) -> list[str]:
        """Return the C of the results."""
        if self.fold is None:
            return [v for (v,) in variables]
        (names,) = variables
        if lanes > 1:
            name, width = names[0], lanes // 2
            sign = "*" if self.fold.opcode == "multiply" else "+"
            while width:
                c.line(f"for (int k = 0; k < {width}; ++k) {name}[k] = {name}[k] {sign} {name}[k + {width}];")
                width //= 2
            names = [f"{name}[0]"]
        total = self.fold.total(names)
        total = c.local(scalar.register_type(self.fold.total_dtype), total)
        init = self.inits[0] if self.inits else scalar.literal(self.dtype, self.dtype.numpy_dtype.type(0))  # type: ignore[union-attr]
        return [self.fold.with_init(init, total)]

    def result_forms(self, space: NestSpace) -> list[tuple[Affine, int]]:
        """Return the loops of the result with their strides."""
        steps, step = [0] * self.kept, 1
        for d in range(self.kept - 1, -1, -1):
            steps[d] = step
            step *= self.extents[d]
        return [(space.loop(d), s) for d, s in enumerate(steps)]

    def runs_along_result(self, writer: StatementWriter) -> bool:
        """Return whether elements that are neighbours in the result lie closer in memory than those of a sum."""
        body = writer.make_body(NestSpace(self.extents))
        loads = [n for n in reachable(self.lower(body))[0] if isinstance(n, Load)]
        last, reduced = body.space.loops[self.kept - 1], body.space.loops[-1]
        along = [n.form.coefficient(last) for n in loads if n.form.coefficient(last)]
        inner = [n.form.coefficient(reduced) for n in loads if n.form.coefficient(reduced)]
        return bool(along) and max(map(abs, along)) <= min(map(abs, inner), default=_FAR)


class _Moved:
    """Iteration space in which the last kept loop of a reduction is innermost."""

    def __init__(self, space: NestSpace, kept: int, count: int) -> None:
        self.space, self.kept = space, kept
        self.positions = [*range(kept - 1), count - 1, *range(kept - 1, count - 1)]

    def view(self, body: NestBody) -> NestBody:
        """Return the body, whose loops are numbered as those of the reduction."""
        positions, loop = self.positions, body.space.loop
        body.space.loop = lambda position: loop(positions[position])  # type: ignore[method-assign]
        return body

    def result_forms(self, r: _Reduction) -> list[tuple[Affine, int]]:
        """Return the loops of the result with their strides."""
        return r.result_forms(self.space)


def _time(ns: float, bounds: Bounds | None = None) -> float:
    """Return the time of a statement, of whose points those inside of bounds are computed.

    Raises
    ------
    UnsuitableLoopError
        It is so long that a kernel of its own is better.
    """
    is_bounded = bounds is not None and bool(bounds.conditions)
    ns *= 1.0 if bounds is None else bounds.share
    if ns > (MAX_BOUNDED_NS if is_bounded else MAX_STATEMENT_NS):
        raise UnsuitableLoopError(f"a statement of {int(ns)} ns")
    return ns


def _check_guards(nodes: Sequence[Node], forms: Sequence[Affine], space: NestSpace) -> None:
    """Raise `UnsuitableLoopError` for many elements with conditions on their indices: kernels split their loops."""
    guards = sum(isinstance(n, Guard) for n in nodes) + sum(isinstance(a, (Choice, Division)) for a in atoms_of(forms))
    elements = prod(a.high + 1 for a in space.loops)
    if guards * elements > MAX_GUARDED:
        raise UnsuitableLoopError(f"{elements} elements with conditions on their indices")


def _whole(space: NestSpace, dims: tuple[int, ...]) -> Index:
    return space.index(dims, tuple(space.loop(d) for d in range(len(dims))))


def _combined(ins: Instruction) -> Accumulator | None:
    opcode = combiner(ins.called[0]) if ins.shape.is_array else None
    return None if opcode is None else accumulator(opcode, ins.shape.dtype)


def _assumed(body: NestBody, conditions: Sequence[Condition], known: Bounds | None) -> Bounds | None:
    """Return known bounds with those of further conditions, which the body assumes; None if there are no others."""
    old = known.conditions if known is not None else []
    new = [c for c in dict.fromkeys(conditions) if c not in old]
    bounds = bounds_of(body.space, [*old, *new]) if new else None
    if bounds is not None:
        body.assume(new)
    return bounds


def _neutral_outside(body: NestBody, node: Node, is_neutral: Callable[[Node], bool]) -> list[Condition]:
    """Return conditions without which a value is one that changes nothing: the other value of choices."""
    found: list[Condition] = []
    while True:
        if isinstance(node, Guard) and is_neutral(node.operands[1]):
            found += node.conditions
            node = node.operands[0]
            continue
        if not isinstance(node, Apply) or node.opcode != "select" or not is_neutral(node.operands[2]):
            return found
        conditions, is_complete = body.conditions(node.operands[0])
        found += conditions
        if not is_complete:
            return found
        node = node.operands[1]
