"""The calls of the walk as texts: what is said, and the code that is run. Nothing here runs anything."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.resources import files

from runner.agents.baseline.plan import TrackPlan
from runner.tools import Language
from tasks.schema import Task

WORKSPACE = "/workspace"


@dataclass(frozen=True)
class Step:
    """One ``execute_code`` call and the sentence that goes with it."""

    say: str
    language: Language
    code: str


def script(name: str) -> str:
    return files(__package__).joinpath("scripts", f"{name}.py").read_text(encoding="utf-8")


def facts(task: Task) -> str:
    """What the scripts need to know of the task, as JSON: all of it stands in the brief."""
    output = task.output.model_dump(mode="json")
    return json.dumps({"id": task.id, "files": list(task.output.filenames), "output": output}, indent=1)


def here_document(path: str, text: str) -> str:
    """A shell command that writes ``text`` to ``path``; the mark cannot occur in the text."""
    mark = "END_OF_FILE"
    while mark in text:
        mark += "_"
    return f"cat > {path} <<'{mark}'\n{text.rstrip()}\n{mark}\n"


def run(statement: str) -> str:
    """Python that calls the shared steps, which lie in the workspace."""
    return f"import common\n\n{statement}\n"


def look_around() -> Step:
    return Step(
        "S1 Plan. First I read the brief's data folder: how many cases, which files, which machine.",
        "bash",
        "cd /data/public\n"
        'echo "cases: $(find . -mindepth 1 -maxdepth 1 -type d | wc -l)"\n'
        'first=$(ls | head -n 1)\nls | head -n 5\nls -lR "$first"\n'
        'head -c 600 "$first"/*.json 2>/dev/null\n'
        "nproc\nfree -m 2>/dev/null | head -n 2\ntrue\n",
    )


def write_tools(task: Task, plan: TrackPlan, say: str) -> Step:
    """Put the method, the shared steps and the task's facts into the workspace."""
    helpers = {name: script(name) for name in ("common", *plan.helpers)}
    return Step(
        say,
        "bash",
        f"mkdir -p {WORKSPACE}/outputs\n"
        + here_document(f"{WORKSPACE}/task.json", facts(task))
        + here_document(f"{WORKSPACE}/method.py", script(plan.script or task.track.value))
        + "".join(here_document(f"{WORKSPACE}/{name}.py", text) for name, text in helpers.items())
        + f"ls -l {WORKSPACE}\n",
    )


def measure_candidates(plan: TrackPlan) -> Step:
    names = ", ".join(candidate.name for candidate in plan.candidates.values())
    return Step(
        f"S1 Plan. I measure three candidates on a few public cases, without references: {names}.",
        "python",
        run(f"common.compare(common.cases()[:{plan.measure.cases}])"),
    )


def write_plan(text: str) -> Step:
    return Step("S1 Plan. I write the plan down.", "bash", here_document(f"{WORKSPACE}/plan.md", text))


def draw_plan(task: Task, plan: TrackPlan, method: str) -> Step:
    rejected = [candidate.name for key, candidate in plan.candidates.items() if key != method]
    arguments = (
        f"{WORKSPACE}/plan.png",
        f"{task.id}: from data to submission",
        list(plan.boxes(method)),
        plan.method_box,
        [f"rejected: {name}" for name in rejected],
    )
    call = ",\n    ".join(repr(argument) for argument in arguments)
    return Step(
        "S1 Plan. I draw the pipeline.", "python", f"{script('draw')}\n\ndraw_pipeline(\n    {call},\n)\n"
    )


def check_setup() -> Step:
    return Step(
        "S2 Setup. I check the packages and read one input: shape, type, spacing, range.",
        "python",
        run("common.versions()\ncommon.look(common.cases()[0])"),
    )


def forward_pass(method: str, case: int) -> Step:
    return Step(
        f"S2 Setup. One forward pass of {method!r} that writes nothing.",
        "python",
        run(f"common.forward(common.cases()[{case}], {method!r})"),
    )


def pilot(method: str, case: int) -> Step:
    return Step(
        "S3 Validate. One pilot case, end to end, written as the batch will write it.",
        "python",
        run(f"common.pilot(common.cases()[{case}], {method!r})"),
    )


def review(case: int) -> Step:
    return Step(
        "S3 Validate. I read the pilot's output back from disk and look at it before the batch.",
        "python",
        run(f"raise SystemExit(common.review(common.cases()[{case}]))"),
    )


def batch(method: str, seconds: float) -> Step:
    return Step(
        "S4 Inference. All cases that have no output yet, in parallel, each in its own process.",
        "python",
        run(f"raise SystemExit(common.batch({method!r}, seconds={seconds:.0f}))"),
    )


def verify() -> Step:
    return Step(
        "S5 Submit. Before handing in I verify every expected file.",
        "python",
        run("raise SystemExit(common.verify())"),
    )


def mend(method: str, seconds: float) -> Step:
    return Step(
        f"S5 Submit. What is missing or broken is done again with {method!r}, and all is verified once more.",
        "python",
        run(
            f"common.batch({method!r}, seconds={seconds:.0f}, todo=common.bad_cases())\n"
            "raise SystemExit(common.verify())"
        ),
    )


def open_cases(answer: str, otherwise: int) -> int:
    """How many cases a batch says it left open; ``otherwise`` where it came to no such word."""
    found = re.search(r"^batch: .* open: (\d+)", answer, re.MULTILINE)
    return int(found[1]) if found else otherwise
