"""The client's side of a connection: requests out, answers in, in order.

There is no reader thread. Whoever waits for an answer reads, for everybody: one waiter takes the reader's
role, hands each frame to the request that it answers, and passes the role on when its own answer is there.
So a call costs no hop between threads, and an idle connection costs nothing at all.

A sender whose socket is full reads as well while it waits. Otherwise two sides that both only write would
wait for each other for ever: a broker does not read the next request before its last answer is taken.

A peer may ask for a login. It is done when the connection is opened, and anew between two requests before the
session ends (KIP-368): whoever sends next does that first.

``close`` may be called by any thread, and ends every wait at once. The descriptor itself is closed by the
last thread that uses the socket, because its number could otherwise be given to another file in the meantime.
"""

import select
import struct
import threading
import time
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Self

from sparklog import __version__
from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import ErrorCode, KafkaError, WireError
from sparklog.network.dialing.dial import dial
from sparklog.network.dialing.peer_refused import PeerRefused
from sparklog.network.streams.byte_stream import ByteStream, PlainStream
from sparklog.network.streams.inbound import FrameReceiver
from sparklog.wire.codec import Message, decode_response, encode_request
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sparklog.wire.versions import INTERNAL_VERSIONS, KNOWN_VERSIONS

if TYPE_CHECKING:
    from sparklog.network.login.client_login import ClientLogin
    from sparklog.network.tls.sides import TlsClient

ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
"""The largest answer that is accepted; memory follows what arrives."""

TLS_REMEDY: Final = "security.protocol=SSL"
"""What a client in the clear is to set at a port with TLS."""

LOGIN_REMEDY: Final = "security.protocol=SASL_SSL, or SASL_PLAINTEXT"
"""What a client without a login is to set at a port where clients log in."""

_CORRELATION_ID: Final = struct.Struct(">i")
_CORRELATION_IDS: Final = 1 << 31

_POLL_MAX_MS: Final = 2**31 - 1
"""The longest wait that poll(2) takes, a C int. Callers poll until their own deadline."""

_SEND_SLICE_S: Final = 0.05
"""How long a sender looks only at its own half before it asks again whether somebody reads."""

_SESSION_SHARE: Final = 0.85
"""The part of a session's time after which this side logs in anew, as Kafka's clients do."""

_BROKEN: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Pending:
    """A request that was sent, and the answer to it some day."""

    __slots__ = ("_connection", "_message", "api_key", "correlation_id", "frame", "version")

    def __init__(self, connection: "Connection", api_key: int, version: int, correlation_id: int) -> None:
        self._connection = connection
        self._message: Any = None
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.frame: memoryview | None = None  # the answer, once it has arrived

    def result(self, timeout_ms: int) -> Any:
        """The answer, waited for.

        Raises TimeoutError if it does not come in time (it may be asked for again), ConnectionError if the
        connection ended before, WireError if it cannot be understood (the connection is closed then).
        """
        if self._message is None:
            frame = self._connection.wait_for(self, timeout_ms)
            try:
                self._message = decode_response(self.api_key, self.version, frame)[1]
            except WireError as error:
                self._connection.fail(error)
                raise
            throttle_ms = getattr(self._message, "throttle_time_ms", 0)
            if throttle_ms > 0:
                self._connection.be_quiet(throttle_ms)
        return self._message


