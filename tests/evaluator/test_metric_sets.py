"""Which metric set a report names, and what is said about the others: decided by what lies on this machine."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from evaluator.metrics import lpips, mlrg
from evaluator.metrics.registry import metric_info
from evaluator.metrics.weights import WEIGHTS_VARIABLE
from evaluator.reference_submissions import write_trivial
from evaluator.score import score
from evaluator.tracks.image import LPIPS
from evaluator.tracks.report import choose_set
from hf_datasets import ensure_phantom
from tasks.manifest import load_manifest
from tasks.registry import all_tasks, load_task

HERE = {name for name in mlrg.LIBRARIES if importlib.util.find_spec(name) is not None}
CHEST, CAPTIONS = ("mlrg7", "obs_rouge"), ("mlrg7", "bleu_rouge")


def stand_in_weights(folder: Path) -> Path:
    """Files of the right names with nothing in them."""
    for part in mlrg._PARTS.values():
        for name in part.files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    for name in lpips.DIGESTS:
        (folder / lpips.FOLDER).mkdir(exist_ok=True)
        (folder / lpips.FOLDER / name).write_bytes(b"weights of something else")
    return folder


# --- the choice ---


def test_the_first_set_that_can_be_computed_is_used() -> None:
    lacking = {"meteor": "no files", "chexbert14": "no torch"}
    assert choose_set(CHEST, "obs_rouge", {}) == ("mlrg7", {})
    assert choose_set(CHEST, "obs_rouge", lacking)[0] == "obs_rouge"
    assert choose_set(CAPTIONS, "bleu_rouge", lacking)[0] == "bleu_rouge"
    assert choose_set(("obs_rouge", "mlrg7"), "obs_rouge", {}) == ("obs_rouge", {})
    assert choose_set(("mlrg7",), "obs_rouge", lacking)[0] is None
    assert choose_set(("unheard_of", "obs_rouge"), "obs_rouge", {})[1] == {
        "unheard_of": "unheard_of: is not known here"
    }


def test_each_component_has_the_reason_of_its_own_part() -> None:
    lacking = {"meteor": "no files", "chexbert14": "no torch"}
    _, unavailable = choose_set(CHEST, "obs_rouge", lacking)
    assert unavailable["mlrg7"] == "meteor: no files; chexbert14: no torch"
    assert unavailable["meteor"] == "no files"
    assert unavailable["f1_radgraph"] == "part of mlrg7"
    assert [unavailable[f"chexbert14_micro_{part}"] for part in ("precision", "recall", "f1")] == [
        "no torch"
    ] * 3
    assert not {"bleu", "rouge_l"} & set(unavailable)


# --- the machine ---


def test_stand_in_weights_leave_only_packages_to_miss(tmp_path: Path) -> None:
    missing = mlrg.available(stand_in_weights(tmp_path))
    for name, part in mlrg._PARTS.items():
        absent = [package for package in part.packages if package not in HERE]
        assert (name in missing) == bool(absent)
        assert all(package in missing[name] for package in absent)


def test_a_file_that_is_lacking_is_named(tmp_path: Path) -> None:
    if "nltk" not in HERE:
        pytest.skip("needs NLTK")
    folder = stand_in_weights(tmp_path)
    (folder / "corpora/wordnet/index.sense").unlink()
    assert mlrg.available(folder)["meteor"] == "corpora/wordnet/index.sense is not in the weights folder"


def test_a_report_says_what_is_missing_here(stage, monkeypatch, tmp_path: Path) -> None:
    staged = stage("report")
    monkeypatch.delenv(WEIGHTS_VARIABLE, raising=False)
    report = staged.score()
    assert report.metric_set == "obs_rouge"
    for name in ("mlrg7", *mlrg.WEIGHTED):
        assert WEIGHTS_VARIABLE in report.unavailable[name] or "not installed" in report.unavailable[name]
    monkeypatch.setenv(WEIGHTS_VARIABLE, str(stand_in_weights(tmp_path / "weights")))
    if len(HERE) < len(mlrg.LIBRARIES):
        report = staged.score()
        assert report.metric_set == "obs_rouge"
        assert "not installed" in report.unavailable["mlrg7"]


def enhancement(stage, secondary: tuple[str, ...]):
    staged = stage("enhancement")
    metric = staged.task.metric.model_copy(update={"secondary": secondary})
    return type(staged)(staged.task.model_copy(update={"metric": metric}), staged.manifest, staged.root)


def test_lpips_is_unavailable_for_its_real_reason(stage, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv(WEIGHTS_VARIABLE, str(stand_in_weights(tmp_path / "weights")))
    report = enhancement(stage, ("psnr", LPIPS)).score()
    reason = report.unavailable[LPIPS]
    assert ("SHA-256" if "torch" in HERE else "torch is not installed") in reason
    assert LPIPS not in report.aggregates
    assert list(report.unavailable) == [LPIPS]


def test_lpips_is_nothing_to_a_task_that_does_not_ask_for_it(stage, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv(WEIGHTS_VARIABLE, str(stand_in_weights(tmp_path / "weights")))
    assert enhancement(stage, ("psnr",)).score().unavailable == {}


def test_a_learned_metric_enters_cases_and_means(stage) -> None:
    """The wiring behind a loaded model, with a plain distance in the model's place."""
    from evaluator.tracks.base import CaseFiles, Finished
    from evaluator.tracks.image import ImageTrack

    staged = enhancement(stage, (LPIPS,))
    track = ImageTrack(staged.task)
    track._lpips = lambda reference, prediction: float(np.abs(reference - prediction).mean())
    case = CaseFiles("c1", staged.submission, staged.public, staged.private)
    output = np.load(staged.output("c1"))
    assert track.score(case, output).metrics[LPIPS] == 0.0
    assert track.score(case, output + 5).metrics[LPIPS] == pytest.approx(5.0)
    volume = np.stack([output, output + 3], axis=2)
    from evaluator.tracks.image import _mean_over_slices

    assert _mean_over_slices(track._lpips, volume, volume + np.array([0.0, 2.0])) == pytest.approx(1.0)
    results = [staged.case("c1").model_copy(update={"metrics": {LPIPS: value}}) for value in (1.0, 2.0)]
    summary = track.aggregate([Finished(result, None) for result in results])
    assert summary.aggregates[LPIPS] == 1.5
    assert summary.libraries == ("torch",)


# --- every task ---


def _kinds() -> list[str]:
    """One task for each way of being scored."""
    seen: dict[object, str] = {}
    for task in all_tasks():
        seen.setdefault((task.track, getattr(task.output, "mode", None), task.metric), task.id)
    return list(seen.values())


@pytest.mark.slow
@pytest.mark.parametrize("task_id", _kinds())
def test_every_metric_a_task_asks_for_has_a_value_or_a_reason_that_names_weights(task_id, tmp_path) -> None:
    task = load_task(task_id)
    data = ensure_phantom(task_id, tmp_path / "data")
    manifest = load_manifest(data)
    write_trivial(task, manifest, data / "public", tmp_path / "submission")
    report = score(task, tmp_path / "submission", data / "private", data / "public", manifest, jobs=1)
    shown = {*report.aggregates, *(name for case in report.cases for name in case.metrics)}
    assert [name for name in shown if metric_info(name) is None] == []
    weighted = {*mlrg.WEIGHTED, "mlrg7", LPIPS}
    assert set(report.unavailable) <= weighted
    for name in (task.metric.headline, *task.metric.secondary):
        computed = any(known.startswith(name) for known in report.aggregates)
        assert computed or name in report.unavailable or name == "report_mean"
