"""The network: real frames through the real codec, over connections that delay, lose and break.

As over TCP, what one connection carries arrives in order, once, or not at all: a frame that is lost takes the
connection with it. Reordering comes from there being several connections, and from requests that still arrive
after their sender gave up on the connection that carried them. A request can also arrive twice: later,
over a connection of its own, and its answer is read by nobody, as what is left of a client that tried again.
Some brokers of a seed are of a release without the lean fetch, and others are taken for such now and then, so
that followers use both forms.
Of what producers send a bit may flip on the way, where a CRC covers it: TCP's checksum does not see all.
As at a real listener, one request of a connection is in progress at a time, and answers leave in order.

A request is an event at its receiver, an answer one at its sender: both can be paused or dead by then.
"""

import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.schedule import US_PER_MS, Event, Process, Schedule, dice
from sparklog.broker.dispatch import begins_beside
from sparklog.core.security.requester import ANONYMOUS
from sparklog.model.cluster_facts import DEFAULT_LISTENER
from sparklog.model.parts import Part, read_parts
from sparklog.model.time import MonotonicMs
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.network.reply_order import ReplyOrder
from sparklog.records.envelope import ATTRIBUTES_POSITION
from sparklog.wire.codec import Message, decode_response, encode_request
from sparklog.wire.forms.connection_forms import ConnectionForms
from sparklog.wire.messages.data.produce import ProduceRequest
from sparklog.wire.versions import KNOWN_VERSIONS

SIZE_PREFIX_BYTES: Final = 4
REPEAT_LATE_MS: Final = (1.0, 30.0, 1_500.0)
"""How much later than the first a request that is repeated may come."""

OLD_RELEASES: Final = 0.25
"""How many brokers do not know the lean fetch."""
LEAN_REFUSALS: Final = 0.02
"""How often a connection that is new, or made anew, leads to one that does not know it."""

Serve = Callable[[Exchange], None]
OnResponse = Callable[[Any], None]
OnFailure = Callable[[OSError], None]


@dataclass(slots=True)
class Weather:
    """How one direction between two hosts does now. Faults change it and set it back."""

    random: random.Random
    delay_ms: tuple[float, float]
    is_cut: int = 0
    is_silent: int = 0
    """What is lost is not noticed: a connection hangs until somebody has waited for too long."""
    loss: float = 0.0
    answer_loss: float = 0.0
    repeat: float = 0.0
    extra_ms: float = 0.0
    answer_extra_ms: float = 0.0
    """How much later answers may leave than they are given, as if who gives them were slow."""

    def draw_delay_us(self) -> int:
        low, high = self.delay_ms
        draw = self.random.random
        return int((low + (high - low) * draw() + draw() * self.extra_ms) * US_PER_MS)

    def draw_answer_us(self) -> int:
        slow_us = int(self.random.random() * self.answer_extra_ms * US_PER_MS) if self.answer_extra_ms else 0
        return self.draw_delay_us() + slow_us

    def loses(self) -> bool:
        return self.is_cut > 0 or (self.loss > 0 and self.random.random() < self.loss)

    def loses_answer(self) -> bool:
        """The request took place, and its sender never hears of it."""
        return self.loses() or (self.answer_loss > 0 and self.random.random() < self.answer_loss)

    def draw_repeat_us(self) -> int | None:
        """How much later a request comes a second time; None if it does not."""
        if not self.repeat or self.random.random() >= self.repeat:
            return None
        return int(self.random.uniform(0, self.random.choice(REPEAT_LATE_MS)) * US_PER_MS)


class Call:
    """One request on its way; exactly one of ``on_response`` and ``on_failure`` is called, or neither if
    the caller dies."""

    __slots__ = (
        "connection",
        "deadline",
        "is_repeated",
        "message_key",
        "on_failure",
        "on_response",
        "version",
    )

    def __init__(
        self,
        connection: "Connection",
        message: Message,
        version: int,
        on_response: OnResponse,
        on_failure: OnFailure,
    ) -> None:
        self.connection = connection
        self.message_key = message.API_KEY
        self.version = version
        self.on_response = on_response
        self.on_failure = on_failure
        self.deadline: Event | None = None
        self.is_repeated = False
        """Whether the request arrives a second time."""

    def abandon(self) -> None:
        """Close the connection, as ``PeerConnections.forget`` does; whoever waits on it is told."""
        self.connection.fail("the connection was closed on this side", ConnectionAbortedError)


@dataclass(slots=True)
class Host:
    """Somebody who listens: the process and what it does with a request."""

    process: Process
    serve: Serve


