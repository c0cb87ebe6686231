"""What a client is answered when a coordinator's write has failed (Kafka's GroupMetadataManager)."""

from collections.abc import Mapping
from typing import Final

from sparklog.core.coordinator.actions import InDoubt, Refused, WriteOutcome
from sparklog.model.errors import ErrorCode

_OF_APPENDS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
}
_OF_COMMITS: Final[Mapping[ErrorCode, ErrorCode]] = {
    **_OF_APPENDS,
    ErrorCode.message_too_large: ErrorCode.invalid_commit_offset_size,
    ErrorCode.record_list_too_large: ErrorCode.invalid_commit_offset_size,
    ErrorCode.invalid_fetch_size: ErrorCode.invalid_commit_offset_size,
}
_OF_GENERATIONS: Final[Mapping[ErrorCode, ErrorCode]] = {
    **_OF_APPENDS,
    ErrorCode.request_timed_out: ErrorCode.rebalance_in_progress,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
    ErrorCode.invalid_fetch_size: ErrorCode.unknown_server_error,
}
_OF_REMOVALS: Final[Mapping[ErrorCode, ErrorCode]] = {
    **_OF_APPENDS,
    # admin clients try again after this code, and give up after REQUEST_TIMED_OUT
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
}


def _error_of(outcome: WriteOutcome) -> ErrorCode:
    return outcome.error if isinstance(outcome, Refused | InDoubt) else ErrorCode.none


def commit_error(outcome: WriteOutcome) -> ErrorCode:
    """The error of committed offsets (``maybeConvertOffsetCommitError``)."""
    error = _error_of(outcome)
    return _OF_COMMITS.get(error, error)


def generation_error(outcome: WriteOutcome) -> ErrorCode:
    """The error of a generation or of a static member that was to be written (``storeGroup``)."""
    error = _error_of(outcome)
    return _OF_GENERATIONS.get(error, error)


def removal_error(outcome: WriteOutcome) -> ErrorCode:
    """The error of tombstones. Kafka does not wait for them, and so has no such error."""
    error = _error_of(outcome)
    return _OF_REMOVALS.get(error, error)
