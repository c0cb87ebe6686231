"""OpenWrite (key 10000, sparklog's own): a task attempt joins a write, says that it lives, or is done.

state   0 working, 1 finished, 2 withdrawn
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class OpenWriteTopic:
    name: str
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OpenWriteRequest:
    """``app_id``: of a streaming query, the user's, or of this write alone; the latter is ``is_plain``.

    ``run``: one driver's try at the write. ``attempt``: unique in the run. ``producer_id``: what the attempt
    was answered before, -1 for nothing. ``topics``: partitions to be added to those of the member.
    """

    API_KEY: ClassVar[int] = 10_000

    app_id: str
    app_version: int
    run: str
    attempt: str
    timeout_ms: int
    is_plain: bool = False
    state: int = 0
    producer_id: int = -1
    topics: list[OpenWriteTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OpenWriteResponse:
    """``outcome`` (model.write_outcomes.OpenOutcome) counts only without an error.

    ``app_version``: the one that was committed, or is being written.
    """

    API_KEY: ClassVar[int] = 10_000

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    outcome: int = 0
    producer_id: int = -1
    app_version: int = -1
