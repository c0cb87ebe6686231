"""Fetch sessions (KIP-227): a fetcher of many partitions names them once, then only changes.

A *full* fetch names every partition and may open a session, whose id is in the reply. A later *incremental*
fetch names only new and removed partitions, and those with another offset. Its reply has only partitions with
news: records, an error, a diverging epoch, or a high watermark or log start that the session has not sent
yet. Each fetch carries the session's next epoch, which reveals a lost or repeated fetch; the fetcher then
starts over with a full fetch.

    session id 0, epoch -1    no session: a full answer
    session id 0, epoch 0     full; a session is opened if there is room
    session id N, epoch 0     the same, and session N ends
    session id N, epoch -1    no session from now on, and session N ends
    session id N, epoch > 0   incremental

The number of sessions is bounded. A new session evicts one that was unused for two minutes, otherwise a
smaller one that is older than two minutes, consumers' before followers'. A follower's session may evict any
consumer's. The total of remembered partitions is bounded, too. Without room a fetch gets no session.

Failure: FETCH_SESSION_ID_NOT_FOUND for an unknown session, INVALID_FETCH_SESSION_EPOCH for another epoch,
FETCH_SESSION_TOPIC_ID_ERROR if a fetch and its session name topics differently (by name or by id).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sparklog.broker.ports import Ports
from sparklog.broker.waiting.asked_partitions import AskedPartition, Key, asked_partitions
from sparklog.broker.waiting.fetch_purgatory import FetchPurgatory
from sparklog.broker.waiting.lean_wait import LeanWait
from sparklog.broker.waiting.left_out import LeftOut
from sparklog.broker.waiting.session_partitions import SessionPartitions
from sparklog.core.replication.session_slots import LeanPosition, epoch_after
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, BrokerEpoch, BrokerId, TopicId
from sparklog.model.ports import Guard
from sparklog.model.time import MonotonicMs
from sparklog.wire.messages.data.fetch import (
    CLOSING_EPOCH,
    NO_SESSION,
    OPENING_EPOCH,
    FetchableTopicResponse,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)

EVICTION_MS: Final = 120_000
"""Kafka's min.incremental.fetch.session.eviction.ms."""

PARTITIONS_MAX: Final = 200_000
"""The most partitions of all sessions together: some 100 MB."""

_ID_MAX: Final = 2**31 - 1

Answers = Iterable[tuple[AskedPartition, FetchPartitionData]]


@dataclass(slots=True)
class FetchSession:
    """The partitions of one fetcher. ``guard`` protects ``epoch`` and ``used_ms``."""

    id: int
    replica_id: int
    """The follower's; -1 of a consumer."""
    by_topic_id: bool
    created_ms: MonotonicMs
    guard: Guard
    partitions: SessionPartitions
    used_ms: MonotonicMs
    """The time of the last fetch, never before ``created_ms``."""
    epoch: int = 1
    """The epoch of the next fetch. It grows as a fetch begins, so that its repetition is refused."""
    left_out: LeftOut = field(default_factory=LeftOut)
    """What a consumer leaves out of its fetches; unused in a follower's session."""
    lean_wait: LeanWait | None = None
    """That of its lean fetches, from the first one on."""

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0

    def news(self, answers: Answers) -> list[tuple[AskedPartition, FetchPartitionData]]:
        """The answers that must be sent, which count as sent."""
        found = [(entry, data) for entry, data in answers if entry.has_news(data)]
        for entry, data in found:
            if data.records:
                self.partitions.to_the_end(entry.key)
        if not self.is_follower:
            self.left_out.on_records(_with_records(found))
        return found

    def wait_max_ms(self, request: FetchRequest) -> int:
        """How long a fetch may wait."""
        if self.is_follower:
            return request.max_wait_ms
        return self.left_out.on_fetch((entry.key for entry in asked_partitions(request)), request.max_wait_ms)


