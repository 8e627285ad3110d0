"""Demands that are met more or less: the words in which rules are written down."""

import numpy as np


def ramp(value, low, high):
    """0 up to ``low``, 1 from ``high`` on, a straight line between; falling where high is below low."""
    return float(np.clip((value - low) / (high - low), 0, 1))
