"""JSON from people we do not trust: bounded in bytes, items and depth before it is parsed."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn

from evaluator.readers.errors import ReadError
from evaluator.readers.text_file import decode_utf8, require_few_marks
from evaluator.untrusted import MEGABYTE, read_bytes

MAX_BYTES = 8 * MEGABYTE
MAX_ITEMS = 200_000
MAX_DEPTH = 32

# A string without end swallows the rest, so that no start of a string is looked at twice.
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


def read_json(
    path: Path, *, max_bytes: int = MAX_BYTES, max_items: int = MAX_ITEMS, max_depth: int = MAX_DEPTH
) -> Any:
    """Read one JSON value.

    Parameters
    ----------
    path : Path
    max_bytes, max_items, max_depth : int
        Caps on the size of the file, on its values (counted by commas and brackets) and on nesting.

    Returns
    -------
    dict, list, str, int, float, bool or None

    Raises
    ------
    ReadError
        Codes: those of `open_regular`, ``byte_order_mark``, ``not_utf8``, ``too_large``, ``too_deep``,
        ``bad_json``, ``duplicate_key``, ``lone_surrogate``, ``too_many_marks``.
    """
    content = read_bytes(path, max_bytes)
    text = decode_utf8(content, path.name)
    items = sum(map(content.count, (b",", b"[", b"{")))
    if items > max_items:
        raise ReadError(
            "too_large", f"{path.name} has about {items} values, at most {max_items} are accepted"
        )
    _require_depth(text, max_depth, path.name)
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except RecursionError:
        raise ReadError("too_deep", f"{path.name} is nested too deeply") from None
    except ValueError as error:
        raise ReadError("bad_json", f"{path.name} is not JSON: {error}") from None
    except _Refused as error:
        raise ReadError(error.code, f"{path.name} {error}") from None
    _require_characters(value, path.name)
    return value


class _Refused(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Refused("duplicate_key", f"has the key {twice[:40]!r} twice in one object")
    return result


def _constant(name: str) -> NoReturn:
    raise _Refused("bad_json", f"contains {name}, which is not JSON")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _Refused("bad_json", f"contains the number {digits[:20]}, which is too large")
    return value


def _require_depth(text: str, limit: int, name: str) -> None:
    depth = 0
    for match in _STRUCTURE.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            if depth > limit:
                raise ReadError("too_deep", f"{name} is nested deeper than {limit} levels")
        elif mark in "]}":
            depth -= 1


def _require_characters(value: Any, name: str) -> None:
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            raise ReadError("lone_surrogate", f"{name} contains half of a surrogate pair")
        require_few_marks(value, name)
    elif isinstance(value, list):
        for item in value:
            _require_characters(item, name)
    elif isinstance(value, dict):
        for key, item in value.items():
            _require_characters(key, name)
            _require_characters(item, name)
