"""EndWrite (key 10001, sparklog's own): a driver commits a write, or aborts the members of its run."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class EndWriteRequest:
    """``winners``: producer ids of the members whose rows count; empty for an abort."""

    API_KEY: ClassVar[int] = 10_001

    app_id: str
    app_version: int
    run: str
    is_commit: bool
    is_plain: bool = False
    winners: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class MissingTopic:
    name: str
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class EndWriteResponse:
    """``outcome`` (model.write_outcomes.EndOutcome) counts only without an error.

    ``app_version``: the one that was committed, or is being written. ``producer_id``: the lost winner.
    ``topic``: the deleted one. ``missing``: partitions in which a committed write is not visible yet.
    """

    API_KEY: ClassVar[int] = 10_001

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    outcome: int = 0
    app_version: int = -1
    producer_id: int = -1
    topic: str = ""
    missing: list[MissingTopic] = field(default_factory=list)
