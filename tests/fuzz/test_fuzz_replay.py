"""Every input that once broke a reader of foreign data, and odd ones, read again; and a few hundred new ones."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.fuzz.loop import IN_MEMORY, outcome_of
from benchmarks.fuzz.mutate import mutated
from benchmarks.fuzz.targets import TARGETS, Target


@pytest.fixture
def place():
    """A folder that another user can come to, as what is planted in a workspace is planted by one."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        yield Path(folder)


CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_finds_nothing_open(name, place):
    kept = sorted((CORPUS / name).glob("*.bin"))
    assert kept
    for path in kept:
        outcome_of(TARGETS[name], path.read_bytes(), place)


@pytest.mark.parametrize("name", TARGETS)
def test_new_damage_finds_nothing_open(name, place):
    rng = random.Random(20_261_201)
    seeds = TARGETS[name].seeds()
    outcomes = {outcome_of(TARGETS[name], content, place) for content in seeds}
    outcomes |= {outcome_of(TARGETS[name], mutated(rng, seeds), place) for _ in range(150)}
    assert len(outcomes) > 3  # otherwise it was the same refusal again and again


def test_the_harness_sees_what_must_not_happen(place):
    def run(content: bytes, folder: Path) -> str:
        return str(content.index(b"x"))  # ValueError on most inputs

    with pytest.raises(ValueError, match="subsection not found"):
        outcome_of(Target("broken", lambda: [b""], run, (KeyError,)), b"abc", place)
