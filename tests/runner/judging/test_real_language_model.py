"""A real, very small language model judges one run through the real client and the schema. What it thinks is its own
affair; that question, form, answer and bookkeeping fit together is ours.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from evaluator.judge.notebook import write_notebook
from evaluator.judge.quoting import tokens
from evaluator.rubric import load_rubric
from runner.judge_endpoint import llm_judge
from runner.judges import JudgeProfile

FOLDER = Path(os.environ.get("AUTOMEDBENCH_JUDGE_MODEL") or Path.home() / ".cache/automedbench/judge-model")
REQUIRED = os.environ.get("AUTOMEDBENCH_REQUIRE_JUDGE_MODEL") == "1"

SERVE = """
import sys, time
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(sys.argv[2])
parameters.n_ctx = 8192
parameters.n_parallel = 1
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.use_jinja = True
server = xllamacpp.Server(parameters)
time.sleep(600)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def language_model():
    """Base URL of the model's server."""
    if not (FOLDER / "model.gguf").is_file():
        (pytest.fail if REQUIRED else pytest.skip)(f"no model in {FOLDER}: run .ci/judge-model PYTHON first")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(FOLDER / "model.gguf"), str(port)],
        env={**os.environ, "PYTHONPATH": str(FOLDER / "site")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_until_ready(process, f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(process, url):
    for _ in range(300):
        assert process.poll() is None, "the model's server did not start"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail("the model's server did not get ready")


@pytest.fixture
def profile(language_model):
    return JudgeProfile(
        model="SmolLM2-135M-Instruct",
        base_url=language_model,
        votes=1,
        pictures=False,
        evidence_tokens=1500,
        max_output_tokens=400,
        request_seconds=400,
        retries={"tries": 1},
        decoding={
            "seed": 1,
            "repeat_penalty": 1.3,
            "repeat_last_n": 256,
        },  # so small a model never ends otherwise
    )


def test_a_real_model_answers_in_the_form(profile, material):
    run = material("one-go")  # leaves two items to a reader
    rubric = load_rubric(run.assignment.track)
    judgement = llm_judge(profile, None).judge(run, rubric, run.assignment.tier)
    panel = judgement.panel
    assert panel.exchanges
    assert not any(exchange.error for exchange in panel.exchanges)
    assert panel.tokens_in > 500
    assert panel.tokens_out > 10
    whole = [exchange for exchange in panel.exchanges if exchange.finish == "stop"]
    assert whole, "every answer was cut off"
    for exchange in whole:
        answered = json.loads(exchange.reply)["items"]
        assert set(answered) <= {item.id for item in rubric.items}
        for opinion in answered.values():
            assert set(opinion) == {"reason", "evidence", "value"}
            assert opinion["value"] in (0, 0.5, 1)
    # Whatever it cited or decided: a value without valid evidence never counts.
    for item in judgement.items:
        assert (
            item.value is None
            or item.decided_by == "program"
            or item.votes
            or item.evidence
            or not item.value
        )
    assert type(judgement).model_validate_json(judgement.model_dump_json()) == judgement


def test_our_count_of_tokens_is_not_below_a_real_tokeniser(language_model, material):
    text = write_notebook(material("careful-standard")).text
    request = urllib.request.Request(
        language_model.removesuffix("/v1") + "/tokenize",
        data=json.dumps({"content": text}).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        counted = len(json.load(response)["tokens"])
    assert counted <= 1.3 * tokens(text)
    print(f"{counted} tokens by the model, {tokens(text)} by our count")
