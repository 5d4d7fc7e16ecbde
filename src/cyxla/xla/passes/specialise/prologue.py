"""Split a program with some arguments fixed into a prologue that runs once and the rest.

Before, with the parameters 1 and 2 fixed::

    x = f32[1,64] parameter(0)  w = f32[64,8] parameter(1)  s = f32[8] parameter(2)
    d = f32[1,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    e = f32[8] exponential(s)
    ROOT r = f32[1,8] multiply(d, f32[1,8] broadcast(e), dimensions={1})

After, the prologue::

    w = f32[64,8] parameter(0)  s = f32[8] parameter(1)
    e = f32[8] exponential(s)
    ROOT t = (f32[64,8]) tuple(f32[64,8] multiply(w, f32[64,8] broadcast(e), dimensions={1}))

and the main program, which takes the free arguments, the fixed ones that it uses, and the results of the prologue::

    x = f32[1,64] parameter(0)  w = f32[64,8] parameter(1)
    ROOT r = f32[1,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}

Loop invariants of fixed arguments are computed once as well. Constants stay in the main program, and so do values that
are cheaper to recompute than to read: broadcasts, and arrays far larger than their sources. `fold_scale` folds scales
into weights, which changes roundings; nothing else here does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.hlo.module import ModuleConfig
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.simplify import dce, simplification
from cyxla.xla.passes.simplify.algebra import algebra
from cyxla.xla.passes.simplify.constant_folding import work
from cyxla.xla.passes.specialise import fold_scale, split_products
from cyxla.xla.passes.specialise.hoist_known_values import hoist_from_loops
from cyxla.xla.passes.specialise.known_values import Known

ALWAYS_KEPT_BYTES: Final = 64 << 10  # bytes that are worth keeping whatever their sources
MAX_GROWTH: Final = 2  # largest ratio of an array to the fixed arguments that it depends on
#: Pass of a platform that rewrites a program to give known values the layouts of kernels; returns True if it did.
LayoutPass: TypeAlias = Callable[[HloModule, Known], bool]
#: Opcodes that are recomputed from their operands.
_RECOMPUTED: Final = frozenset({"broadcast", "reshape", "tuple", "parameter"})


@dataclass(frozen=True)
class Specialised:
    """A program split in two.

    Attributes
    ----------
    main : HloModule
        The program of the free arguments, then the `kept` ones, then the results of the prologue.
    prologue : HloModule or None
        The program of the arguments `used`, which returns a tuple of arrays. None if there is nothing to compute.
    kept, used : tuple of int
        Numbers of the fixed parameters that each program takes.
    folded : bool
        True if scales were folded into weights.
    work : int
        Approximate number of element operations of the prologue.
    """

    main: HloModule
    prologue: HloModule | None
    kept: tuple[int, ...]
    used: tuple[int, ...]
    folded: bool
    work: int

    @property
    def is_trivial(self) -> bool:
        """True if the main program is the original one, except for the order of its parameters."""
        return self.prologue is None and not self.folded


def specialise(
    module: HloModule, fixed: Collection[int], *, fold: bool = True, layouts: Iterable[LayoutPass] = ()
) -> Specialised:
    """Split a module.

    Parameters
    ----------
    module : HloModule
        A program after the passes of its platform; it is not changed.
    fixed : collection of int
        Numbers of the fixed parameters.
    fold : bool
        True if scales may be folded into weights.
    layouts : iterable of LayoutPass
        Layout passes of the platform.
    """
    main = clone(module)
    parameters = main.parameters
    known = Known(main, [parameters[n] for n in fixed])
    folded = fold and fold_scale.run(main, known)
    is_split = split_products.run(main, known)
    if is_split:
        dce.run(main)
        algebra.run(main)
    laid_out = [layout_pass(main, known) for layout_pass in layouts]
    if any(laid_out):
        known = Known(main, [parameters[n] for n in fixed])
    is_hoisted = hoist_from_loops(main, known, _values_to_keep)
    if folded or is_split or any(laid_out) or is_hoisted:
        dce.run(main)
        if is_hoisted:
            simplification.run(main)
        parameters = main.parameters
        known = Known(main, [parameters[n] for n in fixed])
    values = _values_to_keep(main.entry, known)
    prologue, used_parameters = _prologue(main, values) if values else (None, ())
    effort = sum(work(i) for i in prologue.entry.instructions if i.shape.is_array) if prologue is not None else 0
    kept_parameters = _main(main, values, sorted(set(range(len(parameters))) - set(fixed)))
    return Specialised(main, prologue, kept_parameters, used_parameters, folded, effort)


def _values_to_keep(computation: Computation, known: Known) -> list[Instruction]:
    """Return the known operands of unknown instructions that are worth keeping instead of recomputing."""
    visited: set[Instruction] = set()
    stack = list(_boundary(computation, known))
    values: set[Instruction] = set()
    while stack:
        ins = stack.pop()
        if ins in visited or not known.depends(ins):
            continue
        visited.add(ins)
        if _is_recomputed(ins, known):
            stack.extend(ins.operands)
        else:
            values.add(ins)
    return [i for i in computation.post_order() if i in values]


def _boundary(computation: Computation, known: Known) -> Iterator[Instruction]:
    for ins in computation.instructions:
        if ins not in known:
            yield from (o for o in ins.operands if o in known)
    if computation.root in known:
        yield computation.root


def _is_recomputed(ins: Instruction, known: Known) -> bool:
    if ins.opcode in _RECOMPUTED or known.is_given(ins) or not ins.shape.is_array:
        return True
    return ins.shape.nbytes > max(ALWAYS_KEPT_BYTES, MAX_GROWTH * known.source_bytes(ins))


# --- the two programs ---


def _prologue(module: HloModule, values: Sequence[Instruction]) -> tuple[HloModule, tuple[int, ...]]:
    """Return a program that computes these values, and the numbers of the parameters that it takes."""
    twin = clone(module)
    twins = dict(zip(module.entry.post_order(), twin.entry.instructions, strict=True))
    parts = [twins[i] for i in values]
    twin.name = f"{module.name}.prologue"
    twin.entry.root = twin.entry.add("tuple", parts, shape=Shape.tuple([p.shape.logical for p in parts]))
    dce.run(twin)
    used_parameters = [p for p in twin.parameters if p.users]
    numbers = tuple(int(p.attrs["parameter_number"]) for p in used_parameters)
    _renumber(twin, used_parameters)
    twin.config = ModuleConfig()
    return twin, numbers


def _main(module: HloModule, values: Sequence[Instruction], free: Sequence[int]) -> tuple[int, ...]:
    """Replace the wanted values by parameters of the module, and return the fixed parameters that it still takes."""
    computation, old = module.entry, module.parameters
    parameters: list[Instruction] = []
    for ins in values:
        number = {"parameter_number": len(old) + len(parameters)}
        shape = ins.shape.logical
        parameters.append(computation.add("parameter", (), number, shape=shape, name=ins.name, metadata=ins.metadata))
        computation.replace_all_uses(ins, parameters[-1])
    dce.run(module)
    kept_parameters = [n for n, p in enumerate(old) if n not in set(free) and (p.users or p.is_root)]
    _renumber(module, [*(old[n] for n in free), *(old[n] for n in kept_parameters), *parameters])
    module.config = _config(module.config, free)
    for inner in module.computations.values():
        inner.changed.clear()
    return tuple(kept_parameters)


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
    """Return the configuration for the remaining parameters."""
    index_of = {n: k for k, n in enumerate(free)}
    aliases = tuple(
        a._replace(parameter=index_of[a.parameter]) for a in config.input_output_alias if a.parameter in index_of
    )
    donors = tuple(d._replace(parameter=index_of[d.parameter]) for d in config.buffer_donor if d.parameter in index_of)
    return replace(config, entry_layout=None, is_scheduled=False, input_output_alias=aliases, buffer_donor=donors)
