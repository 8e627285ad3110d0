"""Secrets are taken out of what is published, whatever form they lie there in; nothing else is touched."""

from __future__ import annotations

import base64
import json
import string
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from evaluator.trace import Event
from hf_datasets.disguises import shared_runs
from hf_datasets.redact import LEAST_PIECE, MOST_LEARNT, Machine, Redactor, Unredactable

KEY = "sk-or-v1-" + "9f3ac1de77b0" * 4
MACHINE = Machine(("/home/alice",), ("alice",), ("wolke7.clinic.example", "wolke7"))
TOKENS = {
    "hub": "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567",
    "endpoint": "sk-ant-api03-" + "Zz8_" * 10,
    "repository": "ghp_" + "a1B2" * 9,
    "cloud": "AKIA" + "ABCDEFGH12345678",
    "web": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r",
}
KEY_BLOCK = (
    "-----BEGIN EC PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nQyNTUxOQAAACDb\n-----END EC PRIVATE KEY-----"
)


@pytest.fixture
def redactor() -> Redactor:
    return Redactor([KEY], MACHINE)


def no_piece_of(secret: str, text: str) -> bool:
    pieces = (secret[at : at + LEAST_PIECE] for at in range(len(secret) - LEAST_PIECE + 1))
    return not any(piece in text for piece in pieces)


def cut(raw: bytes, size: int) -> list[bytes]:
    return [raw[at : at + size] for at in range(0, len(raw), size)]


def published(redactor: Redactor, *events: dict, size: int = 7) -> bytes:
    raw = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return b"".join(redactor.having_seen(cut(raw, size)).jsonl(cut(raw, size)))


