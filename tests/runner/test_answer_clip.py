import re

from hypothesis import given
from hypothesis import strategies as st

from runner.answers import clip

GAP = re.compile(r"\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n")


def test_short_output_is_whole():
    assert clip(b"abc", 3) == "abc"


@given(st.text("aé漢😀", min_size=30, max_size=200), st.integers(8, 40))
def test_cuts_fall_between_characters(text, limit):
    data = text.encode()
    clipped = clip(data, limit)
    if len(data) <= limit:
        assert clipped == text
        return
    head, dropped, tail = GAP.split(clipped)
    assert "\ufffd" not in clipped
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len((head + tail).encode()) + int(dropped) == len(data)
    assert len((head + tail).encode()) <= limit + 3


@given(st.binary(max_size=200), st.integers(8, 40))
def test_any_bytes_give_text(data, limit):
    clip(data, limit).encode()


def test_what_was_dropped_before_is_counted():
    assert "[... 190 bytes left out ...]" in clip(b"x" * 100, 10, dropped=100)
