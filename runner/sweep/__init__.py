"""Sweeps: thousands of cells planned, locked, run on many slots, and nothing lost.

``sweep plan`` expands a ``SWEEP.yaml``; ``sweep lock`` freezes what it depends on; ``sweep run`` executes it with an
engine (``engine.py``); everything lies in one folder (``folder.py``).
"""
