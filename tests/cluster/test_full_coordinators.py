"""Coordinators that cannot write: the disk is full, or too few replicas are in sync.

Clients are told to try again, nothing is there that nobody wrote, and with space again all ends as it should.
"""

import errno
import os

import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable
from sparklog.client.transactions.transaction_admin import TransactionAdmin
from sparklog.client.transactions.writes.failed_writes import WriteFailed
from sparklog.client.transactions.writes.write_coordinator import WriteCoordinator
from sparklog.client.transactions.writes.write_driver import Commit, commit_write
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC as STATE
from sparklog.storage.disk import LocalFile
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY
from tests.broker.handlers.transactions.conftest import RETRIED, TransactionalProducer, Wire
from tests.cluster.test_atomic_writes import Writing
from tests.waiting import until

pytestmark = pytest.mark.integration

NONE = ErrorCode.none
PLACES = [TopicPartition("t", number) for number in range(3)]
SHORT_MS = 3_000


class FullDisks:
    """Brokers that have no space for ``__transaction_state``. A write that fails leaves half of its bytes."""

    def __init__(self, monkeypatch):
        self.brokers, self.refused = set(), []
        append = LocalFile.append

        def append_half(file, data):
            full = [one for one in self.brokers if f"/broker-{one}/" in file.path and STATE in file.path]
            if not full:
                append(file, data)
                return
            os.pwrite(file.fileno(), bytes(data)[: len(data) // 2], file.size())
            self.refused += full
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(LocalFile, "append", append_half)


class StateWire(Wire):
    """That asks no broker for the coordinator, because any broker may be away."""

    def coordinator(self, key, key_type=TRANSACTION_KEY):
        return self.cluster.wait_for_leader(STATE)


class Room(InProcessCluster):
    """Three brokers with two disks each: without the one that has the state of transactions they live on."""

    def __init__(self, root, full):
        super().__init__(root, log_dirs=2, settings={"transaction.state.log.num.partitions": "1"})
        self.full = full

    @property
    def coordinator(self):
        return self.wait_for_leader(STATE)

    def make_space(self):
        """As an operator does: the brokers whose directories failed are started again."""
        failed, self.full.brokers = set(self.full.refused), set()
        for broker_id in failed:
            self.shut_down(broker_id)
            self.revive(broker_id)
        self.wait_for_isr(STATE, 3)
        return failed


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    with Room(tmp_path, FullDisks(monkeypatch)) as cluster:
        cluster.create_topic("t", partitions=3)
        cluster.wait_for_isr("t", 3)
        TransactionAdmin(cluster.client).describe("nobody")  # which creates the topic
        cluster.wait_for_isr(STATE, 3)
        yield cluster


@pytest.fixture
def client(cluster):
    with ClusterClient(cluster.bootstrap_servers) as client:
        yield client


@pytest.fixture
def admin(client):
    return TransactionAdmin(client)


@pytest.fixture
def again(cluster):
    """Gives a producer new connections, because some brokers were started again."""
    wires = []

    def connect(producer):
        wires.append(StateWire(cluster))
        producer.wire = wires[-1]

    yield connect
    for wire in wires:
        wire.close()


@pytest.fixture
def producer(cluster, again):
    """With an open transaction in all partitions."""
    producer = TransactionalProducer(None, "pays")
    again(producer)
    assert producer.init() is NONE
    assert producer.add(*PLACES) is NONE
    for place in PLACES:
        assert producer.send(place, b"paid").error_code is NONE
    return producer


def state(admin):
    return admin.describe("pays").transaction_state


def all_is_there(cluster, *values):
    expected = sorted(values * len(PLACES))
    assert sorted(record.value for record in cluster.consume("t", at_least=len(expected))) == expected


@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_a_transaction_whose_coordinator_has_a_full_disk_ends_at_the_next_one(
    cluster, admin, producer, commits
):
    first = cluster.coordinator
    cluster.full.brokers.add(first)
    assert producer.end(commits=commits, patient=False) in RETRIED
    cluster.wait_for_leader(STATE, other_than=first)
    assert state(admin) == "Ongoing"
    assert producer.end(commits=commits) is NONE
    until(lambda: state(admin) == ("CompleteCommit" if commits else "CompleteAbort"))
    cluster.produce("t", ["end"], partition=0)
    found = [record.value for record in cluster.consume("t", at_least=1 + 3 * commits)]
    assert sorted(found) == [b"end", *[b"paid"] * (3 * commits)]
    assert cluster.full.refused == [first]


def test_while_no_disk_has_space_a_transaction_stays_as_it_is_and_then_ends(cluster, admin, producer, again):
    cluster.full.brokers.update((1, 2, 3))
    answers = [producer.end(commits=True, patient=False)]
    cluster.wait_for_leader(STATE, other_than=cluster.full.refused[0])

    def another_is_full():
        answers.append(producer.end(commits=True, patient=False))
        return len(set(cluster.full.refused)) >= 2

    until(another_is_full)  # first it has to load
    assert set(answers) <= RETRIED
    assert len(cluster.make_space()) >= 2
    again(producer)
    assert state(admin) == "Ongoing"
    assert producer.end(commits=True) is NONE
    all_is_there(cluster, b"paid")
    assert producer.add(*PLACES) is NONE
    assert producer.send(PLACES[0], b"more").error_code is NONE
    assert producer.end(commits=True) is NONE
    assert len(cluster.consume("t", at_least=4)) == 4


def test_with_too_few_replicas_in_sync_a_transaction_stays_as_it_is_and_then_ends(
    cluster, admin, producer, again
):
    coordinator = cluster.coordinator
    away = {1, 2, 3} - {coordinator}
    for broker_id in away:
        cluster.kill(broker_id)
    cluster.wait_for_isr(STATE, 1)
    assert producer.end(commits=True, patient=False) is ErrorCode.coordinator_not_available
    assert producer.end(commits=False, patient=False) is ErrorCode.coordinator_not_available
    assert state(admin) == "Ongoing"
    for broker_id in away:
        cluster.revive(broker_id)
    cluster.wait_for_isr(STATE, 3)
    again(producer)
    assert producer.end(commits=True) is NONE
    all_is_there(cluster, b"paid")


def test_a_transactional_id_that_could_not_be_written_is_not_there(cluster, admin, again):
    coordinator = cluster.coordinator
    for broker_id in {1, 2, 3} - {coordinator}:
        cluster.kill(broker_id)
    cluster.wait_for_isr(STATE, 1)
    producer = TransactionalProducer(None, "pays")
    again(producer)
    assert producer.init(patient=False) is ErrorCode.coordinator_not_available
    assert admin.describe("pays") is None


# Atomic writes


@pytest.fixture
def writing(client):
    return Writing(client, "pays")


def test_a_write_whose_coordinator_has_a_full_disk_is_committed_by_the_next_one(cluster, writing):
    identity = writing.identity()
    winner = writing.finished(identity, b"paid")
    writing.finished(identity, b"lost")
    cluster.full.brokers.add(cluster.coordinator)
    assert writing.commit(identity, winner) is Commit.now
    all_is_there(cluster, b"paid")
    assert len(cluster.full.refused) == 1


def test_while_no_disk_has_space_a_write_is_invisible_and_then_is_committed_once(cluster, writing):
    identity = writing.identity()
    winner = writing.finished(identity, b"paid")
    cluster.full.brokers.update((1, 2, 3))
    with pytest.raises(WriteFailed, match=r"nobody knows yet whether .* is committed"):
        commit_write(writing.client, identity, [winner], timeout_ms=SHORT_MS)
    assert cluster.consume("t") == []
    cluster.make_space()
    assert writing.commit(identity, winner) is Commit.now
    all_is_there(cluster, b"paid")
    assert writing.commit(identity, winner) is Commit.before


def test_with_too_few_replicas_in_sync_a_write_waits_for_them_and_is_committed_once(cluster, writing):
    identity = writing.identity()
    winner = writing.finished(identity, b"paid")
    away = {1, 2, 3} - {cluster.coordinator}
    for broker_id in away:
        cluster.kill(broker_id)
    cluster.wait_for_isr(STATE, 1)
    with pytest.raises(WriteFailed, match=r"nobody knows yet whether .* is committed"):
        commit_write(writing.client, identity, [winner], timeout_ms=SHORT_MS)
    for broker_id in away:
        cluster.revive(broker_id)
    cluster.wait_for_isr(STATE, 3)
    assert writing.commit(identity, winner) is Commit.now
    all_is_there(cluster, b"paid")


@pytest.mark.parametrize("is_lost", [False, True], ids=["it answers", "it is away by then"])
def test_a_committed_write_names_the_partitions_without_a_leader_when_time_is_up(
    cluster, client, monkeypatch, is_lost
):
    """Also if the coordinator that said so does not answer any more."""
    away = next(one for one in cluster.brokers if one != cluster.coordinator)
    cluster.create_topic("alone", partitions=12, replication_factor=1)
    led = {number for number in range(12) if cluster.wait_for_leader("alone", number) == away}
    places = [*PLACES, *(TopicPartition("alone", number) for number in range(12))]
    writing = Writing(client, "pays", places)
    identity = writing.identity()
    with writing.attempt(identity, b"paid", places=places) as member:
        member.finish()
    cluster.kill(away)
    cluster.wait_for_isr(STATE, 2)
    if is_lost:
        call = WriteCoordinator.call

        def call_once(self, request, deadline, is_over):
            is_over(call(self, request, client.deadline(5_000), lambda answer: bool(answer.missing)))
            raise ClusterUnavailable("no broker answers")

        monkeypatch.setattr(WriteCoordinator, "call", call_once)
    with pytest.raises(WriteFailed) as failed:
        commit_write(client, identity, [member.producer_id], timeout_ms=SHORT_MS)
    names = ", ".join(f"alone-{number}" for number in sorted(led))
    assert str(failed.value) == (
        f"version 1 of 'pays' is committed, but not visible everywhere yet after {SHORT_MS} ms: {names} do "
        "not show it, for want of a leader or of enough replicas, and show it by itself as soon as they are "
        "back. Nothing is lost; do not write it again"
    )
    monkeypatch.undo()
    cluster.revive(away)
    writing.commit(identity, member.producer_id)
    assert writing.visible(places[-1]) == [b"paid"]
