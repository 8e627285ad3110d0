"""Signals that ask the process to end: the sandbox is stopped and the files are whole before it does."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

CLEAN_UP_SECONDS = 2.0
"""Signals that come this soon after the first are taken for its repetition; a later one ends the process at once,
and what it leaves ends by itself or is reaped by the next run.
"""


class Stopped(BaseException):
    """The process was asked to end. Not an Exception, so that nothing on its way takes it for an error of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class _Listener:
    def __init__(self) -> None:
        self.first: float | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = now
            raise Stopped(number)
        if now - self.first > CLEAN_UP_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def listen() -> None:
    """Raise :class:`Stopped` in the main thread at the first of ``SIGNALS``; ignored ones stay ignored."""
    listener = _Listener()
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, listener)
