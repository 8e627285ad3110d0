"""How long a GPU was busy without a pause, from ``nvidia-smi``. Advisory: long inference looks the same."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass

QUERY = "index,utilization.gpu,memory.used"
SECONDS = 5
BUSY_PERCENT = 70.0
STEADY_MEMORY = 0.1
LEAST_SECONDS = 900.0
LONGEST_GAP = 30.0
MOST_SAMPLES = 50_000


@dataclass(frozen=True)
class Sample:
    """One look at one GPU: seconds since the first, percent, MiB."""

    t: float
    gpu: str
    utilization: float
    memory_mb: float


@dataclass(frozen=True)
class BusySpan:
    """A time in which one GPU was busy without a pause and held about the same memory."""

    gpu: str
    start: float
    seconds: float
    mean_utilization: float


def parse_line(line: str, t: float) -> Sample | None:
    """One line of ``nvidia-smi --query-gpu=index,utilization.gpu,memory.used --format=csv,noheader,nounits``."""
    parts = [part.strip() for part in line.split(",")]
    try:
        gpu, utilization, memory = parts
        return Sample(t, gpu, float(utilization), float(memory))
    except ValueError:
        return None  # "[N/A]", or a message of the driver


def busy_spans(samples: Sequence[Sample], least_seconds: float = LEAST_SECONDS) -> list[BusySpan]:
    """Spans of at least ``least_seconds`` that have the shape of training.

    A span ends with a look below 70 percent, with 30 s without a look, or when the memory in use leaves a tenth
    around that of the span's start; what loads case after case and writes results in between makes no such span.
    """
    spans = []
    for gpu in sorted({sample.gpu for sample in samples}):
        current: list[Sample] = []
        for sample in sorted((one for one in samples if one.gpu == gpu), key=lambda one: one.t):
            if current and not _goes_on(current, sample):
                spans.append(_span(current))
                current = []
            if sample.utilization >= BUSY_PERCENT:
                current.append(sample)
        if current:
            spans.append(_span(current))
    return [span for span in spans if span.seconds >= least_seconds]


def _goes_on(current: list[Sample], sample: Sample) -> bool:
    start, last = current[0], current[-1]
    return (
        sample.utilization >= BUSY_PERCENT
        and sample.t - last.t <= LONGEST_GAP
        and abs(sample.memory_mb - start.memory_mb) <= STEADY_MEMORY * start.memory_mb
    )


def _span(samples: list[Sample]) -> BusySpan:
    mean = sum(sample.utilization for sample in samples) / len(samples)
    return BusySpan(samples[0].gpu, samples[0].t, samples[-1].t - samples[0].t, mean)


class GpuWatch:
    """Looks at the GPUs of one run every five seconds, on the host, until it is closed.

    Parameters
    ----------
    gpus : sequence of str
        Ids as ``nvidia-smi`` knows them.
    program : str
        Replaced in tests.
    """

    def __init__(self, gpus: Sequence[str], program: str = "nvidia-smi", seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._samples: list[Sample] = []
        self._process: subprocess.Popen[str] | None = None
        query = [f"--query-gpu={QUERY}", "--format=csv,noheader,nounits", "-i", ",".join(gpus)]
        with contextlib.suppress(OSError):  # no such program: nothing is noted, and nothing depends on it
            self._process = subprocess.Popen(
                [program, *query, "-l", str(max(1, round(seconds)))],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            threading.Thread(target=self._read, args=(max(1, len(gpus)),), daemon=True).start()

    def _read(self, gpus: int) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for number, line in enumerate(self._process.stdout):
            sample = parse_line(line, number // gpus * self._seconds)
            if sample is not None and len(self._samples) < MOST_SAMPLES:
                self._samples.append(sample)

    def spans(self) -> list[BusySpan]:
        return busy_spans(list(self._samples))

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
