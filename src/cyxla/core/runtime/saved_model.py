"""SavedModels ready to run: a session with the variables restored, and its signatures as functions."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cyxla.core.framework.protos.attrs import tensor_from_proto
from cyxla.core.graph.graph import Graph
from cyxla.core.graph.graph_constructor import import_meta_graph
from cyxla.core.graph.meta_graph import SERVING, asset_feeds, init_operations, read_meta_graph
from cyxla.core.runtime.session import Session
from cyxla.errors import InvalidArgumentError, NotFoundError, UnimplementedError

Array = np.ndarray[Any, Any]


class Signature:
    """A function of a saved model: arrays by name in, arrays by name out.

    Parameters
    ----------
    session : Session
        Where it runs.
    name : str
        Its name in the model.
    message : SignatureDef message
        What it takes and gives.
    """

    def __init__(self, session: Session, name: str, message: Any) -> None:
        self._session = session
        self.name = name
        self.inputs = {key: _tensor_name(info, name, key) for key, info in sorted(message.inputs.items())}
        self.outputs = {key: _tensor_name(info, name, key) for key, info in sorted(message.outputs.items())}
        self._defaults = {key: tensor_from_proto(value).array for key, value in message.defaults.items()}

    def __call__(self, **feeds: Any) -> dict[str, Array]:
        """Run it.

        Raises
        ------
        InvalidArgumentError
            An input is missing or unknown, or does not fit.
        """
        given = {**self._defaults, **feeds}
        for key in self.inputs.keys() - given.keys():
            raise InvalidArgumentError(f"signature '{self.name}' needs the input '{key}'", hint=f"pass {key}=...")
        for key in given.keys() - self.inputs.keys():
            raise InvalidArgumentError(
                f"signature '{self.name}' has no input '{key}'", hint=f"its inputs are {', '.join(self.inputs)}"
            )
        results = self._session.run(list(self.outputs.values()), {self.inputs[k]: v for k, v in given.items()})
        return dict(zip(self.outputs, results, strict=True))

    def __repr__(self) -> str:
        return f"<Signature {self.name}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"


def _tensor_name(info: Any, signature: str, key: str) -> str:
    if info.WhichOneof("encoding") != "name":
        raise UnimplementedError(f"'{key}' of signature '{signature}' is no plain tensor")
    name: str = info.name
    return name


class SavedModel:
    """A model that was restored from a folder.

    Parameters
    ----------
    graph : Graph
        The graph.
    session : Session
        Holds the variables.
    signatures : mapping of Signature
        The model's functions by name.
    """

    def __init__(self, graph: Graph, session: Session, signatures: Mapping[str, Signature]) -> None:
        self.graph = graph
        self.session = session
        self.signatures = dict(signatures)

    def __repr__(self) -> str:
        return f"<SavedModel with the signatures {', '.join(self.signatures)}>"


def load_saved_model(
    path: str | os.PathLike[str],
    *,
    tags: Collection[str] = SERVING,
    allow_file_access: bool = False,
    **session_options: Any,
) -> SavedModel:
    """Restore a saved model.

    A model is a program: loading it runs the part of it that makes it ready, and a signature runs more. Neither reads
    or writes files outside of the model's folder, unless that is allowed.

    Parameters
    ----------
    path : path
        The model's folder.
    tags : collection of str
        Tags of the graph to take, where the model has several.
    allow_file_access : bool
        Whether the model may touch any file, while it is loaded and later.
    **session_options
        Options of `Session`, such as ``jit``.

    Returns
    -------
    SavedModel
        ``load_saved_model(path).signatures["serving_default"](x=array)`` gives arrays by name.

    Raises
    ------
    NotFoundError
        There is no such model, graph or checkpoint.
    InvalidArgumentError
        The model's graph breaks a rule.
    PermissionDeniedError
        The model touches files outside of its folder, or names assets there.
    """
    meta_graph = read_meta_graph(path, tags)
    graph = import_meta_graph(meta_graph, Path(path), allow_file_access=allow_file_access)
    assets = asset_feeds(meta_graph, path, graph.file_access)
    session = Session(graph, **session_options)
    _restore(session, meta_graph, Path(path))
    feeds = {name: np.array(file.encode(), object) for name, file in assets.items()}
    operations = init_operations(meta_graph)
    if operations:
        session.run(operations, feeds)
    signatures = {
        name: Signature(session, name, message)
        for name, message in sorted(meta_graph.signature_def.items())
        if not name.startswith("__saved_model_")
    }
    return SavedModel(graph, session, signatures)


def _restore(session: Session, meta_graph: Any, folder: Path) -> None:
    """Let the graph's own nodes restore the variables."""
    prefix = folder / "variables" / "variables"
    saver = meta_graph.saver_def
    if not saver.restore_op_name:
        return
    if not prefix.with_suffix(".index").is_file():
        if any(node.op in ("VarHandleOp", "VariableV2") for node in meta_graph.graph_def.node):
            raise NotFoundError(f"the saved model '{folder}' has no file variables/variables.index")
        return
    operation = saver.restore_op_name.partition(":")[0]
    session.run([operation], {saver.filename_tensor_name: np.array(str(prefix).encode(), object)})
