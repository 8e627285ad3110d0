"""What is read from a trace, and from damaged or very long ones."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.judge.evidence import collect_evidence
from evaluator.judge.inputs import public_shapes, shows_shape
from evaluator.trace import EndReason, TraceError
from tasks.manifest import Case, FileEntry, Manifest


def collect(run, path=None):
    return collect_evidence(path or run.trace(), run.folder / "process", run.task, run.cases)


def test_the_moments_of_a_careful_run_stand_in_order(run):
    facts = run.good().evidence()
    moments = [facts.plan_written, facts.inputs_shown, facts.pilot, facts.inspection, facts.batch]
    assert [moment.turn for moment in moments] == [1, 3, 4, 5, 6]
    assert facts.pilot == facts.first_case
    assert (facts.complete_cases, facts.end) == (10, "submitted")


def test_a_failure_names_its_error_and_its_repair(run):
    run.call("fit(volume)", "Traceback ...\nValueError: operands could not be broadcast\n", exit_code=1)
    run.call("print('thinking')").call("fit(volume, order=1)")
    failed, _, fixed = collect(run).attempts
    assert (failed.failure, failed.error) == ("shape", "ValueError: operands could not be broadcast")
    assert (failed.fixed_by, failed.retries) == (fixed.seq, 1)


@pytest.mark.parametrize(
    ("output", "fields", "kind"),
    [
        ("ModuleNotFoundError: No module named 'monai'", {}, "dependency"),
        ("ERROR: No matching distribution found for monai", {}, "dependency"),
        ("call-0001.sh: line 1: nnUNet_predict: command not found", {}, "dependency"),
        ("RuntimeError: CUDA error: out of memory", {}, "load"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'models/net.pth'", {}, "load"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/ct.nii.gz'", {}, "path"),
        ("ValueError: cannot reshape array of size 10 into shape (3,)", {}, "shape"),
        ("ZeroDivisionError: division by zero", {}, "crash"),
        ("", {}, "crash"),
        ("ModuleNotFoundError", {"oom": True}, "memory"),
        ("working", {"timed_out": True}, "timeout"),
        ("working", {"disk_full": True}, "disk"),
    ],
)
def test_kinds_of_failure(run, output, fields, kind):
    run.call("work()", output, exit_code=None if fields else 1, **fields)
    assert collect(run).attempts[0].failure == kind


def test_a_traceback_in_the_output_of_a_command_that_succeeded_is_no_failure(run):
    run.call("show_log()", "Traceback (most recent call last):\nModuleNotFoundError: No module named 'x'")
    assert not collect(run).failures


def test_call_ids_may_start_anew_in_every_turn(run):
    run.pilot().inspect().batch()
    run.events = [
        event.model_copy(update={"call": "call_0"}) if event.type in ("exec", "files") else event
        for event in run.events
    ]
    assert collect(run).inspection


def test_packages_weights_and_stray_outputs_are_listed(run):
    run.call(
        writes={
            "env/lib/python3.11/site-packages/monai-1.4.0.dist-info/METADATA": 100,
            "models/net.ckpt": 5_000_000,
            "outputs/case-00/mask.nii.gz": 10,
            "outputs/summary.csv": 10,
        }
    )
    facts = collect(run)
    assert facts.packages == ("monai-1.4.0",)
    assert [file.path for file in facts.weights] == ["models/net.ckpt"]
    assert facts.other_outputs == ("outputs/case-00/mask.nii.gz", "outputs/summary.csv")


def test_a_last_line_that_was_cut_is_left_out(run):
    run.good()
    path = run.trace()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    facts = collect(run, path)
    assert facts.end is None
    assert facts.complete_cases == 10


def test_a_broken_line_in_the_middle_is_an_error(run):
    path = run.good().trace()
    path.write_bytes(path.read_bytes().replace(b'"type":"exec"', b'"type":"exe"', 1))
    with pytest.raises(TraceError, match=r"trace\.jsonl:"):
        collect(run, path)


def test_an_empty_trace_holds_no_facts(run):
    path = run.folder / "trace.jsonl"
    path.write_bytes(b"")
    facts = collect(run, path)
    assert (facts.executed, facts.first_case, facts.pilot, facts.end) == (False, None, None, None)


def test_the_plan_files_may_be_anything(run):
    folder = run.folder / "process"
    (folder / "plan.md").mkdir(parents=True)
    (folder / "plan.png").write_bytes(b"\0" * 64)
    facts = collect(run.call().end(EndReason.AGENT_STOP))
    assert facts.plan.problem == "not a regular file"
    assert "PNG" in facts.picture.problem


def test_a_picture_that_claims_too_many_pixels_is_not_decoded(run, picture):
    huge = bytearray(picture())
    huge[16:24] = (60_000).to_bytes(4, "big") * 2
    run.picture(bytes(huge))
    assert collect(run).picture.problem


def test_150_turns_and_5_mb_take_less_than_a_second(run):
    run.plan().check_setup()
    for number in range(150):
        failed = number % 3 == 0
        code = "\n".join(f"segment_{number}_{line}(volume, threshold_{line})" for line in range(200))
        run.call(code, f"{number} 48, 64 of 512, 512\n" * 1500, exit_code=int(failed))
    run.pilot().inspect().batch().submit()
    path = run.trace()
    assert path.stat().st_size > 5_000_000
    started = time.perf_counter()
    facts = collect_evidence(path, run.folder / "process", run.task, run.cases, [(48, 64, 20)])
    assert time.perf_counter() - started < 3  # measured well below 1 s; a busy machine may need longer
    assert len(facts.attempts) == 155


def test_shapes_of_the_public_files_come_from_the_manifest():
    def entry(path, shape):
        return FileEntry(path=path, sha256="0" * 64, bytes=1, shape=shape)

    case = Case(
        id="a",
        public=(
            entry("a/ct.nii.gz", (48, 64, 20)),
            entry("a/image.png", (480, 640, 3)),
            entry("a/q.json", None),
        ),
        private=(entry("a/mask.nii.gz", (7, 7, 7)),),
        origin="x",
    )
    manifest = Manifest(
        task="t",
        release="phantom",
        seed=1,
        source="s",
        license="l",
        redistribution="none",
        generator="g",
        cases=(case,),
    )
    shapes = public_shapes(manifest)
    assert shapes == {(48, 64, 20), (480, 640, 3)}
    assert shows_shape("size=(640, 480)", shapes)
    assert not shows_shape("7, 7, 7", shapes)


@given(st.lists(st.integers(1, 999), min_size=2, max_size=4), st.sampled_from([", ", " ", "x", " × "]))
def test_a_printed_shape_is_found_whatever_stands_between_its_numbers(shape, separator):
    text = "shape " + separator.join(map(str, shape)) + " ok"
    assert shows_shape(text, frozenset({tuple(shape)}))


@given(st.text(max_size=300))
def test_any_text_can_be_searched_for_shapes(text):
    shows_shape(text + "9" * 5000, frozenset({(3, 4)}))
