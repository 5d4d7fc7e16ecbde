"""Switches, merges and loop frames."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs, unchanged_shape, unchanged_shape_with_rank
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN, TensorShape


def _switch_shape(c: InferenceContext) -> None:
    """Both ways out carry what comes in."""
    c.with_rank(c.input(1), 0)
    for i in range(2):
        c.set_output(i, c.input(0))
        if c.input_handle(0) is not None:
            c.set_output_handle(i, c.input_handle(0))


def _common_shape(shapes: list[TensorShape]) -> TensorShape:
    """What is true of every shape, whichever is chosen."""
    first = shapes[0]
    if first.dims is None or any(shape.rank != first.rank for shape in shapes):
        return UNKNOWN
    return TensorShape(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True))


def _merge_shape(c: InferenceContext) -> None:
    """One of the inputs, and which one."""
    c.set_output(0, _common_shape(c.inputs("inputs")))
    c.set_output(1, SCALAR)


def _ref_select_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 0)
    c.set_output(0, _common_shape(c.inputs("inputs")))


def _enter_shape(c: InferenceContext) -> None:
    """A value that later rounds may replace keeps no shape."""
    unchanged_shape(c)
    if not c.attr("is_constant"):
        c.set_output(0, UNKNOWN)


op("ControlTrigger", "->", shape=no_outputs, doc="Does nothing, and runs whatever happens: dead inputs do not stop it.")
op("Enter", "data: T -> output: T", "T: type", "frame_name: string", "is_constant: bool = false",
    "parallel_iterations: int = 10", shape=_enter_shape, doc="Brings a value into a loop frame.",
)  # fmt: skip
op("Exit", "data: T -> output: T", "T: type", shape=unchanged_shape, doc="Takes a value out of a loop frame.")
op("LoopCond", "input: bool -> output: bool", shape=unchanged_shape_with_rank(0),
    doc="The input: whether a loop goes on.",
)  # fmt: skip
op("Merge", "inputs: N * T -> output: T, value_index: int32", "T: type", "N: int", shape=_merge_shape,
    doc="The first input to arrive, and which one it is.",
)  # fmt: skip
op("NextIteration", "data: T -> output: T", "T: type", shape=unchanged_shape,
    doc="Hands a value to the next round of a loop.",
)  # fmt: skip
op("NoOp", "->", system=True, shape=no_outputs, doc="Does nothing.")
op("RefEnter", "data: Ref(T) -> output: Ref(T)", "T: type", "frame_name: string", "is_constant: bool = false",
    "parallel_iterations: int = 10", shape=unchanged_shape, doc="Brings a reference into a loop frame.",
)  # fmt: skip
op("RefExit", "data: Ref(T) -> output: Ref(T)", "T: type", shape=unchanged_shape,
    doc="Takes a reference out of a loop frame.",
)  # fmt: skip
op("RefIdentity", "input: Ref(T) -> output: Ref(T)", "T: type", allows_uninitialized_input=True, shape=unchanged_shape,
    doc="The reference.",
)  # fmt: skip
op("RefMerge", "inputs: Ref(N * T) -> output: Ref(T), value_index: int32", "T: type", "N: int", shape=_merge_shape,
    doc="The first reference to arrive, and which one it is.",
)  # fmt: skip
op("RefNextIteration", "data: Ref(T) -> output: Ref(T)", "T: type", shape=unchanged_shape,
    doc="Hands a reference to the next round of a loop.",
)  # fmt: skip
op("RefSelect", "index: int32, inputs: Ref(N * T) -> output: Ref(T)", "T: type", "N: int", shape=_ref_select_shape,
    doc="One of several references.",
)  # fmt: skip
op("RefSwitch", "data: Ref(T), pred: bool -> output_false: Ref(T), output_true: Ref(T)", "T: type",
    allows_uninitialized_input=True, shape=_switch_shape, doc="Sends a reference one way or the other.",
)  # fmt: skip
op("Switch", "data: T, pred: bool -> output_false: T, output_true: T", "T: type", shape=_switch_shape,
    doc="Sends a value one way or the other; the other way is dead.",
)  # fmt: skip
