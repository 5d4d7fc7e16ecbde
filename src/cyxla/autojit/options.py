"""What a pass is told: the level of clustering, and how devices compile."""

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
_ASKING = frozenset({COMPILE, MUST_COMPILE, CLUSTER, COMPILED_KERNEL, REGION, LAUNCH_OF})
_LAUNCHES = frozenset({"XlaLaunch", "_XlaCompile", "_XlaRun", "_XlaMerge"})


@dataclass
class JitOptions:
    """What holds for one graph."""

    options: OptimizationPassOptions

    @property
    def graph(self) -> Graph:
        """The graph as it is now."""
        return self.options.graph

    @cached_property
    def flags(self) -> Flags:
        """The flags of this moment."""
        return current()

    @cached_property
    def level(self) -> int:
        """The level of clustering: the flag's, unless that is 0; then the session's."""
        session = _SESSION_LEVELS.get(self.options.settings.get("jit", "off"), DEFAULT)
        return self.flags.tf_xla_auto_jit or session

    @property
    def is_global(self) -> bool:
        """Whether everything is clustered that can be."""
        return self.level > DEFAULT

    @cached_property
    def platform(self) -> str:
        """What the session compiles for."""
        return str(self.options.settings.get("platform", "cpu"))

    @property
    def is_cpu_global(self) -> bool:
        """Whether processors take part in clustering: a session that asks for clustering means them."""
        return self.flags.tf_xla_cpu_global_jit or self.options.settings.get("jit") == "auto"

    def info(self, node: Node) -> DeviceInfo | None:
        """How the device of a node compiles."""
        return self.info_of_type(device_type(node))

    def info_of_type(self, name: str) -> DeviceInfo | None:
        """How a type of device compiles."""
        found = REGISTRY.find(name, platform=self.platform)
        if found is not None and name == "CPU" and self.is_cpu_global:
            return DeviceInfo(found.compilation_device, Policy.IF_ENABLED_GLOBALLY, found.platform, found.filter)
        return found

    @cached_property
    def is_needed(self) -> bool:
        """Whether there is anything for the passes to do."""
        nodes = self.graph.nodes.values()
        if self.is_global or self.flags.tf_introduce_floating_point_jitter_to_tensors:
            return True
        if any(node.op in _LAUNCHES or not _ASKING.isdisjoint(node.attrs) for node in nodes) or _has_compiled_functions(
            self.graph
        ):
            return True
        infos = [self.info_of_type(name) for name in {device_type(node) for node in nodes}]
        return any(info is not None and info.policy is Policy.ALWAYS for info in infos)


def _has_compiled_functions(graph: Graph) -> bool:
    """Whether a function of the library says that it must be compiled."""
    return any(MUST_COMPILE in function.attr for function in graph.library)


_TYPES: dict[str, str] = {}


def device_type(node: Node) -> str:
    """Type of the device that a node is on; processors where nothing is said."""
    name = node.assigned_device or node.device
    found = _TYPES.get(name)
    if found is None:
        found = _TYPES[name] = (DeviceName.parse(name).type if name else None) or "CPU"
    return found
