"""One request on its way through the broker, and the right to answer it exactly once."""

from collections.abc import Sequence
from contextlib import suppress
from time import perf_counter_ns
from typing import NamedTuple, Protocol

from sparklog.core.security.requester import ANONYMOUS, Requester
from sparklog.model.parts import Part
from sparklog.model.time import MonotonicMs
from sparklog.wire.codec import Request, decode_request
from sparklog.wire.forms.connection_forms import ConnectionForms
from sparklog.wire.forms.produce_form import ProduceForm


class RequestContext(NamedTuple):
    """Where a request came from, as its handler may know it."""

    connection_id: int
    client_host: str
    listener: str
    received_ms: MonotonicMs
    principal: str = ANONYMOUS

    @property
    def requester(self) -> Requester:
        """Principal and address, as commands and log lines name them."""
        return Requester(self.principal, self.client_host)


class ReplyPath(Protocol):
    """The connection that a request came from, as its exchange needs it."""

    def send_reply(self, exchange: "Exchange", parts: Sequence[Part], throttle_ms: int) -> None: ...

    def let_next_begin(self, exchange: "Exchange") -> None: ...

    def disconnect(self) -> None: ...

    def send_last(self, exchange: "Exchange", parts: Sequence[Part], delay_ms: int) -> None: ...

    def identify(self, principal: str) -> None: ...

    def admits(self, exchange: "Exchange") -> bool: ...


class Exchange:
    """A request's frame, and its one answer, which may come from any thread and at any later time.

    Until the answer is given the connection is muted: its next request waits, unless the handler calls
    ``let_next_begin``. So exactly one of ``reply``, ``reply_last``, ``no_reply`` and ``close`` must be
    called, once. A second call is a bug and raises; an exchange that nobody answers leaves its client waiting
    for ever. An answer to a client that has gone is dropped.

    ``frame`` is writable memory that belongs to this exchange alone, so a leader may stamp batches in place.
    ``frame_bytes`` is its size as it arrived, also after its handler has let go of it.

    For ``request_statistics`` it has the times of its stages, 0 for those that it has not reached
    (``leaving_ns`` only if its reply had to wait for earlier ones); the API's key, once it is known; and the
    error codes of its response.
    """

    __slots__ = (
        "_forms",
        "_path",
        "_right_to_answer",
        "answered_ns",
        "api_key",
        "arrived_ns",
        "began_ns",
        "charged_bytes",
        "context",
        "errors",
        "form",
        "frame",
        "frame_bytes",
        "handled_ns",
        "is_last",
        "leaving_ns",
        "reply_parts",
        "throttle_ms",
    )

    def __init__(
        self,
        frame: memoryview,
        context: RequestContext,
        path: ReplyPath,
        forms: ConnectionForms | None = None,
    ) -> None:
        """``forms``: those of the requests of its connection, if these are known."""
        self.frame = frame
        self.frame_bytes = len(frame)
        self.charged_bytes = 0
        """What of the frame budget the frame is charged."""
        self.context = context
        self._path = path
        self._forms = forms
        self.form: ProduceForm | None = None
        """By which the request was decoded; None: by its schema."""
        self.api_key: int | None = None
        self.errors: Sequence[int] = ()
        self.reply_parts: Sequence[Part] | None = None
        """The reply, from when it is given until it is written; for the connection."""
        self.throttle_ms = 0
        """How long the connection stays muted after the reply."""
        self.is_last = False
        """Whether the connection ends after the reply."""
        self.arrived_ns = perf_counter_ns()
        self.began_ns = self.handled_ns = self.answered_ns = self.leaving_ns = 0
        self._right_to_answer = [True]  # who takes it out answers; it is never given back

    def decode(self) -> Request:
        """The request in the frame. Raises WireError as ``codec.decode_request``."""
        if self._forms is None:
            return decode_request(self.frame)
        request, self.form = self._forms.decode(self.frame)
        return request

    @property
    def is_answered(self) -> bool:
        return not self._right_to_answer

    def reply(self, parts: Sequence[Part], throttle_ms: int = 0) -> None:
        """Send ``parts``, size prefix included; the connection stays muted for ``throttle_ms`` after that."""
        self._take_right("reply")
        self._path.send_reply(self, parts, throttle_ms)

    def reply_last(self, parts: Sequence[Part], delay_ms: int) -> None:
        """Send ``parts`` after ``delay_ms``, which may be none at all, and close the connection then. No
        thread waits for that.
        """
        self._take_right("reply_last")
        self._path.send_last(self, parts, delay_ms)

    def no_reply(self, throttle_ms: int = 0) -> None:
        """Go on without an answer: what a produce with acks=0 gets."""
        self._take_right("no_reply")
        self._path.send_reply(self, (), throttle_ms)

    def let_next_begin(self) -> None:
        """Work on this request is over but for a wait: the next produce of its connection may begin.

        The order of replies remains that of requests. Called by the handler, at most once; an answer may
        have been given before.
        """
        self._path.let_next_begin(self)

    def close(self) -> None:
        """Close the connection instead of answering: the protocol's way to refuse what has no error reply."""
        self._take_right("close")
        self._path.disconnect()

    def identify(self, principal: str) -> None:
        """From the connection's next request on, ``context.principal`` is ``principal``."""
        self._path.identify(principal)

    def passes_login(self) -> bool:
        """Whether the connection's login lets the request go to its handler; if not, the login has answered.
        Asked once.
        """
        return self._path.admits(self)

    def abandon(self) -> None:
        """Close the connection whether or not an answer was given: its handler has failed."""
        with suppress(IndexError):
            self._right_to_answer.pop()
        self._path.disconnect()

    def _take_right(self, answer: str) -> None:
        try:
            self._right_to_answer.pop()  # one step of the interpreter: of two threads one gets it
        except IndexError:
            raise RuntimeError(
                f"{answer} for a request of connection {self.context.connection_id} that was answered already"
            ) from None
        self.answered_ns = perf_counter_ns()
