"""Keep the first and the last bytes of an output of any length in constant memory."""

from __future__ import annotations

from runner.sandbox.base import OUTPUT_HEAD, OUTPUT_TAIL


class BoundedOutput:
    """Head and tail of a byte stream; what lies between is counted and dropped."""

    def __init__(self, head: int = OUTPUT_HEAD, tail: int = OUTPUT_TAIL) -> None:
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._head_limit - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:][-self._tail_limit :]
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    def finish(self) -> tuple[bytes, int]:
        """The kept bytes, with a marker line where bytes were dropped, and how many were.

        Both cuts fall between UTF-8 characters where the bytes are UTF-8.
        """
        tail = bytes(self._tail[-self._tail_limit :])
        if self.total == len(self._head) + len(tail):
            return bytes(self._head) + tail, 0
        head = _without_cut_character(bytes(self._head))
        tail = _from_character_start(tail)
        dropped = self.total - len(head) - len(tail)
        return head + b"\n[... %d bytes dropped ...]\n" % dropped + tail, dropped


def _without_cut_character(data: bytes) -> bytes:
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return data
        if byte >= 0xC0:
            width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data if back >= width else data[:-back]
    return data


def _from_character_start(data: bytes) -> bytes:
    for skip in range(min(4, len(data))):
        if data[skip] & 0xC0 != 0x80:
            return data[skip:]
    return data
