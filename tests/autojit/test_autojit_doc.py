"""The code of docs/autojit.md runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cyxla.autojit import devices
from cyxla.autojit import pass_table as passes
from cyxla.autojit.runtime import device_compiler, xla_ops

PAGE = Path(__file__).parents[2] / "docs" / "autojit.md"
HOMES = {"devices": devices, "device_compiler": device_compiler, "xla_ops": xla_ops}


def test_the_page_runs(tmp_path):
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    words = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "cluster_0" in done.stdout


@pytest.mark.parametrize("name", re.findall(r"^\| \w+ \| `([\w.]+)` \|", PAGE.read_text(), re.MULTILINE))
def test_names_of_the_call_chain(name):
    home, *rest = name.split(".")
    found = HOMES[home]
    for part in rest:
        found = getattr(found, part)
    assert found.__doc__


def test_all_phases_are_there():
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", PAGE.read_text(), re.MULTILINE)
    known = [(str(row[1]), row[2].removesuffix("Pass")) for row in passes._PASSES if row[0] == passes._REWRITE]
    assert rows == known
