"""Location of the C headers, in an installed package and in a source tree."""

from functools import cache
from pathlib import Path


@cache
def get_include() -> str:
    """Return the directory to pass to a C compiler as ``-I``, for ``#include "cyxla/abi.h"``.

    Examples
    --------
    >>> (Path(get_include()) / "cyxla" / "abi.h").is_file()
    True
    """
    package = Path(__file__).resolve().parent
    installed = package / "include"
    return str(installed if installed.is_dir() else package.parent.parent / "include")
