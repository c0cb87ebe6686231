"""What an operator asks of brokers, and the answer."""

from dataclasses import dataclass

from sparklog.core.controller.operation_kind import OperationKind
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId


@dataclass(frozen=True, slots=True)
class OperateBrokers:
    """Begin an operation on these brokers, or with ``is_all`` on all whose wish is to serve.

    ``request`` is drawn by the requester: one that is sent again begins nothing. ``throttle``: bytes a
    second, 0 for none. ``accepts_unavailable``: also where partitions cannot be written meanwhile.
    """

    kind: OperationKind
    brokers: tuple[BrokerId, ...]
    request: str
    is_all: bool = False
    accepts_unavailable: bool = False
    throttle: int = 0


@dataclass(frozen=True, slots=True)
class CancelOperation:
    """Revert what is not done of it, and end it."""

    operation: int


@dataclass(frozen=True, slots=True)
class RefusedOperation:
    """A request that names no operation; ``words`` say what is wrong with it."""

    words: str


@dataclass(frozen=True, slots=True)
class OperationResult:
    """``operation``: the id of what has begun, or is being cancelled."""

    error: ErrorCode = ErrorCode.none
    message: str = ""
    operation: int = -1
