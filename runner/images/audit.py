"""``python -m runner.images.audit``: ask the advisory service about every package that a lock file names."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

from runner.images.packages import HERE
from runner.images.sbom import LOCKS

UNREACHABLE = (
    "ConnectionError",
    "Max retries",
    "Temporary failure",
    "Name or service",
    "ServiceError",
    "timed out",
)
PATIENCE = 300


def main() -> int:
    """Exit codes: 0 nothing known, 1 a known fault (listed on stdout), 3 could not be asked."""
    if importlib.util.find_spec("pip_audit") is None:
        print("error: pip-audit is not installed; install the extra [dev]", file=sys.stderr)
        return 3
    worst = 0
    for name in LOCKS:
        print(f"{name}: ", end="", flush=True)
        worst = max(worst, _audit(name))
    return worst


def _audit(name: str) -> int:
    lock = HERE / f"{name}.lock.txt"
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "-r", str(lock)]
    try:
        done = subprocess.run(
            [*command, "--progress-spinner", "off"], capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        print(f"no answer within {PATIENCE} s; nothing was checked")
        return 3
    said = done.stdout + done.stderr
    if done.returncode == 0:
        print("no known fault")
        return 0
    if any(word in said for word in UNREACHABLE):
        print("the advisory service cannot be reached from here; nothing was checked")
        return 3
    print(said.strip())
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
