"""Sends requests and judges what comes back.

A request that is not answered at once is parked: others go on over other connections, and the answer is
waited for until the time that the request itself asked for is over, and ``PATIENCE_S`` more.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from fuzz.answers import HEADER, PRODUCE, SIZE_BYTES, Asked, read_answer
from fuzz.connection import Wire
from fuzz.frames import Request, draw_request
from fuzz.layout import LayoutError
from fuzz.surroundings import Seen
from fuzz.values import SEEN
from fuzz.world import Address, World
from sparklog.model.errors import SparklogError
from sparklog.wire.forms.connection_forms import REPEATS_MIN

PATIENCE_S: Final = 20.0
"""How long an answer may be late."""

ASKED_WAIT_MAX_MS: Final = 5_000
"""A client that asked to wait longer than this leaves."""

AT_ONCE_S: Final = 0.02
PARKED_MAX: Final = 40
CHECK_EVERY: Final = 250
TIDY_EVERY: Final = 100

PROBE: Final = bytes.fromhex("0000000a 0012 0000 7fffffff ffff")
"""ApiVersions 0 with the greatest correlation id."""
PROBE_ANSWER: Final = bytes.fromhex("7fffffff 0000")
"""How its answer begins."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that was broken, after or by a request."""

    request: Request | None
    what: str


@dataclass(slots=True)
class _Parked:
    asked: Asked
    wire: Wire
    deadline: float
    leaves_at: float
    """When the client gives up; never before the deadline unless it asked to wait too long."""


class Player:
    """Plays the requests of one seed in a world; a context manager."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._seed = seed
        self._parked: list[_Parked] = []
        self._free: dict[Address, list[Wire]] = {}
        self._last: Request | None = None
        self.played = 0
        self.apis: set[tuple[int, int]] = set()
        """The APIs and versions that were played."""
        self.answered = 0

    def play(self, number: int) -> Iterator[Finding]:
        """Play request ``number`` of the seed; yields what is found by it or since the last one."""
        if self.played % TIDY_EVERY == 0:
            yield from self._tidy()
        request = self._last = draw_request(self._seed, number, self._world.surroundings)
        address = self._world.address_for(request.api_key, number)
        for again in _repeated(request):
            yield from self.send(again, address)
        self.apis.add((request.api_key, request.version))
        self.played += 1
        yield from self._look_at_parked()
        for what in self._world.complaints.take():
            yield Finding(request, what)
        if self.played % CHECK_EVERY == 0:
            yield from self.check()

    def _tidy(self) -> Iterator[Finding]:
        try:
            self._world.tidy()
        except (SparklogError, OSError) as error:
            yield Finding(self._last, f"an administrator is not served any more: {error}")

    def send(self, request: Request, address: Address) -> Iterator[Finding]:
        asked = Asked(request)
        wire = self._wire_to(address)
        wire.send(request.octets + (PROBE if asked.is_without_acks and asked.is_complete else b""))
        now = time.monotonic()
        patience = PATIENCE_S + min(asked.wait_ms, ASKED_WAIT_MAX_MS) / 1_000
        leaves_at = now + (ASKED_WAIT_MAX_MS / 1_000 if asked.wait_ms > ASKED_WAIT_MAX_MS else patience + 1)
        parked = _Parked(asked, wire, now + patience, leaves_at)
        if not asked.is_complete:
            parked.leaves_at = now + AT_ONCE_S
        yield from self._judge(parked, AT_ONCE_S)

    def check(self) -> Iterator[Finding]:
        """Hold the world against its rules."""
        for what in self._world.check():
            yield Finding(self._last, what)

    def finish(self) -> Iterator[Finding]:
        """Wait for everything that is parked, and check the world a last time."""
        while self._parked:
            yield from self._look_at_parked(AT_ONCE_S)
        yield from self.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for wires in self._free.values():
            for wire in wires:
                wire.close()
        for parked in self._parked:
            parked.wire.close()

    # Waiting

    def _look_at_parked(self, wait_s: float = 0.0) -> Iterator[Finding]:
        """Judge what is parked once, and again until few requests are left."""
        while True:
            for _ in range(len(self._parked)):
                yield from self._judge(self._parked.pop(0), wait_s)
            if len(self._parked) <= PARKED_MAX:
                return
            wait_s = AT_ONCE_S

    def _judge(self, parked: _Parked, wait_s: float) -> Iterator[Finding]:
        """Judge the answer if it is there within ``wait_s``; else park the request or say that it hangs."""
        asked, wire = parked.asked, parked.wire
        frame = wire.frame(wait_s)
        now = time.monotonic()
        if frame is not None:
            self._give_back(wire)
            yield from self._judge_answer(asked, frame)
        elif wire.is_closed:
            yield from self._judge_end(asked, wire)
        elif now > parked.leaves_at:
            wire.close()
        elif now > parked.deadline:
            wire.close()
            yield Finding(
                asked.request, f"not answered within {PATIENCE_S:.0f} s after the time that it asked for"
            )
        else:
            self._parked.append(parked)

    def _judge_answer(self, asked: Asked, frame: bytes) -> Iterator[Finding]:
        if asked.is_without_acks and frame.startswith(PROBE_ANSWER):
            return
        try:
            tree = read_answer(asked, frame)
        except LayoutError as error:
            yield Finding(asked.request, f"wrong answer: {error}; {frame[:200].hex()}")
            return
        self.answered += 1
        note_seen(tree, self._world.surroundings.seen)

    def _judge_end(self, asked: Asked, wire: Wire) -> Iterator[Finding]:
        wire.close()
        request = asked.request
        if wire.rest:
            yield Finding(request, f"closed in the middle of an answer: {wire.rest[:200].hex()}")
        serves = self._world.may_answer(request.api_key, wire.address)
        if request.is_whole and serves and not asked.may_be_refused:
            yield Finding(request, "closed instead of answered")
        with Wire(wire.address) as another:
            another.send(PROBE)
            answer = another.frame(PATIENCE_S)
        if answer is None or not answer.startswith(PROBE_ANSWER):
            yield Finding(request, "the next request, over another connection, is not served")

    # Connections

    def _wire_to(self, address: Address) -> Wire:
        """A connection that nothing is awaited on."""
        free = self._free.setdefault(address, [])
        while free:
            wire = free.pop()
            if wire.frame(0.0) is None and not wire.is_closed:
                return wire
            wire.close()
        return Wire(address)

    def _give_back(self, wire: Wire) -> None:
        if wire.is_closed:
            wire.close()
        else:
            self._free[wire.address].append(wire)


def _repeated(request: Request) -> Iterator[Request]:
    """A produce comes several times, so that its connection has a form for the last ones."""
    repeats = REPEATS_MIN + 2 if request.api_key == PRODUCE and request.is_whole else 1
    for number in range(repeats):
        octets = bytearray(request.octets)
        correlation_id = (request.correlation_id + number) % 2**31
        if number:
            HEADER.pack_into(octets, SIZE_BYTES, request.api_key, request.version, correlation_id)
        yield replace(request, octets=bytes(octets), correlation_id=correlation_id)


def note_seen(tree: Any, seen: Seen) -> None:
    """Remember the ids that an answer gives out."""
    if isinstance(tree, list):
        for item in tree:
            note_seen(item, seen)
    elif isinstance(tree, dict):
        for name, value in tree.items():
            if name in SEEN and value is not None:
                seen.note(name, value)
            note_seen(value, seen)
