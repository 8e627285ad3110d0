"""Answer questions about medical pictures: the question's words select a measurement, the measurement the answer."""

import json
import re
import time

import chest
import numpy as np
from PIL import Image
from scipy import ndimage as ndi
from skimage.measure import label, regionprops
from skimage.morphology import disk, opening

DARK, WHITE = 20, 240
CLOSED = re.compile(r"^(is|are|was|were|does|do|did|can|could|has|have|any)\b")
MODALITIES = {
    "MRI": r"\bmri?\b|magnetic resonance",
    "CT": r"\bct\b|computed tomograph|\bcat scan",
    "X-ray": r"x-?ray|radiograph|plain film",
    "fundus photography": r"fundus|ophthalmoscop",
    "microscopy": r"microscop|histolog|\bstain",
    "ultrasound": r"ultraso|sonogra",
}
PLANES = {
    "axial": r"axial|transverse|cross.?section",
    "coronal": r"coronal",
    "sagittal": r"sagittal",
    "PA": r"\bpa\b|frontal",
}
FINDINGS = {
    "pneumothorax": r"pneumothora",
    "effusion": r"effusion|costophrenic",
    "consolidation": r"consolidat|opaci|pneumonia|infiltrat|airspace",
    "nodule": r"nodul|granuloma|\bmass\b|calcifi",
    "cardiomegaly": r"cardiomegal|heart (is )?(enlarged|big)|(enlarged|large) (heart|cardiac)|cardiac enlargement",
    "device": r"pacemaker|device|generator|\bleads?\b",
    "line": r"catheter|central line|\bline\b|\btube\b",
}
PARTS = {
    "heart": r"\bheart\b|cardiac",
    "lung": r"\blungs?\b",
    "liver": r"\bliver\b|hepat",
    "kidney": r"\bkidneys?\b|renal",
    "brain": r"\bbrain\b|cerebr|ventricle",
    "eye": r"optic|retina|\beye\b|macula|fundus",
    "spine": r"\bspine\b|vertebra",
}
FORMS = {
    "modality": r"modality|(type|kind) of (imag|scan|study)|how was .*(taken|acquired|obtained)",
    "plane": r"\bplane\b|orientation|\bview\b|projection",
    "side": r"which (side|lung|hemithorax)|what side|where|located|location",
    "finding": r"abnormal|finding|wrong|diagnos|patholog|disease",
    "count": r"^how many",
    "region": r"body part|part of the body|region",
    "organ": r"organ",
}
REGIONS = {"brain": "head"}
ORGANS = {"chest": "lungs"}


def load(folder, _task):
    question = json.loads((folder / "question.json").read_text(encoding="utf-8"))
    picture = Image.open(folder / question["image_paths"][0])
    return {
        "name": folder.name,
        "question": question["question"].lower().strip(),
        "rgb": np.asarray(picture.convert("RGB"), dtype=np.float32),
        "options": question.get("options"),
    }


def describe(item):
    rgb = item["rgb"]
    print(f"question {item['question']!r}")
    print(f"picture shape {rgb.shape}, 8-bit, {rgb.min():.0f} to {rgb.max():.0f}, seen as {look_at(rgb)}")


def describe_result(result):
    print(result)


# --- the picture ------------------------------------------------------------------------------------------------------


def look_at(rgb):
    """Modality, plane and what part of the body is seen, from colour, surround and bright or dark fields."""
    grey = rgb.mean(axis=2)
    sides, ends = np.concatenate([grey[:, 0], grey[:, -1]]), np.concatenate([grey[0], grey[-1]])
    dark_sides, dark_ends = float((sides < DARK).mean()), float((ends < DARK).mean())
    if np.mean(rgb.max(axis=2) - rgb.min(axis=2)) > 15:
        is_eye = dark_sides > 0.5 and rgb[..., 0].mean() > 1.5 * rgb[..., 2].mean()
        return {
            "modality": "fundus photography" if is_eye else "microscopy",
            "plane": "",
            "part": "eye" if is_eye else "tissue",
        }
    if dark_sides < 0.8 and chest.is_frontal(standard(grey)):
        return {"modality": "X-ray", "plane": "PA", "part": "chest"}
    body = ndi.binary_fill_holes(grey >= DARK)
    rows, columns = np.nonzero(body.any(axis=1))[0], np.nonzero(body.any(axis=0))[0]
    bone = float((grey >= WHITE).sum() / max(body.sum(), 1))
    if dark_sides > 0.8 and (dark_ends < 0.6 or np.ptp(columns) > 1.1 * np.ptp(rows)) and bone > 0.008:
        hollow = float((body & (grey < DARK)).sum() / body.sum())
        part = "chest" if dark_ends > 0.6 and hollow > 0.2 else "abdomen"
        return {"modality": "CT", "plane": "axial" if dark_ends > 0.6 else "coronal", "part": part}
    return {"modality": "MRI", "plane": "axial" if dark_ends > 0.6 else "coronal", "part": "brain"}


