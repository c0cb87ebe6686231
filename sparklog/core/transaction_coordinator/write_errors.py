"""What a client is answered when the write of a transaction's state has failed (Kafka's
TransactionStateManager).
"""

from collections.abc import Mapping
from typing import Final

from sparklog.core.coordinator.actions import WriteOutcome, Written
from sparklog.model.errors import ErrorCode

_OF_APPENDS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
}


def write_error(outcome: WriteOutcome) -> ErrorCode:
    if isinstance(outcome, Written):
        return ErrorCode.none
    return _OF_APPENDS.get(outcome.error, ErrorCode.unknown_server_error)
