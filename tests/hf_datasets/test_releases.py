"""Releases: the same bytes for the same input, references apart, what terms keep back kept back, digests checked."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from hf_datasets.archives import write_tar
from hf_datasets.release_download import download_release, downloaded, ensure_released, revision_of
from hf_datasets.release_form import ReleaseError, ReleaseForm
from hf_datasets.releases import LITE_CASES, build_release
from tasks import canary
from tasks.manifest import MANIFEST_NAME, dump_manifest, load_manifest
from tasks.names import Redistribution, Release, Track
from tasks.registry import load_task, task_ids

TASK = "grazpedwri-det-task"
OTHER = "iu-xray-report-task"


@pytest.fixture(scope="module")
def lite(lite_data, tmp_path_factory) -> Path:
    """A built Lite release; its references lie beside it."""
    out = tmp_path_factory.mktemp("release") / "lite"
    build_release(Release.LITE, lite_data, out, out.with_name("lite-references"))
    return out


@pytest.fixture
def lite_copy(lite, tmp_path) -> Path:
    """A copy that a test may damage."""
    shutil.copytree(lite.with_name("lite-references"), tmp_path / "lite-references")
    return Path(shutil.copytree(lite, tmp_path / "lite"))


def form_of(folder: Path) -> ReleaseForm:
    return ReleaseForm.model_validate_json((folder / "release.json").read_bytes())


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return tar.getnames()


# --- what is built ---


def test_the_full_release_is_48_packages_and_96_cells_without_data(tmp_path):
    form = build_release(Release.FULL, tmp_path / "nothing", tmp_path / "full", tmp_path / "none")
    assert [entry.id for entry in form.tasks] == task_ids()
    assert (len(form.tasks), form.cells) == (48, 96)
    assert all(entry.data is None for entry in form.tasks)
    assert not (tmp_path / "none").exists()
    for entry in form.tasks:
        archive = tmp_path / "full" / entry.package.path
        assert archive.stat().st_size < 60_000
        with tarfile.open(archive) as tar:
            files = {one.name.removeprefix("automedbench-task/"): tar.extractfile(one).read() for one in tar}
        contract = json.loads(files["task.json"])
        assert contract["schema_version"] == 2
        assert contract["dataset"]["included"] is False
        assert contract["tiers"] == ["lite", "standard"]
        assert contract["source"]["config_sha256"] == hashlib.sha256(files["source/task.yaml"]).hexdigest()
        assert canary.GUID in files["README.md"].decode()
        assert all(canary.GUID in files[f"briefs/{tier}.md"].decode() for tier in contract["tiers"])
        listed = dict(
            reversed(line.split("  ")) for line in files.pop("MANIFEST.sha256").decode().splitlines()
        )
        assert listed == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def test_the_same_input_gives_the_same_bytes_wherever_it_lies(lite, lite_data, tmp_path, tree_digest):
    data = shutil.copytree(lite_data, tmp_path / "elsewhere" / "data")
    for path in data.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    build_release(Release.LITE, data, tmp_path / "again", tmp_path / "again-references")
    assert tree_digest(tmp_path / "again") == tree_digest(lite)
    assert tree_digest(tmp_path / "again-references") == tree_digest(lite.with_name("lite-references"))


def test_lite_is_one_task_a_track_and_data_go_only_where_the_terms_allow_it(lite):
    form = form_of(lite)
    assert sorted(entry.track for entry in form.tasks) == sorted(Track)
    assert {entry.id for entry in form.tasks} == set(LITE_CASES)
    for entry in form.tasks:
        allowed = load_task(entry.id).source.redistribution is Redistribution.ALLOWED
        assert (entry.data is not None) == allowed
        assert entry.tiers == ("lite",)
        if not allowed:
            assert f"--limit {LITE_CASES[entry.id]}" in entry.how
            found = [
                path
                for root in (lite, lite.with_name("lite-references"))
                for path in root.rglob(f"*{entry.id}*")
            ]
            assert found == [lite / entry.package.path]


def test_no_reference_and_no_manifest_is_in_the_public_part(lite, lite_data):
    entry = form_of(lite).entry(TASK)
    manifest = load_manifest(lite_data / "lite" / TASK)
    public = names_in(lite / entry.data.inputs.path)
    assert {name for name in public if name != canary.RELEASE_FILE} == {
        f"public/{file.path}" for case in manifest.cases for file in case.public
    }
    hidden = {file.sha256 for case in manifest.cases for file in case.private}
    with tarfile.open(lite / entry.data.inputs.path) as tar:
        assert hidden.isdisjoint(hashlib.sha256(tar.extractfile(one).read()).hexdigest() for one in tar)
    everything = b"".join(path.read_bytes() for path in lite.rglob("*") if path.suffix in (".json", ".md"))
    assert not any(case.origin.encode() in everything for case in manifest.cases)
    assert "extra_gated_prompt" in (lite.with_name("lite-references") / "README.md").read_text()


def test_data_that_are_not_staged_damaged_or_kept_back_are_not_built(lite_data, tmp_path):
    build = lambda data: build_release(Release.LITE, data, tmp_path / "out", tmp_path / "out-references")  # noqa: E731
    with pytest.raises(
        ReleaseError, match=r"expected staged data, found none; run 'python -m hf_datasets stage"
    ):
        build(tmp_path / "nothing")
    data = shutil.copytree(lite_data, tmp_path / "data")
    picture = next((data / "lite" / TASK / "public").rglob("*.png"))
    picture.write_bytes(picture.read_bytes() + b"x")
    with pytest.raises(ReleaseError, match="is not the file that the manifest lists"):
        build(data)
    assert not (tmp_path / "out").exists()
    manifest = data / "lite" / TASK / MANIFEST_NAME
    manifest.write_text(manifest.read_text().replace('"allowed"', '"derived"'))
    with pytest.raises(ReleaseError, match="was staged under 'derived'"):
        build(data)


def test_a_folder_of_something_else_is_left_alone(lite_data, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(ReleaseError, match="expected a release or nothing"):
        build_release(Release.LITE, lite_data, tmp_path / "out", tmp_path / "refs")
    assert (tmp_path / "out" / "thesis.tex").read_text() == "years of work"


# --- what is downloaded ---


def test_a_downloaded_task_is_the_staged_one_and_names_its_revision(lite, lite_data, tmp_path, tree_digest):
    fetched = {one.task: one for one in download_release(Release.LITE, str(lite), tmp_path)}
    assert fetched[TASK].state == "ready"
    assert tree_digest(tmp_path / "lite" / TASK) == tree_digest(lite_data / "lite" / TASK)
    assert fetched[OTHER].state == "elsewhere"
    assert "python -m hf_datasets stage iu-xray-report-task" in fetched[OTHER].detail
    assert (tmp_path / "lite" / "packages" / OTHER / "automedbench-task" / "task.json").is_file()
    digest = hashlib.sha256((lite / "release.json").read_bytes()).hexdigest()
    assert revision_of(tmp_path / "lite" / TASK) == f"sha256:{digest}"
    assert [one.state for one in download_release(Release.LITE, str(lite), tmp_path, tasks=(TASK,))] == [
        "already"
    ]


def test_data_staged_by_hand_beside_a_release_have_no_revision(lite, tmp_path):
    download_release(Release.LITE, str(lite), tmp_path, tasks=(TASK,))
    manifest = tmp_path / "lite" / TASK / MANIFEST_NAME
    manifest.write_text(manifest.read_text() + "\n")
    assert revision_of(tmp_path / "lite" / TASK) is None


def test_data_staged_by_hand_as_the_release_says_belong_to_it(lite_data, tmp_path, staged_phantom):
    data = shutil.copytree(lite_data, tmp_path / "mine")
    shutil.copytree(staged_phantom(OTHER), data / "lite" / OTHER)
    manifest = load_manifest(data / "lite" / OTHER)
    redone = manifest.model_copy(update={"release": Release.LITE, "redistribution": Redistribution.NONE})
    (data / "lite" / OTHER / MANIFEST_NAME).write_text(dump_manifest(redone))
    build_release(Release.LITE, data, tmp_path / "out", tmp_path / "out-references")
    assert not [path for path in tmp_path.glob("out*/**/*") if OTHER in path.name and path.suffix == ".tar"]

    download_release(Release.LITE, str(tmp_path / "out"), tmp_path / "theirs", tasks=(OTHER,))
    shutil.copytree(data / "lite" / OTHER, tmp_path / "theirs" / "lite" / OTHER)
    assert revision_of(tmp_path / "theirs" / "lite" / OTHER).startswith("sha256:")
    fewer = redone.model_copy(update={"cases": redone.cases[:-1]})
    (tmp_path / "theirs" / "lite" / OTHER / MANIFEST_NAME).write_text(dump_manifest(fewer))
    assert revision_of(tmp_path / "theirs" / "lite" / OTHER) is None


@pytest.mark.parametrize("part", ["lite", "lite-references"])
def test_a_tampered_archive_is_refused_and_nothing_of_it_stays(lite_copy, part, tmp_path):
    entry = form_of(lite_copy).entry(TASK)
    archive = (
        lite_copy.with_name(part) / (entry.data.inputs if part == "lite" else entry.data.references).path
    )
    raw = bytearray(archive.read_bytes())
    raw[len(raw) // 2] ^= 1
    archive.write_bytes(raw)
    with pytest.raises(ReleaseError, match=r"is not the file that release\.json lists"):
        download_release(Release.LITE, str(lite_copy), tmp_path / "data", tasks=(TASK,))
    assert not (tmp_path / "data" / "lite" / TASK).exists()
    assert downloaded(tmp_path / "data" / "lite") is None


def reseal(folder: Path, path: str, archive: bytes) -> None:
    """Put another archive in and let both parts' ``release.json`` say so."""
    raw = json.loads((folder / "release.json").read_text())
    for entry in raw["tasks"]:
        for found in (
            entry["package"],
            *([entry["data"]["inputs"], entry["data"]["references"]] if entry["data"] else []),
        ):
            if found["path"] == path:
                found |= {"sha256": hashlib.sha256(archive).hexdigest(), "bytes": len(archive)}
                (folder / path).write_bytes(archive)
    for part in (folder, folder.with_name(f"{folder.name}-references")):
        (part / "release.json").write_text(json.dumps(raw))


