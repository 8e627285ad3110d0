"""The judge that reads: a language model decides what facts alone cannot tell, several times, and the majority holds.

Items that a program can decide are not asked. An item without a valid majority stays unscored, never 0, and can be
asked again later, alone; what has been decided stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evaluator.fired import READ_SUBTYPES, FiredCode
from evaluator.judge.agreement import majority
from evaluator.judge.evidence import Evidence
from evaluator.judge.judgement import ItemResult, Judgement
from evaluator.judge.material import Material
from evaluator.judge.notebook import DEFAULT_TOKENS, Notebook, write_notebook
from evaluator.judge.panel import Endpoint, PanelOfOne
from evaluator.judge.plan import shown_picture
from evaluator.judge.prompt import (
    evidence_text,
    item_question,
    item_schema,
    tag_question,
    tag_schema,
    words_digest,
)
from evaluator.judge.reading import Opinion, read_opinions, read_tags
from evaluator.judge.rules import decide
from evaluator.judge.settle import Verdict, conclude, settled
from evaluator.rubric import Item, Level, Rubric
from tasks.schema import Tier


@dataclass(frozen=True)
class LlmSettings:
    """What makes one LLM judge differ from another.

    ``decoding`` holds the request's further fields, such as temperature; ``pictures``: the model sees images;
    ``tags``: it is asked for error codes too.
    """

    model: str
    decoding: Mapping[str, Any]
    votes: int = 3
    evidence_tokens: int = DEFAULT_TOKENS
    pictures: bool = True
    tags: bool = False

    @property
    def sha256(self) -> str:
        """Digest of the settings and of the words that the judge is sent."""
        text = json.dumps([asdict(self), words_digest()], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class LlmJudge:
    """A judge: ``endpoint`` answers, the rest is decided here."""

    settings: LlmSettings
    endpoint: Endpoint

    @property
    def model(self) -> str:
        return self.settings.model

    def judge(
        self, material: Material, rubric: Rubric, tier: Tier, earlier: Judgement | None = None
    ) -> Judgement:
        """Decide every item of a rubric.

        Parameters
        ----------
        material : Material
            Of the run.
        earlier : Judgement, optional
            What was judged before. Where it is of the same judge, rubric and evidence, its values are kept and only
            what it left unscored is asked; if that is nothing, it is returned as it is, and nothing is asked.
        """
        notebook = write_notebook(material, self.settings.evidence_tokens)
        kept = earlier if earlier and self._is_mine(earlier, rubric, notebook) else None
        if kept and kept.is_complete and self._is_tagged(kept):
            return kept
        session = _Session(self.settings, material, rubric, tier, notebook, kept)
        return session.judgement(self.endpoint)

    def _is_mine(self, earlier: Judgement, rubric: Rubric, notebook: Notebook) -> bool:
        ours = (self.settings.sha256, rubric.sha256, notebook.sha256)
        return (earlier.judge_sha256, earlier.rubric_sha256, earlier.evidence_sha256) == ours

    def _is_tagged(self, earlier: Judgement) -> bool:
        return not self.settings.tags or (earlier.panel is not None and earlier.panel.tagged)


class _Session:
    """The judging of one run."""

    def __init__(
        self,
        settings: LlmSettings,
        material: Material,
        rubric: Rubric,
        tier: Tier,
        notebook: Notebook,
        kept: Judgement | None,
    ) -> None:
        self._settings = settings
        self._material = material
        self._rubric = rubric
        self._tier = tier
        self._notebook = notebook
        self._kept = kept
        self._decided = {item.id: item for item in kept.items} if kept else {}
        self._picture = shown_picture(material.plan_folder) if settings.pictures else None

    def judgement(self, endpoint: Endpoint) -> Judgement:
        evidence = self._material.evidence
        verdicts: dict[str, Verdict] = {}
        asked: list[Item] = []
        for item in self._rubric.items:
            verdict = settled(item, self._tier, evidence, verdicts) or self._without_asking(item)
            verdicts[item.id] = verdict or Verdict(None, "not judged yet")
            if verdict is None:
                asked.append(item)
        panel = self._panel(endpoint)
        levels = {item.id: _offered(item, evidence) for item in self._rubric.items}
        if asked:
            verdicts |= self._ask(panel, asked, levels)
        tags, tagged = self._tags(panel)
        concluded = conclude(
            self._rubric, evidence, verdicts, "llm", self._settings.model, self._notebook.sha256
        )
        question = item_question(
            [item for item in self._rubric.items if item.decided_by == "judge"], levels, {}
        )
        votes = [verdict.votes for verdict in verdicts.values()]
        return concluded.model_copy(
            update={
                "judge_sha256": self._settings.sha256,
                "panel": panel.record(question, votes, tagged=tagged),
                "tags": tags,
            }
        )

    def _without_asking(self, item: Item) -> Verdict | None:
        """The verdict of a program, of the judgement before, or of what this judge cannot see; None: ask."""
        if item.decided_by == "program":
            return decide(item, self._material.evidence)
        before = self._decided.get(item.id)
        if before is not None and before.value is not None:
            return _as_before(before)
        if item.levels and len(_offered(item, self._material.evidence)) == 1:
            return decide(item, self._material.evidence)
        if "picture" in item.evidence and self._picture is None:
            return Verdict(None, "unscored: this judge sees no pictures")
        return None

    def _panel(self, endpoint: Endpoint) -> PanelOfOne:
        before = self._kept.panel if self._kept else None
        delimiter = before.delimiter if before else secrets.token_hex(12)
        text = evidence_text(
            self._material.assignment, self._notebook.text, delimiter, has_picture=self._picture is not None
        )
        exchanges = list(before.exchanges) if before else []
        return PanelOfOne(endpoint, self._settings.votes, text, delimiter, self._picture, exchanges)

    def _ask(
        self, panel: PanelOfOne, asked: Sequence[Item], levels: Mapping[str, Sequence[Level]]
    ) -> dict[str, Verdict]:
        def still_open(problems: Mapping[str, str]) -> list[Item]:
            return [item for item in asked if not problems or item.id in problems]

        ballots = panel.poll(
            lambda problems: (
                item_question(still_open(problems), levels, problems),
                item_schema(still_open(problems), levels),
            ),
            lambda reply: read_opinions(reply, asked, levels, self._notebook),
        )
        return {
            item.id: _counted([ballot[item.id] for ballot in ballots if item.id in ballot], panel)
            for item in asked
        }

    def _tags(self, panel: PanelOfOne) -> tuple[tuple[FiredCode, ...], bool]:
        """Faults that most of the panel saw, and whether enough of it was heard."""
        if self._kept and self._kept.panel and self._kept.panel.tagged:
            return self._kept.tags, True
        if not self._settings.tags or panel.down:
            return (), False
        heard: list[dict[str, Opinion]] = []

        def read(reply: str) -> tuple[dict[str, Opinion], dict[str, str]]:
            opinions, problems = read_tags(reply, self._notebook)
            if not problems:
                heard.append(opinions)
            return opinions, problems

        panel.poll(lambda problems: (tag_question(problems), tag_schema()), read)
        if 2 * len(heard) <= panel.size:
            return (), False
        return tuple(_fired(subtype, heard) for subtype in READ_SUBTYPES if _is_seen(subtype, heard)), True


def _offered(item: Item, evidence: Evidence) -> tuple[Level, ...]:
    """The levels that the judge may give: whether a pilot came before the batch is the host's to say."""
    return tuple(level for level in item.levels if evidence.pilot or "pilot_before_batch" not in level.facts)


