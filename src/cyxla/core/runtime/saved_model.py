"""Execution of SavedModels: a session with the restored variables, and the signatures as functions."""

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
    """A function of a saved model, from arrays by name to arrays by name.

    Parameters
    ----------
    session : Session
        Session that runs the function.
    name : str
        Name in the model.
    message : SignatureDef message
        Declaration of inputs and outputs.
    """

    def __init__(self, session: Session, name: str, message: Any) -> None:
        self._session = session
        self.name = name
        self.inputs = {key: _tensor_name(info, name, key) for key, info in sorted(message.inputs.items())}
        self.outputs = {key: _tensor_name(info, name, key) for key, info in sorted(message.outputs.items())}
        self._defaults = {key: tensor_from_proto(value).array for key, value in message.defaults.items()}

    def __call__(self, **feeds: Any) -> dict[str, Array]:
        """Run the function.

        Raises
        ------
        InvalidArgumentError
            An input is missing or unknown, or has the wrong type or shape.
        """
        inputs = {**self._defaults, **feeds}
        for key in self.inputs:
            if key not in inputs:
                raise InvalidArgumentError(f"signature '{self.name}' needs the input '{key}'", hint=f"pass {key}=...")
        for key in inputs:
            if key not in self.inputs:
                raise InvalidArgumentError(
                    f"signature '{self.name}' has no input '{key}'", hint=f"its inputs are {', '.join(self.inputs)}"
                )
        results = self._session.run(list(self.outputs.values()), {self.inputs[k]: v for k, v in inputs.items()})
        return dict(zip(self.outputs, results, strict=True))

    def __repr__(self) -> str:
        return f"<Signature {self.name}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"


def _tensor_name(info: Any, signature: str, key: str) -> str:
    if info.WhichOneof("encoding") != "name":
        raise UnimplementedError(f"'{key}' of signature '{signature}' is not a dense tensor")
    name: str = info.name
    return name


class SavedModel:
    """A model restored from a folder.

    Parameters
    ----------
    graph : Graph
        Graph of the model.
    session : Session
        Session that holds the variables.
    signatures : mapping of Signature
        Functions of the model by name.
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

    A model is a program: loading it runs its initialisation, and calling a signature runs more of it. Neither accesses
    files outside of the model's folder, unless that is allowed.

    Parameters
    ----------
    path : path
        Folder of the model.
    tags : collection of str
        Tags of the graph to load, if the model has several graphs.
    allow_file_access : bool
        True to let the model access any file, during loading and later.
    **session_options
        Options of `Session`, such as ``jit``.

    Returns
    -------
    SavedModel
        Restored model: ``load_saved_model(path).signatures["serving_default"](x=array)`` returns arrays by name.

    Raises
    ------
    NotFoundError
        The model, the graph or the checkpoint does not exist.
    InvalidArgumentError
        The graph of the model is invalid.
    PermissionDeniedError
        The model accesses files outside of its folder, or has assets there.
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
    """Restore the variables by running the restore op of the graph."""
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
