"""Errors of checks at run time, as texts that C completes by a number."""

from __future__ import annotations

import os
from typing import Any, Final, NamedTuple

from cyxla.errors import OpError

_SHIFT: Final = 31  # bits of the second number, where two share one
_FIRST, _SECOND = 1234567, 7654321
_CODES: Final = {IndexError: 11, ZeroDivisionError: 3, ValueError: 3, OverflowError: 11, FloatingPointError: 3}


class Check(NamedTuple):
    """Error of a check.

    Attributes
    ----------
    code : int
        TensorFlow's canonical code.
    text : str
        Message, in which ``%n`` stands for the number, ``%h`` and ``%l`` for the two that it holds, ``%%`` for a per
        cent sign.
    kind: str
        Class of the exception in Python, a built-in one.
    """

    code: int
    text: str
    kind: str = "ValueError"


def check_of(check: Any) -> Check:
    """Return the check of a traced function; its message is taken from errors made of numbers that are easy to find."""
    for number, marks in (
        ((_FIRST << _SHIFT) + _SECOND, {_FIRST: "%h", _SECOND: "%l"}),
        (_FIRST, {_FIRST: "%n"}),
    ):
        error = check.make_error(number)
        code, text = _describe(error, check.where)
        text = text.replace("%", "%%")
        if all(str(value) in text for value in marks):
            for value, mark in marks.items():
                text = text.replace(str(value), mark)
            return Check(code, text, _class_of(error))
    error = check.make_error(0)
    code, text = _describe(error, check.where)
    return Check(code, text.replace("%", "%%"), _class_of(error))


def _class_of(error: Exception) -> str:
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


def _describe(error: Exception, where: str) -> tuple[int, str]:
    if isinstance(error, OpError):
        code, text, where = error.number, error.message, error.where or where
    else:
        code = next((c for kind, c in _CODES.items() if isinstance(error, kind)), 3)
        text = str(error).partition("\n")[0]
    return code, f"{text} ({os.path.basename(where)})" if where else text
