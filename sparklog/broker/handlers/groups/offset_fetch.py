"""OffsetFetch: the committed offsets of groups.

- Version 8 and later name several groups, with an error for each.
- Versions 2 to 7 name one group, with one error for the group.
- Versions 0 and 1 have no error of the group: each partition has it.
- Version 0, which read offsets from ZooKeeper, says UNKNOWN_TOPIC_OR_PARTITION for a partition without a
  committed offset. Later versions say offset -1 without an error, also for partitions that do not exist.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, Protocol

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import ask, ask_coordinator_of_each
from sparklog.core.group.requests import OffsetFetch
from sparklog.core.group.responses import FetchedOffset, OffsetFetchAnswer
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_OFFSET, TopicPartition
from sparklog.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

GROUP_ERROR_FROM: Final = 2
SEVERAL_GROUPS_FROM: Final = 8


class AskedTopic(Protocol):
    """A topic of a request, of any version."""

    name: str
    partition_indexes: list[int]


def handle(call: Call, request: OffsetFetchRequest) -> None:
    if call.version >= SEVERAL_GROUPS_FROM:
        fetches = [
            _fetch(group.group_id, group.topics, require_stable=request.require_stable)
            for group in request.groups
        ]
        ask_coordinator_of_each(call, fetches, lambda responses: _response_by_group(fetches, responses))
        return
    fetch = _fetch(request.group_id, request.topics, require_stable=request.require_stable)
    ask(call, fetch, lambda fetched: _response_of_one(call, fetch, fetched))


def _fetch(group_id: str, topics: Iterable[AskedTopic] | None, *, require_stable: bool) -> OffsetFetch:
    """Each partition once, also if the request repeats it."""
    if topics is None:
        return OffsetFetch(group_id=group_id, topic_partitions=None, require_stable=require_stable)
    asked = [TopicPartition(topic.name, index) for topic in topics for index in topic.partition_indexes]
    return OffsetFetch(
        group_id=group_id, topic_partitions=tuple(dict.fromkeys(asked)), require_stable=require_stable
    )


def _response_by_group(fetches: list[OffsetFetch], responses: list[OffsetFetchAnswer]) -> OffsetFetchResponse:
    groups = [
        OffsetFetchResponseGroup(
            group_id=fetch.group_id,
            error_code=response.error,
            topics=_topics(
                response.offsets if response.error is ErrorCode.none else (),
                OffsetFetchResponseTopics,
                OffsetFetchResponsePartitions,
            ),
        )
        for fetch, response in zip(fetches, responses, strict=True)
    ]
    return OffsetFetchResponse(groups=groups)


def _response_of_one(call: Call, fetch: OffsetFetch, fetched: OffsetFetchAnswer) -> OffsetFetchResponse:
    offsets = fetched.offsets
    if fetched.error is not ErrorCode.none:
        if call.version >= GROUP_ERROR_FROM:
            return OffsetFetchResponse(error_code=fetched.error)
        offsets = tuple(FetchedOffset(one, error=fetched.error) for one in fetch.topic_partitions or ())
    known = [replace(one, error=_error(call, one)) for one in offsets]
    return OffsetFetchResponse(topics=_topics(known, OffsetFetchResponseTopic, OffsetFetchResponsePartition))


def _topics(
    offsets: Iterable[FetchedOffset], topic_type: Callable[..., Any], partition_type: Callable[..., Any]
) -> list[Any]:
    """``offsets`` by topic, in the types that the request's version calls for; their fields are the same."""
    topics: dict[str, Any] = {}
    for one in offsets:
        name, number = one.topic_partition
        topics.setdefault(name, topic_type(name=name)).partitions.append(
            partition_type(
                partition_index=number,
                committed_offset=one.offset,
                committed_leader_epoch=one.leader_epoch,
                metadata=one.metadata,
                error_code=one.error,
            )
        )
    return list(topics.values())


def _error(call: Call, fetched: FetchedOffset) -> ErrorCode:
    is_absent = fetched.error is ErrorCode.none and fetched.offset == NO_OFFSET
    return ErrorCode.unknown_topic_or_partition if is_absent and call.version == 0 else fetched.error
