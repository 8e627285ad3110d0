"""The locked packages of a sandbox as a folder, for an image to copy or for bubblewrap to show read-only."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.sandbox.base import Role, SandboxUnavailable

log = logging.getLogger(__name__)

HERE = Path(__file__).parent
GLIBC_TAGS = (
    "manylinux_2_28",
    "manylinux_2_27",
    "manylinux_2_26",
    "manylinux_2_24",
    "manylinux_2_17",
    "manylinux2014",
)


@dataclass(frozen=True)
class Target:
    """The Python a folder is made for, such as ``3.13`` on ``x86_64``; ``native`` when it is the one that runs now."""

    python: str
    machine: str
    native: bool = False

    @classmethod
    def here(cls) -> Target:
        return cls(f"{sys.version_info[0]}.{sys.version_info[1]}", os.uname().machine, native=True)

    @property
    def tag(self) -> str:
        return f"cp{self.python.replace('.', '')}-{self.machine}"

    def markers(self) -> dict[str, str]:
        return {
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "sys_platform": "linux",
            "platform_system": "Linux",
            "os_name": "posix",
            "platform_machine": self.machine,
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }

    def pip_options(self) -> list[str]:
        if self.native:
            return []
        abis = [f"cp{self.python.replace('.', '')}", "abi3", "none"]
        return [
            # the lock has settled who fits; pip would compare with the Python it runs on
            *("--ignore-requires-python", "--python-version", self.python, "--implementation", "cp"),
            *(word for abi in abis for word in ("--abi", abi)),
            *(word for tag in GLIBC_TAGS for word in ("--platform", f"{tag}_{self.machine}")),
        ]


def lock_file(role: Role) -> Path:
    return HERE / f"{role}.lock.txt"


def cache_folder() -> Path:
    chosen = os.environ.get("AUTOMEDBENCH_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "automedbench"


def digest(parts: Iterable[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


def ensure_site(role: Role, target: Target | None = None) -> Path:
    """The folder with a role's packages, installed once from its hash lock.

    Raises
    ------
    SandboxUnavailable
        The packages could not be installed.
    """
    target = target or Target.here()
    lock = lock_file(role).read_bytes()
    site = cache_folder() / "site" / f"{role}-{target.tag}-{digest([lock])[:16]}"
    if not site.is_dir():
        with _alone(site):
            if not site.is_dir():
                log.info(
                    "installing the locked packages of the %s sandbox for Python %s", role, target.python
                )
                _install(lock.decode(), target, site)
    return site


def requirements_for(lock: str, target: Target) -> str:
    """The lines of a universal lock that concern one Python, without their markers.

    pip would judge the markers by the Python it runs on, also when it installs for another.
    """
    from packaging.requirements import Requirement

    kept = []
    for entry in lock.replace("\\\n", " ").splitlines():
        text, *hashes = entry.split(" --hash=")
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        requirement = Requirement(text.strip())
        if requirement.marker is None or requirement.marker.evaluate(target.markers()):
            kept.append(
                " ".join(
                    [f"{requirement.name}{requirement.specifier}", *(f"--hash={h.strip()}" for h in hashes)]
                )
            )
    return "\n".join(kept) + "\n"


def _install(lock: str, target: Target, site: Path) -> None:
    with tempfile.TemporaryDirectory(dir=site.parent, prefix=".building-") as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(requirements_for(lock, target))
        fresh = Path(folder) / "site"
        fresh.mkdir(mode=0o755)
        command = [
            *_pip(),
            *(
                "install",
                "--quiet",
                "--no-input",
                "--disable-pip-version-check",
                "--no-deps",
                "--require-hashes",
            ),
            *("--only-binary", ":all:", "--target", str(fresh), "--requirement", str(requirements)),
            *target.pip_options(),
            *([] if target.native else ["--no-compile"]),
        ]
        done = subprocess.run(command, capture_output=True, text=True, umask=0o022)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise SandboxUnavailable(f"the packages of {site.name} could not be installed: {last}")
        fresh.rename(site)


def _pip() -> list[str]:
    """pip of this environment, or the one that Python carries for environments made without."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if found := importlib.util.find_spec("ensurepip"):
        wheels = sorted((Path(found.origin or "").parent / "_bundled").glob("pip-*.whl"))
        if wheels:
            return [sys.executable, str(wheels[-1] / "pip")]
    raise SandboxUnavailable("the sandbox's packages need pip: install it with `python -m ensurepip`")


@contextmanager
def _alone(site: Path) -> Iterator[None]:
    """One process at a time makes a folder; the others wait and find it."""
    site.parent.mkdir(parents=True, exist_ok=True)
    with (site.parent / f".{site.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