@dataclass(slots=True)
class FetchContext:
    """The partitions of one fetch, and the session in which it is answered; None without one."""

    sessions: "FetchSessions"
    request: FetchRequest
    partitions: list[AskedPartition]
    wait_max_ms: int
    session: FetchSession | None = None
    opens: bool = False
    by_topic_id: bool = False

    def answer(self, answers: Answers) -> FetchResponse:
        """The response: all ``answers``, or in a session those with news."""
        if self.session is None:
            session_id = NO_SESSION
            if self.opens:
                answers = list(answers)
                for entry, data in answers:
                    entry.has_news(data)
                sent = _with_records(answers)
                session_id = self.sessions.open(self.request, self.partitions, self.by_topic_id, sent)
            return FetchResponse(session_id=session_id, responses=_by_topic(answers))
        with self.session.guard:
            if self.session.epoch != epoch_after(self.request.session_epoch):  # another fetch has begun
                return FetchResponse(error_code=ErrorCode.invalid_fetch_session_epoch)
            return FetchResponse(session_id=self.session.id, responses=_by_topic(self.session.news(answers)))

    def throttled(self) -> FetchResponse:
        """The response to a client that must wait first: nothing of its session counts as sent."""
        if self.session is None:
            return FetchResponse(session_id=NO_SESSION)
        with self.session.guard:
            if self.session.epoch != epoch_after(self.request.session_epoch):
                return FetchResponse(error_code=ErrorCode.invalid_fetch_session_epoch)
            return FetchResponse(session_id=self.session.id)


@dataclass(slots=True)
class LeanContext:
    """The partitions that one lean fetch reads, and its session."""

    session: FetchSession
    follower: BrokerId
    follower_epoch: BrokerEpoch
    epoch: int
    partitions: list[AskedPartition]
    wait: LeanWait

    @property
    def is_latest(self) -> bool:
        """Whether no other fetch of the session has begun since. Within the session's guard."""
        return self.session.epoch == epoch_after(self.epoch)


