"""The driver's end of the line to its workers: leave to ask a provider, budgets, and what each cell is doing.

A worker sends one JSON object and, for ``admit`` alone, waits for one back. When a line breaks, whatever its worker
had under way comes back, and what was reserved for it counts as spent: nobody knows whether it was answered.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, Listener
from typing import Any

from evaluator.trace import Usage
from runner.sweep.budget import Purses
from runner.sweep.engine import Address, Line
from runner.sweep.form import ProviderRates
from runner.sweep.rates import Rates
from runner.sweep.requests import RequestLog

LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class _Request:
    """A request that was let through."""

    provider: str
    agent: str
    usd: float | None
    tokens: int
    sent_at: float
    attempt: str


class Broker:
    """Serves every worker that knows the line.

    Parameters
    ----------
    purses : Purses
        What may be spent.
    allowed : callable
        What a provider allows, by its host.
    address : str or (str, int), optional
        Where to listen; a socket of this machine's own choosing otherwise.
    clock : callable
        Seconds, monotonic.
    log_of : callable, optional
        Where requests of an attempt are noted here too, because its folder lies on another machine that may be lost.
    """

    def __init__(
        self,
        purses: Purses,
        allowed: Callable[[str], ProviderRates],
        address: Address | None = None,
        clock: Callable[[], float] = time.monotonic,
        log_of: Callable[[str], RequestLog] | None = None,
    ) -> None:
        self.purses = purses
        self._allowed = allowed
        self._clock = clock
        self._log_of = log_of
        self._rates: dict[str, Rates] = {}
        self._moved = threading.Condition()
        self._progress: dict[str, dict[str, Any]] = {}
        secret = secrets.token_bytes(24)
        family = "AF_INET" if isinstance(address, tuple) else "AF_UNIX"
        self._listener = Listener(address, family, backlog=64, authkey=secret)
        self.line = Line(self._listener.address, secret)
        self._closed = False
        threading.Thread(target=self._accept, name="broker", daemon=True).start()

    def progress(self) -> dict[str, dict[str, Any]]:
        """What each running attempt last said of itself, by attempt id."""
        with self._moved:
            return dict(self._progress)

    def rates(self) -> dict[str, Rates]:
        with self._moved:
            return dict(self._rates)

    def forget(self, attempt: str) -> None:
        """An attempt has ended."""
        with self._moved:
            self._progress.pop(attempt, None)

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.close()
        with self._moved:
            self._moved.notify_all()

    # --- one thread for each line ---------------------------------------------------------------------------

    def _accept(self) -> None:
        while not self._closed:
            try:
                line = self._listener.accept()
            except Exception:  # a stranger without the secret, or the end
                time.sleep(0 if self._closed else 0.05)
                continue
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: Connection) -> None:
        under_way: dict[str, _Request] = {}
        try:
            while not self._closed:
                message = json.loads(line.recv_bytes())
                if message["op"] == "admit":
                    line.send_bytes(json.dumps(self._admit(message, under_way)).encode())
                else:
                    self._note(message, under_way)
        except (OSError, EOFError):
            pass
        finally:
            with self._moved:
                for request in under_way.values():
                    self._rates[request.provider].failed(request.tokens)
                    self._unseen(request)
                self._moved.notify_all()
            line.close()

    def _note(self, message: dict[str, Any], under_way: dict[str, _Request]) -> None:
        with self._moved:
            if message["op"] == "progress":
                self._progress[message["attempt"]] = message["state"]
            elif (request := under_way.pop(message["id"], None)) is not None:
                getattr(self, f"_{message['op']}")(request, message)
                self._moved.notify_all()

    def _admit(self, message: dict[str, Any], under_way: dict[str, _Request]) -> dict[str, Any]:
        provider, agent = message["provider"], message["agent"]
        usd, tokens = message["usd"], message["tokens"]
        give_up = self._clock() + message["patience"]
        with self._moved:
            rates = self._rates.get(provider)
            if rates is None:
                rates = self._rates[provider] = Rates(self._allowed(provider), self._clock)
            while True:
                answer, words = self.purses.may_take(agent, usd, tokens)
                if answer == "no":
                    return {"spent": words}
                wait = rates.wait() if answer == "yes" else float("inf")
                if wait <= 0:
                    break
                left = give_up - self._clock()
                if left <= 0 or self._closed:
                    return {"late": True}
                self._moved.wait(min(wait, left, LOOK_SECONDS))
            self.purses.reserve(agent, usd, tokens)
            request = _Request(provider, agent, usd, tokens, rates.sent(tokens), message["attempt"])
            under_way[message["id"]] = request
        if self._log_of is not None:
            self._log_of(request.attempt).sending(message["id"], provider, Usage(input=tokens), usd)
        return {"sent": True}

    # --- how a request ended; the lock is held --------------------------------------------------------------

    def _paid(self, request: _Request, message: dict[str, Any]) -> None:
        usage = Usage.model_validate(message["usage"])
        tokens = usage.input + usage.output
        self._rates[request.provider].answered(request.sent_at, request.tokens, tokens)
        self.purses.release(request.agent, request.usd, request.tokens)
        self.purses.pay(request.agent, message["usd"], tokens)
        if self._log_of is not None:
            self._log_of(request.attempt).paid(message["id"], usage, message["usd"])

    def _failed(self, request: _Request, message: dict[str, Any]) -> None:
        rates = self._rates[request.provider]
        if message["status"] == 429:
            rates.throttled(request.sent_at, request.tokens, message["retry_after"])
        else:
            rates.failed(request.tokens)
        if message["status"] is None:
            self._unseen(request)
        else:
            if self._log_of is not None:
                self._log_of(request.attempt).refused(message["id"], message["status"])
            self.purses.release(request.agent, request.usd, request.tokens)

    def _unseen(self, request: _Request) -> None:
        self.purses.release(request.agent, request.usd, request.tokens)
        self.purses.pay(request.agent, request.usd, request.tokens)


def own_address() -> str:
    """The address under which other machines of the network reach this one; loopback where there is no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 9))  # nothing is sent: the kernel only picks the way
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
