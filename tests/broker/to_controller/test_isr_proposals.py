"""Proposals on their way: sent until somebody settles them, whatever happens on the way."""

import threading
import uuid

import pytest

from sparklog.broker.to_controller.isr_proposals import (
    ANSWER_MS,
    ANSWER_MS_MAX,
    IsrProposalSender,
    ProposalQueue,
)
from sparklog.core.replication.actions import ProposeIsr
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.wire.messages.control.alter_partition import (
    AlterPartitionPartitionResponse,
    AlterPartitionResponse,
    AlterPartitionTopicResponse,
)

TP = TopicPartition("quakes", 0)
TOPIC_ID = uuid.UUID(int=7)
PROPOSAL = ProposeIsr(1, LeaderEpoch(3), 4, ((BrokerId(1), BrokerEpoch(10)),))


class Link:
    """A controller that answers what it was told to, one after the other."""

    generation = 0

    def __init__(self, answers) -> None:
        self.answers, self.requests, self.timeouts_ms = list(answers), [], []

    def call(self, message, *, timeout_ms, lane):
        self.requests.append(message)
        self.timeouts_ms.append(timeout_ms)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait_for_change(self, generation, timeout_ms):
        return generation


class Partition:
    topic_id, topic_partition = TOPIC_ID, TP

    def __init__(self) -> None:
        self.replies, self.told, self.grows_by = [], threading.Event(), 0

    def on_isr_reply(self, leader_epoch, proposal, reply) -> int:
        self.replies.append((leader_epoch, proposal, reply.error))
        if reply.error is ErrorCode.none:
            self.told.set()
        return self.grows_by


def answer(error):
    partition = AlterPartitionPartitionResponse(partition_index=0, error_code=error)
    return AlterPartitionResponse(
        topics=[AlterPartitionTopicResponse(topic_id=TOPIC_ID, partitions=[partition])]
    )


@pytest.mark.parametrize(
    "first",
    [
        answer(ErrorCode.not_controller),
        answer(ErrorCode.unknown_server_error),
        AlterPartitionResponse(topics=[]),
        AlterPartitionResponse(error_code=ErrorCode.stale_broker_epoch),
        ConnectionError("the controller changed"),
        TimeoutError("the controller is silent"),
        KeyError("a bug"),
    ],
)
def test_a_proposal_that_nobody_settled_is_sent_again(first) -> None:
    link, partition = Link([first, answer(ErrorCode.none)]), Partition()
    sender = IsrProposalSender(BrokerId(1), lambda: BrokerEpoch(10), link, lambda _: partition)
    sender.start()
    sender.propose(TP, PROPOSAL)
    assert partition.told.wait(5)
    sender.close()
    assert partition.replies[-1] == (3, 1, ErrorCode.none)
    assert len(link.requests) == 2
    assert link.timeouts_ms[0] == ANSWER_MS <= 1_000


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.invalid_request,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.ineligible_replica,
    ],
)
def test_a_proposal_that_was_refused_for_good_is_not_sent_again(error) -> None:
    """[33] Something newer is on its way to the leader, or what it asks for cannot be."""
    partition = Partition()
    queue = ProposalQueue(BrokerId(1), lambda: BrokerEpoch(10), lambda _: partition)
    queue.put(TP, PROPOSAL)
    assert queue.on_response(queue.take_all(), answer(error)) == {}
    assert partition.replies == [(3, 1, error)]


@pytest.mark.parametrize(("grows_by", "counted"), [(1, (0, 1)), (-2, (1, 0)), (0, (0, 0))])
def test_isrs_that_shrank_and_grew_are_counted(grows_by, counted) -> None:
    partition = Partition()
    partition.grows_by = grows_by
    queue = ProposalQueue(BrokerId(1), lambda: BrokerEpoch(10), lambda _: partition)
    queue.put(TP, PROPOSAL)
    queue.on_response(queue.take_all(), answer(ErrorCode.none))
    assert (queue.shrinks, queue.expands) == counted


def test_a_silent_controller_is_asked_again_with_growing_pauses() -> None:
    queue = ProposalQueue(BrokerId(1), lambda: BrokerEpoch(10), lambda _: None)
    for _ in range(10):
        queue.on_failure(TimeoutError("silent"))
    assert queue.answer_ms == ANSWER_MS_MAX
    queue.on_new_controller()
    assert queue.answer_ms == ANSWER_MS
    queue.on_failure(ConnectionRefusedError("nobody listens"))
    assert queue.answer_ms == ANSWER_MS
    queue.on_failure(TimeoutError("silent"))
    queue.on_response({}, answer(ErrorCode.none))
    assert queue.answer_ms == ANSWER_MS
