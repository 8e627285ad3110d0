"""Whole runs through the command line: what the record says of requests, and what a killed runner leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from evaluator.files import sha256_file
from hf_datasets.records import load_record
from runner.egress.ledger import read_ledger
from runner.sandbox import all_backends
from runner.scratch import PREFIX, reap_scratch

REPOSITORY = Path(__file__).parents[3]
TASK = "vqa-kvasir-task"
FETCH = (
    "import urllib.request as u, urllib.error as e\n"
    "def fetch(url):\n"
    "    try: print(u.urlopen(url, timeout=20).status)\n"
    "    except e.HTTPError as error: print(error.code, error.read().decode())\n"
    "    except OSError as error: print(error)\n"
)
BACKENDS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]
pytestmark = pytest.mark.slow


class Runs:
    """Runs of a scripted agent in one sandbox."""

    def __init__(self, place: Path, data: Path, sandbox: str) -> None:
        self.place = place
        self.data = data
        self.sandbox = sandbox
        self.folder = place / "runs" / TASK / "lite" / "scripted" / "r00"

    def arguments(self, *codes: str, network: str | None = None) -> list[str]:
        calls = [("execute_code", {"language": "python", "code": code}) for code in codes]
        calls += [("submit_results", {"summary": "done"})] * 2
        trace = self.place / "recorded.jsonl"
        with trace.open("w") as file:
            for turn, (name, arguments) in enumerate(calls, 1):
                call = {"id": f"c{turn}", "name": name, "arguments": json.dumps(arguments)}
                file.write(json.dumps({"type": "reply", "seq": turn, "turn": turn, "calls": [call]}) + "\n")
        profiles = self.place / "agents.yaml"
        profiles.write_text(json.dumps({"agents": {"scripted": {"kind": "replay", "trace": str(trace)}}}))
        return [
            sys.executable, "-m", "runner", "run", "--agent", "scripted", "--task", TASK,
            "--agents", str(profiles), "--runs-dir", str(self.place / "runs"), "--data", str(self.data),
            "--sandbox", self.sandbox, *(["--network", network] if network else []),
        ]  # fmt: skip

    def run(self, *codes: str, network: str | None = None, **environment):
        return subprocess.run(
            self.arguments(*codes, network=network),
            capture_output=True, text=True, timeout=300, cwd=REPOSITORY, env={**os.environ, **environment},
        )  # fmt: skip


def runs_in(tmp_path, shared_folder, name):
    found = next(one for one in all_backends() if one.name == name).available()
    if not found.ok:
        (pytest.fail if os.environ.get("AUTOMEDBENCH_REQUIRE_SANDBOXES") else pytest.skip)(found.detail)
    return Runs(tmp_path, shared_folder / "data", name)


@pytest.fixture(params=BACKENDS)
def runs(request, tmp_path, shared_folder):
    return runs_in(tmp_path, shared_folder, request.param)


@pytest.fixture
def bubblewrap_runs(tmp_path, shared_folder):
    return runs_in(tmp_path, shared_folder, "bubblewrap")


def test_the_record_says_what_was_asked_for_and_the_log_is_sealed(runs, package_index):
    """The allowlist is the default; its log lies beside the trace."""
    done = runs.run(
        FETCH + "fetch('http://package-index/simple/tinywheel/')\n"
        "fetch('http://huggingface.co/datasets/SimulaMet-HOST/Kvasir-VQA/resolve/main/x')\n"
        "fetch('http://example.com/')"
    )
    assert done.returncode == 0, done.stderr
    record, log = load_record(runs.folder / "record.json"), runs.folder / "downloads.jsonl"
    requests = {one.host: one for one in read_ledger(log)}  # a line is written when its connection has ended
    assert {host: one.verdict for host, one in requests.items()} == {
        "package-index": "allowed",
        "huggingface.co": "refused",
        "example.com": "refused",
    }
    assert record.network == "allowlist"
    assert (record.downloads, record.downloaded_bytes) == (1, requests["package-index"].received)
    assert record.downloaded_bytes > 50
    assert record.flags == ("label_source_asked",)
    assert record.downloads_sha256 == sha256_file(log)
    answers = (runs.folder / "trace.jsonl").read_text()
    assert "is the data set of this task and is not reachable during a run" in answers

    log.write_text(log.read_text().replace('"refused"', '"allowed"'))
    again = subprocess.run(
        [sys.executable, "-m", "runner", "regrade", str(runs.folder), "--data", str(runs.data)],
        capture_output=True, text=True, cwd=REPOSITORY, check=False,
    )  # fmt: skip
    assert again.returncode == 2
    assert "downloads.jsonl is not the file" in again.stderr


@pytest.mark.bubblewrap
def test_without_the_allowlist_there_is_no_proxy_and_no_log(bubblewrap_runs):
    done = bubblewrap_runs.run(
        "import os; print([n for n in os.environ if 'prox' in n.lower()], os.path.exists('/opt/egress'))",
        network="none",
    )
    assert done.returncode == 0, done.stderr
    assert "[] False" in (bubblewrap_runs.folder / "trace.jsonl").read_text()
    assert not (bubblewrap_runs.folder / "downloads.jsonl").exists()
    record = load_record(bubblewrap_runs.folder / "record.json")
    assert (record.network, record.downloads, record.downloads_sha256) == ("none", 0, None)


@pytest.mark.bubblewrap
def test_what_cannot_be_had_is_said_in_one_line_before_anything_is_laid_out(bubblewrap_runs):
    done = bubblewrap_runs.run("pass", AUTOMEDBENCH_PACKAGE_INDEX="https://user:secret@mirror.example/simple")
    assert done.returncode == 2
    assert "holds a password" in done.stderr
    assert "secret" not in done.stderr
    assert not bubblewrap_runs.folder.exists()


@pytest.mark.bubblewrap
def test_a_killed_runner_leaves_no_proxy_and_its_folder_goes_with_the_next(bubblewrap_runs, tmp_path):
    place = tmp_path / "tmp"
    place.mkdir()
    code = (
        FETCH
        + "fetch('http://example.com/')\nimport time, pathlib; pathlib.Path('up').touch(); time.sleep(120)"
    )
    process = subprocess.Popen(
        bubblewrap_runs.arguments(code), cwd=REPOSITORY, env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        wait_until((bubblewrap_runs.folder / "workspace" / "up").exists)
        (folder,) = place.glob(f"{PREFIX}*")
        assert (folder / "inside" / "proxy.sock").exists()
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_until(lambda: str(folder) not in commands_and_mounts())
    assert folder.exists()
    assert reaped_in(place) == [f"folder {folder.name}"]
    assert not folder.exists()
    assert len(list(read_ledger(bubblewrap_runs.folder / "downloads.jsonl"))) == 1


def reaped_in(place: Path) -> list[str]:
    before, tempfile.tempdir = tempfile.tempdir, str(place)
    try:
        with_owner = place / f"{PREFIX}not:an:owner:x-y"
        with_owner.mkdir()
        (place / f"{PREFIX}a:1:2:3-link").symlink_to(place)
        found = reap_scratch()
        assert with_owner.exists()
        return found
    finally:
        tempfile.tempdir = before


def commands_and_mounts() -> str:
    text = ""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text += (entry / "mountinfo").read_text()
            except OSError:
                continue
    return text


def wait_until(true, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
