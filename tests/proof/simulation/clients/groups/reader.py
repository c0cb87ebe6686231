"""Somebody who reads a group's committed offsets, again and again, from the coordinator that it knows.

It commits nothing, and asks one that does not answer again and again, so that nothing but an answer tells it
of another coordinator: one that answers although it is none any more is found out by it.
"""

from collections.abc import Sequence
from typing import Final

from simulation.clients.client import RETRY_MS, Workplace
from simulation.clients.groups.client import MOVED, GroupClient
from simulation.clients.groups.offsets import fetch_request, fetched_in, note_reads
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.groups.offset_fetch import OffsetFetchResponse

INTERVAL_MS: Final = (20, 200)
TIMEOUT_MS: Final = 500
STAYS: Final = 0.9
"""How likely it asks the same coordinator again that has not answered."""


class OffsetReader(GroupClient):
    def __init__(
        self, place: Workplace, name: str, group_id: str, partitions: Sequence[TopicPartition]
    ) -> None:
        super().__init__(place, name, 1, group_id)
        self.answered_us = -1
        """When it was last told of all partitions."""
        self._partitions = partitions

    def go_on(self) -> None:
        if self.coordinator is None:
            self.find_coordinator()
            return
        invoked_ns = self._place.recorder.now_ns

        def answered(response: OffsetFetchResponse) -> None:
            fetched = fetched_in(response)
            note_reads(self._place.recorder, self.name, self.group_id, invoked_ns, fetched)
            if len(fetched.offsets) == len(self._partitions):
                self.answered_us = self._place.schedule.now_us
            if fetched.error in MOVED:
                self.coordinator = None
                self.later(RETRY_MS, self.go_on)
            else:
                self.later(self._draw.uniform(*INTERVAL_MS), self.go_on)

        request = fetch_request(self.group_id, self._partitions)
        self.call(self.coordinator, request, answered, self._unanswered, timeout_ms=TIMEOUT_MS)

    def _unanswered(self) -> None:
        if self._draw.random() >= STAYS:
            self.coordinator = None
        self.later(RETRY_MS, self.go_on)
