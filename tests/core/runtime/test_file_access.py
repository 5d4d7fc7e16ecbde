"""Loaded graphs touch no file outside of their model's folder, unless that is allowed."""

import ast
import os
from pathlib import Path

import numpy as np
import pytest

import cyxla
from cyxla import Graph, Session, load_graph, load_saved_model
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.checkpoint.slice_file import write_slice_file
from cyxla.core.framework.checkpoint.tensor_bundle import BundleReader, SavedPiece, write_bundle
from cyxla.core.framework.protos import messages as proto
from cyxla.core.graph.algorithm import copy_graph
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph_constructor import import_graph_def
from cyxla.core.runtime.session import RunOptions
from cyxla.errors import InvalidArgumentError, PermissionDeniedError

W = np.float32([1, 2])


def text(value):
    return np.array(os.fsencode(value), object)


def texts(*values):
    return np.array([os.fsencode(value) for value in values], object)


def save(path):
    return apply_op("SaveV2", text(path), texts("w"), texts(""), [W], name="op")


def restore(path):
    return apply_op("RestoreV2", text(path), texts("w"), texts(""), dtypes=["float"], name="op")


def merge(path, to):
    return apply_op("MergeV2Checkpoints", texts(path), text(to), name="op")


def old(op, path, *operands, **attrs):
    return apply_op(op, text(f"{path}.v1"), *operands, **attrs, name="op")


# What touches files: op, how a node of it is made for a path, files that it needs there, files that it makes there.
OPS = {
    "SaveV2": (save, False, "{}.index"),
    "RestoreV2": (restore, True, ""),
    "MergeV2Checkpoints": (lambda path: merge(path, path.parent / "merged"), True, "merged.index"),
    "Save": (lambda path: old("Save", path, texts("w"), [W]), False, "{}.v1"),
    "SaveSlices": (lambda path: old("SaveSlices", path, texts("w"), texts("3 0,2"), [W]), False, "{}.v1"),
    "Restore": (lambda path: old("Restore", path, text("w"), dt="float"), True, ""),
    "RestoreSlice": (lambda path: old("RestoreSlice", path, text("w"), text("2 0,1"), dt="float"), True, ""),
    "ImmutableConst": (
        lambda path: apply_op(
            "ImmutableConst", dtype="uint8", shape=[4], memory_region_name=f"{path}.index", name="op"
        ),
        True,
        "",
    ),
    "ReadFile": (lambda path: apply_op("ReadFile", text(f"{path}.index"), name="op"), True, ""),
    "PrintV2": (
        lambda path: apply_op("PrintV2", text("line"), output_stream=f"file://{path}.index", name="op"),
        False,
        "{}.index",
    ),
}  # fmt: skip


@pytest.fixture
def home(tmp_path):
    """A model's folder, and a neighbour whose files are not the model's."""
    (tmp_path / "model").mkdir()
    (tmp_path / "neighbour").mkdir()
    write_bundle(tmp_path / "model" / "there", {"w": W})
    write_bundle(tmp_path / "neighbour" / "there", {"w": W})
    for folder in ("model", "neighbour"):
        write_slice_file(str(tmp_path / folder / "there.v1"), [SavedPiece("w", W)])
    return tmp_path


def snapshot(folder):
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def plain(_graph, make, path):
    make(path)


def in_function(graph, make, path):
    inner = Graph()
    with inner.as_default():
        make(path)
    node = inner.nodes["op"]
    graph.library.add(graph_to_function("touch", [], list(node.outputs), control_outputs=[node]))
    types = list(node.output_types)
    apply_op("StatefulPartitionedCall", [], Tout=types, f=NameAttrList("touch", {}), name="op")


def in_branch(graph, make, path):
    inner = Graph()
    with inner.as_default():
        make(path)
    node = inner.nodes["op"]
    graph.library.add(graph_to_function("touch", [], list(node.outputs), control_outputs=[node]))
    branch, types = NameAttrList("touch", {}), list(node.output_types)
    apply_op("If", graph.constant(True), [], Tout=types, then_branch=branch, else_branch=branch, name="op")


def graph_def(make, path, place=plain):
    graph = Graph()
    with graph.as_default():
        place(graph, make, path)
    return graph.to_graph_def().SerializeToString()


def write_model(folder, make, path, *, init=True, place=plain, assets=()):
    model = proto.message("SavedModel")(saved_model_schema_version=1)
    meta = model.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.ParseFromString(graph_def(make, path, place))
    if init:
        meta.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "op"
    for name in assets:
        asset = meta.asset_file_def.add(filename=name)
        asset.tensor_info.name = "asset:0"
    folder.mkdir(exist_ok=True)
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    return folder