def standard(grey):
    """The grey picture at the width for which ``chest`` is made."""
    height = max(1, round(grey.shape[0] * chest.WIDTH / grey.shape[1]))
    picture = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))
    return np.asarray(picture.resize((chest.WIDTH, height), Image.Resampling.BILINEAR), dtype=np.float32)


def findings_of(rgb, seen):
    """Finding -> sides where it was measured ('' where it has no side)."""
    grey = rgb.mean(axis=2)
    if seen["part"] != "chest":
        return {}
    if seen["modality"] == "CT":
        return {"effusion": layered_fluid(standard(grey))}
    found = chest.measure(standard(grey))
    if found is None:
        return {}
    return {
        **{name: found[name] for name in ("pneumothorax", "effusion", "consolidation", "nodule")},
        "cardiomegaly": [""] if found["ratio"] > 0.5 else [],
        "device": [""] if found["devices"]["pacemaker"] else [],
        "line": [""] if found["devices"]["line"] else [],
    }


def layered_fluid(grey):
    """Sides of an axial chest CT where the lung does not reach as far back as on the other side."""
    lungs = sorted(chest.lungs_of(grey), key=lambda lung: np.nonzero(lung)[1].mean())
    if len(lungs) < 2:
        return []
    back = [np.nonzero(lung)[0].max() for lung in lungs]
    reach = 0.08 * np.ptp(np.nonzero(grey >= DARK)[0])
    return [
        side for side, own, other in zip(chest.SIDES, back, back[::-1], strict=True) if other - own > reach
    ]


def bright_organs(grey):
    """Number of compact, bright, boneless blobs: enhanced kidneys in an abdominal CT."""
    smooth = ndi.gaussian_filter(grey, 1.0)
    blobs = label(opening((smooth > 150) & (smooth < WHITE), disk(3)))
    return sum(
        0.006 < region.area / grey.size < 0.06 and region.solidity > 0.75 for region in regionprops(blobs)
    )


def shows(part, rgb, seen):
    """Whether a part of the body can be seen."""
    if part == "kidney":
        return (
            seen["modality"] == "CT"
            and seen["part"] == "abdomen"
            and bright_organs(standard(rgb.mean(axis=2))) >= 2
        )
    places = {
        "heart": ("chest",),
        "lung": ("chest",),
        "liver": ("abdomen",),
        "brain": ("brain",),
        "eye": ("eye",),
    }
    return seen["part"] in places.get(part, ("chest", "abdomen"))


# --- the question -----------------------------------------------------------------------------------------------------


def named(patterns, question):
    return [name for name, pattern in patterns.items() if re.search(pattern, question)]


def side_in(question):
    return next((side for side in chest.SIDES if re.search(rf"\b{side}\b", question)), "")


def yes_or_no(question, rgb):
    """Whether what is asked holds in the picture; None where the words select nothing that is measured."""
    seen = look_at(rgb)
    findings = findings_of(rgb, seen)
    asked, side = named(FINDINGS, question), side_in(question)
    if re.search(r"\bnormal\b|unremarkable|\bclear\b", question):
        return not any(findings.values())
    if "abnormal" in question:
        return any(findings.values())
    if asked:
        return all(side in findings.get(name, []) if side else bool(findings.get(name)) for name in asked)
    if re.search(r"\bheart\b|cardiac", question) and re.search(r"enlarge|\bbig\b|size", question):
        return bool(findings.get("cardiomegaly"))
    facts = [seen["modality"] == name for name in named(MODALITIES, question)]
    facts += [seen["plane"] == name for name in named(PLANES, question)]
    facts += [shows(name, rgb, seen) for name in named(PARTS, question)]
    return all(facts) if facts else None


