"""Log of the checks that fail in kernels."""

from __future__ import annotations

import logging
import sys

from cyxla.errors import OpError

LOG = logging.getLogger("cyxla.op_kernel")


def caller_line(depth: int) -> str:
    """Return ``file.py:line`` of a calling function, `depth` levels above the caller."""
    frame = sys._getframe(depth + 1)
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"


def log_failure(error: BaseException, line: str, *, warning: bool) -> None:
    """Log a failed check: as a warning, or for debugging only."""
    level = logging.WARNING if warning else logging.DEBUG
    code = error.code if isinstance(error, OpError) else type(error).__name__
    LOG.log(level, "OP_REQUIRES failed at %s : %s: %s", line, code, getattr(error, "message", error))
