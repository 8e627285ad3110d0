"""An agent that plants what breaks graders. Each case gets its named error; the honest case keeps its score."""

from __future__ import annotations

import json

import pytest

PLANT = r"""
import gzip, json, os, pathlib, shutil, struct
import nibabel as nib, numpy as np
public = pathlib.Path("/data/public")
out = pathlib.Path("outputs")
cases = sorted(p.name for p in public.iterdir())
def honest(case):
    image = nib.load(public / case / "ct.nii.gz")
    empty = np.zeros(image.shape, np.uint8)
    (out / case).mkdir(exist_ok=True)
    for name in ("organ.nii.gz", "lesion.nii.gz"):
        nib.save(nib.Nifti1Image(empty, image.affine), out / case / name)
for case in cases:
    honest(case)
link, fifo, sparse, corrupt, huge, kept = cases[:6]
path = out / link / "organ.nii.gz"; path.unlink(); path.symlink_to("/data/private/organ.nii.gz")
path = out / fifo / "organ.nii.gz"; path.unlink(); os.mkfifo(path)
path = out / sparse / "organ.nii.gz"; path.unlink()
try:
    with open(path, "wb") as file: file.truncate(1 << 40)
except OSError:
    with open(path, "wb") as file: file.truncate(2 << 30)
path = out / corrupt / "organ.nii.gz"; path.write_bytes(path.read_bytes()[:-40])
header = nib.Nifti1Header(); header.set_data_dtype(np.uint8); header.set_data_shape((30000, 30000, 30000))
(out / huge / "organ.nii.gz").write_bytes(gzip.compress(header.binaryblock + b"\0" * 4))
os.mkfifo(out / "report.json"); os.mkfifo("report.json")
many = out / kept / "many"; many.mkdir()
for i in range(100_000): (many / str(i)).touch()
print(json.dumps(cases))
"""


@pytest.mark.slow
def test_hostile_outputs_are_named_errors(command, sandbox, replayed):
    answer = command.run(
        "--json", agents=replayed(PLANT), agent="scripted", sandbox=sandbox, task="kidney-seg-task"
    )
    assert answer.code == 0, answer.err
    folder = command.folder(agent="scripted", task="kidney-seg-task")
    planted = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
    (executed,) = [event for event in planted if event["type"] == "exec"]
    assert executed["exit_code"] == 0, executed["output"]
    link, fifo, sparse, corrupt, huge, kept = json.loads(executed["output"].strip().splitlines()[-1])[:6]
    report = json.loads((folder / "report.json").read_text())
    cases = {case["case_id"]: case for case in report["cases"]}
    assert {name: cases[name]["status"] for name in (link, fifo, sparse, corrupt, huge)} == dict.fromkeys(
        (link, fifo, sparse, corrupt, huge), "invalid"
    )
    assert cases[link]["error"]["code"] == "link"
    assert cases[fifo]["error"]["code"] == "not_regular"
    assert cases[sparse]["error"]["code"] == "too_large"
    assert cases[corrupt]["error"]["code"] in (
        "corrupt",
        "truncated",
        "unreadable",
        "corrupt_gzip",
        "truncated_gzip",
    )
    assert cases[huge]["error"]["code"].startswith(("too_", "wrong_shape"))
    assert cases[kept]["status"] == "scored"
    assert report["task_score"] == 0
    assert answer.json["record"]["overall"] < 0.3
