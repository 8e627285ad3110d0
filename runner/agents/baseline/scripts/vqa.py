"""Answer questions about medical pictures: the question's words select a measurement, the measurement the answer."""

import json
import re
import time

import chest
import looks
import numpy as np
from looks import findings_of, look_at
from PIL import Image

CLOSED = re.compile(r"^(is|are|was|were|does|do|did|can|could|has|have|any)\b")
MODALITIES = {
    "MRI": r"\bmri?\b|magnetic resonance",
    "CT": r"\bct\b|computed tomograph|\bcat scan",
    "X-ray": r"x-?ray|radiograph|plain film",
    "fundus photography": r"fundus|ophthalmoscop",
    "microscopy": r"microscop|histolog|\bstain",
    "ultrasound": r"ultraso|sonogra",
    "endoscopy": r"endoscop|colonoscop|gastroscop",
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
    "lesion": r"\blesion|metasta|tumou?r",
    "cyst": r"\bcysts?\b",
    "stone": r"\bstones?\b|calculus|calculi",
    "shadow": r"acoustic shadow",
    "polyp": r"polyp",
    "instrument": r"instrument|forceps|snare",
    "box": r"\bbox\b",
    "colitis": r"colitis|inflam|ulcer",
    "haemorrhage": r"h(a)?emorrhage|bleed",
    "exudate": r"exudate",
    "gland": r"gland",
    "fat": r"adipose|\bfat\b",
    "infiltrate": r"infiltrate|inflammatory",
    "vessel": r"vessel|red cells|red blood",
    "brown": r"brown|positive",
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
    "stain": r"\bstain(ing)? (was|is|has)|(which|what) stain",
    "tissue": r"(type|kind) of tissue|what tissue",
    "colour": r"colou?r of|(which|what) colou?r",
    "weighting": r"\bt1\b.* or .*\bt2\b",
    "fluid": r"(fluid|csf|ventricle).*\bbright or dark",
    "disc": r"optic disc.*(right or .*left|left or .*right)",
    "side": r"which (side|lung|hemithorax)|what side|where|located|location",
    "count": r"^how many",
    "finding": r"abnormal|finding|wrong|diagnos|patholog|disease|what is (seen|shown|present)",
    "region": r"body part|part of the body|region",
    "organ": r"organ",
}
EITHER = ("weighting", "fluid", "disc")
"""Forms that offer two words to choose from, though they begin like a question for yes or no."""
REGIONS = {"brain": "head"}
ORGANS = {"chest": "lungs"}
COURSES = {
    "appears": r"\bappear|develop|\bnew\b|increas",
    "resolves": r"resolv|disappear|decreas",
    "stays": r"\ball\b|throughout|unchanged|persist",
    "never": r"\bno (frame|image)|never|absent",
    "changes side": r"\bsides?\b",
}
TABLES = (MODALITIES, PLANES, FINDINGS, PARTS, COURSES)


def load(folder, _task):
    question = json.loads((folder / "question.json").read_text(encoding="utf-8"))
    asked = last_question(question["question"])
    pictures = [Image.open(folder / name) for name in question["image_paths"]]
    return {
        "name": folder.name,
        "question": asked,
        "rgbs": [
            looks.panel_of(np.asarray(each.convert("RGB"), dtype=np.float32), asked) for each in pictures
        ],
        "options": question.get("options"),
    }


def last_question(text):
    """What is asked, without a history before it and choices or image marks around it."""
    text = re.sub(r"<image \d+>", "", re.split(r"(?i)answer choices:", text)[0])
    sentences = re.findall(r"[^.?!]*\?", text)
    return (sentences[-1] if sentences else text).lower().strip()


def describe(item):
    print(f"question {item['question']!r}, options {item['options']}")
    for rgb in item["rgbs"]:
        print(f"picture shape {rgb.shape}, 8-bit, {rgb.min():.0f} to {rgb.max():.0f}, seen as {look_at(rgb)}")


def describe_result(result):
    print(result)


# --- one picture ------------------------------------------------------------------------------------------------------


