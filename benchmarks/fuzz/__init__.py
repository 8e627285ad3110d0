"""Fuzzing of everything that reads what a stranger wrote: ``python -m benchmarks.fuzz``."""
