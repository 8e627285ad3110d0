"""Files that people write: what is no YAML, and what no sweep can mean, is one line that names the file."""

from __future__ import annotations

import pytest

from hf_datasets.card import require_known
from runner.agents.profiles import ProfileFile, read_profile_file
from runner.errors import UsageProblem
from runner.sweep.form import read_form
from tasks.registry import TASK_FILES, TaskError, load_folder

NO_YAML = {
    "a day that there is not": "a: 2026-13-45",
    "brackets": "a: " + "[" * 5000,
    "digits": "a: " + "9" * 5000,
}


@pytest.mark.parametrize("kind", NO_YAML)
@pytest.mark.parametrize(
    "read",
    [read_form, lambda path: read_profile_file(path, ProfileFile), lambda path: load_folder(path.parent)],
)
def test_what_yaml_cannot_hold_is_one_line(tmp_path, kind, read):
    for name in TASK_FILES:
        (tmp_path / name).touch()
    path = tmp_path / "task.yaml"
    path.write_text(NO_YAML[kind])
    with pytest.raises((UsageProblem, TaskError), match="is not YAML") as refused:
        read(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", NO_YAML)
def test_a_card_in_somebodys_own_words_keeps_nobody_from_publishing(kind):
    require_known(f"---\n{NO_YAML[kind]}\n---\nwords")


@pytest.mark.parametrize(
    "line",
    [
        "retry_seconds: .inf", "budget: {usd: .inf}", "budget: {usd: .nan}", "repeats: 10001",
        "repeats: {default: 100000000000}", "providers: {h: {requests_per_minute: .inf}}",
    ],
)  # fmt: skip
def test_numbers_that_no_lock_could_hold_are_refused(tmp_path, line):
    path = tmp_path / "SWEEP.yaml"
    path.write_text(f"name: x\nagents: [noop]\ntasks: [vqa-rad-task]\n{line}\n")
    with pytest.raises(UsageProblem, match=line.split(":")[0]):
        read_form(path)
