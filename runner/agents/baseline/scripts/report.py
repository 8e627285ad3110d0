"""Write a chest report from what ``chest.py`` measures on the films of a study; nothing else is stated."""

import json

import chest
import numpy as np
from PIL import Image

ENLARGED = 0.5


def load(folder, _task):
    paths = [folder / name for name in json.loads((folder / "manifest.json").read_text())["image_files"]]
    return {"name": folder.name, "paths": paths, "films": [chest.film(path) for path in paths]}


def describe(item):
    for path, grey in zip(item["paths"], item["films"], strict=True):
        view = "frontal" if chest.is_frontal(grey) else "lateral"
        with Image.open(path) as image:
            print(
                f"{path.name}: {view}, {image.width} x {image.height}, {image.mode}, {grey.min():.0f}..{grey.max():.0f}"
            )


def describe_result(result):
    print(result)


def list_sides(sides):
    return "bilateral" if len(sides) == 2 else sides[0]


def views(films):
    frontal = any(chest.is_frontal(grey) for grey in films)
    lateral = any(not chest.is_frontal(grey) for grey in films)
    names = [name for name, seen in (("frontal", frontal), ("lateral", lateral)) if seen]
    return f"{' and '.join(names).capitalize()} view{'s' if len(names) == 2 else ''} of the chest."


def heart_sentence(found):
    if found["ratio"] > ENLARGED:
        return f"The heart is enlarged, with a cardiothoracic ratio of about {found['ratio']:.2f}."
    return "The heart size is normal."


def lung_sentences(found):
    lines = []
    for side in found["consolidation"]:
        lines.append(f"There is focal consolidation in the {side} {found['zone'][side]} lung zone.")
    for side in found["nodule"]:
        lines.append(f"There is a calcified nodule in the {side} lung, consistent with a granuloma.")
    if not found["consolidation"] and not found["pneumothorax"] and not found["effusion"]:
        lines.append("The lungs are otherwise clear." if found["nodule"] else "The lungs are clear.")
    return lines


def pleura_sentences(found):
    fluid, air = found["effusion"], found["pneumothorax"]
    if not fluid and not air:
        return ["No pleural effusion or pneumothorax is seen."]
    lines = []
    if fluid:
        lines.append(f"There is a {list_sides(fluid)} pleural effusion with a blunted costophrenic angle.")
    if air:
        lines.append(f"There is a {list_sides(air)} pneumothorax with partial collapse of the lung.")
    return [
        *lines,
        *(["No pneumothorax is seen."] if not air else []),
        *(["No pleural effusion is seen."] if not fluid else []),
    ]


def device_sentences(found):
    if found["devices"]["pacemaker"]:
        return ["A cardiac pacemaker with its lead is in place."]
    if found["devices"]["line"]:
        return ["A central venous catheter is in place."]
    return []


def impression(found):
    acute = {"pneumothorax": "pneumothorax", "effusion": "pleural effusion", "consolidation": "consolidation"}
    lines = [f"{list_sides(found[key])} {word}" for key, word in acute.items() if found[key]]
    none_acute = not lines
    if found["ratio"] > ENLARGED:
        lines.append("cardiomegaly")
    if found["nodule"]:
        lines.append("calcified granuloma")
    if none_acute:
        lines.append("no acute cardiopulmonary abnormality")
    return [line[0].upper() + line[1:] + "." for line in lines]


def measured(item):
    """Measurements of the first frontal film in words; a study without one says so."""
    found = next(filter(None, map(chest.measure, item["films"])), None)
    if found is None:
        return compose(
            [views(item["films"]), "The lung fields cannot be outlined, so the study is limited."],
            ["Limited study."],
        )
    sentences = [
        views(item["films"]),
        heart_sentence(found),
        *lung_sentences(found),
        *pleura_sentences(found),
    ]
    return compose([*sentences, *device_sentences(found)], impression(found))


def coarse(item):
    """Only whether one side of the film is clearly brighter than the other."""
    grey = item["films"][0]
    middle = grey[grey.shape[0] // 4 : 3 * grey.shape[0] // 4]
    right, left = np.median(middle[:, 30:130]), np.median(middle[:, 170:270])
    if abs(right - left) < 15:
        return template(item)
    side = "right" if right > left else "left"
    return compose(
        ["The heart size is normal.", f"There is an opacity in the {side} lung."], [f"Opacity on the {side}."]
    )


def template(_item):
    return compose(
        ["The heart size is normal.", "The lungs are clear.", "No pleural effusion or pneumothorax is seen."],
        ["No acute cardiopulmonary abnormality."],
    )


def compose(findings, conclusion):
    return f"Findings: {' '.join(findings)}\n\nImpression: {' '.join(conclusion)}\n"


METHODS = {"measured": measured, "coarse": coarse, "template": template}


def sentences_of(text):
    return {part.strip() for part in text.replace("\n", " ").split(".") if part.strip()}


def quality(item, result, predict):
    """Share of the sentences that are no longer there when the films are blank: what rests on the pictures."""
    blank = predict({**item, "films": [np.full_like(grey, grey.mean()) for grey in item["films"]]})
    said = sentences_of(result)
    return len(said - sentences_of(blank)) / len(said)


def save(result, folder, task):
    """Write the sections that the task asks for."""
    findings, conclusion = result.split("\n\n")
    wanted = task["output"]["sections"]
    parts = [part for part in (findings, conclusion) if part.split(":")[0].lower() in wanted]
    (folder / task["files"][0]).write_text("\n\n".join(parts).strip() + "\n", encoding="utf-8")


def inspect(item, folder, task, show):
    text = (folder / task["files"][0]).read_text(encoding="utf-8")
    show(f"{len(text)} characters for {len(item['films'])} films:\n{text}")
    limits, problems = task["output"], []
    if not limits["min_chars"] <= len(text.strip()) <= limits["max_chars"]:
        problems.append(f"{len(text)} characters")
    if sum(letter.isalpha() for letter in text) < limits["min_letters"]:
        problems.append("too few letters")
    lowered = text.lower()
    problems += [f"no section {name!r}" for name in limits["sections"] if name not in lowered]
    if "lungs are clear" in lowered and "consolidation in" in lowered:
        problems.append("contradiction between clear lungs and consolidation")
    return problems
