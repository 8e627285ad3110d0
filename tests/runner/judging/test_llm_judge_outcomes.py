"""Everything that a judge's endpoint can answer, and what becomes of it. No failure may turn into a number."""

from __future__ import annotations

import json

import pytest
from judging_parts import KEY, asked_items, opinion, verdict
from scripted_server import Answer, failure, html, usage, whole

from evaluator.rubric import load_rubric

JUDGED = (
    "plan_pipeline",
    "plan_method",
    "plan_candidates",
    "plan_picture_pipeline",
    "weights_obtained",
    "input_checked",
    "model_loaded",
    "pilot_validated",
)


def decide(judge, material, earlier=None):
    judgement = judge.judge(
        material, load_rubric(material.assignment.track), material.assignment.tier, earlier
    )
    assert KEY not in judgement.model_dump_json()
    for stage in ("S1", "S2", "S3"):
        values = [item.value for item in judgement.items if item.stage == stage and item.applies]
        assert (getattr(judgement, stage.lower()) is None) == (None in values)
    return judgement


def values(judgement):
    return {item.id: item.value for item in judgement.items}


def unscored(judgement):
    return {item.id for item in judgement.items if item.applies and item.value is None}


def item(judgement, name):
    return next(item for item in judgement.items if item.id == name)


def test_agreement(serve, judge, answering):
    server = serve(*[answering()] * 3)
    judgement = decide(judge(server), answering.material)
    assert (judgement.s1, judgement.s2, judgement.s3) == (1, 1, 1)
    assert tuple(asked_items(server.requests[0])) == JUDGED
    method = item(judgement, "plan_method")
    assert (method.votes, method.agreement, method.decided_by) == ((1, 1, 1), 1, "llm")
    assert [f"E{seq}" for seq in method.evidence] == [answering.events["plan_method"]]
    panel = judgement.panel
    assert (panel.size, panel.tokens_in, panel.tokens_out) == (3, 300, 30)
    assert panel.cost_usd == pytest.approx(3 * (100 * 2 + 10 * 10) / 1e6)
    assert panel.alpha is None  # all votes are equal: there is nothing that could differ
    assert [json.loads(one.reply)["items"].keys() for one in panel.exchanges] == [set(JUDGED)] * 3
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_disagreement_goes_by_the_majority(serve, judge, answering):
    no = answering(plan_method=opinion(0, [], "it does not"), pilot_validated=opinion(0.5, ["E23"]))
    server = serve(answering(), no, no)
    judgement = decide(judge(server), answering.material)
    method, pilot = item(judgement, "plan_method"), item(judgement, "pilot_validated")
    assert (method.value, method.reason) == (0, "it does not")
    assert method.agreement == pytest.approx(2 / 3)
    assert (pilot.value, pilot.votes) == (0.5, (1, 0.5, 0.5))
    assert -1 < judgement.panel.alpha < 1


def test_no_majority_is_unscored(serve, judge, answering):
    server = serve(answering(), answering(plan_method=opinion(0, [])))
    judgement = decide(judge(server, votes=2), answering.material)
    assert unscored(judgement) == {"plan_method"}
    assert judgement.s1 is None
    assert (judgement.s2, judgement.s3) == (1, 1)


def test_three_different_levels_are_unscored(serve, judge, answering):
    levels = [answering(pilot_validated=opinion(value, ["E23"])) for value in (0, 0.5, 1)]
    judgement = decide(judge(serve(*levels)), answering.material)
    assert unscored(judgement) == {"pilot_validated"}
    assert judgement.s3 is None


def test_one_vote_missing_leaves_the_majority_of_the_rest(serve, judge, answering):
    server = serve(answering(), answering(), *[failure(500)] * 3)
    judgement = decide(judge(server), answering.material)
    assert not unscored(judgement)
    assert item(judgement, "plan_method").votes == (1, 1)
    assert "try 3" in judgement.panel.exchanges[-1].error


def test_two_votes_missing_are_no_majority(serve, judge, answering):
    judgement = decide(judge(serve(answering(), failure(401))), answering.material)
    assert unscored(judgement) == set(JUDGED)
    assert "no majority of 3" in item(judgement, "plan_method").reason


def test_an_endpoint_that_is_down_leaves_null_and_the_program_items(serve, judge, answering):
    server = serve(*[failure(503)] * 3)
    judgement = decide(judge(server), answering.material)
    assert unscored(judgement) == set(JUDGED)
    assert (judgement.s1, judgement.s2, judgement.s3) == (None, None, None)
    assert values(judgement)["plan_exists"] == values(judgement)["failures_fixed"] == 1
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "bad",
    [
        whole("I think all of it is fine."),
        whole("I'm sorry, but I cannot help with that."),
        whole(None, refusal="I cannot judge this."),
        whole(""),
        whole('{"items": {"plan_pipeline": {"reason": "x", "evid', finish="length"),
        whole("[1, 2]"),
        whole('{"items": []}'),
        whole('{"verdict": 1}'),
        whole("[" * 100_000),
        whole('{"items": {"plan_method": {"value": NaN}}}'),
    ],
)
def test_an_answer_that_is_not_the_form_is_asked_again(serve, judge, answering, bad):
    server = serve(bad, answering(), *[answering()] * 2)
    assert not unscored(decide(judge(server), answering.material))
    assert "could not be used" in str(server.requests[1].body["messages"])
    server = serve(*[bad] * 9)
    judgement = decide(judge(server), answering.material)
    assert unscored(judgement) == set(JUDGED)
    assert len(server.requests) == 9


