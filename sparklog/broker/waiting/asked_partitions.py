"""The partitions of a fetch, with the offsets that were last sent of each."""

from collections.abc import Iterable
from dataclasses import dataclass

from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.core.replication.session_slots import LeanPosition
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId
from sparklog.wire.messages.data.fetch import FetchPartition, FetchPartitionData, FetchRequest

Key = tuple[str, TopicId, int]
"""A partition as fetches name it: a topic's name or its id, the other left empty, and a number."""


@dataclass(slots=True)
class AskedPartition:
    """One partition of a fetch, and the offsets last sent to the fetcher; -1: unknown."""

    key: Key
    asked: FetchPartition
    sent_high_watermark: int = -1
    sent_log_start_offset: int = -1
    read: ReadRequest | None = None
    """``asked`` as a request to the partition; None after ``asked`` has changed."""
    found: Partition | None = None
    """The partition that a lean fetch has read last."""
    token: int = 0
    waits_in: Partition | None = None
    """The place of the session's lean fetches (``lean_wait``): their last token, and who has it."""

    def read_request(
        self,
        follower: BrokerId | None,
        follower_epoch: BrokerEpoch,
        *,
        from_any_replica: bool = False,
        read_committed: bool = False,
        with_aborted: bool = False,
    ) -> ReadRequest:
        """The request to the partition; the same object until it changes."""
        read = self.read
        if (
            read is None
            or read.follower != follower
            or read.follower_epoch != follower_epoch
            or read.read_committed != read_committed
            or read.with_aborted != with_aborted
        ):
            asked = self.asked
            self.read = read = ReadRequest(
                fetch_offset=asked.fetch_offset,
                max_bytes=asked.partition_max_bytes,
                current_leader_epoch=asked.current_leader_epoch,
                last_fetched_epoch=asked.last_fetched_epoch,
                follower=follower,
                follower_epoch=follower_epoch,
                from_any_replica=from_any_replica,
                log_start_offset=asked.log_start_offset,
                read_committed=read_committed,
                with_aborted=with_aborted,
                columns=asked.columns,
                condition=bytes(asked.condition),
            )
        return read

    def ask(self, asked: FetchPartition) -> None:
        self.read = None
        if asked.current_leader_epoch != self.asked.current_leader_epoch:
            self.sent_high_watermark = -1  # a follower in a new role has forgotten it
        self.asked = asked

    def move(self, position: LeanPosition) -> None:
        """What a lean fetch says of the partition, whose limit stays."""
        _, leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset = position
        self.ask(
            FetchPartition(
                partition=self.asked.partition,
                current_leader_epoch=leader_epoch,
                fetch_offset=fetch_offset,
                last_fetched_epoch=last_fetched_epoch,
                log_start_offset=log_start_offset,
                partition_max_bytes=self.asked.partition_max_bytes,
            )
        )

    def has_lean_news(self, result: ReadResult) -> bool:
        """As ``has_news``, for the answer to a lean fetch, which has no divergence."""
        is_taken = result.error is ErrorCode.none
        is_news = (
            result.size_bytes > 0
            or not is_taken
            or result.high_watermark != self.sent_high_watermark
            or result.log_start_offset != self.sent_log_start_offset
        )
        self.sent_high_watermark = result.high_watermark if is_taken else -1
        self.sent_log_start_offset = result.log_start_offset
        return is_news

    def has_news(self, data: FetchPartitionData) -> bool:
        """Whether ``data`` must be sent; records it as sent."""
        is_news = (
            bool(data.records)
            or data.error_code is not ErrorCode.none
            or data.diverging_epoch is not None
            or data.preferred_read_replica >= 0
            or data.high_watermark != self.sent_high_watermark
            or data.log_start_offset != self.sent_log_start_offset
        )
        is_taken = data.error_code is ErrorCode.none and data.diverging_epoch is None
        self.sent_high_watermark = data.high_watermark if is_taken else -1
        self.sent_log_start_offset = data.log_start_offset
        return is_news


def asked_partitions(request: FetchRequest) -> Iterable[AskedPartition]:
    """Everything that a request names, in its order."""
    for topic in request.topics:
        for asked in topic.partitions:
            yield AskedPartition((topic.topic, topic.topic_id, asked.partition), asked)
