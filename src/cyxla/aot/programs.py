"""Programs to compile ahead of time, from functions, graphs, HLO and StableHLO."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cyxla.aot.config import Config
from cyxla.aot.functions import of_function
from cyxla.aot.graphs import of_graph, of_signature
from cyxla.aot.modules import bound, of_module
from cyxla.aot.program import NamedArray, Program, checked_name, identifier, is_function_name
from cyxla.core.graph.graph import Graph
from cyxla.core.graph.graph_constructor import load_graph
from cyxla.errors import InvalidArgumentError
from cyxla.numpy.calls.specs import is_pair, spec
from cyxla.xla.client import read_program
from cyxla.xla.client.program import read_with_specs
from cyxla.xla.hlo import HloModule
from cyxla.xla.service import CompileOptions

__all__ = ["NamedArray", "Program", "program"]


def program(
    obj: Any,
    *specs: Any,
    name: str | None = None,
    bind: Mapping[int | str, Any] | None = None,
    config: Config | str | None = None,
    variables: Mapping[str, Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    signature: str | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    **options: Any,
) -> Program:
    """Return the program of an object.

    Parameters
    ----------
    obj : callable, str, bytes, path, HloModule, XlaComputation or Graph
        Function written with NumPy, jitted or not; HLO or StableHLO text, a serialised proto, or a file of either;
        with a config, a graph, or a path or bytes of a GraphDef; the folder of a SavedModel.
    *specs
        Shapes and dtypes of the arguments, as of `cyxla.compile`.
    name : str, optional
        Identifier in C; by default one made of the program's name.
    bind : mapping of (int or str) to array, optional
        Arguments that become part of the library, by number or name.
    config : Config or str, optional
        Arguments and results of a graph, in Python or as the text of ``tf2xla.Config``.
    variables : mapping of str to array, optional
        Values of variables of a graph, which become part of the library.
    checkpoint : path, optional
        Prefix of a checkpoint with values of further variables.
    signature : str, optional
        Signature of a SavedModel; by default "serving_default".
    shapes : mapping of str to sizes, optional
        Sizes of the inputs of a signature that the model leaves open.
    **options
        Fields of `cyxla.xla.service.CompileOptions`; for functions also the options of `cyxla.jit`.

    Raises
    ------
    InvalidArgumentError
        The name is not an identifier of C, or an argument that is bound does not exist or has another type.
    UnimplementedError
        The program has tokens among its arguments or results.
    """
    if isinstance(obj, Program):
        made = obj
    elif config is not None:
        made = _of_graph(obj, config, variables, checkpoint, CompileOptions.of({**options, "donate": ()}))
    elif isinstance(obj, os.PathLike) and Path(obj).is_dir():
        compiled = CompileOptions.of({**options, "donate": ()})
        made = of_signature(obj, signature or "serving_default", shapes=shapes, options=compiled)
    elif isinstance(obj, Graph):
        raise InvalidArgumentError("a graph needs config=, which names its arguments and results")
    elif callable(obj):
        made = of_function(obj, specs, options)
    else:
        made = of_module(_read(obj, specs), CompileOptions.of({**options, "donate": ()}))
    if name is not None or not is_function_name(made.name):
        made = replace(made, name=identifier(made.name) if name is None else checked_name(name))
    return bound(made, bind) if bind else made


def _of_graph(obj: Any, config: Config | str, variables: Any, checkpoint: Any, options: CompileOptions) -> Program:
    graph = obj if isinstance(obj, Graph) else load_graph(obj)
    parsed = Config.parse(config) if isinstance(config, str) else config
    return of_graph(graph, parsed, variables=variables, checkpoint=checkpoint, options=options)


def _read(obj: Any, specs: Sequence[Any]) -> HloModule:
    if isinstance(obj, os.PathLike):
        data = Path(obj).read_bytes()
        obj = data if Path(obj).suffix == ".pb" else data.decode()
    if not specs:
        return read_program(obj)
    return read_with_specs(obj, [spec(*s) if is_pair(s) else s for s in specs])
