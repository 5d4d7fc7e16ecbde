"""While loops over lists of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla


def while_loop(
    condition: Callable[[list[XlaOp]], XlaOp], body: Callable[[list[XlaOp]], Sequence[XlaOp]], start: Sequence[XlaOp]
) -> list[XlaOp]:
    """Emit a while loop.

    Parameters
    ----------
    condition : callable
        Function of the values that returns a scalar: whether the body runs again.
    body : callable
        Function of the values that returns the next values.
    start : sequence of XlaOp
        Initial values.
    """
    init = xla.tuple_(start[0].builder, list(start))
    turn = _computation("step", init.shape, lambda values: xla.tuple_(values[0].builder, list(body(values))))
    made = xla.while_(_computation("going", init.shape, condition), turn, init)
    return [xla.get_tuple_element(made, i) for i in range(len(start))]


def _computation(name: str, shape: Shape, write: Callable[[list[XlaOp]], XlaOp]) -> XlaComputation:
    builder = XlaBuilder(name)
    state = xla.parameter(builder, 0, shape, "state")
    return builder.build(write([xla.get_tuple_element(state, i) for i in range(len(shape.elements))]))
