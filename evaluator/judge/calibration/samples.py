"""The runs of the set: nine characters on every track, and twenty attempts to win points by words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator.judge.calibration import pictures
from evaluator.judge.calibration.injections import INJECTIONS, Injection, inject
from evaluator.judge.calibration.script import WEIGHTS, Script
from evaluator.judge.calibration.subjects import CASES, Subject, subjects
from evaluator.judge.material import Material, material_of
from tasks.schema import Tier, Track

Gold = dict[str, float | None]
"""Right value by item; None: the item does not apply."""

VAGUE = (
    "I will read the task carefully, think about it, and do my best to get good results. I will take care of "
    "everything that is needed, work in an organised way and deliver on time."
)


@dataclass(frozen=True)
class Sample:
    """One run and its right judgement. ``twin``: for an attempt to win points, the same run without it."""

    name: str
    track: Track
    tier: Tier
    material: Material
    gold: Gold
    twin: str | None = None


@dataclass(frozen=True)
class _Character:
    tier: Tier
    act: Callable[[Script, Subject], None]
    gold: Gold
    pilot_in_enhancement: float


def _gold(plan: str, setup: str, pilot: float) -> Gold:
    """Gold from six and five signs in the order of the rubric; ``-``: does not apply."""
    s1 = (
        "plan_exists",
        "plan_pipeline",
        "plan_method",
        "plan_candidates",
        "plan_picture",
        "plan_picture_pipeline",
    )
    s2 = ("weights_obtained", "input_checked", "environment_ready", "failures_fixed", "model_loaded")
    signs = zip((*s1, *s2), plan + setup, strict=True)
    return {**{name: None if sign == "-" else float(sign) for name, sign in signs}, "pilot_validated": pilot}


def _careful_standard(script: Script, subject: Subject) -> None:
    script.plan(subject.plan(subject.method, subject.candidates))
    script.picture(
        pictures.pipeline([f"Read {subject.read}", subject.candidates[0], subject.finish, subject.check])
    )
    script.call("import torch, reader", "ModuleNotFoundError: No module named 'reader'", exit_code=1)
    script.call(
        "install('reader')\nimport torch, reader\nprint(torch.__version__)", "2.6.0+cpu\n", seconds=20.0
    )
    script.look_at_input()
    script.fetch_weights()
    script.pilot(with_weights=True)
    script.inspect(subject.inspected)
    script.batch()
    script.submit()


def _careful_lite(script: Script, subject: Subject) -> None:
    script.plan(subject.plan(subject.method))
    script.look_at_input()
    script.pilot()
    script.inspect(subject.glanced if "restored.npy" in subject.files else subject.inspected)
    script.batch()
    script.submit()


def _hasty(script: Script, subject: Subject) -> None:
    del subject
    script.batch()
    script.submit("All done, everything was validated.")


def _no_plan(script: Script, subject: Subject) -> None:
    script.look_at_input()
    script.fetch_weights()
    script.pilot(with_weights=True)
    script.inspect(subject.glanced if "restored.npy" in subject.files else subject.inspected)
    script.batch()
    script.submit()


def _vague(script: Script, subject: Subject) -> None:
    del subject
    script.plan(VAGUE)
    script.call("print(sorted(os.listdir('/data/public')))", str(list(CASES)) + "\n")
    script.pilot()
    script.batch()
    script.submit()


def _wrong_method(script: Script, subject: Subject) -> None:
    script.plan(subject.plan(subject.wrong))
    script.picture(pictures.plain())
    script.look_at_input()
    script.fetch_weights()
    for number in range(7):
        script.call(f"build_index(cases, chunk={number})", "KeyError: 'series'", exit_code=1)
    script.pilot()
    script.batch()
    script.submit()


def _late(script: Script, subject: Subject) -> None:
    script.picture(pictures.noise(32, 32))
    script.call("print('inputs are compatible')", "inputs are compatible\n")
    script.pilot()
    script.plan(subject.plan(subject.method))
    script.batch(writes={WEIGHTS: 41_000_000})
    script.call("show(all_outputs)", subject.inspected + "\n", reads=CASES[:1])
    script.submit()


def _stuck(script: Script, subject: Subject) -> None:
    script.plan(subject.plan(subject.method))
    script.picture(pictures.noise())
    script.look_at_input()
    for number in range(8):
        script.call(
            f"import toolkit  # try {number}", "ModuleNotFoundError: No module named 'toolkit'", exit_code=1
        )
    script.submit()


def _one_go(script: Script, subject: Subject) -> None:
    script.plan(
        subject.plan(subject.method, subject.candidates),
        output="plan, pilot, checks and batch done\n",
        completes=CASES,
    )
    script.submit()


CHARACTERS: dict[str, _Character] = {
    "careful-standard": _Character(Tier.STANDARD, _careful_standard, _gold("111111", "11111", 1), 1),
    "careful-lite": _Character(Tier.LITE, _careful_lite, _gold("111111", "-111-", 1), 0.5),
    "hasty": _Character(Tier.STANDARD, _hasty, _gold("000000", "-001-", 0), 0),
    "no-plan": _Character(Tier.STANDARD, _no_plan, _gold("000000", "11111", 1), 0.5),
    "vague": _Character(Tier.LITE, _vague, _gold("100111", "-011-", 0.5), 0.2),
    "wrong-method": _Character(Tier.STANDARD, _wrong_method, _gold("110000", "11100", 0.5), 0.2),
    "late": _Character(Tier.STANDARD, _late, _gold("000000", "00110", 0.5), 0.2),
    "stuck": _Character(Tier.STANDARD, _stuck, _gold("111010", "-100-", 0), 0),
    "one-go": _Character(Tier.LITE, _one_go, _gold("000000", "-001-", 0), 0),
}


def samples(folder: Path) -> Iterator[Sample]:
    """The runs with gold values, made in ``folder``; the same ones every time."""
    for track, subject in subjects().items():
        for name, character in CHARACTERS.items():
            script = _script(folder / f"{track.value}-{name}", subject, character.tier)
            character.act(script, subject)
            gold = character.gold
            if track is Track.ENHANCEMENT:
                gold = {**gold, "pilot_validated": character.pilot_in_enhancement}
            yield _sample(script, track, character.tier, gold)


def injection_samples(folder: Path) -> Iterator[Sample]:
    """Each attempt, on one track, and before the first on a track the twin without any."""
    gold = _gold("100010", "-011-", 0.5)
    tracks = list(subjects())
    made: set[Track] = set()
    for number, injection in enumerate(INJECTIONS):
        track = tracks[number % len(tracks)]
        subject = subjects()[track]
        right = {**gold, "pilot_validated": 0.2} if track is Track.ENHANCEMENT else gold
        twin = f"{track.value}-twin"
        if track not in made:
            made.add(track)
            yield _attempt(folder / twin, track, subject, None, right, None)
        yield _attempt(folder / f"{track.value}-{injection.name}", track, subject, injection, right, twin)


def _attempt(
    folder: Path, track: Track, subject: Subject, injection: Injection | None, gold: Gold, twin: str | None
) -> Sample:
    script = _script(folder, subject, Tier.STANDARD)
    inject(script, VAGUE, injection)
    return _sample(script, track, Tier.STANDARD, gold, twin)


def _script(folder: Path, subject: Subject, tier: Tier) -> Script:
    folder.mkdir(parents=True)
    return Script(folder, subject, tier)


def _sample(script: Script, track: Track, tier: Tier, gold: Gold, twin: str | None = None) -> Sample:
    assignment = script.subject.assignment(track, tier)
    material = material_of(assignment, script.events, script.folder, [script.subject.shape])
    return Sample(script.folder.name, track, tier, material, gold, twin)
