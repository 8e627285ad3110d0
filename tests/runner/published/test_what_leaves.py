"""Nothing secret and nothing that the terms keep back reaches the Hub: every byte that it received is looked at."""

from __future__ import annotations

import base64
import json

import pytest

from hf_datasets.redact import LEAST_PIECE

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]

KEY = "or-key-" + "7Qx2Lm9Rt4Vb8Zc1" * 3
TOKEN = "hf_" + "NeverConfiguredAnywhere12345"
PLANTED = (KEY, TOKEN)


def plant_everywhere(run) -> None:
    """Both secrets, in every place and every form in which a run could hold them."""
    arguments = {"language": "bash", "code": f'curl -H "Authorization: Bearer {KEY}" x\nexport HF={TOKEN}'}
    escaped = "".join(f"\\u{ord(c):04x}" for c in KEY)
    encoded = [base64.b64encode(b"x" * shift + KEY.encode() + b"yz").decode() for shift in range(3)]
    run.add_events(
        {"type": "reply", "turn": 90, "text": f"I saw {KEY}.", "calls": [
            {"id": "c", "name": "execute_code", "arguments": json.dumps(arguments)},
            {"id": "d", "name": "execute_code", "arguments": f'{{"code": "{escaped}'}]},
        {"type": "exec", "turn": 90, "call": "c", "language": "bash", "exit_code": 0, "seconds": 1, "output_bytes": 1,
         "output": f"env\nX_API_KEY={KEY}\n{' '.join(encoded)}\n" + KEY[:20]},
        {"type": "exec", "turn": 91, "call": "e", "language": "bash", "exit_code": 0, "seconds": 1, "output_bytes": 1,
         "output": KEY[20:] + f"\n{TOKEN[:9]} {TOKEN[9:]} /home/carol/data {KEY.encode().hex()} "
         + base64.b64encode(TOKEN.encode()).decode()},
        {"type": "files", "turn": 91, "call": "e", "changes": [
            {"path": f"notes-{KEY}.txt", "size": 1, "change": "created"}]},
    )  # fmt: skip
    judgement = json.loads((run.folder / "judgement.json").read_text())
    judgement["items"][0]["reason"] = f"plan.md names {KEY}"
    (run.folder / "judgement.json").write_text(json.dumps(judgement))
    run.seal(end_detail=f"the provider says: bad key {KEY}", price_source=f"list of {TOKEN}")


