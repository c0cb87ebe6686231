"""Members and brokers of a group end and come back in turns, while records are written (scenario 13).

librdkafka moves a position by itself when a broker says that it is out of range, or that an epoch ended
before it. So each member keeps what its client said of positions, and a failure shows that.
"""

import logging
from collections import defaultdict
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException

from sparklog.testing import InProcessCluster
from tests.clients.group_members import Member, all_of, until_shared
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.proof]

TOPIC = GROUP = "bounced"
PARTITIONS = 4
EACH = 100
SAID_OF_POSITIONS = ("reset", "VALIDATE", "OFFSETVALID", "Seek", "FETCHERR")


class Said(logging.Handler):
    """Keeps the lines about positions."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if any(word in line for word in SAID_OF_POSITIONS):
            self.lines.append(f"{record.created:.3f} {line}")


class Committing(Member):
    """Commits after every record, and compares where it begins with the greatest commit that succeeded.

    ``committed`` is shared by all members: partition to offset. A partition has one owner at a time.
    """

    def __init__(self, cluster: Any, committed: dict[int, int]) -> None:
        self.behind: list[tuple[str, int, int, int]] = []
        self._committed = committed
        self.said = Said()
        logger = logging.Logger("librdkafka", logging.DEBUG)
        logger.addHandler(self.said)
        super().__init__(cluster, GROUP, [TOPIC], debug="topic,fetch", log_level=7, logger=logger)

    def _poll(self) -> None:
        while not self._stop.is_set():
            message = self.consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            self._compare("a record", message.partition(), message.offset())
            self.values[message.value()] += 1
            try:
                (done,) = self.consumer.commit(message=message, asynchronous=False)
            except KafkaException:
                continue  # by another owner, or unknown: the record may be read once more
            if done.error is None:
                self._committed[done.partition] = max(self._committed[done.partition], done.offset)

    def _on_assign(self, consumer: Consumer, partitions: list[Any]) -> None:
        for one in consumer.committed(partitions, timeout=60):
            self._compare("the group's position", one.partition, one.offset)
        super()._on_assign(consumer, partitions)

    def _compare(self, what: str, partition: int, offset: int) -> None:
        if (committed := self._committed[partition]) > max(offset, 0):
            self.behind.append((what, partition, offset, committed))


def test_a_position_is_never_behind_its_commit(tmp_path) -> None:
    with InProcessCluster(tmp_path) as cluster:
        cluster.create_topic(TOPIC, partitions=PARTITIONS)
        committed: dict[int, int] = defaultdict(int)
        members = [Committing(cluster, committed), Committing(cluster, committed)]
        past: list[Committing] = []
        written = 0
        try:
            for broker_id in (1, 2, 3):
                until_shared(members, all_of(TOPIC, PARTITIONS))
                cluster.produce(TOPIC, [f"v{number}" for number in range(written, written + EACH)])
                written += EACH
                cluster.kill(broker_id)
                past.append(members.pop(0))
                past[-1].leave()
                members.append(Committing(cluster, committed))
                cluster.produce(TOPIC, [f"v{number}" for number in range(written, written + EACH)])
                written += EACH
                cluster.revive(broker_id)
                cluster.wait_for_isr(TOPIC, 3)
            everybody = [*past, *members]
            until(
                lambda: len({value for one in everybody for value in one.values}) == written,
                lambda: [len(one.values) for one in everybody],
            )
            until(lambda: sum(committed.values()) == written, lambda: committed)
            behind = [f"{one.behind[:3]}\n" + "\n".join(one.said.lines) for one in everybody if one.behind]
            assert not behind, "\n".join(behind)
        finally:
            for member in members:
                member.leave()
