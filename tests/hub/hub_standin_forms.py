"""What passes between the parts of the stand-in Hub: what was asked, what is answered, what shall go wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass
class Fault:
    """What goes wrong with the next requests that fit."""

    pattern: re.Pattern[str]
    status: int
    times: int
    landed: bool
    headers: dict[str, str]
    cut: int | None


@dataclass
class Asked:
    """One request and its answer."""

    method: str
    path: str
    query: str
    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.status}"


class HubError(Exception):
    """An answer that is an error, with the Hub's own error code."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {"X-Error-Code": code, "X-Error-Message": message, **headers}


@dataclass
class Answer:
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200
