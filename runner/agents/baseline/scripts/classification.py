"""Name the class of a picture by rules on what is measured in it; no rule was learned from labelled pictures."""

import json

import brain_rules
import film_rules
import numpy as np
import skin_rules
import tissue_rules
from PIL import Image

RULES = {
    brain_rules.CLASSES: brain_rules.scores,
    tissue_rules.TISSUES: tissue_rules.tissue_scores,
    tissue_rules.STATES: tissue_rules.node_scores,
    film_rules.CLASSES: film_rules.scores,
    skin_rules.CLASSES: skin_rules.scores,
}
COMMONEST = ("notumor", "adi", "negative", "pneumonia", "melanocytic_nevi")
TONES = {
    "adi": (235, 225, 232),
    "back": (238, 236, 240),
    "deb": (190, 140, 175),
    "lym": (130, 95, 150),
    "muc": (212, 205, 228),
    "mus": (215, 130, 165),
    "norm": (205, 165, 200),
    "str": (225, 175, 200),
    "tum": (155, 110, 170),
    "negative": (120, 90, 150),
    "positive": (170, 130, 185),
    "vascular_lesions": (150, 40, 55),
    "melanoma": (80, 55, 50),
    "melanocytic_nevi": (150, 100, 80),
    "actinic_keratoses": (215, 125, 115),
    "basal_cell_carcinoma": (222, 160, 155),
    "benign_keratosis_like_lesions": (170, 130, 95),
    "dermatofibroma": (205, 160, 140),
}
"""What a picture of the class looks like from far away."""
SHARPNESS = 6.0


def load(folder, task):
    with Image.open(folder / "image.jpg") as image:
        rgb = np.asarray(image.convert("RGB"), dtype=np.float32)
    return {"name": folder.name, "rgb": rgb, "classes": tuple(task["output"]["classes"])}


def describe(item):
    rgb = item["rgb"]
    colour = " ".join(f"{value:.0f}" for value in rgb.mean(axis=(0, 1)))
    print(f"picture {rgb.shape[1]} x {rgb.shape[0]}, mean colour {colour}, {rgb.min():.0f}..{rgb.max():.0f}")


def describe_result(result):
    print(result["label"], {name: round(share, 3) for name, share in result["probabilities"].items()})


def answer(classes, scores):
    """The class of the highest score, and shares that add up to 1 (a softmax of the scores)."""
    values = np.array([scores.get(name, 0.0) for name in classes])
    shares = np.exp(SHARPNESS * (values - values.max()))
    shares /= shares.sum()
    return {
        "label": classes[int(values.argmax())],
        "probabilities": dict(zip(classes, shares.tolist(), strict=True)),
    }


def rules(item):
    scores = RULES[item["classes"]](item["rgb"])
    best = max(scores.values())
    if best < 0.05:
        return prior(item)
    return answer(item["classes"], scores)


def tone(item):
    """Nearest by the mean colour of the middle; classes without a tone of their own never win."""
    height, width = item["rgb"].shape[:2]
    middle = item["rgb"][height // 4 : -(height // 4), width // 4 : -(width // 4)].mean(axis=(0, 1))
    known = {name: np.array(TONES[name]) for name in item["classes"] if name in TONES}
    if not known:
        return prior(item)
    away = {name: float(np.linalg.norm(middle - colour)) / 60 for name, colour in known.items()}
    return answer(item["classes"], {name: float(np.exp(-distance)) for name, distance in away.items()})


def prior(item):
    return answer(item["classes"], {name: float(name in COMMONEST) for name in item["classes"]})


METHODS = {"rules": rules, "tone": tone, "prior": prior}


def quality(item, result, predict):
    """How far the shares move when the picture is blank, times whether mirrored pictures keep the class."""
    blank = predict({**item, "rgb": np.full_like(item["rgb"], item["rgb"].mean())})
    moved = (
        sum(abs(result["probabilities"][name] - share) for name, share in blank["probabilities"].items()) / 2
    )
    turned = [predict({**item, "rgb": item["rgb"][:, ::-1]}), predict({**item, "rgb": item["rgb"] * 0.96})]
    return moved * sum(other["label"] == result["label"] for other in turned) / len(turned)


def save(result, folder, task):
    content = {"label": result["label"], "probabilities": result["probabilities"]}
    (folder / task["files"][0]).write_text(json.dumps(content), encoding="utf-8")


def inspect(item, folder, task, show):
    content = json.loads((folder / task["files"][0]).read_text(encoding="utf-8"))
    classes, shares = task["output"]["classes"], content.get("probabilities", {})
    show(f"{item['name']}: {content.get('label')}, shares {shares}")
    problems = []
    if content.get("label") not in classes:
        problems.append(f"label {content.get('label')!r} is no class of the task")
    if set(shares) != set(classes) or abs(sum(shares.values()) - 1) > 1e-3:
        problems.append("the shares do not name every class or do not add up to 1")
    elif shares[content["label"]] < max(shares.values()):
        problems.append("another class has the larger share")
    return problems
