"""Python functions as nodes of graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import finalize

from cyxla.core.framework.apply import complete
from cyxla.core.framework.step.py_functions import PyFunctionRegistry
from cyxla.core.graph.graph import Graph


def py_func(
    function: Callable[..., Any], inputs: Sequence[Any], dtypes: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """Add a node that calls a Python function of NumPy values.

    Parameters
    ----------
    function : callable
        Function of one value for each input: a read-only array, or a NumPy scalar for a tensor of rank 0. It returns
        arrays of exactly the declared types: a single one, a list, or None for no outputs.
    inputs : sequence
        Tensors or arrays.
    dtypes : type, or sequence of types
        Types of the outputs.
    stateful : bool
        False if the results depend on the inputs only, so that the node may be folded, merged or dropped.
    name : str, optional
        Name of the node.

    Returns
    -------
    Tensor, list of Tensor, or Node
        The output for a single type, a list for a sequence of types; the node if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> graph = Graph()
    >>> with graph.as_default():
    ...     y = py_func(np.sinh, [np.float32([0, 1])], "float")
    >>> from cyxla.core.runtime.session import Session
    >>> Session(graph).run(y).round(3).tolist()
    [0.0, 1.1749999523162842]
    """
    return _call("PyFunc" if stateful else "PyFuncStateless", function, inputs, dtypes, name)


def py_function(function: Callable[..., Any], inputs: Sequence[Any], dtypes: Any, name: str | None = None) -> Any:
    """Add a node that calls a Python function of arrays, and converts its results to the declared types.

    Parameters
    ----------
    function : callable
        Function of one array for each input; it returns a value, a list or tuple of values, or None.
    inputs : sequence
        Tensors or arrays.
    dtypes : type, or sequence of types
        Types of the outputs.
    name : str, optional
        Name of the node.

    Returns
    -------
    Tensor, list of Tensor, or Node
        The output for a single type, a list for a sequence of types; the node if there are none.
    """
    return _call("EagerPyFunc", function, inputs, dtypes, name)


def _call(op: str, function: Callable[..., Any], inputs: Sequence[Any], dtypes: Any, name: str | None) -> Any:
    is_list = isinstance(dtypes, (list, tuple))
    registry = PyFunctionRegistry.global_()
    token = registry.insert(function)
    sink = None
    try:
        arguments = {"token": token, "Tout": list(dtypes) if is_list else [dtypes]}
        sink, registration, flat, attrs = complete(op, [list(inputs)], arguments)
        node, outputs = sink.create_op(registration, flat, attrs, name)
    finally:
        if not isinstance(sink, Graph):
            registry.remove(token)
    if isinstance(sink, Graph):
        finalize(sink, registry.remove, token)  # the function lives as long as the graph of its node
        if not outputs:
            return node
    return list(outputs) if is_list else outputs[0]
