"""Downloads against a server on the loopback: whole, interrupted, wrong, refused; and what is said where nobody may."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hub_standin import HubStandIn
from typer.testing import CliRunner

from hf_datasets import fetch as fetching
from hf_datasets.cli import app
from hf_datasets.fetch import FetchError, Remote, download, fetch, is_fetchable, remotes, steps
from tasks.registry import all_tasks, load_task
from tasks.schema import Download, HubFiles, RecordFiles, Task

CONTENT = bytes(range(256)) * 400


class Server(ThreadingHTTPServer):
    """Serves ``CONTENT`` at any path, in the manner that the test asks for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.break_off_after: list[int] = []
        self.ranges = True
        self.codes: list[int] = []
        self.asked: list[str | None] = []
        self.listing: object = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append(wanted)
        if self.path.startswith("/api/"):
            self._send(200, json.dumps(server.listing).encode())
        elif server.codes:
            self._send(server.codes.pop(0), b"")
        else:
            self._content(wanted)

    def _content(self, wanted: str | None) -> None:
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        if start >= len(CONTENT):
            self._send(416, b"")
            return
        self._send(206 if start else 200, CONTENT[start:])

    def _send(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = self.server.break_off_after.pop(0) if self.server.break_off_after else len(body)
        self.wfile.write(body[:cut])
        self.close_connection = True


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.0)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def remote(server: Server, **changes: object) -> Remote:
    stated = {"bytes": len(CONTENT), "checksum": ("sha256", hashlib.sha256(CONTENT).hexdigest())}
    return Remote(f"{server.address}file.bin", "file.bin", **(stated | changes))  # type: ignore[arg-type]


def quiet(_: str) -> None:
    pass


def test_a_file_comes_whole_and_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    path = download(remote(server), tmp_path, quiet)
    assert path.read_bytes() == CONTENT
    lines: list[str] = []
    assert download(remote(server), tmp_path, lines.append) == path
    assert lines == ["file.bin: already there"]
    assert server.asked == [None]
    assert [path.name for path in tmp_path.iterdir()] == ["file.bin"]


def test_what_breaks_off_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.break_off_after = [1000, 5000]
    assert download(remote(server), tmp_path, quiet).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", "bytes=6000-"]


def test_a_later_call_takes_up_what_an_earlier_one_left(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:777])
    assert download(remote(server), tmp_path, quiet).read_bytes() == CONTENT
    assert server.asked == ["bytes=777-"]


def test_a_whole_part_only_gets_its_name(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    assert download(remote(server), tmp_path, quiet).read_bytes() == CONTENT


def test_a_server_without_ranges_starts_afresh(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    (tmp_path / "file.bin.part").write_bytes(b"x" * 500)
    assert download(remote(server), tmp_path, quiet).read_bytes() == CONTENT


def test_busy_servers_are_asked_again_and_gone_files_are_not(server: Server, tmp_path: Path) -> None:
    server.codes = [503, 429]
    assert download(remote(server), tmp_path, quiet).read_bytes() == CONTENT
    server.codes = [404]
    with pytest.raises(FetchError, match="HTTP 404"):
        download(Remote(f"{server.address}gone", "gone"), tmp_path, quiet)
    assert len(server.asked) == 4


def test_a_server_that_never_finishes_is_left_with_the_part_kept(server: Server, tmp_path: Path) -> None:
    server.break_off_after = [100] * 10
    with pytest.raises(FetchError, match=r"broke off 4 times .*run the same command again"):
        download(remote(server), tmp_path, quiet)
    assert (tmp_path / "file.bin.part").stat().st_size == 400


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bytes": 5}, "expected 5 bytes, found 102400"),
        ({"checksum": ("md5", "0" * 32)}, "expected md5 000"),
    ],
)
def test_a_wrong_file_is_thrown_away(server: Server, tmp_path: Path, changes: dict, words: str) -> None:
    with pytest.raises(FetchError, match=words):
        download(remote(server, **changes), tmp_path, quiet)
    assert list(tmp_path.iterdir()) == []


