"""A program for arguments that stay the same: what depends on them alone moves to a program that runs once.

Before, with the parameters 1 and 2 fixed::

    x = f32[1,64] parameter(0)  w = f32[64,8] parameter(1)  s = f32[8] parameter(2)
    d = f32[1,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    e = f32[8] exponential(s)
    ROOT r = f32[1,8] multiply(d, f32[1,8] broadcast(e), dimensions={1})

After, the prologue::

    w = f32[64,8] parameter(0)  s = f32[8] parameter(1)
    e = f32[8] exponential(s)
    ROOT t = (f32[64,8]) tuple(f32[64,8] multiply(w, f32[64,8] broadcast(e), dimensions={1}))

and the main program, which takes what is free, then what is fixed, then what the prologue made::

    x = f32[1,64] parameter(0)  w = f32[64,8] parameter(1)
    ROOT r = f32[1,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}

Also what a loop computes from fixed arguments alone is computed once. Constants stay with the main program, and so does
what is cheaper to make again than to read: broadcasts, and arrays far larger than what they come from. Scales are
folded into weights by `fold_scale`, which changes roundings; nothing else here does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.hlo.module import ModuleConfig
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.simplify import dce, simplification
from cyxla.xla.passes.simplify.algebra import algebra
from cyxla.xla.passes.simplify.constant_folding import work
from cyxla.xla.passes.specialise import fold_scale, split_products
from cyxla.xla.passes.specialise.hoist import hoist_from_loops
from cyxla.xla.passes.specialise.known import Known

SMALL: Final = 64 << 10  # bytes that are worth keeping whatever they come from
GROWTH: Final = 2  # how much larger than the fixed arguments behind it an array may be
#: Rewrites a program so that known values lie as kernels read them; says whether it did.
Layouts: TypeAlias = Callable[[HloModule, Known], bool]
#: Read as what they are made from.
_STAYS: Final = frozenset({"broadcast", "reshape", "tuple", "parameter"})


@dataclass(frozen=True)
class Specialised:
    """A program split in two.

    Attributes
    ----------
    main : HloModule
        Takes the free arguments, then the `kept`, then the results of the prologue.
    prologue : HloModule or None
        Takes the arguments `used`; gives a tuple of arrays. None where there is nothing to compute.
    kept, used : tuple of int
        Numbers of the fixed parameters.
    folded : bool
        Whether scales were folded into weights.
    work : int
        Element operations of the prologue, roughly.
    """

    main: HloModule
    prologue: HloModule | None
    kept: tuple[int, ...]
    used: tuple[int, ...]
    folded: bool
    work: int

    @property
    def is_trivial(self) -> bool:
        """Whether the main program is the one that was given, but for the order of its parameters."""
        return self.prologue is None and not self.folded


def specialise(
    module: HloModule, fixed: Collection[int], *, fold: bool = True, layouts: Iterable[Layouts] = ()
) -> Specialised:
    """Split a module.

    Parameters
    ----------
    module : HloModule
        A program that went through the passes of its platform; it is left as it is.
    fixed : collection of int
        Numbers of the parameters that stay the same.
    fold : bool
        Whether scales may be folded into weights.
    layouts : iterable of Layouts
        What the platform does to known values.
    """
    main = clone(module)
    parameters = main.parameters
    known = Known(main, [parameters[n] for n in fixed])
    folded = fold and fold_scale.run(main, known)
    split = split_products.run(main, known)
    if split:
        dce.run(main)
        algebra.run(main)
    laid_out = [lay_out(main, known) for lay_out in layouts]
    if any(laid_out):
        known = Known(main, [parameters[n] for n in fixed])
    moved = hoist_from_loops(main, known, _wanted)
    if folded or split or any(laid_out) or moved:
        dce.run(main)
        if moved:
            simplification.run(main)
        parameters = main.parameters
        known = Known(main, [parameters[n] for n in fixed])
    wanted = _wanted(main.entry, known)
    prologue, used = _prologue(main, wanted) if wanted else (None, ())
    effort = sum(work(i) for i in prologue.entry.instructions if i.shape.is_array) if prologue is not None else 0
    kept = _main(main, wanted, sorted(set(range(len(parameters))) - set(fixed)))
    return Specialised(main, prologue, kept, used, folded, effort)


def _wanted(computation: Computation, known: Known) -> list[Instruction]:
    """The known values that unknown instructions need and that are better kept than computed again."""
    seen: set[Instruction] = set()
    stack = list(_borders(computation, known))
    found: set[Instruction] = set()
    while stack:
        ins = stack.pop()
        if ins in seen or not known.depends(ins):
            continue
        seen.add(ins)
        if _stays(ins, known):
            stack.extend(ins.operands)
        else:
            found.add(ins)
    return [i for i in computation.post_order() if i in found]


def _borders(computation: Computation, known: Known) -> Iterator[Instruction]:
    for ins in computation.instructions:
        if ins not in known:
            yield from (o for o in ins.operands if o in known)
    if computation.root in known:
        yield computation.root


def _stays(ins: Instruction, known: Known) -> bool:
    if ins.opcode in _STAYS or known.is_given(ins) or not ins.shape.is_array:
        return True
    return ins.shape.nbytes > max(SMALL, GROWTH * known.bytes_behind(ins))


# --- the two programs ---


def _prologue(module: HloModule, wanted: Sequence[Instruction]) -> tuple[HloModule, tuple[int, ...]]:
    """A program that computes these, and the numbers of the parameters that it takes."""
    twin = clone(module)
    twins = dict(zip(module.entry.post_order(), twin.entry.instructions, strict=True))
    parts = [twins[i] for i in wanted]
    twin.name = f"{module.name}.prologue"
    twin.entry.root = twin.entry.add("tuple", parts, shape=Shape.tuple([p.shape.logical for p in parts]))
    dce.run(twin)
    used = [p for p in twin.parameters if p.users]
    numbers = tuple(int(p.attrs["parameter_number"]) for p in used)
    _renumber(twin, used)
    twin.config = ModuleConfig()
    return twin, numbers


def _main(module: HloModule, wanted: Sequence[Instruction], free: Sequence[int]) -> tuple[int, ...]:
    """Make the module take the wanted values as arguments; gives the fixed parameters that it still takes."""
    computation, old = module.entry, module.parameters
    made: list[Instruction] = []
    for ins in wanted:
        number = {"parameter_number": len(old) + len(made)}
        shape = ins.shape.logical
        made.append(computation.add("parameter", (), number, shape=shape, name=ins.name, metadata=ins.metadata))
        computation.replace_all_uses(ins, made[-1])
    dce.run(module)
    kept = [n for n, p in enumerate(old) if n not in set(free) and (p.users or p.is_root)]
    _renumber(module, [*(old[n] for n in free), *(old[n] for n in kept), *made])
    module.config = _config(module.config, free)
    for inner in module.computations.values():
        inner.changed.clear()
    return tuple(kept)


def _renumber(module: HloModule, order: Iterable[Instruction]) -> None:
    """Number parameters in a given order, and drop the others."""
    computation = module.entry
    old = computation.parameters
    for number, ins in enumerate(list(order)):
        attrs = {**ins.attrs, "parameter_number": number}
        new = computation.add(
            "parameter", (), attrs, shape=ins.shape, name=ins.name, metadata=ins.metadata, extras=ins.extras
        )
        computation.replace_all_uses(ins, new)
    for ins in old:
        computation.remove(ins)


def _config(config: ModuleConfig, free: Sequence[int]) -> ModuleConfig:
    """The same for the parameters that are left."""
    place = {n: k for k, n in enumerate(free)}
    aliases = tuple(a._replace(parameter=place[a.parameter]) for a in config.input_output_alias if a.parameter in place)
    donors = tuple(d._replace(parameter=place[d.parameter]) for d in config.buffer_donor if d.parameter in place)
    return replace(config, entry_layout=None, is_scheduled=False, input_output_alias=aliases, buffer_donor=donors)