def paths(home, needs):
    """Spellings of a path that leads out of the model's folder."""
    name = "there" if needs else "new"
    outside = home / "neighbour" / name
    (home / "model" / "link").symlink_to(home / "neighbour")
    (home / "model" / "leaf.index").symlink_to(home / "neighbour" / f"{name}.index")
    (home / "model" / "leaf.v1").symlink_to(home / "neighbour" / f"{name}.v1")
    (home / "model" / "leaf.data-00000-of-00001").symlink_to(home / "neighbour" / f"{name}.data-00000-of-00001")
    return {
        "absolute": outside,
        "dots": home / "model" / ".." / "neighbour" / name,
        "link": home / "model" / "link" / name,
        "leaf": home / "model" / "leaf",
        "sibling": Path(f"{home / 'model'}s"),
        "relative": Path(os.path.relpath(outside)),
    }


SPELLINGS = ("absolute", "dots", "link", "leaf", "relative")
PLACES = [plain, in_function, in_branch]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("op", OPS)
def test_loading_a_model_touches_nothing_outside_of_its_folder(home, op, spelling, place):
    make, needs, _ = OPS[op]
    write_model(home / "model", make, paths(home, needs)[spelling], place=place)
    before = snapshot(home)
    with pytest.raises(PermissionDeniedError, match="outside of the model's folder") as caught:
        load_saved_model(home / "model")
    assert (caught.value.op, caught.value.node) == (op, "op")
    assert "neighbour" in str(caught.value)
    assert "allow_file_access=True" in caught.value.hint
    assert snapshot(home) == before


@pytest.mark.parametrize("jit", ["off", "auto"])
@pytest.mark.parametrize("op", OPS)
def test_a_model_that_is_loaded_touches_nothing_outside_either(home, op, jit):
    make, needs, _ = OPS[op]
    write_model(home / "model", make, paths(home, needs)["absolute"], init=False)
    model = load_saved_model(home / "model", jit=jit)
    before = snapshot(home)
    for session in (
        model.session,
        Session(model.graph, jit=jit),
        Session(copy_graph(model.graph), jit=jit),
        Session(load_graph(home / "model"), jit=jit),
        Session(
            load_graph(home / "model" / "saved_model.pb" if False else model.graph.to_graph_def().SerializeToString())
        ),
        Session(import_graph_def(model.graph.to_graph_def(), graph=Graph())),
    ):
        with pytest.raises(PermissionDeniedError):
            session.run("op")
    assert snapshot(home) == before


@pytest.mark.parametrize("how", ["model", "load", "session", "bytes"])
@pytest.mark.parametrize("op", OPS)
def test_access_is_given_where_it_is_asked_for(home, op, how):
    make, needs, makes = OPS[op]
    path = paths(home, needs)["absolute"]
    write_model(home / "model", make, path, init=how == "model")
    if how == "model":
        load_saved_model(home / "model", allow_file_access=True)
    elif how == "load":
        Session(load_graph(home / "model", allow_file_access=True)).run("op")
    elif how == "session":
        Session(load_graph(home / "model"), allow_file_access=True).run("op")
    else:
        Session(load_graph(graph_def(make, path), allow_file_access=True)).run("op")
    assert (home / "neighbour" / makes.format("new")).exists()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("op", OPS)
def test_a_model_uses_its_own_folder(home, op, place):
    make, needs, makes = OPS[op]
    name = "there" if needs else "new"
    folder = home / "model" / "deeper"
    folder.mkdir()
    write_bundle(folder / "there", {"w": W})
    write_slice_file(str(folder / "there.v1"), [SavedPiece("w", W)])
    (home / "alias").symlink_to(home / "model")  # the user's own way to the model may be a link
    write_model(home / "model", make, home / "alias" / "deeper" / name, place=place)
    load_saved_model(home / "alias")
    assert (folder / makes.format("new")).exists()


@pytest.mark.parametrize("op", OPS)
def test_a_graph_without_a_folder_touches_no_file(home, op):
    make, needs, _ = OPS[op]
    data = graph_def(make, home / "model" / ("there" if needs else "new"))
    (home / "model" / "graph.pb").write_bytes(data)
    for graph in (load_graph(data), load_graph(home / "model" / "graph.pb")):
        with pytest.raises(PermissionDeniedError, match="no folder of its own"):
            Session(graph).run("op")


@pytest.mark.parametrize("op", OPS)
def test_a_graph_that_is_built_here_is_free(home, op):
    make, needs, makes = OPS[op]
    graph = Graph()
    with graph.as_default():
        make(home / "neighbour" / ("there" if needs else "new"))
    with pytest.raises(PermissionDeniedError):
        Session(graph, allow_file_access=False).run("op")
    Session(graph).run("op")
    assert (home / "neighbour" / makes.format("new")).exists()


def test_constants_are_not_folded_around_the_limit(home):
    """`ReadFile` is a pure function to the passes, which compute those of constants before the first run."""
    graph = Graph()
    with graph.as_default():
        apply_op("ReadFile", text(home / "neighbour" / "there.index"), name="op")
        apply_op("Identity", graph.tensor("op:0"), name="after")
    for jit in ("off", "auto"):
        session = Session(load_graph(graph.to_graph_def().SerializeToString()), jit=jit)
        with pytest.raises(PermissionDeniedError):
            session.run("after:0")


