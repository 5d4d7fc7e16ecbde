"""Geometry of convolutions and pooling: windows over the spatial dimensions of an array.

All arrays here have their channels last; `channels_last` and `channels_back` convert from and to other layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, OpError, ShapeError

Array = np.ndarray[Any, Any]


def is_channels_first(data_format: str) -> bool:
    """Return True if channels are the second dimension."""
    return data_format.startswith("NC") or data_format == "CHANNELS_FIRST"


def check_formats(src_format: str, dst_format: str) -> None:
    """Check that two data formats have the same letters.

    Raises
    ------
    InvalidArgumentError
        The letters differ, or the lengths are not 4 or 5.
    """
    if (
        sorted(src_format) != sorted(dst_format)
        or len(src_format) not in (4, 5)
        or len(set(src_format)) != len(src_format)
    ):
        raise InvalidArgumentError(f"{src_format!r} and {dst_format!r} must be the same 4 or 5 letters in some order")


def channels_last(x: Array, data_format: str) -> Array:
    """Return a view with the channels as last dimension."""
    return np.moveaxis(x, 1, -1) if is_channels_first(data_format) else x


def channels_back(x: Array, data_format: str) -> Array:
    """Return a result in the layout of the data format."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if is_channels_first(data_format) else x


def spatial(numbers: Sequence[Any], data_format: str) -> list[Any]:
    """Return the spatial entries of an attribute with one entry for each dimension."""
    return list(numbers[2:] if is_channels_first(data_format) else numbers[1:-1])


def batch_and_channels(numbers: Sequence[Any], data_format: str) -> list[Any]:
    """Return the entries of the batch and the channels."""
    return [numbers[0], numbers[1] if is_channels_first(data_format) else numbers[-1]]


def check_steps(
    numbers: Sequence[int], name: str, rank: int, data_format: str, outside: type[OpError] = InvalidArgumentError
) -> list[int]:
    """Check strides, dilations or window sizes, and return their spatial entries.

    Parameters
    ----------
    outside : type of OpError
        Error class raised if the entry of batch or channels is not 1.

    Raises
    ------
    InvalidArgumentError
        There is not one entry for each dimension, or one is not positive.
    """
    if len(numbers) != rank:
        raise InvalidArgumentError(f"{name} needs {rank} numbers, one for each dimension; it is {list(numbers)}")
    if batch_and_channels(numbers, data_format) != [1, 1]:
        raise outside(f"{name} must be 1 in the batch and the channels; it is {list(numbers)} for {data_format}")
    steps = spatial(numbers, data_format)
    if min(steps) < 1:
        raise InvalidArgumentError(f"{name} must be positive; it is {list(numbers)}")
    return steps


@dataclass(frozen=True)
class Windows:
    """Windows over an array of spatial `sizes`, one for each of `out` positions.

    Parameters
    ----------
    sizes, kernel, strides, dilations, out : tuple of int
        One number for each spatial dimension.
    pads : tuple of (int, int)
        Low and high padding of each spatial dimension.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    out: tuple[int, ...]

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        kernel: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int] = (),
        padding: str = "VALID",
        explicit: Sequence[tuple[int, int]] = (),
    ) -> Windows:
        """Return windows padded by TensorFlow's rules.

        Raises
        ------
        InvalidArgumentError
            A window is larger than the padded array.
        """
        dilations = tuple(dilations) or (1,) * len(sizes)
        pads, out = [], []
        for d, (size, k, stride, dilation) in enumerate(zip(sizes, kernel, strides, dilations, strict=True)):
            span = (k - 1) * dilation + 1
            if padding == "SAME":
                out_size = -(-size // stride)
                padding_total = max((out_size - 1) * stride + span - size, 0)
                pad = (padding_total // 2, padding_total - padding_total // 2)
            else:
                pad = explicit[d] if padding == "EXPLICIT" else (0, 0)
                out_size = (size + sum(pad) - span + stride) // stride
            if out_size < 0 or (out_size == 0 and size + sum(pad) < span and size):
                raise InvalidArgumentError(f"a window that spans {span} does not fit in {size} + {sum(pad)} of padding")
            pads.append(pad)
            out.append(max(out_size, 0))
        return cls(tuple(sizes), tuple(kernel), tuple(strides), dilations, tuple(pads), tuple(out))

    def padded(self, x: Array, value: Any = 0) -> Array:
        """Return an array [batch, *sizes, channels] with padding added."""
        if not any(map(any, self.pads)):
            return x
        return np.pad(x, [(0, 0), *self.pads, (0, 0)], constant_values=value)

    def cropped(self, x: Array) -> Array:
        """Return a padded array without its padding."""
        inside = tuple(slice(low, low + size) for (low, _), size in zip(self.pads, self.sizes, strict=True))
        return x[(slice(None), *inside)]

    @property
    def padded_sizes(self) -> tuple[int, ...]:
        """Spatial sizes with the padding."""
        return tuple(size + sum(pad) for size, pad in zip(self.sizes, self.pads, strict=True))

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yield each position in a window, and the slices of a padded array at that position of all windows."""
        for tap in product(*map(range, self.kernel)):
            at = (
                slice(t * dilation, t * dilation + (out - 1) * stride + 1 if out else 0, stride)
                for t, dilation, out, stride in zip(tap, self.dilations, self.out, self.strides, strict=True)
            )
            yield tap, (slice(None), *at)


def check_explicit(padding: str, explicit: Sequence[int], rank: int, data_format: str) -> list[tuple[int, int]]:
    """Check `explicit_paddings` and return its spatial pairs.

    Raises
    ------
    InvalidArgumentError
        Paddings are given with another padding mode, are not one pair for each dimension, are negative, or pad batch
        or channels.
    """
    if padding != "EXPLICIT":
        if explicit:
            raise InvalidArgumentError(f"explicit_paddings must be empty where the padding is {padding}")
        return []
    if len(explicit) != 2 * rank:
        raise InvalidArgumentError(f"explicit_paddings needs {2 * rank} numbers; it has {len(explicit)}")
    pairs = [(int(explicit[2 * d]), int(explicit[2 * d + 1])) for d in range(rank)]
    if min(explicit) < 0:
        raise InvalidArgumentError(f"explicit_paddings must not be negative: {list(explicit)}")
    if batch_and_channels(pairs, data_format) != [(0, 0), (0, 0)]:
        raise InvalidArgumentError(f"explicit_paddings must be 0 in the batch and the channels: {list(explicit)}")
    return spatial(pairs, data_format)


def check_rank(x: Array, rank: int, name: str) -> None:
    """Check the rank of an operand.

    Raises
    ------
    ShapeError
        The operand has another rank.
    """
    if x.ndim != rank:
        raise ShapeError(f"{name} must have rank {rank}; its shape is {list(x.shape)}")
