"""Each error code with a run that fires it, and honest runs that fire none."""

from __future__ import annotations

import pytest

from evaluator.errors import SUBTYPES, TITLES
from evaluator.trace import EndReason


def test_an_honest_run_fires_nothing(run):
    assert run.good().codes() == ()


def test_an_honest_run_with_repaired_and_given_up_failures_fires_nothing(run):
    run.plan().call("import torch", "ModuleNotFoundError: No module named 'torch'", exit_code=1)
    run.call("predict(case)", "ValueError: shape mismatch", exit_code=1).call("predict(case)")
    run.check_setup().pilot().inspect()
    run.call("predict_all(cases)", "MemoryError", exit_code=1).call(
        "predict_all(cases)", completes=run.cases[1:]
    )
    assert run.submit().codes() == ()


def test_a_complete_run_that_was_ended_by_the_clock_fires_nothing(run):
    run.plan().check_setup().pilot().inspect().batch().end(EndReason.TIME)
    assert run.codes() == ()


def test_a_run_that_does_nothing_misses_its_files(run):
    assert run.submit().submit().subtypes() == {"E5.missing_files", "E3.refusal_ignored"}


def test_a_refusal_that_is_acted_on_is_not_ignored(run):
    run.pilot().inspect().submit().call("predict_more()").submit()
    assert run.subtypes() == {"E5.incomplete_coverage"}


@pytest.mark.parametrize("reason", [EndReason.PROVIDER_ERROR, EndReason.INFRA_ERROR])
def test_a_run_that_was_not_ended_by_the_agent_fires_nothing(run, reason):
    assert run.call(exit_code=1).end(reason).codes() == ()


@pytest.mark.parametrize("reason", [EndReason.TIME, EndReason.TURNS, EndReason.TOKENS, EndReason.COST])
def test_a_limit_that_ends_an_unfinished_run(run, reason):
    run.pilot().inspect().end(reason)
    assert run.subtypes() == {"E4.limit_reached", "E5.incomplete_coverage"}
    limit = next(fired for fired in run.codes() if fired.subtype == "limit_reached")
    assert reason.value in limit.reason
    assert limit.events


def test_unreadable_calls_that_end_a_run(run):
    assert "E4.malformed_calls" in run.end(EndReason.MALFORMED).subtypes()


def test_malformed_outputs(run):
    run.good()
    codes = run.codes(run.report(invalid=run.cases[:2]))
    assert [(fired.code, fired.subtype) for fired in codes] == [("E5", "malformed_files")]
    assert "wrong_shape" in codes[0].reason


def test_another_kind_of_artifact_is_a_misunderstanding(run):
    run.call(writes={f"outputs/{case}/label.json": 20 for case in run.cases}).submit().call().submit()
    assert run.subtypes() == {"E1.wrong_artifact", "E5.missing_files"}


def test_the_right_kind_under_another_name_is_not(run):
    run.call(writes={f"outputs/{case}/mask.nii.gz": 20 for case in run.cases}).submit().call().submit()
    assert run.subtypes() == {"E5.misplaced_files", "E5.missing_files"}


def test_files_that_were_deleted_again_are_no_artifact(run):
    from evaluator.trace import FileChange

    run.call(writes={"outputs/a/label.json": 20}).call()
    gone = FileChange(path="outputs/a/label.json", size=20, change="deleted")
    run.events[-1] = run.events[-1].model_copy(update={"changes": (gone,)})
    assert run.end(EndReason.AGENT_STOP).subtypes() == {"E5.missing_files"}


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("ModuleNotFoundError: No module named 'monai'", "E2.dependency"),
        ("RuntimeError: CUDA error: no kernel image is available", "E2.load"),
        ("OSError: couldn't connect to the model's address", "E2.load"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/ct'", "E2.path"),
        ("ValueError: operands could not be broadcast together", "E4.shape_or_type"),
        ("ZeroDivisionError: division by zero", "E4.crash"),
    ],
)
def test_a_failure_that_no_case_survived(run, output, code):
    run.plan().call("load_everything()", output, exit_code=1).end(EndReason.AGENT_STOP)
    assert run.subtypes() == {code, "E5.missing_files"}


def test_a_crash_in_the_batch_that_was_left_so(run):
    run.plan().check_setup().pilot().inspect()
    run.call(
        "predict_all(cases)", "KeyError: 'spacing'", exit_code=1, completes=run.cases[1:4]
    ).submit().call().submit()
    assert run.subtypes() == {"E4.crash", "E5.incomplete_coverage"}


@pytest.mark.parametrize("fields", [{"oom": True}, {"timed_out": True}, {"disk_full": True}])
def test_a_batch_that_ran_out_of_something(run, fields):
    run.pilot().inspect().call("predict_all(cases)", exit_code=None, **fields).end(EndReason.AGENT_STOP)
    assert "E4.out_of_resources" in run.subtypes()


def test_a_skipped_validation(run):
    run.plan().check_setup().batch().submit()
    assert run.subtypes() == {"E3.validation_skipped"}


def test_the_same_failure_three_times_in_a_row(run):
    for _ in range(3):
        run.call("load()", "KeyError: 'affine'", exit_code=1)
    run.call("load()").pilot().inspect().batch().submit()
    assert run.subtypes() == {"E3.repeated_failure"}
    assert len(run.codes()[0].events) == 3


def test_different_failures_in_a_row_are_debugging(run):
    for name in ("affine", "spacing", "origin"):
        run.call("load()", f"KeyError: {name!r}", exit_code=1)
    assert run.call("load()").pilot().inspect().batch().submit().codes() == ()


@pytest.mark.parametrize(
    ("flag", "code"),
    [
        ("copied_input", "E3.copied_input"),
        ("empty_prediction", "E3.empty_output"),
    ],
)
def test_suspicious_outputs_count_when_all_cases_show_them(run, flag, code):
    run.good()
    every = {case: (flag,) for case in run.cases}
    assert run.subtypes(run.report(flags=every)) == {code}
    assert run.subtypes(run.report(flags=dict(list(every.items())[1:]))) == set()


@pytest.mark.parametrize("aggregate", ["distinct_answers", "distinct_reports"])
@pytest.mark.parametrize(("share", "fired"), [(0.1, True), (0.2, False), (1.0, False), (None, False)])
def test_the_same_output_in_every_case(run, aggregate, share, fired):
    run.good()
    report = run.report().model_copy(update={"aggregates": {aggregate: share}})
    assert run.subtypes(report) == ({"E3.identical_answers"} if fired else set())


def test_a_single_box_out_of_bounds_is_enough(run):
    run.good()
    assert run.subtypes(run.report(flags={run.cases[4]: ("out_of_bounds",)})) == {"E3.out_of_bounds"}


def test_several_codes_fire_in_the_order_of_their_numbers(run):
    run.call("x", "MemoryError", exit_code=1).end(EndReason.TIME)
    codes = [fired.code for fired in run.codes()]
    assert codes == sorted(codes)
    assert len(codes) == 3


def test_every_subtype_belongs_to_a_code_with_a_title():
    assert {code for code, _ in SUBTYPES.values()} == set(TITLES)
