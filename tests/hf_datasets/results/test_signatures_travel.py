"""A signature goes to the Hub beside its record and comes back; who asks for signers gets signed records alone."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import pytest
from run_maker import make_record, make_run, scores
from typer.testing import CliRunner

from hf_datasets.arrow import RUNS
from hf_datasets.cli import app
from hf_datasets.publish import publication
from hf_datasets.records import dump_record
from hf_datasets.redact import Redactor
from hf_datasets.results.compact import compact
from hf_datasets.results.dry_run import plan
from hf_datasets.results.layout import is_stray_record, parts, record_of_signature
from hf_datasets.results.pull import pull
from hf_datasets.results.read import read_results
from hf_datasets.results.receipt import as_json
from hf_datasets.results.tables import read_part, to_parquet
from hf_datasets.results.verify import verify
from hf_datasets.signing import sign_record

REPO = "demo/results"


def run_id(number):
    return make_record(number).run_id


def record_name(number):
    return f"records/2026/{run_id(number)}.json"


def signature_name(number):
    return f"{record_name(number)}.sig"


@pytest.fixture
def allowed(ssh_keys, tmp_path):
    path = tmp_path / "allowed"
    path.write_text(f'me@example.org namespaces="automedbench" {(ssh_keys / "mine.pub").read_text()}')
    return path


@pytest.fixture
def sign(ssh_keys, runs):
    """Sign the record of a run of ``runs``; the bytes of the signature."""

    def run(number, key="mine"):
        (folder,) = runs.glob(f"*/*/*/r{number:02d}")
        return sign_record(folder / "record.json", ssh_keys / key).read_bytes()

    return run


def left_out(done):
    return {problem.split(": ")[0]: problem.split(": ", 1)[1] for problem in done.problems}


# --- push ---


def test_a_signature_is_published_with_its_record_in_one_commit(hub, push, sign, runs, pulled):
    signature = sign(0)
    assert push(runs).complete
    files = hub.files(REPO)
    assert len(hub.history(REPO)) == 2
    assert files[signature_name(0)] == signature
    assert [path for path in files if path.endswith(".sig")] == [signature_name(0)]
    hub.requests.clear()
    folder = pulled()
    assert hub.count("GET .*/resolve/.*/records/2026/") == 0
    assert (folder / signature_name(0)).read_bytes() == signature
    assert not (folder / signature_name(1)).exists()
    assert verify(folder).differences == []


def test_a_signature_that_is_made_later_is_added_once(hub, push, sign, runs, client, pulled):
    push(runs)
    before = hub.files(REPO)
    made = {signature_name(number): sign(number) for number in range(2)}
    planned = plan(runs, client(), scores, pull_request=False)
    assert (planned.commits, set(planned.write) >= set(made)) == (1, True)
    outcome = push(runs)
    assert (sorted(outcome.signed), outcome.published) == (sorted(map(run_id, range(2))), {})
    after = hub.files(REPO)
    assert {path: after[path] for path in before} == before
    assert made.items() <= after.items()
    assert len(after) == len(before) + 3
    hub.requests.clear()
    again = push(runs)
    assert (again.signed, again.commits, hub.count("POST|PUT")) == ([], [], 0)
    hub.requests.clear()
    assert (pulled() / signature_name(1)).read_bytes() == made[signature_name(1)]
    assert hub.count("GET .*/resolve/.*/records/2026/") == 0


def test_compacting_keeps_the_signatures_packed(hub, push, sign, runs, client, pulled, allowed):
    push(runs)
    for number in range(5):
        sign(number)
    push(runs)
    compact(client())
    hub.requests.clear()
    folder = pulled(allowed_signers=allowed)
    assert hub.count("GET .*/resolve/.*/records/2026/") == 0
    assert hub.count("GET .*/resolve/.*/records/packed/") == 1
    assert (verify(folder, allowed).differences, verify(folder, allowed).signatures) == ([], 5)


def test_a_signature_over_other_bytes_than_the_published_ones_stays_here(hub, push, sign, runs):
    def secretive(folder):
        made = scores(folder)
        record = made.record.model_copy(update={"end_detail": "[redacted]"})
        return replace(made, record=record, record_bytes=dump_record(record).encode())

    sign(0)
    outcome = push(runs, secretive)
    assert outcome.complete
    assert "redacted" in as_json(outcome)["withheld"][run_id(0)][0]
    assert list(as_json(outcome)["withheld"]) == [run_id(0)]
    sign(1)
    assert set(as_json(push(runs, secretive))["withheld"]) == {run_id(0), run_id(1)}
    assert not [path for path in hub.files(REPO) if path.endswith(".sig")]


def test_a_secret_in_a_signed_record_costs_its_signature(hub, push, ssh_keys, tmp_path):
    secret = "sk-or-v1-0123456789abcdefghij"
    folder = make_run(tmp_path / "runs", 0, end_reason="agent_stop", end_detail=f"said {secret}")
    sign_record(folder / "record.json", ssh_keys / "mine")
    outcome = push(tmp_path / "runs", lambda run: publication(run, Redactor([secret]), scores_only=True))
    assert any("record.json.sig" in line for line in as_json(outcome)["withheld"][run_id(0)])
    assert secret.encode() not in hub.received()
    assert signature_name(0) not in hub.files(REPO)


@pytest.mark.parametrize("spoil", ["other record", "more than a signature", "link"])
def test_what_is_no_signature_of_the_record_is_not_sent(hub, push, sign, runs, tmp_path, spoil):
    signature = sign(0)
    (path,) = runs.glob("*/*/*/r00/record.json.sig")
    if spoil == "other record":
        path.write_bytes(sign(1))
    elif spoil == "more than a signature":
        path.write_bytes(signature + b"my diary\n")
    else:
        path.unlink()
        (tmp_path / "elsewhere").write_bytes(signature)
        path.symlink_to(tmp_path / "elsewhere")
    outcome = push(runs)
    assert len(outcome.published) == 5
    assert as_json(outcome)["withheld"][run_id(0)][0].startswith("record.json.sig: ")
    assert signature_name(0) not in hub.files(REPO)


def test_two_writers_of_one_signature_are_one(hub, push, sign, runs, client):
    push(runs)
    signature = sign(0)
    hub.before("POST .*/commit/", lambda: hub.put(REPO, {signature_name(0): signature}))
    outcome = push(runs)
    assert outcome.signed == [run_id(0)]
    assert len(hub.history(REPO)) == 3


# --- pull and verify ---


def test_records_that_no_allowed_signer_signed_are_named_and_left_out(
    hub, push, sign, runs, client, tmp_path, allowed
):
    for number in range(4):
        sign(number, "theirs" if number == 3 else "mine")
    push(runs)
    hub.put(REPO, {signature_name(1): sign(0), signature_name(2): b"junk", "records/packed/\x1b.json": b"{}"})
    done = pull(client(), tmp_path / "pulled", allowed_signers=allowed)
    assert done.records == 1
    why = {name: words for name, words in left_out(done).items() if name.endswith(".json")}
    assert set(why) == {record_name(number) for number in (1, 2, 3, 4)}
    assert "incorrect signature" in why[record_name(1)]
    assert "no listed signer" in why[record_name(2)]
    assert "no listed signer" in why[record_name(3)]
    assert why[record_name(4)] == "is not signed; left out"
    assert list(read_results(done.folder).runs.run_id) == [run_id(0)]
    assert set(read_results(done.folder).cases.frame.run_id) == {run_id(0)}
    assert verify(done.folder, allowed).differences == []
    whole = pull(client(), tmp_path / "whole")
    assert len(read_results(whole.folder).runs) == 5
    found = verify(whole.folder, allowed)
    assert found.signatures == 1
    assert len(found.differences) == 5
    assert all(line.isprintable() for line in found.differences)


def test_rows_come_from_signed_records_whatever_the_tables_say(
    hub, push, sign, runs, client, tmp_path, allowed
):
    for number in range(5):
        sign(number)
    push(runs)
    (part,) = parts(hub.files(REPO), "data/runs")
    table = read_part(hub.files(REPO)[part.path], RUNS, part.path).table
    place = table.column_names.index("overall")
    hub.put(REPO, {part.path: to_parquet(table.set_column(place, RUNS.field(place), [[1.0] * 5]))})
    assert set(read_results(pull(client(), tmp_path / "plain").folder).runs.overall) == {1.0}
    done = pull(client(), tmp_path / "pulled", allowed_signers=allowed)
    assert done.problems == ()
    found = read_results(done.folder).runs
    assert dict(zip(found.run_id, found.overall, strict=True)) == {
        run_id(number): make_record(number).overall for number in range(5)
    }


def test_an_unsigned_correction_takes_its_run_out(push, sign, runs, client, tmp_path, allowed):
    for number in range(5):
        sign(number)
    push(runs)
    (old,) = runs.glob("*/*/*/r00/record.json.sig")
    old.unlink()
    first = sha256(dump_record(make_record(0)).encode()).hexdigest()
    make_run(runs, 0, supersedes=first, harness_version="0.2.0")
    push(runs)
    done = pull(client(), tmp_path / "unsigned", allowed_signers=allowed)
    assert run_id(0) not in set(read_results(done.folder).runs.run_id)
    assert sorted(words.split(";")[0] for words in left_out(done).values()) == [
        "is not signed",
        "is signed, but the row of this run is of another record",
    ]
    assert verify(done.folder, allowed).differences == []
    sign(0)
    push(runs)
    done = pull(client(), tmp_path / "signed", allowed_signers=allowed)
    assert (done.records, done.problems) == (6, ())
    assert len(read_results(done.folder).runs) == 5
    assert verify(done.folder, allowed).differences == []


def test_a_signed_record_speaks_only_for_its_own_run_and_until_it_is_corrected(
    hub, push, sign, runs, client, tmp_path, allowed
):
    for number in range(5):
        sign(number)
    push(runs)
    before = hub.files(REPO)
    (old,) = parts(before, "data/runs")
    first = sha256(dump_record(make_record(0)).encode()).hexdigest()
    make_run(runs, 0, supersedes=first, harness_version="0.2.0")
    sign(0)
    push(runs)
    copied = {f"records/2026/better.json{end}": before[f"{record_name(1)}{end}"] for end in ("", ".sig")}
    rolled_back = {part.path: before[old.path] for part in parts(hub.files(REPO), "data/runs")}
    hub.put(REPO, copied | rolled_back)
    done = pull(client(), tmp_path / "pulled", allowed_signers=allowed)
    assert set(read_results(done.folder).runs.run_id) == {run_id(number) for number in range(1, 5)}
    assert left_out(done).pop("records/2026/better.json") == f"is the record of {run_id(1)}; left out"
    assert len([name for name in left_out(done) if run_id(0) in name]) == 2
    assert verify(done.folder, allowed).differences == []


def test_without_a_network_signatures_come_from_the_cache(push, sign, runs, client, tmp_path, allowed, hub):
    sign(0)
    push(runs)
    one = client()
    pull(one, tmp_path / "first")
    hub.fail(".*", status=0, times=99)
    done = pull(one, tmp_path / "second", allowed_signers=allowed)
    assert (done.from_cache, done.records) == (True, 1)


def test_paths_of_signatures():
    assert record_of_signature(signature_name(0)) == record_name(0)
    for odd in (record_name(0), "records/x.json.sig", f"{signature_name(0)}.sig", "data/runs/x.json.sig"):
        assert record_of_signature(odd) is None
    assert not is_stray_record(signature_name(0))
    assert is_stray_record("records/2026/x.sig")


# --- the command ---


@pytest.fixture
def command(hub, tmp_path, monkeypatch):
    from huggingface_hub import constants

    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_writer")
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


def test_from_a_signed_run_to_verified_results(command, sign, runs, tmp_path, allowed, monkeypatch):
    sign(0)
    assert command("push", runs, "--repo", REPO).exit_code == 0
    sign(1)
    later = command("push", runs, "--repo", REPO)
    assert (later.exit_code, "signature added: 1 of those" in later.stdout) == (0, True)
    out = tmp_path / "out"
    done = command("pull", REPO, "--out", out, "--allowed-signers", allowed)
    assert done.exit_code == 3
    assert done.stderr.count("problem: ") == 3
    assert f"problem: {record_name(2)}: is not signed; left out" in done.stderr
    checked = command("verify", out, "--allowed-signers", allowed)
    assert (checked.exit_code, "2 runs, 6 cases, 2 signatures" in checked.stdout) == (0, True)
    assert command("pull", REPO, "--out", out).exit_code == 0
    checked = command("verify", out, "--allowed-signers", allowed, "--json")
    assert (checked.exit_code, len(json.loads(checked.stdout)["differences"])) == (3, 3)
    assert command("verify", out).exit_code == 0
    for arguments in (["pull", REPO, "--out", out], ["verify", out]):
        missing = command(*arguments, "--allowed-signers", tmp_path / "nobody")
        assert (missing.exit_code, "expected a file of allowed signers" in missing.stderr) == (2, True)
    monkeypatch.setenv("PATH", str(tmp_path))
    bare = command("verify", out, "--allowed-signers", allowed)
    assert (bare.exit_code, bare.stderr) == (3, "error: ssh-keygen not found; install openssh-client\n")
