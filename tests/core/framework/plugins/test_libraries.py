"""Libraries of version 2 that are refused, and tables with rows of other sizes."""

from __future__ import annotations

import ctypes

import pytest
from support.builds.plugins import compile_strictly
from support.graphs.probes import Registries

from cyxla.core.framework import OpRegistry
from cyxla.core.framework.load_library import load_op_library
from cyxla.core.framework.plugins.interface import Op, rows
from cyxla.core.framework.plugins.xla_kernels import XLA_KERNELS
from cyxla.errors import AlreadyExistsError, InvalidArgumentError

SOURCE = """
#include "cyxla/kernel_plugin.h"
CYXLA_KERNEL_STAMP
int32_t f(cyxla_context *c);
int32_t f(cyxla_context *c) {{ return c ? 0 : 1; }}
void g(cyxla_context *c, cyxla_done done);
void g(cyxla_context *c, cyxla_done done) {{ done(c, 0); }}
static const cyxla_op ops[] = {{{{.name = "RefusedOp", .signature = "x: float -> y: float", {op}}}}};
static const cyxla_kernel kernels[] = {{{{.op = "RefusedOp", .device = "CPU", .compute = f, {kernel}}}}};
static const cyxla_xla_kernel xla[] = {{{{.op = "RefusedOp", .emit = f}}, {{.op = "{second}", .emit = f}}}};
CYXLA_KERNEL_PLUGIN(ops, 1, kernels, 1, xla, {count})
"""
DEFAULTS = {"op": ".doc = NULL", "kernel": ".label = NULL", "second": "Other", "count": 0}
REFUSED = [
    ({"kernel": ".compute_async = g"}, InvalidArgumentError, "needs one of compute and compute_async, and not both"),
    ({"op": ".flags = 64"}, InvalidArgumentError, "op RefusedOp has unknown flags: 0x40"),
    ({"op": '.attrs = "n: nonsense"'}, InvalidArgumentError, "nonsense"),
    ({"kernel": '.types = "T=nonsense"'}, InvalidArgumentError, "nonsense"),
    ({"second": "RefusedOp", "count": 2}, AlreadyExistsError, "already has an XLA kernel"),
]


def build(folder, **parts):
    path = folder / "refused.c"
    path.write_text(SOURCE.format(**(DEFAULTS | parts)))
    compile_strictly("c", "-shared", "-fPIC", path, "-o", folder / "librefused.so")
    return folder / "librefused.so"


@pytest.mark.parametrize("parts, error, message", REFUSED, ids=[r[2] for r in REFUSED])
def test_refused_libraries_leave_nothing(tmp_path, parts, error, message):
    with pytest.raises(error, match=message):
        load_op_library(build(tmp_path, **parts))
    assert "RefusedOp" not in OpRegistry.global_()
    assert all(row.op != "RefusedOp" for row in XLA_KERNELS.pending)


def test_registries_of_ones_own_get_no_xla_kernels(tmp_path):
    world = Registries()
    load_op_library(build(tmp_path, count=1), ops=world.ops, kernels=world.kernels)
    assert "RefusedOp" in world.ops
    assert all(row.op != "RefusedOp" for row in XLA_KERNELS.pending)


class Longer(ctypes.Structure):
    """A row of a later version."""

    _fields_ = (*Op._fields_, ("later", ctypes.c_int64))


class Shorter(ctypes.Structure):
    """A row of an earlier version."""

    _fields_ = Op._fields_[:2]


@pytest.mark.parametrize("kind", [Longer, Op, Shorter])
def test_rows_of_other_versions(kind):
    table = (kind * 2)(*(kind(name, signature) for name, signature in ((b"A", b"->"), (b"B", b"-> x: float"))))
    found = rows(Op, ctypes.addressof(table), ctypes.sizeof(kind), 2)
    assert [(row.name, row.signature, row.attrs, row.flags) for row in found] == [
        (b"A", b"->", None, 0),
        (b"B", b"-> x: float", None, 0),
    ]
