"""Atomic writes that cannot be: options that contradict each other, and writes that are over."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sparklog.broker.handlers import api_versions
from sparklog.client.cluster import ClusterClient
from sparklog.client.transactions.writes.write_driver import commit_write
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.client.transactions.writes.write_member import WriteMember
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.bad_input.test_data_source import Source
from tests.waiting import until

pytestmark = pytest.mark.integration

Case = Callable[..., str]
Refused = Callable[[Callable[[], Any]], Exception]

EXACTLY_ONCE = {"delivery": "exactly-once"}
NAMED = {"txnAppId": "job", "txnVersion": "7"}
TIMEOUT_MS = 30_000
PLACE = TopicPartition("written", 0)
"""Markers of these writes are in no partition whose offsets others look at."""

OPTIONS = [
    ("`txnAppId` without `txnVersion`", {"txnAppId": "job"}, ""),
    ("`txnVersion` without `txnAppId`", {"txnVersion": "7"}, ""),
    ("a version that is no number", {"txnAppId": "job", "txnVersion": "v7"}, "count from 0"),
    ("a negative version", {"txnAppId": "job", "txnVersion": "-1"}, ""),
    ("an empty app id", {"txnAppId": "", "txnVersion": "7"}, ""),
    (
        "`txnAppId` at least once",
        {"delivery": "at-least-once", **NAMED},
        "[exactly once](spark.md#exactly-once)",
    ),
    ("a delivery that there is not", {"delivery": "at-most-once"}, ""),
    ("acks=1 beside exactly once", {**EXACTLY_ONCE, "kafka.acks": "1"}, ""),
    ("acks=1 beside `txnAppId`", {**NAMED, "kafka.acks": "1"}, ""),
    ("acks=0 beside exactly once", {**EXACTLY_ONCE, "kafka.acks": "0"}, ""),
    (
        "no idempotence beside exactly once",
        {**EXACTLY_ONCE, "kafka.enable.idempotence": "false"},
        "",
    ),
    (
        "`kafka.transactional.id`",
        {"kafka.transactional.id": "job"},
        "[exactly once](spark.md#exactly-once)",
    ),
]


@pytest.fixture
def source(brokers: InProcessCluster) -> Source:
    return Source(brokers.bootstrap_servers)


@pytest.mark.parametrize(("wrong", "options", "do"), OPTIONS, ids=[row[0] for row in OPTIONS])
def test_options_that_contradict_each_other_are_refused(
    wrong: str, options: dict[str, str], do: str, source: Source, case: Case, refused: Refused
) -> None:
    error = refused(lambda: source.write("value string", ("x",), topic="t", **options))
    case(wrong, "Spark write", error, do)


def test_brokers_that_do_not_know_atomic_writes_are_told_of_before_a_row_is_written(
    source: Source, brokers: InProcessCluster, case: Case, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers.create_topic("unknowing")
    options = {"topic": "unknowing", "kafka.client.id": "asks anew"}
    # Not longer than this: other clients of the process keep what they hear when they connect.
    with monkeypatch.context() as old_brokers:
        old_brokers.setattr(api_versions, "OWN_VERSIONS", {})
        error = refused(lambda: source.write("value string", ("x",), **options))
    case(
        "a write, as it is by default, to brokers that do not know atomic writes",
        "Spark write",
        error,
    )
    source.write("value string", ("x",), delivery="at-least-once", **options)
    assert [record.value for record in brokers.consume("unknowing", at_least=1)] == [b"x"]


Join = Callable[..., WriteMember]


@pytest.fixture(scope="module")
def _written(brokers: InProcessCluster) -> None:
    brokers.create_topic("written")


@pytest.fixture
def join(brokers: InProcessCluster, _written: None) -> Iterator[Join]:
    """A task attempt that joins a write of the app ``job``; its signs of life end with the test."""
    members: list[WriteMember] = []
    with ClusterClient(brokers.bootstrap_servers) as client:

        def joined(version: int, app: str, timeout_ms: int = 60_000) -> WriteMember:
            identity = WriteIdentity(app, version, "run", is_plain=False, timeout_ms=timeout_ms)
            members.append(WriteMember(client, identity, str(len(members)), timeout_ms=TIMEOUT_MS))
            members[-1].open([PLACE])
            return members[-1]

        yield joined
        for member in members:
            member.withdraw()
            member.close()


def test_a_write_was_silent_for_too_long(
    brokers: InProcessCluster, join: Join, case: Case, refused: Refused
) -> None:
    member = join(1, "app-slow", timeout_ms=200)
    member.finish()

    def has_ended() -> bool:
        hosts = (host for broker in brokers.brokers.values() for host in broker.body.coordinators.hosts())
        return any(host.shard.machine.counts().get("writes_timed_out") for host in hosts)

    until(has_ended)
    winners = [member.producer_id]
    case(
        "a commit after longer than `kafka.transaction.timeout.ms` without a task that lives",
        "Spark write",
        refused(lambda: commit_write(brokers.client, member.write, winners, timeout_ms=TIMEOUT_MS)),
        "or raise `kafka.transaction.timeout.ms` (300,000)",
    )


def test_a_time_out_is_longer_than_brokers_allow(join: Join, case: Case, refused: Refused) -> None:
    case(
        "`kafka.transaction.timeout.ms` above the brokers' limit",
        "Spark write",
        refused(lambda: join(1, "app-long", timeout_ms=1_000_000)),
        "only a write's silence is limited",
    )


def test_a_version_goes_back_while_a_later_one_is_written(join: Join, case: Case, refused: Refused) -> None:
    join(8, "app-job")
    case(
        "a version below the one that is being written",
        "Spark write",
        refused(lambda: join(7, "app-job")),
        "one app id for each job",
    )


def test_there_are_fewer_brokers_than_replicas_of_the_writes_state(case: Case, refused: Refused) -> None:
    settings = {"transaction.state.log.replication.factor": "3", "transaction.state.log.min.isr": "2"}
    with InProcessCluster(brokers=1, settings=settings) as one:
        one.create_topic("written")
        identity = WriteIdentity("app-job", 1, "run", is_plain=False)
        member = WriteMember(one.client, identity, "0", timeout_ms=3_000)
        case(
            "the first atomic write with fewer brokers than `transaction.state.log.replication.factor`",
            "Spark write",
            refused(lambda: member.open([PLACE])),
            "or lower it and `transaction.state.log.min.isr`",
            {one.bootstrap_servers: "127.0.0.1:9092"},
        )
