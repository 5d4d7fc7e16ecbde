"""A SavedModel that tests write."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

from cyxla import Graph
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.checkpoint.tensor_bundle import write_bundle
from cyxla.core.framework.protos import messages as proto

WEIGHTS = np.float32([[1, 2], [3, 4], [5, 6]])


def write_model(folder: Path, *, variables: bool = True, tags: Collection[str] = ("serve",)) -> Path:
    """A model of one variable: y = x @ w, with nodes that restore it."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [None, 3], name="x")
        w = apply_op("VarHandleOp", dtype="float", shape=[3, 2], shared_name="w", name="w")
        value = apply_op("ReadVariableOp", w, dtype="float")
        apply_op("MatMul", x, value, name="y")
        prefix = graph.placeholder("string", [], name="prefix")
        [read] = apply_op("RestoreV2", prefix, ["w"], [""], dtypes=["float"])
        restored = apply_op("AssignVariableOp", w, read)
        with graph.control_dependencies([restored]):
            apply_op("NoOp", name="restore_all")
    model = proto.message("SavedModel")(saved_model_schema_version=1)
    meta = model.meta_graphs.add()
    meta.meta_info_def.tags.extend(tags)
    meta.graph_def.CopyFrom(graph.to_graph_def())
    meta.saver_def.filename_tensor_name = "prefix:0"
    meta.saver_def.restore_op_name = "restore_all"
    signature = meta.signature_def["serving_default"]
    signature.inputs["x"].name = "x:0"
    signature.outputs["product"].name = "y:0"
    folder.mkdir(exist_ok=True)
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    if variables:
        write_bundle(folder / "variables" / "variables", {"w": WEIGHTS})
    return folder
