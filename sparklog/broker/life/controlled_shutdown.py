"""Before a broker stops, another replica takes over each partition that it leads."""

import logging
from collections.abc import Callable
from typing import Final

from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.loops import CallController, Loop, Pause
from sparklog.wire.messages.control.controlled_shutdown import ControlledShutdownRequest

logger: Final = logging.getLogger(__name__)

RETRY_MS: Final = 200
"""Pause between two attempts while partitions remain that no other replica can lead yet."""

TIMEOUT_MS: Final = 3_000
"""Longest wait for the controller: where a whole cluster stops there may be none any more."""


def move_leaders_away(
    broker_id: BrokerId,
    broker_epoch: BrokerEpoch,
    *,
    attempts_max: int,
    on_released: Callable[[], None] = lambda: None,
) -> Loop:
    """Ask the controller for other leaders, until this broker leads no partition that another could lead.

    ``on_released`` is called when the controller says so. The broker stops in any case: also if no controller
    answers, or if partitions remain after ``attempts_max`` requests.
    """
    request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch)
    for attempt in range(1, attempts_max + 1):
        try:
            response = yield CallController(request, TIMEOUT_MS)
        except (OSError, SparklogError) as error:
            logger.info("stopping without moving leaders, because no controller answers: %s", error)
            return
        remaining = len(response.remaining_partitions)
        if response.error_code is ErrorCode.none and not remaining:
            on_released()
            return
        name = response.error_code.name
        logger.info("controlled shutdown, attempt %d: %s, %d partitions remain", attempt, name, remaining)
        if attempt < attempts_max:
            yield Pause(RETRY_MS)