class Connection:
    """One TCP connection to a broker or controller, for any number of threads."""

    def __init__(
        self,
        stream: ByteStream,
        peer: str,
        *,
        client_id: str,
        timeout_ms: int,
        frame_bytes_max: int,
        login: "ClientLogin | None" = None,
    ) -> None:
        self.peer = peer
        self._stream = stream
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._receiver = FrameReceiver(frame_bytes_max)
        self._correlation_ids = count()
        self._served: dict[int, tuple[int, int]] | None = None  # what the peer said that it serves
        self._login = login
        self._login_due: float | None = None  # when this side logs in anew, by time.monotonic()
        self._sending = threading.Lock()  # one frame at a time, in the order of ``_awaited``
        self._changed = threading.Condition(threading.Lock())  # over all that follows
        self._awaited: deque[Pending] = deque()
        self._is_reader_there = False
        self._users = 0  # threads that use the socket at this moment
        self._failure: Exception | None = None
        self._quiet_until = 0.0
        """Until when the peer has asked for no request; 0 if it never has."""

    @classmethod
    def open(
        cls,
        host: str,
        port: int,
        *,
        client_id: str,
        timeout_ms: int,
        frame_bytes_max: int = ANSWER_BYTES_MAX,
        tls: "TlsClient | None" = None,
        login: "ClientLogin | None" = None,
    ) -> Self:
        """Connect, or raise as ``dial`` does, and log in; LoginRefused if that is refused. ``timeout_ms``
        also bounds each later send.
        """
        stream = dial(host, port, timeout_ms=timeout_ms, tls=tls)
        connection = cls(
            stream,
            host_port(host, port),
            client_id=client_id,
            timeout_ms=timeout_ms,
            frame_bytes_max=frame_bytes_max,
            login=login,
        )
        if login is not None:
            with connection._sending:
                connection._log_in(login)
        return connection

    @property
    def is_open(self) -> bool:
        """Whether nothing is known to be wrong; a peer that vanished shows only at the next call."""
        return self._failure is None

    def has_peer_left(self) -> bool:
        """Whether the peer has ended the connection while nothing was awaited, as peers do with idle ones."""
        with self._changed:
            if self._failure is not None:
                return True
            if self._awaited or self._is_reader_there:
                return False
            self._is_reader_there = True
            self._users += 1
        try:
            # What is readable may be for TLS alone: a server sends tickets after the handshake.
            if self._poll(select.POLLIN, 0.0):
                self._receive()
        except (OSError, WireError) as error:
            self.fail(error)
        finally:
            self._leave_socket(is_reader=True)
        return not self.is_open

    def call(self, message: Message, *, version: int | None = None, timeout_ms: int) -> Any:
        """Send ``message`` and wait for its answer; without a version, the latest that both sides have."""
        self._wait_while_quiet(timeout_ms)
        return self.send(message, version).result(timeout_ms)

    def send(self, message: Message, version: int | None = None) -> Pending:
        """Send ``message`` and return at once; its answer is awaited with ``Pending.result``. If the peer has
        asked this client to wait, because of a quota, it is sent after that.
        """
        return self._send(message, version, is_answered=True)

    def send_one_way(self, message: Message, version: int | None = None) -> None:
        """Send what is never answered: a produce with acks=0."""
        self._send(message, version, is_answered=False)

    def be_quiet(self, throttle_ms: int) -> None:
        """Send nothing for so long. The peer has asked for it, because of a quota, and would read nothing."""
        with self._changed:
            self._quiet_until = max(self._quiet_until, time.monotonic() + throttle_ms / 1_000)

    def version_for(self, api_key: int) -> int:
        """The latest version of an API that both sides have; asks the peer the first time."""
        ours = KNOWN_VERSIONS[api_key]
        if api_key in INTERNAL_VERSIONS:
            return ours.max  # both ends are ours, and do not advertise it
        if self._served is None:
            self._served = self._ask_versions()
        lowest, highest = self._served.get(api_key, (0, -1))
        version = min(ours.max, highest)
        if version < max(ours.min, lowest):
            theirs = f"versions {lowest} to {highest}" if highest >= 0 else "no version"
            raise KafkaError(
                ErrorCode.unsupported_version,
                f"{self.peer} serves {theirs} of {ours.name}, this client has {ours.min} to {ours.max}",
            )
        return version

    def close(self) -> None:
        """Close the connection; waiting calls raise ConnectionAbortedError.

        May be called twice, by any thread.
        """
        self.fail(ConnectionAbortedError("closed by this side"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def fail(self, reason: Exception) -> None:
        """Close because of ``reason``, which waiting and later calls raise."""
        with self._changed:
            if self._failure is not None:
                return
            self._failure = reason
            self._awaited.clear()
            self._changed.notify_all()
            if self._users == 0:
                self._stream.close()
                return
            try:
                self._stream.shutdown()  # wakes threads in poll
            except OSError:
                return  # the peer was faster: they are awake

    # Versions

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        response = self._call_api_versions(KNOWN_VERSIONS[ApiVersionsRequest.API_KEY].max)
        if response.error_code is ErrorCode.unsupported_version:
            theirs = {key.api_key: key.max_version for key in response.api_keys}
            response = self._call_api_versions(theirs.get(ApiVersionsRequest.API_KEY, 0))  # KIP-511
        if response.error_code is not ErrorCode.none:
            raise KafkaError(response.error_code, f"{self.peer} does not tell which versions it serves")
        listed = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
        own = iter(response.own_apis)
        return listed | {key: (least, greatest) for key, least, greatest in zip(own, own, own, strict=False)}

    def _call_api_versions(self, version: int) -> ApiVersionsResponse:
        request = ApiVersionsRequest(client_software_name="sparklog", client_software_version=__version__)
        response: ApiVersionsResponse = self.call(request, version=version, timeout_ms=self._timeout_ms)
        return response

    # Sending

    def _wait_while_quiet(self, timeout_ms: int | None = None) -> None:
        """Wait as the peer has asked, or until the connection ends. TimeoutError if that is longer than
        ``timeout_ms``.
        """
        if not self._quiet_until:
            return
        with self._changed:
            wait_s = self._quiet_until - time.monotonic()
            if timeout_ms is not None and wait_s > timeout_ms / 1_000:
                raise TimeoutError(
                    f"{self.peer} asks this client to wait for {wait_s:.1f} s, because of a quota; that is "
                    f"longer than {timeout_ms} ms"
                )
            while (wait_s := self._quiet_until - time.monotonic()) > 0 and self._failure is None:
                self._changed.wait(wait_s)

    def _send(self, message: Message, version: int | None, *, is_answered: bool) -> Pending:
        if version is None:
            version = self.version_for(message.API_KEY)
        self._wait_while_quiet()
        with self._sending:
            if self._login_due is not None and time.monotonic() >= self._login_due:
                assert self._login is not None, "a session that ends was begun by a login"
                self._log_in(self._login)
            return self._send_next(message, version, is_answered=is_answered)

    def _log_in(self, login: "ClientLogin") -> None:
        """Before all further requests: this thread has the right to send."""
        try:
            session_ms = login.log_in(self._ask_in_login)
        except PeerRefused as error:
            refused = type(error)(f"{self.peer}: {error}")
            self.fail(refused)
            raise refused from error
        except BaseException as error:
            self.fail(ConnectionError(f"the login at {self.peer} did not end: {error}"))
            raise
        due = time.monotonic() + session_ms * _SESSION_SHARE / 1_000
        self._login_due = due if session_ms else None

    def _ask_in_login(self, message: Message, version: int) -> Any:
        return self._send_next(message, version, is_answered=True).result(self._timeout_ms)

    def _send_next(self, message: Message, version: int, *, is_answered: bool) -> Pending:
        correlation_id = next(self._correlation_ids) % _CORRELATION_IDS
        frame = encode_request(message, version, correlation_id, self._client_id)
        pending = Pending(self, message.API_KEY, version, correlation_id)
        deadline = time.monotonic() + self._timeout_ms / 1_000
        self._use_socket(pending if is_answered else None)
        try:
            self._send_all(memoryview(frame), deadline)
        except (OSError, WireError) as error:
            self.fail(error)
            raise self._ended() from error
        finally:
            self._leave_socket()
        return pending

    def _send_all(self, rest: memoryview, deadline: float) -> None:
        while rest:
            try:
                sent = self._stream.send(rest)
            except BlockingIOError:
                self._wait_until_writable(deadline)
            else:
                rest = rest[sent:]
        while self._stream.unsent_bytes and not self._stream.flush():
            self._wait_until_writable(deadline)

    def _wait_until_writable(self, deadline: float) -> None:
        wait_s = deadline - time.monotonic()
        if wait_s <= 0:
            raise TimeoutError(f"{self.peer} took no more of a request for {self._timeout_ms} ms")
        reads_too = self._take_reader_role()
        try:
            events = select.POLLOUT | (select.POLLIN if reads_too else 0)
            if reads_too and self._poll(events, min(wait_s, _SEND_SLICE_S)) & select.POLLIN:
                self._receive()
            elif not reads_too:
                self._poll(events, min(wait_s, _SEND_SLICE_S))
        finally:
            if reads_too:
                self._give_reader_role_back()

    # Receiving

    def wait_for(self, pending: Pending, timeout_ms: int) -> memoryview:
        """The frame that answers ``pending``; for ``Pending`` itself."""
        deadline = time.monotonic() + timeout_ms / 1_000
        while pending.frame is None:
            if self._become_reader_or_wait(pending, deadline):
                try:
                    self._read_for(pending, deadline)
                finally:
                    self._leave_socket(is_reader=True)
        return pending.frame

    def _become_reader_or_wait(self, pending: Pending, deadline: float) -> bool:
        """True: now this thread reads, as a user of the socket. False: something has changed: look again."""
        with self._changed:
            if pending.frame is not None:
                return False
            if self._failure is not None:
                raise self._ended()
            if not self._is_reader_there:
                self._is_reader_there = True
                self._users += 1
                return True
            if not self._changed.wait(max(0.0, deadline - time.monotonic())) and pending.frame is None:
                raise self._too_late(pending)
            return False

    def _read_for(self, pending: Pending, deadline: float) -> None:
        while pending.frame is None:
            wait_s = deadline - time.monotonic()
            if not self._poll(select.POLLIN, max(0.0, wait_s)) and wait_s <= 0:
                raise self._too_late(pending)
            try:
                self._receive()
            except (OSError, WireError) as error:
                self.fail(error)
                if pending.frame is None:
                    raise self._ended() from error

    def _receive(self) -> None:
        """Take what has arrived and hand it out; only the reader does this."""
        try:
            received = self._receiver.receive(self._stream)
        except BlockingIOError:
            return
        if received == 0:
            raise ConnectionResetError(f"{self.peer} closed the connection{self._hint()}")
        while (frame := self._receiver.next_frame()) is not None:
            self._hand_out(frame)

    def _hint(self) -> str:
        """The likely reason if the peer has answered nothing, or no more than the versions it serves."""
        number = self._awaited[0].correlation_id if self._awaited else None
        if number == 0 and isinstance(self._stream, PlainStream):
            return f" before its first answer (if this is a port with TLS, set {TLS_REMEDY})"
        if number == 1 and self._login is None:
            return f" before its second answer (if clients log in at this port, set {LOGIN_REMEDY})"
        return ""

    def _hand_out(self, frame: memoryview) -> None:
        if len(frame) < _CORRELATION_ID.size:
            raise WireError(f"{self.peer} sent an answer of {len(frame)} bytes, which cannot be one")
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        with self._changed:
            expected = self._awaited.popleft() if self._awaited else None
            if expected is None or expected.correlation_id != correlation_id:
                awaited = "nothing" if expected is None else f"one to request {expected.correlation_id}"
                raise WireError(
                    f"{self.peer} sent an answer to request {correlation_id}; awaited was {awaited}"
                )
            expected.frame = frame
            self._changed.notify_all()

    def _poll(self, events: int, wait_s: float) -> int:
        """What the stream is ready for; broken counts as readable, for reading tells what is wrong."""
        if events & select.POLLIN and self._stream.has_pending:
            return select.POLLIN
        poll = select.poll()
        poll.register(self._stream, events)
        ready = poll.poll(min(wait_s * 1_000, _POLL_MAX_MS))
        happened = ready[0][1] if ready else 0
        return happened | select.POLLIN if happened & _BROKEN else happened

    # Roles

    def _take_reader_role(self) -> bool:
        with self._changed:
            if self._is_reader_there:
                return False
            self._is_reader_there = True
            return True

    def _give_reader_role_back(self) -> None:
        with self._changed:
            self._is_reader_there = False
            self._changed.notify_all()

    def _use_socket(self, pending: Pending | None) -> None:
        """Until ``_leave_socket`` the socket's descriptor stays this socket's. ``pending``: what is to be
        sent, if it is answered.
        """
        with self._changed:
            if self._failure is not None:
                raise self._ended()
            self._users += 1
            if pending is not None:
                self._awaited.append(pending)

    def _leave_socket(self, *, is_reader: bool = False) -> None:
        """``is_reader``: this thread also gives the reader's role back."""
        with self._changed:
            if is_reader:
                self._is_reader_there = False
                self._changed.notify_all()
            self._users -= 1
            if self._users == 0 and self._failure is not None:
                self._stream.close()

    def _ended(self) -> ConnectionError:
        kind: type[ConnectionError] = ConnectionError
        if isinstance(self._failure, ConnectionAbortedError | PeerRefused):
            kind = type(self._failure)
        error = kind(f"connection to {self.peer} has ended: {self._failure}")
        error.__cause__ = self._failure
        return error

    def _too_late(self, pending: Pending) -> TimeoutError:
        name = KNOWN_VERSIONS[pending.api_key].name
        return TimeoutError(f"{self.peer} has not answered {name} request {pending.correlation_id} in time")
