"""Conditionals, loops and function calls."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import explicit_shape, scalar_shape, unknown_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.errors import ShapeError


def _attr_shapes(c: InferenceContext) -> None:
    """Set the shapes of the attribute ``output_shapes``, unless it is empty."""
    shapes = c.attr("output_shapes")
    if shapes and len(shapes) != c.num_outputs:
        raise ShapeError(f"{c.op_def.name}: {len(shapes)} output_shapes are given for {c.num_outputs} outputs")
    for i, shape in enumerate(shapes):
        c.set_output(i, shape)


def _same_shapes(c: InferenceContext) -> None:
    """Copy each input's shape and handle to the output of the same index."""
    for i in range(c.num_outputs):
        c.set_output(i, c.input(i))
        if c.input_handle(i) is not None:
            c.set_output_handle(i, c.input_handle(i))


def _while_shapes(c: InferenceContext) -> None:
    """Set the shapes of the loop state, which do not change between iterations unless others are declared."""
    _same_shapes(c)
    _attr_shapes(c)


def _gradient_shapes(c: InferenceContext) -> None:
    if c.num_inputs < c.num_outputs:
        raise ShapeError(f"SymbolicGradient: {c.num_inputs} inputs are fewer than the {c.num_outputs} outputs")
    _same_shapes(c)


def _map_shapes(c: InferenceContext) -> None:
    """Prepend the dimension of the mapped arguments."""
    size = None
    for shape in c.inputs("arguments"):
        size = c.merge_dim(size, c.with_rank_at_least(shape, 1)[0])
    shapes = c.attr("output_shapes")
    if len(shapes) != c.num_outputs:
        raise ShapeError(f"MapDefun: {len(shapes)} output_shapes are given for {c.num_outputs} outputs")
    c.set_outputs("output", [c.concatenate(c.vector(size), shape) for shape in shapes])


op("Case", "branch_index: int32, input: Tin -> output: Tout", "Tin: list(type) >= 0", "Tout: list(type) >= 0",
    "branches: list(func) >= 1", "output_shapes: list(shape) = []", stateful=True, shape=_attr_shapes,
    doc="Call the function at an index; the last function if the index is out of range.",
)  # fmt: skip
op("DeviceIndex", "-> index: int32", "device_names: list(string)", stateful=True, shape=scalar_shape,
    doc="Return the index of the current device in a list.",
)  # fmt: skip
op("FakeParam", "-> output: dtype", "dtype: type", "shape: shape", shape=explicit_shape,
    doc="Return a placeholder for an unused value.",
)  # fmt: skip
op("For", "start: int32, limit: int32, delta: int32, input: T -> output: T", "T: list(type) >= 0", "body: func",
    shape=unknown_shape, doc="Call a function for each number of a range; results become arguments.",
)  # fmt: skip
op("If", "cond: Tcond, input: Tin -> output: Tout", "Tcond: type", "Tin: list(type) >= 0", "Tout: list(type) >= 0",
    "then_branch: func", "else_branch: func", "output_shapes: list(shape) = []", stateful=True, shape=_attr_shapes,
    doc="Call one of two functions, selected by a condition.",
)  # fmt: skip
op("MapDefun", "arguments: Targuments, captured_inputs: Tcaptured -> output: output_types", "Targuments: list(type)",
    "Tcaptured: list(type) >= 0 = []", "output_types: list(type)", "output_shapes: list(shape) >= 1", "f: func",
    "max_intra_op_parallelism: int = 1", shape=_map_shapes, doc="Call a function on each row of its arguments.",
)  # fmt: skip
op("PartitionedCall", "args: Tin -> output: Tout", "Tin: list(type) >= 0", "Tout: list(type) >= 0", "f: func",
    "config: string = ''", "config_proto: string = ''", "executor_type: string = ''", shape=unknown_shape,
    doc="Call a function whose nodes may be placed on several devices.",
)  # fmt: skip
op("RemoteCall", "target: string, args: Tin -> output: Tout", "Tin: list(type)", "Tout: list(type)", "f: func",
    stateful=True, shape=unknown_shape, doc="Call a function on another device.",
)  # fmt: skip
op("StatefulPartitionedCall", "args: Tin -> output: Tout", "Tin: list(type) >= 0", "Tout: list(type) >= 0", "f: func",
    "config: string = ''", "config_proto: string = ''", "executor_type: string = ''", stateful=True,
    shape=unknown_shape, doc="Call a function with side effects whose nodes may be placed on several devices.",
)  # fmt: skip
op("StatelessCase", "branch_index: int32, input: Tin -> output: Tout", "Tin: list(type) >= 0", "Tout: list(type) >= 0",
    "branches: list(func) >= 1", "output_shapes: list(shape) = []", shape=_attr_shapes,
    doc="Call the function at an index; the functions have no side effects.",
)  # fmt: skip
op("StatelessIf", "cond: Tcond, input: Tin -> output: Tout", "Tcond: type", "Tin: list(type) >= 0",
    "Tout: list(type) >= 0", "then_branch: func", "else_branch: func", "output_shapes: list(shape) = []",
    shape=_attr_shapes, doc="Call one of two functions, selected by a condition; the functions have no side effects.",
)  # fmt: skip
op("StatelessWhile", "input: T -> output: T", "T: list(type) >= 0", "cond: func", "body: func",
    "output_shapes: list(shape) = []", "parallel_iterations: int = 10", shape=_while_shapes,
    doc="Call a function while a condition holds; the functions have no side effects.",
)  # fmt: skip
op("SymbolicGradient", "input: Tin -> output: Tout", "Tin: list(type)", "Tout: list(type)", "f: func",
    shape=_gradient_shapes, doc="Call the gradient of a function.",
)  # fmt: skip
op("While", "input: T -> output: T", "T: list(type) >= 0", "cond: func", "body: func",
    "output_shapes: list(shape) = []", "parallel_iterations: int = 10", stateful=True, shape=_while_shapes,
    doc="Call a function while a condition holds; results become arguments.",
)  # fmt: skip
op("_If", "cond: Tcond, input: Tin -> output: Tout", "Tcond: type", "Tin: list(type)", "Tout: list(type)",
    "then_branch: func", "else_branch: func", stateful=True, shape=unknown_shape,
    doc="Call one of two functions, selected by a condition.",
)  # fmt: skip
op("_While", "input: T -> output: T", "T: list(type) >= 0", "cond: func", "body: func", stateful=True,
    shape=_same_shapes, doc="Call a function while a condition holds.",
)  # fmt: skip
