"""Plain text from people we do not trust."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from evaluator.readers.errors import ReadError
from evaluator.readers.files import decode_utf8, read_bytes

MAX_BYTES = 1 << 18


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
        Codes: those of `open_regular`, ``byte_order_mark``, ``not_utf8``, ``control_character``.
    """
    text = decode_utf8(read_bytes(path, max_bytes), path.name).replace("\r\n", "\n").replace("\r", "\n")
    for place, char in enumerate(text):
        if char not in "\n\t" and unicodedata.category(char) == "Cc":
            raise ReadError(
                "control_character", f"{path.name} contains U+{ord(char):04X} at character {place}"
            )
    return unicodedata.normalize("NFKC", text)