def _as_before(item: ItemResult) -> Verdict:
    return Verdict(item.value, item.reason, item.evidence, item.applies, item.votes)


def _counted(opinions: Sequence[Opinion], panel: PanelOfOne) -> Verdict:
    votes = tuple(opinion.value for opinion in opinions)
    value = majority(votes, panel.size)
    if value is None:
        cast = ", ".join(f"{vote:g}" for vote in votes) or "none"
        why = f"; {panel.down}" if panel.down else ""
        return Verdict(None, f"unscored: no majority of {panel.size} votes (valid: {cast}){why}", votes=votes)
    winning = [opinion for opinion in opinions if opinion.value == value]
    events = sorted({seq for opinion in winning for seq in opinion.events})
    return Verdict(value, winning[0].reason, tuple(events), votes=votes)


def _is_seen(subtype: str, heard: Sequence[dict[str, Opinion]]) -> bool:
    return 2 * sum(subtype in opinions for opinions in heard) > len(heard)


def _fired(subtype: str, heard: Sequence[dict[str, Opinion]]) -> FiredCode:
    code, stage, _ = READ_SUBTYPES[subtype]
    seen = [opinions[subtype] for opinions in heard if subtype in opinions]
    events = sorted({seq for opinion in seen for seq in opinion.events})
    return FiredCode(
        code=code, subtype=subtype, stage=stage, reason=seen[0].reason, events=tuple(events), found_by="llm"
    )
