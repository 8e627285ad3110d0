"""One command in the namespaces of a bubblewrap sandbox: its pipes, its end, and what it leaves behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

from runner.sandbox import cgroups

if TYPE_CHECKING:
    from runner.sandbox.bubblewrap import BubblewrapSandbox

CHUNK = 256 * 1024
PIPE_SIZE = 64 * 1024
BURIAL_PATIENCE = 2.0


class Running:
    """A process of the host that waits for a command inside, and the command's control group."""

    def __init__(self, process: subprocess.Popen[bytes], group: cgroups.Cgroup | None) -> None:
        self.process = process
        self.group = group


class BubblewrapCommand:
    """A command in the namespaces; see ``runner.sandbox.supervise.Command``."""

    def __init__(
        self,
        sandbox: BubblewrapSandbox,
        argv: Sequence[str],
        stdin: bytes | None,
        env: Mapping[str, str],
        cwd: str,
    ) -> None:
        self._sandbox = sandbox
        self._mark = sandbox.next_mark()
        self._oom_kills_before = sandbox.oom_kills()
        source = subprocess.DEVNULL if stdin is None else subprocess.PIPE
        self._running = sandbox.run(argv, self._mark, env, cwd, source)
        self._killed = False
        self._unread = PIPE_SIZE
        process = self._running.process
        assert process.stdout is not None
        self._output = process.stdout
        self._input = process.stdin
        self._stdin = memoryview(stdin or b"")
        self._ended = os.pidfd_open(process.pid)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        self._selector.register(self._ended, selectors.EVENT_READ)
        os.set_blocking(self._output.fileno(), False)
        if self._input is not None:
            os.set_blocking(self._input.fileno(), False)
            self._selector.register(self._input, selectors.EVENT_WRITE)

    def read(self, timeout: float) -> bytes | None:
        ready = {key.fileobj for key, _ in self._selector.select(timeout)}
        if self._input is not None and self._input in ready:
            self._write()
        if self._ended in ready:
            return self._last_words()
        if self._output in ready:
            data = self._output.read(CHUNK)
            if data == b"":  # all writers are gone; the process itself may need a moment more
                self._selector.unregister(self._output)
            return data or b""
        return b""

    def _last_words(self) -> bytes | None:
        """What the ended command left in the pipe; no more, for what it left behind may write for ever."""
        data = self._output.read(self._unread) if self._unread else None
        self._unread -= len(data or b"")
        return data or None

    def kill(self) -> None:
        self._killed = True
        self._sandbox.end_call(self._running, self._mark)
        give_up = time.monotonic() + BURIAL_PATIENCE
        while self._running.process.poll() is None:
            # nsenter stops along with its child, and would not see that it is dead
            self._running.process.send_signal(
                signal.SIGCONT if time.monotonic() < give_up else signal.SIGKILL
            )
            time.sleep(0.005)

    def finish(self) -> int:
        self._selector.close()
        os.close(self._ended)
        if self._input is not None:
            with contextlib.suppress(OSError):
                self._input.close()
        code = self._running.process.wait()
        _drain(self._output)
        self._sandbox.forget(self._running)
        code = 128 - code if code < 0 else code
        if code == 137 and not self._killed:
            self._sandbox.raise_if_dead()
        return code

    def ran_out_of_memory(self) -> bool:
        return self._sandbox.oom_kills() > self._oom_kills_before

    def _write(self) -> None:
        assert self._input is not None
        try:
            self._stdin = self._stdin[os.write(self._input.fileno(), self._stdin[:65_536]) :]
        except BlockingIOError:
            return
        except OSError:  # the command does not read
            self._stdin = memoryview(b"")
        if not self._stdin:
            self._selector.unregister(self._input)
            with contextlib.suppress(OSError):
                self._input.close()
            self._input = None


def _drain(output: IO[bytes]) -> None:
    """Let what a command left behind go on writing, into nothing, so that a full or closed pipe does not end it."""

    def read_on() -> None:
        os.set_blocking(output.fileno(), True)
        with output:
            while output.read(CHUNK):
                pass

    os.set_blocking(output.fileno(), False)
    if output.read(CHUNK) == b"":
        output.close()
    else:
        threading.Thread(target=read_on, name="drain", daemon=True).start()
