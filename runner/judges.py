"""Judges by name: ``rules``, and the profiles of ``judges.yaml`` or of a user's ``--judges`` file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Protocol

from pydantic import Field, PositiveFloat, PositiveInt

from evaluator.judge.judgement import Judgement
from evaluator.judge.material import Material
from evaluator.judge.notebook import DEFAULT_TOKENS
from evaluator.judge.rules import judge_by_rules
from evaluator.rubric import Rubric
from runner.agents.profiles import EndpointProfile, Name, read_profile_file
from runner.errors import EnvironmentProblem, UsageProblem, unknown
from runner.keys import find_key, missing
from tasks.schema import Strict, Tier

PUBLISHED = Path(__file__).parent / "judges.yaml"
RULES = "rules"


class JudgeProfile(EndpointProfile):
    """A model that judges.

    ``votes`` are asked for each run. ``evidence_tokens`` bounds the notebook (at least 1500). ``pictures``: the model
    takes images. ``tags``: it is asked for error codes too, with as many votes again.
    """

    votes: Annotated[int, Field(ge=1, le=15)] = 3
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    max_output_tokens: PositiveInt | None = 6000
    evidence_tokens: Annotated[int, Field(ge=1500)] = DEFAULT_TOKENS
    pictures: bool = True
    tags: bool = False
    requests_per_minute: PositiveFloat = 60.0


class JudgeFile(Strict):
    judges: dict[Name, JudgeProfile]


class Judge(Protocol):
    """Decides the items of S1-S3. ``model`` is None where no model is asked."""

    @property
    def model(self) -> str | None: ...

    def judge(
        self, material: Material, rubric: Rubric, tier: Tier, earlier: Judgement | None = None
    ) -> Judgement: ...


class RulesJudge:
    """The deterministic one."""

    model = None

    def judge(
        self, material: Material, rubric: Rubric, tier: Tier, earlier: Judgement | None = None
    ) -> Judgement:
        del earlier
        return judge_by_rules(material.evidence, rubric, tier)


def load_judge(name: str, judges_file: Path | None = None) -> Judge:
    """The judge of that name, ready to be asked from several threads at once.

    Raises
    ------
    UsageProblem
        No such judge, or its file cannot be read.
    EnvironmentProblem
        Its key is not set.
    """
    profiles = load_judge_profiles(judges_file)
    if name == RULES:
        return RulesJudge()
    if name not in profiles:
        raise unknown("judge", name, [RULES, *profiles])
    from runner.judge_endpoint import llm_judge

    profile = profiles[name]
    key = find_key(profile.key_env) if profile.key_env else None
    if profile.key_env and key is None:
        raise EnvironmentProblem(f"judge {name!r} needs a key: {missing(profile.key_env)}")
    return llm_judge(profile, key)


def load_judge_profiles(extra: Path | None = None) -> dict[str, JudgeProfile]:
    """The published profiles, and those of ``extra`` in their place or beside them."""
    profiles = read_profile_file(PUBLISHED, JudgeFile).judges
    if extra is not None:
        profiles = {**profiles, **read_profile_file(extra, JudgeFile).judges}
    if RULES in profiles:
        raise UsageProblem(f"{extra}: {RULES!r} is the judge that needs no profile; choose another name")
    return profiles


_VENDORS = {
    "claude": "anthropic",
    "gpt": "openai",
    "gemini": "google",
    "gemma": "google",
    "glm": "z-ai",
    "qwen": "qwen",
    "minimax": "minimax",
    "llama": "meta-llama",
    "mistral": "mistralai",
    "deepseek": "deepseek",
}


def is_same_family(judge_model: str | None, agent_model: str | None) -> bool:
    """Whether both models come from one provider, as far as their names tell."""
    if judge_model is None or agent_model is None:
        return False
    return _vendor(judge_model) == _vendor(agent_model)


def _vendor(model: str) -> str:
    maker, _, own_name = model.lower().rpartition("/")
    for beginning, vendor in _VENDORS.items():
        if own_name.startswith(beginning):
            return vendor
    return maker or own_name