DISGUISES = {
    "as it is": str,
    "JSON escapes": lambda key: "".join(f"\\u{ord(c):04X}" for c in key),
    "escapes of escapes": lambda key: "".join(f"\\\\u{ord(c):04x}" for c in key),
    "bytes of Python": lambda key: "".join(f"\\x{ord(c):02x}" for c in key),
    "an address": lambda key: urllib.parse.quote(key, safe=""),
    "every character in percent": lambda key: "".join(f"%{ord(c):02X}" for c in key),
    "percent twice": lambda key: "".join(f"%25{ord(c):02x}" for c in key),
    "hexadecimal": lambda key: key.encode().hex(),
    "base64, first alignment": lambda key: base64.b64encode(key.encode()).decode(),
    "base64, second alignment": lambda key: base64.b64encode(b"x" + key.encode() + b"yz").decode(),
    "base64, third alignment": lambda key: base64.b64encode(b"xy" + key.encode() + b"z").decode(),
    "base64 of addresses": lambda key: base64.urlsafe_b64encode(b"??>" + key.encode()).decode(),
    "base64 in short lines": lambda key: base64.encodebytes(
        b"some words before " + key.encode() * 2
    ).decode(),
    "cut off": lambda key: key[: len(key) // 2],
    "the end of it": lambda key: key[len(key) // 2 :],
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_configured_key_is_taken_out_in_every_disguise(redactor, disguise):
    shown = DISGUISES[disguise](KEY)
    text = redactor.text(f"before {shown} after")
    assert text.startswith("before [redacted:")
    assert text.rstrip().endswith("after")
    assert no_piece_of(shown.replace("\n", ""), text.replace("\n", ""))


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_nobody_configured_is_known_by_its_shape_and_then_in_every_form(redactor, name):
    token = TOKENS[name]
    encoded = base64.b64encode(b"a" + token.encode()).decode()
    out = published(
        redactor,
        {"type": "exec", "output": f"cat .netrc: {token}\n"},
        {"type": "exec", "output": f"half of it {token[:-6]}"},
        {"type": "exec", "output": encoded},
    ).decode()
    assert no_piece_of(token, out)
    assert no_piece_of(encoded[2:-4], out)


def test_a_token_that_is_only_ever_encoded_is_found(redactor):
    encoded = base64.b64encode(b"export T=" + TOKENS["hub"].encode()).decode()
    assert encoded.encode() not in published(redactor, {"type": "exec", "output": encoded})


@pytest.mark.parametrize("at", [1, 3, 6, 12, 20, 34])
def test_a_token_cut_between_two_outputs_leaves_no_readable_piece(redactor, at):
    token = TOKENS["hub"]
    out = published(
        redactor,
        {"type": "exec", "turn": 1, "output": "start " + token[:at]},
        {"type": "reply", "turn": 2, "text": "go on"},
        {"type": "exec", "turn": 2, "output": token[at:] + " end"},
    ).decode()
    assert no_piece_of(token, out)
    assert [json.loads(line).get("turn") for line in out.splitlines()] == [1, 2, 2]


def test_blocks_of_private_keys_variables_and_logins_go(redactor):
    text = redactor.text(
        f"{KEY_BLOCK}\nMY_API_KEY=correct-horse-battery\nAuthorization: Bearer abcdefghijklmnop1234\n"
        "git clone https://bob:hunter2hunter2@git.example/x.git"
    )
    for secret in ("b3BlbnNz", "correct-horse", "abcdefghijklmnop1234", "hunter2"):
        assert secret not in text
    assert text.endswith("git.example/x.git")


def test_names_of_user_host_and_home_go_and_words_that_hold_them_stay(redactor):
    text = redactor.text(
        "/home/alice/runs on wolke7 by alice; /home/bob/x; malice at wolke77; /workspace/home/x"
    )
    assert text == (
        "[redacted:home]/runs on [redacted:host] by [redacted:user]; /home/[redacted:user]/x; malice at wolke77; "
        "/workspace/home/x"
    )


def test_a_host_named_like_a_word_of_the_schema_leaves_the_schema_alone():
    redactor = Redactor([], Machine(hosts=("exec",), users=("bash",)))
    event = {"type": "exec", "turn": 1, "call": "a", "language": "bash", "exit_code": 0, "seconds": 1.0,
             "output": "bash: exec", "output_bytes": 10}  # fmt: skip
    line = published(redactor, event)
    parsed = TypeAdapter(Event).validate_json(line)
    assert parsed.type == "exec"
    assert parsed.output == "[redacted:user]: [redacted:host]"


def test_arguments_that_are_json_stay_json(redactor):
    arguments = json.dumps({"language": "bash", "code": f'echo "\n{KEY}\\"\n', KEY: 1})
    line = published(redactor, {"type": "reply", "calls": [{"id": "1", "arguments": arguments}]})
    inner = json.loads(json.loads(line)["calls"][0]["arguments"])
    assert inner["code"] == 'echo "\n[redacted:key]\\"\n'
    assert set(inner) == {"language", "code", "[redacted:key]"}


def test_a_key_hidden_behind_a_repeated_name_goes_too(redactor):
    arguments = f'{{"code": "{KEY}", "code": "harmless"}}'
    assert KEY.encode() not in published(redactor, {"arguments": arguments})


def test_what_holds_no_secret_keeps_its_bytes(redactor):
    raw = b'{"type" :"exec","output":"100% done, caf\xc3\xa9 \\u00e9"}\n' * 3
    assert b"".join(redactor.jsonl(cut(raw, 11))) == raw


def test_the_line_a_killed_writer_left_is_dropped_and_a_damaged_one_refused(redactor):
    assert b"".join(redactor.jsonl([b'{"a":1}\n{"b":'])) == b'{"a":1}\n'
    with pytest.raises(Unredactable, match="line 2"):
        list(redactor.jsonl([b'{"a":1}\n{"b": ' + KEY.encode() + b"\n"]))


def test_values_too_short_for_a_key_are_left_alone():
    assert Redactor(["EMPTY", ""], Machine()).text("EMPTY mask") == "EMPTY mask"


@pytest.mark.parametrize("size", [1, 3, 64, 5000])
def test_a_file_published_as_it_is_is_screened_across_its_chunks(redactor, size):
    held = b"\0" * 4000 + KEY.encode() + b"\xff" * 4000
    assert redactor.screen(cut(held, size))
    assert not redactor.screen(cut(held.replace(KEY.encode(), b"no key"), size))


@settings(max_examples=60, deadline=None)
@given(
    before=st.text(max_size=40),
    after=st.text(max_size=40),
    key=st.text(string.ascii_letters + string.digits + "-_+/", min_size=12, max_size=60),
    nested=st.booleans(),
    size=st.integers(1, 90),
)
def test_any_key_in_any_text_goes_and_the_line_stays_an_object(before, after, key, nested, size):
    redactor = Redactor([key], Machine())
    code = before + key + after
    value = json.dumps({"code": code}) if nested else code
    raw = json.dumps({"type": "reply", "text": value}).encode() + b"\n"
    out = b"".join(redactor.jsonl(cut(raw, size)))
    parsed = json.loads(out)
    assert set(parsed) == {"type", "text"}
    shown = json.loads(parsed["text"])["code"] if nested else parsed["text"]
    assert no_piece_of(key, shown)
    assert no_piece_of(key, out.decode())


def test_more_keys_than_can_be_searched_for_are_refused_and_not_searched_for(redactor):
    def printed(number: int) -> list[bytes]:
        return [json.dumps({"output": f"hf_{'Ab3' * 10}{one:06d}"}).encode() + b"\n" for one in range(number)]

    assert len(redactor.having_seen(printed(MOST_LEARNT)).secrets) == MOST_LEARNT + 1
    with pytest.raises(Unredactable, match=f"more than {MOST_LEARNT} different"):
        redactor.having_seen(printed(MOST_LEARNT + 1))


def test_what_follows_a_block_without_an_end_is_not_taken_for_a_key_elsewhere(redactor):
    words = (
        "".join(f"epoch {number} of training goes well\n" for number in range(2000))
        + "all of it was saved in the end"
    )
    block = {"output": f"-----BEGIN PRIVATE KEY-----\n{words}"}
    lines = [
        json.dumps(line).encode() + b"\n" for line in (block, {"output": "all of it was saved in the end"})
    ]
    first, second = b"".join(redactor.having_seen(lines).jsonl(lines)).splitlines()
    assert json.loads(first)["output"].startswith("[redacted:")
    assert len(first) < 50
    assert second + b"\n" == lines[1]


@given(st.text("ab", max_size=40), st.text("ab", min_size=5, max_size=12), st.integers(5, 12))
def test_shared_runs_cover_every_piece_that_is_long_enough(text, needle, least):
    covered = {at for start, end in shared_runs(text, needle, least) for at in range(start, end)}
    pieces = {needle[at : at + least] for at in range(len(needle) - least + 1)}
    expected = {
        at + step
        for at in range(len(text) - least + 1)
        if text[at : at + least] in pieces
        for step in range(least)
    }
    assert covered == expected
