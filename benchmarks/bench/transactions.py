"""What transactions cost: commits, pipelines, reads behind them, and the death of a coordinator's broker.

All producers are librdkafka's, so that both clusters are asked the same by the same code.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from bench.clusters import Cluster, Pair
from bench.kafka_clients import create_topic, quiet, wait_in_sync
from bench.machine import wait_until
from bench.report import PartResult, Row, longest_gap, percentile
from bench.scale import Scale, say
from bench.turns import Tally, found, in_turns, spending

PARTITIONS: Final = 6
RECORDS: Final = 100
VALUE: Final = b"x" * 100
TIMEOUT_S: Final = 60.0
READ_TIMEOUT_S: Final = 300.0
READ_STEP_S: Final = 0.02
SETTLE_S: Final = 3.0
INTERNAL_TOPIC: Final = "__transaction_state"
ABORTERS: Final = 20
"""Producers that abort side by side: alone, a hundred thousand would take an hour."""

READS: Final = 5
"""Of the same topic: one alone differs from the next by a tenth."""


def transactional(cluster: Cluster, transactional_id: str) -> Any:
    producer = Producer(quiet(cluster.bootstrap, **{"transactional.id": transactional_id, "linger.ms": 0}))
    _patiently(partial(producer.init_transactions, TIMEOUT_S))
    return producer


ONE: Final = "transactions of one record"
HUNDRED: Final = f"transactions of {RECORDS} records"
PIPELINES: Final = {
    1: "consume-transform-produce, one pipeline",
    10: "consume-transform-produce, ten pipelines",
}
P50, P99 = "commit of one record, p50", "commit of one record, p99"
LEVELS: Final = "read committed against uncommitted"
ABORTED: Final = "read of aborted"
GAP: Final = "longest gap in transactions after SIGKILL of their coordinator's broker"


def transactions(pair: Pair, scale: Scale) -> PartResult:
    """Transactions a second, what their readers pay, and the gap after a coordinator's death."""
    tally = Tally()
    for cluster in pair.all():
        create_topic(cluster.bootstrap, "written", PARTITIONS)
        create_topic(cluster.bootstrap, "source", PARTITIONS)
        wait_in_sync(cluster.bootstrap, "written")
        warm_up(cluster)
    for _, cluster in in_turns(pair, scale.rounds):
        seconds = scale.commit_s / scale.rounds
        spans = _commits(cluster, seconds, 1, ONE, tally)
        tally.note(P50, cluster, median(spans))
        tally.note(P99, cluster, percentile(spans, 0.99))
        _commits(cluster, seconds, RECORDS, HUNDRED, tally)
        for count in PIPELINES:
            _pipelines(cluster, scale, count, tally)
    for cluster in pair.all():
        uncommitted_s, committed_s = _reads(cluster, "written", "read_uncommitted", "read_committed")
        tally.note(LEVELS, cluster, committed_s / uncommitted_s)
        _abort(cluster, scale)
        tally.note(ABORTED, cluster, *_reads(cluster, "aborted", "read_committed"))
        for number in range(scale.kills):
            tally.note(GAP, cluster, _coordinator_gap(cluster, scale, number))
    return PartResult(_rows(tally, scale), [])


def _rows(tally: Tally, scale: Scale) -> list[Row]:
    less = {"more_is_better": False}
    return found(
        tally.row(ONE, "1/s", note="one producer in turn"),
        tally.row(P50, "ms", note="`commit_transaction`", **less),
        tally.row(P99, "ms", note="the same", **less),
        tally.row(HUNDRED, "1/s", note=f"in {PARTITIONS} partitions, one producer in turn"),
        tally.row(PIPELINES[1], "transactions/s", note=f"{RECORDS} records each, with offsets"),
        tally.row(PIPELINES[10], "transactions/s", note="the same"),
        tally.row(
            LEVELS, "ratio of times", note=f"all of the transactions above, median of {READS} reads", **less
        ),
        tally.row(
            f"read committed over {scale.aborted:,} aborted transactions",
            "s",
            work=ABORTED,
            note=f"one record each, median of {READS} reads",
            **less,
        ),
        tally.row(GAP, "s", note=f"worst of {scale.kills} kills", whole=max, **less),
    )


