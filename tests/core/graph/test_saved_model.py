"""SavedModels: variables are restored, signatures are called with arrays, and missing parts are named."""

import numpy as np
import pytest
from support.graphs.saved_models import WEIGHTS, write_model

from cyxla import Graph, Session, load_graph, load_saved_model
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.protos import messages as proto
from cyxla.core.graph.meta_graph import read_meta_graph
from cyxla.errors import InvalidArgumentError, NotFoundError


def test_a_model_runs_with_its_variables(tmp_path):
    model = load_saved_model(write_model(tmp_path / "m"))
    x = np.float32([[1, 0, 2]])
    np.testing.assert_array_equal(model.signatures["serving_default"](x=x)["product"], x @ WEIGHTS)
    assert "serving_default(x)" in repr(model.signatures["serving_default"])


def test_inputs_are_checked_by_name(tmp_path):
    call = load_saved_model(write_model(tmp_path / "m")).signatures["serving_default"]
    with pytest.raises(InvalidArgumentError, match="'x'"):
        call()
    with pytest.raises(InvalidArgumentError, match="'z'"):
        call(x=np.zeros((1, 3), np.float32), z=1)


def test_missing_parts_are_named(tmp_path):
    with pytest.raises(NotFoundError, match=r"saved_model\.pb"):
        load_saved_model(tmp_path)
    with pytest.raises(NotFoundError, match=r"variables\.index"):
        load_saved_model(write_model(tmp_path / "m", variables=False))
    (tmp_path / "m" / "saved_model.pb").write_bytes(b"\xff\xff")
    with pytest.raises(InvalidArgumentError):
        load_saved_model(tmp_path / "m")


def test_the_graph_alone_can_be_loaded(tmp_path):
    assert "y" in load_graph(write_model(tmp_path / "m"))


def test_tags_choose_a_graph(tmp_path):
    folder = write_model(tmp_path / "m", tags=("train", "gpu"))
    model = proto.parse_binary("SavedModel", (folder / "saved_model.pb").read_bytes())
    assert read_meta_graph(folder) == model.meta_graphs[0]  # the only one, whatever its tags
    model.meta_graphs.add().meta_info_def.tags.append("serve")
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    assert list(read_meta_graph(folder).meta_info_def.tags) == ["serve"]
    assert list(read_meta_graph(folder, ["gpu", "train"]).meta_info_def.tags) == ["train", "gpu"]
    with pytest.raises(NotFoundError, match="tpu"):
        read_meta_graph(folder, ["tpu"])


def test_saving_and_merging_by_ops(tmp_path):
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [3, 2])
        parts = [str(tmp_path / "parts" / name) for name in ("one", "two")]
        saves = [
            apply_op("SaveV2", parts[0], ["w", "n"], ["3 2 0,2:-", ""], [x[:2], graph.constant(5)]),
            apply_op("SaveV2", parts[1], ["w"], ["3 2 2,1:-"], [x[2:]]),
        ]
        with graph.control_dependencies(saves):
            merged = apply_op("MergeV2Checkpoints", parts, str(tmp_path / "all"))
        with graph.control_dependencies([merged]):
            back = apply_op(
                "RestoreV2", str(tmp_path / "all"), ["w", "w", "n"], ["", "3 2 1,2:0,1", ""],
                dtypes=["float", "float", "int32"],
            )  # fmt: skip
    whole, part, number = Session(graph).run(back, {x: WEIGHTS})
    np.testing.assert_array_equal(whole, WEIGHTS)
    np.testing.assert_array_equal(part, WEIGHTS[1:, :1])
    assert number == 5
    assert not (tmp_path / "parts").exists()
