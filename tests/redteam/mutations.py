"""Turn off one protection, in a test process of its own: ``pytest -p mutations --mutation NAME TESTS``.

The product has no switch for any of these; what is changed here is changed in this process's memory.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest

DECLARED = "tests/redteam/test_declared_protections.py::test_what_is_declared_is_so"
MOUNTS = (
    "tests/redteam/test_declared_protections.py::test_a_read_only_mount_refuses_what_its_modes_would_allow"
)
BESIDE = "tests/redteam/test_declared_protections.py::test_what_lies_beside_a_mounts_source_is_not_there"
CONFORMANCE = "tests/runner/sandbox/test_conformance.py"
COLLECT = "tests/evaluator/test_submission_collect.py"
PLANTED = f"{COLLECT}::test_planted_file_is_refused_by_name_and_others_survive"
VERIFY = "tests/runner/integrity/test_verify_runs.py"
SENT = "tests/runner/judging/test_what_a_judge_is_sent.py"

MUTATIONS: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {}
"""What turns the protection off, and the tests of which at least one must then fail."""


def mutation(*tests: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(apply: Callable[[], None]) -> Callable[[], None]:
        MUTATIONS[apply.__name__] = (apply, tests)
        return apply

    return register


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutation")


def pytest_configure(config: pytest.Config) -> None:
    if name := config.getoption("--mutation"):
        MUTATIONS[name][0]()


def changed(module: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Let a function's result go through ``change``."""
    original = getattr(module, name)
    setattr(module, name, lambda *args, **named: change(original(*args, **named)))


def without(*words: str) -> Callable[[list[str]], list[str]]:
    return lambda command: [word for word in command if word not in words]


# --- Docker ------------------------------------------------------------------------------------------


def host_config(change: Callable[[dict[str, Any]], None]) -> None:
    from runner.sandbox import docker

    def mutated(config: dict[str, Any]) -> dict[str, Any]:
        change(config)
        return config

    changed(docker, "_host_config", mutated)


@mutation(f"{DECLARED}[docker]")
def docker_capabilities() -> None:
    host_config(lambda config: config.pop("CapDrop"))


@mutation(f"{DECLARED}[docker]")
def docker_no_new_privileges() -> None:
    host_config(lambda config: config.pop("SecurityOpt"))


@mutation(f"{DECLARED}[docker]")
def docker_uid() -> None:
    from runner.sandbox import docker

    docker.ids = lambda: (0, 0)


@mutation(f"{CONFORMANCE}::test_no_network[docker]")
def docker_network() -> None:
    host_config(lambda config: config.update(NetworkMode="host"))


@mutation(f"{MOUNTS}[docker]")
def docker_read_only_mounts() -> None:
    host_config(lambda config: [mount.update(ReadOnly=False) for mount in config["Mounts"]])


@mutation(f"{CONFORMANCE}::test_the_number_of_processes_is_capped[docker]")
def docker_pids() -> None:
    host_config(lambda config: config.pop("PidsLimit"))


# --- bubblewrap --------------------------------------------------------------------------------------


@mutation(f"{DECLARED}[bubblewrap]")
def bubblewrap_capabilities() -> None:
    from runner.sandbox import bubblewrap_layout as layout

    changed(layout, "restrict", without("--bounding-set=-all", "--inh-caps=-all"))


@mutation(f"{DECLARED}[bubblewrap]")
def bubblewrap_uid() -> None:
    from runner.sandbox import bubblewrap_layout as layout

    changed(layout, "restrict", lambda words: ["0" if word == "10001" else word for word in words])
    self_test_passes()


@mutation(f"{CONFORMANCE}::test_services_of_the_host_are_out_of_reach[bubblewrap]")
def bubblewrap_network() -> None:
    from runner.sandbox import bubblewrap_layout as layout

    changed(layout, "_namespaces", without("--unshare-net"))
    self_test_passes()


@mutation(f"{BESIDE}[bubblewrap]")
def bubblewrap_mounts() -> None:
    """A folder above a mount's source as well: in a cell, that is where the references are."""
    from runner.sandbox import bubblewrap_layout as layout

    original = layout._mounts
    layout._mounts = lambda spec: [
        *original(spec),
        *(word for mount in spec.mounts for word in ("--ro-bind", str(mount.source.parent), "/mnt")),
    ]
    self_test_passes()


def self_test_passes() -> None:
    """The back end looks at its own walls and would refuse; the tests must see the hole even so."""
    from runner.sandbox import selftest

    selftest.check = lambda *_, **__: None


# --- what a submission goes through ------------------------------------------------------------------


@mutation(f"{PLANTED}[symlink]")
def link_refusal() -> None:
    import os

    from evaluator import untrusted

    untrusted._READ_FLAGS &= ~os.O_NOFOLLOW
    untrusted._lstat = lambda name, parent: os.stat(name, dir_fd=parent)


@mutation(f"{PLANTED}[hard_link]")
def hard_link_refusal() -> None:
    from evaluator import untrusted

    original = untrusted.require_file
    untrusted.require_file = lambda info, most, **_: original(info, most, one_name=False)


@mutation(f"{PLANTED}[sparse_1TB]")
def size_caps_of_a_file() -> None:
    """Only where files are looked at: without the cap where they are copied, the test would fill the disk."""
    from evaluator import submission

    original = submission.require_file
    submission.require_file = lambda info, most, **named: original(info, 1 << 62, **named)


@mutation(f"{COLLECT}::test_caps_on_total_size_hold_in_case_order")
def size_caps_of_a_submission() -> None:
    from evaluator import submission

    original = submission._Copier
    submission._Copier = lambda target, file_bytes, _: original(target, file_bytes, 1 << 62)


# --- what a judge is sent ----------------------------------------------------------------------------


@mutation(f"{SENT}::test_the_delimiter_is_another_one_every_time")
def delimiter() -> None:
    secrets.token_hex = lambda size=32: "0" * (2 * size)


@mutation("tests/evaluator/judge/test_notebook.py::test_a_quotation_is_marked_visible_and_within_its_budget")
def quotation_marks() -> None:
    from evaluator.judge import quoting

    quoting.quoted = lambda text: text


# --- what proves a number ----------------------------------------------------------------------------


@mutation(f"{VERIFY}::test_a_changed_file_is_named[report.json]")
def digests() -> None:
    from runner import verify

    verify._digest_differences = lambda *_: iter(())


@mutation(f"{VERIFY}::test_lines_removed_swapped_or_added[swapped]")
def hash_chain() -> None:
    from runner import ended, verify

    verify.verify_chain = ended.verify_chain = lambda path: None


@mutation(f"{VERIFY}::test_no_later_step_seals_a_file_that_was_edited[report.json-rejudge]")
def sealed_files() -> None:
    from runner import ended

    ended.Run.require_as_sealed = lambda *_: None
