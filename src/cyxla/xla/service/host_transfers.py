"""Types of the values that a program takes from the infeed queue and puts into the outfeed queue."""

from __future__ import annotations

from typing import Any, NamedTuple

from cyxla.errors import InvalidArgumentError
from cyxla.types import Shape
from cyxla.xla.feeds import conform
from cyxla.xla.hlo import HloModule


class HostTransfers(NamedTuple):
    """Shapes of the infeeds and outfeeds of a program, each once.

    Attributes
    ----------
    infeeds, outfeeds : tuple of Shape
        Shapes of the data without the token, in the order of the program.
    """

    infeeds: tuple[Shape, ...]
    outfeeds: tuple[Shape, ...]

    @staticmethod
    def of(module: HloModule) -> HostTransfers:
        """Return the transfers of all computations of a module."""
        instructions = [ins for computation in module.post_order() for ins in computation.instructions]
        infeeds = {ins.shape.elements[0].logical: None for ins in instructions if ins.opcode == "infeed"}
        outfeeds = {ins.operands[0].shape.logical: None for ins in instructions if ins.opcode == "outfeed"}
        return HostTransfers(tuple(infeeds), tuple(outfeeds))

    def infeed_value(self, value: Any) -> Any:
        """Return a value with the types of an infeed.

        Raises
        ------
        InvalidArgumentError
            The program has no infeed of this type.
        """
        if not self.infeeds:
            raise InvalidArgumentError("the program has no infeed")
        if len(self.infeeds) == 1:
            return conform(value, self.infeeds[0], "infeed")
        for shape in self.infeeds:
            try:
                return conform(value, shape, "infeed")
            except InvalidArgumentError as error:
                last = error
        hint = f"its infeeds take {', '.join(map(str, self.infeeds))}"
        raise InvalidArgumentError("infeed: no infeed of the program takes this value", hint=hint) from last

    def check_outfeed(self) -> None:
        """Raise `InvalidArgumentError` if the program has no outfeed."""
        if not self.outfeeds:
            raise InvalidArgumentError("the program has no outfeed")
