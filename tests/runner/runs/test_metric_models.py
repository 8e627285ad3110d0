"""A lab's folder of metric models is there for the evaluator, to be read, and nowhere else."""

from __future__ import annotations

import pytest

from evaluator.metrics.weights import WEIGHTS_VARIABLE
from runner.evaluate import sandbox_of
from runner.sandbox import choose_backend

LOOK = 'cat "$AUTOMEDBENCH_WEIGHTS/model.txt"; echo x > "$AUTOMEDBENCH_WEIGHTS/new" || echo refused'


@pytest.fixture
def spec(tmp_path):
    """The evaluator's sandbox over empty folders."""
    places = {name: tmp_path / name for name in ("data/public", "data/private", "submission", "out")}
    for place in places.values():
        place.mkdir(parents=True)
    (tmp_path / "data" / "manifest.json").write_text("{}")
    return lambda: sandbox_of("weights", tmp_path / "data", places["submission"], places["out"], 60)


def test_the_folder_is_read_and_never_written(spec, sandbox, tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "model.txt").write_text("weights")
    monkeypatch.setenv(WEIGHTS_VARIABLE, str(tmp_path / "models"))
    with choose_backend(sandbox).create(spec()) as place:
        seen = place.exec(["sh", "-c", LOOK], deadline=20).output.decode()
    assert "weights" in seen
    assert "refused" in seen
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["model.txt"]


@pytest.mark.parametrize("named", [None, "nowhere"])
def test_without_one_nothing_is_mounted(spec, named, tmp_path, monkeypatch):
    monkeypatch.delenv(WEIGHTS_VARIABLE, raising=False)
    if named:
        monkeypatch.setenv(WEIGHTS_VARIABLE, str(tmp_path / named))
    assert {mount.target for mount in spec().mounts} == {
        "/data/public", "/data/private", "/data/manifest.json", "/submission", "/out",
    }  # fmt: skip
    assert dict(spec().env) == {}
