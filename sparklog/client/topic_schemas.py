"""The columns of typed topics, as any broker describes them."""

from collections.abc import Sequence

from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.schema.document import SchemaDocument
from sparklog.wire.messages.discovery.describe_schema import DescribeSchemaRequest, DescribeSchemaResponse


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


def _first_timed_out(response: DescribeSchemaResponse) -> ErrorCode:
    """Another broker may know the columns."""
    late = ErrorCode.request_timed_out
    return late if any(topic.error_code is late for topic in response.topics) else ErrorCode.none
