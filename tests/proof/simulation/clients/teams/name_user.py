"""Clients of both teams that use the same names: they open and end atomic writes, and agree upon values.

Nobody writes a row: what counts is whose name it is. Some end a write that they have not opened, and some
leave theirs open.
"""

from collections import Counter
from collections.abc import Generator
from typing import Any, Final

from simulation.clients.client import RETRY_MS, Workplace
from simulation.clients.transactions.producer import MOVED
from simulation.clients.transactions.script import Ask, Script, ScriptedClient, Wait
from simulation.plans.principals import CHOSEN_NAME, OWN_NAMES
from simulation.schedule import US_PER_MS
from sparklog.model.errors import ErrorCode
from sparklog.model.write_outcomes import MemberState, OpenOutcome
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY
from sparklog.wire.messages.writes.agree import AgreeRequest
from sparklog.wire.messages.writes.end_write import EndWriteRequest
from sparklog.wire.messages.writes.open_write import OpenWriteRequest

NAMES: Final = (*OWN_NAMES, CHOSEN_NAME)
ATTEMPT: Final = "the only one"

AGREES: Final = 0.4
ENDS: Final = 0.2
"""Shares of what a client does: it agrees, it ends what others have opened, or it writes."""

ASKS_ONLY: Final = 0.3
"""Share of the agreements for which it has no value."""

LEAVES: Final = 0.3
COMMITS: Final = 0.5
"""Shares of its writes: left open, committed; the others are aborted."""

AGREED_MS: Final = 1_000
"""For so long all clients agree under one name, and then under another."""

PATIENCE_MS: Final = 4_000
TIMEOUTS_MS: Final = (600, 8_000)


class NameUser(ScriptedClient):
    """``versions``: the last one that anybody has asked for, by name."""

    def __init__(self, place: Workplace, name: str, versions: Counter[str], *, every_ms: float) -> None:
        self.is_hushed = False
        """Whether it begins nothing any more."""
        self._versions = versions
        self._every_ms = every_ms
        self._hosts: dict[str, str] = {}
        """Who has answered for a name."""
        self._count = 0
        super().__init__(place, name, 1)

    def live(self) -> Script:
        while not self.is_hushed:
            yield Wait(self._draw.expovariate(1 / self._every_ms))
            self._count += 1
            fate = self._draw.random()
            if fate < AGREES:
                yield from self._agree()
            elif fate < AGREES + ENDS:
                name = self._draw.choice(NAMES)
                yield from self._end(name, self._versions[name], is_commit=self._draw.random() < COMMITS)
            else:
                yield from self._write(self._draw.choice(NAMES))

    def _agree(self) -> Script:
        """A value begins with the name of who puts it."""
        name = f"cut-{self.now_us // (AGREED_MS * US_PER_MS)}"
        value = None if self._draw.random() < ASKS_ONLY else f"{self.name} {self._count}".encode()
        response = yield from self._answer(name, AgreeRequest(name=name, value=value))
        if response is not None:
            self.tell(f"{name} is {response.value!r}, {response.error_code.name}")

    def _write(self, name: str) -> Script:
        version = self._versions[name] = self._versions[name] + self._draw.choice((0, 1))
        opened = yield from self._open(name, version, MemberState.WORKING, -1)
        if opened is None or opened.error_code is not ErrorCode.none:
            return
        fate = self._draw.random()
        if opened.outcome != OpenOutcome.MEMBER or fate < LEAVES:
            return
        yield from self._open(name, version, MemberState.FINISHED, opened.producer_id)
        if fate < LEAVES + COMMITS:
            yield from self._end(name, version, opened.producer_id, is_commit=True)
        else:
            yield from self._end(name, version, is_commit=False)

    def _open(
        self, name: str, version: int, state: MemberState, producer_id: int
    ) -> Generator[Ask | Wait, Any, Any]:
        request = OpenWriteRequest(
            app_id=name,
            app_version=version,
            run=self._run,
            attempt=ATTEMPT,
            timeout_ms=self._draw.choice(TIMEOUTS_MS),
            state=state,
            producer_id=producer_id,
        )
        response = yield from self._answer(name, request)
        if response is not None:
            outcome = OpenOutcome(response.outcome).name
            self.tell(f"opens version {version} of {name}: {response.error_code.name}, {outcome}")
        return response

    def _end(self, name: str, version: int, *winners: int, is_commit: bool) -> Script:
        request = EndWriteRequest(
            app_id=name, app_version=version, run=self._run, is_commit=is_commit, winners=list(winners)
        )
        response = yield from self._answer(name, request)
        if response is not None:
            self.tell(f"ends version {version} of {name}: {response.error_code.name}, {response.outcome}")

    @property
    def _run(self) -> str:
        return f"{self.name} {self._count}"

    def _answer(self, name: str, request: Any) -> Generator[Ask | Wait, Any, Any]:
        """The first answer that says no *later*; None if none comes."""
        until_us = self.now_us + PATIENCE_MS * US_PER_MS
        while self.now_us < until_us:
            host = self._hosts.get(name) or (yield from self._host_of(name))
            response = yield from self.ask(host, request)
            if response is not None and not response.error_code.retriable:
                self._hosts[name] = host
                return response
            if response is None or response.error_code in MOVED:
                self._hosts.pop(name, None)
            yield Wait(RETRY_MS)
        return None

    def _host_of(self, name: str) -> Generator[Ask | Wait, Any, str]:
        """A coordinator, or some broker: a team may not ask who has a name that a user has chosen."""
        if name == CHOSEN_NAME:
            return self._draw.choice(self._place.hosts)
        return (yield from self.find(name, TRANSACTION_KEY))
