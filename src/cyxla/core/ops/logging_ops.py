"""Checks, prints and the clock."""

from cyxla.core.framework.op import op

op("Assert", "condition: bool, data: T ->", "T: list(type)", "summarize: int = 3", stateful=True, shape=None)
op("CheckNumerics", "tensor: T -> output: T", "T: {bfloat16, half, float, double}", "message: string", stateful=True,
    shape=None,
)  # fmt: skip
op("Print", "input: T, data: U -> output: T", "T: type", "U: list(type) >= 0", "message: string = ''",
    "first_n: int = -1", "summarize: int = 3", stateful=True, shape=None,
)  # fmt: skip
op("PrintV2", "input: string ->", "output_stream: string = 'stderr'", r"end: string = '\n'", stateful=True, shape=None)
op("Timestamp", "-> ts: double", stateful=True, shape=None)
