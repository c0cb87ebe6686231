"""A follower's side of a fetch session (KIP-227): what to say of it in the next fetch.

The first fetch names every partition, each later one only those whose position has changed, were added or
are left out for a while. What the leader does not mention has not changed. After anything unexpected, be it a
lost reply or one that could not be used, the next fetch names everything again and ends the old session.

Fetch and the lean fetch (``core.replication.session_slots``) share the session, and each raises its epoch. A
lean fetch tells new positions of partitions that the session has. So Fetch opens the session, adds partitions
and takes them out. It also asks where the leader says so, or does not know the lean form.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from sparklog.core.replication.session_slots import LeanPosition, SessionSlots, epoch_after
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
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest, LeanFetchResponse, packed_positions

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
        self._slots: SessionSlots[Key] = SessionSlots()
        """The leader's, too; of every key of ``_known``."""
        self._said: dict[Key, Asked] = {}
        """What ``_known`` becomes once the lean fetch on its way is answered."""
        self._needs_fetch = False
        """Whether the leader has asked for a Fetch."""
        self._is_lean_refused = False
        """Whether the leader, as of this connection, does not have the lean fetch."""

    # Lean fetches

    def lean_positions(
        self, wanted: Mapping[Key, Asked], changed: Iterable[Key]
    ) -> list[LeanPosition] | None:
        """The positions that the leader does not know; None if the next fetch must be a Fetch.

        ``changed``: as for ``put_into``, which must be called with the same keys after None.
        """
        is_open = self._id != NO_SESSION and self._epoch != OPENING_EPOCH and not self._is_in_doubt
        if not is_open or self._needs_fetch or self._is_lean_refused:
            return None
        positions: list[LeanPosition] = []
        said: dict[Key, Asked] = {}
        for key in changed:
            asked, known = wanted.get(key), self._known.get(key)
            if asked is None and known is None:
                continue
            slot = self._slots.slot_of(key)
            if asked is None or known is None or slot is None:
                return None  # it is to leave the session, or to join it
            said[key] = asked
            question = asked.question
            if question is known.question:
                continue
            if question.partition_max_bytes != known.question.partition_max_bytes:
                return None
            positions.append(
                LeanPosition(
                    slot,
                    question.current_leader_epoch,
                    question.fetch_offset,
                    question.last_fetched_epoch,
                    question.log_start_offset,
                )
            )
        self._said = said
        return positions

    def put_into_lean(self, request: LeanFetchRequest, positions: Iterable[LeanPosition]) -> None:
        """Fill in the session and what ``lean_positions`` has returned."""
        self._is_in_doubt = True
        request.session_id, request.session_epoch = self._id, self._epoch
        request.positions = packed_positions(positions)

    def on_lean_refused(self) -> None:
        """The leader does not have the lean fetch, so the last one was not sent to it."""
        self._is_in_doubt = False
        self._is_lean_refused = True

    def on_lean_response(self, response: LeanFetchResponse) -> None:
        """The leader has answered."""
        self._is_in_doubt = False
        if response.error_code is not ErrorCode.none:
            self._on_error(response.error_code)
            return
        self._epoch = epoch_after(self._epoch)
        self._known |= self._said
        self._needs_fetch = response.asks_by_fetch

    def key_of(self, slot: int) -> Key | None:
        """The partition in a slot; None if the session has none there."""
        return self._slots.key_of(slot)

    # Fetch

    def put_into(self, request: FetchRequest, wanted: Mapping[Key, Asked], changed: Iterable[Key]) -> None:
        """Fill in the session and those of ``wanted`` that the leader does not know.

        ``changed``: every key whose entry of ``wanted`` is not what it was at the last call. No others are
        looked at, unless all have to be named.
        """
        if self._is_in_doubt:
            self.begin_again()
            self._is_lean_refused = False  # the next connection may lead to a later release
        self._is_in_doubt = True
        self._needs_fetch = False
        request.session_id, request.session_epoch = self._id, self._epoch
        if self._epoch == OPENING_EPOCH:
            self._known = dict(wanted)
            self._slots = SessionSlots()
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
        self._number(request)

    def _number(self, request: FetchRequest) -> None:
        """Give slots in the order in which the leader does."""
        for topic in request.topics:
            for asked in topic.partitions:
                self._slots.give((topic.topic_id, asked.partition))
        for forgotten in request.forgotten_topics_data:
            for partition in forgotten.partitions:
                self._slots.forget((forgotten.topic_id, partition))

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
            self._on_error(response.error_code)
        elif response.session_id == NO_SESSION or response.session_id != self._id != NO_SESSION:
            # It has no room for a session, or has begun another one in place of ours.
            self._id = response.session_id
            self._epoch = OPENING_EPOCH if self._id == NO_SESSION else 1
        else:
            self._id = response.session_id
            self._epoch = epoch_after(self._epoch)

    def _on_error(self, error: ErrorCode) -> None:
        if error is ErrorCode.fetch_session_id_not_found:
            self._id = NO_SESSION
        self.begin_again()

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
