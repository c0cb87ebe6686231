"""Batches arrive once and in order, whatever happens on the way; what cannot arrive is reported."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClientClosed, ProduceFailed
from sparklog.client.fetched import Fetched
from sparklog.client.producer import BatchProducer
from sparklog.client.records_producer import Producer
from sparklog.model.errors import ConfigError, ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.records.envelope import parse_header
from sparklog.records.payload_kinds import PayloadKind
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.data.produce import ProduceRequest

Start = Callable[..., Any]
Connect = Callable[..., ClusterClient]
BatchOf = Callable[..., bytes]
TP = TopicPartition("t", 0)


def values_in(fake: Any, topic: str = "t", partition: int = 0) -> list[str]:
    values: list[str] = []
    for batch in fake.log(topic, partition).batches:
        fetched = Fetched(TopicPartition(topic, partition), 0, batch, [(0, parse_header(batch))])
        for rows in fetched.rows():
            values.extend(value.decode() for value in rows.column("value").to_pylist())
    return values


def test_batches_are_written_in_order_and_their_offsets_told(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    with BatchProducer(client_of(fake)) as producer:
        for number in range(20):
            producer.send(TP, batch_of(f"{number}a", f"{number}b"))
        delivered = producer.flush()
    assert [(result.base_offset, result.record_count) for result in delivered] == [
        (2 * i, 2) for i in range(20)
    ]
    assert values_in(fake) == [f"{number}{half}" for number in range(20) for half in "ab"]


def test_arrow_batches_are_declared_and_taken(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    with BatchProducer(client_of(fake)) as producer:
        producer.send(TP, batch_of("x", "y", kind=PayloadKind.ARROW))
    assert parse_header(fake.log("t").batches[0]).is_arrow
    assert values_in(fake) == ["x", "y"]


def test_sequences_count_records_and_begin_at_zero_in_each_partition(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t", 2)
    with BatchProducer(client_of(fake)) as producer:
        for _ in range(2):
            for partition in (0, 1):
                producer.send(TopicPartition("t", partition), batch_of("a", "b", "c"))
    for partition in (0, 1):
        headers = [parse_header(batch) for batch in fake.log("t", partition).batches]
        assert [header.base_sequence for header in headers] == [0, 3]
    assert fake.count(InitProducerIdRequest) == 1


@pytest.mark.parametrize("fault", ["cut_before", "cut_after"])
def test_a_lost_connection_neither_loses_nor_repeats_a_batch(
    fault: str, start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    with BatchProducer(client_of(fake)) as producer:
        producer.send(TP, batch_of("0"))
        producer.flush()
        getattr(fake, fault)["Produce"] = 3
        for number in range(1, 30):
            producer.send(TP, batch_of(str(number)))
        delivered = producer.flush()
    assert values_in(fake) == [str(number) for number in range(30)]
    assert [result.base_offset for result in delivered] == list(range(1, 30))


def test_passing_refusals_in_the_middle_of_a_pipeline_keep_the_order(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    with BatchProducer(client_of(fake)) as producer:
        producer.send(TP, batch_of("0"))
        producer.flush()
        fake.parked.clear()
        for number in range(1, 20):
            producer.send(TP, batch_of(str(number)))
        fake.refusals[TP].extend([ErrorCode.not_enough_replicas, ErrorCode.kafka_storage_error])
        fake.parked.set()
    assert values_in(fake) == [str(number) for number in range(20)]


def test_the_producer_follows_the_leader_with_the_same_sequences(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake(3)
    fake.create_topic("t")
    with BatchProducer(client_of(fake)) as producer:
        for number in range(60):
            if number % 20 == 10:
                fake.lead("t", 0, 1 + number // 20)
            producer.send(TP, batch_of(str(number)))
    assert values_in(fake) == [str(number) for number in range(60)]


def test_a_leader_that_dies_with_batches_in_flight_costs_nothing(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake(2)
    fake.create_topic("t")
    fake.lead("t", 0, 1)
    with BatchProducer(client_of(fake)) as producer:
        for number in range(30):
            producer.send(TP, batch_of(str(number)))
            if number == 15:
                fake.lead("t", 0, 2)
                fake.stop_broker(1)
    assert values_in(fake) == [str(number) for number in range(30)]


def test_partitions_of_one_leader_share_requests(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t", 10)
    tps = [TopicPartition("t", number) for number in range(10)]
    with BatchProducer(client_of(fake)) as producer:
        for tp in tps:
            producer.send(tp, batch_of("first"))
        producer.flush()
        before = fake.count(ProduceRequest)
        fake.parked.clear()
        for _ in range(3):
            for tp in tps:
                producer.send(tp, batch_of("again"))
        fake.parked.set()
    assert fake.count(ProduceRequest) - before < 30
    assert all(values_in(fake, partition=tp.partition) == ["first", "again", "again", "again"] for tp in tps)


def test_a_slow_leader_gets_several_requests_at_once(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t", 2)
    with BatchProducer(client_of(fake)) as producer:
        for partition in (0, 1):
            producer.send(TopicPartition("t", partition), batch_of("first"))
            producer.flush()
        fake.parked.clear()
        for number in range(8):
            producer.send(TopicPartition("t", number % 2), batch_of(str(number)))
        fake.parked.set()
        producer.flush()
    assert values_in(fake, partition=0) == ["first", "0", "2", "4", "6"]


def test_a_refused_batch_fails_its_partition_and_no_other(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t", 2)
    other = TopicPartition("t", 1)
    fake.refusals[TP].append(ErrorCode.message_too_large)
    producer = BatchProducer(client_of(fake))
    producer.send(TP, batch_of("refused"))
    with pytest.raises(ProduceFailed, match="t-0: MESSAGE_TOO_LARGE") as failed:
        producer.flush()
    assert failed.value.code is ErrorCode.message_too_large
    with pytest.raises(ProduceFailed, match="t-0"):
        producer.send(TP, batch_of("behind"))
    producer.send(other, batch_of("fine"))
    producer.flush()
    producer.close()
    assert values_in(fake) == []
    assert values_in(fake, partition=1) == ["fine"]


def test_a_log_that_lost_acknowledged_batches_is_found_out(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    producer = BatchProducer(client_of(fake))
    for _ in range(2):
        producer.send(TP, batch_of("acknowledged"))
        producer.flush()
    log = fake.log("t")
    state = next(iter(log.producers.producers.values()))
    state.batches.pop()  # an unclean election: the new leader never had the last batch
    producer.send(TP, batch_of("next"))
    with pytest.raises(ProduceFailed, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        producer.flush()
    producer.close()


def test_what_takes_too_long_is_given_up_with_its_last_obstacle(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    fake.refusals[TP].extend([ErrorCode.not_enough_replicas] * 10_000)
    producer = BatchProducer(client_of(fake), timeout_ms=300)
    producer.send(TP, batch_of("first"))
    producer.send(TP, batch_of("second"))
    with pytest.raises(ProduceFailed, match=r"300 ms .* NOT_ENOUGH_REPLICAS, .*1 more batch") as failed:
        producer.flush()
    assert [failure.code for failure in failed.value.failures] == [ErrorCode.request_timed_out] * 2
    producer.close()


def test_what_takes_too_long_is_given_up_with_the_words_of_the_last_broker(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    """One error code has many reasons, and only the broker knows which one it is."""
    fake = start_fake()
    fake.create_topic("t")
    fake.refusals[TP].extend([ErrorCode.not_enough_replicas] * 10_000)
    fake.refusal_words = "the disk of log directory /data has 7 bytes free: make room"
    producer = BatchProducer(client_of(fake), timeout_ms=300)
    producer.send(TP, batch_of("first"))
    with pytest.raises(ProduceFailed, match=rf"NOT_ENOUGH_REPLICAS: {fake.refusal_words}$"):
        producer.flush()
    producer.close()


def test_a_full_buffer_holds_the_caller_back(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    batch = batch_of("x" * 1_000)
    producer = BatchProducer(client_of(fake), buffer_bytes_max=2 * len(batch))
    fake.parked.clear()
    sent: list[int] = []

    def send_all() -> None:
        for number in range(6):
            producer.send(TP, bytes(batch))
            sent.append(number)

    caller = threading.Thread(target=send_all)
    caller.start()
    caller.join(0.3)
    assert len(sent) == 2
    assert producer.buffered_bytes <= 2 * len(batch)
    fake.parked.set()
    caller.join(10)
    producer.flush()
    producer.close()
    assert len(values_in(fake)) == 6


def test_there_is_no_batch_for_a_topic_or_partition_that_is_not_there(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    producer = BatchProducer(client_of(fake))
    with pytest.raises(KafkaError, match="'t' has 1 partitions, but none 7"):
        producer.send(TopicPartition("t", 7), batch_of("x"))
    producer.close()


def test_what_is_not_one_batch_is_not_queued(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    producer = BatchProducer(client_of(fake))
    with pytest.raises(ValueError, match="are not one batch"):
        producer.send(TP, batch_of("x") + batch_of("y"))
    producer.close()


def test_terms_that_contradict_each_other_are_refused(start_fake: Start, client_of: Connect) -> None:
    client = client_of(start_fake())
    with pytest.raises(ConfigError, match="acks=1"):
        BatchProducer(client, acks=1)
    with pytest.raises(ConfigError, match="acks=2"):
        BatchProducer(client, acks=2, idempotent=False)
    with pytest.raises(ConfigError, match="in_flight_max=6"):
        BatchProducer(client, in_flight_max=6)


@pytest.mark.parametrize("acks", [0, 1])
def test_without_idempotence_records_are_written_too(
    acks: int, start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    client = client_of(fake)
    with BatchProducer(client, acks=acks, idempotent=False) as producer:
        for number in range(5):
            producer.send(TP, batch_of(str(number)))
        producer.flush()
        if acks == 0:  # nobody answers: an answered request behind it on the same connection tells
            while len(values_in(fake)) < 5:
                client.metadata([], max_age_ms=0)
    assert values_in(fake) == [str(number) for number in range(5)]
    assert fake.count(InitProducerIdRequest) == 0


def test_a_producer_whose_client_is_closed_says_so(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    client = client_of(fake)
    producer = BatchProducer(client)
    producer.send(TP, batch_of("x"))
    producer.flush()
    client.close()
    producer.send(TP, batch_of("y"))
    with pytest.raises((ClientClosed, ProduceFailed)):
        producer.flush()
    producer.close()


def test_a_closed_producer_takes_nothing(start_fake: Start, client_of: Connect, batch_of: BatchOf) -> None:
    fake = start_fake()
    fake.create_topic("t")
    producer = BatchProducer(client_of(fake))
    producer.close()
    with pytest.raises(ClientClosed):
        producer.send(TP, batch_of("x"))


def test_single_records_are_gathered_and_keys_decide_their_partition(
    start_fake: Start, client_of: Connect
) -> None:
    fake = start_fake()
    fake.create_topic("t", 3)
    with Producer(client_of(fake), linger_ms=60_000) as producer:
        for number in range(30):
            producer.send("t", str(number).encode(), key=b"the same")
        producer.send("t", b"there", partition=2, headers=[("h", b"1")])
    per_partition = [values_in(fake, partition=partition) for partition in range(3)]
    assert [str(number) for number in range(30)] in [values[:30] for values in per_partition]
    assert per_partition[2][-1] == "there"
    assert sum(len(fake.log("t", partition).batches) for partition in range(3)) <= 2


def test_a_record_for_a_partition_that_is_not_there_is_refused(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake()
    fake.create_topic("t", 2)
    producer = Producer(client_of(fake))
    with pytest.raises(KafkaError, match="partitions 0 to 1, but none 5"):
        producer.send("t", b"x", partition=5)
    producer.close()
