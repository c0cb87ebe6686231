"""Holes of quotas and of agreements: who waits, for whom, and whose value counts."""

import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

from simulation.mutants.mutant import Switch
from simulation.mutants.security.checked_mutant import CheckedMutant
from sparklog.core.client_quotas.quota_table import Limit, QuotaTable, Shared
from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.core.client_quotas.usage import RateUsage
from sparklog.core.coordinator.actions import Reply, Token, Written
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.write_coordinator import agreements
from sparklog.core.write_coordinator.agreements import Agreements
from sparklog.core.write_coordinator.records import AgreementKey
from sparklog.core.write_coordinator.requests import Agree
from sparklog.core.write_coordinator.responses import Agreed
from sparklog.model.parts import Part
from sparklog.model.quota_entity import USER, QuotaEntity
from sparklog.model.time import MonotonicMs, WallMs
from sparklog.network.channel import Channel
from sparklog.network.clock import SystemClock
from sparklog.network.exchange import Exchange
from sparklog.network.streams.byte_stream import PlainStream
from sparklog.wire.framing import FRAME_PREFIX

_NOW: Final = Now(MonotonicMs(1_000_000), WallMs(1_000_000))
_THROTTLE_MS: Final = 3_600_000


def _wait_first(switch: Switch) -> None:
    """A client that must wait gets its answer after that."""

    def send_reply(original: Any) -> Any:
        def mutated(self: Channel, exchange: Exchange, parts: Sequence[Part], throttle_ms: int) -> None:
            if throttle_ms:
                self._owner.postpone(throttle_ms, lambda: original(self, exchange, parts, 0))
            else:
                original(self, exchange, parts, 0)

        return mutated

    switch.method(Channel, "send_reply", send_reply)


class _Owner:
    """A processor that never comes to its work."""

    has_held_up = False

    def admit(self, frame_bytes: int) -> bool:
        return True

    def credit(self, frame_bytes: int) -> None: ...

    def attend(self, channel: Channel) -> None: ...

    def submit(self, exchange: Exchange) -> None: ...

    def postpone(self, delay_ms: int, action: Callable[[], None]) -> None: ...


def _check_order_of_throttles() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        theirs.sendall(FRAME_PREFIX.pack(7) + b"request")
        stream = PlainStream(ours)
        channel = Channel(
            stream,
            connection_id=1,
            client_host="10.0.0.1",
            listener="L",
            principal="User:alice",
            frame_bytes_max=100,
            clock=SystemClock(),
            owner=_Owner(),
        )
        channel.receiver.receive(stream)
        exchange = channel.next_exchange()
        assert exchange is not None
        assert channel.take_up(exchange)
        exchange.reply([FRAME_PREFIX.pack(6) + b"answer"], _THROTTLE_MS)
        assert _received(theirs) == FRAME_PREFIX.pack(6) + b"answer"


def _received(sock: socket.socket) -> bytes:
    try:
        return sock.recv(100)
    except BlockingIOError:
        return b""


def _one_for_all_users(switch: Switch) -> None:
    """Users without a quota of their own share that of any user, instead of having one each."""

    def find(original: Any) -> Any:
        def mutated(self: QuotaTable, user: str, client_id: str) -> Limit | None:
            found: Limit | None = original(self, user, client_id)
            return None if found is None else Limit(found.bound, Shared("", found.shared.client_id))

        return mutated

    switch.method(QuotaTable, "find", find)


def _check_users_apart() -> None:
    table = QuotaTable()
    table.put(QuotaEntity(((USER, None),)), 10.0)
    usage, now_ms = RateUsage(table, Windows()), _NOW.monotonic_ms
    assert usage.record("bob", "c", 1_000_000, now_ms) > 0
    assert usage.record("alice", "c", 1, now_ms) == 0


def _names_are_enough(switch: Switch) -> None:
    """The first value of a name counts for all, whoever put it."""
    switch.instead(agreements, "AgreementKey", lambda name, principal: AgreementKey(name))


def _check_values_apart() -> None:
    machine = Agreements()
    asked = Agree(name="cut-1", value=b"of mallory", principal="User:mallory")
    machine.on_request(Token(1), asked, _NOW)
    for write_id in list(machine.pending):
        machine.on_written(write_id, Written(), _NOW)
    answers = machine.on_request(Token(2), Agree(name="cut-1", principal="User:alice"), _NOW)
    assert answers == [Reply(Token(2), Agreed())]


LIMITS: Final = (
    CheckedMutant(
        "throttle-before-the-reply",
        "KIP-219",
        "a client waits for its answer until it times out, and sends the request again",
        _wait_first,
        _check_order_of_throttles,
    ),
    CheckedMutant(
        "another-users-quota",
        "KIP-55",
        "a user waits for what another has used",
        _one_for_all_users,
        _check_users_apart,
    ),
    CheckedMutant(
        "agree-without-principal",
        "possible hole",
        "a team decides what another's batch read sees",
        _names_are_enough,
        _check_values_apart,
    ),
)
