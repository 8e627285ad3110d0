"""Suppose that a submission gained control of the evaluator: it still sees one case list and can write one folder."""

from __future__ import annotations

import json

import pytest
from attempts import DRIVER, bash, python
from test_sandbox_attempts import snapshot

from runner.evaluate import EvaluationFailed, evaluate
from runner.sandbox import SandboxSpec
from tasks import load_task
from tasks.manifest import load_manifest

ATTEMPTS = [
    *python(
        "evaluator",
        change_reference="import glob; open(glob.glob('/data/private/*/*')[0], 'a').write('x')",
        add_reference="open('/data/private/x', 'w')",
        change_input="import glob; open(glob.glob('/data/public/*/*')[0], 'a').write('x')",
        change_manifest="open('/data/manifest.json', 'a').write('x')",
        change_submission="open('/submission/x', 'w')",
        change_metric="open('/opt/automedbench/evaluator/stages.py', 'a').write('x')",
        change_packages="open('/opt/site/sitecustomize.py', 'w')",
        tell_the_service="import socket; socket.create_connection(('127.0.0.1', PORT), 2)",
        tell_the_host="import socket; socket.create_connection(('HOSTIP', PORT), 2)",
        tell_the_world="import socket; socket.create_connection(('192.0.2.1', 443), 2)",
        resolve="import socket; print(socket.getaddrinfo('example.org', 80))",
        runner="import runner",
        engine="import socket; socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
        root="import os; os.setuid(0)",
        key="import os; print([k for k in os.environ if 'KEY' in k or 'TOKEN' in k]); raise SystemExit(1)",
    ),
    *bash(
        "evaluator",
        mount="mount -t tmpfs none /mnt",
        workspace="ls /workspace/outputs",
        trace="cat /data/../trace.jsonl",
    ),
]


class Asked(Exception):
    """Carries the sandbox that the runner wanted for its evaluator."""


class Listening:
    """A back end that makes nothing, and tells what it was asked for."""

    name = "listening"

    def create(self, spec: SandboxSpec) -> None:
        raise Asked(spec)


@pytest.fixture(scope="module")
def outcome(backend, canary, staged_phantom, tmp_path_factory):
    data = staged_phantom("vqa-rad-task")
    root = tmp_path_factory.mktemp("evaluation")
    (root / "submission").mkdir()
    (root / "submission").chmod(0o755)
    before = snapshot(data), snapshot(root / "submission")
    results: dict[str, tuple[int, str]] = {}

    class Trying(Listening):
        def create(self, spec: SandboxSpec) -> None:
            asked = [
                (
                    one.id,
                    one.language,
                    one.code.replace("PORT", str(canary.port)).replace("HOSTIP", canary.address),
                )
                for one in ATTEMPTS
            ]
            with backend.create(spec) as sandbox:
                driver = DRIVER.replace("/workspace/", "/out/")
                done = sandbox.exec(["python3", "-c", driver], deadline=120, stdin=json.dumps(asked).encode())
                assert done.exit_code == 0, done.output
                results.update(json.loads(sandbox.get("/out/results.json")))
            raise EvaluationFailed("enough seen")

    task, manifest = load_task("vqa-rad-task"), load_manifest(data)
    with pytest.raises(EvaluationFailed):
        evaluate(Trying(), "redteam", task, manifest, data, root / "submission", root / "scratch")
    assert (snapshot(data), snapshot(root / "submission")) == before
    return results


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_the_evaluator_cannot_be_turned(outcome, canary, attempt):
    code, output = outcome[attempt.id]
    assert code not in (0, None), output
    assert canary.token not in output
    assert "SyntaxError" not in output
    if attempt.name == "key":
        assert output == "[]\n"
