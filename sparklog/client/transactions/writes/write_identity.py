"""Which write a task or a driver speaks of."""

from dataclasses import dataclass
from typing import Final

DEFAULT_TIMEOUT_MS: Final = 300_000


@dataclass(frozen=True, slots=True)
class WriteIdentity:
    """One version of an app's writes, and one driver's try at it.

    ``app_id`` may be at most 1,000 characters, ``run`` 200. ``version`` counts from 0; of each app id only
    versions above the last committed one are written. ``is_plain``: no other write uses the app id, so the
    cluster forgets it soon. The cluster aborts the write after ``timeout_ms`` without a sign of life.
    """

    app_id: str
    version: int
    run: str
    is_plain: bool
    timeout_ms: int = DEFAULT_TIMEOUT_MS

    def __str__(self) -> str:
        return f"version {self.version} of {self.app_id!r}"