def warm_up(cluster: Cluster) -> None:
    """The internal topics are created, and all code has run once."""
    producer = transactional(cluster, "warm")
    for _ in range(20):
        write(producer, "written", RECORDS)
    wait_in_sync(cluster.bootstrap, INTERNAL_TOPIC)


def write(producer: Any, topic: str, records: int) -> float:
    """One committed transaction; the milliseconds of its commit."""
    producer.begin_transaction()
    for number in range(records):
        producer.produce(topic, VALUE, partition=number % PARTITIONS)
    began = time.perf_counter()
    producer.commit_transaction(TIMEOUT_S)
    return (time.perf_counter() - began) * 1_000


def _commits(cluster: Cluster, seconds: float, records: int, work: str, tally: Tally) -> list[float]:
    """The milliseconds of each commit."""
    producer = transactional(cluster, f"of-{records}")
    spans: list[float] = []
    with spending(cluster) as spent:
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            spans.append(write(producer, "written", records))
    tally.note_rate(work, cluster, spent, len(spans))
    say(f"transactions {cluster.name}, {work}: {len(spans) / spent.seconds:.1f}/s")
    return spans


def _pipelines(cluster: Cluster, scale: Scale, count: int, tally: Tally) -> None:
    """Transactions of ``count`` pipelines, each with its share of the source."""
    source = Producer(quiet(cluster.bootstrap))
    passes = scale.pipeline_transactions
    for number in range(passes * RECORDS * PARTITIONS):
        source.produce("source", VALUE, partition=number % PARTITIONS)
        source.poll(0)
    source.flush(TIMEOUT_S)
    ends: list[float] = []
    stop = threading.Event()
    with ThreadPoolExecutor(count) as pool:
        pipes = [
            pool.submit(_pipe, cluster, f"pipes-{count}-{number}", number, passes, ends, stop)
            for number in range(count)
        ]
        try:
            wait_until(lambda: len(ends) > count, TIMEOUT_S, "pipelines commit")
            time.sleep(1)
            with spending(cluster) as spent:
                before = len(ends)
                time.sleep(scale.commit_s / scale.rounds)
                made = len(ends) - before
        finally:
            stop.set()
        for pipe in pipes:
            pipe.result()
    if not made:
        raise RuntimeError(f"{cluster.name}: no transaction of {count} pipelines in {spent.seconds:.0f} s")
    tally.note_rate(PIPELINES[count], cluster, spent, made)
    say(f"transactions {cluster.name}, {PIPELINES[count]}: {made / spent.seconds:.1f}/s")


