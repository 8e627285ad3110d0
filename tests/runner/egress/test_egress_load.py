"""Fifty cells at once on this machine, each with a model behind a server and a request through its own proxy."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from hf_datasets.records import load_record
from runner.cell import Cell
from runner.egress.ledger import read_ledger
from runner.execute import Options, run_cell
from runner.sandbox import choose_backend
from runner.sandbox.base import SandboxUnavailable
from tasks.schema import Release, Tier

sys.path.insert(0, str(Path(__file__).parents[1] / "agents"))
from scripted_server import ScriptedServer, execute, submit, whole

CELLS = 50
TASK = "ldct-denoising-task"
FETCH = (
    'python3 -IS -c \'import socket; s = socket.create_connection(("127.0.0.1", 3128), 60); '
    's.sendall(b"GET http://package-index/simple/tinywheel/ HTTP/1.1\\r\\nHost: package-index\\r\\n\\r\\n"); '
    "print(s.recv(300).split()[1])'"
)


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_fifty_cells_at_once_and_none_fails(
    tmp_path, shared_folder, staged_phantom, package_index, monkeypatch
):
    try:
        choose_backend("bubblewrap")
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))
    staged_phantom(TASK)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def answer(request):
        """By what the model has seen so far, for the cells share the server."""
        turn = sum(message["role"] == "assistant" for message in request.body["messages"])
        return whole("", [execute(FETCH, language="bash") if turn == 0 else submit(f"s{turn}")])

    with ScriptedServer([answer] * (4 * CELLS)) as server:
        profile = {"kind": "chat", "model": "m", "base_url": server.url, "context_tokens": 100_000}
        agents = tmp_path / "agents.yaml"
        agents.write_text(yaml.safe_dump({"agents": {"tester": profile}}))
        options = Options(tmp_path / "runs", shared_folder / "data", "bubblewrap", agents_file=agents)
        cells = [Cell(TASK, Tier.LITE, Release.PHANTOM, "tester", repeat) for repeat in range(CELLS)]
        with ThreadPoolExecutor(CELLS) as pool:
            outcomes = list(pool.map(lambda cell: run_cell(cell, options), cells))
    assert {outcome.state for outcome in outcomes} == {"scored"}
    for outcome in outcomes:
        record = load_record(outcome.folder / "record.json")
        assert record.end_reason == "submitted"
        assert record.downloads == 1
        (request,) = read_ledger(outcome.folder / "downloads.jsonl")
        assert (request.host, request.verdict) == ("package-index", "allowed")
        assert '"output":"b\'200\'' in (outcome.folder / "trace.jsonl").read_text()
    assert package_index.asked.count("/simple/tinywheel/") == CELLS
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("egress")]
