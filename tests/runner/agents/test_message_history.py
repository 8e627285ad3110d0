from evaluator.trace import Call
from runner.agents.history import History
from runner.agents.wire import Completion
from runner.session import ToolReply


def turn(history, number, size):
    made = Call(id=f"c{number}", name="execute_code", arguments="{}")
    history.add_turn(Completion("", (made,), "tool_calls", None), [ToolReply(made.id, "o" * size, False)])


def outputs(history):
    return [len(message["content"]) for message in history.messages if message["role"] == "tool"]


def test_nothing_is_left_out_while_there_is_room():
    history = History("s", "b", 100_000)
    for number in range(5):
        turn(history, number, 3000)
    assert history.fit() == ()


def test_oldest_first_and_the_newest_three_stay():
    history = History("s", "b", 5000)
    for number in range(8):
        turn(history, number, 3000)
    gone = history.fit()
    assert gone == ("c0", "c1", "c2", "c3", "c4")[: len(gone)]
    assert len(gone) >= 4
    assert outputs(history)[-3:] == [3000] * 3
    assert history.fit() == () or history.estimate() > 5000


def test_it_makes_room_in_one_go():
    """A prefix that changes every turn would cost the provider's cache every turn."""
    history = History("s", "b", 10_000)
    for number in range(12):
        turn(history, number, 3000)
    assert history.fit()
    assert history.estimate() <= 0.7 * 10_000 + 1
    turn(history, 12, 3000)
    assert history.fit() == ()


def test_short_outputs_stay():
    history = History("s", "b", 100)
    for number in range(8):
        turn(history, number, 300)
    assert history.fit() == ()
    assert history.shrink() == ()


def test_shrinking_always_gets_somewhere_or_says_that_it_cannot():
    history = History("s", "b", 1_000_000)
    for number in range(10):
        turn(history, number, 5000)
    gone = []
    while step := history.shrink():
        gone += step
    assert gone == [f"c{number}" for number in range(10)]


def test_what_the_provider_found_too_long_is_not_tried_again():
    history = History("s", "b", 1_000_000)
    for number in range(10):
        turn(history, number, 5000)
    refused = history.estimate()
    history.shrink()
    while history.estimate() < refused:
        turn(history, 99, 5000)
    assert history.fit()


def test_the_estimate_follows_the_provider():
    history = History("s", "b" * 7000, 1_000_000)
    history.learn(1000)
    assert history.estimate() == 1000
    history.learn(0)
    assert history.estimate() == 1000
