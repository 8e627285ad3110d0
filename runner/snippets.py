"""Run the snippets of a Lite brief where an agent would run them: in its sandbox, on the task's phantom."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from runner.sandbox.base import Backend, ExecResult, Mount, Sandbox, SandboxSpec
from tasks.brief import render
from tasks.contract import output_example
from tasks.manifest import Manifest
from tasks.schema import Release, Task, Tier

SECONDS = 120
EXAMPLES = 2
"""Cases that get a worked example of their output first, so that a check of the outputs finds some."""

_BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def lite_snippets(task: Task, cases: int) -> list[tuple[bool, str]]:
    """(needs weights, code) of every Python block of the Lite brief, in order."""
    text = render(task, Tier.LITE, release=Release.PHANTOM, n_cases=cases).text
    return [("title=weights" in title, code) for title, code in _BLOCK.findall(text)]


def snippet_problems(task: Task, data: Path, manifest: Manifest, backend: Backend) -> Iterator[str]:
    """Run the snippets in order and yield what went wrong; those that need weights are compiled only.

    Parameters
    ----------
    data : Path
        The staged phantom.

    Raises
    ------
    SandboxDead
        The sandbox ended on its own.
    """
    blocks = lite_snippets(task, len(manifest.cases))
    for place, (_, code) in enumerate(blocks, start=1):
        try:
            compile(code, f"snippet {place}", "exec")
        except SyntaxError as error:
            yield f"snippet {place} of the Lite brief is not Python: line {error.lineno}: {error.msg}"
            return
    if not any(not weights for weights, _ in blocks):
        yield "the Lite brief holds no Python snippet that runs without weights"
        return
    yield from _run(
        task,
        data,
        manifest,
        backend,
        [(n, code) for n, (weights, code) in enumerate(blocks, 1) if not weights],
    )


def _run(
    task: Task, data: Path, manifest: Manifest, backend: Backend, snippets: list[tuple[int, str]]
) -> Iterator[str]:
    with TemporaryDirectory(prefix="snippets-") as name:
        workspace = Path(name)
        workspace.chmod(0o755)
        spec = SandboxSpec(
            role="agent",
            run_id=f"validate-{task.id}-{uuid.uuid4().hex[:8]}",
            mounts=(
                Mount(data / "public", "/data/public"),
                Mount(workspace, "/workspace", writable=True),
            ),
            env={"HOME": "/workspace/home", "PYTHONUNBUFFERED": "1"},
            memory_mb=task.limits.memory_mb,
            lease_seconds=SECONDS * (len(snippets) + 1),
        )
        with backend.create(spec) as sandbox:
            _put_examples(task, manifest, sandbox)
            for place, code in snippets:
                result = sandbox.exec(
                    ["python", "-"], deadline=SECONDS, stdin=code.encode(), cwd="/workspace"
                )
                if problem := _problem(result):
                    yield f"snippet {place} of the Lite brief {problem}"
                    return
        first = min(manifest.case_ids())
        for file in task.output.filenames:
            if not (workspace / "outputs" / first / file).is_file():
                yield f"after the snippets, outputs/{first}/{file} of the pilot case is not there"


def _put_examples(task: Task, manifest: Manifest, sandbox: Sandbox) -> None:
    examples = {
        f"/workspace/{path}": content.encode()
        for case_id in sorted(manifest.case_ids())[:EXAMPLES]
        for path, content in output_example(task, case_id).items()
        if path.endswith((".json", ".txt"))
    }
    if examples:
        sandbox.put(examples)


def _problem(result: ExecResult) -> str | None:
    lines = result.output.decode(errors="replace").strip().splitlines()
    if result.timed_out:
        return f"ran longer than {SECONDS} s"
    if result.exit_code != 0:
        return f"ended with exit code {result.exit_code}: {lines[-1] if lines else 'no output'}"
    return None if lines else "prints nothing: a hint shows what it found"
