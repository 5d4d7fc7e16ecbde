"""A residual network for images as StableHLO text, with its weights inside or as arguments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class ResidualNetwork:
    """Text of a network: a convolution, residual blocks at several widths, an average, a product.

    Parameters
    ----------
    image : int
        Height and width of the images.
    widths : sequence of int
        Features of each stage; all but the first halve the image.
    blocks : int
        Blocks of each stage.
    classes : int
        Size of the result.
    batch : int
        Number of images.
    inside : bool
        Whether weights are constants of the program, else they are arguments after the images.

    Attributes
    ----------
    text : str
        The program.
    weights : list of array
        Weights in the order of the arguments.
    images : array
        Arguments to try.
    """

    def __init__(
        self, image: int = 16, widths: Sequence[int] = (8, 16), blocks: int = 1, classes: int = 10, batch: int = 2,
        *, inside: bool = True,
    ) -> None:  # fmt: skip
        self._rng = np.random.default_rng(2)
        self._inside, self._count = inside, 0
        self.weights: list[np.ndarray] = []
        self._constants: list[str] = []
        self._lines: list[str] = []
        self.images = self._rng.standard_normal((batch, image, image, 3), np.float32)
        x, dims = self._layer("%x", (batch, image, image, 3), widths[0], 3, 1)
        for stage, width in enumerate(widths):
            for block in range(blocks):
                x, dims = self._block(x, dims, width, 2 if stage and not block else 1)
        x = self._classify(x, dims, classes)
        arguments = [f"%x: {_type(self.images.shape)}"]
        arguments += [] if inside else [f"%w{k}: {_type(w.shape)}" for k, w in enumerate(self.weights)]
        body = "\n".join(f"  {line}" for line in [*self._constants, *self._lines])
        result = _type((batch, classes))
        self.text = (
            f"func.func public @main({', '.join(arguments)}) -> {result} {{\n{body}\n  return {x} : {result}\n}}\n"
        )

    def _add(self, operation: str) -> str:
        self._count += 1
        self._lines.append(f"%{self._count} = stablehlo.{operation}")
        return f"%{self._count}"

    def _weight(self, *dims: int) -> str:
        scale = (2 / max(1, int(np.prod(dims[:-1])))) ** 0.5
        weight = (self._rng.standard_normal(dims) * scale).astype(np.float32)
        name = f"%w{len(self.weights)}"
        self.weights.append(weight)
        if self._inside:
            self._constants.append(f'{name} = stablehlo.constant dense<"0x{weight.tobytes().hex()}"> : {_type(dims)}')
        return name

    def _binary(self, operation: str, x: str, y: str, dims: Sequence[int]) -> str:
        return self._add(f"{operation} {x}, {y} : {_type(dims)}")

    def _spread(self, x: str, dims: Sequence[int], of: Sequence[int] = ()) -> str:
        axes = f"[{len(dims) - 1}]" if of else "[]"
        return self._add(f"broadcast_in_dim {x}, dims = {axes} : ({_type(of)}) -> {_type(dims)}")

    def _relu(self, x: str, dims: Sequence[int]) -> str:
        zero = self._add("constant dense<0.0> : tensor<f32>")
        return self._binary("maximum", x, self._spread(zero, dims), dims)

    def _layer(self, x: str, dims: Sequence[int], features: int, size: int, stride: int) -> tuple[str, tuple[int, ...]]:
        """Add a convolution with a scale and a shift of each feature."""
        pad = size // 2
        new = (dims[0], -(-dims[1] // stride), -(-dims[2] // stride), features)
        kernel = (size, size, dims[3], features)
        x = self._add(
            f"convolution({x}, {self._weight(*kernel)}) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
            f"window = {{stride = [{stride}, {stride}], pad = [[{pad}, {pad}], [{pad}, {pad}]]}} "
            "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
            f"({_type(dims)}, {_type(kernel)}) -> {_type(new)}"
        )
        for operation in ("multiply", "add"):
            x = self._binary(operation, x, self._spread(self._weight(features), new, (features,)), new)
        return x, new

    def _block(self, x: str, dims: Sequence[int], features: int, stride: int) -> tuple[str, tuple[int, ...]]:
        y, new = self._layer(x, dims, features, 3, stride)
        y, _ = self._layer(self._relu(y, new), new, features, 3, 1)
        shortcut = x if new == tuple(dims) else self._layer(x, dims, features, 1, stride)[0]
        return self._relu(self._binary("add", y, shortcut, new), new), new

    def _classify(self, x: str, dims: Sequence[int], classes: int) -> str:
        zero = self._add("constant dense<0.0> : tensor<f32>")
        flat = (dims[0], dims[3])
        total = self._add(
            f"reduce({x} init: {zero}) applies stablehlo.add across dimensions = [1, 2] : "
            f"({_type(dims)}, tensor<f32>) -> {_type(flat)}"
        )
        weight = self._weight(dims[3], classes)
        return self._add(
            f"dot_general {total}, {weight}, contracting_dims = [1] x [0] : "
            f"({_type(flat)}, {_type((dims[3], classes))}) -> {_type((dims[0], classes))}"
        )


def _type(dims: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{n}x' for n in dims)}f32>"
