"""``doctor``: what this machine can do, and what each sandbox really protects."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.agents import agent_rows
from runner.egress import require_egress
from runner.egress.index import package_index
from runner.errors import Problem
from runner.provenance import hardware, harness_version
from runner.sandbox import all_backends


@dataclass
class Examination:
    """Findings; ``usable`` means that at least one sandbox works."""

    machine: dict[str, Any] = field(default_factory=dict)
    sandboxes: list[dict[str, Any]] = field(default_factory=list)
    agents: list[dict[str, Any]] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        return any(sandbox["ok"] for sandbox in self.sandboxes)

    def as_dict(self) -> dict[str, Any]:
        return {
            "usable": self.usable,
            "machine": self.machine,
            "sandboxes": self.sandboxes,
            "agents": self.agents,
        }

    def as_text(self) -> str:
        lines = ["machine"]
        lines += [f"  {name:<12} {value}" for name, value in self.machine.items()]
        for sandbox in self.sandboxes:
            lines += [
                "",
                f"sandbox {sandbox['name']}: {'works' if sandbox['ok'] else 'not usable'} - {sandbox['detail']}",
            ]
            lines += [f"  {name:<18} {level:<8} {note}" for name, level, note in sandbox["protections"]]
        lines += ["", "agents"]
        lines += [f"  {row['agent']:<18} {row['key'] or 'needs no key'}" for row in self.agents]
        lines += ["", "ready: at least one sandbox works" if self.usable else NO_SANDBOX]
        return "\n".join(lines)


NO_SANDBOX = (
    "not ready: no sandbox works here; install Docker (and run 'make images'), or bubblewrap; "
    "nothing is ever run without one"
)


def _way_out() -> str:
    """Whether the allowlist can be had, and whose package index agents get."""
    try:
        require_egress("allowlist")
        index = package_index()
    except Problem as problem:
        return f"no allowlist: {problem}"
    named = "the operator's" if any(one.private for one in index.endpoints) else "that of pip's settings"
    return f"allowlist through a proxy; package index: {named if index.url else 'the default'}"


def examine() -> Examination:
    """Look at the machine, try every sandbox, and check which agents have their key."""
    machine = hardware()
    found = Examination(
        machine={
            "version": f"automedbench {harness_version()}, Python {platform.python_version()}",
            "system": f"{platform.system()} {platform.release()}, {'root' if os.geteuid() == 0 else 'user'}",
            "cpu": f"{machine.cpu_count} cores, {machine.memory_mb} MiB",
            "gpu": ", ".join(machine.gpus) or "none",
            "network": _way_out(),
            "disk": f"{shutil.disk_usage(Path.cwd()).free // 2**30} GiB free here",
        }
    )
    for backend in all_backends():
        availability = backend.available()
        found.sandboxes.append(
            {
                "name": backend.name,
                "ok": availability.ok,
                "detail": availability.detail,
                "protections": [(one.name, one.level, one.note) for one in backend.protections()],
            }
        )
    found.agents = agent_rows(None)
    return found
