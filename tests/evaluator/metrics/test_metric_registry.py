"""The registry names every metric that a task asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from evaluator.metrics.registry import METRICS, metric_info

TASKS = sorted((Path(__file__).parents[3] / "tasks").glob("*/*/task.yaml"))


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.parent.name)
def test_metrics_of_tasks_are_defined(path: Path) -> None:
    metric = yaml.safe_load(path.read_text())["metric"]
    assert [name for name in (metric["headline"], *metric.get("secondary", ())) if name not in METRICS] == []


def test_entries_are_complete_sentences() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.definition.endswith(".")
        assert metric.definition[0].isupper() or metric.definition[0].isdigit()
        assert metric.range
        assert metric.source


def test_names_with_a_target_or_rate() -> None:
    assert metric_info("dice_kidney") is METRICS["dice"]
    assert metric_info("volume_error_ml_tumour") is METRICS["volume_error_ml"]
    assert metric_info("recall_at_fppi_0.5") is METRICS["recall_at_fppi"]
    assert metric_info("psnr") is METRICS["psnr"]
    assert metric_info("unheard_of") is None


def test_registry_imports_no_numeric_library() -> None:
    script = "import sys, evaluator.metrics.registry as r; print({'numpy', 'scipy', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
