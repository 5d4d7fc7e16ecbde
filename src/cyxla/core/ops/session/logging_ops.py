"""Assertions, printing and the clock."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs, scalar_shape, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _print_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 0)


op("Assert", "condition: bool, data: T ->", "T: list(type)", "summarize: int = 3", stateful=True, shape=no_outputs,
    doc="Raise an error that shows data unless a condition holds.",
)  # fmt: skip
op("CheckNumerics", "tensor: T -> output: T", "T: {bfloat16, half, float, double}", "message: string", stateful=True,
    shape=unchanged_shape, doc="Return the input; raise an error if it contains NaN or infinity.",
)  # fmt: skip
op("Print", "input: T, data: U -> output: T", "T: type", "U: list(type) >= 0", "message: string = ''",
    "first_n: int = -1", "summarize: int = 3", stateful=True, shape=unchanged_shape,
    doc="Return the input and print data.",
)  # fmt: skip
op("PrintV2", "input: string ->", "output_stream: string = 'stderr'", r"end: string = '\n'", stateful=True,
    shape=_print_shape, doc="Print a string.",
)  # fmt: skip
op("Timestamp", "-> ts: double", stateful=True, shape=scalar_shape, doc="Return the seconds since 1970.")
