"""No text becomes a tag: whatever is not markup already is escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from space.markup import duration, el, join, number, percent, size, table
from space.textdiff import MAX_WORDS, show_diff, similarity, word_diff
from space.traceview import highlighted


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)

    def handle_data(self, data) -> None:
        self.text += data


def parsed(markup: str) -> _Tags:
    tags = _Tags()
    tags.feed(str.__str__(markup))  # a Markup would escape what the parser takes apart
    tags.close()
    return tags


TEXT = st.text(alphabet=st.sampled_from("<>&\"'abc /=\n"), max_size=60)


@given(TEXT, TEXT)
def test_text_and_attributes_stay_text(text, value) -> None:
    found = parsed(el("p", text, ["x", text], title=value))
    assert found.tags == ["p"]
    assert found.text == text + "x" + text


@given(TEXT, TEXT)
def test_marked_words_change_no_text(text, words) -> None:
    found = parsed(highlighted(text, words))
    assert set(found.tags) <= {"mark"}
    assert found.text == text


def test_markup_stays_and_attributes_are_named_as_html_names_them() -> None:
    made = el(
        "a", Markup("<b>x</b>"), None, href="?a=1&b=2", aria_label="y", hidden=True, open=False, class_="z"
    )
    assert made == '<a href="?a=1&amp;b=2" aria-label="y" hidden class="z"><b>x</b></a>'
    assert el("img", src="s") == '<img src="s">'
    assert join(["<", Markup("<i>")], ", ") == "&lt;, <i>"


def test_the_first_cell_of_a_row_is_its_head() -> None:
    assert '<th scope="row">&lt;a</th><td>b</td>' in table(["x", "y"], [["<a", "b"]], caption="c")


def test_columns_of_figures_stand_right() -> None:
    rows = [["a", 1, "82.0", "–", "$0.12", el("a", 3), "x1"], ["b", "–", "5 %", "–", "–", "–", "2"]]
    made = table(list("abcdefg"), rows, caption="c")
    heads = made[made.index("<thead>") : made.index("</thead>")]
    assert [kind == ' class="num"' for kind in re.findall(r'<th scope="col"( class="num")?>', heads)] == [
        False, True, True, False, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "expected"),
    [(percent(None), "–"), (percent(0.1234), "12.3"), (number(None), "–"), (duration(4.25), "4.2 s"),
     (duration(185), "3 min 05 s"), (duration(7620), "2 h 07 min"), (size(999), "999 bytes"),
     (size(2_500_000), "2.5 MB")],
)  # fmt: skip
def test_figures_as_people_read_them(shown, expected) -> None:
    assert shown == expected


WORDS = st.lists(st.sampled_from(["the", "heart", "is", "large.", "Large", "no", "<b>"]), max_size=15).map(
    " ".join
)


@given(WORDS, WORDS)
def test_a_diff_holds_both_texts_whole(left, right) -> None:
    pieces = word_diff(left, right)
    assert " ".join(piece.text for piece in pieces if piece.side != "left").split() == right.split()
    kept = " ".join(piece.text for piece in pieces if piece.side != "right").split()
    assert [word.casefold().strip(".") for word in kept] == [
        word.casefold().strip(".") for word in left.split()
    ]
    assert 0.0 <= similarity(left, right) <= 1.0
    assert set(parsed(show_diff(left, right)).tags) <= {"p", "del", "ins"}


def test_case_and_punctuation_do_not_make_words_differ() -> None:
    assert [piece.side for piece in word_diff("The heart is large.", "the heart, is Large")] == ["same"]
    assert similarity("", "") == 1.0
    assert similarity("a b", "c d") == 0.0


def test_an_endless_text_is_compared_in_part_and_says_so() -> None:
    long = "word " * (MAX_WORDS + 5)
    assert f"Only the first {MAX_WORDS} of {MAX_WORDS + 5} words" in show_diff(long, "word")
