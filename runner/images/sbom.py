"""``python -m runner.images.sbom``: what the sandboxes are made of, as one CycloneDX document from the lock files."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.requirements import Requirement

from runner.images.packages import HERE
from runner.provenance import harness_version

LOCKS = ("agent", "evaluator", "agent-cuda")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def locked(lock: str) -> Iterator[tuple[str, str, list[str]]]:
    """Name, version and SHA-256 digests of every entry of a lock file's text."""
    for entry in lock.replace("\\\n", " ").splitlines():
        if entry.strip() and not entry.lstrip().startswith("#"):
            requirement = Requirement(entry.split("--hash=")[0].strip())
            version = str(requirement.specifier).removeprefix("==")
            yield requirement.name, version, _HASH.findall(entry)


def document(locks: Iterable[str] = LOCKS) -> dict[str, Any]:
    """The bill of materials (CycloneDX 1.5): every package once, with its sandboxes and the hashes of its files."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name in locks:
        for package, version, hashes in locked((HERE / f"{name}.lock.txt").read_text()):
            reference = f"pkg:pypi/{package.lower()}@{version}"
            component = found.setdefault(
                (package.lower(), version),
                {
                    "type": "library",
                    "bom-ref": reference,
                    "name": package,
                    "version": version,
                    "purl": reference,
                    "hashes": [{"alg": "SHA-256", "content": digest} for digest in sorted(hashes)],
                    "properties": [],
                },
            )
            component["properties"].append({"name": "automedbench:sandbox", "value": name})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "name": "automedbench", "version": harness_version()}
        },
        "components": [found[key] for key in sorted(found)],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=1) + "\n")
