"""Clients that ask for the end of a log. The checker of histories judges the answers."""

from simulation.clients.client import RETRY_MS, Client
from simulation.recorder import SeenEnd
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.data.list_offsets import (
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)


class EndAsker(Client):
    """Asks for the end of its partition, over and over."""

    def go_on(self) -> None:
        if self._leader is None:
            self.find_leader()
            return
        asked = ListOffsetsPartition(
            partition_index=self.topic_partition.partition,
            current_leader_epoch=self._leader_epoch,
            timestamp=LATEST_TIMESTAMP,
        )
        topic = ListOffsetsTopic(name=self.topic_partition.topic, partitions=[asked])
        asked_us = self._place.schedule.now_us
        self.call(
            self._leader,
            ListOffsetsRequest(topics=[topic]),
            lambda response: self._answered(asked_us, response),
            lambda error: self.find_leader(),
        )

    def _answered(self, asked_us: int, response: ListOffsetsResponse) -> None:
        answer = response.topics[0].partitions[0]
        if answer.error_code is not ErrorCode.none:
            if answer.error_code is ErrorCode.offset_not_available:
                self._place.witness.marks.reach("a new leader did not know the end yet")
            self._leader = None
            self.later(RETRY_MS, self.find_leader)
            return
        now_us = self._place.schedule.now_us
        seen = SeenEnd(self.name, self.topic_partition, answer.offset, asked_us, now_us, answer.leader_epoch)
        self._place.recorder.ends.append(seen)
        self.later(self._draw.uniform(50, 300), self.go_on)
