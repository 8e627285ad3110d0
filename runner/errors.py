"""Errors that a user can cause or cure: one line, no traceback, an exit code."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable


class Problem(Exception):
    """Base of what the command line prints as one line; the message says what was expected, what was found
    and what to do.
    """

    exit_code: int


class UsageProblem(Problem):
    """The command asks for something that does not exist or does not fit together."""

    exit_code = 2


class EnvironmentProblem(Problem):
    """This machine lacks something: a key, a sandbox, staged data, room on the disk."""

    exit_code = 3


class Busy(UsageProblem):
    """Another living process works on the same thing."""


class NoRoom(EnvironmentProblem):
    """The disk is full, or nearly."""


def words_of(error: BaseException) -> str:
    """The error as one line; an operating system's error begins with the file it is about."""
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f"{error.filename}: "
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return f"{place}{error.strerror}{'; free some space and run again' if full else ''}"
    return " ".join(str(error).split())


def exit_code_of(error: BaseException) -> int | None:
    """Exit code of an error that deserves one line; None for a fault of ours."""
    from evaluator.trace import TraceError
    from hf_datasets.families import UnknownTask
    from hf_datasets.records import RecordError
    from hf_datasets.release_form import ReleaseError
    from hf_datasets.staging import StagingError
    from runner.sandbox.base import SandboxDead, SandboxUnavailable
    from tasks.registry import TaskError

    if isinstance(error, TaskError | UnknownTask | RecordError | TraceError):
        return UsageProblem.exit_code
    if isinstance(error, SandboxUnavailable | SandboxDead | StagingError | ReleaseError | OSError):
        return EnvironmentProblem.exit_code
    return error.exit_code if isinstance(error, Problem) else None


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageProblem:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names) or 'none'}"
    return UsageProblem(f"unknown {kind} {name!r}; {hint}")
