"""Cuts upon three real brokers: each atomic write is seen whole or not at all, whatever happens meanwhile."""

import threading
import uuid

import pytest
from confluent_kafka import Producer

from sparklog.client.cluster import ClusterClient
from sparklog.client.offsets import earliest
from sparklog.client.producer import BatchProducer
from sparklog.client.reader import read_range
from sparklog.client.transactions import cutting
from sparklog.client.transactions.cutting import agreed_cut, made_cut, serves_cuts
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing import InProcessCluster
from tests.cluster.test_atomic_writes import TIMEOUT_MS, Writing
from tests.waiting import until

pytestmark = pytest.mark.integration

WRITES = 12
WAIT_S = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with InProcessCluster(tmp_path_factory.mktemp("cuts")) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with ClusterClient(cluster.bootstrap_servers, retry_timeout_ms=60_000) as client:
        yield client


@pytest.fixture
def places(cluster):
    topic = f"t-{uuid.uuid4()}"
    cluster.create_topic(topic, partitions=3)
    cluster.wait_for_isr(topic, 3)
    return [TopicPartition(topic, number) for number in range(3)]


@pytest.fixture
def writing(client, places):
    return Writing(client, places=places)


def write(writing, places, value):
    identity = writing.identity(version=int(value))
    winner = writing.finished(identity, value.encode(), places=places)
    writing.finished(identity, b"lost", places=places)
    writing.commit(identity, winner)


def shown(client, cut, place):
    start = earliest(client, [place])[place]
    part = cut.of(place)
    batches = read_range(client, place, start, part.high_watermark, cut=part, timeout_ms=TIMEOUT_MS)
    return [value.decode() for batch in batches for value in batch.column("value").to_pylist()]


def send(client, place, value):
    with BatchProducer(client, timeout_ms=TIMEOUT_MS) as producer:
        producer.send(place, build_records_batch([Record(value=value)], now_ms=1_000))


def test_a_cluster_that_never_had_a_transaction_is_not_made_to_have_a_topic_for_them():
    with InProcessCluster(brokers=1) as cluster, ClusterClient(cluster.bootstrap_servers) as client:
        assert serves_cuts(client) is False
        assert "__transaction_state" not in client.metadata(None).topics


def test_committed_writes_are_shown_and_their_losers_are_not(client, writing, places):
    write(writing, places, "1")
    assert serves_cuts(client)
    cut = made_cut(client, places)
    assert [shown(client, cut, place) for place in places] == [["1"]] * 3


def test_a_write_that_commits_between_the_rounds_is_hidden_everywhere(client, writing, places, monkeypatch):
    write(writing, places, "1")
    identity = writing.identity(version=2)
    winner = writing.finished(identity, b"2", places=places)
    ask = cutting.latest

    def asks_and_commits(*args):
        found = ask(*args)
        writing.commit(identity, winner)
        return found

    monkeypatch.setattr(cutting, "latest", asks_and_commits)
    cut = made_cut(client, places)
    monkeypatch.undo()
    assert [shown(client, cut, place) for place in places] == [["1"]] * 3
    later = made_cut(client, places)
    assert [shown(client, later, place) for place in places] == [["1", "2"]] * 3


def test_every_cut_has_all_of_a_write_or_nothing_while_writes_commit(client, cluster, writing, places):
    done = threading.Event()

    def writes():
        try:
            with ClusterClient(cluster.bootstrap_servers) as other:
                for number in range(WRITES):
                    write(Writing(other, writing.app_id, places), places, str(number))
        finally:
            done.set()

    thread = threading.Thread(target=writes)
    thread.start()
    while not done.is_set():
        cut = made_cut(client, places)
        seen = [shown(client, cut, place) for place in places]
        assert seen[0] == seen[1] == seen[2] == [str(number) for number in range(len(seen[0]))]
    thread.join()
    cut = made_cut(client, places)
    assert shown(client, cut, places[0]) == [str(number) for number in range(WRITES)]


def test_a_client_s_open_transaction_hides_what_is_behind_it_except_for_writes(client, writing, places):
    send(client, places[0], b"before")
    producer = Producer({"bootstrap.servers": client.bootstrap_servers, "transactional.id": "cut"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(places[0].topic, b"in it", partition=places[0].partition)
    producer.flush(WAIT_S)
    send(client, places[0], b"behind it")
    send(client, places[1], b"elsewhere")
    write(writing, places, "1")
    cut = made_cut(client, places)
    assert [shown(client, cut, place) for place in places] == [["before", "1"], ["elsewhere", "1"], ["1"]]
    producer.commit_transaction(WAIT_S)
    until(lambda: "in it" in shown(client, made_cut(client, places), places[0]))
    later = made_cut(client, places)
    assert shown(client, later, places[0]) == ["before", "in it", "behind it", "1"]
    assert shown(client, cut, places[0]) == ["before", "1"], "the cut does not change"


def test_all_who_agree_read_the_same_rows_whatever_is_written_meanwhile(client, writing, places):
    write(writing, places, "1")
    name = f"cut-{uuid.uuid4()}"
    first = agreed_cut(client, name, lambda: places)
    write(writing, places, "2")
    send(client, places[0], b"later")
    assert agreed_cut(client, name, lambda: pytest.fail("a cut was there")) == first
    assert [shown(client, first, place) for place in places] == [["1"]] * 3


def test_a_leader_that_cannot_answer_the_second_round_has_both_asked_again(client, places, monkeypatch):
    answers = iter([2**40, 2**40])
    ask = cutting.latest

    def asks(*args):
        wrong = next(answers, None)
        return {place: offset if wrong is None else wrong for place, offset in ask(*args).items()}

    monkeypatch.setattr(cutting, "latest", asks)
    assert made_cut(client, places).hidden_writes == frozenset()
    monkeypatch.setattr(cutting, "latest", lambda *args: dict.fromkeys(places, 2**40))
    with pytest.raises(KafkaError) as caught:
        made_cut(client, places)
    assert caught.value.code is ErrorCode.offset_out_of_range
