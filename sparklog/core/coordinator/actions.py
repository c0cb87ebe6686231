"""The actions of a coordinator's state machine. Its shard carries them out in the order given."""

from dataclasses import dataclass
from typing import Any, NamedTuple, NewType

from sparklog.model.errors import ErrorCode

Token = NewType("Token", int)
"""Names one request that waits for its answer."""

WriteId = NewType("WriteId", int)
"""Names one write of one machine; a machine never uses a number twice."""


@dataclass(frozen=True, slots=True)
class StateRecord:
    """One record of the internal topic, typed: frozen dataclasses, which the shell encodes.

    ``value`` None is a tombstone: compaction may remove every record of the key.
    """

    key: Any
    value: Any | None


class Producer(NamedTuple):
    """The producer in whose transaction records are written."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the request that waits under ``token``. A machine answers each request exactly once."""

    token: Token
    response: Any


@dataclass(frozen=True, slots=True)
class Write:
    """Append ``records`` with acks=all, as a whole or not at all. Outcome: ``on_written``.

    ``key`` is the group or the transactional id that the records belong to. With ``holds_key``, requests of
    that key wait in the shard until the outcome is final. With a ``producer`` the records belong to its open
    transaction: they count if it is committed (``StateMachine.on_end``).
    """

    write_id: WriteId
    key: str
    records: tuple[StateRecord, ...]
    holds_key: bool
    producer: Producer | None = None


@dataclass(frozen=True, slots=True)
class Tell:
    """Something for the shell of this kind of coordinator, which the shard passes on as it is.

    The shell may ask the machine by a request what became of it. After a new load, the machine tells again
    whatever is still to be done.
    """

    message: Any


Action = Reply | Write | Tell


@dataclass(frozen=True, slots=True)
class Written:
    """The records are below the high watermark: every later leader has them. Final."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The records are certainly not in the log. Final."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The records are in the leader's log, but nobody knows yet whether they will be committed.

    ``error`` is REQUEST_TIMED_OUT or NOT_ENOUGH_REPLICAS_AFTER_APPEND. The machine answers the waiting
    requests now, and neither applies nor forgets the write: either ``Written`` follows for the same write,
    or the shard resigns. Until then the shard holds the key.
    """

    error: ErrorCode


WriteOutcome = Written | Refused | InDoubt
