"""``python -m runner``: run cells, grade and judge them again, look at what is there.

Only Typer is imported at start-up; everything else is imported inside the command that needs it, so that
``--help`` answers at once.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from runner import integrity_cli
from runner.options import (
    AgentsFile,
    AsJson,
    DataDir,
    JudgeName,
    JudgesFile,
    Quiet,
    RunFolder,
    RunsDir,
    Sandbox,
)
from runner.printing import (
    EXIT_ENVIRONMENT,
    EXIT_UNSCORED,
    EXIT_USAGE,
    fail,
    print_rows,
    report_outcome,
    require_run_folder,
)
from runner.stop import Stopped
from runner.sweep.cli import app as sweep_app
from runner.verify_submission import verify_submission
from tasks.names import Network, Release, Tier, Track

if TYPE_CHECKING:
    from runner.rejudge import Rejudged

app = typer.Typer(
    name="runner",
    help="Run agents on medical-AI research tasks, isolated, and score what they hand in.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(sweep_app)


class Listing(StrEnum):
    TASKS = "tasks"
    AGENTS = "agents"
    RUNS = "runs"


@app.command()
def run(
    agent: Annotated[str, typer.Option(help="Name of an agent (see 'list agents').")],
    task: Annotated[str, typer.Option(help="Id of a task (see 'list tasks').")],
    tier: Annotated[Tier, typer.Option(help="How much the brief discloses.")] = Tier.LITE,
    release: Annotated[Release, typer.Option(help="Which data.")] = Release.PHANTOM,
    repeat: Annotated[int, typer.Option(min=0, max=9999, help="Which of the planned repeats.")] = 0,
    runs_dir: RunsDir = Path("runs"),
    data: DataDir = Path("data"),
    sandbox: Sandbox = "auto",
    network: Annotated[
        Network,
        typer.Option(help="What the agent reaches: nothing, package indexes and model hubs, or anything."),
    ] = "allowlist",
    wall_seconds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Another time limit than the task's; such runs are kept apart on the board."
        ),
    ] = None,
    turns: Annotated[int | None, typer.Option(min=1, help="Likewise: replies of the model.")] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Likewise: tokens read and written together.")
    ] = None,
    cost_usd: Annotated[
        float | None, typer.Option(min=0, max=1e9, help="Likewise: US dollars, where prices are known.")
    ] = None,
    agents: AgentsFile = None,
    judge: JudgeName = "rules",
    judges: JudgesFile = None,
    watch_training: Annotated[
        bool, typer.Option("--watch-training", help="Count optimizer steps of PyTorch in the sandbox.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run one cell: agent x task x tier, one repeat. A run that is done is not repeated."""
    from runner.cell import Cell
    from runner.execute import Options, run_cell
    from runner.progress import watching

    asked = {"wall_seconds": wall_seconds, "turns": turns, "tokens": tokens, "cost_usd": cost_usd}
    limits = {name: value for name, value in asked.items() if value is not None}
    options = Options(
        runs_dir,
        data,
        sandbox,
        network,
        limits,
        agents,
        judge,
        judges,
        watch_training=watch_training,
    )
    cell = Cell(task, tier, release, agent, repeat)
    with watching(str(cell), quiet=quiet or as_json) as watch:
        outcome = run_cell(cell, options, watch)
    report_outcome(outcome, as_json)


@app.command()
def regrade(
    run: RunFolder,
    data: DataDir = Path("data"),
    sandbox: Sandbox = "auto",
    as_json: AsJson = False,
) -> None:
    """Score a stored submission again. The agent does not run."""
    from runner.execute import regrade as regrade_run

    report_outcome(regrade_run(require_run_folder(run), data, sandbox), as_json)