class Connection:
    """One caller's connection to an address, from the first call to the first trouble."""

    def __init__(
        self,
        network: "Network",
        caller: Process,
        origin: str,
        address: str,
        *,
        is_echo: bool = False,
        is_bound: bool = False,
        lane: int = 0,
    ) -> None:
        """``lane``: which of the caller's connections to that address. ``is_bound``: to the process that
        listens there. What is on its way to that one is nothing to the next; otherwise it comes to that as
        well, as if the caller had tried again.
        """
        self.network = network
        self._is_echo = is_echo
        host = network.hosts.get(address) if is_bound else None
        self._is_bound = is_bound
        self._peer = None if host is None else host.process
        self.caller = caller
        self.origin = origin
        self.address = address
        self.lane = lane
        self.is_open = True
        self.hangs = False
        self.number = next(network.numbers)
        self._waiting: deque[Call] = deque()
        self._arrival_us = 0
        self._answer_us = 0
        self._inbox: deque[tuple[Host, bytes]] = deque()
        self._order = ReplyOrder(begins_beside)
        """Requests that are served, as a real connection of a broker orders them."""
        self._forms = ConnectionForms()
        self._has_lost_an_answer = False
        """Those that follow are to later calls, and nobody could tell."""
        self._is_broken_there = False
        """Ended at the other side; word of that may be on its way yet."""

    def send(self, call: Call | None, frame: bytes) -> None:
        """``call`` waits for the answer; None: there will not be one."""
        if call is not None:
            self._waiting.append(call)
        if self.hangs:
            self.network.reach("a request went into a hanging connection")
            return
        weather = self.network.weather(self.origin, self.address)
        if weather.loses():
            self._is_lost(weather)
            return
        schedule = self.network.schedule
        self._arrival_us = max(schedule.now_us + weather.draw_delay_us(), self._arrival_us + 1)
        schedule.at(self._arrival_us, None, lambda: self._arrive(frame))
        late_us = weather.draw_repeat_us()
        if late_us is not None:
            if call is not None:
                call.is_repeated = True
            echo = Connection(
                self.network, self.caller, self.origin, self.address, is_echo=True, is_bound=self._is_bound
            )
            echo.number = -echo.number  # the connection that was given up is older than all others
            schedule.at(self._arrival_us + late_us, None, lambda: echo._arrive(frame))

    def _is_lost(self, weather: Weather) -> None:
        """What follows on this connection cannot arrive either, whether its caller knows or not.

        A client sends over it until it knows (``is_bound``): on another one its next request might arrive in
        front of this one, and be answered as if it was the first.
        """
        self.hangs = weather.is_silent > 0 or (self._is_bound and self.is_open)
        self.is_open = self.hangs and self.is_open
        if self.hangs and not weather.is_silent:
            delay_us = weather.draw_delay_us()
            self.network.schedule.after(delay_us, self.caller, lambda: self.fail("reset"))

    def _arrive(self, frame: bytes) -> None:
        if self._is_bound and self._is_broken_there:
            return
        host = self.network.hosts.get(self.address)
        if host is None or not host.process.is_alive:
            self._break_from_there("nobody listens there", ConnectionRefusedError)
            return
        if self._is_bound:
            self._peer = self._peer or host.process
            if self._peer is not host.process:
                self._break_from_there("another process listens there by now")
                return
        self._inbox.append((host, frame))
        self._serve_next()

    def _serve_next(self) -> None:
        if not self._inbox or not self._order.is_newest_settled or not self._order.has_room:
            return
        host, frame = self._inbox[0]
        context = RequestContext(
            connection_id=self.number,
            client_host=self.origin,
            listener=DEFAULT_LISTENER,
            received_ms=MonotonicMs(self.network.schedule.now_ms),
            principal=self.network.principal_of(self.origin),
        )
        path = _Answers(self, host)
        exchange = Exchange(memoryview(bytearray(frame)[SIZE_PREFIX_BYTES:]), context, path, self._forms)
        if not self._order.may_begin(exchange):
            return
        self._inbox.popleft()
        self._order.add(exchange)
        if len(self._order) > 1:
            self.network.reach("a produce began while an earlier one waited")
        host.process.soon(lambda: host.serve(exchange))

    def let_next_begin(self, exchange: Exchange) -> None:
        if self._order.newest is exchange:
            self._order.is_newest_settled = True
            self._serve_next()

    def answer(self, host: Host, exchange: Exchange, parts: list[Part]) -> None:
        """What the server replied; nothing if it was acks=0."""
        exchange.reply_parts = parts
        while (ready := self._order.ready()) is not None:
            self._order.remove(ready)
            if host.process.is_alive and ready.reply_parts:
                self._send_answer(list(ready.reply_parts))
        if host.process.is_alive:
            self._serve_next()

    def _send_answer(self, parts: list[Part]) -> None:
        if self._is_echo or self._has_lost_an_answer or self._is_broken_there:
            return
        weather = self.network.weather(self.address, self.origin)
        if weather.loses_answer():
            self._has_lost_an_answer = True
            self._is_lost(weather)
            return
        frame = read_parts(parts)
        schedule = self.network.schedule
        self._answer_us = max(schedule.now_us + weather.draw_answer_us(), self._answer_us + 1)
        schedule.at(self._answer_us, self.caller, lambda: self._receive(frame))

    def _receive(self, frame: bytes) -> None:
        if not self._waiting:
            return  # given up meanwhile
        call = self._waiting.popleft()
        if call.deadline is not None:
            call.deadline.cancel()
        _, response = decode_response(call.message_key, call.version, memoryview(frame)[SIZE_PREFIX_BYTES:])
        call.on_response(response)

    def close_from_there(self) -> None:
        """The server closed it, or died."""
        self._inbox.clear()
        self._break_from_there("closed by the other side")

    def _break_from_there(self, why: str, kind: type[OSError] = ConnectionError) -> None:
        self._is_broken_there = True
        weather = self.network.weather(self.address, self.origin)
        if weather.loses():
            self._is_lost(weather)
            return
        self.network.schedule.after(weather.draw_delay_us(), self.caller, lambda: self.fail(why, kind))

    def fail(self, why: str, kind: type[OSError] = ConnectionError) -> None:
        """End it on the caller's side; every call that waits is told, as events of the caller."""
        self.is_open = False
        self.network.drop(self)
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            if call.deadline is not None:
                call.deadline.cancel()
            self.caller.soon(lambda call=call: call.on_failure(kind(f"{self.address}: {why}")))  # type: ignore[misc]


