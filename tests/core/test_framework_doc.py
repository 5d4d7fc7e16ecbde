"""The code of docs/framework.md runs."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "framework.md"


def test_the_page_runs(tmp_path):
    """In a process of its own, since it declares an op."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    words = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "MatMul" in done.stdout


def test_the_files_it_names_are_there():
    core = PAGE.parents[1] / "src" / "cyxla" / "core"
    names = set(re.findall(r"`((?:framework|graph|runtime)/\w+\.py)`", PAGE.read_text()))
    assert len(names) > 12
    assert [name for name in sorted(names) if not (core / name).is_file()] == []


def test_the_classes_it_draws_are_there():
    source = PAGE.parents[1] / "src" / "cyxla"
    (drawn,) = re.findall(r"^## Classes\n.*?^```\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    names = set(re.findall(r"\b[A-Z][a-z]\w+", re.sub(r"\(.*?\)", "", drawn)))
    folders = [source / "core", source / "tf2xla"]
    text = "".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))
    assert len(names) > 25
    assert names - set(re.findall(r"^class (\w+)", text, re.MULTILINE)) == set()