@app.command()
def rejudge(
    run: Annotated[list[Path], typer.Argument(help="Run folders, or folders of runs.")],
    judge: JudgeName = "rules",
    judges: JudgesFile = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Runs judged at a time.")] = 4,
    data: DataDir = Path("data"),
    as_json: AsJson = False,
) -> None:
    """Judge stored traces again. Neither agent nor evaluator runs; what this judge has judged costs nothing."""
    from runner.judges import load_judge
    from runner.rejudge import find_runs, rejudge_all

    results: list[Rejudged] = []
    for result in rejudge_all(find_runs(run), data, load_judge(judge, judges), jobs):
        results.append(result)
        print(f"{result.state}: {result.folder}", file=sys.stderr)
    print_rows([result.row() for result in sorted(results, key=lambda one: one.folder)], as_json)
    if code := max(result.exit_code for result in results):
        raise typer.Exit(code)
    if any(result.state == "incomplete" for result in results):
        raise typer.Exit(EXIT_UNSCORED)


@app.command("judge-eval")
def judge_eval(
    judge: Annotated[list[str], typer.Option(help="Judge to measure; give it twice to compare two.")],
    judges: JudgesFile = None,
    repeats: Annotated[int, typer.Option(min=1, max=20, help="How often each run is judged.")] = 2,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Runs judged at a time.")] = 4,
    as_json: AsJson = False,
) -> None:
    """Measure judges on the calibration set. Accuracy, wavering, agreement, resistance to being talked into points."""
    from runner.judge_eval import measure, page
    from runner.judges import load_judge

    measured = measure({name: load_judge(name, judges) for name in judge}, repeats, jobs)
    text = json.dumps([one.as_dict() for one in measured], indent=1) + "\n" if as_json else page(measured)
    print(text, end="")


app.command()(integrity_cli.verify)
app.command()(integrity_cli.sign)
app.command()(verify_submission)


@app.command()
def explain(
    run: RunFolder,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Walk through one run, stage by stage. Items with value, evidence and reason, error codes, scores."""
    from runner.explain import explain as explain_run
    from runner.tables import fitted

    page = explain_run(require_run_folder(run), markdown=markdown)
    print(page if markdown else fitted(page), end="")


@app.command("list")
def list_things(
    what: Listing,
    runs_dir: RunsDir = Path("runs"),
    agents: AgentsFile = None,
    track: Annotated[Track | None, typer.Option(help="Tasks of this track.")] = None,
    tier: Annotated[Tier | None, typer.Option(help="Show the models that this tier names.")] = None,
    licence: Annotated[
        str | None, typer.Option("--licence", "--license", help="Tasks whose licence holds these words.")
    ] = None,
    access: Annotated[
        Literal["open", "registration", "credentialed"] | None,
        typer.Option(help="Tasks whose data are had so."),
    ] = None,
    paper: Annotated[
        bool | None, typer.Option("--paper/--not-paper", help="Published tasks, or the others.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List tasks, agents, or runs. The filters are for tasks, --runs-dir for runs."""
    from runner import listing
    from runner.errors import UsageProblem

    if what is not Listing.TASKS and any(
        given is not None for given in (track, tier, licence, access, paper)
    ):
        raise UsageProblem(
            f"--track, --tier, --licence, --access and --paper choose among tasks, not {what.value}"
        )
    if what is Listing.TASKS:
        rows = listing.tasks(track and track.value, tier, licence, access, paper)
    else:
        rows = listing.agents(agents) if what is Listing.AGENTS else listing.runs(runs_dir)
    if what is Listing.RUNS and not rows and not as_json:
        print(f"no runs in {runs_dir}; those of the demo: --runs-dir runs/demo, of a sweep: sweeps/NAME/runs")
        return
    print_rows(rows, as_json)


@app.command()
def validate(
    task: Annotated[str | None, typer.Argument(help="Id of a task.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every task.")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, max=64, help="Tasks at a time with --all.")] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Resolve requirements at the package index.")
    ] = False,
    snippets: Annotated[bool, typer.Option(help="Run the Lite snippets in the agent's sandbox.")] = True,
    sandbox: Sandbox = "auto",
    as_json: AsJson = False,
) -> None:
    """Check that tasks are complete. Files, briefs, terms, phantom, anchors, snippets; exit code 2 if one is not."""
    from runner.errors import UsageProblem
    from runner.sandbox import choose_backend
    from runner.validate import validate as validate_one
    from runner.validate import validate_all
    from tasks.registry import task_folder, task_ids

    if (task is None) == (not every):
        raise UsageProblem("expected a task id or --all, and not both")
    backend = choose_backend(sandbox) if snippets else None
    if task is not None:
        task_folder(task)
        verdicts = [validate_one(task, backend, online)]
    else:
        options = ["--sandbox", backend.name] if backend else ["--no-snippets"]
        options += ["--online"] if online else []
        verdicts = validate_all(
            task_ids(), jobs, options, lambda line: print(line, file=sys.stderr, flush=True)
        )
    if as_json:
        print(json.dumps([verdict.model_dump(mode="json") for verdict in verdicts], indent=1))
    else:
        from runner.tables import fitted

        print_rows([verdict.row() for verdict in verdicts], as_json=False)
        for verdict in verdicts:
            for line in verdict.lines():
                print(fitted(f"{verdict.task}: {line}"))
    if not all(verdict.ok for verdict in verdicts):
        raise typer.Exit(EXIT_USAGE)


