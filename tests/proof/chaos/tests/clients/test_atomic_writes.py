"""Drivers of atomic writes: what they tell the history, and which version they write after a crash."""

import json
import threading
import time
from contextlib import contextmanager
from itertools import count

import pytest

from chaos.access import Access
from chaos.clients import atomic_writes as module
from chaos.clients.atomic_writes import NOT_COMMITTED, Driver, next_version, write
from chaos.clients.client_parts import Settings
from histories import Limits, Writer, check, read_history
from sparklog.client.errors import ClusterUnavailable
from sparklog.client.isolation import IsolationLevel
from sparklog.client.offsets import earliest, latest
from sparklog.client.producing.produce_ledger import Delivered
from sparklog.client.reader import read_range
from sparklog.client.transactions.writes import write_driver as our_driver
from sparklog.client.transactions.writes.failed_writes import AlreadyCommitted, WriteFailed
from sparklog.client.transactions.writes.write_driver import Commit
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.model.ids import TopicPartition
from sparklog.model.write_outcomes import EndOutcome
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.writes.end_write import EndWriteResponse

TOPICS = {"ledger": 2, "copied": 2}


def _settings(folder, name="writes-1/0", seed=1, bootstrap=""):
    return Settings("writes", "sparklog", name, Access(bootstrap), TOPICS, str(folder), seed, rate=10_000.0)


class _Member:
    """A member that every coordinator takes."""

    numbers = count(1)

    def __init__(self, cluster, identity, attempt, *, timeout_ms):
        self.producer_id = next(self.numbers)
        self.said = []

    def open(self, places):
        self.said.append("open")

    def add(self, places):
        self.said.append("add")

    def finish(self):
        self.said.append("finish")

    def withdraw(self):
        self.said.append("withdraw")

    def close(self):
        self.said.append("close")


class _Producer:
    """All that it is given is in the log, at offsets that never come twice."""

    offsets = count(0, 1_000)
    failure = None

    def __init__(self, cluster, *, transaction, timeout_ms):
        self._sent = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def send(self, place, batch):
        self._sent.append(place)

    def flush(self):
        if self.failure is not None:
            raise self.failure
        return [Delivered(place, next(self.offsets), 1) for place in self._sent]


@pytest.fixture
def brokers(monkeypatch):
    """Brokers that take everything; a test sets what the driver is answered."""
    answers = {"commit": lambda: Commit.now, "abort": lambda: None}
    monkeypatch.setattr(module, "WriteMember", _Member)
    monkeypatch.setattr(module, "BatchProducer", _Producer)
    monkeypatch.setattr(module, "HELD", 0.0)
    monkeypatch.setattr(module, "ABORTS", 0.0)
    monkeypatch.setattr(module, "commit_write", lambda *_, **__: answers["commit"]())
    monkeypatch.setattr(module, "abort_write", lambda *_, **__: answers["abort"]())
    return answers


@contextmanager
def _driver(folder, **changed):
    settings = _settings(folder, **changed)
    with Writer(folder / f"{settings.name.replace('/', '-')}.jsonl") as writer:
        yield Driver(settings, writer, None)


def _lines(folder, what):
    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return [line for line in lines if line["f"] == what]


def _raises(error):
    def answer():
        raise error

    return answer


def test_a_committed_try_is_a_transaction_of_its_winners_rows(tmp_path, brokers):
    with _driver(tmp_path) as driver:
        assert all(driver.is_written(version) for version in range(20))
    finishes = _lines(tmp_path, "finish")
    asked = [line for line in finishes if line["type"] == "invoke"]
    assert [line["write"] for line in asked] == [f"writes-1/{version}" for version in range(20)]
    assert {line["type"] for line in finishes} == {"invoke", "ok"}
    sends = [line for line in _lines(tmp_path, "send") if line["type"] == "invoke"]
    won = {line["transaction"] for line in sends} & {line["transaction"] for line in asked}
    lost = {line["transaction"] for line in sends} - won
    assert len(won) == 20
    assert lost
    assert all(" lost by " in name for name in lost)


def test_what_was_committed_before_is_told_as_written_and_the_tries_own_end_as_unknown(tmp_path, brokers):
    brokers["commit"] = lambda: Commit.before
    with _driver(tmp_path) as driver:
        assert driver.is_written(3)
    assert [line["type"] for line in _lines(tmp_path, "finish")] == ["invoke", "info"]
    assert [line["write"] for line in _lines(tmp_path, "written")] == ["writes-1/3"]


def test_a_version_that_is_committed_already_is_told_as_written_without_an_end(
    tmp_path, brokers, monkeypatch
):
    monkeypatch.setattr(_Member, "open", lambda *_: _raises(AlreadyCommitted("version 3 is committed"))())
    with _driver(tmp_path) as driver:
        assert driver.is_written(3)
    assert _lines(tmp_path, "finish") == []
    assert len(_lines(tmp_path, "written")) == 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("nobody knows yet whether it is committed", "info"),
        ("it is committed, but not visible everywhere yet", "info"),
        ("it is not committed, and nothing of it is visible", "fail"),
    ],
)
def test_a_commit_that_fails_counts_as_its_error_says_and_the_try_is_aborted(
    tmp_path, brokers, error, outcome
):
    brokers["commit"] = _raises(WriteFailed(error))
    with _driver(tmp_path) as driver:
        assert not driver.is_written(3)
    commit, answer, abort, aborted = _lines(tmp_path, "finish")
    assert (commit["how"], answer["type"]) == ("commit", outcome)
    assert (abort["how"], aborted["type"]) == ("abort", "info")
    assert _lines(tmp_path, "written") == []


