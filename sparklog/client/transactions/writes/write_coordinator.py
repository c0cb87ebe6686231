"""Calls to the coordinator of one app id, over moves of the coordinator, until a deadline."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sparklog.client.calls.retry import Deadline
from sparklog.client.cluster import ClusterClient
from sparklog.client.coordinator import Coordinator
from sparklog.client.errors import ClusterUnavailable
from sparklog.client.transactions.writes.failed_writes import WriteFailed
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.write_outcomes import EndOutcome, OpenOutcome
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY
from sparklog.wire.messages.writes.open_write import OpenWriteRequest

FIRST_RELEASE: Final = "0.1.0"
"""The first one whose brokers know atomic writes."""


def check_served(cluster: ClusterClient) -> None:
    """WriteFailed if the brokers do not know atomic writes; ClusterUnavailable if none answers."""
    try:
        cluster.require(OpenWriteRequest.API_KEY)
    except KafkaError as error:
        raise WriteFailed(
            f"nothing is written: the brokers do not know atomic writes ({error.message}). They are of a "
            f"release before sparklog {FIRST_RELEASE}, or not sparklog's. Upgrade all of them, or write with "
            "option delivery=at-least-once"
        ) from error


class WriteCoordinator:
    """For one thread."""

    def __init__(self, cluster: ClusterClient, write: WriteIdentity) -> None:
        self._cluster = cluster
        self._write = write
        self._coordinator = Coordinator(cluster, write.app_id, TRANSACTION_KEY)

    def call(self, request: Any, deadline: Deadline, is_over: Callable[[Any], bool]) -> Any:
        """The first answer without an error and with an outcome that ``is_over``. Others are asked for again,
        until the deadline; the last one is returned then.
        """
        backoff = self._cluster.backoff(deadline)
        while True:
            response = self._coordinator.call(
                request, lambda answer: answer.error_code, timeout_ms=deadline.remaining_ms
            )
            if response.error_code is not ErrorCode.none:
                raise self._refused(response.error_code)
            if is_over(response) or deadline.is_over:
                return response
            backoff.pause(partial(ClusterUnavailable, f"{self._write}: no final answer"))

    def _refused(self, code: ErrorCode) -> SparklogError:
        if code is ErrorCode.invalid_transaction_timeout:
            return WriteFailed(
                f"kafka.transaction.timeout.ms={self._write.timeout_ms} is more than the brokers' "
                "transaction.max.timeout.ms; set less"
            )
        return KafkaError(code, f"{self._write} at {self._cluster.bootstrap_servers}")


def is_open_over(response: Any) -> bool:
    return bool(response.outcome != OpenOutcome.BEING_ENDED)


def is_end_over(response: Any) -> bool:
    return response.outcome not in (EndOutcome.BEING_ENDED, EndOutcome.NOT_VISIBLE_YET)
