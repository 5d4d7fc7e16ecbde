"""Horizontal fusion: small independent kernels become one, such as updates of many small parameters.

One call sets up the pointers once; where the parts are worth it, they run on several threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from cyxla.records import dataclass
from cyxla.xla.cpu.c.writer import CWriter, pointer_inside
from cyxla.xla.cpu.kernel import cost, machine
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.plan.nodes import KernelNode, Node
from cyxla.xla.cpu.plan.schedule import writes_of
from cyxla.xla.service.refusal import Refusal

MAX_BYTES = machine.L1_BYTES // 8  # bytes that one part writes
MAX_PARTS = 32
MAX_TEXT = 16_000  # characters of distinct parts: gcc's time grows faster than the length of a function

_CONFLICT = "one of them overwrites an array that the other reads"
_DEPENDS = "it depends on the small kernels before it"


@dataclass
class _Bundle:
    """Kernels that are to become one, at one position in the order of nodes."""

    position: int
    apart: str = ""  # reason for which its first kernel is in none of the bundles before
    steps: list[Step] = field(default_factory=list)
    texts: dict[str, None] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        self.steps.append(step)
        self.texts.setdefault(step.kernel.code)

    def obstacle(self, step: Step) -> str:
        """Return the reason for which a step cannot be added; empty if it can."""
        if len(self.steps) >= MAX_PARTS:
            return f"the kernel before it has {MAX_PARTS} parts"
        if sum(map(len, self.texts)) + len(step.kernel.code) * (step.kernel.code not in self.texts) > MAX_TEXT:
            return f"the C of one kernel would be longer than {MAX_TEXT} characters"
        return _CONFLICT if any(_prevents_in_place(step, s) for s in self.steps) else ""


def _prevents_in_place(a: Step, b: Step) -> bool:
    """Return whether fusion would keep one step from overwriting in place an array that the other reads."""
    overwritten = {a.reads[r] for _, r in a.in_place}, {b.reads[r] for _, r in b.in_place}
    return bool(overwritten[0] & set(b.reads) or overwritten[1] & set(a.reads))


def refusal(node: Node) -> str | None:
    """Return the reason why a node is not fused with others; None if it can be."""
    if not isinstance(node, KernelNode):
        return "it is a loop or a branch"
    step = node.step
    if step.kernel.tasks != 1:
        return "it has several tasks"
    if step.kernel.scratch:
        return "it has a scratch buffer"
    if step.functions or step.state or step.context:
        return "it calls functions, draws random numbers, or checks for cancellation"
    if step.must_alias:
        return "it updates an array in place"
    if sum(w.shape.nbytes for w in step.writes) > MAX_BYTES:
        return f"it writes more than {MAX_BYTES} bytes"
    return None


def fuse_small_kernels(nodes: Sequence[Node], reasons: list[Refusal]) -> list[Node]:
    """Fuse small kernels with earlier ones that they do not depend on.

    Parameters
    ----------
    nodes : sequence of Node
        Nodes in an order in which they can run.
    reasons : list of Refusal
        List to append to: small kernels that were not fused.
    """
    defined_at: dict[Value, int] = {}  # position of the node that defines an array
    bundles: list[_Bundle] = []
    recent: list[_Bundle] = []
    for position, node in enumerate(nodes):
        if refusal(node) is None:
            assert isinstance(node, KernelNode)
            latest_input = max((defined_at.get(v, -1) for v in node.step.reads), default=-1)
            bundle, apart = _find_bundle(node.step, latest_input, recent)
            if bundle is None:
                bundle = _Bundle(position, apart)
                bundles.append(bundle)
                recent = [bundle, *recent[:3]]
            bundle.add(node.step)
            defined_at.update(dict.fromkeys(node.step.writes, bundle.position))
        else:
            defined_at.update(dict.fromkeys(writes_of(node), position))
    for bundle in bundles:
        if len(bundle.steps) == 1 and bundle.apart:
            written = bundle.steps[0].writes[0].instruction
            reasons.append(Refusal.of("horizontal fusion", written, bundle.apart))
    return _with_bundles(nodes, bundles)


def _find_bundle(step: Step, latest_input: int, recent: Sequence[_Bundle]) -> tuple[_Bundle | None, str]:
    """Return the bundle that a step can be added to; without one None, and the reason."""
    apart = ""
    for bundle in recent:
        obstacle = _DEPENDS if bundle.position <= latest_input else bundle.obstacle(step)
        if not obstacle:
            return bundle, ""
        apart = obstacle if apart in ("", _DEPENDS) else apart
    return None, apart


def _with_bundles(nodes: Sequence[Node], bundles: Sequence[_Bundle]) -> list[Node]:
    bundled = {id(s) for b in bundles if len(b.steps) > 1 for s in b.steps}
    bundles_at = {b.position: b for b in bundles if len(b.steps) > 1}
    fused: list[Node] = []
    for position, node in enumerate(nodes):
        if position in bundles_at:
            fused.append(KernelNode(fuse_steps(bundles_at[position].steps)))
        elif not (isinstance(node, KernelNode) and id(node.step) in bundled):
            fused.append(node)
    return fused


def fuse_steps(steps: Sequence[Step]) -> Step:
    """Fuse several steps that do not depend on each other into one."""
    reads = tuple(dict.fromkeys(v for s in steps for v in s.reads))
    writes = tuple(w for s in steps for w in s.writes)
    parts = {s.kernel.code: s.kernel.text for s in reversed(steps)}
    names = {code: f"KERNEL_h{k}" for k, code in enumerate(dict.fromkeys(s.kernel.code for s in steps))}
    total = sum(s.kernel.cost for s in steps)
    tasks = min(len(steps), cost.tasks(total, len(steps)))
    c = CWriter()
    for code, name in names.items():
        c.lines(parts[code].replace("KERNEL", name).splitlines())
    slots = {v: k for k, v in enumerate(reads)}
    with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
        c.line(f"const int64_t from = begin * {len(steps)} / {tasks}, to = end * {len(steps)} / {tasks};")
        c.line("cyx_status s;")
        written = len(reads)
        for k, step in enumerate(steps):
            indices = [slots[v] for v in step.reads] + list(range(written, written + len(step.writes)))
            written += len(step.writes)
            places = zip(indices, step.offsets_of(len(indices)), strict=True)
            bufs = ", ".join(pointer_inside(f"bufs[{p}]", offset) for p, offset in places)
            call = f"if ((s = {names[step.kernel.code]}(b, 0, 1))) return s;"
            test = f"if (from <= {k} && {k} < to) " if tasks > 1 else ""
            c.line(f"{test}{{ void *const b[] = {{{bufs}}}; {call} }}")
        c.line("(void)from; (void)to; (void)s;")
        c.line("return CYX_OK;")
    groups = tuple(g for s in steps for g in s.groups)
    loops = tuple(listing for s in steps for listing in s.kernel.loops)
    refusals = tuple(r for s in steps for r in s.kernel.refusals)
    kernel = Kernel(c.text(), tasks, total, kind=KernelKind.BUNDLE, loops=loops, refusals=refusals)
    return Step(kernel, reads, writes, _in_place(steps, slots), groups=groups)


def _in_place(steps: Sequence[Step], slots: dict[Value, int]) -> tuple[tuple[int, int], ...]:
    """Return the in-place pairs of the parts, except for arrays that several parts read."""
    readers: dict[Value, int] = {}
    for step in steps:
        for value in dict.fromkeys(step.reads):
            readers[value] = readers.get(value, 0) + 1
    pairs, written = [], 0
    for step in steps:
        pairs += [(written + w, slots[step.reads[r]]) for w, r in step.in_place if readers[step.reads[r]] == 1]
        written += len(step.writes)
    return tuple(pairs)
