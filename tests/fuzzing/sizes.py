"""Random functions of arrays of which several dimensions have sizes known at run time, against NumPy."""

from __future__ import annotations

import random

from support.functions import sized_dims

from cyxla.errors import OpError
from cyxla.numpy.calls import any_size
from fuzzing.kind import DifferenceError, Kind, Stage

SIZES = ((3, 4), (5, 2), (1, 3), (7, 7), (0, 2))
SHAPES = ((3, 4), (5, 2), (7, 7), (4, 4), (2, 1), (6, 3))


class Sizes(Kind):
    """Functions of parts of an array, and of arguments that are compiled for any size."""

    name, suffix = "sizes", ".py"
    stages = ("sizes", "any size")
    runs = ("sizes", "any size")
    seconds = 60.0

    def make(self, rng: random.Random) -> bytes:
        return sized_dims.random_body(rng.randrange(1 << 40)).encode()

    def attempt(self, data: bytes, deep: bool, stage: Stage) -> None:
        body, platform = data.decode(), "cpu" if deep else "interpreter"
        bounds, any_size.LEAST_BOUNDS = any_size.LEAST_BOUNDS, (8,)  # small ones are evaluated sooner
        try:
            stage("sizes")
            sized_dims.check_sizes(body, platform, SIZES)
            stage("any size")
            sized_dims.check_any_size(body, platform, SHAPES)
        except AssertionError as error:
            if isinstance(error.__cause__, OpError):
                raise error.__cause__ from None
            raise DifferenceError(str(error)[-800:]) from error
        finally:
            any_size.LEAST_BOUNDS = bounds
