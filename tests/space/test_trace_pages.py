"""A trace is paged, searched and filtered by offsets; hostile and damaged lines are shown as text."""

from __future__ import annotations

import gzip
import json

import pytest

from evaluator.trace import Call, End, EndReason, Exec, Reply, RunStarted
from space.traceindex import MAX_UNPACKED, TraceUnreadable, index_trace
from space.traceview import MAX_BODY, PAGE, page_with, show_trace

EVIL = '</pre><script>window.hacked = 1</script><img src=x onerror="window.hacked=1">'


def line(event) -> bytes:
    body = {"type": event.type, "seq": event.seq, "t": event.t, "prev": ""} | event.model_dump(mode="json")
    return json.dumps(body, ensure_ascii=False).encode() + b"\n"


def reply(seq: int, text: str, **more) -> Reply:
    return Reply(seq=seq, turn=seq, text=text, **more)


def output(seq: int, text: str, code: int = 0) -> Exec:
    return Exec(seq=seq, turn=seq, call="c", language="python", exit_code=code, seconds=1.0, output=text,
                output_bytes=len(text))  # fmt: skip


@pytest.fixture
def trace(tmp_path):
    def write(*events, tail: bytes = b""):
        path = tmp_path / "trace.jsonl"
        path.write_bytes(b"".join(map(line, events)) + tail)
        return path

    return write


STARTED = RunStarted(at="2026-01-01T00:00:00Z", task="t", tier="lite", release="phantom", agent="a", brief_sha256="0",
                     cases=1)  # fmt: skip


def test_events_are_found_by_role_and_by_words(trace) -> None:
    path = trace(STARTED, reply(1, "I look for ÄRGER"), output(2, 'printed "quoted"\nline'), reply(3, "done"))
    index = index_trace(path)
    assert len(index) == 4
    assert index.find(("agent",)) == [1, 3]
    assert index.find(("tool",)) == [2]
    assert index.find(("host",)) == [0]
    assert index.find((), "ärger") == [1]
    assert index.find((), '"QUOTED"\nline') == [2]
    assert index.find(("agent",), "quoted") == []
    assert index.find((), "prev") == []  # names of fields are no words of anybody


def test_only_the_asked_page_is_in_the_page(trace) -> None:
    events = [reply(seq, f"event number {seq} ends") for seq in range(3 * PAGE + 1)]
    index = index_trace(trace(*events))
    shown = page_with(index.find(), 2, None)
    html = show_trace(index, shown)
    assert shown.pages == 4
    assert html.count("<article") == PAGE
    assert f"number {PAGE} ends" in html
    assert f"number {PAGE - 1} ends" not in html
    assert page_with(index.find(), 99, None).page == 4
    assert page_with(index.find(), -5, None).page == 1
    assert page_with([], 1, None).places == []


def test_an_event_is_shown_on_the_page_where_it_stands(trace) -> None:
    index = index_trace(trace(*[reply(seq, "x") for seq in range(3 * PAGE)]))
    shown = page_with(index.find(), 1, 2 * PAGE + 3)
    assert shown.page == 3
    assert 'class="amb-event amb-chosen"' in show_trace(index, shown, event=2 * PAGE + 3)


def test_nothing_in_a_trace_becomes_markup(trace) -> None:
    call = Call(id="c", name=EVIL, arguments=json.dumps({"language": EVIL, "code": EVIL}))
    path = trace(
        STARTED,
        reply(1, EVIL, calls=(call,)),
        output(2, EVIL, 1),
        End(seq=3, reason=EndReason.TIME, detail=EVIL),
    )
    index = index_trace(path)
    for words in ("", "script", "<img"):
        html = show_trace(index, page_with(index.find(), 1, None), words)
        assert "<script" not in html
        assert "<img" not in html
    assert "amb-failed" in html


def test_a_long_body_is_cut_in_the_middle(trace) -> None:
    index = index_trace(trace(output(0, "HEAD" + "x" * 10 * MAX_BODY + "TAIL")))
    html = show_trace(index, page_with([0], 1, None))
    assert len(html) < 2 * MAX_BODY
    assert "HEADx" in html
    assert "xTAIL" in html
    assert "characters left out here" in html


def test_damaged_lines_and_a_cut_end_are_said(trace) -> None:
    path = trace(
        STARTED, tail=b'not json <b>\n[1]\n{"type": "new kind", "field": "of a newer version"}\n{"type": "re'
    )
    index = index_trace(path)
    html = show_trace(index, page_with(index.find(), 1, None))
    assert len(index) == 4
    assert html.count("damaged line") == 2
    assert "not json &lt;b&gt;" in html
    assert "of a newer version" in html
    assert "cut off" in html


def test_a_compressed_trace_is_shown_as_the_plain_one(trace, tmp_path) -> None:
    path = trace(STARTED, reply(1, "hello"))
    packed = tmp_path / "trace.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    plain, index = index_trace(path), index_trace(packed)
    places = [0, 1]
    assert index.events(places) == plain.events(places)


def test_a_compression_bomb_is_cut(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("space.traceindex.MAX_UNPACKED", 1 << 20)
    assert MAX_UNPACKED > 1 << 20
    packed = tmp_path / "trace.jsonl.gz"
    packed.write_bytes(gzip.compress(line(reply(0, "x" * 100)) * 50_000))
    index = index_trace(packed)
    assert 0 < len(index) < 20_000
    assert index.cut


@pytest.mark.parametrize("spoil", ["absent", "link", "broken.gz"])
def test_what_is_no_trace_is_one_sentence(tmp_path, spoil) -> None:
    path = tmp_path / ("trace.jsonl.gz" if spoil == "broken.gz" else "trace.jsonl")
    if spoil == "link":
        path.symlink_to("/etc/hostname")
    elif spoil == "broken.gz":
        path.write_bytes(b"\x1f\x8bnonsense")
    with pytest.raises(TraceUnreadable):
        index_trace(path)


def test_a_changed_trace_is_indexed_anew(trace) -> None:
    assert len(index_trace(trace(STARTED))) == 1
    assert len(index_trace(trace(STARTED, reply(1, "more")))) == 2


@pytest.mark.parametrize(
    "body",
    [
        '"type":"exec","t":1e999,"seconds":NaN', '"type":"exec","seconds":1' + "0" * 400, '"type":"reply","calls":5',
        '"type":"files","changes":7', '"type":"submit","message":"m","missing":3', '"type":"reply","usage":[1]',
        '"type":"reply","text":"\\ud800","cost_usd":-1e999', '"type":"reply","calls":[{"arguments":"[1e999]"}]',
    ],
)  # fmt: skip
def test_values_that_no_event_of_ours_has_are_shown_all_the_same(tmp_path, body) -> None:
    (tmp_path / "trace.jsonl").write_text(f'{{"seq":0,{body}}}\n')
    index = index_trace(tmp_path / "trace.jsonl")
    shown = show_trace(index, page_with(index.find(), 1, None))
    assert shown.encode().count(b"<article") == 1