@pytest.mark.parametrize("answer", [lambda: None, _raises(ClusterUnavailable("no broker answers"))])
def test_an_abort_never_says_until_when_the_try_was_open(tmp_path, brokers, monkeypatch, answer):
    monkeypatch.setattr(module, "ABORTS", 1.0)
    brokers["abort"] = answer
    with _driver(tmp_path) as driver:
        assert not driver.is_written(3)
    assert [line["type"] for line in _lines(tmp_path, "finish")] == ["invoke", "info"]


def test_nobody_knows_of_rows_whose_producer_fails(tmp_path, brokers, monkeypatch):
    monkeypatch.setattr(_Producer, "failure", ClusterUnavailable("no broker answers"))
    with _driver(tmp_path) as driver:
        assert not driver.is_written(3)
    sends = _lines(tmp_path, "send")
    assert {line["type"] for line in sends} == {"invoke", "info"}


@pytest.mark.parametrize(
    "outcome",
    [EndOutcome.OLDER_VERSION, EndOutcome.NOT_OPEN, EndOutcome.LOST_MEMBER, EndOutcome.LOST_TOPIC],
)
def test_these_words_of_our_client_promise_that_nothing_is_visible(outcome):
    identity = WriteIdentity("app", 3, "run", is_plain=False)
    assert NOT_COMMITTED in our_driver._reason(identity, EndWriteResponse(outcome=outcome), 1_000)


def test_a_driver_begins_with_the_first_version_of_which_no_earlier_life_was_told(tmp_path):
    assert next_version(tmp_path, "writes-1/0") == 0
    with Writer(tmp_path / "writes-1-0.jsonl") as writer:
        for version in (0, 1, 2):
            writer.written("writes-1/0", f"writes-1/{version}")
        writer.finish("writes-1/0", "writes-1/0#3.9", commit=True, write="writes-1/3")
    with (tmp_path / "writes-1-1.jsonl").open("a") as cut_off:
        cut_off.write('{"t_ns":1,"process":"writes-1/1","type":"ok","f":"written","write":"writes-1/7')
    assert next_version(tmp_path, "writes-1/2") == 3


@pytest.mark.parametrize("outcome", [EndOutcome.BEING_ENDED, EndOutcome.NOT_VISIBLE_YET])
def test_where_the_write_may_be_committed_our_client_does_not_say_so(outcome, monkeypatch):
    monkeypatch.setattr(our_driver, "_end", lambda *_, **__: EndWriteResponse(outcome=outcome))
    with pytest.raises(WriteFailed) as failed:
        our_driver.commit_write(None, WriteIdentity("app", 3, "run", is_plain=False), [1], timeout_ms=1_000)
    assert NOT_COMMITTED not in str(failed.value)


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_versions_of_two_drivers_of_one_app_are_written_once_upon_real_brokers(tmp_path):
    """The first driver goes on beside the life that replaces it, as one does that only stalled."""
    with InProcessCluster(tmp_path / "cluster") as cluster:
        for topic, partitions in TOPICS.items():
            cluster.create_topic(topic, partitions=partitions)
            cluster.wait_for_isr(topic, 3)
        lives = [_settings(tmp_path, f"writes-1/{life}", life, cluster.bootstrap_servers) for life in (0, 1)]
        threads = [threading.Thread(target=_live, args=(settings, tmp_path)) for settings in lives]
        for thread in threads:
            thread.start()
        _until(lambda: len(_told(tmp_path)) >= 6)
        for settings, thread in zip(lives, threads, strict=True):
            settings.is_stopping = True
            thread.join(60)
            assert not thread.is_alive()
        with Writer(tmp_path / "reader.jsonl") as writer:
            _read_everything(cluster.client, writer)
    verdict = check(read_history(*tmp_path.glob("*.jsonl")), Limits(acks_min=1))
    judged = {one.rule.name for one in verdict.judgements if one.is_judged}
    assert verdict.findings == ()
    assert judged >= {"TransactionsAreAtomic", "VersionsAreWrittenOnce"}


def _until(condition, patience_s=60):
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _live(settings, folder):
    with Writer(folder / f"{settings.name.replace('/', '-')}.jsonl") as writer:
        write(settings, writer)


def _told(folder):
    """Versions of which a driver was told; a line may still be on its way."""
    text = "".join(file.read_text() for file in folder.glob("writes-*.jsonl"))
    return {line.rpartition('"write":')[2] for line in text.split("\n")[:-1] if '"f":"written"' in line}


def _end_of(client, places, isolation):
    return latest(client, places, IsolationLevel[isolation])


def _read_everything(client, writer):
    """What readers of committed records are given, as the final read of a run."""
    places = [TopicPartition(topic, number) for topic, many in TOPICS.items() for number in range(many)]
    _until(lambda: _end_of(client, places, "READ_COMMITTED") == _end_of(client, places, "READ_UNCOMMITTED"))
    starts, ends = earliest(client, places), _end_of(client, places, "READ_COMMITTED")
    for place in places:
        batches = read_range(
            client,
            place,
            starts[place],
            ends[place],
            timeout_ms=30_000,
            isolation_level=IsolationLevel.READ_COMMITTED,
        )
        records = [
            (offset, value.decode())
            for batch in batches
            for offset, value in zip(
                batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True
            )
        ]
        writer.final("reader", *place, start=starts[place], end=ends[place], records=records)
