"""Atomic writes upon three real brokers: members, winners, versions, and who is refused."""

import itertools
import socket
import time
import uuid
from contextlib import contextmanager
from dataclasses import replace

import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.coordinator import Coordinator
from sparklog.client.errors import ProduceFailed
from sparklog.client.isolation import IsolationLevel
from sparklog.client.offsets import latest
from sparklog.client.producer import BatchProducer, Transaction
from sparklog.client.reader import read_range
from sparklog.client.transactions.writes.failed_writes import AlreadyCommitted, WriteFailed
from sparklog.client.transactions.writes.write_driver import Commit, abort_write, commit_write
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.client.transactions.writes.write_member import WriteMember
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC as TOPIC
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY
from tests.waiting import until

pytestmark = pytest.mark.integration

TIMEOUT_MS = 30_000
PLACES = [TopicPartition("t", number) for number in range(3)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with InProcessCluster(tmp_path_factory.mktemp("writes")) as cluster:
        cluster.create_topic("t", partitions=3)
        cluster.wait_for_isr("t", 3)
        yield cluster


@pytest.fixture
def client(cluster):
    with ClusterClient(cluster.bootstrap_servers) as client:
        yield client


class Writing:
    """Members of one app, which write values and finish."""

    attempts = itertools.count()

    def __init__(self, client, app_id=None, places=PLACES):
        self.client = client
        self.app_id = app_id or f"app-{uuid.uuid4()}"
        self.start = latest(client, places, IsolationLevel.READ_UNCOMMITTED)

    def identity(self, version=1, run="run", timeout_ms=60_000):
        return WriteIdentity(self.app_id, version, run, is_plain=False, timeout_ms=timeout_ms)

    def member(self, identity, *, sign_of_life_s=5.0):
        return WriteMember(
            self.client,
            identity,
            str(next(self.attempts)),
            timeout_ms=TIMEOUT_MS,
            sign_of_life_s=sign_of_life_s,
        )

    def write(self, member, *values, places=PLACES):
        """Each value into each place, acknowledged."""
        transaction = Transaction(self.app_id, member.producer_id, 0)
        with BatchProducer(self.client, transaction=transaction, timeout_ms=TIMEOUT_MS) as producer:
            for place in places:
                records = [Record(value=value) for value in values]
                producer.send(place, build_records_batch(records, now_ms=1_000))

    @contextmanager
    def attempt(self, identity, *values, places=PLACES):
        """A member that has written; its thread ends with the block."""
        member = self.member(identity)
        member.open(places)
        try:
            self.write(member, *values, places=places)
            yield member
        finally:
            member.close()

    def finished(self, identity, *values, places=PLACES):
        """A member that has written and finished: its producer id."""
        with self.attempt(identity, *values, places=places) as member:
            member.finish()
            return member.producer_id

    def commit(self, identity, *winners):
        return commit_write(self.client, identity, winners, timeout_ms=TIMEOUT_MS)

    def visible(self, place=PLACES[0]):
        """What read-committed readers get in a partition since the beginning of this writing."""
        end = latest(self.client, [place], IsolationLevel.READ_COMMITTED)[place]
        batches = read_range(
            self.client,
            place,
            self.start[place],
            end,
            timeout_ms=TIMEOUT_MS,
            isolation_level=IsolationLevel.READ_COMMITTED,
        )
        return [value for batch in batches for value in batch.column("value").to_pylist()]

    def wait_until_nothing_is_open(self):
        """Until readers are held back nowhere."""
        deadline = time.monotonic() + TIMEOUT_MS / 1_000
        while latest(self.client, PLACES, IsolationLevel.READ_COMMITTED) != latest(
            self.client, PLACES, IsolationLevel.READ_UNCOMMITTED
        ):
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def writing(client):
    writing = Writing(client)
    yield writing
    writing.wait_until_nothing_is_open()


def test_winners_are_visible_together_once_the_commit_is_answered_and_losers_never(writing):
    identity = writing.identity()
    winner = writing.finished(identity, b"won")
    other = writing.finished(identity, b"won too", places=PLACES[:1])
    writing.finished(identity, b"lost")
    assert [writing.visible(place) for place in PLACES] == [[], [], []]
    assert writing.commit(identity, winner, other) is Commit.now
    assert [sorted(writing.visible(place)) for place in PLACES] == [[b"won", b"won too"], [b"won"], [b"won"]]


def test_many_members_end_together_and_each_as_the_commit_says(writing):
    identity = writing.identity()
    members = [writing.finished(identity, b"%d" % number, places=PLACES[:2]) for number in range(24)]
    assert writing.commit(identity, *members[::2]) is Commit.now
    won = [b"%d" % number for number in range(0, 24, 2)]
    assert [writing.visible(place) for place in PLACES] == [won, won, []]
    writing.wait_until_nothing_is_open()
    ends = latest(writing.client, PLACES, IsolationLevel.READ_COMMITTED)
    assert [ends[place] - writing.start[place] for place in PLACES] == [48, 48, 0]


def test_a_version_is_written_once(writing):
    identity = writing.identity(version=7)
    assert writing.commit(identity, writing.finished(identity, b"once")) is Commit.now
    assert writing.commit(identity, 1) is Commit.before
    for version in (7, 6):
        with pytest.raises(AlreadyCommitted, match="version 7 is committed"):
            writing.member(writing.identity(version)).open(PLACES)
    later = writing.identity(version=8)
    assert writing.commit(later, writing.finished(later, b"later")) is Commit.now
    assert writing.visible() == [b"once", b"later"]


def test_an_abort_hides_the_rows_of_its_run_and_no_others(writing):
    old, new = writing.identity(run="old"), writing.identity(run="new")
    writing.finished(old, b"old")
    winner = writing.finished(new, b"new")
    abort_write(writing.client, old, timeout_ms=TIMEOUT_MS)
    assert writing.commit(new, winner) is Commit.now
    assert writing.visible() == [b"new"]


def test_a_member_that_withdraws_holds_nobody_back(writing):
    identity = writing.identity()
    with writing.attempt(identity, b"withdrawn") as member:
        member.withdraw()
    writing.wait_until_nothing_is_open()
    assert writing.visible() == []
    with pytest.raises(WriteFailed, match=r"producer id \d+\) was taken for dead"):
        writing.commit(identity, member.producer_id)


def test_a_member_of_an_ended_write_cannot_write_any_more(writing):
    identity = writing.identity()
    with writing.attempt(identity, b"before") as zombie:
        abort_write(writing.client, identity, timeout_ms=TIMEOUT_MS)
        writing.wait_until_nothing_is_open()
        with pytest.raises(ProduceFailed, match=r"INVALID_TXN_STATE|INVALID_PRODUCER_ID_MAPPING"):
            writing.write(zombie, b"after")
        with pytest.raises(WriteFailed, match="taken for dead, or its write has ended"):
            zombie.finish()


def test_partitions_that_are_not_registered_are_refused(writing):
    identity = writing.identity()
    with writing.attempt(identity, b"here", places=PLACES[:1]) as member:
        with pytest.raises(ProduceFailed, match="INVALID_TXN_STATE"):
            writing.write(member, b"there", places=PLACES[1:2])
        member.add(PLACES[:2])
        writing.write(member, b"there", places=PLACES[1:2])
        member.finish()
    writing.commit(identity, member.producer_id)
    assert [writing.visible(place) for place in PLACES] == [[b"here"], [b"there"], []]


def test_signs_of_life_keep_a_member_and_its_write_open(writing):
    identity = writing.identity(timeout_ms=1_000)
    member = writing.member(identity, sign_of_life_s=0.1)
    member.open(PLACES)
    try:
        writing.write(member, b"slow")
        time.sleep(2)  # twice as long as the write lasts without a sign of life
        member.finish()
    finally:
        member.close()
    assert writing.commit(identity, member.producer_id) is Commit.now
    assert writing.visible() == [b"slow"]


def test_a_write_that_timed_out_is_aborted_and_its_commit_says_so(writing):
    identity = writing.identity(timeout_ms=300)
    winner = writing.finished(identity, b"too late")
    writing.wait_until_nothing_is_open()
    with pytest.raises(WriteFailed, match=r"after 300 ms without a sign of life .*Run it again"):
        writing.commit(identity, winner)
    assert writing.visible() == []


def test_a_time_out_that_is_longer_than_brokers_allow_is_refused(writing):
    with pytest.raises(WriteFailed, match=r"kafka\.transaction\.timeout\.ms=1000000 is more than"):
        writing.member(writing.identity(timeout_ms=1_000_000)).open(PLACES)


def test_leaders_forget_members_with_their_markers(writing, cluster):
    identity = writing.identity()
    writing.commit(identity, writing.finished(identity, b"row"))
    for broker in cluster.brokers.values():
        for place in PLACES:
            partition = broker.body.replicas.get(place)
            deadline = time.monotonic() + 10
            while partition.inspect(lambda log, _: dict(log.producers.producers)):
                assert time.monotonic() < deadline
                time.sleep(0.02)


def lost_topics(cluster, app_id):
    """What the coordinator of an app id knows to be deleted."""
    hosts = (host for broker in cluster.brokers.values() for host in broker.body.coordinators.hosts())
    shards = [host.shard.machine.writes for host in hosts if host.topic_partition.topic == TOPIC]
    return {lost.name for shard in shards if app_id in shard.apps for lost in shard.apps[app_id].lost_topics}


def test_a_topic_that_is_deleted_before_the_commit_fails_it_by_name(writing, cluster):
    cluster.create_topic("doomed")
    place = TopicPartition("doomed", 0)
    identity = writing.identity()
    winner = writing.finished(identity, b"row", places=[*PLACES, place])
    cluster.admin.delete_topics(["doomed"])
    until(lambda: "doomed" in lost_topics(cluster, writing.app_id))
    with pytest.raises(WriteFailed, match="topic 'doomed' was deleted while it was written to"):
        writing.commit(identity, winner)
    writing.wait_until_nothing_is_open()
    assert writing.visible() == []


def test_a_topic_that_is_made_again_takes_nothing_of_a_write_to_the_old_one(writing, cluster):
    """It would wait for ever for the end of that write, whose markers are for the old topic."""
    cluster.create_topic("again")
    place = TopicPartition("again", 0)
    identity = writing.identity()
    with writing.attempt(identity, b"old", places=[place]) as member:
        cluster.admin.delete_topics(["again"])
        until(lambda: "again" in lost_topics(cluster, writing.app_id))
        cluster.create_topic("again")
        cluster.wait_for_isr("again", 3)
        with pytest.raises(ProduceFailed, match="INVALID_TXN_STATE"):
            writing.write(member, b"new", places=[place])
        member.finish()
        with pytest.raises(WriteFailed, match="topic 'again' was deleted while it was written to"):
            writing.commit(identity, member.producer_id)


def test_a_write_outlives_its_coordinator(writing, cluster):
    identity = writing.identity()
    with writing.attempt(identity, b"kept") as member:
        coordinator = Coordinator(writing.client, writing.app_id, TRANSACTION_KEY).find().id
        cluster.kill(coordinator)
        member.finish()
        assert writing.commit(identity, member.producer_id) is Commit.now
    cluster.revive(coordinator)
    assert [writing.visible(place) for place in PLACES] == [[b"kept"]] * 3


@pytest.fixture
def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return port


@pytest.fixture
def searches(monkeypatch):
    """The keys whose coordinator was asked for."""
    keys = []
    find = Coordinator.find

    def counted(self, *args):
        keys.append(self.key)
        return find(self, *args)

    monkeypatch.setattr(Coordinator, "find", counted)
    return keys


def test_tasks_and_drivers_of_one_process_ask_once_for_the_coordinator_of_their_write(
    cluster, writing, searches
):
    first = writing.identity(version=1)
    assert writing.commit(first, writing.finished(first, b"paid")) is Commit.now
    searches.clear()
    with ClusterClient(cluster.bootstrap_servers) as client:
        another = Writing(client, writing.app_id)
        second = another.identity(version=2)
        winners = [another.finished(second, b"paid") for _ in range(3)]
        assert another.commit(second, *winners) is Commit.now
    assert searches == [writing.app_id]


def test_a_coordinator_that_is_not_where_it_was_is_asked_for_again(cluster, writing, searches, closed_port):
    """It has moved, or its broker is gone."""
    at_home = Coordinator(writing.client, writing.app_id, TRANSACTION_KEY).find()
    moved = next(broker.node for broker in cluster.brokers.values() if broker.node.id != at_home.id)
    for wrong in (moved, replace(moved, port=closed_port)):
        searches.clear()
        writing.client.coordinators.found(TRANSACTION_KEY, writing.app_id, wrong)
        with writing.attempt(writing.identity(), b"paid") as member:
            member.withdraw()
        assert searches == [writing.app_id]
