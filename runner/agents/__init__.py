"""Agents by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.agents.base import Agent
from runner.errors import EnvironmentProblem, unknown
from runner.keys import find_key, missing

if TYPE_CHECKING:
    from runner.agents.profiles import Profile

__all__ = ["Agent", "agent_names", "agent_rows", "load_agent", "require_agent"]


def agent_names(agents_file: Path | None = None) -> list[str]:
    """Names that :func:`load_agent` knows."""
    from runner.agents.profiles import load_profiles

    return sorted(load_profiles(agents_file))


def require_agent(name: str, agents_file: Path | None = None) -> Profile:
    """The profile of that name.

    Raises
    ------
    UsageProblem
        No such profile, or the profile file cannot be read.
    """
    from runner.agents.profiles import load_profiles

    profiles = load_profiles(agents_file)
    if name not in profiles:
        raise unknown("agent", name, profiles)
    return profiles[name]


def agent_rows(agents_file: Path | None = None) -> list[dict[str, Any]]:
    """One row a profile, for a table."""
    from runner.agents.profiles import ChatProfile, load_profiles

    rows = []
    for name, profile in sorted(load_profiles(agents_file).items()):
        chat = profile if isinstance(profile, ChatProfile) else None
        prices = chat.prices if chat else None
        rows.append(
            {
                "agent": name,
                "kind": profile.kind,
                "model": chat.model if chat else None,
                "key": _key_state(chat.key_env) if chat else None,
                "usd_in": prices.input if prices else None,
                "usd_out": prices.output if prices else None,
            }
        )
    return rows


def load_agent(name: str, agents_file: Path | None = None) -> Agent:
    """The agent of a profile, ready to run.

    Raises
    ------
    UsageProblem
        No such profile, or the profile file cannot be read.
    EnvironmentProblem
        The profile's key is not set.
    """
    from runner.agents.profiles import BaselineProfile, ChatProfile, NoopProfile

    profile = require_agent(name, agents_file)
    if isinstance(profile, BaselineProfile):
        from runner.agents.baseline import Baseline

        return Baseline()
    if isinstance(profile, NoopProfile):
        from runner.agents.noop import NoopAgent

        return NoopAgent(name)
    if isinstance(profile, ChatProfile):
        from runner.agents.chat import ChatAgent

        return ChatAgent(name, profile, _key(name, profile.key_env))
    from runner.agents.replay import ReplayAgent

    return ReplayAgent(name, profile.trace)


def _key(agent: str, variable: str | None) -> str | None:
    if variable is None:
        return None
    key = find_key(variable)
    if key is None:
        raise EnvironmentProblem(f"agent {agent!r} needs a key: {missing(variable)}")
    return key


def _key_state(variable: str | None) -> str | None:
    if variable is None:
        return None
    return f"{variable} ({'set' if find_key(variable) else 'not set'})"