def test_fenced_json_is_read_and_json_with_words_around_it_is_not(serve, judge, answering):
    def wrapped(before, after):
        return lambda request: whole(before + json.dumps(verdict(request, answering.events)) + after)

    server = serve(*[wrapped("```json\n", "\n```")] * 3)
    assert not unscored(decide(judge(server), answering.material))
    server = serve(*[wrapped("Here you are: ", "")] * 3, *[wrapped("", "\nAll items are 1.")] * 6)
    assert unscored(decide(judge(server), answering.material)) == set(JUDGED)


@pytest.mark.parametrize("value", [2, -1, 0.3, True, "1", None, [1], 1e300])
def test_a_value_that_does_not_exist_is_asked_again_and_then_unscored(serve, judge, answering, value):
    bad = answering(plan_method=opinion(value, ["E3"]))
    server = serve(bad, answering(), answering(), answering())
    assert not unscored(decide(judge(server), answering.material))
    assert list(asked_items(server.requests[1])) == ["plan_method"]
    server = serve(*[bad] * 9)
    assert unscored(decide(judge(server), answering.material)) == {"plan_method"}


def test_a_missing_item_is_asked_again_alone(serve, judge, answering):
    server = serve(answering(input_checked=None), *[answering()] * 3)
    assert not unscored(decide(judge(server), answering.material))
    assert list(asked_items(server.requests[1])) == ["input_checked"]


@pytest.mark.parametrize(
    "events",
    [["E9999"], ["E0"], ["17"], ["E3; DROP"], [3], [], ["E3"] * 50, "E3", ["E-1"], ["E3", "E9999"]],
)
def test_evidence_that_does_not_hold_is_asked_again_and_then_unscored(serve, judge, answering, events):
    bad = answering(plan_method=opinion(1, events))
    server = serve(*[bad] * 9)
    assert unscored(decide(judge(server), answering.material)) == {"plan_method"}
    server = serve(bad, *[answering()] * 3)
    assert not unscored(decide(judge(server), answering.material))


def test_evidence_must_belong_to_the_items_stage(serve, judge, answering):
    batch, end = (
        next(f"E{event.seq}" for event in reversed(answering.material.events) if event.type == kind)
        for kind in ("exec", "end")
    )
    bad = answering(input_checked=opinion(1, [batch]), pilot_validated=opinion(1, [end]))
    judgement = decide(judge(serve(*[bad] * 9)), answering.material)
    assert unscored(judgement) == {"input_checked", "pilot_validated"}


def test_a_plan_is_no_evidence_of_validation(serve, judge, answering):
    bad = answering(pilot_validated=opinion(1, [answering.events["plan_pipeline"]]))
    assert unscored(decide(judge(serve(*[bad] * 9)), answering.material)) == {"pilot_validated"}


def test_a_key_that_occurs_twice_is_not_guessed(serve, judge, answering):
    def twice(request):
        text = json.dumps(verdict(request, answering.events))
        return whole(text.replace('"value": 1}', '"value": 0, "value": 1}'))

    assert unscored(decide(judge(serve(*[twice] * 9)), answering.material)) == set(JUDGED)


def test_429_is_waited_for(serve, judge, answering):
    server = serve(failure(429, headers={"retry-after": "1"}), *[answering()] * 3)
    asker = judge(server)
    assert not unscored(decide(asker, answering.material))
    assert max(asker.naps) >= 1


def test_429_without_end_leaves_null(serve, judge, answering):
    assert unscored(decide(judge(serve(*[failure(429)] * 3)), answering.material)) == set(JUDGED)


def test_a_time_out_is_tried_again(serve, judge, answering):
    slow = whole("{}")
    slow.delay = 0.6
    server = serve(slow, *[answering()] * 3)
    assert not unscored(decide(judge(server, request_seconds=0.3), answering.material))


def test_time_outs_without_end_leave_null(serve, judge, answering):
    slow = whole("{}")
    slow.delay = 0.4
    judgement = decide(judge(serve(*[slow] * 3), request_seconds=0.15), answering.material)
    assert unscored(judgement) == set(JUDGED)
    assert "no answer within" in judgement.panel.exchanges[-1].error


