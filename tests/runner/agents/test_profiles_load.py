import re

import pytest

from evaluator.trace import Usage
from runner.agents import agent_names, agent_rows, load_agent
from runner.agents.profiles import ChatProfile, Prices, load_profiles
from runner.errors import EnvironmentProblem, UsageProblem, exit_code_of
from runner.sandbox.base import SandboxUnavailable

PUBLISHED = ("claude-opus-4.6", "glm-5", "gemini-3.1-pro", "gpt-5.4", "minimax-m2.5", "qwen3.5")


def agents_file(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


LOCAL = """
agents:
  local:
    kind: chat
    model: m
    base_url: http://127.0.0.1:8000/v1
    context_tokens: 32000
"""


def test_the_published_agents_are_there_with_dated_prices():
    profiles = load_profiles()
    assert set(PUBLISHED) | {"baseline", "noop"} == set(profiles)
    for name in PUBLISHED:
        profile = profiles[name]
        assert isinstance(profile, ChatProfile)
        assert profile.decoding == {}
        assert profile.key_env
        assert profile.prices.source
        assert profile.prices.date.year == 2026
        assert profile.prices.output > profile.prices.input > 0


def test_rows_say_whether_a_key_is_set_and_never_the_key(monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-secret")
    rows = {row["agent"]: row for row in agent_rows()}
    assert rows["glm-5"]["key"] == "OPENROUTER_API_KEY (set)"
    assert "sk-secret" not in str(rows)
    assert rows["noop"]["model"] is None


def test_a_missing_key_is_one_line_and_exit_3(monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", " ")
    with pytest.raises(EnvironmentProblem, match="OPENROUTER_API_KEY") as caught:
        load_agent("glm-5")
    assert "\n" not in str(caught.value)
    assert exit_code_of(caught.value) == 3


def test_a_key_makes_the_agent(monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-secret")
    agent = load_agent("glm-5")
    assert (agent.name, agent.model) == ("glm-5", "z-ai/glm-5")
    assert "2026-05-28" in agent.price_source
    assert "sk-secret" not in repr(agent)


def test_an_unknown_agent_has_a_neighbour():
    with pytest.raises(UsageProblem, match=r"did you mean 'claude-opus-4\.6'") as caught:
        load_agent("claude-opus-4-6")
    assert exit_code_of(caught.value) == 2
    with pytest.raises(UsageProblem, match="known: baseline, "):
        load_agent("zzzzzzzz")


def test_no_sandbox_is_the_environments_fault():
    assert exit_code_of(SandboxUnavailable("install bubblewrap")) == 3


def test_faults_of_ours_keep_their_traceback():
    assert exit_code_of(KeyError("x")) is None


def test_a_file_of_ones_own_adds_agents(tmp_path):
    path = agents_file(tmp_path, LOCAL)
    assert "local" in agent_names(path)
    assert load_agent("local", path).model == "m"
    assert "local" not in agent_names()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("agents: [", "is not YAML"),
        ("- x", "is not a profile file: the file"),
        ("agents: {x: {kind: bot}}", "agents.x"),
        ("agents: {x: {kind: noop, more: 1}}", r"agents\.x\.noop\.more"),
        ("agents: {'../x': {kind: noop}}", "pattern"),
        ("agents: {noop: {kind: noop}}", "choose another"),
        (LOCAL + "    decoding: {model: other}", "cannot be set here"),
        (LOCAL + "    prices: {input: -1, output: 1, source: x, date: 2026-01-01}", "prices.input"),
        (LOCAL + "    prices: {input: .inf, output: 1, source: x, date: 2026-01-01}", "prices.input"),
        (LOCAL.replace("http://127.0.0.1:8000/v1", "ftp://x"), "base_url"),
        ("agents: {my_model: {kind: noop}}", "my_model"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, text, says):
    path = agents_file(tmp_path, text)
    with pytest.raises(UsageProblem) as caught:
        load_profiles(path)
    assert re.search(says, str(caught.value))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_absent_file_is_one_line(tmp_path):
    with pytest.raises(UsageProblem, match="No such file"):
        load_profiles(tmp_path / "none.yaml")


def test_costs():
    prices = Prices(input=2, output=10, source="x", date="2026-01-01")
    assert prices.cost(Usage(input=1_000_000, output=100_000, cached=400_000)) == pytest.approx(3.0)
    cheaper = prices.model_copy(update={"cached": 0.5})
    assert cheaper.cost(Usage(input=1_000_000, output=100_000, cached=400_000)) == pytest.approx(2.4)
    assert prices.cost(Usage(input=10, cached=50)) == pytest.approx(100e-6)
