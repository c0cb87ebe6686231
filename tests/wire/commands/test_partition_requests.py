"""Requests about partitions as commands, and results as responses."""

import uuid

from sparklog.core.controller.commands.partition_commands import AlterPartitionResult, IsrAnswer
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId
from sparklog.wire.commands import partition_requests

TOPIC = uuid.uuid5(uuid.NAMESPACE_OID, "t")
STATE = PartitionState(leader=BrokerId(1), leader_epoch=4, isr=(1,), replicas=(1, 2, 3), partition_epoch=6)


def test_answers_to_proposals_carry_the_state_or_the_error(answered):
    good = IsrAnswer(TOPIC, 5, ErrorCode.none, STATE)
    bad = IsrAnswer(TOPIC, 6, ErrorCode.ineligible_replica)
    response = answered(
        partition_requests.alter_partition_response(AlterPartitionResult(ErrorCode.none, (good, bad)))
    )
    first, second = response.topics[0].partitions
    assert (first.leader_id, first.leader_epoch, first.isr, first.partition_epoch) == (1, 4, [1], 6)
    assert (second.partition_index, second.error_code) == (6, ErrorCode.ineligible_replica)
