"""Readers that read what is committed, at leaders and in their racks, also from the middle of a log."""

from typing import Final

from simulation.clients.client import Workplace
from simulation.clients.consumers import Consumer
from simulation.invariants.transactions import TakenBatch, TransactionRules
from simulation.recorder import FoundRow, SeenPoll
from simulation.truth import Entry
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import READ_COMMITTED
from sparklog.records.control import end_of_transaction
from sparklog.records.envelope import BatchHeader
from sparklog.wire.messages.data.fetch import FetchPartitionData

SEEKS: Final = 0.1
"""How likely a reader goes elsewhere after a poll."""

BYTES: Final = (1, 150, 600, 1 << 20)
"""How much a reader asks for at a time."""


class CommittedReader(Consumer):
    """Leaves out what was aborted, as Kafka's consumers do, and has everything that it is given judged."""

    isolation_level = READ_COMMITTED

    def __init__(
        self, place: Workplace, name: str, topic_partition: TopicPartition, rules: TransactionRules
    ) -> None:
        super().__init__(place, name, topic_partition)
        self.bytes_max = self._draw.choice(BYTES)
        self.is_hushed = False
        """Whether it only goes on, so that it comes to the end."""
        self._rules = rules
        self._known_end = 0
        self._taken: list[TakenBatch] = []
        self._aborting: set[int] = set()
        self._begins: list[tuple[int, int]] = []
        """First offsets and producers of aborted transactions that are yet to come in this answer."""

    def topic_was_made_anew(self) -> None:
        self._known_end = 0
        super().topic_was_made_anew()

    def seek(self, offset: int) -> None:
        self.offset, self._last_epoch, self.is_at_end = offset, -1, False

    def go_on(self) -> None:
        self._known_end = max(self._known_end, self.offset)
        if not self.is_hushed and self._known_end and self._draw.random() < SEEKS:
            self.seek(self._draw.randrange(self._known_end))
        super().go_on()

    def _keep(self, poll: SeenPoll) -> None:
        """The black box judges those that read everything."""

    def _open(self, data: FetchPartitionData) -> None:
        self._taken.clear()
        self._aborting.clear()
        aborted = data.aborted_transactions or []
        self._begins = sorted(((one.first_offset, one.producer_id) for one in aborted), reverse=True)

    def _take_batch(
        self, batch: memoryview, header: BatchHeader, entry: Entry, found: list[Entry | FoundRow]
    ) -> None:
        while self._begins and self._begins[-1][0] <= header.base_offset:
            self._aborting.add(self._begins.pop()[1])
        if header.is_control:
            end = end_of_transaction(batch, header)
            if end is not None and not end.is_commit:
                self._aborting.discard(header.producer_id)
            return
        is_kept = not (header.is_transactional and header.producer_id in self._aborting)
        self._taken.append(TakenBatch(entry, header.is_transactional, is_kept))

    def _close(self, data: FetchPartitionData, start: int) -> None:
        truth = self._place.witness.truths.get(self.topic_partition)
        if truth is None or truth.topic_id != self._topic_id or self.offset == start:
            return
        aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or []]
        if self._met_rot:  # the answer tells of those behind the rotten batch, too
            aborted = [one for one in aborted if one[1] < self.offset]
        if aborted:
            self._place.witness.marks.reach("a reader passed over an aborted transaction")
        if self._follower is not None:
            self._place.witness.marks.reach("a read-committed reader read from a follower")
        self._rules.on_committed_read(truth, start, self.offset, self._taken, aborted)
