"""``python -m runner.images.audit``: ask the advisory service about every package that a lock file names."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any

from runner.images.packages import HERE
from runner.images.sbom import LOCKS

PATIENCE = 300


def main() -> int:
    """Exit codes: 0 nothing known, 1 a known fault (named on stdout), 3 not everything could be asked about."""
    if importlib.util.find_spec("pip_audit") is None:
        print("error: pip-audit is not installed; install the extra [dev]", file=sys.stderr)
        return 3
    codes = [_audit(name) for name in LOCKS]
    return 1 if 1 in codes else max(codes)


def _audit(name: str) -> int:
    lock = HERE / f"{name}.lock.txt"
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "-r", str(lock)]
    try:
        done = subprocess.run(
            [*command, "--progress-spinner", "off", "--format", "json"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        answer = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        print(f"{name}: the advisory service cannot be reached from here; nothing was checked")
        return 3
    code, words = verdict(answer)
    print(f"{name}: {words}")
    return code


def verdict(answer: dict[str, Any]) -> tuple[int, str]:
    """Exit code and one line for what ``pip-audit`` answered; a package it left out is not one without faults."""
    packages = answer["dependencies"]
    left_out = [one["name"] for one in packages if "skip_reason" in one]
    faults = [
        f"{one['name']} {one['version']}: {', '.join(fault['id'] for fault in one['vulns'])}"
        for one in packages
        if one.get("vulns")
    ]
    if faults:
        return 1, "; ".join(faults)
    if left_out:
        return 3, f"{len(left_out)} of {len(packages)} packages could not be asked about, {left_out[0]} first"
    return 0, f"nothing is known against {len(packages)} packages"


if __name__ == "__main__":
    raise SystemExit(main())
