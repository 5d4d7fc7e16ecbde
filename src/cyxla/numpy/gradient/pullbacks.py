"""Pullbacks of the Python functions that nodes of graphs call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.core.framework.step.py_functions import register_pullback_compiler
from cyxla.numpy.gradient.api import compile_wrapper, vjp
from cyxla.numpy.tracing.hooks import hooks


def compile_pullback(
    function: Callable[..., Any], num_inputs: int, results: tuple[int, ...], wanted: tuple[int, ...]
) -> Callable[..., Any]:
    """Return the pullback of a function of arrays; see `cyxla.core.framework.step.py_functions.Pullback`.

    Gradients of complex numbers are conjugate to those of `vjp`, as in TensorFlow.
    """

    def pull_back(*values: Any) -> list[Any]:
        inputs, grads = values[:num_inputs], values[num_inputs:]

        def selected(*arguments: Any) -> tuple[Any, ...]:
            merged = list(inputs)
            for k, argument in zip(wanted, arguments, strict=True):
                merged[k] = argument
            returned = hooks.rewritten(function)(*merged)
            outputs = returned if isinstance(returned, (list, tuple)) else [returned]
            return tuple([np.asarray(outputs[k]).astype(g.dtype) for k, g in zip(results, grads, strict=True)])

        _, pullback = vjp(selected, *[inputs[k] for k in wanted])
        return [np.conj(grad) for grad in pullback(tuple([np.conj(g) for g in grads]))]

    return compile_wrapper(pull_back, function)


register_pullback_compiler(compile_pullback)
