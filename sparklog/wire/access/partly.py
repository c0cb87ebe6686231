"""Requests whose rights depend on each other, or of which a part is answered in a way of its own."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId
from sparklog.wire.access.cases import CASES, FIRST_BATCHED_VERSION
from sparklog.wire.access.mirror import ERRORS, mirrored, refused
from sparklog.wire.access.question import Admitted, Denied, Finish, Question, Verdict
from sparklog.wire.access.seen_reports import broker_report, cluster_report
from sparklog.wire.messages.admin.create_topics import CreateTopicsResponse
from sparklog.wire.messages.admin.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from sparklog.wire.messages.data.produce import ProduceResponse, ProduceTopicResponse
from sparklog.wire.messages.discovery.find_coordinator import (
    Coordinator,
    FindCoordinatorResponse,
)
from sparklog.wire.messages.discovery.metadata import MetadataResponse, MetadataResponseTopic
from sparklog.wire.messages.groups.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from sparklog.wire.messages.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from sparklog.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)

FIRST_VERSION_OF_NULL_NAMES: Final = 12
"""The first version of Metadata in which a name may be null."""

NOT_ALLOWED: Final = ErrorCode.topic_authorization_failed


def _produce(asked: Question) -> Verdict:
    """Topics that may not be written to are answered beside the others. A producer that wants no answer loses
    its connection, as for each other error.
    """
    request, topics = asked.request, asked.request.topic_data
    writable = _allowed(asked, AclOperation.write, (topic.name for topic in topics))
    denied = [topic for topic in topics if topic.name not in writable]
    if not denied:
        return Admitted(request)
    answers = [mirrored(topic, ProduceTopicResponse, NOT_ALLOWED) for topic in denied]

    def finish(response: ProduceResponse) -> ProduceResponse:
        response.responses += answers
        return response

    left = [topic for topic in topics if topic.name in writable]
    if not left or request.acks == 0:
        return Denied(ProduceResponse(responses=answers))
    return Admitted(replace(request, topic_data=left), finish)


def _allowed(asked: Question, operation: AclOperation, topics: Iterable[str]) -> set[str]:
    """Those of ``topics`` that have the right; what lacks is reported once for each."""
    return {name for name in set(topics) if asked.access.allows(operation, ResourceType.topic, name)}


def _metadata(asked: Question) -> Verdict:
    """All topics are those that the requester may see. A topic that is named by its id keeps its name."""
    request = asked.request
    if request.topics is None or (asked.version == 0 and not request.topics):

        def hide(response: MetadataResponse) -> MetadataResponse:
            names = [topic.name for topic in response.topics if topic.name is not None]
            visible = asked.access.filter(AclOperation.describe, ResourceType.topic, names)
            response.topics = [topic for topic in response.topics if topic.name in visible]
            return response

        return Admitted(request, hide)
    left, answers = [], []
    for topic in request.topics:
        by_id = topic.name is None or topic.topic_id != NO_TOPIC_ID
        name = asked.topic_name(topic.topic_id) if by_id else topic.name
        if name is None or asked.access.allows(AclOperation.describe, ResourceType.topic, name):
            left.append(topic)
        elif by_id:
            nameless = None if asked.version >= FIRST_VERSION_OF_NULL_NAMES else ""
            answers.append(
                MetadataResponseTopic(name=nameless, topic_id=topic.topic_id, error_code=NOT_ALLOWED)
            )
        else:
            answers.append(MetadataResponseTopic(name=name, error_code=NOT_ALLOWED))
    if not answers:
        return Admitted(request)

    def finish(response: MetadataResponse) -> MetadataResponse:
        response.topics += answers
        return response

    # No topics at all stand for every topic in version 0.
    if not left and asked.version == 0:
        return Denied(MetadataResponse(topics=answers))
    return Admitted(replace(request, topics=left), finish)


def _find_coordinator(asked: Question) -> Verdict:
    request = asked.request
    is_batched = asked.version >= FIRST_VERSION_OF_KEYS
    keys = request.coordinator_keys if is_batched else [request.key]
    errors: dict[str, ErrorCode] = {}
    for key in dict.fromkeys(keys):
        for right in asked.api.rights:
            if CASES[right.condition](asked, key) and not asked.access.has(right, key):
                errors[key] = ERRORS[right.resource]
    if not errors:
        return Admitted(request)
    if not is_batched:
        return Denied(refused(request, errors[request.key]))
    answers = [
        Coordinator(key=key, error_code=errors[key], error_message="") for key in keys if key in errors
    ]

    def finish(response: FindCoordinatorResponse) -> FindCoordinatorResponse:
        response.coordinators += answers
        return response

    return Admitted(replace(request, coordinator_keys=[key for key in keys if key not in errors]), finish)


FIRST_VERSION_OF_KEYS: Final = 4
"""The first version of FindCoordinator with several keys at once."""

GROUP_ERROR_FROM: Final = 2
SEVERAL_GROUPS_FROM: Final = 8


def _offset_fetch(asked: Question) -> Verdict:
    request = asked.request
    if asked.version >= SEVERAL_GROUPS_FROM:
        return _offset_fetch_of_groups(asked)
    error = ErrorCode.group_authorization_failed
    if not asked.access.allows(AclOperation.describe, ResourceType.group, request.group_id):
        if asked.version >= GROUP_ERROR_FROM:
            return Denied(OffsetFetchResponse(error_code=error))
        topics = [mirrored(one, OffsetFetchResponseTopic, error) for one in request.topics or ()]
        return Denied(OffsetFetchResponse(topics=topics))
    left, finish_topics = _split_offsets(asked, request.topics, OffsetFetchResponseTopic)

    def finish(response: OffsetFetchResponse) -> OffsetFetchResponse:
        if response.error_code is ErrorCode.none:
            response.topics = finish_topics(response.topics)
        return response

    return Admitted(replace(request, topics=left), finish)


def _offset_fetch_of_groups(asked: Question) -> Verdict:
    request = asked.request
    left: list[OffsetFetchRequestGroup] = []
    denied: list[OffsetFetchResponseGroup] = []
    finishes: dict[str, Finish] = {}
    for group in request.groups:
        if not asked.access.allows(AclOperation.describe, ResourceType.group, group.group_id):
            error = ErrorCode.group_authorization_failed
            denied.append(OffsetFetchResponseGroup(group_id=group.group_id, error_code=error))
            continue
        topics, finishes[group.group_id] = _split_offsets(asked, group.topics, OffsetFetchResponseTopics)
        left.append(replace(group, topics=topics))

    def finish(response: OffsetFetchResponse) -> OffsetFetchResponse:
        for group in response.groups:
            if group.error_code is ErrorCode.none:
                group.topics = finishes[group.group_id](group.topics)
        response.groups += denied
        return response

    return Admitted(replace(request, groups=left), finish)


def _split_offsets(asked: Question, topics: Any, answer_type: type) -> tuple[Any, Finish]:
    """Topics that are named and may not be seen have an error; of all topics they are left out."""
    if topics is None:

        def hide(answers: list[Any]) -> list[Any]:
            visible = asked.access.filter(
                AclOperation.describe, ResourceType.topic, (one.name for one in answers)
            )
            return [one for one in answers if one.name in visible]

        return None, hide
    allowed = _allowed(asked, AclOperation.describe, (topic.name for topic in topics))
    refusals = [mirrored(one, answer_type, NOT_ALLOWED) for one in topics if one.name not in allowed]
    return [one for one in topics if one.name in allowed], lambda answers: [*answers, *refusals]


def _create_topics(asked: Question) -> Verdict:
    """The settings of a new topic are for those alone who may describe them (KIP-525)."""

    def finish(response: CreateTopicsResponse) -> CreateTopicsResponse:
        for topic in response.topics:
            if topic.error_code is ErrorCode.none and not asked.access.sees(
                AclOperation.describe_configs, ResourceType.topic, topic.name
            ):
                topic.topic_config_error_code = NOT_ALLOWED
                topic.configs = []
                topic.num_partitions = topic.replication_factor = -1
        return response

    return Admitted(asked.request, finish)


def _delete_topics(asked: Question) -> Verdict:
    """The name of a topic that is named by its id is for those alone who may describe it."""
    request, access = asked.request, asked.access
    answers: list[DeletableTopicResult] = []
    names, topics = [], []
    for name in request.topic_names:
        if access.allows(AclOperation.delete, ResourceType.topic, name):
            names.append(name)
        else:
            answers.append(DeletableTopicResult(name=name, error_code=NOT_ALLOWED))
    for topic in request.topics:
        refusal = _refusal_of_deletion(asked, topic.name, topic.topic_id)
        if refusal is None:
            topics.append(topic)
        else:
            answers.append(refusal)

    def finish(response: DeleteTopicsResponse) -> DeleteTopicsResponse:
        response.responses += answers
        return response

    return Admitted(replace(request, topic_names=names, topics=topics), finish if answers else None)


def _refusal_of_deletion(asked: Question, name: str | None, topic_id: TopicId) -> DeletableTopicResult | None:
    by_id = name is None
    if by_id:
        name = asked.topic_name(topic_id)
        if name is None:
            return DeletableTopicResult(topic_id=topic_id, error_code=ErrorCode.unknown_topic_id)
        if not asked.access.allows(AclOperation.describe, ResourceType.topic, name):
            return DeletableTopicResult(topic_id=topic_id, error_code=NOT_ALLOWED)
    if asked.access.allows(AclOperation.delete, ResourceType.topic, name or ""):
        return None
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=NOT_ALLOWED)


def _add_partitions(asked: Question) -> Verdict:
    """All or nothing: beside a topic that may not be written to the others are not attempted."""
    request = asked.request
    if asked.version >= FIRST_BATCHED_VERSION:
        return Admitted(request)
    topics = request.v3_and_below_topics
    if not asked.access.allows(
        AclOperation.write, ResourceType.transactional_id, request.v3_and_below_transactional_id
    ):
        error = ErrorCode.transactional_id_authorization_failed
        results = [mirrored(topic, AddPartitionsToTxnTopicResult, error) for topic in topics]
        return Denied(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))
    writable = _allowed(asked, AclOperation.write, (topic.name for topic in topics))
    if all(topic.name in writable for topic in topics):
        return Admitted(request)
    return Denied(
        AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                mirrored(
                    topic,
                    AddPartitionsToTxnTopicResult,
                    ErrorCode.operation_not_attempted if topic.name in writable else NOT_ALLOWED,
                )
                for topic in topics
            ]
        )
    )


def _open_write(asked: Question) -> Verdict:
    """A write goes to all of its topics or to none. The topics come first: they are what a user can name."""
    request = asked.request
    topics = [topic.name for topic in request.topics]
    if len(_allowed(asked, AclOperation.write, topics)) < len(set(topics)):
        return Denied(refused(request, NOT_ALLOWED))
    for right in asked.api.rights:
        is_about_cluster = right.resource is ResourceType.cluster
        if is_about_cluster and CASES[right.condition](asked, request) and not asked.access.has(right):
            return Denied(refused(request, ERRORS[right.resource]))
    return Admitted(request)


def _alter_users(asked: Question) -> Verdict:
    """Each user is answered once, whichever of the two lists names it."""
    request = asked.request
    (right,) = asked.api.rights
    if asked.access.has(right):
        return Admitted(request)
    error = ERRORS[right.resource]
    users = dict.fromkeys(one.name for one in (*request.deletions, *request.upsertions))
    results = [AlterUserScramCredentialsResult(user=user, error_code=error) for user in users]
    return Denied(AlterUserScramCredentialsResponse(results=results))


PARTLY: Final[Mapping[str, Callable[[Question], Verdict]]] = MappingProxyType(
    {
        "Produce": _produce,
        "Metadata": _metadata,
        "FindCoordinator": _find_coordinator,
        "OffsetFetch": _offset_fetch,
        "CreateTopics": _create_topics,
        "DeleteTopics": _delete_topics,
        "AddPartitionsToTxn": _add_partitions,
        "OpenWrite": _open_write,
        "AlterUserScramCredentials": _alter_users,
        "ClusterReport": cluster_report,
        "BrokerReport": broker_report,
    }
)
