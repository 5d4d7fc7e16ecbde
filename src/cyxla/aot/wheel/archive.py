"""The archive of a wheel: its files, its description, the list of their digests."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Final

from cyxla.errors import InvalidArgumentError

_VERSION: Final = re.compile(r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?")
_TIME: Final = (1980, 1, 1, 0, 0, 0)  # the same for equal files
_STORED_FROM: Final = 1 << 22  # bytes from which a file is not compressed: weights hardly shrink


def checked_version(version: str) -> str:
    """Return a version that package installers accept.

    Raises
    ------
    InvalidArgumentError
        They would not.
    """
    if not _VERSION.fullmatch(version):
        raise InvalidArgumentError(f"version={version!r}", hint="give one such as 1.0, 2.1.3rc1 or 1.0+local")
    return version


def archive(
    name: str, version: str, tag: str, files: Mapping[str, bytes], *, summary: str, requires: Sequence[str],
    requires_python: str,
) -> tuple[str, bytes]:  # fmt: skip
    """Return the name and the bytes of a wheel; equal files give equal bytes.

    Parameters
    ----------
    name, version : str
        Name of the package, which is also that of the distribution, and its version.
    tag : str
        Tags of Python, its binary interface, and the platform.
    files : mapping of str to bytes
        Files by path.
    summary : str
        A line about the package.
    requires : sequence of str
        Packages that it needs.
    requires_python : str
        Versions of Python.
    """
    folder = f"{name}-{version}.dist-info"
    whole = {
        **dict(sorted(files.items())),
        f"{folder}/METADATA": _metadata(name, version, summary, requires, requires_python).encode(),
        f"{folder}/WHEEL": f"Wheel-Version: 1.0\nGenerator: cyxla\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    }
    whole[f"{folder}/RECORD"] = _record(whole, f"{folder}/RECORD").encode()
    return f"{name}-{version}-{tag}.whl", _zip(whole)


def _metadata(name: str, version: str, summary: str, requires: Sequence[str], requires_python: str) -> str:
    lines = [
        "Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {summary}",
        f"Requires-Python: {requires_python}", *[f"Requires-Dist: {r}" for r in requires],
        "Classifier: Operating System :: POSIX :: Linux", "Classifier: Typing :: Typed",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _record(files: Mapping[str, bytes], own: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        writer.writerow((path, f"sha256={digest}", len(content)))
    writer.writerow((own, "", ""))
    return text.getvalue()


def _zip(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for path, content in files.items():
            info = zipfile.ZipInfo(path, _TIME)
            info.create_system = 3  # Unix, whose permissions follow
            info.external_attr = (0o100755 if path.endswith(".so") else 0o100644) << 16
            info.compress_type = zipfile.ZIP_STORED if len(content) >= _STORED_FROM else zipfile.ZIP_DEFLATED
            target.writestr(info, content, compresslevel=6)
    return buffer.getvalue()
