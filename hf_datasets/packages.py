"""A task as a package: the contract, both briefs, requirements and digests, without a byte of data."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from evaluator.files import sha256_file
from hf_datasets.archives import Member
from tasks import canary
from tasks.brief import render
from tasks.contract import output_schema
from tasks.names import Redistribution, Release, Tier
from tasks.registry import TASK_FILES, task_digest, task_folder
from tasks.schema import OUTPUT_ROOT, Task

ROOT = "automedbench-task"
TIERS = (Tier.LITE, Tier.STANDARD)
USUAL_CASES = 100
"""Cases of a brief where no published source states a number; a run's own brief counts the staged ones."""

_POLICIES = {
    Redistribution.ALLOWED: "redistributable",
    Redistribution.DERIVED: "derived-only",
    Redistribution.NONE: "restricted",
}


def package_members(
    task: Task, release: Release, *, cases: int | None, manifest_sha256: str | None
) -> list[Member]:
    """Everything in the package of a task, ``MANIFEST.sha256`` included.

    Parameters
    ----------
    task, release
        What is packed.
    cases
        How many cases the briefs speak of; the published number, or `USUAL_CASES`, when None.
    manifest_sha256
        Of the staged data that the package belongs to, where there are any.
    """
    count = cases or task.cases or USUAL_CASES
    folder = task_folder(task.id)
    contents = {
        canary.RELEASE_FILE: canary.NOTICE + "\n",
        "README.md": _readme(task, count),
        "task.json": json.dumps(_contract(task, release, manifest_sha256), indent=1, ensure_ascii=False)
        + "\n",
        "requirements.txt": (folder / "requirements.txt").read_text(encoding="utf-8"),
    }
    for tier in TIERS:
        brief = render(task, tier, release=release, n_cases=count)
        contents[f"briefs/{tier}.md"] = brief.text
        contents[f"briefs/{tier}.system.md"] = brief.system
    raw = {name: text.encode() for name, text in contents.items()}
    raw |= {f"source/{name}": (folder / name).read_bytes() for name in TASK_FILES}
    raw["MANIFEST.sha256"] = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(raw.items())
    ).encode()
    return [(f"{ROOT}/{name}", content) for name, content in raw.items()]


def _contract(task: Task, release: Release, manifest_sha256: str | None) -> dict[str, Any]:
    """``task.json``, in the second version of the published form."""
    source = task.source
    return {
        "schema_version": 2,
        "package_type": "automedbench_task_harness",
        "canary": canary.GUID,
        "release": str(release),
        "track": str(task.track),
        "tiers": [str(tier) for tier in TIERS],
        "website_task_id": task.id,
        "evaluator_task_id": task.id,
        "dataset": {
            "upstream": source.dataset,
            "upstream_url": str(source.url),
            "revision": source.revision,
            "license": source.license,
            "access": source.access,
            "policy": _POLICIES[source.redistribution],
            "redistribution": str(source.redistribution),
            "acquisition": " ".join(source.acquisition.split()),
            "included": False,
            "public_mount": "/data/public",
            "private_mount": "/data/private",
        },
        "input_contract": {"unit": task.unit, "files": [file.model_dump() for file in task.inputs]},
        "output_contract": {
            "root": OUTPUT_ROOT,
            "type": "all_paths",
            "paths": [f"{{case_id}}/{name}" for name in task.output.filenames],
            "schema": output_schema(task),
        },
        "metric": task.metric.model_dump(mode="json"),
        "limits": task.limits.model_dump(),
        "repeats": task.repeats,
        "evaluator": {
            "adapter": str(task.track),
            "entrypoint": f"python -m evaluator score --task {task.id}",
            "network_required": False,
        },
        "runtime_assets": [],
        "source": {
            "config_path": "source/task.yaml",
            "config_sha256": sha256_file(task_folder(task.id) / "task.yaml"),
            "task_sha256": task_digest(task.id),
            "staging_manifest_sha256": manifest_sha256,
        },
    }


def _readme(task: Task, cases: int) -> str:
    return f"""# {task.title}

{canary.NOTICE}

Task `{task.id}` of AutoMedBench, track {task.track}. No data are in this package.

- `task.json`: the contract: input, output, metric, limits, terms of the data.
- `briefs/`: what an agent reads in the Lite and the Standard tier, for {cases} cases on the task's own limits;
  the brief of a run counts the cases that are staged.
- `requirements.txt`: what the named methods need.
- `source/`: the task's own files. `MANIFEST.sha256`: digests of everything here (`sha256sum -c MANIFEST.sha256`).

Data: {task.source.dataset}, {task.source.url}, licence {task.source.license}.
{" ".join(task.source.acquisition.split())}

    python -m hf_datasets fetch {task.id} --out RAW
    python -m hf_datasets stage {task.id} --source RAW --out data
"""
