"""Standard streams that can be relied on: open, and able to print any file name."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper


def make_whole() -> None:
    """Put the null device where a standard stream was closed, so that no file of a run gets its number.

    Names of files need not be valid text; what is not is printed as escapes.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            with suppress(OSError):
                stream.reconfigure(errors="backslashreplace")
