"""A follower's side of a fetch session (KIP-227): what to say of it in the next fetch.

The first fetch names every partition, each later one only those whose position has changed, were added or
are left out for a while. What the leader does not mention has not changed. After anything unexpected, be it a
lost reply or one that could not be used, the next fetch names everything again and ends the old session.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicId
from sparklog.wire.messages.data.fetch import (
    NO_SESSION,
    OPENING_EPOCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)

_EPOCH_MAX: Final = 2**31 - 1

Key = tuple[TopicId, int]


class Asked(Protocol):
    """What is asked of one partition. It is named again once its ``question`` is another object."""

    @property
    def topic(self) -> str: ...

    @property
    def question(self) -> FetchPartition: ...


class SessionWithLeader:
    """One fetcher's session at its leader. Used by one round at a time."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = OPENING_EPOCH
        self._is_in_doubt = False  # whether a fetch is on its way, or its reply was lost
        self._known: dict[Key, Asked] = {}
        """What the leader remembers if it has taken the last request in hand."""

    def put_into(self, request: FetchRequest, wanted: Mapping[Key, Asked], changed: Iterable[Key]) -> None:
        """Fill in the session and those of ``wanted`` that the leader does not know.

        ``changed``: every key whose entry of ``wanted`` is not what it was at the last call. No others are
        looked at, unless all have to be named.
        """
        if self._is_in_doubt:
            self.begin_again()
        self._is_in_doubt = True
        request.session_id, request.session_epoch = self._id, self._epoch
        if self._epoch == OPENING_EPOCH:
            self._known = dict(wanted)
            named = [(key[0], asked) for key, asked in wanted.items()]
        else:
            named = list(self._news(request, wanted, changed))
        topics: dict[TopicId, FetchTopic] = {}
        for topic_id, asked in named:
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic=asked.topic, topic_id=topic_id)
            topic.partitions.append(asked.question)
        request.topics = list(topics.values())

    def _news(
        self, request: FetchRequest, wanted: Mapping[Key, Asked], changed: Iterable[Key]
    ) -> Iterable[tuple[TopicId, Asked]]:
        """The partitions to name; those to forget are put into ``request``."""
        for key in changed:
            asked, known = wanted.get(key), self._known.get(key)
            if asked is not None:
                self._known[key] = asked
                if known is None or known.question is not asked.question:
                    yield key[0], asked
            elif known is not None:
                del self._known[key]
                _forget(request, known.topic, *key)

    def on_response(self, response: FetchResponse) -> None:
        """The leader has answered."""
        self._is_in_doubt = False
        if response.error_code is not ErrorCode.none:
            if response.error_code is ErrorCode.fetch_session_id_not_found:
                self._id = NO_SESSION
            self.begin_again()
        elif response.session_id == NO_SESSION or response.session_id != self._id != NO_SESSION:
            # It has no room for a session, or has begun another one in place of ours.
            self._id = response.session_id
            self._epoch = OPENING_EPOCH if self._id == NO_SESSION else 1
        else:
            self._id = response.session_id
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1

    def begin_again(self) -> None:
        """Name every partition in the next fetch, because the leader's session is unknown."""
        self._epoch = OPENING_EPOCH


def _forget(request: FetchRequest, name: str, topic_id: TopicId, partition: int) -> None:
    for topic in request.forgotten_topics_data:
        if topic.topic_id == topic_id:
            topic.partitions.append(partition)
            return
    request.forgotten_topics_data.append(
        ForgottenTopic(topic=name, topic_id=topic_id, partitions=[partition])
    )
