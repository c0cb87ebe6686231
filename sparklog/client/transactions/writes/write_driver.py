"""A driver's decision over an atomic write. Both may be asked for again, by this driver or another.

A write that was once said to be committed stays so, even if its coordinator does not answer any more.
"""

import enum
from collections.abc import Iterable
from typing import Final

from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable
from sparklog.client.transactions.writes.failed_writes import WriteFailed
from sparklog.client.transactions.writes.write_coordinator import WriteCoordinator, check_served, is_end_over
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.model.errors import KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.model.write_outcomes import EndOutcome
from sparklog.wire.messages.writes.end_write import EndWriteRequest, EndWriteResponse, MissingTopic

NAMED_PARTITIONS_MAX: Final = 10


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
                f"{write} is committed, but not visible everywhere yet after {timeout_ms} ms: "
                f"{_where(response.missing)}. Nothing is lost; do not write it again"
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
    committed: list[EndWriteResponse] = []

    def is_over(response: EndWriteResponse) -> bool:
        if response.outcome == EndOutcome.NOT_VISIBLE_YET:
            committed.append(response)
        return is_end_over(response)

    try:
        last: EndWriteResponse = WriteCoordinator(cluster, write).call(
            request, cluster.deadline(timeout_ms), is_over
        )
    except (KafkaError, ClusterUnavailable):
        if not committed:
            raise
        return committed[-1]
    return last


def _where(missing: Iterable[MissingTopic]) -> str:
    """Which partitions lack a marker, and when they get it."""
    names = [str(TopicPartition(topic.name, number)) for topic in missing for number in topic.partitions]
    if not names:
        return "its coordinator has not noted yet that every partition shows it, and does so by itself"
    more = len(names) - NAMED_PARTITIONS_MAX
    named = ", ".join(names[:NAMED_PARTITIONS_MAX]) + (f" and {more} more" if more > 0 else "")
    is_one = len(names) == 1
    return (
        f"{named} {'does' if is_one else 'do'} not show it, for want of a leader or of enough replicas, and "
        f"{'shows' if is_one else 'show'} it by itself as soon as they are back"
    )


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
