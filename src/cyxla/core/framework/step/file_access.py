"""Files that the nodes of a graph may touch.

Graphs are programs. One that is built here may do what its author may; one that is loaded comes from somebody else, and
reaches only the files in its model's folder unless its user says otherwise. Kernels ask `OpKernelContext.file_path` for
the path of each file before they touch it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from cyxla.errors import InvalidArgumentError, PermissionDeniedError

HINT = "load the model with allow_file_access=True, or give Session(..., allow_file_access=True), if you trust it"


@dataclass(frozen=True)
class FileAccess:
    """Permission to touch files.

    Parameters
    ----------
    is_limited : bool
        Whether there is any limit.
    folder : str, optional
        The one folder whose files may be touched; none if there is a limit but no folder.
    """

    is_limited: bool = False
    folder: str | None = None

    @classmethod
    def inside(cls, folder: str | os.PathLike[str]) -> FileAccess:
        """Permission for the files in a folder, wherever it really lies."""
        return cls(True, os.path.realpath(folder))

    def path(self, path: str, what: str = "") -> str:
        """The path of a file that may be touched, symbolic links and ``..`` resolved where there is a limit.

        Parameters
        ----------
        path : str
            As the program gives it.
        what : str
            Who wants to touch it, for the message.

        Raises
        ------
        PermissionDeniedError
            The file lies outside of the folder.
        InvalidArgumentError
            The path holds a zero byte.
        """
        if "\0" in path:
            raise InvalidArgumentError(f"{path!r} is no path: it holds a zero byte")
        if not self.is_limited:
            return path
        if self.folder is None:
            raise PermissionDeniedError(
                f"{what or 'the graph'} may not touch the file '{path}': a graph that was loaded from a file or from "
                "bytes has no folder of its own",
                hint=HINT,
            )
        real = os.path.realpath(path)
        if os.path.commonpath([real, self.folder]) != self.folder:
            to = f", which is '{real}'" if real != os.path.abspath(path) else ""
            raise PermissionDeniedError(
                f"{what or 'the graph'} may not touch the file '{path}'{to}: it lies outside of the model's folder "
                f"'{self.folder}'",
                hint=HINT,
            )
        return real


UNLIMITED = FileAccess()
NO_FILES = FileAccess(True)
