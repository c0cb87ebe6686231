"""Proposals on their way: sent until somebody settles them, whatever happens on the way."""

import threading
import uuid

import pytest

from sparklog.broker.isr_proposals import IsrProposalSender
from sparklog.core.replication.actions import ProposeIsr
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.wire.messages.alter_partition import (
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
        self.answers, self.requests = list(answers), []

    def call(self, message, *, timeout_ms):
        self.requests.append(message)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait_for_change(self, generation, timeout_ms):
        return generation


class Partition:
    topic_id = TOPIC_ID

    def __init__(self) -> None:
        self.replies, self.told = [], threading.Event()

    def on_isr_reply(self, leader_epoch, proposal, reply) -> None:
        self.replies.append((leader_epoch, proposal, reply.error))
        self.told.set()


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
    assert partition.replies == [(3, 1, ErrorCode.none)]
    assert len(link.requests) == 2
