"""Statistics over tables of runs and cases: means as published, intervals, comparisons, reliability, cost, errors.

Everything takes pandas frames whose columns are the fields of ``RunRecord`` and ``CaseRecord``, and a plan that says
which runs there should be. Scores stay in [0, 1]. What is missing is missing: it is never taken for a zero and never
left out without being counted beside the figure.
"""

from hf_datasets.stats.boards import board_title, with_boards
from hf_datasets.stats.compare import case_units, cell_units, compare, holm, ranks
from hf_datasets.stats.frames import cases_frame, counted, runs_frame, unplanned
from hf_datasets.stats.means import CellMeans, cell_means, tier_change
from hf_datasets.stats.outcomes import (
    KS,
    completed,
    cost_per_completed,
    end_reasons,
    error_shares,
    overall_by_codes,
    reliability,
    resources,
)
from hf_datasets.stats.plans import observed_plan, published_plan
from hf_datasets.stats.resample import DRAWS

__all__ = [
    "DRAWS",
    "KS",
    "CellMeans",
    "board_title",
    "case_units",
    "cases_frame",
    "cell_means",
    "cell_units",
    "compare",
    "completed",
    "cost_per_completed",
    "counted",
    "end_reasons",
    "error_shares",
    "holm",
    "observed_plan",
    "overall_by_codes",
    "published_plan",
    "ranks",
    "reliability",
    "resources",
    "runs_frame",
    "tier_change",
    "unplanned",
    "with_boards",
]
