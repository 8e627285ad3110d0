"""The published weights of the score, read by brief, evaluator and Space alike."""

from __future__ import annotations

from types import MappingProxyType

STAGE_WEIGHTS = MappingProxyType({"S1": 0.25, "S2": 0.15, "S3": 0.35, "S4": 0.15, "S5": 0.10})
"""AGENTIC = sum of weight times stage value; the weights sum to 1."""

OVERALL_WEIGHTS = MappingProxyType({"agentic": 0.5, "task": 0.5})
"""OVERALL = half AGENTIC, half TASK."""
