"""Programs of functions written with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from cyxla.aot.checks import check_of
from cyxla.aot.modules import of_module
from cyxla.aot.program import Fixed, Program
from cyxla.numpy.calls.argument_adapters import STATIC_TYPES
from cyxla.numpy.calls.jitted import Jitted
from cyxla.numpy.calls.lowering import Lowered, Spec
from cyxla.numpy.tracing.containers import paths
from cyxla.xla.service import CompileOptions


def of_function(function: Callable[..., Any], specs: Sequence[Any], options: Mapping[str, Any]) -> Program:
    """Return the program of a function, traced for some specs, with the options of `cyxla.jit`."""
    if isinstance(function, Jitted):
        options = {**function.settings, **options}
        function = function.function
    jitted: Jitted[..., Any] = Jitted(function, **options)
    call, lowered = jitted.trace_call(*specs)
    compiled = replace(CompileOptions.of(jitted.options), live_results=lowered.live_results)
    whole = of_module(lowered.module, compiled)
    names = [n for n, spec in zip(call.names, call.specs, strict=True) if isinstance(spec, Spec)]
    arguments = tuple([replace(a, name=n) for a, n in zip(whole.arguments, names, strict=True)])
    size = lowered.tree.count
    outputs = [replace(a, name=n) for a, n in zip(whole.results, _result_names(lowered, names), strict=False)]
    return replace(
        whole,
        name=function.__name__,
        arguments=arguments,
        results=tuple(outputs),
        result_tree=lowered.tree.build(range(size)),
        argument_trees=_argument_trees(call),
        parameters=tuple([a.name for a in call.binding.arguments]),
        rank0=tuple([kind.name.lower() for kind in lowered.rank0]),
        written={k: size + n for n, k in enumerate(lowered.writes)},
        checks=tuple(map(check_of, lowered.program.checks)) if lowered.fails else (),
        doc=(function.__doc__ or "").strip(),
    )


def _argument_trees(call: Any) -> tuple[Any, ...]:
    """Return the structure of each argument, with numbers in place of arrays."""
    numbers = count()
    leaves = iter([next(numbers) if isinstance(spec, Spec) else Fixed(spec.value) for spec in call.specs])
    return tuple([tree.take(leaves) for tree in call.trees])


def _result_names(lowered: Lowered, arguments: Sequence[str]) -> list[str]:
    numbered = lowered.tree.build(range(lowered.tree.count))
    return [*paths(numbered, "result", STATIC_TYPES), *(f"new {arguments[k]}" for k in lowered.writes)]
