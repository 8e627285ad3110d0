"""Undamaged inputs to start from, one or more of every kind a target reads."""

from __future__ import annotations

import gzip
import io
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nibabel as nib
import numpy as np
from PIL import Image

from evaluator.judge.calibration.samples import injection_samples, samples
from evaluator.judge.prompt import value_of
from evaluator.rubric import load_rubric
from evaluator.trace import Event
from runner.trace import TraceWriter

FOLDER = Path(__file__).parents[2] / "tests" / "fuzz" / "seeds"
"""A sealed run's files, as they were written."""


def files(readers: Sequence[tuple[str, object]]) -> list[bytes]:
    """A file of every format, behind the byte that chooses its reader."""
    number = {name: bytes([index]) for index, (name, _) in enumerate(readers)}
    nifti = nib.Nifti1Image(
        np.arange(60, dtype=np.int16).reshape(3, 4, 5), np.diag([1.0, 2, 3, 1])
    ).to_bytes()
    scaled = nib.Nifti2Image(np.ones((2, 3, 4), np.float32), np.eye(4)).to_bytes()
    packed = gzip.compress(nifti, mtime=0)
    made = [("nifti", nifti), ("nifti", packed), ("nifti", scaled), ("labels", packed), ("labels", nifti)]
    made += [("npy", _npy(np.float32)), ("npy", _npy(np.uint8)), ("npz", _npz()), ("dicom", _dicom())]
    made += [("image", _picture(kind)) for kind in ("PNG", "JPEG", "TIFF", "BMP", "GIF")]
    made += [
        (
            "json",
            b'{"boxes": [{"class": "a", "score": 0.5, "x1": 1, "t": "\\u00e9\\ud83e\\udec1"}], "b": [null, true]}',
        ),
        ("csv", b'id,label\n1,"a, ""b"""\n2,c\n'),
        ("text", "No acute process. 37 \u00b0C\nFindings: none.\n".encode()),
    ]
    return [number[name] + content for name, content in made]


def _npy(kind: type) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(12).astype(kind).reshape(3, 4))
    return buffer.getvalue()


def _npz() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a=np.arange(12), b=np.ones((2, 3), np.float32))
    return buffer.getvalue()


def _picture(kind: str, size: tuple[int, int] = (16, 12)) -> bytes:
    buffer = io.BytesIO()
    noise = random.Random(1).randbytes(size[0] * size[1] * 3)
    Image.frombytes("RGB", size, noise).save(buffer, kind)
    return buffer.getvalue()


def _dicom() -> bytes:
    import pydicom

    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    dataset.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    dataset.Rows, dataset.Columns, dataset.BitsAllocated, dataset.PixelRepresentation = 3, 5, 16, 1
    dataset.SamplesPerPixel, dataset.RescaleSlope, dataset.PixelSpacing = 1, 2, [0.5, 0.75]
    dataset.add_new("PixelData", "OW", bytes(30))
    buffer = io.BytesIO()
    dataset.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def workspaces() -> list[bytes]:
    """Building plans: honest ones, and random ones of several lengths."""
    rng = random.Random(2)
    honest = bytes(value for where in range(12) for value in (0, where, 20 + where))
    plans = bytes((0, 193, 40, 0, 194, 60))
    return [b"", honest, honest + plans, *(rng.randbytes(3 * length) for length in (4, 12, 40, 80))]


def traces() -> list[bytes]:
    """Whole traces of scripted runs, with and without words that ask for points."""
    with tempfile.TemporaryDirectory() as folder:
        honest = list(samples(Path(folder) / "samples"))[:4]
        talking = list(injection_samples(Path(folder) / "injections"))[:6]
        scripted = [
            _written(sample.material.events, Path(folder) / "trace") for sample in (*honest, *talking)
        ]
    return [*scripted, (FOLDER / "trace.jsonl").read_bytes()]


def _written(events: Sequence[Event], path: Path) -> bytes:
    with TraceWriter(path, clock=lambda: 0.0) as writer:
        for event in events:
            writer.append(event)
    content = path.read_bytes()
    path.unlink()
    return content[:20_000]


def records() -> list[bytes]:
    """The four forms of a run folder."""
    return [path.read_bytes() for path in sorted(FOLDER.glob("*.json"))]


def replies() -> list[bytes]:
    """Answers a judge may give, right and wrong, and the two files of a plan."""
    with tempfile.TemporaryDirectory() as folder:
        track = next(samples(Path(folder))).track
    items = load_rubric(track).items
    right = {
        "items": {
            item.id: {
                "reason": "seen",
                "evidence": [f"E{number}" for number in (3, 5)],
                "value": value_of(item.levels[-1]) if item.levels else 1,
            }
            for item in items
        }
    }
    none = {"items": {item.id: {"reason": "not shown", "evidence": [], "value": 0} for item in items}}
    faults = {"faults": [{"reason": "seen", "evidence": ["E5"], "fault": "silent_failure"}]}
    texts = [json.dumps(right), json.dumps(none), f"```json\n{json.dumps(right)}\n```", json.dumps(faults)]
    return [*(text.encode() for text in texts), b"# Plan\n" + b"words " * 60, _picture("PNG", (120, 90))]
