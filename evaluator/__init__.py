"""How a run is scored: safe readers, metrics, tracks, stages, rubric, judge, error codes."""
