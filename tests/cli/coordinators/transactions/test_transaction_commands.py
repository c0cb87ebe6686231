"""``sparklog transactions`` against real brokers, as an operator types it."""

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.partition.append_results import AwaitsReplicas
from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.client import offsets
from sparklog.client.coordinator import Coordinator
from sparklog.client.isolation import IsolationLevel
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.model.write_ids import is_of_a_write
from sparklog.records.envelope import split
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY
from sparklog.wire.messages.writes.end_write import EndWriteRequest
from sparklog.wire.messages.writes.open_write import OpenWriteRequest, OpenWriteTopic
from tests.waiting import until

pytestmark = pytest.mark.integration

Run = Callable[..., Any]
LOST_PRODUCER = 4_000_000
_numbers = itertools.count()


@pytest.fixture(scope="module")
def transactions_cluster() -> Iterator[InProcessCluster]:
    """Two brokers for the tests of this file."""
    settings = {"transaction.state.log.num.partitions": "4", "transaction.state.log.min.isr": "1"}
    with InProcessCluster(brokers=2, settings=settings) as cluster:
        yield cluster


class World:
    """A topic with two partitions, a transactional id, and the command line."""

    def __init__(self, cluster: InProcessCluster, sparklog: Run) -> None:
        self.cluster = cluster
        self.topic = f"t{next(_numbers)}"
        self.id = f"id-{self.topic}"
        self._sparklog = sparklog
        cluster.create_topic(self.topic, partitions=2)

    def producer(self) -> confluent_kafka.Producer:
        """One that has initialised the transactional id."""
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "transactional.id": self.id,
                "log_level": 0,
            }
        )
        producer.init_transactions(30)
        return producer

    def open(self) -> confluent_kafka.Producer:
        """A producer with an open transaction, which has a record in partition 0."""
        producer = self.producer()
        producer.begin_transaction()
        producer.produce(self.topic, b"open", partition=0)
        assert producer.flush(30) == 0
        return producer

    def hang(
        self,
        producer_id: int = LOST_PRODUCER,
        *,
        epoch: int = 0,
        sequence: int = 0,
        timestamp_ms: int = 1_000,
    ) -> None:
        """A transactional batch in partition 1 that no coordinator knows of."""
        batch = build_records_batch(
            [Record(value=b"hanging")],
            now_ms=timestamp_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        leader = self.cluster.wait_for_leader(self.topic, 1)
        partition = self.cluster.brokers[leader].body.replicas.get(TopicPartition(self.topic, 1))
        records = bytearray(batch)
        request = AppendRequest(records, split(records), ACKS_ALL, AppendOrigin.COORDINATOR)
        result = partition.leader_append.append(request, 2**40)
        assert isinstance(result, AwaitsReplicas)
        until(lambda: partition.high_watermark >= result.appended.end_offset, str(partition))

    def end_for(self, level: IsolationLevel, partition: int) -> int:
        where = TopicPartition(self.topic, partition)
        return offsets.latest(self.cluster.client, [where], level)[where]

    def held_back(self, partition: int) -> int:
        """Offsets that readers of committed records cannot read yet."""
        return self.end_for(IsolationLevel.READ_UNCOMMITTED, partition) - self.end_for(
            IsolationLevel.READ_COMMITTED, partition
        )

    def run(self, *words: str) -> Any:
        server = ("--bootstrap-server", self.cluster.bootstrap_servers)
        return self._sparklog("transactions", *words, *server, connect=False)

    def listed(self, *words: str) -> list[Any]:
        ran = self.run(*words, "--json")
        assert ran.status == DONE, ran.err
        return json.loads(ran.out)["transactions"]


@pytest.fixture
def world(transactions_cluster: InProcessCluster, sparklog: Run) -> World:
    return World(transactions_cluster, sparklog)


def test_transactional_ids_are_listed_by_state_and_producer(world: World) -> None:
    world.open()
    (mine,) = [one for one in world.listed("list") if one["transactional_id"] == world.id]
    assert mine["transaction_state"] == "Ongoing"
    assert mine["coordinator"] in (1, 2)
    assert 0 <= mine.pop("age_ms") < 60_000
    assert mine["app_id"] is None
    (again,) = world.listed("list", "--producer-id", str(mine["producer_id"]))
    assert mine.items() <= again.items()
    either = world.listed("list", "--state", "ongoing", "--state", "Empty")
    assert world.id in [one["transactional_id"] for one in either]
    completed = world.listed("list", "--state", "CompleteCommit")
    assert world.id not in [one["transactional_id"] for one in completed]
    line = rf"^{world.id} +Kafka client +Ongoing +0:00:\d\d +{mine['producer_id']} +{mine['coordinator']}$"
    assert re.search(line, world.run("list").out, re.MULTILINE)
    assert world.run("list", "--producer-id", "999999999").out == "no transactional ids\n"
    wrong = world.run("list", "--state", "Ongoin")
    assert wrong.status == WRONG_USAGE
    assert "did you mean Ongoing?" in wrong.err


def test_a_transactional_id_is_described_with_its_open_transaction(world: World) -> None:
    producer = world.open()
    (described,) = world.listed("describe", world.id)
    assert (described["transaction_state"], described["topics"]) == (
        "Ongoing",
        [{"topic": world.topic, "partitions": [0]}],
    )
    assert abs(described["transaction_start_time_ms"] - time.time() * 1_000) < 60_000
    assert described["transaction_timeout_ms"] == 60_000
    text = world.run("describe", world.id).out
    assert re.match(rf"transactional id {world.id}: Ongoing, producer \d+ in epoch \d+, coordinator ", text)
    assert "open since 20" in text
    assert re.search(rf"^{world.topic} +0$", text, re.MULTILINE)
    producer.commit_transaction(30)
    until(
        lambda: (
            "CompleteCommit" in (text := world.run("describe", world.id).out)
            and "no open transaction; its transactions may take 60000 ms" in text
        ),
        world.run("describe", world.id).out,
    )
    (listed,) = [one for one in world.listed("list") if one["transactional_id"] == world.id]
    assert (listed["age_ms"], world.listed("describe", world.id)[0]["age_ms"]) == (None, None)


def test_an_unknown_transactional_id_is_named_with_a_similar_one(world: World) -> None:
    world.producer()
    ran = world.run("describe", world.id + "x")
    assert ran.status == FAILED
    assert ran.err == f"sparklog: there is no transactional id '{world.id}x'; did you mean {world.id}?\n"


def test_the_producers_of_a_partition_are_described(world: World) -> None:
    world.hang()
    ran = world.run("describe-producers", "--topic", world.topic, "--partition", "1")
    assert re.search(rf"^ *{LOST_PRODUCER} +0 +- +0 +1970-01-01T00:00:01\+00:00 +0$", ran.out, re.MULTILINE)
    none = world.run("describe-producers", "--topic", world.topic, "--partition", "0")
    assert none.out == f"no producers in {world.topic}-0\n"
    assert world.run("describe-producers", "--topic", world.topic, "--partition", "2").status == FAILED


def test_aborting_a_transactional_id_frees_readers_and_fences_its_producer(world: World) -> None:
    producer = world.open()
    assert world.held_back(0) == 1
    ran = world.run("abort", world.id)
    assert ran.out == f"aborted the transaction of '{world.id}', and fenced its producer\n"
    assert world.held_back(0) == 0
    with pytest.raises(confluent_kafka.KafkaException) as fenced:
        producer.commit_transaction(30)
    assert fenced.value.args[0].fatal() or fenced.value.args[0].txn_requires_abort()
    again = world.run("abort", world.id)
    assert again.status == FAILED
    assert again.err.splitlines()[-1].startswith(
        f"sparklog: transactional id '{world.id}' has no open transaction: it is "
    )


def test_aborting_an_unknown_transactional_id_does_not_make_it(world: World) -> None:
    ran = world.run("abort", world.id)
    assert ran.status == FAILED
    assert f"there is no transactional id '{world.id}'" in ran.err
    assert world.id not in [one["transactional_id"] for one in world.listed("list")]


def test_a_hanging_transaction_is_found_and_aborted(world: World) -> None:
    open_one = world.open()
    world.hang()
    assert world.held_back(1) == 1
    (found,) = world.listed("find-hanging", "--topic", world.topic)
    place = (found["topic"], found["partition"], found["producer_id"], found["current_txn_start_offset"])
    assert place == (world.topic, 1, LOST_PRODUCER, 0)
    for words in ((), ("--topic", world.topic, "--partition", "1"), ("--broker-id", "1")):
        assert found in world.listed("find-hanging", *words)
    assert world.listed("find-hanging", "--topic", world.topic, "--partition", "0") == []
    shown = world.run("find-hanging", "--topic", world.topic)
    assert re.search(rf"^{world.topic} +1 +0 +{LOST_PRODUCER} +0 +-", shown.out, re.MULTILINE)
    remedy = re.search(r"to end the first: sparklog transactions (.*) --bootstrap-server", shown.err)
    assert remedy is not None
    ran = world.run(*remedy[1].split())
    assert ran.out == f"aborted the transaction of producer {LOST_PRODUCER} in {world.topic}-1\n", ran.err
    assert world.held_back(1) == 0
    assert world.run("find-hanging", "--topic", world.topic).out == "no hanging transactions\n"
    open_one.commit_transaction(30)


def test_a_young_transaction_does_not_hang_yet(world: World) -> None:
    world.hang(timestamp_ms=int(time.time() * 1_000))
    assert world.listed("find-hanging", "--topic", world.topic) == []
    older = ("--max-transaction-timeout", "0")
    until(lambda: len(world.listed("find-hanging", "--topic", world.topic, *older)) == 1, "it is not found")


def test_a_transaction_that_its_coordinator_has_does_not_hang(world: World) -> None:
    """However old it is: the coordinator ends it. A marker from outside is refused."""
    producer = world.open()
    assert world.listed("find-hanging", "--topic", world.topic, "--max-transaction-timeout", "0") == []
    ran = world.run("abort", "--topic", world.topic, "--partition", "0", "--start-offset", "0")
    assert ran.status == FAILED
    assert f"coordinates it for '{world.id}' (Ongoing)" in ran.err
    assert f"sparklog transactions abort {world.id} --bootstrap-server" in ran.err
    producer.commit_transaction(30)


def test_a_batch_in_a_partition_that_the_transaction_does_not_have_hangs(world: World) -> None:
    """The coordinator has a transaction of that producer, but not with this partition."""
    producer = world.open()
    (mine,) = world.listed("describe", world.id)
    world.hang(mine["producer_id"], epoch=mine["producer_epoch"])
    assert len(world.listed("find-hanging", "--topic", world.topic)) == 1
    ran = world.run("abort", "--topic", world.topic, "--partition", "1", "--start-offset", "0")
    assert ran.status == DONE, ran.err
    producer.commit_transaction(30)
    assert world.held_back(1) == 0


def test_a_member_of_an_atomic_write_does_not_hang(world: World) -> None:
    app = f"app-{world.topic}"
    opening = OpenWriteRequest(
        app_id=app,
        app_version=1,
        run="r",
        attempt="a",
        timeout_ms=60_000,
        topics=[OpenWriteTopic(name=world.topic, partitions=[1])],
    )
    coordinator = Coordinator(world.cluster.client, app, TRANSACTION_KEY)
    member = coordinator.call(opening, lambda answer: answer.error_code)
    assert is_of_a_write(member.producer_id)
    world.hang(member.producer_id)
    assert world.listed("find-hanging", "--topic", world.topic) == []
    described = world.run("describe", app).out
    assert described.startswith(f"atomic write {app}: Ongoing, producer ")
    assert f"\nof the batch writes with txnAppId={world.topic}\nopen since 20" in described
    assert "; it is aborted after 60000 ms without a sign of life\n" in described
    (listed,) = [one for one in world.listed("list") if one["app_id"] == app]
    assert 0 <= listed["age_ms"] < 60_000
    assert 0 <= world.listed("describe", app)[0]["age_ms"] < 60_000
    assert re.search(rf"^{app} +txnAppId +Ongoing +0:00:\d\d +", world.run("list").out, re.MULTILINE)
    in_partition = world.run("abort", "--topic", world.topic, "--partition", "1", "--start-offset", "0")
    assert in_partition.status == FAILED
    assert f"it belongs to the atomic write '{app}' (Ongoing), which broker" in in_partition.err
    whole = world.run("abort", app)
    assert whole.status == FAILED
    assert f"'{app}' is an atomic write, and cannot be aborted from outside. Stop its driver" in whole.err
    ending = EndWriteRequest(app_id=app, app_version=1, run="r", is_commit=False)
    coordinator.call(ending, lambda answer: answer.error_code)
    until(lambda: world.held_back(1) == 0, "the write is not aborted")


def test_a_marker_without_checks_needs_the_newest_epoch(world: World) -> None:
    world.hang(epoch=5)
    words = ("abort", "--topic", world.topic, "--partition", "1", "--producer-id", str(LOST_PRODUCER))
    old = world.run(*words, "--producer-epoch", "4", "--coordinator-epoch", "-1")
    assert old.status == FAILED
    assert old.err.endswith("was not aborted: epoch 4 is older than the one that the partition knows\n")
    assert world.held_back(1) == 1
    aborted = world.run(*words, "--producer-epoch", "5", "--coordinator-epoch", "7", "--json")
    assert json.loads(aborted.out)["transactions"][0]["producer_id"] == LOST_PRODUCER
    assert world.held_back(1) == 0
    world.hang(epoch=5, sequence=1)
    fenced = world.run(*words, "--producer-epoch", "5", "--coordinator-epoch", "6")
    assert fenced.status == FAILED
    assert "coordinator epoch 6 is older than that of the producer's last marker" in fenced.err


def test_an_abort_where_nothing_is_open_names_what_is(world: World) -> None:
    words = ("abort", "--topic", world.topic, "--partition", "1", "--start-offset", "7")
    ran = world.run(*words)
    assert (ran.status, ran.err) == (
        FAILED,
        f"sparklog: no open transaction begins at offset 7 of {world.topic}-1, nor any other\n",
    )
    world.hang()
    assert world.run(*words).err.endswith("; transactions are open since 0\n")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("abort", "which transaction? give a transactional id, or --topic and --partition"),
        ("abort --topic t", "which transaction? give a transactional id, or --topic and --partition"),
        ("abort --topic t --partition 0", "which transaction in t-0? give --start-offset"),
        ("abort x --topic t", "'x' and --topic are both given"),
        ("abort --topic t --partition 0 --producer-id 1", "--producer-epoch is missing"),
        (
            "abort --topic t --partition 0 --start-offset 1 --producer-id 1",
            "--start-offset and --producer-id are both given",
        ),
        ("abort --topic t --partition 0 --producer-id 1 --producer-epoch 40000", "40000 is too large"),
        ("find-hanging --partition 0", "--partition 0 needs a --topic"),
        (
            "find-hanging --topic t --partition 0 --broker-id 1",
            "--partition and --broker-id 1 are both given",
        ),
        ("find-hanging --max-transaction-timeout -1", "'-1' is not a whole number from 0 on"),
        ("list --producer-id x", "'x' is not a whole number from 0 on"),
        ("describe", "required: ID"),
    ],
)
def test_wrong_arguments_are_refused_before_any_broker_is_asked(
    world: World, words: str, problem: str
) -> None:
    ran = world.run(*words.split())
    assert ran.status == WRONG_USAGE
    assert problem in ran.err