def archive_with(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = kind, target, 1 if kind == tarfile.REGTYPE else 0
        tar.addfile(info, io.BytesIO(b"x"))
    return out.getvalue()


HOSTILE = {
    "a path that leads out": archive_with("../../escaped"),
    "a path from the root": archive_with("/escaped"),
    "a symbolic link": archive_with("public/x", tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": archive_with("public/x", tarfile.LNKTYPE, "manifest.json"),
    "a device": archive_with("public/x", tarfile.CHRTYPE),
    "a file that no manifest lists": archive_with("public/case-1/extra.png"),
    "no archive": b"<html>busy</html>" * 100,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_archive_of_a_hostile_release_writes_nothing_outside(lite_copy, kind, tmp_path):
    reseal(lite_copy, f"data/{TASK}.tar", HOSTILE[kind])
    with pytest.raises(ReleaseError) as caught:
        download_release(Release.LITE, str(lite_copy), tmp_path / "data", tasks=(TASK,))
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("escaped"))
    assert not (tmp_path / "data" / "lite" / TASK).exists()


def test_references_of_another_version_are_refused(lite_copy, tmp_path):
    other = lite_copy.with_name("lite-references") / "release.json"
    other.write_text(other.read_text() + "\n")
    with pytest.raises(ReleaseError, match="another version"):
        download_release(Release.LITE, str(lite_copy), tmp_path / "data", tasks=(TASK,))


def test_data_already_there_that_are_others_are_not_replaced(lite, lite_data, tmp_path):
    mine = shutil.copytree(lite_data / "lite" / TASK, tmp_path / "lite" / TASK)
    (mine / MANIFEST_NAME).write_text("{}")
    with pytest.raises(ReleaseError, match="holds other data than the release"):
        download_release(Release.LITE, str(lite), tmp_path, tasks=(TASK,))
    assert (mine / MANIFEST_NAME).read_text() == "{}"


def test_a_release_that_changed_in_place_is_not_mixed_with_what_was_downloaded(lite_copy, tmp_path):
    download_release(Release.LITE, str(lite_copy), tmp_path / "data", tasks=(TASK,))
    out = io.BytesIO()
    with gzip.GzipFile("", "wb", fileobj=out, mtime=0) as packed:
        write_tar([("automedbench-task/task.json", b"{}")], packed)
    reseal(lite_copy, "tasks/vqa/medxpertqa-mm-task.tar.gz", out.getvalue())
    with pytest.raises(ReleaseError, match="the release has changed"):
        ensure_released(Release.LITE, "medxpertqa-mm-task", tmp_path / "data", None)


# --- from the Hub ---


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.fixture
def hub_release(hub, lite):
    """The Lite release on a Hub, its references gated; (repository, commit)."""
    commit = hub.put("bench/lite", files(lite))
    hub.put("bench/lite-references", files(lite.with_name("lite-references")), gated=True)
    return "bench/lite", commit


def hf_datasets_command(hub, home, *arguments: str, token: str | None = "hf_writer"):
    return subprocess.run(
        [sys.executable, "-m", "hf_datasets", *arguments],
        env=hub.environment(home, token),
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_release_comes_from_the_hub_at_a_pinned_commit(hub, hub_release, tmp_path):
    repo, commit = hub_release
    hub.put(repo, {"release.json": b"{}"})  # a later commit that broke it
    done = hf_datasets_command(
        hub, tmp_path, "download-release", "lite", "--from", repo, "--revision", commit, "--task", TASK,
        "--data", str(tmp_path / "data"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert revision_of(tmp_path / "data" / "lite" / TASK) == commit
    assert (
        downloaded(tmp_path / "data" / "lite").references_revision
        == hub.history("bench/lite-references")[0].oid
    )
    assert not list((tmp_path / "data" / "lite").glob(".download-*"))


def test_a_data_folder_keeps_to_its_commits_when_both_parts_move_on(hub, hub_release, tmp_path):
    repo, commit = hub_release
    arguments = ("download-release", "lite", "--from", repo, "--task", TASK, "--data", str(tmp_path / "data"))
    assert hf_datasets_command(hub, tmp_path, *arguments).returncode == 0
    for part in (repo, f"{repo}-references"):
        hub.put(part, {"release.json": b"{}"})
    code = (
        "from pathlib import Path; from hf_datasets.release_download import ensure_released, revision_of; "
        "from tasks.names import Release; "
        f"data = Path({str(tmp_path / 'data')!r}); "
        "print(revision_of(ensure_released(Release.LITE, 'medxpertqa-mm-task', data, None)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=hub.environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == commit, done.stderr


def test_without_access_to_the_references_the_error_says_how_to_get_it(hub, hub_release, tmp_path):
    done = hf_datasets_command(
        hub, tmp_path, "download-release", "lite", "--from", hub_release[0], "--task", TASK,
        "--data", str(tmp_path / "data"), token="hf_reader",
    )  # fmt: skip
    assert done.returncode == 3
    assert "bench/lite-references is gated: ask for access" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data" / "lite" / TASK).exists()