def forms_of(secret: str) -> list[bytes]:
    raw = secret.encode()
    shifted = [base64.b64encode(b"\0" * shift + raw).decode()[4:-4].encode() for shift in range(3)]
    return [raw, raw.hex().encode(), raw[: len(raw) // 2], raw[len(raw) // 2 :], *shifted]


def test_planted_secrets_never_reach_the_hub(run_copy, hub, command, everything_received):
    plant_everywhere(run_copy)
    done = command("hf_datasets", "push", run_copy.folder, "--repo", "lab/results", OPENROUTER_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    received = everything_received()
    assert run_copy.record()["run_id"].encode() in received
    for secret in PLANTED:
        for form in forms_of(secret):
            assert form not in received
        pieces = (secret[at : at + LEAST_PIECE].encode() for at in range(len(secret) - LEAST_PIECE + 1))
        assert not any(piece in received for piece in pieces)
    assert b"carol" not in received
    traces = [path for path in hub.files("lab/results") if path.startswith("traces/")]
    assert len(traces) == 1


def test_what_was_redacted_is_still_a_readable_run(run_copy, hub, command, tmp_path):
    import zstandard

    from evaluator.judge.judgement import Judgement
    from evaluator.trace import iter_trace
    from hf_datasets.records import parse_record

    plant_everywhere(run_copy)
    assert command("hf_datasets", "push", run_copy.folder, "--repo", "lab/results", A_KEY=KEY).returncode == 0
    files = hub.files("lab/results")
    (packed,) = (raw for path, raw in files.items() if path.startswith("traces/"))
    (tmp_path / "trace.jsonl").write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress(packed))
    before = (run_copy.folder / "trace.jsonl").read_text().count("\n")
    assert len(list(iter_trace(tmp_path / "trace.jsonl"))) == before
    (judgement,) = (raw for path, raw in files.items() if path.endswith("/judgement.json"))
    assert "[redacted:key]" in Judgement.model_validate_json(judgement).items[0].reason
    (record,) = (raw for path, raw in files.items() if path.startswith("records/2"))
    assert parse_record(record, "record").end_detail == "the provider says: bad key [redacted:key]"


@pytest.mark.parametrize("arguments", [["push", "--repo"], ["submit", "--to"]])
def test_a_secret_in_what_the_agent_handed_in_stops_the_run(
    arguments, run_copy, hub, command, everything_received
):
    hub.put("lab/results", {"README.md": b"results"})
    manifest = json.loads((run_copy.folder / "submission" / "manifest.json").read_text())
    manifest["others"] = [f"home/{KEY}"]
    (run_copy.folder / "submission" / "manifest.json").write_text(json.dumps(manifest))
    run_copy.seal()
    done = command("hf_datasets", arguments[0], run_copy.folder, arguments[1], "lab/results", A_KEY=KEY)
    assert KEY.encode() not in everything_received()
    assert KEY not in done.stdout + done.stderr
    if arguments[0] == "submit":  # outputs are sent, and cannot be changed
        assert done.returncode == 3
        assert "a file name in the workspace holds a secret" in done.stderr
        assert hub.count("POST .*/commit/") == 0


def as_release(run, release: str, task: str) -> None:
    """The same run, as if made on a real release of that task."""
    cell = json.loads((run.folder / "cell.json").read_text()) | {"release": release, "task": task}
    (run.folder / "cell.json").write_text(json.dumps(cell))
    report = json.loads((run.folder / "report.json").read_text()) | {"release": release, "task": task}
    (run.folder / "report.json").write_text(json.dumps(report))
    run.seal(release=release, task=task)


def leaving(run) -> list[bytes]:
    """Everything of a run that shows more than scores, in pieces that compression could not hide."""
    answers = [path.read_bytes() for path in run.folder.glob("submission/*/*")]
    pictures = [path.read_bytes() for path in run.folder.glob("previews/*")]
    assert answers
    assert pictures
    return [*shown_by(run), *answers, *pictures]


def shown_by(run) -> list[bytes]:
    """Lines that the agent's commands printed, long enough to be found again."""
    trace = [json.loads(line) for line in (run.folder / "trace.jsonl").read_text().splitlines()]
    lines = [line for event in trace if event["type"] == "exec" for line in event["output"].splitlines()]
    found = [line.strip().encode() for line in lines if len(line.strip()) > 30]
    assert found
    return found


def test_a_task_without_redistribution_publishes_scores_only(run_copy, hub, command, everything_received):
    as_release(run_copy, "full", "vindr-cxr-det-task")
    run_copy.seal(end_reason="policy", end_detail="ran: python train.py --on image.png")
    done = command("hf_datasets", "push", run_copy.folder, "--repo", "lab/results")
    assert done.returncode == 0, done.stderr
    paths = set(hub.files("lab/results")) - {"README.md", ".gitattributes"}
    assert {path.split("/")[0] for path in paths} == {"records", "data"}
    received = everything_received()
    assert [piece for piece in leaving(run_copy) if piece in received] == []
    assert b"train.py" not in received
    dry = command("hf_datasets", "push", run_copy.folder, "--repo", "lab/others", "--dry-run")
    assert "redistribution of vindr-cxr-det-task on release full is 'none'" in dry.stdout


def test_a_task_with_derived_redistribution_sends_outputs_and_nothing_that_shows_the_input(
    run_copy, hub, command, everything_received
):
    hub.put("lab/results", {"README.md": b"results"})
    as_release(run_copy, "full", "dentex-det-task")
    done = command("hf_datasets", "submit", run_copy.folder, "--to", "lab/results")
    assert done.returncode == 0, done.stderr
    paths = hub.files("lab/results", "refs/pr/1")
    assert {path.split("/")[0] for path in paths if "/" in path} == {
        "records",
        "data",
        "outputs",
        "submissions",
    }
    received = everything_received()
    assert [line for line in shown_by(run_copy) if line in received] == []
    assert not any(path.read_bytes() in received for path in run_copy.folder.glob("previews/*"))


def test_a_patient_in_a_trace_blocks_the_run_by_place_and_kind(run_copy, hub, command, everything_received):
    run_copy.add_events(
        {"type": "exec", "turn": 90, "call": "c", "language": "bash", "exit_code": 0, "seconds": 1, "output_bytes": 9,
         "output": "(0010,0010) Patient's Name                      PN: 'DOE^JANE'"}
    )  # fmt: skip
    run_copy.seal()
    done = command("hf_datasets", "push", run_copy.folder, "--repo", "lab/results")
    assert done.returncode == 3
    assert "trace.jsonl:" in done.stdout
    assert "patient name" in done.stdout
    assert "DOE" not in done.stdout + done.stderr
    assert b"DOE" not in everything_received()
    assert not [path for path in hub.files("lab/results") if path.startswith("records/")]
    again = command("hf_datasets", "push", run_copy.folder, "--repo", "lab/results", "--scores-only")
    assert again.returncode == 0, again.stderr
    assert b"DOE" not in everything_received()
    assert [path for path in hub.files("lab/results") if path.startswith("records/2")]


def test_a_trace_that_is_not_the_sealed_one_is_not_published(run_copy, hub, command):
    run_copy.add_events({"type": "elided", "turn": 1, "calls": []})
    done = command("hf_datasets", "push", run_copy.folder, "--repo", "lab/results")
    assert done.returncode == 3
    assert "is not the file that record.json was sealed over" in done.stdout + done.stderr
