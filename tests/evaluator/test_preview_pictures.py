"""Previews show the input and the submission, small, and open no reference."""

from __future__ import annotations

import io
import shutil

import numpy as np
import pytest
from PIL import Image

from evaluator.preview import MAX_SIDE, write_previews


@pytest.fixture
def drawn(stage, tmp_path):
    def draw(track: str) -> dict[str, Image.Image]:
        staged = stage(track)
        shutil.rmtree(staged.private)
        staged.output("c2").write_bytes(b"broken")
        write_previews(staged.task, staged.manifest, staged.submission, staged.public, tmp_path / "out", 2)
        if not (tmp_path / "out").exists():
            return {}
        return {p.stem: Image.open(io.BytesIO(p.read_bytes())) for p in (tmp_path / "out").iterdir()}

    return draw


@pytest.mark.parametrize("track", ["segmentation", "enhancement", "synthesis", "detection"])
def test_valid_cases_are_drawn_and_broken_ones_left_out(drawn, track: str) -> None:
    pictures = drawn(track)
    assert sorted(pictures) == ["c1", "c3"]
    for picture in pictures.values():
        assert picture.format == "WEBP"
        assert max(picture.size) == MAX_SIDE


@pytest.mark.parametrize("track", ["vqa", "report"])
def test_texts_need_no_picture(drawn, track: str) -> None:
    assert drawn(track) == {}


def test_the_outline_of_a_mask_is_coloured(drawn) -> None:
    pixels = np.asarray(drawn("segmentation")["c1"].convert("RGB")).astype(int)
    assert ((pixels[..., 0] - pixels[..., 2]) > 60).any()
