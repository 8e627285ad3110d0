"""Thirty kills over forty cells: every planned cell has one counted record, nothing leaks, and the bill is right."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from sweep_parts import usd

from hf_datasets.failures import counts
from hf_datasets.records import load_record
from runner.sandbox import choose_backend
from runner.sweep.ledger import iter_ledger, read_book
from runner.sweep.requests import read_requests

LEFT_WITHIN = 40.0


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def processes(word):
    """Pids of the processes, other than this one, whose command holds the word."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and word in command_of(pid)]


def children_of(pid):
    """Pids of the processes that the process started and that live."""
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Chaos:
    """Drives a sweep to its end while killing the driver, its workers and their sandboxes."""

    def __init__(self, sweep, seed, slots=2, engine=None):
        self.sweep, self.slots, self.engine = sweep, slots, engine
        self.dice = random.Random(seed)
        self.driver = None
        self.sandboxes = engine.containers if engine else self._bubblewraps

    def run(self, kills, within):
        """``kills`` says how many of what; in any order, each while there is one to kill."""
        give_up = time.monotonic() + within
        order = [what for what, number in kills.items() for _ in range(number)]
        self.dice.shuffle(order)
        for what in order:
            time.sleep(self.dice.uniform(0.0, 0.6))
            while not self._kill(what):
                assert time.monotonic() < give_up, what
                assert self._alive() is None, f"the sweep was over before all were killed: {what}"
                time.sleep(0.02)
        while self._alive() is None:
            assert time.monotonic() < give_up
            time.sleep(0.1)

    def _alive(self):
        """Start the driver where none runs; 0 once one has come to the sweep's end."""
        if self.driver is not None and (code := self.driver.poll()) is not None:
            words = self.driver.stderr.read().decode()
            self.driver.stderr.close()
            assert code in (0, -signal.SIGKILL), (code, words)
            self.driver = None
            if code == 0:
                return 0
        if self.driver is None:
            self.driver = self.sweep.start("--slots", self.slots)
        return None

    def _kill(self, what):
        if self.driver is None or self.driver.poll() is not None:
            return False
        workers = [one for one in children_of(self.driver.pid) if "runner.sweep.worker" in command_of(one)]
        if what == "engine":
            return self._is_at_work(workers) and self.engine.restart(away=2.0)
        if what == "driver":
            return self._is_at_work(workers) and kill(self.driver.pid)
        targets = workers if what == "worker" else self.sandboxes(workers)
        return bool(targets) and kill(self.dice.choice(targets))

    def _is_at_work(self, workers):
        """A driver that was killed before it gave out anything proves nothing."""
        try:
            live = json.loads(self.sweep.folder.live.read_text())
        except (OSError, ValueError):
            return False
        return live["pid"] == self.driver.pid and bool(live["running"]) and bool(self.sandboxes(workers))

    @staticmethod
    def _bubblewraps(workers):
        return [one for pid in workers for one in children_of(pid) if "bwrap" in command_of(one)]


def assert_whole(sweep, model, planned):
    """The end state, whatever happened on the way there."""
    book = read_book(sweep.folder.ledger)
    assert len(book.cells) == planned
    assert all(state.open is None and state.done is not None for state in book.cells.values())
    records = {path.parent: load_record(path) for path in sweep.records() if ".attempt" not in str(path)}
    assert len(records) == planned
    assert all(counts(record) for record in records.values())
    assert not [path for path in sweep.folder.runs.glob("*/*/*/*.attempt*/record.json")]
    # every attempt that got as far as a folder is there, numbered without a gap
    for folder, record in records.items():
        aside = sorted(
            int(str(path).rpartition(".attempt")[2]) for path in folder.parent.glob(f"{folder.name}.a*")
        )
        assert aside == list(range(1, record.attempt))
    lines = list(iter_ledger(sweep.folder.ledger))
    started = [(line["key"], line["attempt"]) for line in lines if line["event"] == "started"]
    ended = [(line["key"], line["attempt"]) for line in lines if line["event"] == "ended"]
    assert sorted(started) == sorted(ended) == sorted(set(started))
    assert_bill(sweep, model, book)


def assert_bill(sweep, model, book):
    """What the sweep counts, and requests it never saw answered, make up what the server answered, to the token."""
    requests, closed = set(), set()
    for place in sweep.folder.runs.glob("*/*/*/*"):
        for line in read_requests(place):
            (closed if "status" in line else requests).add(line["id"])
    assert set(model.answered) <= requests
    unseen = [model.answered[one] for one in requests - closed if one in model.answered]
    assert book.spend.open == len(requests - closed)
    assert book.spend.requests == len(requests)
    assert book.spend.tokens_in + sum(one["prompt_tokens"] for one in unseen) == sum(
        one["prompt_tokens"] for one in model.answered.values()
    )
    assert book.spend.tokens_out + sum(one["completion_tokens"] for one in unseen) == sum(
        one["completion_tokens"] for one in model.answered.values()
    )
    assert book.spend.usd + sum(map(usd, unseen)) == pytest.approx(sum(map(usd, model.answered.values())))


