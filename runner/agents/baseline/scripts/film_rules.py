"""Pneumonia on a frontal chest film: a part of a lung field denser than lung and less dense than the heart."""

import chest
import numpy as np
from fuzzy import ramp
from PIL import Image

CLASSES = ("normal", "pneumonia")


def scores(rgb):
    picture = Image.fromarray(np.clip(rgb, 0, 255).astype(np.uint8)).convert("L")
    height = max(1, round(picture.height * chest.WIDTH / picture.width))
    grey = np.asarray(picture.resize((chest.WIDTH, height), Image.Resampling.BILINEAR), dtype=np.float32)
    found = chest.measure(grey)
    if found is None:
        return {"normal": 0.45, "pneumonia": 0.55}
    dense = max(found["numbers"]["dense"].values())
    ill = 1.0 if found["consolidation"] else ramp(dense, 0.01, 0.08)
    return {"normal": 1 - ill, "pneumonia": ill}
