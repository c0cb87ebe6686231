"""Answers that several tabs share: a hundred tabs ask the cluster no more often than one.

An answer about ten thousand partitions takes a second of work. So that an open page takes a tenth of a
processor at most, an answer is kept for at least ten times as long as the work for it took.
"""

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from sparklog.model.time import Clock

T = TypeVar("T")
KEPT_MAX: Final = 200
REST_OF_WORK: Final = 10
"""For how many times its work's duration an answer is kept at least."""


@dataclass(slots=True)
class _Shared:
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    made_ms: int | None = None
    rests_ms: float = 0


class SharedAnswers:
    """Safe to use from any thread. What fails is not kept: the next one who asks tries again."""

    def __init__(self, clock: Clock, worked_s: Callable[[], float] = time.process_time) -> None:
        """``worked_s``: the seconds of processor time that the process has used."""
        self._clock = clock
        self._worked_s = worked_s
        self._lock = threading.Lock()
        self._kept: dict[Hashable, _Shared] = {}

    def get(self, key: Hashable, max_age_ms: int, make: Callable[[], T]) -> T:
        """The value of ``key`` if it is not older, or was too much work to be made so often; else a new one.
        Those who ask meanwhile wait for it.
        """
        with self._lock:
            shared = self._kept.pop(key, None) or _Shared()
            self._kept[key] = shared  # as the newest
            while len(self._kept) > KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        with shared.lock:
            now_ms = self._clock.monotonic_ms()
            if shared.made_ms is None or now_ms - shared.made_ms > max(max_age_ms, shared.rests_ms):
                began_s = self._worked_s()
                shared.value = make()
                shared.rests_ms = (self._worked_s() - began_s) * 1_000 * REST_OF_WORK
                shared.made_ms = self._clock.monotonic_ms()
            value: T = shared.value
            return value