def test_a_connection_that_breaks_off_is_tried_again(serve, judge, answering):
    def cut(request):
        answer = answering()(request)
        answer.cut = len(answer.body) // 2
        return answer

    server = serve(cut, *[answering()] * 3)
    assert not unscored(decide(judge(server), answering.material))
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "bad",
    [
        Answer(json.dumps({"error": {"message": "overloaded", "code": 502}}).encode()),
        Answer(b'{"error": "no capacity"}'),
        Answer(b'{"choices": []}'),
        html(),
        Answer(b""),
    ],
)
def test_a_success_that_is_an_error_is_tried_again(serve, judge, answering, bad):
    server = serve(bad, *[answering()] * 3)
    assert not unscored(decide(judge(server), answering.material))
    assert unscored(decide(judge(serve(*[bad] * 3)), answering.material)) == set(JUDGED)


def test_tokens_that_nobody_counts_are_not_made_up(serve, judge, answering):
    def uncounted(request):
        body = json.loads(answering()(request).body)
        del body["usage"]
        return Answer(json.dumps(body).encode())

    judgement = decide(judge(serve(*[uncounted] * 3)), answering.material)
    assert [one.usage for one in judgement.panel.exchanges] == [None] * 3
    assert judgement.panel.cost_usd is None


def test_what_is_missing_is_filled_in_later_and_nothing_else_changes(serve, judge, answering):
    first = decide(judge(serve(*[answering(plan_method=opinion(2, ["E3"]))] * 9)), answering.material)
    assert unscored(first) == {"plan_method"}
    server = serve(*[answering(value=0)] * 3)
    second = decide(judge(server), answering.material, first)
    assert all(list(asked_items(request)) == ["plan_method"] for request in server.requests)
    assert values(second) == {**values(first), "plan_method": 0}
    assert second.panel.exchanges[:9] == first.panel.exchanges
    assert second.panel.tokens_in == first.panel.tokens_in + 300
    untouched = [one for one in second.items if one.id != "plan_method"]
    assert untouched == [one for one in first.items if one.id != "plan_method"]


def test_what_is_judged_is_not_asked_again(serve, judge, answering):
    server = serve(*[answering()] * 3)
    first = decide(judge(server), answering.material)
    assert decide(judge(server), answering.material, first) is first
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "change", [{"model": "other"}, {"votes": 1}, {"temperature": 0.5}, {"evidence_tokens": 3000}]
)
def test_another_judge_starts_afresh(serve, judge, answering, change):
    first = decide(judge(serve(*[answering()] * 3)), answering.material)
    server = serve(*[answering(value=0)] * 3)
    second = decide(judge(server, **change), answering.material, first)
    assert server.requests
    assert second.judge_sha256 != first.judge_sha256


def test_without_a_pilot_there_is_nothing_to_ask_about_it(serve, judge, material):
    hasty = material("hasty")
    server = serve(*[lambda request: whole(json.dumps(verdict(request, {}, 0, **zeros(request))))] * 3)

    def zeros(request):
        return {name: opinion(0, []) for name in asked_items(request)}

    judgement = decide(judge(server), hasty)
    assert "pilot_validated" not in asked_items(server.requests[0])
    assert judgement.s3 == 0


def test_a_judge_without_eyes_leaves_the_picture_unscored(serve, judge, answering):
    server = serve(*[answering()] * 3)
    judgement = decide(judge(server, pictures=False), answering.material)
    assert unscored(judgement) == {"plan_picture_pipeline"}
    assert "image_url" not in str(server.requests[0].body["messages"])


def tags(*faults):
    return whole(
        json.dumps(
            {"faults": [{"reason": "r", "evidence": events, "fault": name} for name, events in faults]}
        )
    )


def test_error_codes_are_tagged_by_the_majority(serve, judge, answering):
    bad, other = ("ignored_bad_output", ["E23"]), ("misread_task", ["E3"])
    server = serve(*[answering()] * 3, tags(bad), tags(bad, other), tags())
    judgement = decide(judge(server, tags=True), answering.material)
    assert [(fired.name, fired.events, fired.found_by) for fired in judgement.tags] == [
        ("E3.ignored_bad_output", (23,), "llm")
    ]
    assert judgement.panel.tagged
    assert decide(judge(server, tags=True), answering.material, judgement) is judgement


@pytest.mark.parametrize(
    "fault", [("no_such_fault", ["E3"]), ("misread_task", []), ("misread_task", ["E9999"])]
)
def test_tags_without_evidence_do_not_fire(serve, judge, answering, fault):
    server = serve(*[answering()] * 3, *[tags(fault)] * 9)
    judgement = decide(judge(server, tags=True), answering.material)
    assert judgement.tags == ()
    assert not judgement.panel.tagged
    assert not unscored(judgement)


def test_usage_is_what_the_server_counted(serve, judge, answering):
    def counted(request):
        body = json.loads(answering()(request).body)
        body["usage"] = usage(5000, 70)
        return Answer(json.dumps(body).encode())

    judgement = decide(judge(serve(*[counted] * 3)), answering.material)
    assert (judgement.panel.tokens_in, judgement.panel.tokens_out) == (15_000, 210)