def short_answer(question, rgb):
    """A word or two; empty where the words select nothing that is measured."""
    seen = look_at(rgb)
    findings = findings_of(rgb, seen)
    form = next(iter(named(FORMS, question)), "")
    if form == "finding":
        return next((name for name, sides in findings.items() if sides), "none")
    if form == "side":
        return side_answer(question, findings)
    if form == "count":
        return "2" if set(named(PARTS, question)) & {"lung", "kidney"} else "1"
    if form == "organ" and seen["part"] == "abdomen":
        return "spleen" if re.search(r"right side of the (image|picture|scan)", question) else "liver"
    names = {
        "modality": seen["modality"],
        "plane": seen["plane"],
        "region": REGIONS.get(seen["part"], seen["part"]),
    }
    return {**names, "organ": ORGANS.get(seen["part"], seen["part"])}.get(form, "")


def side_answer(question, findings):
    """The side of the finding that is asked for, as the question calls it."""
    sides = next((findings[name] for name in named(FINDINGS, question) if findings.get(name)), [])
    if len(sides) != 1 or not sides[0]:
        return "both" if sides and sides[0] else ""
    return f"{sides[0]} lung" if "which lung" in question else sides[0]


# --- the candidates: an answer, and whether the picture was measured for it -------------------------------------------


def by_rules(item):
    question, rgb = item["question"], item["rgb"]
    if CLOSED.match(question):
        truth = yes_or_no(question, rgb)
        return ("yes" if truth else "no"), truth is not None
    text = short_answer(question, rgb)
    return text or commonest(question), bool(text)


def by_kind(item):
    """Modality and plane only."""
    question, seen = item["question"], look_at(item["rgb"])
    if CLOSED.match(question):
        asked = named(MODALITIES, question)
        return ("yes" if seen["modality"] in asked else "no"), bool(asked)
    form = next(iter(named(FORMS, question)), "")
    known = seen[form] if form in ("modality", "plane") else ""
    return known or commonest(question), bool(known)


def by_prior(item):
    return commonest(item["question"]), False


def commonest(question):
    """The commonest answer to the form of the question; the picture is not looked at."""
    if CLOSED.match(question):
        return "no"
    form = next(iter(named(FORMS, question)), "")
    return {"modality": "X-ray", "plane": "axial", "side": "right", "count": "1"}.get(form, "chest")


def timed(answer):
    """The answer with the seconds it took, in the form that ``save`` writes."""

    def run(item):
        start = time.monotonic()
        text, measured = answer(item)
        seconds = time.monotonic() - start
        return {
            "name": item["name"],
            "answer": text,
            "measured": measured,
            "seconds": seconds,
            "options": item["options"],
        }

    return run


METHODS = {"rules": timed(by_rules), "coarse": timed(by_kind), "prior": timed(by_prior)}


def quality(_item, result, _predict):
    """1 where the question's words led to a measurement of the picture, 0 where the commonest answer had to do."""
    return float(result["measured"])


def letter_of(result):
    """The first option whose text holds the answer, else the first option; '' for an open question."""
    options = result["options"] or {}
    return next(
        (key for key, text in options.items() if result["answer"].lower() in text.lower()),
        next(iter(options), ""),
    )


def save(result, folder, task):
    answer = {
        "question_id": result["name"],
        "predicted_label": letter_of(result),
        "predicted_answer": result["answer"],
        "raw_model_output": result["answer"],
        "model_name": "rules on image measurements",
        "runtime_s": round(result["seconds"], 4),
    }
    (folder / task["files"][0]).write_text(json.dumps(answer, indent=1), encoding="utf-8")


def inspect(item, folder, task, show):
    answer = json.loads((folder / task["files"][0]).read_text(encoding="utf-8"))
    show(
        f"question {item['question']!r}\nparsed answer {answer['predicted_answer']!r}, fields {sorted(answer)}"
    )
    problems = []
    if answer["question_id"] != item["name"]:
        problems.append(f"answers {answer['question_id']!r}")
    if not answer["predicted_answer"].strip() or len(answer["predicted_answer"].split()) > 5:
        problems.append("no short answer")
    if CLOSED.match(item["question"]) and answer["predicted_answer"] not in ("yes", "no"):
        problems.append("a yes-or-no question without yes or no")
    return problems