def _pipe(
    cluster: Cluster, name: str, number: int, passes: int, ends: list[float], stop: threading.Event
) -> None:
    """Begins anew after so many ``passes``, which its partition is sure to have: the load must not end."""
    consumer = Consumer(quiet(cluster.bootstrap, **{"group.id": name, "enable.auto.commit": False}))
    consumer.assign([TopicPartition("source", number % PARTITIONS, 0)])
    producer = transactional(cluster, name)
    done = 0
    while not stop.is_set():
        messages = [one for one in consumer.consume(RECORDS, timeout=1.0) if one.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce("written", message.value(), partition=number % PARTITIONS)
        try:
            _end_pass(producer, consumer)
        except KafkaException as error:
            if not error.args[0].fatal():
                raise
            producer = transactional(cluster, name)  # Kafka has fenced a pipeline that was alone
            continue
        ends.append(time.monotonic())
        done += 1
        if done % passes == 0:
            consumer.seek(TopicPartition("source", number % PARTITIONS, 0))
    consumer.close()


def _end_pass(producer: Any, consumer: Any) -> None:
    positions = consumer.position(consumer.assignment())
    group = consumer.consumer_group_metadata()
    _patiently(partial(producer.send_offsets_to_transaction, positions, group, TIMEOUT_S))
    _patiently(partial(producer.commit_transaction, TIMEOUT_S))


def _patiently(step: Callable[[], None]) -> None:
    """The step of a transaction, again while librdkafka says that it may be tried again."""
    while True:
        try:
            step()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def _read(cluster: Cluster, topic: str, isolation: str) -> float:
    """Seconds to read all of a topic."""
    consumer = Consumer(
        quiet(
            cluster.bootstrap,
            **{
                "group.id": f"reads-{topic}-{isolation}",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            },
        )
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    ended: set[int] = set()
    began = time.monotonic()
    while len(ended) < PARTITIONS:
        if time.monotonic() - began > READ_TIMEOUT_S:
            raise RuntimeError(f"{cluster.name}: {topic} is not read in {READ_TIMEOUT_S:.0f} s")
        # It waits for a thousand messages or the time-out, also behind the last message.
        for message in consumer.consume(1_000, timeout=READ_STEP_S):
            if message.error() is not None:
                ended.add(message.partition())
    seconds = time.monotonic() - began
    consumer.close()
    return seconds


def _reads(cluster: Cluster, topic: str, *levels: str) -> list[float]:
    """The median seconds of some reads by each isolation level, in turns."""
    seconds = [[_read(cluster, topic, level) for level in levels] for _ in range(READS)]
    return [median(of_level) for of_level in zip(*seconds, strict=True)]


def _abort(cluster: Cluster, scale: Scale) -> None:
    create_topic(cluster.bootstrap, "aborted", PARTITIONS)
    wait_in_sync(cluster.bootstrap, "aborted")

    def work(number: int) -> None:
        producer = transactional(cluster, f"aborts-{number}")
        for _ in range(scale.aborted // ABORTERS):
            producer.begin_transaction()
            producer.produce("aborted", VALUE, partition=number % PARTITIONS)
            producer.flush(TIMEOUT_S)
            _patiently(partial(producer.abort_transaction, TIMEOUT_S))

    with ThreadPoolExecutor(ABORTERS) as pool:
        for aborter in [pool.submit(work, number) for number in range(ABORTERS)]:
            aborter.result()


@dataclass(slots=True)
class _Committer:
    """Commits without pause from a thread; ``commits`` holds when each was confirmed."""

    cluster: Cluster
    transactional_id: str
    commits: list[float] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        producer = transactional(self.cluster, self.transactional_id)
        while not self._stop.is_set():
            try:
                write(producer, "written", 1)
                self.commits.append(time.monotonic())
            except KafkaException as error:
                if error.args[0].fatal():
                    producer = transactional(self.cluster, self.transactional_id)
                elif error.args[0].txn_requires_abort():
                    producer.abort_transaction(TIMEOUT_S)
                elif not error.args[0].retriable():
                    raise


def _coordinator_gap(cluster: Cluster, scale: Scale, number: int) -> float:
    """Longest time without a commit of the ids whose coordinator's broker is killed."""
    committers = [_Committer(cluster, f"gap-{number}-{index}") for index in range(scale.committers)]
    with ExitStack() as stack:
        for committer in committers:
            stack.callback(committer.stop)
            committer.start()
        wait_until(lambda: all(len(one.commits) > 10 for one in committers), TIMEOUT_S, "all commit")
        time.sleep(SETTLE_S)
        coordinators = _coordinators(cluster, [one.transactional_id for one in committers])
        broker = max(set(coordinators.values()), key=list(coordinators.values()).count)
        struck = [one for one in committers if coordinators[one.transactional_id] == broker]
        killed = time.monotonic()
        cluster.kill(broker)
        wait_until(
            lambda: all(
                sum(at > killed for at in one.commits) >= 10 and time.monotonic() - killed > SETTLE_S
                for one in struck
            ),
            2 * TIMEOUT_S,
            "all commit again",
        )
        gap = max(longest_gap(list(one.commits), killed, time.monotonic()) for one in struck)
        cluster.revive(broker)
        for topic in (INTERNAL_TOPIC, "written"):
            wait_in_sync(cluster.bootstrap, topic, 2 * TIMEOUT_S)
    say(f"transactions {cluster.name}: coordinator of {len(struck)} ids killed, gap {gap:.2f} s")
    return gap


def _coordinators(cluster: Cluster, transactional_ids: list[str]) -> dict[str, int]:
    """The leader of the partition that Java's hash of each id says."""
    topic = (
        AdminClient(quiet(cluster.bootstrap)).list_topics(INTERNAL_TOPIC, timeout=30).topics[INTERNAL_TOPIC]
    )
    return {
        one: topic.partitions[_java_hash(one) % len(topic.partitions)].leader for one in transactional_ids
    }


def _java_hash(text: str) -> int:
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF
