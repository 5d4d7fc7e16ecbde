"""Text of the loop IR, for a dump.

A line is a node, named ``$`` and its number, or an index derived from others, named ``n`` and its number. ``p0`` is an
array that the kernel reads, ``r0`` one that it writes, and behind ``#`` stands the instruction, ``%`` and its number in
the kernel, all as in the C (`kernel.hlo_quotes`); names of the module stand beside them, without a mark::

    p0 = s32[64] i
    p1 = f32[100,256] x
    loops i0 < 64, i1 < 259
    $0 = external f32 0
    $1 = load s32 p0[i0]
    n3 = i1 - 3 if 0 <= i1 - 3 else 0
    n4 = clamp($1, 0, 99)
    $2 = load f32 p1[n3 + 256*n4]
    $3 = multiply f32 $2, $2                      # %0 square.1
    $4 = constant f32 0x0.0p+0f
    $5 = guard f32 $3 if 0 <= i1 - 3 else $4
    fold $0 = $5 from $4
    store f32 r0[i0] = $0
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel.kernel import Names, Value
from cyxla.xla.cpu.loops.index_map import (
    Affine,
    Atom,
    Choice,
    Condition,
    Division,
    Loop,
    Quotient,
    Runtime,
    atoms_of,
)
from cyxla.xla.cpu.loops.nodes import Apply, Call, Constant, External, Guard, IndexValue, Load, Map, Node, Table
from cyxla.xla.cpu.loops.vector_refusals import vector_refusals
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.service.refusal import Refusal

if TYPE_CHECKING:
    from cyxla.xla.cpu.loops.hoisting import LoopNest
    from cyxla.xla.cpu.loops.iteration_boxes import Store
    from cyxla.xla.cpu.loops.loop_ir import Body

_COMMENT_COLUMN = 44


class Fold(NamedTuple):
    """Reduction over some loops: the external node of its result, the elements, and an initial value or None."""

    result: Node
    element: Node
    init: Node | None


@dataclass(frozen=True, eq=False)
class LoopListing:
    """Loop IR of a part of a kernel; see `kernel.Listing`.

    Parameters
    ----------
    body, stores, folds
        Loop body; see `loop_text`.
    nest : LoopNest, optional
        Nest that its C was written in.
    scalar : Refusal, optional
        Reason for which the loop as a whole is not vectorised.
    """

    body: Body
    stores: Sequence[Store] = ()
    folds: Sequence[Fold] = ()
    nest: LoopNest | None = None
    scalar: Refusal | None = None

    def text(self, names: Names) -> str:
        """Return the text of the loop IR."""
        return loop_text(names, self.body, self.stores, self.folds)

    def refusals(self) -> Iterator[Refusal]:
        """Yield the reasons for which the loop is not vectorised."""
        if self.scalar is not None:
            yield self.scalar
        else:
            yield from vector_refusals(self.body, self.nest)


def loop_text(names: Names, body: Body, stores: Sequence[Store] = (), folds: Sequence[Fold] = ()) -> str:
    """Return the text of a loop body.

    Parameters
    ----------
    names : mapping
        Names of instructions and computations, as in the text of the module.
    body : Body
        Body to print.
    stores : sequence of Store
        Stores of the loop.
    folds : sequence of Fold
        Reductions whose results are among the external nodes.
    """
    lines = [f"p{n} = {v.shape} {_array(v, names)}" for n, v in enumerate(body.reads.values)]
    loops = [f"{atom_text(a)} < {a.high + 1}" for a in body.space.loops]
    lines += [f"loops {', '.join(loops)}"] if loops else []
    known: set[Atom] = set(body.space.loops)
    for node in body.nodes:
        lines += _definitions(node.forms, known)
        lines.append(_commented(f"{_ref(node)} = {node_text(node, names)}", _origin(node, body, names)))
    for fold in folds:
        start = f" from {_ref(fold.init)}" if fold.init is not None else ""
        lines.append(f"fold {_ref(fold.result)} = {_ref(fold.element)}{start}")
    for store in stores:
        lines += _definitions((store.form,), known)
        lines.append(f"store {store.dtype} r{store.slot}[{form_text(store.form)}] = {_ref(store.node)}")
    return "\n".join(lines) + "\n"


def node_text(node: Node, names: Names) -> str:
    """Return the text of a node: its kind or opcode, its element type, its operands."""
    operands = ", ".join(_ref(o) for o in node.operands)
    match node:
        case Load(slot=slot, form=form):
            return f"load {node.dtype} p{slot}[{form_text(form)}]"
        case Table(literal=literal, form=form):
            return f"table {node.dtype} {literal.array.reshape(-1).tolist()}[{form_text(form)}]"
        case Constant(text=text):
            return f"constant {node.dtype} {text[1:-1] if text[0] == '(' and text[-1] == ')' else text}"
        case IndexValue(form=form):
            return f"index {node.dtype} {form_text(form)}"
        case Apply(instruction=ins):
            return ", ".join([f"{ins.opcode} {node.dtype} {operands}", *_attributes(ins)])
        case Map(computation=computation):
            return f"map {node.dtype} {operands}, to_apply={_named(computation, names)}"
        case Guard(conditions=conditions, operands=(inside, outside)):
            return f"guard {node.dtype} {_ref(inside)} if {_tests(conditions)} else {_ref(outside)}"
        case Call(writer=writer):
            return f"call {node.dtype} {operands}, writer={type(writer).__name__.strip('_')}"
        case External(key=key):
            return f"external {node.dtype} {_key(key, names)}"
        case _:
            return f"{node!r} {node.dtype} {operands}"


def atom_text(atom: Atom) -> str:
    """Return the name of an atom: ``i`` and its position for a loop, otherwise ``n`` and its number."""
    return f"i{atom.position}" if isinstance(atom, Loop) else f"n{atom.number}"


def form_text(form: Affine) -> str:
    """Return the text of a form, such as ``256*i0 + i1 - 1``."""
    signed = [(c, atom_text(a) if abs(c) == 1 else f"{abs(c)}*{atom_text(a)}") for a, c in form.terms]
    if form.constant or not signed:
        signed.append((form.constant, str(abs(form.constant))))
    text = "".join(f" {'-' if c < 0 else '+'} {part}" for c, part in signed)
    return f"-{text[3:]}" if signed[0][0] < 0 else text[3:]


def _derivation(atom: Atom) -> str:
    match atom:
        case Division(form=form, divisor=divisor):
            return f"({form_text(form)}) {'/' if isinstance(atom, Quotient) else '%'} {divisor}"
        case Runtime(node=node):
            return f"clamp({_ref(node)}, {atom.low}, {atom.high})"
        case Choice(conditions=conditions, form=form):
            return f"{form_text(form)} if {_tests(conditions)} else 0"
        case _:
            return repr(atom)


def _definitions(forms: Iterable[Affine], known: set[Atom]) -> list[str]:
    """Return the lines of the derived atoms that are not known yet, which are known from then on."""
    new = [a for a in atoms_of(forms) if a not in known]
    known.update(new)
    return [f"{atom_text(a)} = {_derivation(a)}" for a in new]


def _tests(conditions: Iterable[Condition]) -> str:
    texts = []
    for form, low, high in conditions:
        left, right = f"{low} <= " if form.low < low else "", f" <= {high}" if form.high > high else ""
        texts.append(f"{left}{form_text(form)}{right}")
    return " and ".join(texts)


def _attributes(ins: Instruction) -> list[str]:
    return [f"{a.name}={ins.attrs[a.name]}" for a in ins.row.attrs if ins.attrs[a.name] not in (None, a.default)]


def _origin(node: Node, body: Body, names: Names) -> str:
    """Return the number in the kernel, if it has one, and the name of the instruction of a node."""
    if not isinstance(node, Apply):
        return ""
    ins = node.instruction
    return " ".join([*([f"%{body.fused[ins]}"] if ins in body.fused else []), _named(ins, names)])


def _key(key: Hashable, names: Names) -> str:
    match key:
        case (Value() as value, int() as element):
            return f"{_array(value, names)}[{element}]"
        case _:
            return str(key)


def _array(value: Value, names: Names) -> str:
    return _named(value.instruction, names) + "".join(f".{i}" for i in value.index)


def _named(value: Instruction | Computation, names: Names) -> str:
    return names.get(value) or value.name or "unnamed"


def _commented(line: str, comment: str) -> str:
    return f"{line:{_COMMENT_COLUMN}}  # {comment}" if comment else line


def _ref(node: Node) -> str:
    return f"${node.number}"
