"""The scripted agent and what it brings along: plans in words, and scripts that run in the sandbox."""

from runner.agents.baseline.agent import Baseline

__all__ = ["Baseline"]
