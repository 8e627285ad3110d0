"""Plain text from people we do not trust."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from evaluator.readers.errors import ReadError
from evaluator.untrusted import read_bytes

MAX_BYTES = 1 << 18
MAX_MARKS = 30
"""Combining marks in a row in stream-safe text (Unicode annex 15); normalising takes the square of their number."""


def read_text(path: Path, *, max_bytes: int = MAX_BYTES) -> str:
    """Read a UTF-8 text.

    Parameters
    ----------
    path : Path
    max_bytes : int
        Cap on the size of the file.

    Returns
    -------
    str
        In NFKC, lines ended by a newline alone. Any language and symbol is accepted.

    Raises
    ------
    ReadError
        Codes: those of `open_regular`, ``byte_order_mark``, ``not_utf8``, ``control_character``,
        ``too_many_marks``.
    """
    text = decode_utf8(read_bytes(path, max_bytes), path.name).replace("\r\n", "\n").replace("\r", "\n")
    for place, char in enumerate(text):
        if char not in "\n\t" and unicodedata.category(char) == "Cc":
            raise ReadError(
                "control_character", f"{path.name} contains U+{ord(char):04X} at character {place}"
            )
    require_few_marks(text, path.name)
    return unicodedata.normalize("NFKC", text)


def require_few_marks(text: str, name: str) -> None:
    """Raise ``too_many_marks`` where more than ``MAX_MARKS`` combining marks follow each other."""
    if text.isascii():
        return
    run = 0
    for place, char in enumerate(text):
        run = run + 1 if unicodedata.combining(char) else 0
        if run > MAX_MARKS:
            raise ReadError(
                "too_many_marks",
                f"{name} has more than {MAX_MARKS} combining marks in a row at character {place}",
            )


def decode_utf8(content: bytes, name: str) -> str:
    """The text of ``content``.

    Raises
    ------
    ReadError
        ``byte_order_mark`` or ``not_utf8``.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ReadError(
            "not_utf8", f"{name} starts with a UTF-16 byte order mark; write UTF-8 without a mark"
        )
    if content.startswith(b"\xef\xbb\xbf"):
        raise ReadError(
            "byte_order_mark", f"{name} starts with a UTF-8 byte order mark; write it without one"
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReadError("not_utf8", f"{name} is not UTF-8 at byte {error.start}") from None
