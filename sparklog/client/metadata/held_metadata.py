"""The metadata that a client holds: how old it may be, and how it becomes newer."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from sparklog.client.calls.retry import Deadline
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, metadata_of
from sparklog.model.errors import ErrorCode
from sparklog.model.time import Clock
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic


class HeldMetadata:
    """Safe to use from any thread. ``ask`` sends a request to any broker, until the deadline."""

    def __init__(
        self,
        clock: Clock,
        ask: Callable[[MetadataRequest, Deadline, int | None], Any],
        *,
        max_age_ms: int,
        auto_create_topics: bool,
    ) -> None:
        self._clock = clock
        self._ask = ask
        self._max_age_ms = max_age_ms
        self._auto_create_topics = auto_create_topics
        self._lock = threading.Lock()  # over the two fields below; held for a few lines
        self._latest = ClusterMetadata()
        self._known_topics: set[str] = set()
        self._refreshing = threading.Lock()  # held during a refresh, so that those who need one share it

    @property
    def latest(self) -> ClusterMetadata:
        """What is held, however old."""
        return self._latest

    def has_known(self, topic: str) -> bool:
        """Whether the topic existed in any answer so far."""
        return topic in self._known_topics

    def fresh(self, topics: Sequence[str] | None, max_age_ms: int | None) -> ClusterMetadata | None:
        """What is held, if it has all these topics and is not too old; None for all topics."""
        age_max_ms = self._max_age_ms if max_age_ms is None else max_age_ms
        held = self._latest
        if topics is None or age_max_ms <= 0 or not held.brokers:
            return None
        known = (held.topics.get(name) for name in topics)
        is_fresh = self._clock.monotonic_ms() - held.fetched_ms <= age_max_ms and all(
            topic is not None and topic.error_code is ErrorCode.none for topic in known
        )
        return held if is_fresh else None

    def refresh(self, topics: Sequence[str], seen: ClusterMetadata, deadline: Deadline) -> ClusterMetadata:
        """Metadata newer than ``seen``, which is stale; threads that refresh at once share a request."""
        with self._refreshing:
            current = self._latest
            return current if current is not seen else self.fetch(topics, deadline)

    def fetch(
        self, topics: Sequence[str] | None, deadline: Deadline, share_ms: int | None = None
    ) -> ClusterMetadata:
        """Request these topics, or all of them (None)."""
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=self._auto_create_topics,
        )
        response = self._ask(request, deadline, share_ms)
        answer = metadata_of(response, self._clock.monotonic_ms())
        with self._lock:
            self._latest = self._latest.updated(answer, is_complete=topics is None)
            self._known_topics.update(
                name for name, topic in answer.topics.items() if topic.error_code is ErrorCode.none
            )
            return self._latest