def test_an_unknown_broker_topic_or_partition_is_named(world: World) -> None:
    assert (
        "--broker-id 9: there is no such live broker; there are 1, 2"
        in world.run("find-hanging", "--broker-id", "9").err
    )
    assert "there is no topic 'nothing'" in world.run("find-hanging", "--topic", "nothing").err
    assert (
        "has partitions 0 to 1" in world.run("find-hanging", "--topic", world.topic, "--partition", "2").err
    )


@pytest.mark.parametrize("group", [(), ("--group",)])
def test_consume_shows_what_is_open_only_when_it_is_asked_to(
    world: World, sparklog: Run, group: tuple[str, ...]
) -> None:
    world.cluster.produce(world.topic, ["before"], partition=0)
    world.open()
    words = ["consume", "--topic", world.topic, "--from-beginning", "--timeout-ms", "1000"]
    server = ("--bootstrap-server", world.cluster.bootstrap_servers)

    def consumed(level: str) -> str:
        member = [*group, f"{level}-{world.topic}"] if group else []
        ran = sparklog(*words, "--isolation-level", level, *member, *server, connect=False)
        assert ran.status == DONE, ran.err
        return str(ran.out)

    assert consumed("read_committed") == "before\n"
    assert consumed("read_uncommitted") == "before\nopen\n"
    assert sparklog(*words, *server, connect=False).out == "before\n"
