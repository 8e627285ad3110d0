"""Agent profiles: what ``agents.yaml`` and a user's ``--agents`` file may say."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import yaml
from pydantic import AfterValidator, Field, JsonValue, PositiveFloat, PositiveInt, ValidationError

from evaluator.trace import Usage
from runner.errors import UsageProblem
from tasks.registry import NOT_YAML
from tasks.schema import Strict

PUBLISHED = Path(__file__).parent.parent / "agents.yaml"

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=64)]
"""Also a folder name in ``runs/`` and a part of the record's run id."""

NOT_DECODING = frozenset({"model", "messages", "tools", "tool_choice", "stream", "stream_options", "n"})


def _no_reserved(decoding: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if reserved := sorted(NOT_DECODING & decoding.keys()):
        raise ValueError(f"{', '.join(reserved)} cannot be set here; the runner sets it")
    return decoding


Price = Annotated[float, Field(ge=0, le=1e6)]


class Prices(Strict):
    """US dollars per million tokens. Without ``cached``, cached tokens cost what input costs."""

    input: Price
    output: Price
    cached: Price | None = None
    source: str
    date: date

    def cost(self, usage: Usage) -> float:
        """US dollars of one reply."""
        cached = self.input if self.cached is None else self.cached
        fresh = max(0, usage.input - usage.cached)
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / 1e6


class Retries(Strict):
    """How long one turn may wait for its provider, in seconds. The run as a whole has a cap of its own."""

    tries: PositiveInt = 8
    first_wait: PositiveFloat = 2.0
    longest_wait: PositiveFloat = 120.0
    total_wait: PositiveFloat = 900.0


class EndpointProfile(Strict):
    """An OpenAI-compatible endpoint and how to ask it."""

    model: str
    base_url: str = Field(pattern=r"^https?://")
    key_env: str | None = Field(
        default=None, description="Name of the variable that holds the key; none for a local server"
    )
    max_output_tokens: PositiveInt | None = Field(
        default=None, description="The provider's default when absent"
    )
    stream: bool = False
    request_seconds: PositiveFloat = 600.0
    decoding: Annotated[dict[str, JsonValue], AfterValidator(_no_reserved)] = Field(
        default={},
        description="Extra fields of the request, such as temperature; empty is the provider's default",
    )
    prices: Prices | None = None
    retries: Retries = Retries()


class ChatProfile(EndpointProfile):
    """An agent that is a model behind an endpoint."""

    kind: Literal["chat"]
    context_tokens: PositiveInt


class BaselineProfile(Strict):
    """The scripted agent."""

    kind: Literal["baseline"]


class NoopProfile(Strict):
    """Submits nothing."""

    kind: Literal["noop"]


class ReplayProfile(Strict):
    """Does again what a recorded trace says. A relative path counts from the profile's file."""

    kind: Literal["replay"]
    trace: Path


Profile = Annotated[ChatProfile | BaselineProfile | NoopProfile | ReplayProfile, Field(discriminator="kind")]


class ProfileFile(Strict):
    agents: dict[Name, Profile]


def load_profiles(extra: Path | None = None) -> dict[str, Profile]:
    """The published profiles, and those of ``extra``.

    Raises
    ------
    UsageProblem
        ``extra`` is absent, is not a profile file, or redefines a name.
    """
    profiles = _read(PUBLISHED)
    if extra is None:
        return profiles
    added = _read(extra)
    if taken := sorted(profiles.keys() & added.keys()):
        raise UsageProblem(f"{extra}: {', '.join(taken)} is the name of a published profile; choose another")
    return {**profiles, **added}


def _read(path: Path) -> dict[str, Profile]:
    agents = read_profile_file(path, ProfileFile).agents
    return {name: _anchored(profile, path.parent) for name, profile in agents.items()}


File = TypeVar("File", bound=Strict)

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""A safe one; in C it takes a tenth of the time, which every run of a sweep pays."""


def read_profile_file(path: Path, form: type[File]) -> File:
    """A YAML file of profiles in its form.

    Raises
    ------
    UsageProblem
        It is absent, no YAML, or breaks the form; names the field.
    """
    try:
        return form.model_validate(yaml.load(path.read_text(encoding="utf-8"), _LOADER))
    except OSError as error:
        raise UsageProblem(f"{path}: expected a file with profiles; {error.strerror}") from None
    except ValidationError as error:
        found = "; ".join(
            f"{'.'.join(str(part) for part in one['loc']) or 'the file'}: {one['msg']}"
            for one in error.errors()
        )
        raise UsageProblem(f"{path} is not a profile file: {found}") from None
    except NOT_YAML as error:
        raise UsageProblem(f"{path} is not YAML: {' '.join(str(error).split())}") from None


def _anchored(profile: Profile, folder: Path) -> Profile:
    if isinstance(profile, ReplayProfile):
        return profile.model_copy(update={"trace": folder / profile.trace})
    return profile
