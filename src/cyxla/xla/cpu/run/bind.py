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
from cyxla.xla.passes.specialise.prologue import LayoutPass, Specialised, specialise
from cyxla.xla.service import CompileOptions, Executable
from cyxla.xla.service.bound_arguments import aligned_copy, private_copy
from cyxla.xla.service.donation import resolve_donation

Compile: TypeAlias = "Callable[[HloModule, CompileOptions], Executable]"

#: Element operations from which compiling a prologue costs less than evaluating it.
MIN_COMPILED_OPS: Final = 1 << 31
_SLOW_TO_EVALUATE: Final = frozenset({"while", "conditional", "sort", "scatter", "reduce-window", "select-and-scatter"})


def bind(
    program: CpuExecutable, bound: Mapping[int, Any], arguments: Mapping[int, Any], compile: Compile
) -> CpuExecutable:
    """Return the executable of the remaining program.

    Parameters
    ----------
    program : CpuExecutable
        Program, perhaps with fixed arguments.
    bound, arguments : mapping of int to arrays
        Arguments that are fixed already, which are private copies, and those of the caller: by parameter of the module
        that `program` runs, checked, nested as the parameters are.
    compile : callable
        Compiler of the prologue and of the main program.
    """
    fixed = {**bound, **arguments}
    plan, computed = split(program.optimized, program.options, fixed, compile)
    values = {n: private_copy(arguments[n]) if n in arguments else bound[n] for n in plan.kept}
    if plan.is_trivial:
        return program.with_fixed({n: values[n] if n in values else _zeros_like(v) for n, v in fixed.items()})
    executable = _compile(plan.main, _main_options(program, fixed), compile)
    first_fixed = len(plan.main.parameters) - len(values) - len(computed)
    return executable.with_fixed(
        dict(enumerate([*values.values(), *computed], first_fixed)), input_module=program.input_module
    )


def split(
    optimized: HloModule,
    options: CompileOptions,
    fixed: Mapping[int, Any],
    compile: Compile,
    layout: LayoutPass = pack,
) -> tuple[Specialised, Sequence[Any]]:
    """Return the programs before and after binding, and the results of the first.

    Scales are not folded into weights that overflow with them.

    Parameters
    ----------
    optimized : HloModule
        Program after the passes.
    options : CompileOptions
        Options of the program.
    fixed : mapping of int to arrays
        Fixed arguments by parameter.
    compile : callable
        Compiler of the program before.
    layout : callable
        Pass that gives fixed arguments the layouts of kernels.
    """
    plan = specialise(optimized, fixed, layouts=(layout,))
    results = _run(plan, fixed, options, compile)
    if plan.folded and not all(map(_is_finite, results)):
        plan = specialise(optimized, fixed, fold=False, layouts=(layout,))
        results = _run(plan, fixed, options, compile)
    return plan, [aligned_copy(m) for m in results]


def _run(plan: Specialised, fixed: Mapping[int, Any], options: CompileOptions, compile: Compile) -> Sequence[Any]:
    if plan.prologue is None:
        return ()
    values = [fixed[n] for n in plan.used]
    has_loops = any(i.opcode in _SLOW_TO_EVALUATE for i in plan.prologue.entry.instructions)
    if has_loops or plan.work > MIN_COMPILED_OPS:
        return tuple(_compile(plan.prologue, replace(options, donate=(), in_place=()), compile)(*values))
    from cyxla.xla.evaluator import evaluate  # most programs have no fixed arguments

    results = evaluate(plan.prologue, values)
    assert isinstance(results, tuple)
    return results


def _is_finite(array: Any) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _main_options(program: CpuExecutable, fixed: Mapping[int, Any]) -> CompileOptions:
    """Return the options of the main program, with donated arguments number_instructions anew."""
    donate = resolve_donation(program.options, program.optimized).donate
    if isinstance(donate, bool):
        return replace(program.options, in_place=())
    remaining = [n for n in range(len(program.optimized.parameters)) if n not in fixed]
    return replace(program.options, in_place=(), donate=tuple([k for k, n in enumerate(remaining) if n in donate]))


def _compile(module: HloModule, options: CompileOptions, compile: Compile) -> CpuExecutable:
    compiled = compile(module, options)
    assert isinstance(compiled, CpuExecutable)
    return compiled


def _zeros_like(value: Any) -> Any:
    """Return zeros, whose pages are not mapped until they are read, for arguments that no kernel reads."""
    if isinstance(value, tuple):
        return tuple([_zeros_like(v) for v in value])
    return np.zeros(value.shape, value.dtype) if isinstance(value, np.ndarray) else value
