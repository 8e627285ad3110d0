"""From raw upstream data to ``DATA/<release>/<task>/{public,private}/<case>/`` and a manifest."""

from __future__ import annotations

from hf_datasets.staging.base import StagingError
from hf_datasets.staging.stage import Plan, plan, stage

__all__ = ["Plan", "StagingError", "plan", "stage"]
