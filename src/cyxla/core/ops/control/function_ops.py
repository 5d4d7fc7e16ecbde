"""Arguments and results of functions."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _argument_shape(c: InferenceContext) -> None:
    """Read annotations: ``_output_shapes``, and for handles ``_handle_shapes`` with ``_handle_dtypes``."""
    shapes = c.attrs.get("_output_shapes")
    if shapes is not None and shapes.kind == "list(shape)" and len(shapes.value) == 1:
        c.set_output(0, shapes.value[0])
    handle_shapes, types = c.attrs.get("_handle_shapes"), c.attrs.get("_handle_dtypes")
    if handle_shapes is not None and types is not None and len(handle_shapes.value) == len(types.value):
        c.set_output_handle(0, tuple(zip(handle_shapes.value, types.value, strict=True)))


def _same_shapes(c: InferenceContext) -> None:
    """Copy each input's shape and handle to the output of the same index."""
    for i in range(min(c.num_inputs, c.num_outputs)):
        c.set_output(i, c.input(i))
        if c.input_handle(i) is not None:
            c.set_output_handle(i, c.input_handle(i))


op("_Arg", "-> output: T", "T: type", "index: int >= 0", stateful=True, system=True, shape=_argument_shape,
    doc="Return an argument of a function.",
)  # fmt: skip
op("_ArrayToList", "input: N * T -> output: out_types", "T: type", "N: int", "out_types: list(type)", system=True,
    shape=_same_shapes, doc="Convert tensors of one type to a list of several types.",
)  # fmt: skip
op("_DeviceArg", "-> output: T", "T: type", "index: int >= 0", stateful=True, system=True, shape=_argument_shape,
    doc="Return an argument of a function in device memory.",
)  # fmt: skip
op("_DeviceRetval", "input: T ->", "T: type", "index: int >= 0", stateful=True, system=True, shape=no_outputs,
    doc="Return a result from a function in device memory.",
)  # fmt: skip
op("_EagerConst", "input: T -> output: T", "T: type", system=True, shape=unchanged_shape,
    doc="Return the input, a constant at compile time.",
)  # fmt: skip
op("_ListToArray", "input: Tin -> output: N * T", "Tin: list(type)", "T: type", "N: int", system=True,
    shape=_same_shapes, doc="Convert a list of tensors to tensors of one type.",
)  # fmt: skip
op("_Retval", "input: T ->", "T: type", "index: int >= 0", stateful=True, system=True, shape=no_outputs,
    doc="Return a result from a function.",
)  # fmt: skip