class _Answers:
    """``exchange.ReplyPath``."""

    def __init__(self, connection: Connection, host: Host) -> None:
        self._connection = connection
        self._host = host

    def send_reply(self, exchange: Exchange, parts: Any, throttle_ms: int) -> None:
        self._connection.network.on_answer(self._host.process, exchange, list(parts))
        self._connection.answer(self._host, exchange, list(parts))

    def let_next_begin(self, exchange: Exchange) -> None:
        self._connection.let_next_begin(exchange)

    def disconnect(self) -> None:
        self._connection.close_from_there()

    def send_last(self, exchange: Exchange, parts: Any, delay_ms: int) -> None:
        raise AssertionError("nobody logs in in the simulation")

    def identify(self, principal: str) -> None:
        raise AssertionError("nobody logs in in the simulation")

    def admits(self, exchange: Exchange) -> bool:
        return True


@dataclass(slots=True)
class Network:
    """All hosts and all that is between them."""

    schedule: Schedule
    seed: int
    delay_ms: tuple[float, float]
    hosts: dict[str, Host] = field(default_factory=dict)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    reach: Callable[[str], None] = lambda mark: None
    """Told of marks."""
    story: Callable[[str, str], None] = lambda who, what: None
    """Told of what becomes of frames."""
    principal_of: Callable[[str], str] = lambda origin: ANONYMOUS
    """As whom the program at an address has logged in."""
    on_answer: Callable[[Process, Exchange, list[Part]], None] = lambda process, exchange, parts: None
    """Shown each answer before it leaves its process."""
    _weather: dict[tuple[str, str], Weather] = field(default_factory=dict)
    _flips: dict[str, float] = field(default_factory=dict)
    """How likely a bit flips of a batch on its way to an address."""
    _flip_dice: dict[tuple[str, str], random.Random] = field(default_factory=dict)
    """Not those of the weather: a frame that is damaged takes no other time than without."""
    _releases: dict[str, random.Random] = field(default_factory=dict)
    """The dice of each address for the releases that its callers find there."""
    _old_releases: set[str] = field(default_factory=set)
    _connections: dict[tuple[Process, str, int], Connection] = field(default_factory=dict)
    _correlation: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    callers: list[str] = field(default_factory=list)
    """Whoever has called and does not listen: the clients."""

    def listen(self, address: str, process: Process, serve: Serve) -> None:
        self.hosts[address] = Host(process, serve)

    def died(self, process: Process) -> None:
        """The kernel closes what the process held: others learn it, if the network lets them."""
        for address, host in list(self.hosts.items()):
            if host.process is process:
                del self.hosts[address]
                for connection in list(self._connections.values()):
                    if connection.address == address:
                        connection.close_from_there()
        for key in [key for key in self._connections if key[0] is process]:
            del self._connections[key]

    def weather(self, origin: str, destination: str) -> Weather:
        known = self._weather.get((origin, destination))
        if known is None:
            link = dice(self.seed, f"link {origin} {destination}")
            known = self._weather[origin, destination] = Weather(link, self.delay_ms)
        return known

    def call(
        self,
        caller: Process,
        origin: str,
        address: str,
        message: Message,
        *,
        timeout_ms: int,
        on_response: OnResponse,
        on_failure: OnFailure,
        is_bound: bool = False,
        lane: int = 0,
    ) -> Call | None:
        """Send a request; None if the caller is dead and nothing leaves it any more."""
        if not caller.is_alive:
            return None
        connection = self._connect(caller, origin, address, is_bound=is_bound, lane=lane)
        version = KNOWN_VERSIONS[message.API_KEY].max
        frame = self._frame(origin, address, message, version)
        call = Call(connection, message, version, on_response, on_failure)
        call.deadline = self.schedule.after(
            timeout_ms * US_PER_MS,
            caller,
            lambda: connection.fail(f"no answer in {timeout_ms} ms", TimeoutError),
        )
        connection.send(call, frame)
        return call

    def has_lean_fetch(self, address: str) -> bool:
        """Whether ApiVersions tells a follower that the broker there has it."""
        draw = self._releases.get(address)
        if draw is None:
            draw = self._releases[address] = dice(self.seed, f"release of {address}")
            if draw.random() < OLD_RELEASES:
                self._old_releases.add(address)
        is_known = address not in self._old_releases and draw.random() >= LEAN_REFUSALS
        self.reach("a follower asked in the lean form" if is_known else "a leader had no lean fetch")
        return is_known

    def tell(self, caller: Process, origin: str, address: str, message: Message) -> None:
        """Send a request that is never answered, such as Produce with acks=0."""
        if caller.is_alive:
            version = KNOWN_VERSIONS[message.API_KEY].max
            frame = self._frame(origin, address, message, version)
            self._connect(caller, origin, address).send(None, frame)

    def flip_bits(self, address: str, more: float) -> None:
        """How much more likely it is from now on."""
        self._flips[address] = max(0.0, self._flips.get(address, 0.0) + more)

    def _frame(self, origin: str, address: str, message: Message, version: int) -> bytes:
        """What travels; its sender keeps what it sent as it was, so that a retry is whole."""
        frame = encode_request(message, version, next(self._correlation), origin)
        chance = self._flips.get(address)
        if not chance or not isinstance(message, ProduceRequest):
            return frame
        draw = self._flip_dice.get((origin, address))
        if draw is None:
            draw = self._flip_dice[origin, address] = dice(self.seed, f"flips {origin} {address}")
        batch = message.topic_data[0].partition_data[0].records
        if draw.random() >= chance or batch is None:
            return frame
        place = draw.randrange(ATTRIBUTES_POSITION, len(batch))
        self.reach("a bit of a batch flipped on its way")
        self.story(origin, f"sends to {address}, and on the way a bit flips in byte {place} of the batch")
        damaged = bytearray(frame)
        damaged[frame.index(batch) + place] ^= 1 << draw.randrange(8)
        return bytes(damaged)

    def _connect(
        self, caller: Process, origin: str, address: str, *, is_bound: bool = False, lane: int = 0
    ) -> Connection:
        """The connection that is there, or a new one."""
        connection = self._connections.get((caller, address, lane))
        if connection is None or not connection.is_open:
            connection = Connection(self, caller, origin, address, is_bound=is_bound, lane=lane)
            if is_bound and origin not in self.callers:
                self.callers.append(origin)
            self._connections[caller, address, lane] = connection
        return connection

    def refuses(self, origin: str, address: str) -> bool:
        """Whether a host that can be reached would refuse a connection to ``address``, as no process listens
        there. That of a paused process accepts it."""
        ways = self.weather(origin, address), self.weather(address, origin)
        host = self.hosts.get(address)
        return not any(way.is_cut for way in ways) and (host is None or not host.process.is_alive)

    def drop(self, connection: Connection) -> None:
        key = (connection.caller, connection.address, connection.lane)
        if self._connections.get(key) is connection:
            del self._connections[key]
