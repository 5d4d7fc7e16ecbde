"""Parser of einsum equations."""

from __future__ import annotations

from cyxla.errors import InvalidArgumentError


def parse_equation(equation: str, count: int) -> tuple[list[str], str]:
    """Return the labels of each operand and of the result; ``...`` stands for broadcast dimensions.

    Raises
    ------
    InvalidArgumentError
        The equation has no arrow, labels that are not letters, result labels that no operand has, or another number
        of operands than `count`.
    """
    text = equation.replace(" ", "")
    if text.count("->") != 1:
        raise InvalidArgumentError(f"the equation {equation!r} needs one '->'")
    left, output = text.split("->")
    inputs = left.split(",")
    if len(inputs) != count:
        raise InvalidArgumentError(f"the equation {equation!r} is for {len(inputs)} operands; there are {count}")
    for labels in (*inputs, output):
        rest = labels.replace("...", "", 1)
        if not all(c.isascii() and c.isalpha() for c in rest):
            raise InvalidArgumentError(f"labels must be letters and at most one '...'; {labels!r} in {equation!r}")
    letters = output.replace("...", "")
    missing = sorted(set(letters) - set("".join(inputs)))
    if missing:
        raise InvalidArgumentError(f"the result of {equation!r} has labels that no operand has: {missing}")
    return inputs, output
