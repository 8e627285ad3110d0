"""The card (README.md) of a results repository: generated, the same for the same contents."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import yaml

from hf_datasets.arrow import CASES, RUNS
from hf_datasets.records import SCHEMA_VERSION
from hf_datasets.results.layout import CASES_PARTS, RUNS_PARTS

_TYPES = {pa.string(): "string", pa.int64(): "int64", pa.float64(): "float64", pa.bool_(): "bool"}
_CONFIGS = {"runs": (RUNS, RUNS_PARTS), "cases": (CASES, CASES_PARTS)}


class NewerCard(Exception):
    """The repository holds columns that this program does not know."""


def card(repo: str, runs: int, cases: int) -> str:
    """The card of a repository with so many rows."""
    front = yaml.safe_dump(_front(), sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)
    body = _BODY.format(
        repo=repo, runs=f"{runs:,}", cases=f"{cases:,}", schema=SCHEMA_VERSION, terms="\n".join(_terms())
    )
    return f"---\n{front}---\n{body}"


def require_known(text: str) -> None:
    """Refuse a repository whose card names columns that we would drop.

    Raises
    ------
    NewerCard
    """
    parts = text.split("---\n", 2)
    try:
        front = yaml.safe_load(parts[1]) if len(parts) == 3 else {}
        infos = {info["config_name"]: info["features"] for info in front.get("dataset_info", ())}
        unknown = {
            feature["name"]
            for name, (schema, _) in _CONFIGS.items()
            for feature in infos.get(name, ())
            if feature["name"] not in schema.names
        }
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return  # somebody's own words; they are replaced
    if unknown:
        raise NewerCard(
            f"its card names columns that this program does not know ({', '.join(sorted(unknown)[:5])}); "
            "update automedbench before writing to it"
        )


def _front() -> dict[str, Any]:
    return {
        "license": "cc-by-4.0",
        "pretty_name": "AutoMedBench results",
        "tags": ["automedbench", "benchmark", "agents", "medical"],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if name == "runs" else {}),
                "data_files": [{"split": "train", "path": f"{folder}/*.parquet"}],
            }
            for name, (_, folder) in _CONFIGS.items()
        ],
        # Stated, so that parts of older programs, which lack the newer columns, load with nulls.
        "dataset_info": [
            {"config_name": name, "features": [_feature(field) for field in schema]}
            for name, (schema, _) in _CONFIGS.items()
        ],
    }


def _feature(field: pa.Field) -> dict[str, Any]:
    if pa.types.is_list(field.type):
        return {"name": field.name, "list": _TYPES[field.type.value_type]}
    if pa.types.is_timestamp(field.type):
        return {"name": field.name, "dtype": f"timestamp[{field.type.unit}, tz={field.type.tz}]"}
    return {"name": field.name, "dtype": _TYPES[field.type]}


def _terms() -> list[str]:
    from tasks.registry import all_tasks

    return [
        f"| `{task.id}` | {task.source.dataset} | {task.source.license} | {_LEAVES[task.source.redistribution.value]} |"
        for task in all_tasks()
    ]


_LEAVES = {
    "allowed": "scores, previews, traces",
    "derived": "scores, what agents made",
    "none": "scores only",
}

_BODY = """
# AutoMedBench results

{runs} runs, {cases} cases, record schema {schema}. One row of `runs` is one agent working once on one medical-AI task;
one row of `cases` is one case of such a run. This card is generated; changes to it do not last.

```python
from datasets import load_dataset

runs = load_dataset("{repo}", "runs", split="train")
cases = load_dataset("{repo}", "cases", split="train")
```

or, with the harness, everything at one commit, to look at and to check:

```
python -m hf_datasets pull {repo} --out results
python -m hf_datasets verify results
```

## What the files are

| path | what it is |
|---|---|
| `records/<yyyy>/<run_id>.json` | the record of a run as it was sealed; never rewritten |
| `records/<yyyy>/<run_id>_<digest>.json` | a correction of it, which names by SHA-256 what it supersedes |
| `records/<yyyy>/<record>.sig` | an SSH signature over those bytes, where somebody vouches for them |
| `records/packed/` | the same bytes, packed for quick downloads |
| `data/runs/`, `data/cases/` | the tables; superseded records have no rows |
| `status/<run_id>.json` | what became of verifying a run |
| `previews/`, `traces/`, `details/` | pictures, redacted traces, judgements, where the data allow it |
| `submissions/`, `outputs/` | manifests of submissions, and what their agents handed in, to be scored again |

Scores lie in [0, 1]; null means unscored, which is never zero. `status` is `self-reported` until a run was re-scored.
Runs with different releases, judges, metric sets, networks, limits or hardware must not be averaged together.
The columns are described in `docs/records.md` of the harness.

## Terms

Records and scores: CC BY 4.0. What is derived from a data set stays under that data set's terms:

| task | data | licence | published here |
|---|---|---|---|
{terms}

## Citation

```bibtex
@misc{{automedbench,
  title = {{AutoMedBench: agents that do medical-AI research}},
  note = {{Results from {repo} at the commit you used}},
}}
```
"""
