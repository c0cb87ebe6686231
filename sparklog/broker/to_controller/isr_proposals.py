"""Proposals to change an ISR, on their way to the controller.

``ProposalQueue`` gathers them, makes the request and takes the response; ``IsrProposalSender`` gives it a
thread that waits for the controller in between. What has gathered is sent in one AlterPartition request, and
each partition is handed its answer. A request that fails on its way, or is not answered within about a
second, is sent again, to whoever is the controller then, and at once when there is another one: a partition
whose ISR cannot shrink commits nothing. Sending twice is harmless, because a proposal is a compare-and-set by
epochs: the controller answers a change that was already made with the state that holds. A request that it
refuses as a whole because it does not know our epoch yet is sent again after a short pause.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from sparklog.broker.partition.partition import Partition
from sparklog.broker.to_controller.controller_link import ControllerLink
from sparklog.core.replication.actions import ProposeIsr
from sparklog.core.replication.leader import IsrReply
from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.wire.messages.control.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    BrokerState,
)

logger = logging.getLogger(__name__)

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
"""Answers that the partition's machine knows what to do with. With any other, such as NOT_CONTROLLER from one
that has not noticed its successor, the proposal is sent again, or its ISR would never change any more.
"""
ANSWER_MS = 1_000
"""A controller that is silent for so long is asked again, over a new connection: it may be paused, or the
request or its answer was lost on the way."""

ANSWER_MS_MAX = 4_000
"""The wait doubles up to this with every silence, so that a controller that is only slow is not buried."""

LANE = "isr-proposals"


@dataclass(frozen=True, slots=True)
class _Waiting:
    partition: Partition
    proposal: ProposeIsr


Batch = dict[TopicPartition, _Waiting]
"""Proposals that travel together."""


class IsrProposalSender:
    """Sends proposals of all partitions of this broker, one request after the other."""

    def __init__(
        self,
        broker_id: BrokerId,
        broker_epoch: Callable[[], BrokerEpoch],
        link: ControllerLink,
        find_partition: Callable[[TopicPartition], Partition | None],
    ) -> None:
        self._link = link
        self._condition = threading.Condition()
        self._queue = ProposalQueue(broker_id, broker_epoch, find_partition)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="isr-proposals", daemon=True)

    @property
    def shrinks(self) -> int:
        return self._queue.shrinks

    @property
    def expands(self) -> int:
        return self._queue.expands

    def start(self) -> None:
        self._thread.start()

    def propose(self, topic_partition: TopicPartition, proposal: ProposeIsr) -> None:
        with self._condition:
            self._queue.put(topic_partition, proposal)
            self._condition.notify()

    def close(self) -> None:
        """Stop; close the controller link first, so that a call in flight ends."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._closed or self._queue)
                if self._closed:
                    return
                batch = self._queue.take_all()
            generation = self._link.generation
            again = self._try(batch)
            if again:
                with self._condition:
                    self._queue.put_back(again)
                if self._link.wait_for_change(generation, RETRY_MS) != generation:
                    self._queue.on_new_controller()

    def _try(self, batch: Batch) -> Batch:
        try:
            return self._send(batch)
        except Exception:
            # Without this thread no ISR of this broker would ever change again.
            logger.exception("ISR proposals failed and are sent again")
            return batch

    def _send(self, batch: Batch) -> Batch:
        """Send and hand out the answers; what must be sent again."""
        try:
            response = self._link.call(
                self._queue.request(batch), timeout_ms=self._queue.answer_ms, lane=LANE
            )
        except (OSError, WireError) as error:
            self._queue.on_failure(error)
            logger.info("ISR proposals did not reach the controller and are sent again: %s", error)
            return batch
        return self._queue.on_response(batch, response)


class ProposalQueue:
    """The proposals of one broker's partitions; a newer one of a partition replaces the older. No thread, no
    lock: whoever waits for the controller decides how.
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
        """What has gathered."""
        batch, self._waiting = self._waiting, {}
        return batch

    def put_back(self, batch: Batch) -> None:
        """Send these again, unless there are newer ones by now."""
        self._waiting = {**batch, **self._waiting}

    def on_failure(self, error: Exception) -> None:
        """A request brought no answer; its batch is to be sent again."""
        if isinstance(error, TimeoutError):
            self.answer_ms = min(2 * self.answer_ms, ANSWER_MS_MAX)

    def on_new_controller(self) -> None:
        self.answer_ms = ANSWER_MS

    def on_response(self, batch: Batch, response: AlterPartitionResponse) -> Batch:
        """Hand out the answers; what must be sent again."""
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
        """Tell each partition its answer; those without one that settles it come back."""
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
