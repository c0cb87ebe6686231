"""A broker that stops asks for other leaders, question by question."""

import pytest

from sparklog.broker.life.controlled_shutdown import RETRY_MS, TIMEOUT_MS, move_leaders_away
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.loops import CallController, Pause, go_on
from sparklog.wire.messages.control.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

REMAINS = ControlledShutdownResponse(
    remaining_partitions=[RemainingPartition(topic_name="quakes", partition_index=0)]
)


@pytest.fixture
def released():
    return []


@pytest.fixture
def loop(released):
    return move_leaders_away(
        BrokerId(1), BrokerEpoch(10), attempts_max=3, on_released=lambda: released.append("yes")
    )


def test_the_controller_is_asked_until_no_partition_remains(loop, released) -> None:
    request = ControlledShutdownRequest(broker_id=1, broker_epoch=10)
    assert go_on(loop) == CallController(request, TIMEOUT_MS)
    assert go_on(loop, REMAINS) == Pause(RETRY_MS)
    assert go_on(loop).message == request
    assert go_on(loop, ControlledShutdownResponse()) is None
    assert released == ["yes"]


def test_a_refusal_is_no_release(loop, released) -> None:
    go_on(loop)
    refusal = ControlledShutdownResponse(error_code=ErrorCode.stale_broker_epoch)
    assert go_on(loop, refusal) == Pause(RETRY_MS)
    assert released == []


def test_the_broker_stops_after_the_last_attempt_without_another_pause(loop, released) -> None:
    for _ in range(2):
        go_on(loop)
        go_on(loop, REMAINS)
    go_on(loop)
    assert go_on(loop, REMAINS) is None
    assert released == []


def test_the_broker_stops_at_once_when_no_controller_answers(loop, released) -> None:
    go_on(loop)
    assert go_on(loop, error=TimeoutError("silent")) is None
    assert released == []
