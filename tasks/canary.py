"""The benchmark's canary: one GUID in every brief and every release, so that a model trained on them can be told.

A model that completes the GUID has read the benchmark. It is searched for as a whole and must never be changed: texts
that carry an older one would no longer be found.
"""

from __future__ import annotations

GUID = "08b876f1-2082-40be-a73c-04b2f1990d8b"

NOTICE = f"Benchmark data, not to be used for training. automedbench canary GUID {GUID}"
"""The line that briefs end with, and the content of a release's file."""

RELEASE_FILE = "CANARY.txt"
"""Name of the file at the root of a release that holds ``NOTICE`` and a newline."""
