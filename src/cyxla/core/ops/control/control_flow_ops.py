"""Switch, merge and loop frames."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs, unchanged_shape, unchanged_shape_with_rank
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN, TensorShape


def _switch_shape(c: InferenceContext) -> None:
    """Give both outputs the input's shape."""
    c.with_rank(c.input(1), 0)
    for i in range(2):
        c.set_output(i, c.input(0))
        if c.input_handle(0) is not None:
            c.set_output_handle(i, c.input_handle(0))


def _common_shape(shapes: list[TensorShape]) -> TensorShape:
    """Return the most specific shape that covers all shapes."""
    first = shapes[0]
    if first.dims is None or any(shape.rank != first.rank for shape in shapes):
        return UNKNOWN
    return TensorShape(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True))


def _merge_shape(c: InferenceContext) -> None:
    """Set the common shape of the inputs, and a scalar index."""
    c.set_output(0, _common_shape(c.inputs("inputs")))
    c.set_output(1, SCALAR)


def _ref_select_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 0)
    c.set_output(0, _common_shape(c.inputs("inputs")))


def _enter_shape(c: InferenceContext) -> None:
    """Keep the shape of loop invariants only, since later iterations may change the others."""
    unchanged_shape(c)
    if not c.attr("is_constant"):
        c.set_output(0, UNKNOWN)


op("ControlTrigger", "->", shape=no_outputs, doc="Do nothing; run even with dead inputs.")
op("Enter", "data: T -> output: T", "T: type", "frame_name: string", "is_constant: bool = false",
    "parallel_iterations: int = 10", shape=_enter_shape, doc="Move a value into a loop frame.",
)  # fmt: skip
op("Exit", "data: T -> output: T", "T: type", shape=unchanged_shape, doc="Move a value out of a loop frame.")
op("LoopCond", "input: bool -> output: bool", shape=unchanged_shape_with_rank(0),
    doc="Return the condition of a loop.",
)  # fmt: skip
op("Merge", "inputs: N * T -> output: T, value_index: int32", "T: type", "N: int", shape=_merge_shape,
    doc="Return the first input that is alive, and its index.",
)  # fmt: skip
op("NextIteration", "data: T -> output: T", "T: type", shape=unchanged_shape,
    doc="Pass a value to the next iteration of a loop.",
)  # fmt: skip
op("NoOp", "->", system=True, shape=no_outputs, doc="Do nothing.")
op("RefEnter", "data: Ref(T) -> output: Ref(T)", "T: type", "frame_name: string", "is_constant: bool = false",
    "parallel_iterations: int = 10", shape=unchanged_shape, doc="Move a reference into a loop frame.",
)  # fmt: skip
op("RefExit", "data: Ref(T) -> output: Ref(T)", "T: type", shape=unchanged_shape,
    doc="Move a reference out of a loop frame.",
)  # fmt: skip
op("RefIdentity", "input: Ref(T) -> output: Ref(T)", "T: type", allows_uninitialized_input=True, shape=unchanged_shape,
    doc="Return the reference.",
)  # fmt: skip
op("RefMerge", "inputs: Ref(N * T) -> output: Ref(T), value_index: int32", "T: type", "N: int", shape=_merge_shape,
    doc="Return the first reference that is alive, and its index.",
)  # fmt: skip
op("RefNextIteration", "data: Ref(T) -> output: Ref(T)", "T: type", shape=unchanged_shape,
    doc="Pass a reference to the next iteration of a loop.",
)  # fmt: skip
op("RefSelect", "index: int32, inputs: Ref(N * T) -> output: Ref(T)", "T: type", "N: int", shape=_ref_select_shape,
    doc="Return one of several references.",
)  # fmt: skip
op("RefSwitch", "data: Ref(T), pred: bool -> output_false: Ref(T), output_true: Ref(T)", "T: type",
    allows_uninitialized_input=True, shape=_switch_shape, doc="Forward a reference to one of two outputs.",
)  # fmt: skip
op("Switch", "data: T, pred: bool -> output_false: T, output_true: T", "T: type", shape=_switch_shape,
    doc="Forward a value to one of two outputs; the other output is dead.",
)  # fmt: skip
