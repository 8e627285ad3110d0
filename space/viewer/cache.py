"""Keeps what was read last, up to a number of bytes; one reader at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

import numpy as np


class ByteCache:
    """Values by key; the ones that were not asked for the longest go first, the newest always stays.

    One value is made at a time, so that many visitors at once need no more memory than one.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Any], weigh: Callable[[Any], int]) -> Any:
        """The value of ``key``, made now if it is not there; what ``make`` raises is not kept."""
        with self._lock:
            if key not in self._values:
                value = make()
                self._values[key] = (value, weigh(value))
                self._make_room()
            self._values.move_to_end(key)
            return self._values[key][0]

    @property
    def bytes(self) -> int:
        return sum(weight for _, weight in self._values.values())

    def _make_room(self) -> None:
        while len(self._values) > 1 and self.bytes > self._capacity:
            self._values.popitem(last=False)


def size_of(value: Any) -> int:
    """About how many bytes a parsed output takes."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if hasattr(value, "data") and isinstance(value.data, np.ndarray):
        return int(value.data.nbytes)
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(size_of, value)) + 64 * len(value)
    return len(value) if isinstance(value, str | bytes) else 64
