"""One request and what its handler needs: the client, the version, the broker's rooms, and the reply."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparklog.broker.client_quotas import RequestMeter
from sparklog.broker.context import BrokerContext
from sparklog.broker.partition.partition import Partition
from sparklog.core.security.access import Access, every_operation
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import CLUSTER_NAME
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from sparklog.model.settings.config import TopicConfig
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.wire.codec import RequestHeader, encode_response
from sparklog.wire.forms.produce_form import AnswerForm
from sparklog.wire.response_errors import errors_in

logger: Final = logging.getLogger(__name__)


TIMEOUT_MAX_MS: Final = 3_600_000
"""The longest wait that a client can ask for: an hour.

A request with a longer time-out (up to 2^31 - 1 ms) is answered after an hour as if its own time were over.
"""


def bounded_timeout_ms(asked_ms: int) -> int:
    """The time-out that a client names, within [0, ``TIMEOUT_MAX_MS``]."""
    return min(max(asked_ms, 0), TIMEOUT_MAX_MS)


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    header: RequestHeader
    exchange: Exchange
    broker: BrokerContext
    access: Access | None = None
    """What the requester may do; None: everything, because there is no authorizer."""
    finish: Callable[[Any], Any] | None = None
    """Adds what was refused to the response, and takes out of it what the requester may not see."""
    meter: RequestMeter | None = None
    """What the request uses of quotas; None: there are none for it."""
    on_answer: Callable[[Sequence[ErrorCode]], None] | None = None
    """Is given the errors of the answer: the audit's, of an act of administration."""

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def frame(self) -> memoryview:
        """The whole request, header included, as it is forwarded."""
        return self.exchange.frame

    @property
    def context(self) -> RequestContext:
        """Connection, listener, principal and address of the client."""
        return self.exchange.context

    def allows(self, operation: AclOperation, resource: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Whether the requester has the right now; its lack is logged."""
        return self.access is None or self.access.allows(operation, resource, name)

    def operations(self, resource: ResourceType, name: str = CLUSTER_NAME) -> int:
        """What the requester may do to the resource, as bits (KIP-430)."""
        if self.access is None:
            return every_operation(resource)
        return self.access.operations(resource, name)

    def cluster_operations(self) -> int:
        """What the requester may do to the cluster; nothing for who may not describe it."""
        if self.access is not None and not self.access.sees(AclOperation.describe, ResourceType.cluster):
            return 0
        return self.operations(ResourceType.cluster)

    def partition(
        self, topic_partition: TopicPartition, topic_id: TopicId = NO_TOPIC_ID
    ) -> Partition | ErrorCode:
        """The replica that this broker has of ``topic_partition``, or the error that the client gets.

        NOT_LEADER_OR_FOLLOWER if another broker may have it, so that the client refreshes its metadata;
        UNKNOWN_TOPIC_OR_PARTITION if the controller's metadata does not have it; INCONSISTENT_TOPIC_ID if the
        client names another topic's id.
        """
        found = self.broker.replicas.find(topic_partition, None if topic_id == NO_TOPIC_ID else topic_id)
        if found is ErrorCode.unknown_topic_or_partition and self.broker.metadata.may_exist(topic_partition):
            return ErrorCode.not_leader_or_follower
        return found

    def topic_config(self, name: str) -> TopicConfig:
        """The present settings of a topic; the broker's defaults if it is not known here."""
        topic = self.broker.metadata.topic(name)
        return self.broker.config.topic({}) if topic is None else topic.config(self.broker.config)

    def carefully(self, work: Callable[[], None]) -> None:
        """Do ``work``, which answers, where no handler is left that would see it fail: the client gets a
        closed connection then, instead of waiting for ever.
        """
        try:
            work()
        except Exception:
            logger.exception("a request of API %d could not be answered", self.header.api_key)
            self.exchange.abandon()

    def reply(self, response: Any, throttle_ms: int = 0, *, errors: Sequence[ErrorCode] = ()) -> None:
        """Answer, and mute the connection for ``throttle_ms`` after that, or for longer by its quotas.
        ``errors``: those that the response has in packed fields.
        """
        if self.finish is not None:
            response = self.finish(response)
        if self.meter is not None:
            throttle_ms = max(throttle_ms, self.meter.delay_ms())
            if throttle_ms and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = throttle_ms
        self.exchange.errors = found = [*errors_in(response), *errors]
        if self.on_answer is not None:
            self.on_answer(found)
        self.exchange.reply(
            encode_response(response, self.header.api_version, self.header.correlation_id), throttle_ms
        )

    @property
    def answer_form(self) -> AnswerForm | None:
        """How to answer without the schema that the one batch of a produce was appended. None: by ``reply``,
        which also says what was refused.
        """
        form = self.exchange.form
        is_plain = self.finish is None and self.on_answer is None
        return form.answer if form is not None and is_plain else None

    def reply_appended(
        self,
        form: AnswerForm,
        partition: int,
        base_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
    ) -> None:
        """As ``reply``, in ``answer_form``."""
        throttle_ms = 0 if self.meter is None else self.meter.delay_ms()
        frame = form.write(
            self.header.correlation_id,
            partition,
            base_offset,
            log_append_time_ms,
            log_start_offset,
            throttle_ms,
        )
        self.exchange.reply((frame,), throttle_ms)

    def no_reply(self) -> None:
        """Go on without an answer, which is what a produce with acks=0 gets. Its bytes count, its time does
        not, as in Kafka.
        """
        self.exchange.no_reply(0 if self.meter is None else self.meter.delay_ms(is_timed=False))

    def work(self, handler: Callable[["Call", Any], None], request: Any) -> None:
        """Have ``handler`` work on the request, on this thread."""
        if self.meter is None:
            handler(self, request)
        else:
            with self.meter.working():
                handler(self, request)
