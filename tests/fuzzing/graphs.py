"""Graphs of TensorFlow: GraphDefs in both formats, and SavedModels, which are folders."""

from __future__ import annotations

import io
import os
import random
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from core.graph.test_saved_model import write_model
from core.runtime import test_hostile_graphs
from support.graphs.graph_programs import random_graph

from cyxla import Session, load_graph, load_saved_model
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.protos import messages as proto
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import RunOptions
from fuzzing import bits, messages, texts
from fuzzing.kind import DifferenceError, Kind, Stage, files

LIMITS = RunOptions(timeout=5, memory_limit=256 << 20)
RUNS = ("run", "run compiled", "call")
MOST_ELEMENTS = 10_000


def graph_defs() -> list[Any]:
    """Small graphs of this project."""
    graphs = [random_graph(seed).graph for seed in range(60)]
    some = (test_hostile_graphs.plain, test_hostile_graphs.looped, test_hostile_graphs.functional)
    return [graph.to_graph_def() for graph in graphs + [build() for build in some] * 4]


class GraphDef(Kind):
    """Mutated graphs, binary and text."""

    name, suffix = "graphdef", ".graph"
    stages = ("parse", "run", "run compiled")
    runs = slow = RUNS
    deep = 0.3

    def prepare(self, folders: Sequence[Path]) -> None:
        given = files(folders, (self.suffix, ".pb", ".pbtxt"))
        made = graph_defs()
        self.binary = [g.SerializeToString(deterministic=True) for g in made] + given
        self.texts = [proto.to_text(g) for g in made[::3]]
        self.words = texts.Vocabulary(self.texts)

    def make(self, rng: random.Random) -> bytes:
        how = rng.random()
        if how < 0.2:
            return bits.damaged(rng.choice(self.binary), rng)
        if how < 0.4:
            return texts.mutated(rng.choice(self.texts), rng, self.words).encode("utf-8", "surrogatepass")
        message = proto.message("GraphDef")()
        message.ParseFromString(rng.choice(self.binary))
        messages.mutated(message, rng)
        return message.SerializeToString(deterministic=True)

    def attempt(self, data: bytes, deep: bool, stage: Stage) -> None:
        stage("parse")
        graph = load_graph(data)
        if not deep:
            return
        fetches, feeds = _ends(graph), _feeds(graph)
        stage("run")
        Session(graph, threads=1).run(fetches, feeds, options=LIMITS)
        stage("run compiled")
        Session(graph, jit="on", platform="interpreter", threads=1).run(fetches, feeds, options=LIMITS)


def _ends(graph: Graph) -> list[str]:
    """Return the outputs that no other node reads."""
    made = [node for node in graph.nodes.values() if node.outputs and node.op not in ("Placeholder", "VarHandleOp")]
    return [f"{node.name}:0" for node in made[-4:]]


def _feeds(graph: Graph) -> dict[str, Any]:
    """Ones for placeholders, of the sizes declared."""
    feeds = {}
    for node in graph.nodes.values():
        if node.op == "Placeholder":
            dims = [2 if d is None else d for d in node.outputs[0].shape.dims or ()]
            dtype = node.outputs[0].dtype.numpy
            if np.prod([1.0, *dims]) <= MOST_ELEMENTS:
                feeds[f"{node.name}:0"] = np.ones(dims, dtype)
    return feeds


def write_asset_model(folder: Path) -> None:
    """A model whose init operation reads a file that came with it."""
    write_model(folder)
    file = folder / "saved_model.pb"
    model = proto.parse_binary("SavedModel", file.read_bytes())
    graph = Graph()
    with graph.as_default():
        name = graph.placeholder("string", [], name="asset")
        table = apply_op("VarHandleOp", dtype="string", shape=[], shared_name="text", name="text")
        apply_op("AssignVariableOp", table, apply_op("ReadFile", name), name="init")
    meta = model.meta_graphs[0]
    meta.graph_def.node.extend(graph.to_graph_def().node)
    asset = meta.asset_file_def.add()
    asset.tensor_info.name, asset.filename = "asset:0", "words.txt"
    meta.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "init"
    (folder / "assets").mkdir()
    (folder / "assets" / "words.txt").write_text("one\ntwo\n")
    file.write_bytes(model.SerializeToString(deterministic=True))


class SavedModel(Kind):
    """Folders of which one file or more is mutated or gone; an input is the folder as an archive."""

    name, suffix = "savedmodel", ".zip"
    stages = ("load", "call")
    runs = slow = RUNS
    deep = 0.3

    def prepare(self, folders: Sequence[Path]) -> None:
        self.models: list[dict[str, bytes]] = []
        with tempfile.TemporaryDirectory() as place:
            for name, write in (("a", write_model), ("b", write_asset_model)):
                write(Path(place) / name)
                self.models.append(_contents(Path(place) / name))
        found = [file.parent for folder in folders for file in folder.rglob("saved_model.pb")]
        self.models += [_contents(folder) for folder in found]

    def make(self, rng: random.Random) -> bytes:
        model = dict(rng.choice(self.models))
        for _ in range(rng.choice((1, 1, 2))):
            name = "saved_model.pb" if rng.random() < 0.5 else rng.choice(sorted(model))
            if name not in model:
                continue
            if rng.random() < 0.05:
                del model[name]
            elif name == "saved_model.pb" and rng.random() < 0.8:
                model[name] = _other_model(model[name], rng)
            else:
                model[name] = bits.damaged(model[name], rng)
        return _archive(model)

    def attempt(self, data: bytes, deep: bool, stage: Stage) -> None:
        place = Path(tempfile.mkdtemp(dir=os.getcwd()))
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                archive.extractall(place / "model")
            before = _listed(place)
            self._load(place / "model", deep, stage)
            if _listed(place) != before:
                raise DifferenceError(f"files are there that were not: {_listed(place) - before}")
        finally:
            shutil.rmtree(place)

    def _load(self, folder: Path, deep: bool, stage: Stage) -> None:
        stage("load")
        model = load_saved_model(folder, threads=1)
        if deep:
            for call in model.signatures.values():
                stage("call")
                call(**dict.fromkeys(call.inputs, np.ones((1, 3), np.float32)))

    def cuts(self, data: bytes) -> list[list[bytes]]:
        return []


def _other_model(data: bytes, rng: random.Random) -> bytes:
    try:
        message = proto.parse_binary("SavedModel", data)
    except ValueError:
        return bits.damaged(data, rng)
    messages.mutated(message, rng)
    return message.SerializeToString(deterministic=True)


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def _archive(model: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in sorted(model.items()):
            archive.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


def _listed(place: Path) -> set[str]:
    return {str(p) for p in place.rglob("*")}
