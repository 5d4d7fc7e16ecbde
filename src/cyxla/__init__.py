"""cyxla: an array compiler for CPUs that reads like XLA.

`jit` compiles functions written with NumPy; `grad` differentiates them, and `vmap` maps them over an axis. `compile`
turns a program in HLO or StableHLO into an executable that is called with NumPy arrays; `XlaBuilder` builds programs;
`hlo` parses, prints and verifies them. `Session` runs TensorFlow's graphs. Names are imported on first use, so that
``import cyxla`` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyxla.lazy_attributes import lazy_attributes

if TYPE_CHECKING:
    from cyxla import aot, errors, raw_ops
    from cyxla.api import compile
    from cyxla.core.graph.gradients import gradients
    from cyxla.core.graph.graph import Graph
    from cyxla.core.graph.graph_constructor import load_graph
    from cyxla.core.runtime.saved_model import load_saved_model
    from cyxla.core.runtime.session import RunOptions, Session
    from cyxla.core.runtime.step_stats import RunMetadata
    from cyxla.errors import Error, OpError, RecompileWarning
    from cyxla.include_dir import get_include
    from cyxla.numpy import Jitted, TracedArray, disable_jit, jit, random, spec
    from cyxla.numpy.control import (
        associative_scan,
        cond,
        fori_loop,
        hessian,
        jacobian,
        map,
        scan,
        switch,
        vmap,
        while_loop,
    )
    from cyxla.numpy.custom_calls.ckernel import ckernel
    from cyxla.numpy.custom_calls.printing import print
    from cyxla.numpy.custom_calls.registration import custom_call, register_c_call
    from cyxla.numpy.functions import scipy_special as special
    from cyxla.numpy.gradient import checkpoint, custom_vjp, grad, jvp, stop_gradient, value_and_grad, vjp
    from cyxla.types import ElementType, Literal, Shape
    from cyxla.xla import hlo
    from cyxla.xla.client import LocalClient, LocalExecutable
    from cyxla.xla.cpu.native.library import threads
    from cyxla.xla.evaluator import register_custom_call
    from cyxla.xla.feeds import Feeds
    from cyxla.xla.hlo import XlaBuilder, XlaComputation, XlaOp
    from cyxla.xla.service import Executable

__version__ = "0.1.0"

__all__ = [
    "ElementType", "Error", "Executable", "Feeds", "Graph", "Jitted", "Literal", "LocalClient", "LocalExecutable",
    "OpError", "RecompileWarning", "RunMetadata", "RunOptions", "Session", "Shape", "TracedArray", "XlaBuilder",
    "XlaComputation", "XlaOp", "__version__", "aot", "associative_scan", "checkpoint", "ckernel", "compile", "cond",
    "custom_call", "custom_vjp", "disable_jit", "errors", "fori_loop", "get_include", "grad", "gradients", "hessian",
    "hlo", "jacobian", "jit", "jvp", "load_graph", "load_saved_model", "map", "print", "random", "raw_ops",
    "register_c_call", "register_custom_call", "scan", "spec", "special", "stop_gradient", "switch", "threads",
    "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip

_MODULE_OF_NAME = {
    "ElementType": "cyxla.types", "Error": "cyxla.errors", "Executable": "cyxla.xla.service",
    "Feeds": "cyxla.xla.feeds", "Graph": "cyxla.core.graph.graph", "Literal": "cyxla.types",
    "LocalClient": "cyxla.xla.client", "LocalExecutable": "cyxla.xla.client", "OpError": "cyxla.errors",
    "RunMetadata": "cyxla.core.runtime.step_stats", "RunOptions": "cyxla.core.runtime.session",
    "Session": "cyxla.autojit.jit_session",
    "Shape": "cyxla.types", "XlaBuilder": "cyxla.xla.hlo", "XlaComputation": "cyxla.xla.hlo", "XlaOp": "cyxla.xla.hlo",
    **dict.fromkeys(("Jitted", "TracedArray", "disable_jit", "jit", "spec"), "cyxla.numpy"),
    "RecompileWarning": "cyxla.errors", "ckernel": "cyxla.numpy.custom_calls.ckernel",
    "custom_call": "cyxla.numpy.custom_calls.registration", "register_c_call": "cyxla.numpy.custom_calls.registration",
    **dict.fromkeys(
        (
            "associative_scan", "cond", "fori_loop", "hessian", "jacobian", "map", "scan", "switch", "vmap",
            "while_loop",
        ),
        "cyxla.numpy.control",
    ),
    "checkpoint": "cyxla.numpy.gradient", "compile": "cyxla.api", "custom_vjp": "cyxla.numpy.gradient",
    "grad": "cyxla.numpy.gradient", "jvp": "cyxla.numpy.gradient", "stop_gradient": "cyxla.numpy.gradient",
    "value_and_grad": "cyxla.numpy.gradient", "vjp": "cyxla.numpy.gradient",
    "get_include": "cyxla.include_dir", "gradients": "cyxla.core.graph.gradients",
    "print": "cyxla.numpy.custom_calls.printing",
    "load_graph": "cyxla.core.graph.graph_constructor", "load_saved_model": "cyxla.autojit.jit_session",
    "register_custom_call": "cyxla.xla.evaluator",
    "threads": "cyxla.xla.cpu.native.library",
}  # fmt: skip
_MODULES = {
    "aot": "cyxla.aot",
    "errors": "cyxla.errors", "hlo": "cyxla.xla.hlo", "random": "cyxla.numpy.random", "raw_ops": "cyxla.raw_ops",
    "special": "cyxla.numpy.functions.scipy_special",
}  # fmt: skip

__getattr__ = lazy_attributes(__name__, _MODULE_OF_NAME, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
