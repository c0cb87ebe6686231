"""A driver's decision over an atomic write. Both may be asked for again, by this driver or another."""

import enum
from collections.abc import Iterable

from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable
from sparklog.client.transactions.writes.coordinator import WriteCoordinator, check_served, is_end_over
from sparklog.client.transactions.writes.errors import WriteFailed
from sparklog.client.transactions.writes.identity import WriteIdentity
from sparklog.model.errors import KafkaError
from sparklog.model.write_outcomes import EndOutcome
from sparklog.wire.messages.writes.end_write import EndWriteRequest, EndWriteResponse


class Commit(enum.Enum):
    """What a commit has found."""

    now = "now"
    before = "before"
    """The version, or a later one, was committed already."""


def commit_write(
    cluster: ClusterClient, write: WriteIdentity, winners: Iterable[int], *, timeout_ms: int
) -> Commit:
    """Make the rows of the members with these producer ids visible, and no others.

    Returns once they can be read in every partition. WriteFailed says whether the write is committed.
    """
    try:
        response = _end(cluster, write, list(winners), is_commit=True, timeout_ms=timeout_ms)
    except (KafkaError, ClusterUnavailable) as error:
        raise WriteFailed(
            f"nobody knows yet whether {write} is committed: its coordinator gave no answer within "
            f"{timeout_ms} ms ({error}). All of it is visible, or nothing; writing it again with the same "
            "version writes it once"
        ) from error
    match response.outcome:
        case EndOutcome.COMMITTED:
            return Commit.now
        case EndOutcome.ALREADY_COMMITTED:
            return Commit.before
        case EndOutcome.NOT_VISIBLE_YET:
            raise WriteFailed(
                f"{write} is committed, but not visible everywhere yet after {timeout_ms} ms: a partition of "
                "it has no leader, or too few replicas. It becomes visible by itself once they are back"
            )
    raise WriteFailed(_reason(write, response, timeout_ms))


def abort_write(cluster: ClusterClient, write: WriteIdentity, *, timeout_ms: int) -> None:
    """Abort what the write's run has written, unless it is committed.

    Raises KafkaError or ClusterUnavailable if its coordinator does not answer; the cluster aborts it later.
    """
    _end(cluster, write, [], is_commit=False, timeout_ms=timeout_ms)


def _end(
    cluster: ClusterClient, write: WriteIdentity, winners: list[int], *, is_commit: bool, timeout_ms: int
) -> EndWriteResponse:
    check_served(cluster)
    request = EndWriteRequest(
        app_id=write.app_id,
        app_version=write.version,
        run=write.run,
        is_commit=is_commit,
        is_plain=write.is_plain,
        winners=winners,
    )
    response: EndWriteResponse = WriteCoordinator(cluster, write).call(
        request, cluster.deadline(timeout_ms), is_end_over
    )
    return response


def _reason(write: WriteIdentity, response: EndWriteResponse, timeout_ms: int) -> str:
    match response.outcome:
        case EndOutcome.OLDER_VERSION:
            return (
                f"{write} is not committed: version {response.app_version} is being written; "
                "nothing of it will be visible"
            )
        case EndOutcome.BEING_ENDED:
            return (
                f"nobody knows yet whether {write} is committed: another end of a write of its app was not "
                f"carried out within {timeout_ms} ms; is a partition of its topics without a leader? Writing "
                "it again with the same version writes it once"
            )
        case EndOutcome.NOT_OPEN:
            return (
                f"{write} is not committed, and nothing of it is visible: it was aborted, by another run or "
                f"after {write.timeout_ms} ms without a sign of life (kafka.transaction.timeout.ms). "
                "Run it again"
            )
        case EndOutcome.LOST_MEMBER:
            return (
                f"{write} is not committed, and nothing of it is visible: a task (producer id "
                f"{response.producer_id}) was taken for dead after it had written. Run it again"
            )
        case EndOutcome.LOST_TOPIC:
            return (
                f"{write} is not committed, and nothing of it is visible: topic {response.topic!r} was "
                "deleted while it was written to"
            )
    return f"{write}: outcome {response.outcome}, which this release does not know"
