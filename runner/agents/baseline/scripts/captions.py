"""Write the caption of a tissue picture from what ``looks.py`` measures on it; nothing else is stated."""

import json

import looks
import numpy as np
from PIL import Image

NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
STRANDS = 0.22


def load(folder, _task):
    (name,) = json.loads((folder / "manifest.json").read_text())["image_files"]
    with Image.open(folder / name) as image:
        rgb = np.asarray(image.convert("RGB"), dtype=np.float32)
    return {"name": folder.name, "rgb": rgb}


def describe(item):
    rgb = item["rgb"]
    colour = " ".join(f"{value:.0f}" for value in rgb.mean(axis=(0, 1)))
    print(f"picture {rgb.shape[1]} x {rgb.shape[0]}, mean colour {colour}, {rgb.min():.0f}..{rgb.max():.0f}")


def describe_result(result):
    print(result)


def coherence(rgb):
    """How far brightness changes in one direction only, from 0 (round things) to 1 (parallel strands)."""
    grey = looks.ndi.gaussian_filter(rgb.mean(axis=2), 1.0)
    down, across = np.gradient(grey)
    xx, yy, xy = (across * across).mean(), (down * down).mean(), (across * down).mean()
    return float(np.hypot(xx - yy, 2 * xy) / max(xx + yy, 1e-6))


def tissue_of(rgb, found):
    if found["fat"]:
        return "adipose tissue made of empty fat cells"
    count = len(found["gland"])
    if count:
        glands = f"{NUMBERS[count] if count < len(NUMBERS) else 'many'} gland{'s' if count > 1 else ''}"
        return f"glandular tissue with {glands} lined by epithelium in stroma"
    if coherence(rgb) > STRANDS:
        return "smooth muscle with spindle cells in parallel strands"
    return "connective tissue with scattered cells"


def stain_of(found):
    return "Immunohistochemical DAB stain" if found["brown"] else "Hematoxylin and eosin stain"


def measured(item):
    found = looks.tissue_findings(item["rgb"])
    sentences = [f"{stain_of(found)} of {tissue_of(item['rgb'], found)}."]
    sentences.append(
        "There is inflammation with many lymphocytes." if found["infiltrate"] else "No inflammation is seen."
    )
    if found["vessel"]:
        sentences.append("A vessel holds red blood cells.")
    return " ".join(sentences)


def stain_only(item):
    brown = looks.is_brown(item["rgb"]).mean() > 0.004
    return f"{stain_of({'brown': brown})} of tissue with cells and stroma."


def template(_item):
    return "Hematoxylin and eosin stain of tissue with cells and stroma."


METHODS = {"measured": measured, "stain": stain_only, "template": template}


def quality(item, result, predict):
    """Share of the words that are no longer there when the picture is blank: what rests on the pixels."""
    blank = predict({**item, "rgb": np.full_like(item["rgb"], item["rgb"].mean())})
    said = set(result.lower().split())
    return len(said - set(blank.lower().split())) / len(said)


def save(result, folder, task):
    (folder / task["files"][0]).write_text(result + "\n", encoding="utf-8")


def inspect(item, folder, task, show):
    text = (folder / task["files"][0]).read_text(encoding="utf-8").strip()
    show(f"{item['name']}: {text}")
    limits, problems = task["output"], []
    if not limits["min_chars"] <= len(text) <= limits["max_chars"]:
        problems.append(f"{len(text)} characters")
    if sum(letter.isalpha() for letter in text) < limits["min_letters"]:
        problems.append("too few letters")
    if not text.endswith("."):
        problems.append("the last sentence has no end")
    return problems
