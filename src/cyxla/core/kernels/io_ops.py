"""Files and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from cyxla.core.framework.checkpoint.tensor_bundle import BundleReader, Extent, SavedPiece, write_pieces
from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.errors import InvalidArgumentError, NotFoundError

Array = np.ndarray[Any, Any]


def _text(value: Any) -> str:
    return bytes(value).decode("utf-8", "surrogateescape")


def _scalar_text(ctx: OpKernelContext, name: str) -> str:
    value = ctx.input(name)
    ctx.require(value.size == 1, f"{name} must be one string, not {list(value.shape)}")
    return _text(value.item())


def _texts(ctx: OpKernelContext, name: str) -> list[str]:
    value = ctx.input(name)
    ctx.require(value.ndim == 1, f"{name} must be a vector, not {list(value.shape)}")
    return [_text(item) for item in value]


def parse_shape_and_slice(text: str, name: str) -> tuple[tuple[int, ...], tuple[Extent, ...]] | None:
    """Parse the full shape and bounds of a slice, such as ``"4 3 0,2:-"``; an empty text, the whole tensor, gives None.

    Raises
    ------
    InvalidArgumentError
        The text is malformed, or the slice exceeds the shape.
    """
    if not text:
        return None
    *sizes, bounds = text.split(" ")
    try:
        shape = tuple(int(size) for size in sizes)
        extents = tuple(_extent(part) for part in bounds.split(":"))
    except ValueError:
        raise InvalidArgumentError(
            f"'{text}' for '{name}' is not a valid shape and slice", hint="such as '4 3 0,2:-'"
        ) from None
    inside = all(
        start >= 0 and start + max(length, 0) <= size for (start, length), size in zip(extents, shape, strict=False)
    )
    if len(shape) != len(extents) or not inside:
        raise InvalidArgumentError(f"the slice in '{text}' for '{name}' does not fit its shape")
    return shape, extents


def _extent(part: str) -> Extent:
    if part == "-":
        return 0, -1
    start, length = part.split(",")
    return int(start), int(length)


@kernel("RestoreV2")
def restore_v2(ctx: OpKernelContext) -> None:
    """Read tensors from a checkpoint."""
    names, slices = _texts(ctx, "tensor_names"), _texts(ctx, "shape_and_slices")
    types = ctx.attr("dtypes")
    ctx.require(
        len(names) == len(slices) == len(types),
        f"{len(names)} names, {len(slices)} slices and {len(types)} types do not go together",
    )
    reader = BundleReader(_scalar_text(ctx, "prefix"), ctx.file_path)
    values = []
    for name, text, dtype in zip(names, slices, types, strict=True):
        entry = reader.entry(name)
        ctx.require(entry.dtype == dtype, f"'{name}' is {entry.dtype} in the checkpoint, but {dtype} was requested")
        slice_spec = parse_shape_and_slice(text, name)
        if slice_spec is not None:
            ctx.require(
                slice_spec[0] == entry.shape,
                f"'{name}' is {list(entry.shape)} in the checkpoint, not {list(slice_spec[0])}",
            )
        values.append(reader.read(name) if slice_spec is None else reader.read_slice(name, slice_spec[1]))
    ctx.set_output_list("tensors", values)


@kernel("SaveV2")
def save_v2(ctx: OpKernelContext) -> None:
    """Write tensors to a checkpoint."""
    names, slices = _texts(ctx, "tensor_names"), _texts(ctx, "shape_and_slices")
    arrays = ctx.input_list("tensors")
    ctx.require(
        len(names) == len(slices) == len(arrays),
        f"{len(names)} names, {len(slices)} slices and {len(arrays)} tensors do not go together",
    )
    pieces = [
        _piece(name, text, array, dtype)
        for name, text, array, dtype in zip(names, slices, arrays, ctx.attr("dtypes"), strict=True)
    ]
    write_pieces(_scalar_text(ctx, "prefix"), pieces, ctx.file_path)


def _piece(name: str, text: str, array: Array, dtype: Any) -> SavedPiece:
    parsed = parse_shape_and_slice(text, name)
    if parsed is None:
        return SavedPiece(name, array, dtype)
    shape, extents = parsed
    slice_shape = tuple(size if length < 0 else length for (_, length), size in zip(extents, shape, strict=True))
    if slice_shape != array.shape:
        raise InvalidArgumentError(
            f"the slice '{text}' of '{name}' is {list(slice_shape)}, but the tensor {list(array.shape)}"
        )
    return SavedPiece(name, array, dtype, shape, extents)


@kernel("MergeV2Checkpoints")
def merge_v2_checkpoints(ctx: OpKernelContext) -> None:
    """Merge several checkpoints into one and delete the old ones."""
    prefixes = _texts(ctx, "checkpoint_prefixes")
    destination = _scalar_text(ctx, "destination_prefix")
    pieces: list[SavedPiece] = []
    prefixes_found = []
    for prefix in prefixes:
        try:
            reader = BundleReader(prefix, ctx.file_path)
        except NotFoundError:
            if not ctx.attr("allow_missing_files"):
                raise
            continue
        prefixes_found.append(prefix)
        pieces += _all_pieces(reader)
    write_pieces(destination, pieces, ctx.file_path)
    if ctx.attr("delete_old_dirs"):
        old = [Path(prefix) for prefix in prefixes_found if Path(prefix) != Path(destination)]
        kept_folder = ctx.file_path(str(Path(destination).parent))
        _delete([Path(ctx.file_path(str(path.parent))) / path.name for path in old], Path(kept_folder))


def _all_pieces(reader: BundleReader) -> list[SavedPiece]:
    pieces = []
    for name in reader.names():
        entry = reader.entry(name)
        for extents in entry.slices or (None,):
            array = reader.read(name) if extents is None else reader.read_slice(name, extents)
            pieces.append(SavedPiece(name, array, entry.dtype, entry.shape if extents else None, extents))
    return pieces


def _delete(prefixes: Sequence[Path], kept_folder: Path) -> None:
    for path in prefixes:
        for file in path.parent.glob(f"{escape(path.name)}.*"):
            file.unlink()
        if path.parent != kept_folder and not any(path.parent.iterdir()):
            path.parent.rmdir()


@kernel("ShardedFilename")
def sharded_filename(ctx: OpKernelContext) -> None:
    """Format a name such as ``name-00001-of-00004``."""
    base, shard, count = _scalar_text(ctx, "basename"), ctx.input("shard"), ctx.input("num_shards")
    ctx.require(shard.ndim == 0 and count.ndim == 0, "shard and num_shards must be scalars")
    ctx.set_output(
        0, np.array(f"{base}-{int(shard):05d}-of-{int(count):05d}".encode("utf-8", "surrogateescape"), object)
    )


@kernel("ReadFile")
def read_file(ctx: OpKernelContext) -> None:
    """Read a whole file."""
    name = ctx.input("filename")
    ctx.require(name.ndim == 0, f"filename must be a scalar, not {list(name.shape)}")
    path = Path(ctx.file_path(_text(name.item())))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"cannot read '{_text(name.item())}': {error.strerror}") from error
    ctx.set_output(0, np.array(data, object))
