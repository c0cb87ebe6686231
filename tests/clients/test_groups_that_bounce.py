"""Members and brokers of a group end and come back in turns, while records are written (scenario 13).

librdkafka moves a position by itself when a broker says that it is out of range, or that an epoch ended
before it. So each member keeps what its client said of positions, and a failure shows that.

Once in an assignment a member may begin again where the group was at its beginning. librdkafka sometimes
hands out a record that it fetched in the assignment before; it begins to fetch in the new one only then, at
the position that it asked for before that record was committed.
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
        self._began: dict[int, int] = {}
        """Where the group was when this assignment began; by partition, as all of these."""
        self._next: dict[int, int] = {}
        self._has_begun_again: set[int] = set()
        self.said = Said()
        logger = logging.Logger("librdkafka", logging.DEBUG)
        logger.addHandler(self.said)
        super().__init__(cluster, GROUP, [TOPIC], debug="topic,fetch", log_level=7, logger=logger)

    def _poll(self) -> None:
        while not self._stop.is_set():
            message = self.consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            self._follow(message.partition(), message.offset())
            self.values[message.value()] += 1
            try:
                (done,) = self.consumer.commit(message=message, asynchronous=False)
            except KafkaException:
                continue  # by another owner, or unknown: the record may be read once more
            if done.error is None:
                self._committed[done.partition] = max(self._committed[done.partition], done.offset)

    def _on_assign(self, consumer: Consumer, partitions: list[Any]) -> None:
        for one in consumer.committed(partitions, timeout=60):
            position = max(one.offset, 0)
            if (committed := self._committed[one.partition]) > position:
                self.behind.append(("the group's position", one.partition, position, committed))
            self._began[one.partition] = self._next[one.partition] = position
            self._has_begun_again.discard(one.partition)
        super()._on_assign(consumer, partitions)

    def _follow(self, partition: int, offset: int) -> None:
        """Within an assignment a partition is read forwards, but for one new beginning."""
        if offset < self._next[partition]:
            if offset != self._began[partition] or partition in self._has_begun_again:
                self.behind.append(("a record", partition, offset, self._next[partition]))
            self._has_begun_again.add(partition)
        self._next[partition] = offset + 1


@pytest.mark.scenario("S13", "Consumers or brokers bounce: a group's position is never behind its commit.")
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
