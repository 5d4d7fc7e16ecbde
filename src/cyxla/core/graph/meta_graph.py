"""MetaGraphs of SavedModels: the graph of a model's folder, its initialisation and its assets."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from cyxla.core.framework.environment.file_access import UNLIMITED, FileAccess
from cyxla.core.framework.protos import messages as proto
from cyxla.errors import InvalidArgumentError, NotFoundError

SERVING = frozenset({"serve"})
_INIT = "__saved_model_init_op"
_OLD_INITS = ("saved_model_main_op", "legacy_init_op")  # collections that older writers use


def read_meta_graph(path: str | os.PathLike[str], tags: Collection[str] = SERVING) -> Any:
    """Read the MetaGraph of a SavedModel by its tags.

    Parameters
    ----------
    path : path
        Folder of the model.
    tags : collection of str
        Exact tags of the graph; they are ignored if the model has only one graph.

    Raises
    ------
    NotFoundError
        The folder holds no model, or the model has no graph with these tags.
    InvalidArgumentError
        The file of the model is damaged.
    """
    message = _read(Path(path))
    if len(message.meta_graphs) == 1:
        return message.meta_graphs[0]
    tag_sets = [sorted(graph.meta_info_def.tags) for graph in message.meta_graphs]
    if sorted(tags) not in tag_sets:
        raise NotFoundError(f"the saved model '{path}' has no graph with the tags {sorted(tags)}, only {tag_sets}")
    return message.meta_graphs[tag_sets.index(sorted(tags))]


def _read(folder: Path) -> Any:
    for name in ("saved_model.pb", "saved_model.pbtxt"):
        file = folder / name
        if os.path.isfile(file):  # also False for a malformed path
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
    """Return the names of the nodes that initialise a model after its variables are restored."""
    if _INIT in meta_graph.signature_def:
        return [meta_graph.signature_def[_INIT].outputs[_INIT].name.partition(":")[0]]
    for key in _OLD_INITS:
        if key in meta_graph.collection_def:
            return [name.partition(":")[0] for name in meta_graph.collection_def[key].node_list.value]
    return []


def asset_feeds(meta_graph: Any, path: str | os.PathLike[str], access: FileAccess = UNLIMITED) -> dict[str, str]:
    """Return the paths of the model's assets, by the names of the tensors to which they are fed.

    Raises
    ------
    PermissionDeniedError
        An asset is outside of the files that may be accessed.
    """
    folder = Path(path) / "assets"
    assets = {asset.tensor_info.name: str(folder / asset.filename) for asset in meta_graph.asset_file_def}
    for tensor, file in assets.items():
        access.path(file, f"the asset of '{tensor}'")
    return assets
