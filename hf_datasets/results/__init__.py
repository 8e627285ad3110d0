"""Finished runs as tables: read from a folder, pushed to and pulled from a dataset on the Hub, compacted, verified."""

from __future__ import annotations

from hf_datasets.results.read import Results as Results
from hf_datasets.results.read import read_results as read_results
