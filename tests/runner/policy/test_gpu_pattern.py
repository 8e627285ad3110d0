"""What a GPU's load looks like while something trains, and while cases are inferred one after the other."""

from __future__ import annotations

import time

import pytest

from runner.policy import PolicyWatch
from runner.policy.gpu import BusySpan, GpuWatch, Sample, busy_spans, parse_line


def load(seconds, utilization=95.0, memory=20_000.0, start=0.0, gpu="0", every=5.0):
    return [Sample(start + n * every, gpu, utilization, memory) for n in range(round(seconds / every) + 1)]


def test_a_long_steady_load_is_a_span():
    (span,) = busy_spans(load(1800))
    assert (span.gpu, span.start, span.seconds) == ("0", 0.0, 1800.0)
    assert span.mean_utilization == pytest.approx(95)


@pytest.mark.parametrize(
    "samples",
    [
        [],
        load(600),  # a long case
        load(3000, utilization=40),
        [
            sample
            for n in range(30)
            for sample in (*load(100, start=n * 120), *load(10, 5, start=n * 120 + 105))
        ],
        [sample for n in range(20) for sample in load(100, memory=5000 + 1500 * (n % 3), start=n * 105)],
        load(800) + load(800, start=1000),  # half a minute and more without a look
        load(600, gpu="0") + load(600, gpu="1", start=605),
    ],
)
def test_cases_one_after_the_other_are_none(samples):
    assert busy_spans(samples) == []


def test_order_of_samples_does_not_matter():
    samples = load(1800) + load(1800, gpu="1")
    assert busy_spans(samples[::-1]) == busy_spans(samples)


def test_lines_of_the_driver_are_read_and_its_messages_are_not():
    assert parse_line("0, 97, 20123\n", 3.0) == Sample(3.0, "0", 97.0, 20123.0)
    for line in ("0, [N/A], 5", "NVIDIA-SMI has failed", "", "0, 1", "0, 1, 2, 3"):
        assert parse_line(line, 0.0) is None


def test_a_run_notes_it_once_and_nothing_follows():
    watch = PolicyWatch(lambda: b"", lambda: [BusySpan("0", 0.0, 2000.0, 95.0)])
    (sign,) = watch.after_call("bash", "true")
    assert (sign.sign, sign.action) == ("gpu_pattern", "noted")
    assert watch.after_call("bash", "true") == []


def test_the_driver_is_asked_until_the_run_is_over(tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nwhile true; do echo '0, 99, 1000'; echo '1, 0, 10'; sleep 0.02; done\n")
    program.chmod(0o755)
    watch = GpuWatch(("0", "1"), str(program), seconds=25)
    deadline = time.monotonic() + 10
    while not watch.spans() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert {span.gpu for span in watch.spans()} == {"0"}
    process = watch._process
    watch.close()
    assert process.poll() is not None


def test_a_machine_without_the_driver_notes_nothing(tmp_path):
    watch = GpuWatch(("0",), str(tmp_path / "absent"))
    assert watch.spans() == []
    watch.close()
