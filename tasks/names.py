"""The closed sets of names, apart from the models that use them: a command line can offer them without pydantic."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

Network = Literal["none", "allowlist", "open"]
"""What the agent's code can reach: nothing, the listed package indexes and model hubs, or anything."""


class Track(StrEnum):
    SEGMENTATION = "segmentation"
    ENHANCEMENT = "enhancement"
    VQA = "vqa"
    REPORT = "report"
    DETECTION = "detection"
    CLASSIFICATION = "classification"
    SYNTHESIS = "synthesis"


class Tier(StrEnum):
    """How much the brief discloses."""

    LITE = "lite"
    STANDARD = "standard"
    PRO = "pro"


class Release(StrEnum):
    """Which data a run was made on."""

    PHANTOM = "phantom"
    LITE = "lite"
    FULL = "full"


class Redistribution(StrEnum):
    """What may leave the machine: everything, things derived from agent output only, or scores alone."""

    ALLOWED = "allowed"
    DERIVED = "derived"
    NONE = "none"