def shows(part, rgb, seen):
    """Whether a part of the body can be seen."""
    if part == "kidney":
        return len(findings_of(rgb, seen).get("kidney", [])) >= 2
    places = {
        "heart": ("chest",),
        "lung": ("chest",),
        "liver": ("abdomen",),
        "brain": ("brain",),
        "eye": ("eye",),
    }
    return seen["part"] in places.get(part, ("chest", "abdomen"))


def named(patterns, question):
    return [name for name, pattern in patterns.items() if re.search(pattern, question)]


def named_here(question, findings):
    """The findings that a question names; of those, the ones that this kind of picture is measured for."""
    asked = named(FINDINGS, question)
    return [name for name in asked if name in findings] or asked


def side_in(question):
    return next((side for side in chest.SIDES if re.search(rf"\b{side}\b", question)), "")


def form_of(question):
    return next(iter(named(FORMS, question)), "")


def wants_yes_or_no(question):
    return bool(CLOSED.match(question)) and form_of(question) not in EITHER


def yes_or_no(question, rgb):
    """Whether what is asked holds in the picture; None where the words select nothing that is measured."""
    seen = look_at(rgb)
    findings = findings_of(rgb, seen)
    asked, side = named_here(question, findings), side_in(question)
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
    seen, form = look_at(rgb), form_of(question)
    findings = findings_of(rgb, seen)
    if form == "finding":
        present = [name for name, places in findings.items() if places]
        return next(iter(present), "none" if seen["part"] == "colon" else "no finding")
    if form == "side":
        return side_answer(question, findings)
    if form == "count":
        return count_answer(question, findings)
    if form == "organ" and seen["part"] == "abdomen":
        return "spleen" if re.search(r"right side of the (image|picture|scan)", question) else "liver"
    if form in ("modality", "plane", "region", "organ"):
        part = seen["part"]
        names = {"region": REGIONS.get(part, part), "organ": ORGANS.get(part, part)}
        return {**seen, **names}[form]
    return attribute(form, rgb, findings)


def attribute(form, rgb, findings):
    """Stain, tissue, colour and brightness."""
    grey = rgb.mean(axis=2)
    tissue = "adipose tissue" if findings.get("fat") else "glandular tissue" if findings.get("gland") else ""
    measured = {
        "stain": lambda: "immunohistochemistry" if findings.get("brown") else "hematoxylin and eosin",
        "tissue": lambda: tissue or "smooth muscle",
        "colour": lambda: looks.polyp_colour(rgb),
        "weighting": lambda: "T2" if looks.fluid_is_bright(grey) else "T1",
        "fluid": lambda: "bright" if looks.fluid_is_bright(grey) else "dark",
        "disc": lambda: looks.disc_side(rgb),
    }
    return measured[form]() if form in measured else ""


def side_answer(question, findings):
    """The place of the finding that is asked for, as the question calls it."""
    asked = named_here(question, findings)
    places = next((findings[name] for name in asked if findings.get(name)), [])
    if len(set(places)) != 1 or not places[0]:
        return "both" if places and places[0] else ""
    return f"{places[0]} lung" if "which lung" in question else places[0]


def count_answer(question, findings):
    asked = [name for name in named(FINDINGS, question) if name in findings]
    if asked:
        return str(len(findings[asked[0]]))
    return "2" if set(named(PARTS, question)) & {"lung", "kidney"} else "1"


# --- several pictures -------------------------------------------------------------------------------------------------


def over_frames(question, rgbs):
    """The answer that the frames give together; empty where the question does not compare them."""
    if ordered := re.search(r"order are (.+?) and (.+?) seen", question):
        first, second = (first_frame(words, rgbs) for words in ordered.groups())
        words = ordered.groups() if first < second else ordered.groups()[::-1]
        return f"{words[0]} is seen before {words[1]}"
    if "frame" not in question and "image" not in question:
        return ""
    if re.search(r"(which|what) (of the )?.*(frame|image)s? .*(shows?|contains?|is) ", question):
        found = first_frame(question.split("frame")[-1], rgbs)
        return f"frame {found + 1}" if found < len(rgbs) else "none of the frames"
    if re.search(r"in how many", question):
        return str(sum(bool(yes_or_no(question, rgb)) for rgb in rgbs))
    return course(question, rgbs) if "change" in question else ""


