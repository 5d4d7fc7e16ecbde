"""Options of the clustering passes: the level of clustering, and the compilation device of each node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cyxla.autojit.devices import REGISTRY, DeviceInfo, Policy
from cyxla.autojit.flags import Flags, current
from cyxla.core.framework.device_base import DeviceName
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.optimization_registry import OptimizationPassOptions

OFF, DEFAULT, ON, EXTREME = -1, 0, 1, 2  # levels
_SESSION_LEVELS = {"auto": EXTREME}

CLUSTER, SCOPE, INTERNAL_SCOPE = "_XlaCluster", "_XlaScope", "_XlaInternalScope"
COMPILE, MUST_COMPILE, ALREADY = "_XlaCompile", "_XlaMustCompile", "_XlaAlreadyClustered"
COMPILED_KERNEL, REGION = "_XlaCompiledKernel", "_xla_compile_id"
NUM_CONSTANTS, NUM_RESOURCES = "_XlaNumConstantArgs", "_XlaNumResourceArgs"
LAUNCH_OF, LAZY, PLATFORM = "_XlaLaunchOf", "_XlaLazy", "_XlaPlatform"
_COMPILATION_ATTRS = frozenset({COMPILE, MUST_COMPILE, CLUSTER, COMPILED_KERNEL, REGION, LAUNCH_OF})
_LAUNCH_OPS = frozenset({"XlaLaunch", "_XlaCompile", "_XlaRun", "_XlaMerge"})


@dataclass
class JitOptions:
    """Options of the passes for one graph, derived from the session's settings and the flags."""

    options: OptimizationPassOptions

    @property
    def graph(self) -> Graph:
        """The graph in its current state."""
        return self.options.graph

    @cached_property
    def flags(self) -> Flags:
        """The flags in force when they were first asked for."""
        return current()

    @cached_property
    def level(self) -> int:
        """The level of clustering: that of the flag, or that of the session if the flag is 0."""
        session = _SESSION_LEVELS.get(self.options.settings.get("jit", "off"), DEFAULT)
        return self.flags.tf_xla_auto_jit or session

    @property
    def is_global(self) -> bool:
        """True if all nodes that can be compiled are clustered."""
        return self.level > DEFAULT

    @cached_property
    def platform(self) -> str:
        """The platform for which the session compiles."""
        return str(self.options.settings.get("platform", "cpu"))

    @property
    def is_cpu_global(self) -> bool:
        """True if nodes on CPUs are clustered: the flag says so, or the session asks for clustering."""
        return self.flags.tf_xla_cpu_global_jit or self.options.settings.get("jit") == "auto"

    def info(self, node: Node) -> DeviceInfo | None:
        """Return the compilation device of a node; None if nodes on its device are never compiled."""
        return self.info_of_type(device_type(node))

    def info_of_type(self, name: str) -> DeviceInfo | None:
        """Return the compilation device of a type of device; None if nodes on it are never compiled."""
        info = REGISTRY.find(name, platform=self.platform)
        if info is not None and name == "CPU" and self.is_cpu_global:
            return DeviceInfo(info.compilation_device, Policy.IF_ENABLED_GLOBALLY, info.platform, info.filter)
        return info

    @cached_property
    def is_needed(self) -> bool:
        """True if the level, the flags, an attribute of a node or function, or a device asks for compilation."""
        nodes = self.graph.nodes.values()
        if self.is_global or self.flags.tf_introduce_floating_point_jitter_to_tensors:
            return True
        if any(
            node.op in _LAUNCH_OPS or not _COMPILATION_ATTRS.isdisjoint(node.attrs) for node in nodes
        ) or _has_compiled_functions(self.graph):
            return True
        infos = [self.info_of_type(name) for name in {device_type(node) for node in nodes}]
        return any(info is not None and info.policy is Policy.ALWAYS for info in infos)


def _has_compiled_functions(graph: Graph) -> bool:
    """Return True if a function of the library is marked ``_XlaMustCompile``."""
    return any(MUST_COMPILE in function.attr for function in graph.library)


_DEVICE_TYPES: dict[str, str] = {}


def device_type(node: Node) -> str:
    """Return the type of a node's device; ``CPU`` if it has none."""
    name = node.assigned_device or node.device
    type_name = _DEVICE_TYPES.get(name)
    if type_name is None:
        type_name = _DEVICE_TYPES[name] = (DeviceName.parse(name).type if name else None) or "CPU"
    return type_name
