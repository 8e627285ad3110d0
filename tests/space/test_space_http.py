"""The Space over HTTP: downloads, files of a run, the JSON endpoints; hostile names everywhere."""

from __future__ import annotations

import io
import json
from urllib.parse import quote

import pandas as pd
import pytest
from fastapi.testclient import TestClient

from hf_datasets.records import dump_record
from space.app import build_files
from space.board import Filter
from space.boardpage import Asked
from space.boardtable import board_table
from space.columns import COLUMNS
from space.downloads import written
from space.pages import leaderboard
from space.shell import status
from space.site import Site
from space.source import FolderSource

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def client(results, record):
    def make(*records):
        folder = results(*(records or (record(), record(agent="two", tier="standard", overall=0.9))))
        data = FolderSource(folder).read()
        client = TestClient(build_files(Site(lambda: data)))
        client.folder, client.data = folder, data
        return client

    return make


def test_a_board_and_its_runs_in_every_format(client):
    web = client()
    csv = pd.read_csv(io.BytesIO(web.get("/download/board.csv").content))
    rows = web.get("/download/board.json").json()
    parquet = pd.read_parquet(io.BytesIO(web.get("/download/board.parquet").content))
    assert list(csv["agent"]) == [row["agent"] for row in rows] == list(parquet["agent"])
    assert rows[0]["overall"] is None  # neither agent ran both cells
    runs = web.get("/download/runs.json", params={"agent": "two"}).json()
    assert [(run["agent"], run["overall"], run["status"]) for run in runs] == [("two", 0.9, "self-reported")]
    answer = web.get("/download/runs.csv", params={"tier": "lite"})
    assert answer.headers["content-disposition"] == 'attachment; filename="automedbench-runs.csv"'
    assert list(pd.read_csv(io.BytesIO(answer.content))["agent"]) == ["one"]


def test_a_download_that_there_is_not_says_what_there_is(client):
    answer = client().get("/download/all.xlsx")
    assert answer.status_code == 404
    assert "board.csv" in answer.text


def test_a_spreadsheet_runs_nothing(record):
    table = pd.DataFrame({"agent": ["=HYPERLINK(1)"], "model": ["@SUM(1)"], "overall": [-0.5]})
    assert written(table, "csv").decode().splitlines()[1] == "'=HYPERLINK(1),'@SUM(1),-0.5"


def test_files_of_a_run_are_served_by_name_only(client, record):
    web = client()
    run_id = record().run_id
    folder = web.folder / "run-00000"
    (folder / "previews").mkdir()
    (folder / "previews" / "case-1.webp").write_bytes(b"RIFF")
    (folder / "workspace").mkdir()
    (folder / "workspace" / "plan.md").write_text("<script>alert(1)</script>")
    (folder / "workspace" / "secret.txt").write_text("x")
    picture = web.get(f"/files/{run_id}/previews/case-1.webp")
    assert (picture.content, picture.headers["content-type"]) == (b"RIFF", "image/webp")
    plan = web.get(f"/files/{run_id}/plan.md")
    assert plan.headers["content-type"].startswith("text/plain")
    assert "sandbox" in plan.headers["content-security-policy"]
    assert web.get(f"/files/{run_id}/record.json").json()["run_id"] == run_id
    for name in ("workspace/secret.txt", "../run-00001/record.json", "%2e%2e/run-00001/record.json", "previews/..",
                 "previews/%2e%2e%2frecord.json", "/etc/passwd", "trace.jsonl"):  # fmt: skip
        assert web.get(f"/files/{run_id}/{name}").status_code in (404, 405), name
    assert web.get(f"/files/{quote(EVIL)}/record.json").headers["content-type"].startswith("text/plain")


def test_a_view_in_the_query_goes_to_its_page(client):
    web = client()
    answer = web.get("/", params={"view": "run", "run": "a b&c"}, follow_redirects=False)
    assert answer.status_code == 307
    assert answer.headers["location"] == "./run?run=a+b%26c"
    assert web.get("/", params={"view": "//evil.example"}, follow_redirects=False).status_code == 404


def test_text_of_records_never_becomes_markup(results, record):
    """Agents' names are narrow by the record's form; models, reasons and folder names are not."""
    folder = results(record(model=EVIL), record(agent="two", model="b"))
    (folder / EVIL.replace("/", "")).mkdir()
    (folder / EVIL.replace("/", "") / "record.json").write_text(dump_record(record()).replace("one", EVIL))
    data = FolderSource(folder).read()
    board = next(iter(data.boards.values()))
    table = board.table().assign(agent=[f"{EVIL}{n}" for n in range(2)])
    shown = board_table(
        table, [column.key for column in COLUMNS], [EVIL], lambda agent: Site.link("agent", agent=agent), EVIL
    )
    for text in (shown, status(data), leaderboard._intervals(table)):
        assert "<img" not in text
        assert "&lt;img" in text


def test_the_endpoints_give_what_the_pages_show(space):
    from gradio_client import Client
    from gradio_client.exceptions import AppError

    client = Client(space.url(), verbose=False)
    board, published = client.predict(api_name="/boards")
    assert board["runs"] == 864
    rows = client.predict(board["board"], ["vqa"], [], ["lite"], [], "", "", api_name="/leaderboard")
    assert [row["agent"] for row in rows] == ["cirrus", "nimbus", "stratus"]
    assert "track_report" not in rows[0]
    assert client.predict(published["board"], api_name="/leaderboard")[0]["overall"] == 0.665
    with pytest.raises(AppError, match="no board 'mine'"):
        client.predict("mine", api_name="/leaderboard")
    runs = client.predict(board["board"], "nimbus", ["vqa"], [], ["lite"], 2, 5, api_name="/runs")
    assert len(runs) == 5
    assert {run["agent"] for run in runs} == {"nimbus"}
    whole = client.predict(runs[0]["run_id"], api_name="/run")
    assert len(whole["items"]) == 12
    assert client.predict("no-such-run", api_name="/run") == {}
    assert client.predict(api_name="/status")["problems"] == []
    json.dumps(rows, allow_nan=False)


def test_the_page_shows_the_call_that_gives_its_table(client):
    web = client()
    (board,) = web.data.boards.values()
    asked = Asked(web.data, board, Filter(tracks=("vqa",), since="2026-01-01"), "", {"cols": []})
    call = f"client.predict('{board.key}', ['vqa'], [], [], [], '2026-01-01', '', api_name=\"/leaderboard\")"
    assert call in leaderboard._api(asked).unescape()
