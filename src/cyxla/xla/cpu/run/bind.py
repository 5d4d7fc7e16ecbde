"""Binding of fixed arguments: values that depend on them alone are computed once, before the first call.

`specialise` splits the program. The prologue computes the values that depend on the fixed arguments alone (folded
scales, weights packed as kernels read them) while binding; its results become arguments of the main program, which is
compiled like any other. Both programs depend on the numbers of the fixed arguments, not on their values, so the disk
cache holds the main program too. The values are copied while binding: later changes of the caller's arrays have no
effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from cyxla.xla.cpu.run.executable import CpuExecutable
from cyxla.xla.cpu.run.pack_weights import pack
from cyxla.xla.hlo import HloModule
from cyxla.xla.passes.specialise.prologue import Specialised, specialise
from cyxla.xla.service import CompileOptions, Executable
from cyxla.xla.service.bound import aligned_copy, private_copy
from cyxla.xla.service.donation import resolve_donation

Compile: TypeAlias = "Callable[[HloModule, CompileOptions], Executable]"

#: Element operations from which compiling a prologue costs less than evaluating it.
COMPILE_ABOVE: Final = 1 << 31
_LOOPS: Final = frozenset({"while", "conditional", "sort", "scatter", "reduce-window", "select-and-scatter"})


def bind(whole: CpuExecutable, before: Mapping[int, Any], new: Mapping[int, Any], compile: Compile) -> CpuExecutable:
    """Return the executable of the remaining program.

    Parameters
    ----------
    whole : CpuExecutable
        Program, perhaps with fixed arguments.
    before, new : mapping of int to arrays
        Arguments that are fixed already, which are private copies, and those of the caller: by parameter of the module
        that `whole` runs, checked, nested as the parameters are.
    compile : callable
        Compiler of the prologue and of the main program.
    """
    fixed = {**before, **new}
    plan, made = _split(whole, fixed, compile)
    kept = {n: private_copy(new[n]) if n in new else before[n] for n in plan.kept}
    if plan.is_trivial:
        return whole.with_fixed({n: kept[n] if n in kept else _nothing_of(v) for n, v in fixed.items()})
    main = _compiled(plan.main, _left(whole, fixed), compile)
    first = len(plan.main.parameters) - len(kept) - len(made)
    return main.with_fixed(dict(enumerate([*kept.values(), *made], first)), given=whole.given)


def _split(whole: CpuExecutable, fixed: Mapping[int, Any], compile: Compile) -> tuple[Specialised, Sequence[Any]]:
    """Return both programs and the results of the prologue; without folded scales if weights overflow with them."""
    plan = specialise(whole.optimized, fixed, layouts=(pack,))
    made = _run(plan, fixed, whole.options, compile)
    if plan.folded and not all(map(_is_finite, made)):
        plan = specialise(whole.optimized, fixed, fold=False, layouts=(pack,))
        made = _run(plan, fixed, whole.options, compile)
    return plan, [aligned_copy(m) for m in made]


def _run(plan: Specialised, fixed: Mapping[int, Any], options: CompileOptions, compile: Compile) -> Sequence[Any]:
    if plan.prologue is None:
        return ()
    values = [fixed[n] for n in plan.used]
    loops = any(i.opcode in _LOOPS for i in plan.prologue.entry.instructions)
    if loops or plan.work > COMPILE_ABOVE:
        return tuple(_compiled(plan.prologue, replace(options, donate=()), compile)(*values))
    from cyxla.xla.evaluator import evaluate  # most programs have no fixed arguments

    results = evaluate(plan.prologue, values)
    assert isinstance(results, tuple)
    return results


def _is_finite(array: Any) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _left(whole: CpuExecutable, fixed: Mapping[int, Any]) -> CompileOptions:
    """Return the options of the main program, with donated arguments numbered anew."""
    donate = resolve_donation(whole.options, whole.optimized).donate
    if isinstance(donate, bool):
        return whole.options
    free = [n for n in range(len(whole.optimized.parameters)) if n not in fixed]
    return replace(whole.options, donate=tuple([k for k, n in enumerate(free) if n in donate]))


def _compiled(module: HloModule, options: CompileOptions, compile: Compile) -> CpuExecutable:
    compiled = compile(module, options)
    assert isinstance(compiled, CpuExecutable)
    return compiled


def _nothing_of(value: Any) -> Any:
    """Return zeros, whose pages are not mapped until they are read, for arguments that no kernel reads."""
    if isinstance(value, tuple):
        return tuple([_nothing_of(v) for v in value])
    return np.zeros(value.shape, value.dtype) if isinstance(value, np.ndarray) else value
