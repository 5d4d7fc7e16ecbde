"""The code of docs/fused.md runs."""

import re
import subprocess
import sys
from pathlib import Path

from cyxla.autojit.fused_ops.rewrite import FUSED_OPS

PAGE = Path(__file__).parents[2] / "docs" / "fused.md"


def test_the_page_runs(tmp_path):
    """In a process of its own, since it registers a kernel."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    words = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[[0.58 0.21 0.21]")


def test_it_names_every_fused_op():
    assert set(re.findall(r"`(_Fused\w+)`", PAGE.read_text())) == FUSED_OPS


def test_the_files_it_names_are_there():
    source = PAGE.parents[1] / "src" / "cyxla"
    for name in re.findall(r"`((?:core|autojit)/[\w/]+\.py)`", PAGE.read_text()):
        assert (source / name).is_file(), name
