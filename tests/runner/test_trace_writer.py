import json
import os
import resource

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.trace import Call, End, EndReason, Exec, Reply, Usage, read_trace
from runner.trace import TraceWriter, plain, verify_chain


def reply(turn, text="", **more):
    return Reply(turn=turn, text=text, **more)


def write(path, events):
    with TraceWriter(path) as trace:
        return [trace.append(event) for event in events]


def test_what_is_written_reads_back_and_chains(tmp_path):
    path = tmp_path / "trace.jsonl"
    events = [
        reply(1, "hello", calls=(Call(id="a", name="execute_code", arguments="{}"),), usage=Usage(input=3)),
        Exec(turn=1, call="a", language="bash", exit_code=None, seconds=2.5, output="x", output_bytes=1),
        End(reason=EndReason.SUBMITTED, turns=1),
    ]
    written = write(path, events)
    assert read_trace(path) == written
    assert [event.seq for event in written] == [0, 1, 2]
    assert written[0].prev == ""
    assert all(len(event.prev) == 32 for event in written[1:])
    assert verify_chain(path) is None


def test_defaults_are_left_out_but_not_the_frame(tmp_path):
    path = tmp_path / "trace.jsonl"
    write(path, [reply(1)])
    assert json.loads(path.read_text()) == {"type": "reply", "seq": 0, "t": 0.0, "prev": "", "turn": 1}


def test_the_time_counts_from_the_start(tmp_path):
    times = iter([50.0, 50.5, 53.25])
    with TraceWriter(tmp_path / "t", clock=lambda: next(times)) as trace:
        assert [trace.append(reply(n)).t for n in (1, 2)] == [0.5, 3.25]


def test_a_trace_is_never_written_over(tmp_path):
    path = tmp_path / "trace.jsonl"
    write(path, [reply(1)])
    with pytest.raises(FileExistsError):
        TraceWriter(path)


@pytest.mark.parametrize("damage", ["change", "drop", "swap", "insert", "garbage"])
def test_damage_in_the_middle_is_found(tmp_path, damage):
    path = tmp_path / "trace.jsonl"
    write(path, [reply(n, f"text {n}") for n in range(1, 6)])
    lines = path.read_bytes().splitlines(keepends=True)
    if damage == "change":
        lines[2] = lines[2].replace(b"text 3", b"text 9")
        bad = 4
    elif damage == "drop":
        del lines[2]
        bad = 3
    elif damage == "swap":
        lines[2], lines[3] = lines[3], lines[2]
        bad = 3
    elif damage == "insert":
        lines.insert(2, lines[2])
        bad = 4
    else:
        lines[2] = b"[" * 100_000 + b"\n"
        bad = 3
    path.write_bytes(b"".join(lines))
    assert verify_chain(path) == bad


def test_a_last_line_cut_by_a_kill_is_neither_read_nor_damage(tmp_path):
    path = tmp_path / "trace.jsonl"
    write(path, [reply(n, "x" * 50) for n in range(3)])
    os.truncate(path, path.stat().st_size - 20)
    assert len(read_trace(path)) == 2
    assert verify_chain(path) is None


def test_what_moves_a_cursor_is_escaped(tmp_path):
    path = tmp_path / "trace.jsonl"
    text = "\x1b[31m\x00\x7f\x9b\u202egnp.exe\u2028é漢"
    write(path, [reply(1, text)])
    raw = path.read_text()
    assert raw.rstrip("\n").isprintable()
    assert "é漢" in raw
    assert read_trace(path)[0].text == text


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_survives_except_lone_surrogates(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("trace") / "t"
    write(path, [reply(1, plain(text))])
    assert len(path.read_bytes().splitlines()) == 1
    read = read_trace(path)[0].text
    assert read == plain(text)
    if not any(0xD800 <= ord(char) < 0xE000 for char in text):
        assert read == text


def test_a_full_disk_leaves_whole_lines(tmp_path):
    """A file-size limit stands in for the full disk: the write goes in part and then fails."""
    path = tmp_path / "trace.jsonl"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            trace = TraceWriter(path)
            trace.append(reply(1, "a" * 500))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            try:
                trace.append(reply(2, "b" * 2000))
            except OSError:
                trace.append(reply(2, "short"))
                code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [event.text[:5] for event in read_trace(path)] == ["aaaaa", "short"]
    assert verify_chain(path) is None