def test_another_file_of_the_same_name_is_never_overwritten(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(b"mine")
    with pytest.raises(FetchError, match="move it away"):
        download(remote(server), tmp_path, quiet)
    assert (tmp_path / "file.bin").read_bytes() == b"mine"


# --- records, tasks, command line ---


def with_source(**parts: object) -> Task:
    task = load_task("heart-seg-task")
    source = task.source.model_copy(update={"downloads": (), "hub": None, "record": None} | parts)
    return task.model_copy(update={"source": source})


def zenodo_entry(server: Server, name: str) -> dict:
    digest = hashlib.md5(CONTENT).hexdigest()
    return {
        "key": name,
        "size": len(CONTENT),
        "checksum": f"md5:{digest}",
        "links": {"self": f"{server.address}{name}"},
    }


def test_a_record_names_its_files_sizes_and_checksums(server: Server, tmp_path: Path) -> None:
    record = RecordFiles(site="zenodo", record=7, files=("b*.zip",))
    server.listing = {"files": [zenodo_entry(server, name) for name in ("a.zip", "b1.zip", "b2.zip")]}
    apis = {"zenodo": f"{server.address}api/"}
    files = fetch(with_source(record=record), tmp_path / "raw", quiet, apis)
    assert [path.name for path in files] == ["b1.zip", "b2.zip"]
    assert all(path.read_bytes() == CONTENT for path in files)


def test_figshare_is_read_in_its_own_form(server: Server) -> None:
    digest = hashlib.md5(CONTENT).hexdigest()
    entry = {"name": "t.csv", "size": 9, "computed_md5": digest, "download_url": f"{server.address}1"}
    server.listing = {"files": [entry]}
    task = with_source(record=RecordFiles(site="figshare", record=1, files=("t.csv",)))
    found = remotes(task, {"figshare": f"{server.address}api/"})
    assert found == [Remote(f"{server.address}1", "t.csv", 9, ("md5", digest))]


@pytest.mark.parametrize(
    ("listing", "words"),
    [
        ({"files": []}, "expected a file such as b"),
        ({}, "expected a list of files"),
        ([], "expected a list of files"),
        (
            {"files": [{"key": "../b.zip", "size": 1, "checksum": "md5:0", "links": {"self": "x"}}]},
            "file name",
        ),
    ],
)
def test_a_record_that_is_not_what_it_was(server: Server, listing: object, words: str) -> None:
    server.listing = listing
    task = with_source(record=RecordFiles(site="zenodo", record=7, files=("b.zip",)))
    with pytest.raises(FetchError, match=words):
        remotes(task, {"zenodo": f"{server.address}api/"})


def test_named_files_are_fetched(server: Server, tmp_path: Path) -> None:
    digest = hashlib.sha256(CONTENT).hexdigest()
    file = Download(url=f"{server.address}x", name="x.tar", sha256=digest, bytes=len(CONTENT))
    assert fetch(with_source(downloads=(file,)), tmp_path, quiet) == [tmp_path / "x.tar"]


def test_the_hub_is_asked_for_a_dataset_at_its_revision(hub: HubStandIn, tmp_path: Path, monkeypatch) -> None:
    resolve = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", resolve)
    pinned = hub.put("a/b", {"data/test-0.parquet": b"x", "data/train-0.parquet": b"y"})
    hub.put("a/b", {"data/test-0.parquet": b"newer"})
    task = with_source(hub=HubFiles(repo="a/b", files=("data/test-*.parquet",)), revision=pinned)
    (file,) = fetch(task, tmp_path / "raw", quiet)
    assert file == tmp_path / "raw/data/test-0.parquet"
    assert file.read_bytes() == b"x"
    missing = with_source(hub=HubFiles(repo="a/none", files=("*",)), revision=pinned)
    with pytest.raises(FetchError, match="a/none: no such dataset repository"):
        fetch(missing, tmp_path / "none", quiet)


def test_without_a_network_one_line_says_who_was_not_reached(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("hf_datasets.hub.BASE_SECONDS", 0.0)
    nobody = Remote("http://127.0.0.1:9/file.bin", "file.bin")
    unknown = Remote("http://no.such.host.invalid/file.bin", "file.bin")
    for one, host in ((nobody, "127.0.0.1:9"), (unknown, "no.such.host.invalid")):
        with pytest.raises(FetchError, match=f"^no network reached {host}; check the connection") as caught:
            download(one, tmp_path, quiet)
        assert "\n" not in str(caught.value)
    task = with_source(record=RecordFiles(site="zenodo", record=1, files=("*",)))
    with pytest.raises(FetchError, match=r"^no network reached 127\.0\.0\.1:9; check"):
        fetch(task, tmp_path, quiet, {"zenodo": "http://127.0.0.1:9/api/"})
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    task = with_source(hub=HubFiles(repo="a/b", files=("*",)))
    with pytest.raises(FetchError, match=r"^no network reached 127\.0\.0\.1:9"):
        fetch(task, tmp_path / "empty", quiet)


def test_what_needs_an_agreement_is_never_fetched_and_its_steps_are_printed(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fetch", "vindr-cxr-det-task", "--out", str(tmp_path / "raw")])
    assert done.exit_code == 3
    for words in ("physionet.org", "CITI", "sharing is prohibited", "nothing but scores", "stage vindr-cxr"):
        assert words in done.output
    assert not (tmp_path / "raw").exists()


def test_an_unknown_task_is_told_its_neighbour(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fetch", "hart-seg-task", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "did you mean 'heart-seg-task'" in done.output


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.id)
def test_every_task_is_fetched_or_explained(task: Task) -> None:
    text = steps(task)
    assert str(task.source.url) in text
    assert task.source.license in text
    if is_fetchable(task):
        assert task.source.access == "open"
    named = task.source.downloads or task.source.record or task.source.hub
    assert not named or task.source.access == "open"
