"""Wheels need the headers of Python, which some systems have in a package of their own."""

import sysconfig
from pathlib import Path

collect_ignore_glob = [] if Path(sysconfig.get_path("include"), "Python.h").is_file() else ["test_*.py"]
