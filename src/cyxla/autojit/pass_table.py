"""The clustering passes by group and phase: one table, from which the pass registry is filled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from cyxla.core.runtime.optimization_registry import Grouping, OptimizationPassOptions, OptimizationPassRegistry
from cyxla.forking import new_lock

_PLACEMENT, _REWRITE, _COMPOSITION = Grouping.PRE_PLACEMENT, Grouping.POST_REWRITE_FOR_EXEC, Grouping.COMPOSITION
# fmt: off
#    group        phase  name                                   module and function
_PASSES = [
    (_PLACEMENT,    35, "IntroduceFloatingPointJitterPass",
     "passes.floating_point_jitter:introduce_floating_point_jitter"),
    (_PLACEMENT,    36, "EncapsulateXlaComputationsPass",       "regions:encapsulate_xla_computations"),
    (_REWRITE,       3, "FunctionalizeControlFlowForXlaPass",   "passes.functionalize_loops:functionalize_loops"),
    (_REWRITE,       5, "CloneConstantsForBetterClusteringPass",
     "passes.clone_constants:clone_constants_for_better_clustering"),
    (_REWRITE,       9, "ClusterScopingPass",                   "passes.cluster_scoping:cluster_scoping"),
    (_REWRITE,      10, "MarkForCompilationPass",               "passes.mark_for_compilation:mark_for_compilation"),
    (_REWRITE,      12, "ForceXlaConstantsOnHostPass",          "passes.force_constants:force_xla_constants_on_host"),
    (_REWRITE,      20, "IncreaseDynamismForAutoJitPass",       "passes.increase_dynamism:increase_dynamism"),
    (_REWRITE,      30, "PartiallyDeclusterPass",               "passes.partially_decluster:partially_decluster"),
    (_REWRITE,      40, "ReportClusteringInfoPass",             "report:report_clustering_info"),
    (_REWRITE,      50, "EncapsulateSubgraphsPass",             "passes.encapsulate:encapsulate_subgraphs"),
    (_REWRITE,      60, "BuildXlaOpsPass",                      "passes.build_xla_ops:build_xla_ops"),
    (_COMPOSITION,  10, "ComposeXlaLaunchPass",                 "passes.compose_launches:compose_launches"),
]
# fmt: on
_filled_registries: set[int] = set()
_LOCK = new_lock()


def _run(entry_point: str, options: OptimizationPassOptions) -> None:
    """Import and run a pass, unless the graph asks for no compilation at all."""
    from cyxla.autojit.options import JitOptions

    jit = JitOptions(options)
    if jit.is_needed:
        module, _, name = entry_point.partition(":")
        pass_function: Callable[[JitOptions], object] = getattr(import_module(f"cyxla.autojit.{module}"), name)
        pass_function(jit)


def register(registry: OptimizationPassRegistry | None = None) -> None:
    """Add the passes to a registry, the global one by default; a second call does nothing."""
    target = OptimizationPassRegistry.global_() if registry is None else registry
    with _LOCK:
        if id(target) in _filled_registries:
            return
        _filled_registries.add(id(target))
    for grouping, phase, name, entry_point in _PASSES:
        target.register(grouping, phase, partial(_run, entry_point), name)
