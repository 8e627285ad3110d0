"""A back end by name; CI requires each, elsewhere a missing one is a skip."""

from __future__ import annotations

import os

import pytest

from runner.sandbox import Backend, SandboxUnavailable, choose_backend


def usable(name: str) -> Backend:
    try:
        return choose_backend(name)
    except SandboxUnavailable as reason:
        (pytest.fail if os.environ.get("AUTOMEDBENCH_REQUIRE_SANDBOXES") else pytest.skip)(str(reason))
