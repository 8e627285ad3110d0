"""Every input that once broke a reader of foreign data, and odd ones, read again; and a few hundred new ones."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.fuzz.loop import outcome_of
from benchmarks.fuzz.mutate import mutated
from benchmarks.fuzz.targets import TARGETS, Target

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_finds_nothing_open(name, tmp_path):
    kept = sorted((CORPUS / name).glob("*.bin"))
    assert kept
    for path in kept:
        outcome_of(TARGETS[name], path.read_bytes(), tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_new_damage_finds_nothing_open(name, tmp_path):
    rng = random.Random(20_261_201)
    seeds = TARGETS[name].seeds()
    outcomes = {outcome_of(TARGETS[name], content, tmp_path) for content in seeds}
    outcomes |= {outcome_of(TARGETS[name], mutated(rng, seeds), tmp_path) for _ in range(150)}
    assert len(outcomes) > 3  # otherwise it was the same refusal again and again


def test_the_harness_sees_what_must_not_happen(tmp_path):
    def run(content: bytes, folder: Path) -> str:
        return str(content.index(b"x"))  # ValueError on most inputs

    with pytest.raises(ValueError, match="subsection not found"):
        outcome_of(Target("broken", lambda: [b""], run, (KeyError,)), b"abc", tmp_path)
