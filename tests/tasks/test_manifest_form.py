"""A manifest is read in its own form only."""

from __future__ import annotations

import json

import pytest

from tasks.manifest import Manifest, ManifestError, dump_manifest, read_manifest

MANIFEST = Manifest(
    task="kidney-seg-task", release="phantom", seed=0, source="x", license="x", redistribution="none",
    generator="x", cases=(),
)  # fmt: skip


def test_what_was_dumped_is_read(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(dump_manifest(MANIFEST))
    assert read_manifest(path) == MANIFEST


@pytest.mark.parametrize("version", [0, 2, "1"])
def test_another_form_is_refused_by_name(version, tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(json.loads(dump_manifest(MANIFEST)) | {"schema_version": version}))
    with pytest.raises(ManifestError, match=r"manifest\.json is not a manifest: schema_version"):
        read_manifest(path)
