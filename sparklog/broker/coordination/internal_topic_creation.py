"""Creates an internal topic when a client first asks for a coordinator, as Kafka does. The start of a cluster
is such a client (``sparklog_runtime.start.readiness``), so that every broker is there.

The broker asks the controller in its own name, because the client that asked need not have the right to
create topics, and whatever ``auto.create.topics.enable`` says. The client is answered
COORDINATOR_NOT_AVAILABLE at once and asks again.
"""

import logging
from collections.abc import Callable
from typing import Final

from sparklog.broker.coordination.kinds import CoordinatorKind, NewInternalTopic
from sparklog.broker.ports import ToController
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ports import Executor, Guard
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock, MonotonicMs
from sparklog.wire.messages.admin.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

logger: Final = logging.getLogger(__name__)

TIMEOUT_MS: Final = 5_000
"""How long the controller waits for the brokers to know the topic before it answers."""

RETRY_MS: Final = 1_000
"""Pause after a refusal: clients ask ten times a second."""

WARNING_INTERVAL_MS: Final = 60_000

CREATED: Final = frozenset({ErrorCode.none, ErrorCode.topic_already_exists, ErrorCode.request_timed_out})


class InternalTopics:
    """Creations of internal topics, at most one at a time for each topic."""

    def __init__(
        self,
        controller: ToController,
        waiting_room: Executor,
        config: Callable[[], BrokerConfig],
        clock: Clock,
        guard: Guard,
    ) -> None:
        """``waiting_room`` runs work that waits for the controller."""
        self._controller = controller
        self._waiting_room = waiting_room
        self._config = config
        self._clock = clock
        self._guard = guard
        self._not_before: dict[str, MonotonicMs | None] = {}
        """By topic: when it may be tried again, or None while it is being created."""
        self._warned: dict[str, MonotonicMs] = {}

    def create(self, kind: CoordinatorKind) -> None:
        """Have the topic of ``kind`` created, unless that is under way or was refused a moment ago.

        Waits for nothing. A refusal is logged with its reason, at most once a minute.
        """
        with self._guard:
            not_before = self._not_before.get(kind.topic, MonotonicMs(0))
            if not_before is None or self._clock.monotonic_ms() < not_before:
                return
            self._not_before[kind.topic] = None
        self._waiting_room.submit(lambda: self._create(kind.new_topic(self._config())))

    def _create(self, topic: NewInternalTopic) -> None:
        pause_ms = RETRY_MS
        request = CreateTopicsRequest(topics=[creatable(topic)], timeout_ms=TIMEOUT_MS)
        try:
            response = self._controller.call(request, timeout_ms=2 * TIMEOUT_MS)
            result = response.topics[0]
            if result.error_code in CREATED:
                logger.info("internal topic %s is being created", topic.name)
                pause_ms = 0
            else:
                self._warn(topic, f"{result.error_code.name.upper()}: {result.error_message}")
        except (OSError, SparklogError) as problem:
            self._warn(topic, f"the controller did not answer: {problem}")
        finally:
            with self._guard:
                self._not_before[topic.name] = MonotonicMs(self._clock.monotonic_ms() + pause_ms)

    def _warn(self, topic: NewInternalTopic, reason: str) -> None:
        now_ms = self._clock.monotonic_ms()
        if topic.name in self._warned and now_ms < self._warned[topic.name] + WARNING_INTERVAL_MS:
            return
        self._warned[topic.name] = now_ms
        logger.warning(
            "internal topic %s (%d partitions, replication factor %d) could not be created: %s. "
            "Clients that need a coordinator are answered COORDINATOR_NOT_AVAILABLE until it is",
            topic.name,
            topic.partitions,
            topic.replication_factor,
            reason,
        )


def creatable(topic: NewInternalTopic) -> CreatableTopic:
    """``topic`` as CreateTopics has it."""
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
