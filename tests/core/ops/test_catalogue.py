"""Every op is declared as in TensorFlow, and has a shape function."""

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.graphs.kernel_names import ops_with_kernels
from support.interrupts import lines_run

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry
from cyxla.tools.main import main

DATA = Path(__file__).parents[2] / "data" / "op_facts.json.xz"
FACTS = json.loads(lzma.decompress(DATA.read_bytes()))
NAMES = [facts["name"] for facts in FACTS]
FLAGS = ("is_commutative", "is_aggregate", "is_stateful", "allows_uninitialized_input")


def plain(value):
    """A value as the facts spell it."""
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    if isinstance(value, DataType):
        return value.numpy_name
    if isinstance(value, TensorShape):
        return {"unknown_rank": True} if value.dims is None else list(value.dims)
    return float(str(np.float32(value))) if isinstance(value, float) else value


def arg_facts(arg):
    facts = {key: getattr(arg, key) for key in ("name", "type_attr", "number_attr", "type_list_attr", "is_ref")}
    facts["type"] = arg.type.numpy_name if arg.type else ""
    return {key: value for key, value in facts.items() if value}


def attr_facts(attr):
    facts = {"name": attr.name, "type": attr.type}
    if attr.default is not None:
        facts["default"] = plain(attr.default.value)
    if attr.minimum is not None:
        facts["minimum"] = attr.minimum
    return facts | ({} if attr.allowed is None else {"allowed": plain(attr.allowed)})


def facts_of(op_def):
    facts = {
        "name": op_def.name,
        "inputs": [arg_facts(a) for a in op_def.input_arg],
        "outputs": [arg_facts(a) for a in op_def.output_arg],
        "attrs": [attr_facts(a) for a in op_def.attr],
        "deprecated_since_version": op_def.deprecation and op_def.deprecation.version,
        **{flag: getattr(op_def, flag) for flag in FLAGS},
    }
    return {key: value for key, value in facts.items() if value not in (False, None, [])}


@pytest.mark.parametrize("facts", FACTS, ids=lambda f: f["name"])
def test_declaration_equals_the_facts_field_by_field(facts):
    """Types, attributes with defaults, minima and allowed values, flags."""
    assert facts_of(OpRegistry.global_().look_up_op_def(facts["name"])) == facts


def test_the_facts_are_all_there():
    assert len(set(NAMES)) == 737


def test_commutative_ops_are_those_of_tensorflow():
    """Commutative ops."""
    swappable = {d.name for d in OpRegistry.global_().get_registered_ops() if d.is_commutative}
    assert {"AddV2", "Mul", "AddN", "Equal", "LogicalAnd"} <= swappable
    assert not {"Add", "Sub", "MatMul", "Maximum"} & swappable


def test_aggregate_ops_are_those_of_tensorflow():
    """Which may be added on each device first."""
    assert {d.name for d in OpRegistry.global_().get_registered_ops() if d.is_aggregate} == {
        "AddN", "AddV2", "AccumulateNV2",
    }  # fmt: skip


WITHOUT_KERNELS = {"CudnnRNN", "CudnnRNNV3", "XlaClusterOutput", "XlaHostCompute", "XlaLaunchV2"}
OF_CLUSTERS = {"XlaLaunch", "_XlaCompile", "_XlaMerge", "_XlaRun"}  # created when a session first forms clusters


def test_all_ops_have_kernels_but_those_that_the_page_names():
    compiled = set(XlaOpRegistry.global_().get_all_registered_ops())
    assert set(NAMES) - ops_with_kernels() - compiled - OF_CLUSTERS == WITHOUT_KERNELS
    page = (Path(__file__).parents[3] / "docs" / "framework.md").read_text().partition("\n## Limits\n")[2]
    assert {name for name in WITHOUT_KERNELS if f"`{name}`" not in page} == set()


def test_every_op_has_a_shape_function():
    """The registered data hold them."""
    data = {d.op_def.name: d for d in OpRegistry.global_().get_op_registration_data()}
    assert [name for name in NAMES if data[name].shape_inference_fn is None] == []


def test_every_op_is_documented():
    registry = OpRegistry.global_()
    assert [name for name in NAMES if not registry.look_up_op_def(name).summary.endswith(".")] == []
    product = registry.look_up_op_def("MatMul")
    assert (product.summary, "transposed" in product.description) == ("Multiply two matrices.", True)


PROBE = """
import sys
import cyxla
from support.interrupts import lines_run
assert not any(name.startswith("cyxla.core.ops") for name in sys.modules)
from cyxla.core.framework.declarations.op import OpRegistry
import cyxla.core.framework.shape_fns.common
print(lines_run(OpRegistry.global_().look_up, "Abs"))
"""


def test_the_catalogue_registers_with_little_work_and_only_when_asked():
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert int(subprocess.check_output([sys.executable, "-c", PROBE], env=env)) < 450_000


def test_looking_up_costs_little():
    registry = OpRegistry.global_()
    registry.look_up("Abs")
    assert lines_run(registry.look_up, "MatMul") < 20


def test_description_is_shown_on_the_command_line(capsys):
    assert main(["op", "MatMul"]) == 0
    shown = capsys.readouterr().out
    assert "Multiply two matrices." in shown
    assert "may be transposed first" in shown
