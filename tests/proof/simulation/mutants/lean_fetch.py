"""Bugs of the lean fetch: what a session says by slot, does not say again, or lets rest."""

from collections.abc import Iterable
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from sparklog.broker.following.session_with_leader import SessionWithLeader
from sparklog.broker.waiting.asked_partitions import Key
from sparklog.broker.waiting.fetch_sessions import FetchSessions, LeanContext
from sparklog.broker.waiting.session_partitions import Resting, SessionPartitions
from sparklog.core.replication.session_slots import LeanPosition
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest


def _slots_are_places(switch: Switch) -> None:
    """A leader takes slots for places in its order of reading, which changes with each answer."""

    def places(self: SessionPartitions) -> list[Key]:
        return [*self._awake, *(key for key in self._all if key not in self._awake)]

    def key_of(self: SessionPartitions, slot: int) -> Key:
        return places(self)[slot]

    def slot_of(self: SessionPartitions, key: Key) -> int:
        return places(self).index(key)

    def has_slots(self: SessionPartitions, positions: Iterable[LeanPosition]) -> bool:
        return all(position.slot < len(self._all) for position in positions)

    switch.instead(SessionPartitions, "_key_of", key_of)
    switch.instead(SessionPartitions, "slot_of", slot_of)
    switch.instead(SessionPartitions, "has_slots", has_slots)


def _a_lost_answer_counts_as_read(switch: Switch) -> None:
    """A follower whose answer is lost goes on in the session, with positions that it has sent already."""

    def lean_positions(original: Any) -> Any:
        def mutated(self: SessionWithLeader, *asked: Any) -> list[LeanPosition] | None:
            self._is_in_doubt = False
            positions: list[LeanPosition] | None = original(self, *asked)
            return positions

        return mutated

    def put_into_lean(original: Any) -> Any:
        def mutated(self: SessionWithLeader, request: LeanFetchRequest, positions: Iterable[Any]) -> None:
            original(self, request, positions)
            self._known |= self._said

        return mutated

    def begin_lean(original: Any) -> Any:
        def mutated(self: FetchSessions, session_id: int, epoch: int, *rest: Any) -> LeanContext | ErrorCode:
            session = self._sessions.get(session_id)
            if session is not None:
                session.epoch = epoch
            context: LeanContext | ErrorCode = original(self, session_id, epoch, *rest)
            return context

        return mutated

    switch.method(SessionWithLeader, "lean_positions", lean_positions)
    switch.method(SessionWithLeader, "put_into_lean", put_into_lean)
    switch.method(FetchSessions, "begin_lean", begin_lean)


def _rest_hides_changes(switch: Switch) -> None:
    """A change wakes no partition at rest, and rest has no end."""

    def wake(self: SessionPartitions, token: int) -> None:
        """The token is gone, and the partition rests on."""

    def begin(original: Any) -> Any:
        def mutated(self: SessionPartitions, left: Any, epoch: Any, now_ms: int, rest_max_ms: int) -> Any:
            return original(self, left, epoch, now_ms, 1 << 60)

        return mutated

    def wake_all(self: SessionPartitions) -> list[Resting]:
        return []

    switch.instead(SessionPartitions, "wake", wake)
    switch.instead(SessionPartitions, "wake_all", wake_all)
    switch.method(SessionPartitions, "_begin", begin)


LEAN_FETCH: Final[tuple[Mutant, ...]] = (
    Mutant(
        "slots-are-places",
        "a protocol that names partitions by number",
        "a partition is sent, and fetched from, the position of another",
        30,
        _slots_are_places,
        is_quick=True,
    ),
    Mutant(
        "a-lost-answer-counts-as-read",
        "KIP-227, fetches repeated within a session",
        "what the lost answer said is never said again",
        60,
        _a_lost_answer_counts_as_read,
    ),
    Mutant(
        "rest-hides-changes",
        "partitions at rest",
        "a replica stays behind until its session ends",
        60,
        _rest_hides_changes,
    ),
)
