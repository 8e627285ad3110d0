"""The Space has no project install: requirements.txt must bring everything that ``app.py`` can come to import."""

from __future__ import annotations

import ast
import re
import socket
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[2]
ROOMS = {"tasks", "evaluator", "hf_datasets", "space", "runner"}
STAYS_OUT = {
    "torch", "torchvision", "transformers", "radgraph", "nltk", "lpips",  # models of the report and enhancement metrics
}  # fmt: skip
ON_PURPOSE = {"hf_datasets/phantoms", "hf_datasets/staging", "hf_datasets/fetch.py", "hf_datasets/cli.py"}
"""Making and fetching data is not the Space's work."""


def module_file(name: str) -> Path | None:
    base = REPOSITORY.joinpath(*name.split("."))
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


def imports_of(path: Path) -> set[str]:
    """Every module that a file names in an import, wherever it stands in it."""
    package = path.parent.relative_to(REPOSITORY).parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join((*package[: len(package) - node.level + 1], node.module or ""))
                if node.level
                else node.module
            )
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in found if name}


def reached() -> dict[str, str]:
    """Foreign top-level module -> a file of ours that imports it, over all files that ``app.py`` can reach."""
    waiting = [REPOSITORY / "app.py", *REPOSITORY.glob("space/**/*.py")]
    seen: set[Path] = set()
    foreign: dict[str, str] = {}
    while waiting:
        path = waiting.pop()
        where = path.relative_to(REPOSITORY).as_posix()
        if path in seen or any(where.startswith(name) for name in ON_PURPOSE):
            continue
        seen.add(path)
        for name in imports_of(path):
            top = name.split(".")[0]
            if top in ROOMS:
                parts = name.split(".")
                files = [module_file(".".join(parts[: n + 1])) for n in range(len(parts))]
                waiting += [file for file in files if file]
            elif top not in sys.stdlib_module_names:
                foreign.setdefault(top, where)
    return foreign


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[ \[<>=!~;(]", name.strip())[0]).lower()


def brought() -> set[str]:
    """Distributions of requirements.txt and all that they need."""
    lines = (
        line.split("#")[0].strip() for line in (REPOSITORY / "requirements.txt").read_text().splitlines()
    )
    waiting = [normal(line) for line in lines if line]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            needs = [Requirement(need) for need in requires(name) or ()]
            waiting += [
                normal(need.name)
                for need in needs
                if need.marker is None or need.marker.evaluate({"extra": ""})
            ]
    return found


def test_requirements_bring_what_the_space_imports():
    homes = packages_distributions()
    have = brought()
    lacking = {
        module: where
        for module, where in reached().items()
        if module not in STAYS_OUT and not any(normal(home) in have for home in homes.get(module, [module]))
    }
    assert not lacking, f"requirements.txt lacks what {lacking} import"


def test_the_space_never_imports_the_runner():
    assert not any(
        name.split(".")[0] == "runner"
        for path in REPOSITORY.glob("space/**/*.py")
        for name in imports_of(path)
    )


@pytest.mark.parametrize("arguments", [("--results", "no-such-folder"), ("--results", "/no/such/folder")])
def test_a_missing_folder_is_said_in_one_line(arguments):
    done = subprocess.run(
        [sys.executable, "app.py", *arguments], cwd=REPOSITORY, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "expected a folder of runs" in done.stderr


def test_a_port_that_is_taken_is_said_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "app.py", "--port", port],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 3
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert f"{port}: Address already in use; try another --port" in done.stderr
