# ruff: noqa: E501 - attempts stand as they would be typed
"""What an attempt is, and the driver that makes many of them in one sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Expected = Literal["refused", "nothing"]
"""``refused``: it ends with an error. ``nothing``: it ends well, and has seen and changed nothing it must not."""


@dataclass(frozen=True)
class Attempt:
    """Code that tries something. Whatever is expected of it, a canary in its output is a leak."""

    category: str
    name: str
    code: str
    expected: Expected = "refused"
    language: Literal["python", "bash"] = "python"
    where_bubblewrap: Expected | None = None

    def expected_in(self, backend: str) -> Expected:
        return self.where_bubblewrap if backend == "bubblewrap" and self.where_bubblewrap else self.expected

    @property
    def id(self) -> str:
        return f"{self.category}-{self.name}"


def python(category: str, **codes: str) -> list[Attempt]:
    return [Attempt(category, name, code) for name, code in codes.items()]


def bash(category: str, **codes: str) -> list[Attempt]:
    return [Attempt(category, name, code, language="bash") for name, code in codes.items()]


DRIVER = r"""
import json, os, subprocess, sys
results = {}
for name, language, code in json.load(sys.stdin):
    argv = ["python3", "-c", code] if language == "python" else ["bash", "-c", code]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=10)
        results[name] = [done.returncode, done.stdout[-20000:].decode("utf-8", "replace")]
    except subprocess.TimeoutExpired as late:
        results[name] = [None, (late.stdout or b"")[-20000:].decode("utf-8", "replace")]
with open("/workspace/.results.part", "w") as file:
    json.dump(results, file)
os.rename("/workspace/.results.part", "/workspace/results.json")
"""
