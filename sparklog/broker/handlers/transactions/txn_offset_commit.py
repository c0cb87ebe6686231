"""TxnOffsetCommit: offsets of a group, which count when the producer's transaction is committed.

Partitions that do not exist are refused here, each for itself. The group's coordinator decides about the
rest; before the first offsets of a transaction it has the transaction verified by that one's coordinator.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.coordination.kinds import GROUPS
from sparklog.broker.handlers.groups.group_calls import STORED_BYTES_MAX, is_too_long
from sparklog.core.coordinator.actions import Producer
from sparklog.core.coordinator.key_partition import partition_of
from sparklog.core.group.requests import OffsetToCommit, TransactionalOffsetCommit
from sparklog.core.group.responses import TransactionalCommitAnswer
from sparklog.core.producers.latest_connections import Late
from sparklog.core.transaction_coordinator.requests import VerifyPartitions
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ATTEMPTS_MAX: Final = 3
"""How often a commit is verified anew, if an end of the producer's transaction comes in between."""

FIRST_WITH_LOADING: Final = 2
"""Clients of older versions take COORDINATOR_LOAD_IN_PROGRESS for a fatal error."""

Errors = Mapping[TopicPartition, ErrorCode]


def handle(call: Call, request: TxnOffsetCommitRequest) -> None:
    asked = {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in request.topics
        for partition in topic.partitions
    }
    problems = {
        topic_partition: problem
        for topic_partition, partition in asked.items()
        if (problem := _problem(call, request, topic_partition, partition)) is not None
    }
    if len(problems) == len(asked):
        call.reply(_response(call, asked, problems))
        return
    commit = TransactionalOffsetCommit(
        group_id=request.group_id,
        producer=Producer(request.producer_id, request.producer_epoch),
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        offsets=tuple(
            OffsetToCommit(
                topic_partition,
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=partition.committed_metadata,
                commit_timestamp_ms=None,
            )
            for topic_partition, partition in asked.items()
            if topic_partition not in problems
        ),
        connection=call.context.connection_id,
    )
    _Attempts(call, request.transactional_id, tuple(asked), problems).ask(commit)


class _Attempts:
    """One request, until it is written, refused, or given up."""

    def __init__(
        self, call: Call, transactional_id: str, asked: tuple[TopicPartition, ...], problems: Errors
    ) -> None:
        self._call = call
        self._transactional_id = transactional_id
        self._asked = asked
        self._problems = problems
        self._left = ATTEMPTS_MAX

    def ask(self, commit: TransactionalOffsetCommit) -> None:
        def answered(response: TransactionalCommitAnswer | Late) -> None:
            if isinstance(response, Late):
                self._call.exchange.close()
            else:
                self._call.carefully(lambda: self._take(commit, response))

        self._call.broker.coordinators.submit(GROUPS.topic, commit, answered)

    def _take(self, commit: TransactionalOffsetCommit, response: TransactionalCommitAnswer) -> None:
        if response.guard is None:
            self._answer(response)
        elif self._left == 0:
            self._answer(commit.refused(ErrorCode.coordinator_not_available))
        else:
            self._left -= 1
            self._verify(replace(commit, guard=response.guard))

    def _verify(self, commit: TransactionalOffsetCommit) -> None:
        """Is the partition of the group in the transaction? Then ask again."""
        metadata = self._call.broker.metadata.topic(GROUPS.topic)
        partitions = 1 if metadata is None else len(metadata.partitions)
        topic_partition = TopicPartition(GROUPS.topic, partition_of(commit.group_id, partitions))
        producer_id, producer_epoch = commit.producer

        def verified(errors: Errors) -> None:
            if errors[topic_partition] is ErrorCode.none:
                self.ask(commit)
            else:
                error = _of_a_commit(errors[topic_partition])
                self._call.carefully(lambda: self._answer(commit.refused(error)))

        self._call.broker.verifier.verify(
            VerifyPartitions(self._transactional_id, producer_id, producer_epoch, (topic_partition,)),
            verified,
        )

    def _answer(self, response: TransactionalCommitAnswer) -> None:
        errors = {**self._problems, **dict(response.errors)}
        self._call.reply(_response(self._call, self._asked, errors))


def _problem(
    call: Call,
    request: TxnOffsetCommitRequest,
    topic_partition: TopicPartition,
    partition: TxnOffsetCommitRequestPartition,
) -> ErrorCode | None:
    if is_too_long(request.group_id):
        return ErrorCode.invalid_group_id
    if not request.transactional_id or is_too_long(request.transactional_id):
        return ErrorCode.invalid_request
    if request.producer_id < 0:
        return ErrorCode.invalid_producer_id_mapping
    if request.producer_epoch < 0:
        return ErrorCode.invalid_producer_epoch
    if call.broker.metadata.partition(topic_partition) is None:
        return ErrorCode.unknown_topic_or_partition
    if len((partition.committed_metadata or "").encode()) > STORED_BYTES_MAX:
        return ErrorCode.offset_metadata_too_large
    return None


def _of_a_commit(error: ErrorCode) -> ErrorCode:
    """The verifier speaks in the words of a produce."""
    return ErrorCode.coordinator_not_available if error is ErrorCode.not_enough_replicas else error


def _response(call: Call, asked: Iterable[TopicPartition], errors: Errors) -> TxnOffsetCommitResponse:
    topics: dict[str, TxnOffsetCommitResponseTopic] = {}
    for topic_partition in asked:
        error = errors[topic_partition]
        if error is ErrorCode.coordinator_load_in_progress and call.version < FIRST_WITH_LOADING:
            error = ErrorCode.coordinator_not_available
        topic = topics.setdefault(
            topic_partition.topic, TxnOffsetCommitResponseTopic(name=topic_partition.topic)
        )
        topic.partitions.append(
            TxnOffsetCommitResponsePartition(partition_index=topic_partition.partition, error_code=error)
        )
    return TxnOffsetCommitResponse(topics=list(topics.values()))
