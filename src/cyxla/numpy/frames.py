"""What the program being traced is doing right now, from its frame."""

from __future__ import annotations

import dis

from cyxla.numpy.trace import user_frame

_INPLACE = "="


def is_augmented_assignment() -> bool:
    """Whether the user's line is in the middle of ``a += b`` or its like, rather than of a call."""
    frame = user_frame()
    if frame is None or frame.f_lasti < 0:
        return False
    at = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
    return at is not None and at.opname == "BINARY_OP" and at.argrepr.endswith(_INPLACE)