@dataclass(slots=True)
class FetchSessions:
    """All sessions of a broker. ``slots_max`` is the setting at the last request."""

    ports: Ports
    slots_max: int = 0
    by_token: dict[int, SessionPartitions] = field(default_factory=dict)
    """The session's partitions for each token at rest, in all sessions."""
    _sessions: dict[int, FetchSession] = field(default_factory=dict)
    """By id."""
    _last_id: int = NO_SESSION
    """The id given last; NO_SESSION before the first."""
    _guard: Guard = field(init=False)

    def __post_init__(self) -> None:
        self._guard = self.ports.new_guard()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self, request: FetchRequest, slots_max: int, *, by_topic_id: bool, rest_max_ms: int = 0
    ) -> FetchContext | ErrorCode:
        """The context in which to answer ``request``, or the error.

        ``rest_max_ms`` bounds the rest of partitions in a follower's session.
        """
        self.slots_max = slots_max
        if request.session_epoch in (OPENING_EPOCH, CLOSING_EPOCH):
            if request.session_id != NO_SESSION:
                with self._guard:
                    self._end(request.session_id)
            opens = request.session_epoch == OPENING_EPOCH
            asked = list(asked_partitions(request))
            return FetchContext(
                self, request, asked, request.max_wait_ms, opens=opens, by_topic_id=by_topic_id
            )
        with self._guard:
            session = self._sessions.get(request.session_id)
            if session is None:
                return ErrorCode.fetch_session_id_not_found
        with session.guard:
            if session.epoch != request.session_epoch:
                return ErrorCode.invalid_fetch_session_epoch
            if session.by_topic_id != by_topic_id:
                return ErrorCode.fetch_session_topic_id_error
            session.epoch = epoch_after(session.epoch)
            session.used_ms = now_ms = self.ports.clock.monotonic_ms()
            entries = session.partitions.begin(request, now_ms, rest_max_ms)
            wait_max_ms = session.wait_max_ms(request)
        is_too_large = bool(request.topics) and self._partitions_count() > PARTITIONS_MAX
        is_empty = not len(session.partitions)
        if not (is_empty or is_too_large):
            return FetchContext(self, request, entries, wait_max_ms, session)
        with self._guard:
            self._end(session.id)
        if is_empty:
            return FetchContext(self, request, [], wait_max_ms)
        return ErrorCode.fetch_session_id_not_found

    def begin_lean(
        self,
        session_id: int,
        epoch: int,
        follower_epoch: BrokerEpoch,
        positions: Sequence[LeanPosition],
        rest_max_ms: int,
        purgatory: FetchPurgatory,
    ) -> LeanContext | ErrorCode:
        """As ``begin``, for a follower's lean fetch. FETCH_SESSION_TOPIC_ID_ERROR for a slot that the session
        does not have. After an error the session is as it was.
        """
        with self._guard:
            session = self._sessions.get(session_id)
        if session is None or not session.is_follower:
            return ErrorCode.fetch_session_id_not_found
        with session.guard:
            if session.epoch != epoch:
                return ErrorCode.invalid_fetch_session_epoch
            if not session.partitions.has_slots(positions):
                return ErrorCode.fetch_session_topic_id_error
            session.epoch = epoch_after(epoch)
            session.used_ms = now_ms = self.ports.clock.monotonic_ms()
            entries = session.partitions.begin_lean(positions, follower_epoch, now_ms, rest_max_ms)
            wait = session.lean_wait
            if wait is None:
                wait = LeanWait(purgatory, session.partitions, self.ports.new_guard())
                session.lean_wait = wait
        return LeanContext(session, BrokerId(session.replica_id), follower_epoch, epoch, entries, wait)

    def open(
        self,
        request: FetchRequest,
        partitions: list[AskedPartition],
        by_topic_id: bool,
        with_records: Iterable[Key],
    ) -> int:
        """The id of a new session, or NO_SESSION if there is no room for one. ``with_records``: partitions of
        which its first answer has records.
        """
        now_ms = self.ports.clock.monotonic_ms()
        is_follower = request.replica_id >= 0
        with self._guard:
            if not self._make_room(is_follower, len(partitions), now_ms):
                return NO_SESSION
            session = FetchSession(
                id=self._new_id(),
                replica_id=request.replica_id,
                by_topic_id=by_topic_id,
                created_ms=now_ms,
                guard=self.ports.new_guard(),
                partitions=SessionPartitions(partitions, self.ports.new_guard(), self.by_token),
                used_ms=now_ms,
            )
            session.left_out.on_records(with_records)
            self._sessions[session.id] = session
            return session.id

    def _partitions_count(self) -> int:
        return sum(len(session.partitions) for session in list(self._sessions.values()))

    def _make_room(self, is_follower: bool, size: int, now_ms: MonotonicMs) -> bool:
        if self._partitions_count() + size > PARTITIONS_MAX:
            return False
        if len(self._sessions) < self.slots_max:
            return True
        if self.slots_max == 0 or not self._sessions:
            return False
        idlest = min(self._sessions.values(), key=lambda session: session.used_ms)
        if now_ms - idlest.used_ms > EVICTION_MS:
            self._end(idlest.id)
            return True
        evictable = [
            session
            for session in self._sessions.values()
            if now_ms - session.created_ms > EVICTION_MS or (is_follower and not session.is_follower)
        ]
        least = min(evictable, key=_rank, default=None)
        if least is None or (is_follower, size) <= (least.is_follower, len(least.partitions)):
            return False
        self._end(least.id)
        return True

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.partitions.end()

    def _new_id(self) -> int:
        """The first id is the time of day, so that ids of an earlier incarnation are not reused."""
        if self._last_id == NO_SESSION:
            self._last_id = self.ports.clock.wall_ms() % _ID_MAX
        while True:
            self._last_id = self._last_id % _ID_MAX + 1
            if self._last_id not in self._sessions:
                return self._last_id


def _with_records(answers: Answers) -> Iterable[Key]:
    return [entry.key for entry, data in answers if data.records]


def _rank(session: FetchSession) -> tuple[bool, int, int]:
    return session.is_follower, len(session.partitions), session.id


def _by_topic(answers: Answers) -> list[FetchableTopicResponse]:
    topics: dict[str | TopicId, FetchableTopicResponse] = {}
    for entry, data in answers:
        name, topic_id, _ = entry.key
        key = name if topic_id is NO_TOPIC_ID else topic_id
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchableTopicResponse(topic=name, topic_id=topic_id)
        topic.partitions.append(data)
    return list(topics.values())