def assert_nothing_left(sweep):
    give_up = time.monotonic() + LEFT_WITHIN
    while left := processes(str(sweep.folder.root)):
        assert time.monotonic() < give_up, left
        time.sleep(0.2)
    hidden = [path for path in sweep.folder.root.rglob(".*") if "workspace" not in path.parts]
    assert not hidden


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_thirty_kills_over_forty_cells(sweep, model, usable):
    usable("bubblewrap")
    served = model()
    sweep.write(served, tiers=["lite", "standard"], repeats=20, retries=30).locked()
    Chaos(sweep, seed=11).run({"driver": 5, "worker": 11, "sandbox": 14}, within=280)
    assert_whole(sweep, served, planned=40)
    assert_nothing_left(sweep)


class PrivateEngine:
    """A Docker engine of our own beside the machine's: other data, other socket, no network."""

    def __init__(self, place):
        self.place = place
        self.url = f"unix://{place}/docker.sock"
        self.process = None

    def start(self):
        options = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        paths = [f"--{name}={self.place}/{folder}" for name, folder in options.items()]
        (self.place / "pid").unlink(missing_ok=True)
        plain = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"]
        # In a network of its own: an engine without a bridge takes away the one that it finds, which is the machine's.
        command = ["unshare", "--net", "dockerd", "-H", self.url, *paths, *plain]
        with (self.place / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        give_up = time.monotonic() + 60
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > give_up:
                return False
            time.sleep(0.2)
        return True

    def _answers(self):
        try:
            return bool(self._api().ping())
        except Exception:
            return False

    def _api(self):
        import docker

        return docker.APIClient(self.url, timeout=10)

    def containers(self, _workers=()):
        """Pids of the first processes of the running containers."""
        try:
            api = self._api()
            return [api.inspect_container(one["Id"])["State"]["Pid"] for one in api.containers()]
        except Exception:
            return []

    def everything(self):
        return self._api().containers(all=True)

    def restart(self, away):
        self.process.kill()
        self.process.wait()
        time.sleep(away)
        assert self.start(), (self.place / "log").read_text()[-2000:]
        return True

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in processes(str(self.place)):
            kill(pid)
        subprocess.run(
            ["sh", "-c", f"grep -o '{self.place}[^ ]*' /proc/mounts | sort -r | xargs -r umount -l"]
        )
        shutil.rmtree(self.place, ignore_errors=True)


@pytest.fixture
def engine(usable):
    """A private engine that holds the evaluator's image, which is Python enough for an agent too."""
    usable("docker")
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("needs root and dockerd")
    image = choose_backend("docker").environment_digest("evaluator")
    made = PrivateEngine(Path(tempfile.mkdtemp(prefix="amb-engine-")))
    if not made.start():
        words = (made.place / "log").read_text()[-500:]
        made.stop()
        pytest.skip(f"no second engine can run here: {words}")
    try:
        pipe = f"docker save {image} | docker -H {made.url} load -q"
        subprocess.run(["sh", "-c", pipe], check=True, capture_output=True, timeout=300)
        made.image = image
        yield made
    finally:
        made.stop()


@pytest.mark.slow
@pytest.mark.docker
def test_containers_and_the_engine_itself_are_killed(sweep, model, engine):
    served = model(code="import time; time.sleep(0.5)")
    sweep.environment |= {
        "DOCKER_HOST": engine.url,
        "AUTOMEDBENCH_AGENT_IMAGE": engine.image,
        "AUTOMEDBENCH_EVALUATOR_IMAGE": engine.image,
    }
    sweep.write(served, sandbox="docker", repeats=6, retries=10).locked()
    kills = {"engine": 1, "sandbox": 3, "worker": 1, "driver": 1}
    Chaos(sweep, seed=5, engine=engine).run(kills, within=240)
    assert_whole(sweep, served, planned=6)
    assert_nothing_left(sweep)
    causes = {line["cause"] for line in iter_ledger(sweep.folder.ledger) if line["event"] == "ended"}
    assert causes <= {
        "submitted",
        "infra_error",
        "engine_gone",
        "worker_lost",
        "interrupted",
        "evaluator_failed",
    }
    give_up = time.monotonic() + LEFT_WITHIN
    while left := engine.everything():
        assert time.monotonic() < give_up, left
        time.sleep(0.5)