def first_frame(words, rgbs):
    """Index of the first frame in which the words hold; the number of frames where they never do."""
    return next((index for index, rgb in enumerate(rgbs) if yes_or_no(words, rgb)), len(rgbs))


def course(question, rgbs):
    """How a finding goes from the first to the last frame, by its sides."""
    name = next(iter(named(FINDINGS, question)), "")
    sides = [findings_of(rgb, look_at(rgb)).get(name, []) for rgb in rgbs]
    if not any(sides):
        return "never"
    if not sides[0] or not sides[-1]:
        return "resolves" if sides[0] else "appears"
    return "stays" if sides[0] == sides[-1] else "changes side"


# --- the candidates: an answer, and whether the picture was measured for it -------------------------------------------


def by_rules(item):
    question, rgbs = item["question"], item["rgbs"]
    if len(rgbs) > 1 and (text := over_frames(question, rgbs)):
        return text, True
    if wants_yes_or_no(question):
        truths = [yes_or_no(question, rgb) for rgb in rgbs]
        return ("yes" if any(truths) else "no"), any(truth is not None for truth in truths)
    text = next((text for rgb in rgbs if (text := short_answer(question, rgb))), "")
    return text or commonest(question), bool(text)


def by_kind(item):
    """Modality and plane only, of the first picture."""
    question, seen = item["question"], look_at(item["rgbs"][0])
    if wants_yes_or_no(question):
        asked = named(MODALITIES, question)
        return ("yes" if seen["modality"] in asked else "no"), bool(asked)
    form = form_of(question)
    known = seen[form] if form in ("modality", "plane") else ""
    return known or commonest(question), bool(known)


def by_prior(item):
    return commonest(item["question"]), False


def commonest(question):
    """The commonest answer to the form of the question; the picture is not looked at."""
    if wants_yes_or_no(question):
        return "no"
    return {"modality": "X-ray", "plane": "axial", "side": "right", "count": "1"}.get(
        form_of(question), "chest"
    )


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
    """The option that is nearest to the answer, the first one where none is near; '' for an open question."""
    options = result["options"] or {}
    return max(
        options, key=lambda letter: nearness(result["answer"].lower(), options[letter].lower()), default=""
    )


def nearness(answer, option):
    """3 for the same words, 2 for one within the other, 1 for another name of the same thing, else 0."""
    if answer == option:
        return 3
    if re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", option):
        return 2
    return int(any(set(named(table, answer) or [answer]) & set(named(table, option)) for table in TABLES))


def save(result, folder, task):
    letter = letter_of(result)
    answer = {
        "question_id": result["name"],
        "predicted_label": letter,
        "predicted_answer": result["options"][letter] if letter else result["answer"],
        "raw_model_output": result["answer"],
        "model_name": "rules on image measurements",
        "runtime_s": round(result["seconds"], 4),
    }
    (folder / task["files"][0]).write_text(json.dumps(answer, indent=1), encoding="utf-8")


def inspect(item, folder, task, show):
    answer = json.loads((folder / task["files"][0]).read_text(encoding="utf-8"))
    show(
        f"question {item['question']!r}\nraw {answer['raw_model_output']!r}, parsed {answer['predicted_label']!r} "
        f"{answer['predicted_answer']!r}, fields {sorted(answer)}"
    )
    problems = []
    if answer["question_id"] != item["name"]:
        problems.append(f"answers {answer['question_id']!r}")
    if item["options"]:
        return problems if answer["predicted_label"] in item["options"] else [*problems, "no option's letter"]
    if not answer["predicted_answer"].strip() or len(answer["predicted_answer"].split()) > 5:
        problems.append("no short answer")
    if wants_yes_or_no(item["question"]) and answer["predicted_answer"] not in ("yes", "no"):
        problems.append("a yes-or-no question without yes or no")
    return problems
