"""Arguments and results of functions."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _argument_shape(c: InferenceContext) -> None:
    """Told by annotations: ``_output_shapes``, and for handles ``_handle_shapes`` with ``_handle_dtypes``."""
    shapes = c.attrs.get("_output_shapes")
    if shapes is not None and shapes.kind == "list(shape)" and len(shapes.value) == 1:
        c.set_output(0, shapes.value[0])
    held, types = c.attrs.get("_handle_shapes"), c.attrs.get("_handle_dtypes")
    if held is not None and types is not None and len(held.value) == len(types.value):
        c.set_output_handle(0, tuple(zip(held.value, types.value, strict=True)))


def _same_shapes(c: InferenceContext) -> None:
    """Each output is the input of its number."""
    for i in range(min(c.num_inputs, c.num_outputs)):
        c.set_output(i, c.input(i))
        if c.input_handle(i) is not None:
            c.set_output_handle(i, c.input_handle(i))


op("_Arg", "-> output: T", "T: type", "index: int >= 0", stateful=True, system=True, shape=_argument_shape,
    doc="An argument of a function.",
)  # fmt: skip
op("_ArrayToList", "input: N * T -> output: out_types", "T: type", "N: int", "out_types: list(type)", system=True,
    shape=_same_shapes, doc="Tensors of one type as a list of several types.",
)  # fmt: skip
op("_DeviceArg", "-> output: T", "T: type", "index: int >= 0", stateful=True, system=True, shape=_argument_shape,
    doc="An argument of a function, in the memory of its device.",
)  # fmt: skip
op("_DeviceRetval", "input: T ->", "T: type", "index: int >= 0", stateful=True, system=True, shape=no_outputs,
    doc="A result of a function, in the memory of its device.",
)  # fmt: skip
op("_EagerConst", "input: T -> output: T", "T: type", system=True, shape=unchanged_shape,
    doc="The input, which is known when a function is compiled.",
)  # fmt: skip
op("_ListToArray", "input: Tin -> output: N * T", "Tin: list(type)", "T: type", "N: int", system=True,
    shape=_same_shapes, doc="Tensors of a list as ones of one type.",
)  # fmt: skip
op("_Retval", "input: T ->", "T: type", "index: int >= 0", stateful=True, system=True, shape=no_outputs,
    doc="A result of a function.",
)  # fmt: skip
