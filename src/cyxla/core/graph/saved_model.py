"""Reading SavedModels: folders of a graph, its signatures, and a checkpoint of its variables."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from cyxla.core.framework.protos import messages as proto
from cyxla.core.framework.step.file_access import UNLIMITED, FileAccess
from cyxla.errors import InvalidArgumentError, NotFoundError

SERVING = frozenset({"serve"})
_INIT = "__saved_model_init_op"
_OLD_INITS = ("saved_model_main_op", "legacy_init_op")  # collections of older writers


def read_meta_graph(path: str | os.PathLike[str], tags: Collection[str] = SERVING) -> Any:
    """The graph of a SavedModel that has certain tags.

    Parameters
    ----------
    path : path
        The model's folder.
    tags : collection of str
        All tags of the wanted graph; a model of one graph gives that whatever its tags.

    Raises
    ------
    NotFoundError
        There is no model, or no graph with these tags.
    InvalidArgumentError
        The model's file is damaged.
    """
    message = _read(Path(path))
    if len(message.meta_graphs) == 1:
        return message.meta_graphs[0]
    found = [sorted(graph.meta_info_def.tags) for graph in message.meta_graphs]
    if sorted(tags) not in found:
        raise NotFoundError(f"the saved model '{path}' has no graph with the tags {sorted(tags)}, only {found}")
    return message.meta_graphs[found.index(sorted(tags))]


def _read(folder: Path) -> Any:
    for name in ("saved_model.pb", "saved_model.pbtxt"):
        file = folder / name
        if os.path.isfile(file):  # False, too, of what is no path
            data = file.read_bytes()
            if name.endswith("txt"):
                message = proto.parse_text("SavedModel", data.decode("utf-8", "replace"))
            else:
                message = proto.parse_binary("SavedModel", data)
            if not message.meta_graphs:
                raise InvalidArgumentError(f"the saved model '{folder}' has no graph")
            return message
    raise NotFoundError(f"'{str(folder)[:200]}' has no file saved_model.pb", hint="give the folder of a SavedModel")


def init_operations(meta_graph: Any) -> list[str]:
    """Names of the nodes that make a model ready once its variables are restored."""
    if _INIT in meta_graph.signature_def:
        return [meta_graph.signature_def[_INIT].outputs[_INIT].name.partition(":")[0]]
    for key in _OLD_INITS:
        if key in meta_graph.collection_def:
            return [name.partition(":")[0] for name in meta_graph.collection_def[key].node_list.value]
    return []


def asset_feeds(meta_graph: Any, path: str | os.PathLike[str], access: FileAccess = UNLIMITED) -> dict[str, str]:
    """Paths of the model's further files, by the names of the tensors that take them.

    Raises
    ------
    PermissionDeniedError
        A file lies where it must not be touched.
    """
    folder = Path(path) / "assets"
    assets = {asset.tensor_info.name: str(folder / asset.filename) for asset in meta_graph.asset_file_def}
    for tensor, file in assets.items():
        access.path(file, f"the asset of '{tensor}'")
    return assets
