"""Answers that several tabs share: a hundred tabs ask the cluster no more often than one."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from sparklog.model.time import Clock

T = TypeVar("T")
KEPT_MAX: Final = 200


@dataclass(slots=True)
class _Shared:
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    made_ms: int | None = None


class SharedAnswers:
    """Safe to use from any thread. What fails is not kept: the next one who asks tries again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[Hashable, _Shared] = {}

    def get(self, key: Hashable, max_age_ms: int, make: Callable[[], T]) -> T:
        """The value of ``key`` if it is not older, else a new one; those who ask meanwhile wait for it."""
        with self._lock:
            shared = self._kept.pop(key, None) or _Shared()
            self._kept[key] = shared  # as the newest
            while len(self._kept) > KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        with shared.lock:
            now_ms = self._clock.monotonic_ms()
            if shared.made_ms is None or now_ms - shared.made_ms > max_age_ms:
                shared.value = make()
                shared.made_ms = self._clock.monotonic_ms()
            value: T = shared.value
            return value
