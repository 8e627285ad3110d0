"""The scripted agent: no model, no key, no weights. It walks the five stages with the tools that every agent has."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from evaluator.trace import Call
from runner.agents.baseline import steps
from runner.agents.baseline.plan import TrackPlan, choose, plan_for, read_comparison, write_plan
from runner.agents.baseline.steps import Step
from runner.session import Session
from runner.tools import EXECUTE_CODE, SUBMIT_RESULTS
from tasks.schema import Tier


class Baseline:
    """A classical method per track, brought through the stages by a script that reacts to what the tools answer."""

    name = "baseline"
    model: str | None = None
    price_source: str | None = None

    def run(self, session: Session) -> None:
        walk = Walk(session, plan_for(session.task))
        for stage in (walk.plan_work, walk.set_up, walk.validate, walk.infer, walk.submit):
            if session.ended is None:
                stage()


@dataclass
class Walk:
    """One run: the method it trusts at the moment, the index of its pilot case, and what went wrong so far."""

    session: Session
    plan: TrackPlan
    method: str = ""
    case: int = 0
    calls: int = 0
    troubles: list[str] = field(default_factory=list)

    def plan_work(self) -> None:
        """S1: look at the data, write the plan; beyond the Lite tier measure candidates and draw the pipeline."""
        task, tier = self.session.task, self.session.brief.tier
        table, decision = {}, ""
        self.method = self.plan.default
        self.do(steps.look_around())
        if tier is not Tier.LITE:
            self.do(
                steps.write_tools(task, self.plan, "S1 Plan. I write three candidates down to measure them.")
            )
            table = read_comparison(self.do(steps.measure_candidates(self.plan)))
            self.method, decision = choose(self.plan, table)
        cases = len(self.session.case_ids)
        self.do(steps.write_plan(write_plan(task, tier, self.plan, self.method, cases, table, decision)))
        if tier is not Tier.LITE:
            self.do(steps.draw_plan(task, self.plan, self.method))

    def set_up(self) -> None:
        """S2: packages, one input read, one forward pass; where the fallback fails too, the case is at fault."""
        if self.session.brief.tier is Tier.LITE:
            self.do(steps.write_tools(self.session.task, self.plan, "S2 Setup. I write the method down."))
        self.do(steps.check_setup())
        if self.did(steps.forward_pass(self.method, self.case)):
            return
        if self.did(steps.forward_pass(self.plan.fallback, self.case)):
            self.fall_back()
        elif self.case + 1 < len(self.session.case_ids):
            self.case += 1

    def validate(self) -> None:
        """S3: one case written for real, read back in a call of its own; again with the fallback where that fails."""
        if not self.pilot_is_good():
            self.fall_back()
            self.pilot_is_good()

    def pilot_is_good(self) -> bool:
        return self.did(steps.pilot(self.method, self.case)) and self.did(steps.review(self.case))

    def infer(self) -> None:
        """S4: the batch, call after call while it gets on; cases that stay open go to the fallback."""
        before, left = len(self.session.case_ids) + 1, len(self.session.case_ids)
        while 0 < left < before:
            before, left = left, steps.open_cases(self.do(self.batch()), otherwise=left)
        if left:
            self.troubles.append(f"{left} cases were left open by {self.method!r}")
            self.fall_back()
            self.did(self.batch())

    def batch(self) -> Step:
        return steps.batch(self.method, self.seconds_for_batch())

    def submit(self) -> None:
        """S5: verify, mend what is wrong, hand in; hand in again after a refusal, because what exists must count."""
        if not self.did(steps.verify()):
            self.fall_back()
            self.did(steps.mend(self.method, self.seconds_for_batch()))
        self.hand_in()
        self.hand_in()

    def hand_in(self) -> None:
        name = self.plan.candidates[self.method].name
        troubles = f" Troubles on the way: {'; '.join(self.troubles)}." if self.troubles else ""
        summary = f"All cases by {name}, a classical method without learned weights, in the end.{troubles}"
        self.call("S5 Submit. I hand in what is in the outputs folder.", SUBMIT_RESULTS, {"summary": summary})

    def fall_back(self) -> None:
        """From here on the simplest method is trusted."""
        self.method = self.plan.fallback

    def seconds_for_batch(self) -> float:
        """As long as one call may take, but never so long that no time is left to verify and hand in."""
        budget = self.session.budget
        return min(0.9 * budget.call_deadline(), 0.8 * budget.remaining_seconds())

    def did(self, step: Step) -> bool:
        """Whether the step's code ended well; a failure is remembered for the summary."""
        good = self.do(step).startswith("exit code 0 ")
        if not good and self.session.ended is None:
            self.troubles.append(f"failed: {step.say}")
        return good

    def do(self, step: Step) -> str:
        """Run the step and return the tool's answer."""
        return self.call(step.say, EXECUTE_CODE, {"language": step.language, "code": step.code})

    def call(self, say: str, tool: str, arguments: dict[str, str]) -> str:
        """One turn with one call; nothing is asked of a session that has ended."""
        if self.session.ended is not None:
            return ""
        self.calls += 1
        call = Call(id=f"call-{self.calls}", name=tool, arguments=json.dumps(arguments, ensure_ascii=False))
        return self.session.turn(say, [call])[0].text
