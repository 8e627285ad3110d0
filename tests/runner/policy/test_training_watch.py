"""What counts as training, what follows from it, and what can never set it off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runner.policy
from evaluator.trace import Call, EndReason
from runner.policy import WARNING, PolicyWatch, policy_watch
from runner.policy.audit import KERAS_FITS, LOOP_TRAINS, TRAINER_TRAINS, training_signs
from runner.policy.watch import LEAST_STEPS, READ_BYTES, STEPS, parse_counts

HOOK = Path(runner.policy.__file__).parent / "hook"


def lines(**steps) -> bytes:
    return b"".join(json.dumps({"process": p, "steps": n}).encode() + b"\n" for p, n in steps.items())


class Channel:
    """What the framework reports, changed by the test between looks."""

    def __init__(self) -> None:
        self.data = b""
        self.watch = PolicyWatch(lambda: self.data)

    def look(self, **steps) -> list[str]:
        self.data += lines(**steps)
        return [
            sign.action for sign in self.watch.after_call("bash", "true") if sign.sign == "gradient_steps"
        ]


# --- from reports to consequences ---


def test_first_a_warning_then_the_end():
    channel = Channel()
    assert channel.look() == []
    assert channel.look(a=LEAST_STEPS) == ["warned"]
    assert channel.look() == []
    assert channel.look(b=LEAST_STEPS) == ["ended"]


def test_few_steps_are_no_training():
    channel = Channel()
    assert channel.look(a=LEAST_STEPS - 1) == []
    assert channel.look(b=LEAST_STEPS - 1) == []


def test_what_ran_on_when_the_warning_came_may_still_be_stopped():
    channel = Channel()
    assert channel.look(a=100) == ["warned"]
    assert channel.look(a=200) == ["noted"]  # the call that stops it
    assert channel.look(a=300) == ["ended"]


def test_a_new_process_after_the_warning_is_not_forgiven():
    channel = Channel()
    assert channel.look(a=100) == ["warned"]
    assert channel.look(a=200, b=100) == ["ended"]


def test_forgiveness_lasts_one_call():
    channel = Channel()
    channel.look(a=100)
    assert channel.look() == []
    assert channel.look(a=200) == ["ended"]


@given(st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([
    b'{"process": 1, "steps": 50}', b'{"process": "a", "steps": "50"}', b'{"process": "a", "steps": -5}',
    b"[]", b"null",
    b'{"process": "a"}', b'{"process": "a", "steps": 1e9}', b"[" * 100_000,
]))))  # fmt: skip
def test_what_is_no_report_says_nothing(parts):
    data = b"\n".join(
        part.replace(b"process", b"proces\xff") if part[:1] not in b"{[n" else part for part in parts
    )
    assert all(steps <= 0 for steps in parse_counts(data).values())


def test_reports_are_bounded():
    many = b"".join(lines(**{f"p{number}": 5}) for number in range(3000))
    assert len(parse_counts(many)) == 1000
    assert parse_counts(b'{"process": "a", "steps": 1' + b"0" * 50 + b"}") == {"a": 10**12}


# --- the hook, in a Python of its own ---


def counted(tmp_path, write_torch, code, **environment) -> dict[str, int]:
    write_torch(tmp_path)
    channel = tmp_path / STEPS
    subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PYTHONPATH": f"{HOOK}:{tmp_path}",
            "AUTOMEDBENCH_TRAINING_CHANNEL": str(channel),
            **environment,
        },
        check=True,
        timeout=60,
    )
    return parse_counts(channel.read_bytes()) if channel.exists() else {}


def test_steps_that_change_parameters_are_counted(tmp_path, write_torch, train):
    assert list(counted(tmp_path, write_torch, train(57)).values()) == [57]


@pytest.mark.parametrize(
    "code",
    [
        "{lr0}",  # steps that change nothing
        "import torch; model = torch.nn.Linear()",  # no step
        "import torch; o = torch.optim.SGD(torch.nn.Linear().parameters(), lr=1)\nfor _ in range(99): o.step()",
        # a field of displacements, an image that is optimised: no parameters of a model
        "import torch; t = [torch.Tensor([0.0]), torch.Tensor([1.0])]; o = torch.optim.SGD(t, lr=1)\n"
        "for _ in range(99):\n    for x in t: x.grad = [1.0]\n    o.step()",
        # one value that is calibrated
        "import torch; t = torch.nn.Parameter([1.0]); o = torch.optim.SGD([t], lr=1)\n"
        "for _ in range(99):\n    t.grad = [1.0]\n    o.step()",
        "print('optimizer.step() loss.backward() model.fit() fine-tuning')",
    ],
)
def test_what_is_no_training_is_not_counted(tmp_path, write_torch, train, code):
    assert counted(tmp_path, write_torch, code.replace("{lr0}", train(200, lr=0))) == {}


def test_a_channel_that_is_gone_or_closed_troubles_no_program(tmp_path, write_torch, train):
    for channel in ("/nonexistent/steps", str(tmp_path)):
        assert counted(tmp_path, write_torch, train(50), AUTOMEDBENCH_TRAINING_CHANNEL=channel) == {}


def test_a_torch_without_step_hooks_is_left_alone(tmp_path, write_torch, train):
    write_torch(tmp_path)
    old = tmp_path / "torch" / "optim" / "optimizer.py"
    code = (
        f"import pathlib; p = pathlib.Path({str(old)!r}); "
        "p.write_text(p.read_text().replace('def register_optimizer_step_pre_hook', 'def unknown'))\n"
    )
    assert counted(tmp_path, write_torch, code + train(50)) == {}


# --- text never counts ---

INNOCENT = [
    "# training loop: for x in data: loss.backward(); optimizer.step()",
    '"""fine-tune the model with optimizer.step() and loss.backward()"""',
    "text = 'for e in range(9): loss.backward(); optimizer.step()'",
    "open('train.py', 'w').write('for i in x:\\n    loss.backward()\\n    opt.step()')",
    "print('Trainer().train() model.compile(optimizer=1) model.fit(x)')",
    "model.eval(); model.train(False)",
    "import re; re.compile('train'); pattern = re.compile(r'fit')",
    "model.compile(backend='inductor')\nkmeans.fit(x)",
    "for case in cases:\n    stepper.step()",
    "training = finetune = backward = step = 1",
    "trainer.train_path = 'finetune/checkpoint_train.pth'",
    "this is ( no Python",
    "x = 1\0",
]


@pytest.mark.parametrize("code", INNOCENT)
def test_comments_strings_names_and_harmless_calls_are_no_sign(code):
    assert training_signs(code) == ()


def test_shapes_of_training_are_noted():
    assert training_signs("for x in d:\n    loss(x).backward()\n    o.step()") == (LOOP_TRAINS,)
    assert training_signs("while True:\n  if a:\n    l.backward()\n  with b:\n    o.step()") == (LOOP_TRAINS,)
    assert training_signs("m.compile(optimizer='adam')\nm.fit(x)") == (KERAS_FITS,)
    assert training_signs("from t import Trainer\nTrainer(m).train()") == (TRAINER_TRAINS,)


@pytest.mark.parametrize("code", ["(" * 5000, "-" * 200_000 + "1", "f(" * 3000 + ")" * 3000])
def test_code_that_exhausts_the_parser_is_no_sign(code):
    assert isinstance(training_signs(code), tuple)


def test_the_audit_is_noted_once_and_decides_nothing():
    channel = Channel()
    code = "for x in d:\n    loss(x).backward()\n    o.step()"
    assert [sign.action for sign in channel.watch.after_call("python", code)] == ["noted"]
    assert channel.watch.after_call("python", code) == []
    assert channel.watch.after_call("bash", code) == []


# --- the channel on the host ---


def test_a_planted_channel_is_not_followed_and_not_waited_for(tmp_path):
    with policy_watch(True) as watch:
        channel = watch.mounts[1].source / STEPS
        secret = tmp_path / "secret"
        secret.write_bytes(lines(a=1000))
        channel.symlink_to(secret)
        assert watch.after_call("bash", "") == []
        channel.unlink()
        os.mkfifo(channel)
        assert watch.after_call("bash", "") == []
        channel.unlink()
        channel.mkdir()
        assert watch.after_call("bash", "") == []
        channel.rmdir()
        channel.write_bytes(b"x" * (3 * READ_BYTES) + b"\n" + lines(a=1000))
        assert [sign.action for sign in watch.after_call("bash", "")] == ["warned"]
        folder = watch.mounts[0].source.parent
    assert not folder.exists()


def test_nothing_is_laid_out_unless_it_is_asked_for():
    with policy_watch(False) as watch:
        assert watch is None


# --- in a session ---


def run(stage, code="print(1)"):
    arguments = json.dumps({"language": "python", "code": code})
    return stage.session.turn("", [Call(id="c", name="execute_code", arguments=arguments)])[0]


def test_the_agent_reads_the_warning_and_the_second_breach_ends_the_run(new_stage):
    channel = Channel()
    stage = new_stage()
    stage.session._policy = channel.watch
    assert WARNING not in run(stage).text
    channel.data = lines(a=50)
    assert WARNING in run(stage).text
    assert stage.session.ended is None
    assert WARNING not in run(stage).text
    channel.data += lines(b=50)
    run(stage)
    assert stage.session.ended is EndReason.POLICY
    assert [(event.action, event.sign) for event in stage.events("policy")] == [
        ("warned", "gradient_steps"),
        ("ended", "gradient_steps"),
    ]
    assert "after a warning" in stage.events("end")[0].detail


def test_a_session_without_a_watch_says_nothing_about_training(new_stage):
    stage = new_stage()
    run(stage, "for x in d:\n    l.backward()\n    o.step()")
    assert stage.events("policy") == []
