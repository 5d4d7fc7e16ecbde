"""Files and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from cyxla.core.framework.checkpoint.slice_file import SliceFileReader, matching_files
from cyxla.core.framework.checkpoint.tensor_bundle import BundleReader, SavedPiece, write_pieces
from cyxla.core.framework.environment.env import Env
from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.kernels.lib.checkpoint_operands import parse_shape_and_slice, saved_piece, scalar_text, text_of, texts
from cyxla.core.kernels.lib.slice_checkpoint import restore_tensor
from cyxla.errors import NotFoundError

Array = np.ndarray[Any, Any]


@kernel("RestoreV2")
def restore_v2(ctx: OpKernelContext) -> None:
    """Read tensors from a checkpoint."""
    names, slices = texts(ctx, "tensor_names"), texts(ctx, "shape_and_slices")
    types = ctx.attr("dtypes")
    ctx.require(
        len(names) == len(slices) == len(types),
        f"{len(names)} names, {len(slices)} slices and {len(types)} types do not go together",
    )
    prefix = scalar_text(ctx, "prefix")
    if not ctx.env.file_exists(f"{prefix}.index") and matching_files(prefix, ctx.env):
        old = SliceFileReader(prefix, ctx.env)  # a checkpoint of version 1
        ctx.set_output_list("tensors", [restore_tensor(old, *row) for row in zip(names, slices, types, strict=True)])
        return
    reader = BundleReader(prefix, ctx.env)
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
    names, slices = texts(ctx, "tensor_names"), texts(ctx, "shape_and_slices")
    arrays = ctx.input_list("tensors")
    ctx.require(
        len(names) == len(slices) == len(arrays),
        f"{len(names)} names, {len(slices)} slices and {len(arrays)} tensors do not go together",
    )
    pieces = [
        saved_piece(name, text, array, dtype)
        for name, text, array, dtype in zip(names, slices, arrays, ctx.attr("dtypes"), strict=True)
    ]
    write_pieces(scalar_text(ctx, "prefix"), pieces, ctx.env)


@kernel("MergeV2Checkpoints")
def merge_v2_checkpoints(ctx: OpKernelContext) -> None:
    """Merge several checkpoints into one and delete the old ones."""
    prefixes = texts(ctx, "checkpoint_prefixes")
    destination = scalar_text(ctx, "destination_prefix")
    pieces: list[SavedPiece] = []
    prefixes_found = []
    for prefix in prefixes:
        try:
            reader = BundleReader(prefix, ctx.env)
        except NotFoundError:
            if not ctx.attr("allow_missing_files"):
                raise
            continue
        prefixes_found.append(prefix)
        pieces += _all_pieces(reader)
    write_pieces(destination, pieces, ctx.env)
    if ctx.attr("delete_old_dirs"):
        old = [prefix for prefix in prefixes_found if Path(prefix) != Path(destination)]
        _delete(ctx.env, old, ctx.env.path(str(Path(destination).parent)))


def _all_pieces(reader: BundleReader) -> list[SavedPiece]:
    pieces = []
    for name in reader.names():
        entry = reader.entry(name)
        for extents in entry.slices or (None,):
            array = reader.read(name) if extents is None else reader.read_slice(name, extents)
            pieces.append(SavedPiece(name, array, entry.dtype, entry.shape if extents else None, extents))
    return pieces


def _delete(env: Env, prefixes: Sequence[str], kept_folder: str) -> None:
    for prefix in prefixes:
        for path in env.get_matching_paths(f"{escape(prefix)}.*"):
            env.delete_file(path)
        folder = env.path(str(Path(prefix).parent))
        if folder != kept_folder and not env.get_children(folder):
            env.delete_dir(folder)


@kernel("ShardedFilename")
def sharded_filename(ctx: OpKernelContext) -> None:
    """Format a name such as ``name-00001-of-00004``."""
    base, shard, count = scalar_text(ctx, "basename"), ctx.input("shard"), ctx.input("num_shards")
    ctx.require(shard.ndim == 0 and count.ndim == 0, "shard and num_shards must be scalars")
    ctx.set_output(
        0, np.array(f"{base}-{int(shard):05d}-of-{int(count):05d}".encode("utf-8", "surrogateescape"), object)
    )


@kernel("ReadFile")
def read_file(ctx: OpKernelContext) -> None:
    """Read a whole file."""
    name = ctx.input("filename")
    ctx.require(name.ndim == 0, f"filename must be a scalar, not {list(name.shape)}")
    ctx.set_output(0, np.array(ctx.env.read_file(text_of(name.item())), object))