def test_nodes_of_others_take_permission_away(home):
    graph = Graph()
    session = Session(graph)
    import_graph_def(graph_def(save, home / "neighbour" / "new"), graph=graph)
    with pytest.raises(PermissionDeniedError):
        session.run("op")
    assert not (home / "neighbour" / "new.index").exists()


def test_a_checkpoint_prefix_is_not_a_pattern(home):
    """Old checkpoints are deleted by name, even if the name contains characters of patterns."""
    write_bundle(home / "model" / "a[b]", {"w": W})
    write_bundle(home / "model" / "ab", {"w": W})
    graph = Graph()
    with graph.as_default():
        merge(home / "model" / "a[b]", home / "neighbour" / "merged")
    Session(graph).run("op")
    assert not list((home / "model").glob("a[[]b]*"))
    assert BundleReader(home / "model" / "ab").names() == ["w"]


def test_a_path_with_a_zero_byte(home):
    graph = Graph()
    with graph.as_default():
        apply_op("ReadFile", np.array(b"a\0b", object), name="op")
    with pytest.raises(InvalidArgumentError, match="zero byte"):
        Session(graph).run("op")


# Assets


def asset_reader(_path):
    return apply_op("ReadFile", apply_op("Placeholder", dtype="string", shape=[], name="asset"), name="op")


OUTSIDE = ["../../neighbour/there.index", "../../model2/x", "/etc/hostname", "link/there.index"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_assets_cannot_leave_the_folder(home, name):
    """Be they read or not."""
    (home / "model" / "assets").mkdir()
    (home / "model" / "assets" / "link").symlink_to(home / "neighbour")
    write_model(home / "model", asset_reader, None, init=False, assets=[name])
    with pytest.raises(PermissionDeniedError, match="asset"):
        load_saved_model(home / "model")
    load_saved_model(home / "model", allow_file_access=True)


@pytest.mark.parametrize("name", ["words.txt", "deep/../words.txt", "../assets/words.txt"])
def test_assets_in_the_folder_are_read(home, name):
    (home / "model" / "assets" / "deep").mkdir(parents=True)
    (home / "model" / "assets" / "words.txt").write_text("words")
    write_model(home / "model", asset_reader, None, assets=[name])
    load_saved_model(home / "model")


# The list of ops that touch files


TOUCHES = {"open", "unlink", "rmdir", "mkdir", "makedirs", "rename", "replace_file", "remove_file", "glob", "iterdir",
           "listdir", "scandir", "read_bytes", "write_bytes", "read_text", "write_text", "touch", "memmap", "fromfile",
           "tofile", "savez", "write_bundle", "symlink_to", "CDLL", "Popen", "system", "urlopen", "socket",
           "exists", "is_file", "is_dir", "stat"}  # fmt: skip
CHECKED = {"BundleReader", "SliceFileReader", "matching_files", "write_pieces", "write_slice_file"}  # given an `Env`
OTHER_USES_OF_ENV = {"Timestamp"}


def called(function):
    """Names of what a function calls, with the calls."""
    for call in ast.walk(function):
        if isinstance(call, ast.Call):
            yield call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", ""), call


def functions_of_kernels():
    for module in sorted((Path(cyxla.__file__).parent / "core" / "kernels").rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                yield module.name, node


def test_kernels_reach_files_through_their_environment_alone():
    touching = [(module, name, call.lineno) for module, function in functions_of_kernels()
                for name, call in called(function) if name in TOUCHES]  # fmt: skip
    assert touching == []
    calls = {ast.unparse(call) for _, function in functions_of_kernels() for name, call in called(function)
             if name in CHECKED}  # fmt: skip
    assert len(calls) > 5
    assert [call for call in calls if not call.endswith("ctx.env)")] == []


def test_all_kernels_that_touch_files_are_known():
    ops = set()
    for _, function in functions_of_kernels():
        decorators = [d for d in getattr(function, "decorator_list", []) if isinstance(d, ast.Call)]
        if any(isinstance(n, ast.Attribute) and n.attr == "env" for n in ast.walk(function)):
            ops |= {str(op) for d in decorators for op in np.atleast_1d(ast.literal_eval(d.args[0]))}
    assert ops == OPS.keys() | OTHER_USES_OF_ENV


@pytest.mark.slow
def test_no_other_part_of_the_framework_runs_kernels_without_the_limit():
    """Each `StepContext` of the runtime is told the limit, but that of ops applied at once, which are the caller's."""
    runtime = Path(cyxla.__file__).parent
    calls = {}
    for module in sorted(runtime.rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "StepContext":
                calls[module.name] = any(k.arg == "file_access" for k in node.keywords)
    assert calls == {"constant_folding.py": True, "eager.py": False, "session.py": True}


def test_options_of_a_run_do_not_widen_the_limit(home):
    session = Session(load_graph(graph_def(save, home / "neighbour" / "new")))
    with pytest.raises(PermissionDeniedError):
        session.run("op", options=RunOptions(inline=True))
