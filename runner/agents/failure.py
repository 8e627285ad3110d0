"""What a request to a provider ends in when there is no usable reply."""

from __future__ import annotations

from typing import Literal

FailureKind = Literal["retry", "fatal", "too_long"]


class Failure(Exception):
    """A request without a usable reply. ``retry_after`` is what the provider asked for, in seconds."""

    def __init__(
        self, kind: FailureKind, message: str, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.status = status
        self.retry_after = retry_after
