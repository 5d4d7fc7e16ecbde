"""The code of docs/tf2xla.md runs."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tf2xla.md"


def test_the_page_runs(tmp_path):
    """Node, operations of the builder, HLO, C. In a process of its own, since it registers kernels."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    words = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert 'metadata={op_type="Conv2D" op_name="conv"}' in done.stdout
    assert "/* convolution -> f32[1,8,8,4] */" in done.stdout


def test_the_files_it_names_are_there():
    source = PAGE.parents[1] / "src" / "cyxla"
    names = set(re.findall(r"`((?:core|tf2xla|autojit|xla)/[\w/]+\.py)`", PAGE.read_text()))
    assert len(names) > 12
    assert [name for name in sorted(names) if not (source / name).is_file()] == []
