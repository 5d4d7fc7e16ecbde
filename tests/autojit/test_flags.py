"""TF_XLA_FLAGS."""

import os
import subprocess
import sys

import pytest

from cyxla.autojit.flags import NO_LIMIT, Flags, current, described, flags, parse
from cyxla.errors import InvalidArgumentError

READ = [
    ("", {}),
    ("--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit", {"tf_xla_auto_jit": 2, "tf_xla_cpu_global_jit": True}),
    ("--tf_xla_auto_jit=single-gpu(1)", {"tf_xla_auto_jit": 1}),
    ("--tf_xla_cpu_global_jit=false", {"tf_xla_cpu_global_jit": False}),
    ("--tf_xla_ops_to_cluster=FUSIBLE,MatMul", {"tf_xla_ops_to_cluster": ("FUSIBLE", "MatMul")}),
    ("--tf_xla_clustering_fuel=7  --tf_xla_max_cluster_size=9",
     {"tf_xla_clustering_fuel": 7, "tf_xla_max_cluster_size": 9}),
    ("--tf_introduce_floating_point_jitter_amount=0.5", {"tf_introduce_floating_point_jitter_amount": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize("text, values", READ)
def test_flags_are_read(text, values):
    """Every flag is accepted."""
    assert parse(text) == Flags(**values)


@pytest.mark.parametrize("name", described())
def test_every_flag_is_accepted(name):
    value = getattr(Flags(), name)
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    assert parse(f"--{name}={text}") == Flags()


def test_defaults():
    assert (Flags().tf_xla_auto_jit, Flags().tf_xla_min_cluster_size, Flags().tf_xla_max_cluster_size) == (
        0,
        4,
        NO_LIMIT,
    )


@pytest.mark.parametrize("text, word", [
    ("--tf_xla_auto_jitt=1", "tf_xla_auto_jit?"), ("tf_xla_auto_jit=1", "unknown flag"), ("--tf_xla_auto_jit=x", "'x'"),
    ("--tf_xla_cpu_global_jit=maybe", "true or false"),
])  # fmt: skip
def test_wrong_flags_are_named(text, word):
    with pytest.raises(InvalidArgumentError, match=word):
        parse(text)


def test_an_unknown_flag_stops_the_process():
    """With its name."""
    code = "import cyxla; g = cyxla.Graph(); cyxla.Session(g).run(g.constant(1.0))"
    env = os.environ | {"TF_XLA_FLAGS": "--tf_xla_no_such_flag"}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "tf_xla_no_such_flag" in run.stderr


def test_flags_for_a_while():
    before = current()
    with flags("--tf_xla_auto_jit=1", tf_xla_min_cluster_size=2):
        assert (current().tf_xla_auto_jit, current().tf_xla_min_cluster_size) == (1, 2)
    assert current() == before
