"""From scenes to questions: a fair choice of what is asked, and options whose letters tell nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hf_datasets.phantoms.shapes import Rng
from hf_datasets.phantoms.vqa.scenes import NO, YES, Ask, Scene

LETTERS = "ABCDE"


@dataclass(frozen=True)
class Card:
    """A question to one scene."""

    scene: Scene
    ask: Ask


@dataclass(frozen=True)
class Dealt:
    """A question with lettered options and the letter of the right one."""

    scene: Scene
    ask: Ask
    options: dict[str, str]
    letter: str


def open_cards(scenes: Iterable[Scene], each: int, rng: Rng) -> list[Card]:
    """``each`` questions a scene in random order: open, yes and no in turn, of the wordings asked least so far."""
    cards: list[Card] = []
    used: Counter[str] = Counter()
    for turn, scene in enumerate(scenes):
        left = [scene.asks[index] for index in rng.permutation(len(scene.asks))]
        for step in range(each):
            wanted = ("open", YES, "open", NO)[(turn + step) % 4]
            fitting = [ask for ask in left if _sort(ask) == wanted] or left
            chosen = min(fitting, key=lambda ask: used[ask.question])
            used[chosen.question] += 1
            left.remove(chosen)
            cards.append(Card(scene, chosen))
    return shuffled(cards, rng)


def choice_cards(scenes: Iterable[Scene], each: int, rng: Rng, *, least: int = 4) -> list[Card]:
    """``each`` questions a scene with at least ``least`` possible answers, of the wordings asked least so far."""
    cards: list[Card] = []
    used: Counter[str] = Counter()
    for scene in scenes:
        left = [
            scene.asks[index]
            for index in rng.permutation(len(scene.asks))
            if len(scene.asks[index].others) + 1 >= least
        ]
        for _ in range(min(each, len(left))):
            chosen = min(left, key=lambda ask: used[ask.question])
            used[chosen.question] += 1
            left.remove(chosen)
            cards.append(Card(scene, chosen))
    return shuffled(cards, rng)


def deal(cards: Sequence[Card], most: int, rng: Rng) -> list[Dealt]:
    """Give every question up to ``most`` options; the right letters are as evenly spread as can be."""
    letters: Counter[str] = Counter()
    by_capacity = sorted(range(len(cards)), key=lambda index: _capacity(cards[index], most))
    dealt: dict[int, Dealt] = {}
    for index in by_capacity:
        capacity = _capacity(cards[index], most)
        possible = [LETTERS[place] for place in rng.permutation(capacity)]
        letter = min(possible, key=lambda each: letters[each])
        letters[letter] += 1
        dealt[index] = _with_options(cards[index], capacity, letter, rng)
    return [dealt[index] for index in range(len(cards))]


def shuffled(cards: Sequence[Card], rng: Rng) -> list[Card]:
    """The cards in random order."""
    return [cards[index] for index in rng.permutation(len(cards))]


def _capacity(card: Card, most: int) -> int:
    return min(most, len(card.ask.others) + 1)


def _with_options(card: Card, capacity: int, letter: str, rng: Rng) -> Dealt:
    wrong = [card.ask.others[index] for index in rng.permutation(len(card.ask.others))[: capacity - 1]]
    wrong.insert(LETTERS.index(letter), card.ask.answer)
    return Dealt(card.scene, card.ask, dict(zip(LETTERS, wrong, strict=False)), letter)


def _sort(ask: Ask) -> str:
    return ask.answer if ask.answer in (YES, NO) else "open"
