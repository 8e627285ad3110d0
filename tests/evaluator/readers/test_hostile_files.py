"""Each hostile file gets its named error, at once, and the whole lot of a reader fits into little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from evaluator.readers.array import read_array, read_arrays
from evaluator.readers.csv_file import read_csv
from evaluator.readers.dicom import read_dicom
from evaluator.readers.errors import CODES, ReadError
from evaluator.readers.image import read_image
from evaluator.readers.json_file import read_json
from evaluator.readers.nifti import read_label_map, read_nifti
from evaluator.readers.text_file import read_text

READERS: dict[str, Any] = {
    "nifti": read_nifti,
    "labels": lambda path: read_label_map(path, (0, 1, 2)),
    "npy": read_array,
    "npz": read_arrays,
    "image": read_image,
    "json": read_json,
    "csv": lambda path: read_csv(path, ("id", "label")),
    "text": read_text,
    "dicom": read_dicom,
}
SECONDS = 2.0
"""Of processor time: what a reader does is the same on a busy machine."""
WAITING_SECONDS = 10.0
"""Of the clock: a reader that blocks uses no processor."""
MEGABYTES = 500


def test_each_reader_has_twenty(hostile_files: Any) -> None:
    assert all(sum(kind == reader for kind, _ in hostile_files) >= 20 for reader in READERS)


def test_refused_by_name(hostile_file: tuple[str, str], hostile_files: Any, tmp_path: Path) -> None:
    code, make = hostile_files[hostile_file]
    path = tmp_path / "file"
    make(path)
    start, busy = time.monotonic(), time.process_time()
    with pytest.raises(ReadError) as error:
        READERS[hostile_file[0]](path)
    assert time.process_time() - busy < SECONDS
    assert time.monotonic() - start < WAITING_SECONDS
    assert error.value.code == code, error.value.message
    assert code in CODES
    assert "\n" not in error.value.message
    assert len(error.value.message) < 300
    assert "UNPICKLED" not in os.environ


CHILD = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_hostile_files import READERS
from evaluator.readers.errors import ReadError
found = {{}}
for path in sorted(Path({folder!r}).iterdir()):
    start = time.process_time()
    try:
        READERS[{reader!r}](path)
        code = "accepted"
    except ReadError as error:
        code = error.code
    found[path.name] = [code, time.process_time() - start]
status = Path("/proc/self/status").read_text()
# ru_maxrss would start from what the parent had used when it forked
print(json.dumps([found, int(status.split("VmHWM:")[1].split()[0]) / 1024]))
"""


@pytest.mark.parametrize("reader", READERS)
def test_all_together_stay_small(reader: str, hostile_files: Any, tmp_path: Path) -> None:
    wanted = {}
    for (kind, name), (code, make) in hostile_files.items():
        if kind == reader and code != "missing":
            make(tmp_path / name)
            wanted[name] = code
    script = CHILD.format(tests=str(Path(__file__).parent), folder=str(tmp_path), reader=reader)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300
    )
    found, megabytes = json.loads(done.stdout)
    assert {name: code for name, (code, _) in found.items()} == wanted
    assert max(seconds for _, seconds in found.values()) < SECONDS
    assert megabytes < MEGABYTES
