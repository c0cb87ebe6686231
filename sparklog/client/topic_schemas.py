"""The columns of typed topics: as any broker describes them, and changed."""

from collections.abc import Sequence
from typing import Final

from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.schema.change_texts import SchemaChange, change_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.evolution import changed
from sparklog.wire.messages.admin.alter_schema import (
    AlterSchemaChange,
    AlterSchemaRequest,
    AlterSchemaResponse,
)
from sparklog.wire.messages.discovery.describe_schema import DescribeSchemaRequest, DescribeSchemaResponse

ASK_AGAIN_MS: Final = 50
_SENT_AGAIN: Final = (ErrorCode.not_controller, ErrorCode.network_exception)


class Overtaken(KafkaError):  # noqa: N818 (an expected outcome)
    """Another change of the columns was made first. ``version`` is the newest that there is now."""

    def __init__(self, message: str, version: int) -> None:
        super().__init__(ErrorCode.invalid_update_version, message)
        self.version = version


def describe_schemas(cluster: ClusterClient, topics: Sequence[str]) -> dict[str, SchemaDocument]:
    """All versions of the columns of each topic; topics without columns are left out.

    KafkaError for the first topic that there is not, or whose columns no broker knows while no controller can
    be asked.
    """
    request = DescribeSchemaRequest(topics=list(topics))
    response: DescribeSchemaResponse = cluster.call_any(request, _first_timed_out)
    found = {}
    for topic in response.topics:
        if topic.error_code is not ErrorCode.none:
            words = topic.error_message or "there is none"
            raise KafkaError(topic.error_code, f"topic {topic.name!r}: {words}")
        if topic.document is not None:
            found[topic.name] = SchemaDocument.decode(bytes(topic.document))
    return found


def _sent_again(response: AlterSchemaResponse) -> ErrorCode:
    return response.error_code if response.error_code in _SENT_AGAIN else ErrorCode.none


def _first_timed_out(response: DescribeSchemaResponse) -> ErrorCode:
    """Another broker may know the columns."""
    late = ErrorCode.request_timed_out
    return late if any(topic.error_code is late for topic in response.topics) else ErrorCode.none


def schema_with_version(cluster: ClusterClient, topic: str, version: int) -> SchemaDocument:
    """The topic's columns, with ``version`` at least: a host may not have heard of it yet.

    KafkaError if no host that was asked knows it in time.
    """
    deadline = cluster.deadline(None)
    while True:
        document = describe_schemas(cluster, [topic]).get(topic)
        if document is not None and document.version >= version:
            return document
        if deadline.is_over:
            known = "no columns" if document is None else f"versions 1 to {document.version}"
            message = f"topic {topic!r}: version {version} of its columns is unknown, hosts know {known}"
            raise KafkaError(ErrorCode.request_timed_out, message)
        cluster.wait(ASK_AGAIN_MS)


def alter_schema(
    cluster: ClusterClient, topic: str, known: SchemaDocument, changes: Sequence[SchemaChange]
) -> SchemaDocument:
    """Make ``changes`` to the columns that are ``known``, together; returns them with the next version.

    SchemaError if the changes are not allowed, Overtaken if there is another version already. Where that is
    the very outcome, an earlier try of this call has made it, and its answer was lost.
    """
    outcome = changed(known, changes)
    texts = [change_text(change) for change in changes]
    request = AlterSchemaRequest(
        topic=topic,
        from_version=known.version,
        changes=[AlterSchemaChange(operation=operation, text=text) for operation, text in texts],
    )
    response: AlterSchemaResponse = cluster.call_controller(request, _sent_again)
    words = response.error_message or "the change was refused"
    if response.error_code is ErrorCode.none:
        return outcome
    if response.error_code is not ErrorCode.invalid_update_version:
        raise KafkaError(response.error_code, words if topic in words else f"topic {topic!r}: {words}")
    if response.version == outcome.version:
        there = schema_with_version(cluster, topic, response.version)
        if there == outcome:
            return outcome
    raise Overtaken(words, response.version)
