"""Access of graphs to files.

Graphs are programs. A graph built in this process has the rights of the process; a loaded graph is untrusted and can
only access files in the folder of its model, unless its user grants more. The `Env` of kernels checks each path.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from cyxla.errors import InvalidArgumentError, PermissionDeniedError

HINT = "load the model with allow_file_access=True, or give Session(..., allow_file_access=True), if you trust it"


@dataclass(frozen=True)
class FileAccess:
    """Permission to access files.

    Parameters
    ----------
    is_limited : bool
        True if access is restricted.
    folder : str, optional
        Folder whose files are accessible; if restricted without a folder, no file is.
    reason : str
        Explanation of a restriction without a folder, for error messages.
    """

    is_limited: bool = False
    folder: str | None = None
    reason: str = "a graph that was loaded from a file or from bytes has no folder of its own"

    @classmethod
    def inside(cls, folder: str | os.PathLike[str]) -> FileAccess:
        """Return the permission for the files in a folder, symbolic links resolved."""
        return cls(True, os.path.realpath(folder))

    def path(self, path: str, user: str = "") -> str:
        """Check and return a path; with restricted access, symbolic links and ``..`` are resolved.

        Parameters
        ----------
        path : str
            Path given by the program.
        user : str
            Name of the op, for the error message.

        Raises
        ------
        PermissionDeniedError
            The file is outside of the folder.
        InvalidArgumentError
            The path contains a zero byte.
        """
        if "\0" in path:
            raise InvalidArgumentError(f"{path!r} is not a valid path: it contains a zero byte")
        if not self.is_limited:
            return path
        if self.folder is None:
            raise PermissionDeniedError(
                f"{user or 'the graph'} may not access the file '{path}': {self.reason}", hint=HINT
            )
        real = os.path.realpath(path)
        if os.path.commonpath([real, self.folder]) != self.folder:
            target_text = f", which is '{real}'" if real != os.path.abspath(path) else ""
            raise PermissionDeniedError(
                f"{user or 'the graph'} may not access the file '{path}'{target_text}: it lies outside of "
                "the model's folder "
                f"'{self.folder}'",
                hint=HINT,
            )
        return real


UNLIMITED = FileAccess()
NO_FILES = FileAccess(True)
