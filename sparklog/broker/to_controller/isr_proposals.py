"""Sends proposals of ISR changes to the controller.

``ProposalQueue`` gathers proposals, builds the request and applies the response; ``IsrProposalSender`` is the
loop that sends. All gathered proposals are sent in one AlterPartition request, and each partition gets its
answer. A request that fails, or is not answered within about a second, is sent again to the controller of
that time; a change of the controller ends the pause before it. Waiting longer would hurt, because a partition
whose ISR cannot shrink commits nothing. Repetitions are harmless: a proposal is a compare-and-set by epochs,
and the controller answers a repetition with the current state. A request refused as a whole, because the
controller does not know this broker's epoch yet, is sent again after a short pause.
"""

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from sparklog.broker.partition.partition import Partition
from sparklog.core.replication.actions import ProposeIsr
from sparklog.core.replication.leader import IsrReply
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.model.loops import Await, CallController, Changes, Loop, Question, Signal
from sparklog.model.ports import Guard
from sparklog.wire.messages.control.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    BrokerState,
)

logger: Final = logging.getLogger(__name__)

RETRY_MS = 50
SETTLED = frozenset(
    {
        ErrorCode.none,
        ErrorCode.operation_not_attempted,
        ErrorCode.ineligible_replica,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.invalid_request,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
    }
)
"""Answers that the partition's machine handles. After any other, such as NOT_CONTROLLER from a replaced
controller, the proposal is sent again; otherwise its ISR would never change.
"""
ANSWER_MS = 1_000
"""After so long without an answer the request is repeated over a new connection: the controller may be
paused, or a message was lost."""

ANSWER_MS_MAX = 4_000
"""The wait doubles up to this after every time-out, so that a slow controller is not overloaded."""

LANE = "isr-proposals"


@dataclass(frozen=True, slots=True)
class _Waiting:
    partition: Partition
    proposal: ProposeIsr


Batch = dict[TopicPartition, _Waiting]
"""The proposals of one request."""


class IsrProposalSender:
    """Sends the proposals of a broker's partitions, one request after the other (``ports.IsrProposals``)."""

    def __init__(
        self,
        broker_id: BrokerId,
        broker_epoch: Callable[[], BrokerEpoch],
        find_partition: Callable[[TopicPartition], Partition | None],
        controller_changes: Changes,
        guard: Guard,
    ) -> None:
        self._controller_changes = controller_changes
        self._guard = guard
        self._queue = ProposalQueue(broker_id, broker_epoch, find_partition)
        self._arrived = Signal()

    @property
    def shrinks(self) -> int:
        return self._queue.shrinks

    @property
    def expands(self) -> int:
        return self._queue.expands

    def propose(self, topic_partition: TopicPartition, proposal: ProposeIsr) -> None:
        with self._guard:
            self._queue.put(topic_partition, proposal)
        self._arrived.give()

    def loop(self) -> Loop:
        """Send gathered proposals, for ever."""
        with self._controller_changes.signalled() as changed:
            while True:
                with self._guard:
                    batch = self._queue.take_all()
                if not batch:
                    yield Await(self._arrived)
                    continue
                changed.take()
                if (yield from self._is_settled(batch)):
                    continue
                if (yield Await(changed, RETRY_MS)):
                    self._queue.on_new_controller()

    def _is_settled(self, batch: Batch) -> Generator[Question, Any, bool]:
        """Send a batch and hand out the answers. Puts unsettled proposals back, and is False then."""
        again = batch  # also after a bug; otherwise these ISRs would never change
        try:
            response = yield CallController(self._queue.request(batch), self._queue.answer_ms, LANE)
            again = self._queue.on_response(batch, response)
        except (OSError, SparklogError) as error:
            self._queue.on_failure(error)
            logger.info("ISR proposals did not reach the controller and are sent again: %s", error)
        finally:
            with self._guard:
                self._queue.put_back(again)
        return not again


class ProposalQueue:
    """The proposals of a broker's partitions; a newer one of a partition replaces the older. Not
    thread-safe.
    """

    def __init__(
        self,
        broker_id: BrokerId,
        broker_epoch: Callable[[], BrokerEpoch],
        find_partition: Callable[[TopicPartition], Partition | None],
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._find_partition = find_partition
        self._waiting: Batch = {}
        self.answer_ms = ANSWER_MS
        """How long to wait for the answer to the next request."""
        self.shrinks = 0
        self.expands = 0
        """ISRs that became smaller and larger by what was proposed here, for metrics."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, topic_partition: TopicPartition, proposal: ProposeIsr) -> None:
        partition = self._find_partition(topic_partition)
        if partition is not None:
            self._waiting[topic_partition] = _Waiting(partition, proposal)

    def take_all(self) -> Batch:
        """Take the gathered proposals."""
        batch, self._waiting = self._waiting, {}
        return batch

    def put_back(self, batch: Batch) -> None:
        """Queue these again, except where a newer proposal is queued."""
        self._waiting = {**batch, **self._waiting}

    def on_failure(self, error: Exception) -> None:
        """A request got no answer; after a time-out the next wait is longer."""
        if isinstance(error, TimeoutError):
            self.answer_ms = min(2 * self.answer_ms, ANSWER_MS_MAX)

    def on_new_controller(self) -> None:
        self.answer_ms = ANSWER_MS

    def on_response(self, batch: Batch, response: AlterPartitionResponse) -> Batch:
        """Hand out the answers; returns the proposals to be sent again."""
        self.answer_ms = ANSWER_MS
        if response.error_code is not ErrorCode.none:
            logger.info(
                "the controller refused ISR proposals with %s; they are sent again", response.error_code.name
            )
            return batch
        return self._hand_out(batch, response)

    def request(self, batch: Batch) -> AlterPartitionRequest:
        topics: dict[TopicId, AlterPartitionTopic] = {}
        for topic_partition, waiting in batch.items():
            topic_id = waiting.partition.topic_id
            proposal = waiting.proposal
            topics.setdefault(topic_id, AlterPartitionTopic(topic_id=topic_id)).partitions.append(
                AlterPartitionPartition(
                    partition_index=topic_partition.partition,
                    leader_epoch=proposal.leader_epoch,
                    partition_epoch=proposal.partition_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=member, broker_epoch=epoch)
                        for member, epoch in proposal.members
                    ],
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )

    def _hand_out(self, batch: Batch, response: AlterPartitionResponse) -> Batch:
        """Give each partition its answer; returns the proposals without a settling answer."""
        unsettled = dict(batch)
        names = {
            (waiting.partition.topic_id, topic_partition.partition): topic_partition
            for topic_partition, waiting in batch.items()
        }
        for topic in response.topics:
            for answer in topic.partitions:
                name = names.get((topic.topic_id, answer.partition_index))
                waiting = unsettled.get(name) if name is not None else None
                if name is None or waiting is None:
                    continue
                if answer.error_code in SETTLED:
                    del unsettled[name]
                reply = IsrReply(
                    answer.error_code,
                    tuple(map(BrokerId, answer.isr)),
                    answer.leader_epoch,
                    answer.partition_epoch,
                )
                if reply.error is not ErrorCode.none:
                    logger.info(
                        "%s: ISR proposal answered with %s",
                        waiting.partition.topic_partition,
                        reply.error.name,
                    )
                grown = waiting.partition.on_isr_reply(
                    waiting.proposal.leader_epoch, waiting.proposal.proposal, reply
                )
                self.expands += grown > 0
                self.shrinks += grown < 0
        return unsettled
