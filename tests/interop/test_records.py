"""Records, offsets and times through every client: what one writes, librdkafka reads, and back."""

import threading
import time

import pytest

from tests.clients.typed_rows import ROWS, TIMES_MS
from tests.interop.refusals import refused

pytestmark = [pytest.mark.clients, pytest.mark.integration]

HOUR_MS = 3_600_000
LEAVES_RESETS_TO_ITS_USER = ("sarama",)


def values(records):
    return [record["value"] for record in records]


def read_back(driver, reference, topic, count):
    """What this client and the reference read, which must be the same; times and all."""
    read = driver.read(topic=topic, partition=0, start="earliest", count=count)
    assert read == reference.read(topic=topic, partition=0, start="earliest", count=count)
    return read


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_a_codec(driver, reference, topic, codec):
    records = [{"key": f"k{n}", "value": f"{n} " + "x" * 200} for n in range(50)]
    done = driver.produce(topic=topic, records=records, codec=codec)
    assert [offset for _, offset in done] == list(range(50))
    read = read_back(driver, reference, topic, 50)
    assert [(one["key"], one["value"]) for one in read] == [(one["key"], one["value"]) for one in records]


def test_null_and_empty_keys_and_values(driver, reference, topic):
    pairs = [(None, "value"), ("key", None), ("", "value"), ("key", ""), (None, "")]
    driver.produce(topic=topic, records=[{"key": key, "value": value} for key, value in pairs])
    read = read_back(driver, reference, topic, len(pairs))
    assert [(one["key"], one["value"]) for one in read] == pairs


@pytest.mark.parametrize("last", ["value", None], ids=["with values", "with nulls"])
def test_headers(driver, reference, topic, last):
    headers = [["a", "1"], ["a", "2"], ["empty", ""], ["last", last]]
    driver.produce(topic=topic, records=[{"value": "v", "headers": headers}, {"value": "w"}])
    assert [one["headers"] for one in read_back(driver, reference, topic, 2)] == [headers, []]


def test_times_of_producers(driver, reference, topic):
    now = int(time.time() * 1000)
    times = [now - HOUR_MS, now - 2 * HOUR_MS, now]
    driver.produce(topic=topic, records=[{"value": "v", "timestamp": each} for each in times])
    assert [one["timestamp"] for one in read_back(driver, reference, topic, 3)] == times


def test_times_of_the_broker(driver, reference, make_topic):
    topic, before = make_topic(**{"message.timestamp.type": "LogAppendTime"}), int(time.time() * 1000)
    driver.produce(topic=topic, records=[{"value": "v", "timestamp": before - HOUR_MS}])
    [one] = read_back(driver, reference, topic, 1)
    assert before <= one["timestamp"] <= time.time() * 1000


def test_a_record_of_900_kb(driver, reference, topic):
    driver.produce(topic=topic, records=[{"size": 900_000}, {"value": "after"}])
    assert [one["size"] for one in read_back(driver, reference, topic, 2)] == [900_000, 5]


def test_a_fetch_limit_below_one_batch(driver, reference, topic):
    reference.produce(topic=topic, records=[{"size": 50_000} for _ in range(6)], linger_ms=100)
    read = driver.read(topic=topic, partition=0, start="earliest", count=6, fetch_bytes=2_000)
    assert [one["offset"] for one in read] == list(range(6))


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_acknowledgements(driver, reference, topic, acks):
    done = driver.produce(topic=topic, records=[{"value": f"{n}"} for n in range(10)], acks=acks)
    assert acks == "0" or [offset for _, offset in done] == list(range(10))
    assert values(reference.read(topic=topic, partition=0, start="earliest", count=10)) == [
        f"{n}" for n in range(10)
    ]


def test_an_idempotent_producer(driver, reference, topic):
    sent = [f"{n}" for n in range(200)]
    driver.produce(topic=topic, records=[{"value": value} for value in sent], idempotent=True, pace_ms=1)
    assert (
        values(reference.read(topic=topic, partition=0, start="earliest", count=201, timeout_ms=2_000))
        == sent
    )


def test_offsets_of_positions_and_times(driver, reference, topic):
    now = int(time.time() * 1000)
    records = [{"value": f"{n}", "timestamp": now + n * 1000} for n in range(10)]
    reference.produce(topic=topic, records=records)
    times = [now - 1, now + 3500, now + 9000, now + 9001]
    found = driver.offsets(topic=topic, partition=0, times=times)
    assert (found["earliest"], found["latest"]) == (0, 10)
    # a client may name the end where no record is so late
    assert found["times"][:3] == [0, 4, 9]
    assert found["times"][3] in (-1, 10)


def test_reading_from_the_middle_and_from_a_time(driver, reference, topic):
    now = int(time.time() * 1000)
    records = [{"value": f"{n}", "timestamp": now + n * 1000} for n in range(10)]
    reference.produce(topic=topic, records=records, linger_ms=100)
    assert values(driver.read(topic=topic, partition=0, start=7, count=3)) == ["7", "8", "9"]
    assert values(driver.read(topic=topic, partition=0, start={"time": now + 7500}, count=2)) == ["8", "9"]


def test_a_reader_at_the_end_gets_what_comes(driver, reference, topic):
    reference.produce(topic=topic, records=[{"value": "old"}])
    driver.send("read", topic=topic, partition=0, start="latest", count=1)
    stopped, thread = threading.Event(), None

    def produce():
        while not stopped.wait(0.3):
            reference.produce(topic=topic, records=[{"value": "new"}])

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        assert values(driver.answer()) == ["new"]
    finally:
        stopped.set()
        thread.join()


def test_typed_rows(driver, client, reference, target):
    topic = f"typed-{client.replace(' ', '-')}"
    target.create_typed(topic)
    read = read_back(driver, reference, topic, len(ROWS))
    assert [(one["offset"], one["key"].encode(), one["value"].encode()) for one in read] == ROWS
    assert read[0]["timestamp"] == TIMES_MS[0]


def test_an_offset_that_is_gone(driver, client, reference, topic):
    reference.produce(topic=topic, records=[{"value": f"{n}"} for n in range(10)])
    assert reference.delete_records(topic=topic, partition=0, offset=6) == 6
    if client in LEAVES_RESETS_TO_ITS_USER:
        with refused(client, "OFFSET_OUT_OF_RANGE"):
            driver.read(topic=topic, partition=0, start=2, count=1, reset="earliest")
    else:
        [one] = driver.read(topic=topic, partition=0, start=2, count=1, reset="earliest")
        assert one["offset"] == 6


@pytest.mark.parametrize("name", ["no such topic", "bad/name", "x" * 250], ids=["blank", "slash", "long"])
def test_invalid_names_of_topics(driver, client, name):
    with refused(client, "INVALID_TOPIC_EXCEPTION"):
        driver.produce(topic=name, records=[{"value": "v"}])


def test_leaders_that_move_under_load(driver, reference, target, topic):
    driver.send("produce", topic=topic, records=[{"value": f"{n}"} for n in range(300)], pace_ms=10)
    time.sleep(0.3)
    for _ in range(2):
        leader = target.leader(topic, 0)
        target.stop_broker(leader)
        time.sleep(0.5)
        target.revive_broker(leader)
        target.wait_in_sync(topic)
    done = driver.answer()
    read = reference.read(topic=topic, partition=0, start="earliest", count=10_000, timeout_ms=1_500)
    by_offset = {one["offset"]: one["value"] for one in read}
    assert [by_offset[offset] for _, offset in done] == [f"{n}" for n in range(300)]
