"""Python functions."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import unknown_shape

_TYPES = ("Tin: list(type) >= 0", "Tout: list(type) >= 0")

op("EagerPyFunc", "input: Tin -> output: Tout", "token: string", "is_async: bool = false", *_TYPES, stateful=True,
    shape=unknown_shape, doc="Call a Python function of arrays, whose results are converted to the declared types.",
)  # fmt: skip
op("PyFunc", "input: Tin -> output: Tout", "token: string", *_TYPES, stateful=True, shape=unknown_shape,
    doc="Call a Python function of NumPy values, once for each run.",
)  # fmt: skip
op("PyFuncStateless", "input: Tin -> output: Tout", "token: string", *_TYPES, shape=unknown_shape,
    doc="Call a Python function of NumPy values that depends on its arguments only.",
)  # fmt: skip
