"""A scripted agent: its steps become the trace that the runner would have written, and the plan's collected files."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.judge.calibration.subjects import CASES, Subject
from evaluator.submission import process_folder
from evaluator.trace import (
    Call,
    End,
    EndReason,
    Event,
    Exec,
    FileChange,
    Files,
    Reply,
    RunStarted,
    Submit,
    Usage,
)
from tasks.schema import Tier

if TYPE_CHECKING:
    from PIL.Image import Image

AGENT, MODEL = "scripted-agent-1", "nobody/scripted-agent-1"
WEIGHTS = "models/net.pth"
_LISTED = 40


class Script:
    """Steps of one run. Every call has a turn of its own; time passes by fixed amounts.

    Parameters
    ----------
    folder : Path
        Empty; the plan's files go where a collected submission has them.
    """

    def __init__(self, folder: Path, subject: Subject, tier: Tier) -> None:
        self.folder = folder
        self.subject = subject
        self._done: list[str] = []
        self._turn = 0
        self._t = 0.0
        self.events: list[Event] = []
        self._add(
            RunStarted(
                at="2026-01-01T00:00:00.000000+00:00",
                task="calibration",
                tier=tier.value,
                release="phantom",
                agent=AGENT,
                model=MODEL,
                brief_sha256="0" * 64,
                cases=len(CASES),
            ),
            0.0,
        )

    def _add(self, event: Event, seconds: float) -> None:
        self._t += seconds
        self.events.append(event.model_copy(update={"seq": len(self.events), "t": round(self._t, 3)}))

    def call(
        self,
        code: str,
        output: str = "",
        *,
        exit_code: int = 0,
        seconds: float = 2.0,
        writes: dict[str, int] | None = None,
        completes: Sequence[str] = (),
        reads: Sequence[str] = (),
        reads_weights: bool = False,
        says: str = "",
    ) -> None:
        """One turn with one command, and what the host saw of it."""
        self._turn += 1
        name = f"call-{self._turn}"
        arguments = json.dumps({"language": "python", "code": code})
        call = Call(id=name, name="execute_code", arguments=arguments)
        usage = Usage(input=2000 + 400 * self._turn, output=len(code) // 4 + 20)
        self._add(
            Reply(
                turn=self._turn,
                text=says,
                calls=(call,),
                usage=usage,
                cost_usd=0.01,
                seconds=4.0,
                finish="stop",
            ),
            4.0,
        )
        self._add(
            Exec(
                turn=self._turn,
                call=name,
                language="python",
                exit_code=exit_code,
                seconds=seconds,
                output=output,
                output_bytes=len(output.encode()),
            ),
            seconds,
        )
        self._done += [case for case in completes if case not in self._done]
        outputs = {f"outputs/{case}/{file}": 4096 for case in completes for file in self.subject.files}
        changes = [
            FileChange(path=path, size=size, change="created")
            for path, size in {**(writes or {}), **outputs}.items()
        ]
        files = Files(
            turn=self._turn,
            call=name,
            changes=tuple(changes[:_LISTED]),
            more=max(0, len(changes) - _LISTED),
            new_cases=tuple(completes),
            new_cases_total=len(completes),
            read_cases=tuple(reads),
            read_weights=(WEIGHTS,) if reads_weights else (),
            complete_cases=len(self._done),
        )
        self._add(files, 0.01)

    def plan(self, text: str, **more: object) -> None:
        """Write ``plan.md``; ``more`` may complete cases in the same call."""
        self._put("plan.md", text.encode())
        writes = {"plan.md": len(text.encode())}
        self.call("open('plan.md', 'w').write(PLAN)", writes=writes, **more)  # type: ignore[arg-type]

    def picture(self, image: Image, text: dict[str, str] | None = None) -> None:
        """Write ``plan.png``; ``text`` goes into the file beside the pixels."""
        from PIL.PngImagePlugin import PngInfo

        info = PngInfo()
        for key, value in (text or {}).items():
            info.add_text(key, value)
        buffer = io.BytesIO()
        image.save(buffer, "PNG", pnginfo=info)
        self._put("plan.png", buffer.getvalue())
        self.call("draw_plan('plan.png')", writes={"plan.png": len(buffer.getvalue())})

    def _put(self, name: str, data: bytes) -> None:
        folder = process_folder(self.folder)
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)

    # --- steps that several characters take ---

    def look_at_input(self) -> None:
        shape = tuple(self.subject.shape)
        output = (
            f"shape {shape}, float32, range -1020.0 .. 2980.0\nexpected by the method: same axes, float32\n"
        )
        self.call(
            "first = load(public_cases[0])\nprint(first.shape, first.dtype, first.min(), first.max())", output
        )

    def fetch_weights(self) -> None:
        self.call(
            "fetch('net.pth', 'models/net.pth')", "saved 41 MB\n", seconds=30.0, writes={WEIGHTS: 41_000_000}
        )

    def pilot(self, *, with_weights: bool = False) -> None:
        if with_weights:
            code = "net = load_weights('models/net.pth')\nprint(net(first).shape)\nwrite(predict(net, 'case-00'))"
            shape = tuple(self.subject.shape)
            self.call(
                code,
                f"loaded 218 tensors on cpu\nforward pass {shape}\n",
                completes=CASES[:1],
                reads_weights=True,
            )
        else:
            self.call("write(predict('case-00'))", "case-00 done in 3.1 s\n", completes=CASES[:1])

    def inspect(self, output: str) -> None:
        self.call("show('outputs/case-00')", output + "\n", reads=CASES[:1])

    def batch(self, **more: object) -> None:
        left = [case for case in CASES if case not in self._done]
        output = "".join(f"{case} done\n" for case in left)
        self.call("for case in cases: write(predict(case))", output, seconds=60.0, completes=left, **more)  # type: ignore[arg-type]

    def submit(self, says: str = "") -> None:
        """Hand in; where cases are missing, twice."""
        missing = (len(CASES) - len(self._done)) * len(self.subject.files)
        for accepted in (True,) if not missing else (False, True):
            self._turn += 1
            call = Call(id=f"call-{self._turn}", name="submit_results", arguments='{"summary": "done"}')
            self._add(Reply(turn=self._turn, text=says, calls=(call,), cost_usd=0.01, seconds=4.0), 4.0)
            self._add(
                Submit(turn=self._turn, call=call.id, summary=says, missing_total=missing, accepted=accepted),
                0.0,
            )
        self._add(End(reason=EndReason.SUBMITTED, turns=self._turn, working_seconds=round(self._t, 3)), 0.0)
