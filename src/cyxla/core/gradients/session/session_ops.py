"""Gradients of ops that call Python functions; ops on the session have none."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.framework.step.py_functions import PyFunctionRegistry
from cyxla.core.framework.types import COMPLEX, FLOATING
from cyxla.core.gradients.common import Tensor
from cyxla.errors import FailedPreconditionError


@gradient("EagerPyFunc", none_grads=True)
def eager_py_func_grad(op: Any, *grads: Tensor | None) -> list[Tensor | None]:
    """Call the pullback of the function, by a node of the same op."""
    results = tuple(k for k, grad in enumerate(grads) if grad is not None)
    wanted = tuple(k for k, t in enumerate(op.inputs) if t.dtype.base in (*FLOATING, *COMPLEX))
    try:
        token = PyFunctionRegistry.global_().insert_pullback(op.attr("token"), len(op.inputs), results, wanted)
    except ValueError as error:
        raise FailedPreconditionError(
            f"{error} Its gradient is not known.", hint="add the node by py_function in this process"
        ) from None
    types = [op.inputs[k].dtype for k in wanted]
    given: list[Tensor | None] = [None] * len(op.inputs)
    outputs = apply_op("EagerPyFunc", [*op.inputs, *[grads[k] for k in results]], token=token, Tout=types)
    for k, output in zip(wanted, outputs, strict=True):
        given[k] = output
    return given


no_gradient("DeleteSessionTensor", "GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor")
no_gradient("PyFunc", "PyFuncStateless")
