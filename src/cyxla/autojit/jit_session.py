"""Sessions that can compile what they run: the front door of graphs, which registers all that compiles.

What compiles is loaded when the first graph is prepared that needs it.
"""

from __future__ import annotations

from cyxla.autojit import pass_table as passes
from cyxla.autojit.fused_ops import rewrite as fused_graph
from cyxla.autojit.runtime.xla_device import register_devices
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.device_factory import DeviceFactoryRegistry
from cyxla.core.runtime.engine import Engine, Runner
from cyxla.core.runtime.optimization_registry import OptimizationPassRegistry
from cyxla.core.runtime.saved_model import load_saved_model
from cyxla.core.runtime.session import Session, register_jit

__all__ = ["Session", "load_saved_model"]


def _whole(engine: Engine, graph: Graph) -> Runner:
    """One program for everything: ``jit="on"``."""
    from cyxla.autojit.runtime.compiled_runner import prepare_compiled

    return prepare_compiled(engine, graph)


def _clustered(engine: Engine, graph: Graph) -> Runner:
    """What can be compiled, in clusters: ``jit="auto"``. The passes do it."""
    return engine.prepare(graph)


def _announced() -> None:
    """Load the backends of installed packages, which may bring devices."""
    from cyxla.xla.service import load_announced

    load_announced()


fused_graph.register(OptimizationPassRegistry.global_())
passes.register()
DeviceFactoryRegistry.global_().add_loader(_announced)
register_devices()
register_jit("on", _whole)
register_jit("auto", _clustered)
