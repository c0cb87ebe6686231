"""The columns of typed topics, as this broker has asked the controller for them.

The controller's updates carry the number of a topic's newest version alone. A broker that is asked for a
version that it lacks asks the controller, and keeps the answer for as long as the topic exists.
"""

import logging
from collections.abc import Iterable
from typing import Final

from sparklog.broker.metadata.metadata_cache import CachedTopic, MetadataCache
from sparklog.broker.ports import ToController
from sparklog.model.errors import ErrorCode, SchemaError, WireError
from sparklog.model.ids import TopicId
from sparklog.model.ports import Guard
from sparklog.model.schema.document import SchemaDocument
from sparklog.wire.messages.discovery.describe_schema import (
    DescribedTopicSchema,
    DescribeSchemaRequest,
    DescribeSchemaResponse,
)

logger: Final = logging.getLogger(__name__)

ASK_TIMEOUT_MS: Final = 5_000
NO_CONTROLLER: Final = "the broker does not know the topic's columns, and no controller answered; try again"


class Schemas:
    """May be called from any thread."""

    def __init__(self, metadata: MetadataCache, controller: ToController, guard: Guard) -> None:
        self._metadata = metadata
        self._controller = controller
        self._guard = guard
        self._documents: dict[TopicId, DescribedTopicSchema] = {}

    def known(self, topic: CachedTopic) -> SchemaDocument | None:
        """The topic's columns, if this broker has their newest version."""
        kept = self._documents.get(topic.id)
        if kept is None or kept.version < topic.schema_version or kept.document is None:
            return None
        return SchemaDocument.decode(kept.document)

    def described(self, names: Iterable[str]) -> list[DescribedTopicSchema]:
        """The columns of each topic. It blocks while the controller is asked for those that are unknown."""
        answers = {name: self._kept(name) for name in names}
        missing = [name for name, answer in answers.items() if answer is None]
        if missing:
            answers.update((answer.name, answer) for answer in self._ask(missing))
        return [answer for answer in answers.values() if answer is not None]

    def _kept(self, name: str) -> DescribedTopicSchema | None:
        topic = self._metadata.topic(name)
        if topic is None:
            return None
        if topic.schema_version == 0:
            return DescribedTopicSchema(name=name, topic_id=topic.id)
        kept = self._documents.get(topic.id)
        return kept if kept is not None and kept.version >= topic.schema_version else None

    def _ask(self, names: list[str]) -> list[DescribedTopicSchema]:
        request = DescribeSchemaRequest(topics=names)
        try:
            response: DescribeSchemaResponse = self._controller.call_when_reachable(
                request, timeout_ms=ASK_TIMEOUT_MS
            )
        except (OSError, WireError) as problem:
            logger.info("the controller did not describe the columns of %s: %s", names, problem)
            return [_refused(name, ErrorCode.request_timed_out, NO_CONTROLLER) for name in names]
        return [self._keep(topic) for topic in response.topics]

    def _keep(self, topic: DescribedTopicSchema) -> DescribedTopicSchema:
        """Keep the answer, without those of topics that exist no more."""
        if topic.document is None:
            return topic
        topic.document = bytes(topic.document)  # not a view of the frame, which would be kept with it
        try:
            SchemaDocument.decode(topic.document)
        except SchemaError as error:
            logger.error("the columns of topic %s cannot be read: %s", topic.name, error)
            return _refused(topic.name, ErrorCode.unknown_server_error, str(error))
        with self._guard:
            existing = self._metadata.snapshot.names
            kept = {known: one for known, one in self._documents.items() if known in existing}
            self._documents = {**kept, topic.topic_id: topic}
        return topic


def _refused(name: str, error: ErrorCode, message: str) -> DescribedTopicSchema:
    return DescribedTopicSchema(name=name, error_code=error, error_message=message)
