"""Sessions that can compile their graphs; importing this module registers the passes, devices and modes that do so.

The compiler itself is imported when the first graph that needs it is prepared.
"""

from __future__ import annotations

from cyxla.autojit import pass_table
from cyxla.autojit.fused_ops import rewrite
from cyxla.autojit.runtime.xla_device import register_devices
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.device_factory import DeviceFactoryRegistry
from cyxla.core.runtime.engine import Engine, Runner
from cyxla.core.runtime.optimization_registry import OptimizationPassRegistry
from cyxla.core.runtime.saved_model import load_saved_model
from cyxla.core.runtime.session import Session, register_jit

__all__ = ["Session", "load_saved_model"]


def _prepare_graph(engine: Engine, graph: Graph) -> Runner:
    """Prepare one program for the whole graph: ``jit="on"``."""
    from cyxla.autojit.runtime.compiled_runner import prepare_compiled

    return prepare_compiled(engine, graph)


def _prepare_clusters(engine: Engine, graph: Graph) -> Runner:
    """Prepare a graph for ``jit="auto"``: the passes have already put its clusters in place."""
    return engine.prepare(graph)


def _load_plugins() -> None:
    """Load the backends of installed packages, which may register devices."""
    from cyxla.xla.service import load_entry_points

    load_entry_points()


rewrite.register(OptimizationPassRegistry.global_())
pass_table.register()
DeviceFactoryRegistry.global_().add_loader(_load_plugins)
register_devices()
register_jit("on", _prepare_graph)
register_jit("auto", _prepare_clusters)
