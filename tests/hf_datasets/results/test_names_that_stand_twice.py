"""A value that hides behind a second one of the same name leaves neither with a record nor with what lies beside it."""

from __future__ import annotations

import pytest
from run_maker import make_run

from hf_datasets.publish import publication
from hf_datasets.records import RecordError
from hf_datasets.redact import Machine, Redactor

KEY = "plain-provider-key-42zz"


def test_a_key_behind_a_repeated_name_stays_here(tmp_path):
    redactor = Redactor([KEY], Machine())
    folder = make_run(tmp_path, 0)
    (folder / "judgement.json").unlink(missing_ok=True)
    path = folder / "record.json"
    sound = path.read_text()
    assert not publication(folder, redactor).findings
    path.write_text(sound.replace('"end_detail": ""', f'"end_detail": "{KEY}", "end_detail": ""', 1))
    with pytest.raises(RecordError, match="stands twice"):
        publication(folder, redactor)
