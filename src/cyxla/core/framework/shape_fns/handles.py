"""Shape functions of ops on resources that are named by two strings."""

from __future__ import annotations

from cyxla.core.framework.shape_inference import InferenceContext


def pair_handle_shape(c: InferenceContext) -> None:
    """The output is a legacy handle: a container and a name."""
    c.set_output(0, (2,))


def check_pair_handle(c: InferenceContext, i: int) -> None:
    """Check that an input can be a legacy handle.

    Raises
    ------
    ShapeError
        It is not a vector of two.
    """
    c.with_value(c.with_rank(c.input(i), 1)[0], 2)


def pair_handles_shape(c: InferenceContext) -> None:
    """All inputs are legacy handles, all outputs scalars."""
    for i in range(c.num_inputs):
        check_pair_handle(c, i)
    for i in range(c.num_outputs):
        c.set_output(i, c.scalar())