@app.command("new-task")
def new_task(
    task: Annotated[str, typer.Argument(help="Id of the new task, for example spine-seg-task.")],
    track: Annotated[Track, typer.Option(help="What is asked for.")],
) -> None:
    """Lay out the folder of a new task. What only its author knows is marked TODO."""
    from runner.scaffold import new_task as lay_out

    folder = lay_out(task, track)
    print(
        f"{folder}: replace every TODO, then run: python -m runner validate {task} (see docs/adding-a-task.md)"
    )


@app.command()
def show(run: RunFolder, as_json: AsJson = False) -> None:
    """Show one run on a page. Scores, items with reasons, cases, what it cost, what it was made with."""
    from runner.show import describe
    from runner.tables import fitted

    page = describe(require_run_folder(run), as_json=as_json)
    print(page if as_json else fitted(page))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine can isolate. Sandboxes and what each really protects, hardware, keys."""
    from runner.doctor import examine
    from runner.tables import fitted

    report = examine()
    print(json.dumps(report.as_dict(), indent=1) if as_json else fitted(report.as_text()))
    if not report.usable:
        raise typer.Exit(EXIT_ENVIRONMENT)


@app.command()
def images(
    rebuild: Annotated[bool, typer.Option(help="Build even if they are current.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build the agent and evaluator images for Docker."""
    from runner.images.build import ensure_images

    built = ensure_images(("agent", "evaluator"), rebuild=rebuild)
    print_rows([{"role": role, "image": image} for role, image in built.items()], as_json)


@app.command()
def demo(
    runs_dir: RunsDir = Path("runs/demo"),
    data: DataDir = Path("data"),
    sandbox: Sandbox = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the scripted agent on five phantom tasks. One of every published track, two tiers; no key, no GPU."""
    from runner.demo import demo_cells, next_steps
    from runner.execute import Options, run_cell
    from runner.progress import watching

    options = Options(runs_dir, data, sandbox)
    outcomes = []
    for cell in demo_cells():
        with watching(str(cell), quiet=quiet or as_json) as watch:
            outcomes.append(run_cell(cell, options, watch))
    from runner.listing import summary

    print_rows([summary(outcome.record) for outcome in outcomes], as_json)
    if not as_json:
        print(f"\n{len(outcomes)} records under {runs_dir}\n" + next_steps(runs_dir, outcomes[0].folder))
    if any(outcome.state == "unscored" for outcome in outcomes):
        raise typer.Exit(EXIT_UNSCORED)


def main() -> None:
    """Run the command line; what a user can cause ends in one line and an exit code, never in a traceback."""
    try:
        app()
    except Stopped as stopped:
        fail(f"stopped by {stopped}; the same command goes on or starts the run afresh", stopped.exit_code)
    except Exception as error:
        from runner.errors import exit_code_of, words_of

        code = exit_code_of(error)
        if code is None:
            raise
        fail(words_of(error), code)
