"""Conditionals, loops and calls of functions."""

from cyxla.core.framework.op import op

op("Case", "branch_index: int32, input: Tin -> output: Tout", "Tin: list(type) >= 0", "Tout: list(type) >= 0",
    "branches: list(func) >= 1", "output_shapes: list(shape) = []", stateful=True, shape=None,
)  # fmt: skip
op("DeviceIndex", "-> index: int32", "device_names: list(string)", stateful=True, shape=None)
op("FakeParam", "-> output: dtype", "dtype: type", "shape: shape", shape=None)
op("For", "start: int32, limit: int32, delta: int32, input: T -> output: T", "T: list(type) >= 0", "body: func",
    shape=None,
)  # fmt: skip
op("If", "cond: Tcond, input: Tin -> output: Tout", "Tcond: type", "Tin: list(type) >= 0", "Tout: list(type) >= 0",
    "then_branch: func", "else_branch: func", "output_shapes: list(shape) = []", stateful=True, shape=None,
)  # fmt: skip
op("MapDefun", "arguments: Targuments, captured_inputs: Tcaptured -> output: output_types", "Targuments: list(type)",
    "Tcaptured: list(type) >= 0 = []", "output_types: list(type)", "output_shapes: list(shape) >= 1", "f: func",
    "max_intra_op_parallelism: int = 1", shape=None,
)  # fmt: skip
op("PartitionedCall", "args: Tin -> output: Tout", "Tin: list(type) >= 0", "Tout: list(type) >= 0", "f: func",
    "config: string = ''", "config_proto: string = ''", "executor_type: string = ''", shape=None,
)  # fmt: skip
op("RemoteCall", "target: string, args: Tin -> output: Tout", "Tin: list(type)", "Tout: list(type)", "f: func",
    stateful=True, shape=None,
)  # fmt: skip
op("StatefulPartitionedCall", "args: Tin -> output: Tout", "Tin: list(type) >= 0", "Tout: list(type) >= 0", "f: func",
    "config: string = ''", "config_proto: string = ''", "executor_type: string = ''", stateful=True, shape=None,
)  # fmt: skip
op("StatelessCase", "branch_index: int32, input: Tin -> output: Tout", "Tin: list(type) >= 0", "Tout: list(type) >= 0",
    "branches: list(func) >= 1", "output_shapes: list(shape) = []", shape=None,
)  # fmt: skip
op("StatelessIf", "cond: Tcond, input: Tin -> output: Tout", "Tcond: type", "Tin: list(type) >= 0",
    "Tout: list(type) >= 0", "then_branch: func", "else_branch: func", "output_shapes: list(shape) = []", shape=None,
)  # fmt: skip
op("StatelessWhile", "input: T -> output: T", "T: list(type) >= 0", "cond: func", "body: func",
    "output_shapes: list(shape) = []", "parallel_iterations: int = 10", shape=None,
)  # fmt: skip
op("SymbolicGradient", "input: Tin -> output: Tout", "Tin: list(type)", "Tout: list(type)", "f: func", shape=None)
op("While", "input: T -> output: T", "T: list(type) >= 0", "cond: func", "body: func",
    "output_shapes: list(shape) = []", "parallel_iterations: int = 10", stateful=True, shape=None,
)  # fmt: skip
op("_If", "cond: Tcond, input: Tin -> output: Tout", "Tcond: type", "Tin: list(type)", "Tout: list(type)",
    "then_branch: func", "else_branch: func", stateful=True, shape=None,
)  # fmt: skip
op("_While", "input: T -> output: T", "T: list(type) >= 0", "cond: func", "body: func", stateful=True, shape=None)
