"""A set of small synthetic runs whose right judgement is known, to measure judges on.

Scripted agents of nine characters work on every track, each good at some items and bad at others; what they did
fixes the gold values. Twenty more runs try to talk a judge into points.
"""

from evaluator.judge.calibration.samples import Sample, injection_samples, samples

__all__ = ["Sample", "injection_samples", "samples"]
