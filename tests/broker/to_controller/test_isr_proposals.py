"""Proposals on their way: sent until somebody settles them, whatever happens on the way."""

import threading
import uuid

import pytest

from sparklog.broker.to_controller.isr_proposals import (
    ANSWER_MS,
    ANSWER_MS_MAX,
    LANE,
    RETRY_MS,
    IsrProposalSender,
    ProposalQueue,
)
from sparklog.core.replication.actions import ProposeIsr
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.loops import Changes, go_on
from sparklog.wire.messages.control.alter_partition import (
    AlterPartitionPartitionResponse,
    AlterPartitionResponse,
    AlterPartitionTopicResponse,
)

TP = TopicPartition("quakes", 0)
TOPIC_ID = uuid.UUID(int=7)
PROPOSAL = ProposeIsr(1, LeaderEpoch(3), 4, ((BrokerId(1), BrokerEpoch(10)),))


class Partition:
    topic_id, topic_partition = TOPIC_ID, TP

    def __init__(self) -> None:
        self.replies, self.grows_by = [], 0

    def on_isr_reply(self, leader_epoch, proposal, reply) -> int:
        self.replies.append((leader_epoch, proposal, reply.error))
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
    ],
)
def test_a_proposal_that_nobody_settled_is_sent_again(first) -> None:
    sender, partition = new_sender()
    loop = sender.loop()
    sender.propose(TP, PROPOSAL)
    request = go_on(loop)
    assert (request.timeout_ms, request.lane) == (ANSWER_MS, LANE)
    pause = go_on(loop, error=first) if isinstance(first, Exception) else go_on(loop, first)
    assert pause.timeout_ms == RETRY_MS
    assert go_on(loop, False).message == request.message
    assert go_on(loop, answer(ErrorCode.none)).timeout_ms is None, "nothing waits"
    assert partition.replies[-1] == (3, 1, ErrorCode.none)


def test_a_proposal_survives_a_bug_in_the_handling_of_its_answer() -> None:
    sender, _ = new_sender()
    loop = sender.loop()
    sender.propose(TP, PROPOSAL)
    request = go_on(loop)
    with pytest.raises(AttributeError):
        go_on(loop, "no response at all")
    assert go_on(sender.loop()).message == request.message


def test_another_controller_is_asked_at_once_and_given_the_shortest_time() -> None:
    changes = Changes()
    sender, _ = new_sender(changes)
    loop = sender.loop()
    sender.propose(TP, PROPOSAL)
    go_on(loop)
    pause = go_on(loop, error=TimeoutError("silent"))
    changes.happened()
    assert pause.signal.is_given
    assert go_on(loop, pause.signal.take()).timeout_ms == ANSWER_MS


def new_sender(changes=None):
    partition = Partition()
    return IsrProposalSender(
        BrokerId(1), lambda: BrokerEpoch(10), lambda _: partition, changes or Changes(), threading.Lock()
    ), partition


@pytest.mark.scenario(
    "S33", "A finally refused change is not resent; the larger ISR stays in force until a new role."
)
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
    """Something newer is on its way to the leader, or what it asks for cannot be."""
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
