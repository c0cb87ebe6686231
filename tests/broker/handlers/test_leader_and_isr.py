"""LeaderAndIsr requests for names that no topic can have."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.control.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)


@pytest.mark.parametrize(
    ("name", "partition"), [("../outside", 0), ("x" * 300, 0), ("a\x00b", 0), ("", 0), ("t", -1)]
)
def test_a_name_that_no_topic_can_have_makes_no_directory_and_harms_no_other(
    broker, tmp_path, name, partition
):
    before = sorted(tmp_path.rglob("*"))
    state = LeaderAndIsrPartitionState(
        partition_index=partition, controller_epoch=1, leader=1, leader_epoch=0, isr=[1], partition_epoch=0,
        replicas=[1],
    )  # fmt: skip
    topic = LeaderAndIsrTopicState(topic_name=name, partition_states=[state])
    response = broker.call(
        LeaderAndIsrRequest(
            controller_id=-1, controller_epoch=1, broker_epoch=broker.server.node.epoch, topic_states=[topic]
        )
    )
    answer = response.topics[0].partition_errors[0]
    assert answer.error_code is ErrorCode.invalid_topic_exception
    assert sorted(tmp_path.rglob("*")) == before
    broker.lead()
    assert broker.produce(b"a").error_code is ErrorCode.none
