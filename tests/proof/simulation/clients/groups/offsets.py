"""OffsetCommit and OffsetFetch of simulated clients, and what the record of a run keeps of them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from histories.model import Commit, CommittedRead
from simulation.recorder import Recorder
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from sparklog.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

NEVER_WRITTEN: Final = frozenset(
    {
        ErrorCode.illegal_generation,
        ErrorCode.unknown_member_id,
        ErrorCode.fenced_instance_id,
        ErrorCode.rebalance_in_progress,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.group_id_not_found,
    }
)
"""After these a commit was not written. After others it may have been."""

Positions = Mapping[TopicPartition, int]


class Committer(NamedTuple):
    """In whose name offsets are committed; outside a group's generations the generation is -1."""

    generation: int
    member_id: str
    instance_id: str | None


OUTSIDER: Final = Committer(-1, "", None)


def commit_request(
    group_id: str, committer: Committer, value: str, positions: Positions
) -> OffsetCommitRequest:
    """``value`` names the commit among all of a run: it is the metadata of every offset."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (topic, number), offset in positions.items():
        topics.setdefault(topic, OffsetCommitRequestTopic(name=topic)).partitions.append(
            OffsetCommitRequestPartition(
                partition_index=number, committed_offset=offset, committed_metadata=value
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=committer.generation,
        member_id=committer.member_id,
        group_instance_id=committer.instance_id,
        topics=list(topics.values()),
    )


def fetch_request(group_id: str, partitions: Iterable[TopicPartition]) -> OffsetFetchRequest:
    topics: dict[str, OffsetFetchRequestTopics] = {}
    for topic, number in partitions:
        topics.setdefault(topic, OffsetFetchRequestTopics(name=topic)).partition_indexes.append(number)
    asked = OffsetFetchRequestGroup(group_id=group_id, topics=list(topics.values()))
    return OffsetFetchRequest(groups=[asked], require_stable=True)


class CommitOutcome(NamedTuple):
    """``error`` is the first partition's that has one."""

    error: ErrorCode
    written: frozenset[TopicPartition]


def begin_commit(
    recorder: Recorder, process: str, group_id: str, value: str, positions: Positions
) -> list[Commit]:
    commits = [
        Commit(process, group_id, *topic_partition, value, recorder.now_ns) for topic_partition in positions
    ]
    recorder.commits += commits
    return commits


def end_commit(recorder: Recorder, commits: list[Commit], response: OffsetCommitResponse) -> CommitOutcome:
    """Note in the record what became of a commit."""
    errors = {
        (topic.name, one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
    }
    written = set()
    for commit in commits:
        error = errors[commit.topic, commit.partition]
        if error is ErrorCode.none:
            commit.outcome = "ok"
            written.add(TopicPartition(commit.topic, commit.partition))
        else:
            commit.outcome = "fail" if error in NEVER_WRITTEN else "info"
        commit.error, commit.done_ns = error.name, recorder.now_ns
    failed = [error for error in errors.values() if error is not ErrorCode.none]
    return CommitOutcome(failed[0] if failed else ErrorCode.none, frozenset(written))


class FoundOffset(NamedTuple):
    """``value`` is None where nothing is committed."""

    offset: int
    value: str | None


class Fetched(NamedTuple):
    """``offsets`` has those partitions that were answered; the first error is that of the group, if any."""

    error: ErrorCode
    offsets: dict[TopicPartition, FoundOffset]


def fetched_in(response: OffsetFetchResponse) -> Fetched:
    (group,) = response.groups
    if group.error_code is not ErrorCode.none:
        return Fetched(group.error_code, {})
    partitions = [(topic.name, one) for topic in group.topics for one in topic.partitions]
    errors = [one.error_code for _, one in partitions if one.error_code is not ErrorCode.none]
    offsets = {
        TopicPartition(name, one.partition_index): FoundOffset(
            one.committed_offset, one.metadata if one.committed_offset >= 0 else None
        )
        for name, one in partitions
        if one.error_code is ErrorCode.none
    }
    return Fetched(errors[0] if errors else ErrorCode.none, offsets)


def note_reads(recorder: Recorder, process: str, group_id: str, invoked_ns: int, fetched: Fetched) -> None:
    """Keep what an OffsetFetch found."""
    recorder.committed += _reads(recorder, process, group_id, invoked_ns, fetched)


def _reads(
    recorder: Recorder, process: str, group_id: str, invoked_ns: int, fetched: Fetched
) -> Iterator[CommittedRead]:
    for (topic, number), found in fetched.offsets.items():
        yield CommittedRead(process, group_id, topic, number, found.value, invoked_ns, recorder.now_ns)
