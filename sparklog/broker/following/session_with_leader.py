"""A follower's side of a fetch session (KIP-227): what to say of it in the next fetch.

The first fetch names every partition, each later one only those whose position has changed, were added or
are left out for a while. What the leader does not mention has not changed. After anything unexpected, be it a
lost reply or one that could not be used, the next fetch names everything again and ends the old session.
"""

from collections.abc import Mapping
from typing import Final

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


class SessionWithLeader:
    """One fetcher's session at its leader. Used by one round at a time."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = OPENING_EPOCH
        self._is_in_doubt = False  # whether a fetch is on its way, or its reply was lost
        self._known: dict[Key, FetchPartition] = {}
        """What the leader remembers if it has taken the last request in hand."""

    def put_into(
        self, request: FetchRequest, wanted: Mapping[Key, FetchPartition], names: Mapping[TopicId, str]
    ) -> None:
        """Fill in the session and those of ``wanted`` that the leader does not know.

        A partition that asks for the same as before must be the same object.
        """
        if self._is_in_doubt:
            self.begin_again()
        self._is_in_doubt = True
        request.session_id, request.session_epoch = self._id, self._epoch
        to_send = wanted
        if self._epoch != OPENING_EPOCH:
            to_send = {key: asked for key, asked in wanted.items() if self._known.get(key) is not asked}
            for topic_id, partition in self._known.keys() - wanted.keys():
                _forget(request, names.get(topic_id, ""), topic_id, partition)
        topics: dict[TopicId, FetchTopic] = {}
        for (topic_id, _), asked in to_send.items():
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic=names[topic_id], topic_id=topic_id)
            topic.partitions.append(asked)
        request.topics = list(topics.values())
        self._known = dict(wanted)

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
